"""The project is where the client works: it is asked after the handshake, and what depends on the answer waits."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from modes_actor.config import Config, PathsSection, PersistenceSection, SessionsSection
from modes_actor.surface import roots
from modes_actor.surface.client_project import choose_project, directory_of
from modes_actor.surface.house import House
from modes_actor.surface.modes_offer import modes_offer
from modes_actor.wire.versions import V2024_11_05, V2025_11_25, V2026_07_28, Version
from tests.conversation import CLIENT_INFO, Conversation, Json, talking
from tests.modes_house import BUILTIN

DECLARED: Json = {"roots": {"listChanged": True}}


class Workplace:
    """Two projects with a mode each, and a directory from which the server is started."""

    def __init__(self, directory: Path) -> None:
        self.one, self.two, self.elsewhere = (directory / name for name in ("one", "two", "elsewhere"))
        self.home = directory / "home"
        for made in (self.one, self.two, self.elsewhere, self.home):
            made.mkdir()
        for project in (self.one, self.two):
            (project / ".roomodes").write_text(
                f"customModes:\n  - {{slug: mode-{project.name}, name: A, roleDefinition: B, groups: [read]}}\n",
                encoding="utf-8",
            )
        self.config = Config(
            paths=PathsSection(global_config_dir=str(self.home)),
            sessions=SessionsSection(persistence=PersistenceSection(enabled=False)),
        )

    @asynccontextmanager
    async def client(self, *, version: Version | None = V2025_11_25, capabilities: Json | None = None) -> Any:
        house = House(self.config, working_directory=self.elsewhere, home=self.home)
        async with talking(modes_offer(self.config, house), version=version, capabilities=capabilities) as client:
            yield client


@pytest.fixture
def workplace(tmp_path: Path) -> Workplace:
    return Workplace(tmp_path)


@asynccontextmanager
async def asked(workplace: Workplace) -> AsyncIterator[tuple[Conversation, Json]]:
    """A client that was asked for its roots and has not answered yet."""
    async with workplace.client(capabilities=DECLARED) as client:
        question = await client.receive()
        assert question == {"jsonrpc": "2.0", "id": question["id"], "method": "roots/list"}
        yield client, question


async def answer(client: Conversation, question: Json, *directories: Path) -> None:
    found = [{"uri": directory.as_uri()} for directory in directories]
    await client.send({"jsonrpc": "2.0", "id": question["id"], "result": {"roots": found}})


async def own_modes(client: Conversation) -> list[str]:
    """The slugs that are not built in."""
    listed = await client.result("tools/call", {"name": "list_modes", "arguments": {}})
    return [mode["slug"] for mode in listed["structuredContent"]["modes"] if mode["slug"] not in BUILTIN]


async def test_the_modes_are_those_of_the_clients_root(workplace: Workplace) -> None:
    """Wherever the server was started."""
    async with asked(workplace) as (client, question):
        await answer(client, question, workplace.one)
        assert await own_modes(client) == ["mode-one"]


async def test_what_was_asked_before_the_roots_are_known_waits_for_them(workplace: Workplace) -> None:
    """What does not depend on them does not wait."""
    async with asked(workplace) as (client, question):
        call = {"name": "get_mode_info", "arguments": {"mode_slug": "mode-one"}}
        uris = {"uri": "mode://mode-one"}
        await client.send(
            client.compose("tools/call", call, id="first"),
            client.compose("resources/read", uris, id="second"),
            client.compose("tools/list", id="third"),
        )
        assert (await client.receive())["id"] == "third"
        await trio.testing.wait_all_tasks_blocked()
        await answer(client, question, workplace.one)
        answers = [await client.receive() for _ in range(2)]
        assert {each["id"]: "result" in each for each in answers} == {"first": True, "second": True}


async def test_a_switch_and_the_question_after_it_keep_their_order_while_they_wait(workplace: Workplace) -> None:
    """What is asked after a switch is decided in the new mode, roots or no roots."""
    async with workplace.client(capabilities={}) as client:
        created = await client.result("tools/call", {"name": "create_task", "arguments": {"mode_slug": "ask"}})
        session = created["structuredContent"]["session_id"]
        capabilities = {"protocolVersion": "2025-11-25", "capabilities": DECLARED, "clientInfo": CLIENT_INFO}
        await client.result("initialize", capabilities)
        await client.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        question = await client.receive()
        switch = {"name": "switch_mode", "arguments": {"session_id": session, "new_mode_slug": "code"}}
        use = {"name": "validate_tool_use", "arguments": {"session_id": session, "tool_name": "execute_command"}}
        await client.send(client.compose("tools/call", switch, id=1), client.compose("tools/call", use, id=2))
        await trio.testing.wait_all_tasks_blocked()
        await answer(client, question, workplace.one)
        answers: dict[int, Json] = {}
        while len(answers) < 2:
            message = await client.receive()
            if "id" in message:  # and not the news that the lists are others now
                answers[message["id"]] = message
        assert answers[2]["result"]["structuredContent"]["allowed"] is True


async def test_a_request_that_is_cancelled_while_it_waits_is_never_begun(workplace: Workplace) -> None:
    """Nothing comes of it, no task and no answer."""
    async with asked(workplace) as (client, question):
        create = {"name": "create_task", "arguments": {"mode_slug": "mode-one"}}
        await client.send(
            client.compose("tools/call", create, id="unwanted"),
            {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "unwanted"}},
        )
        await trio.testing.wait_all_tasks_blocked()
        await answer(client, question, workplace.one)
        ref = {"type": "ref/resource", "uri": "task://{session_id}"}
        known = await client.result(
            "completion/complete", {"ref": ref, "argument": {"name": "session_id", "value": ""}}
        )
        assert known["completion"]["values"] == []


async def test_a_refusal_is_the_same_after_waiting(workplace: Workplace) -> None:
    """An error that a handler raises is an error of its request."""
    async with asked(workplace) as (client, question):
        call = {"name": "get_mode_info", "arguments": {"mode_slug": "mode-two"}}
        await client.send(client.compose("tools/call", call, id="lost"))
        await trio.testing.wait_all_tasks_blocked()
        await answer(client, question, workplace.one)
        error = (await client.receive())["error"]
        assert (error["code"], error["message"].startswith("Mode not found: mode-two.")) == (-32001, True)


async def test_a_client_that_does_not_answer_is_served_all_the_same(workplace: Workplace, autojump_clock: Any) -> None:
    """After a while, and as if it had no roots; the question is taken back."""
    async with asked(workplace) as (client, question):
        await client.send(client.compose("tools/call", {"name": "list_modes"}, id="patient"))
        with trio.fail_after(roots.PATIENCE + 1):
            taken_back, answered = await client.receive(), await client.receive()
        assert taken_back["params"]["requestId"] == question["id"]
        assert len(answered["result"]["structuredContent"]["modes"]) == len(BUILTIN)


@pytest.mark.parametrize(
    "said",
    [
        {"error": {"code": -32601, "message": "no roots here"}},
        {"result": {"roots": "none"}},
        {"result": {"roots": []}},
        {"result": {"roots": [{"uri": "https://example.com/"}, {"uri": "file:///no/such/directory"}]}},
    ],
)
async def test_an_answer_that_names_no_directory_changes_nothing(workplace: Workplace, said: Json) -> None:
    """The project is then the one around the directory the server was started in."""
    async with asked(workplace) as (client, question):
        await client.send({"jsonrpc": "2.0", "id": question["id"], **said})
        assert await own_modes(client) == []


async def test_so_many_may_wait_and_no_more(workplace: Workplace) -> None:
    """The client's answer comes in on the same pipe, and must get through."""
    async with asked(workplace) as (client, question):
        calls = [client.compose("tools/call", {"name": "list_modes"}) for _ in range(roots.WAITING + 1)]
        await client.send(*calls)
        refused = await client.receive()
        assert (refused["id"], refused["error"]["data"]) == (calls[-1]["id"], {"retryable": True})
        await answer(client, question, workplace.one)
        answers = [await client.receive() for _ in range(roots.WAITING)]
        assert sorted(each["id"] for each in answers if "result" in each) == [call["id"] for call in calls[:-1]]


async def test_a_client_that_moves_is_asked_again(workplace: Workplace, autojump_clock: Any) -> None:
    """And told that its lists have changed; files of the new project are watched."""
    async with asked(workplace) as (client, question):
        await answer(client, question, workplace.one)
        assert await own_modes(client) == ["mode-one"]
        await client.send({"jsonrpc": "2.0", "method": "notifications/roots/list_changed"})
        await answer(client, await client.receive(), workplace.two)
        changed = {(await client.receive())["method"] for _ in range(2)}
        assert changed == {"notifications/resources/list_changed", "notifications/prompts/list_changed"}
        assert await own_modes(client) == ["mode-two"]
        (workplace.two / ".roomodes").unlink()
        await trio.sleep(2)
        assert (await client.receive())["method"] == "notifications/resources/list_changed"


async def test_changes_that_come_while_it_is_asked_lead_to_one_more_question(workplace: Workplace) -> None:
    """However many they are."""
    async with asked(workplace) as (client, question):
        await client.send(*[{"jsonrpc": "2.0", "method": "notifications/roots/list_changed"}] * 1000)
        await trio.testing.wait_all_tasks_blocked()
        await answer(client, question, workplace.one)
        again = await client.receive()
        await answer(client, again, workplace.two)
        assert (again["method"], await own_modes(client)) == ("roots/list", ["mode-two"])


async def test_a_client_that_moves_all_the_time_is_served_between_its_moves(workplace: Workplace) -> None:
    """What waited for an answer goes on with it, though another question is open by then."""
    async with asked(workplace) as (client, question):
        await client.send(
            client.compose("tools/call", {"name": "list_modes"}, id="waits"),
            {"jsonrpc": "2.0", "method": "notifications/roots/list_changed"},
        )
        await trio.testing.wait_all_tasks_blocked()
        await answer(client, question, workplace.one)
        said = [await client.receive() for _ in range(2)]
        assert sorted(each.get("method", each["id"]) for each in said) == ["roots/list", "waits"]


@pytest.mark.parametrize("version", [V2024_11_05, V2025_11_25, V2026_07_28])
async def test_a_client_without_roots_is_not_asked(workplace: Workplace, version: Version) -> None:
    """The next message is the answer to what it asks."""
    async with workplace.client(version=version) as client:
        assert await own_modes(client) == []


async def test_a_stateless_client_is_never_asked(workplace: Workplace) -> None:
    """Where it works is configuration there, whatever it declares."""
    async with workplace.client(version=V2026_07_28, capabilities=DECLARED) as client:
        await client.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        assert await own_modes(client) == []


async def test_a_project_that_was_configured_is_not_asked_for(workplace: Workplace) -> None:
    """Flags, environment and file go before what a client says."""
    workplace.config.paths.project_root = str(workplace.two)
    async with workplace.client(capabilities=DECLARED) as client:
        assert await own_modes(client) == ["mode-two"]


async def test_a_server_ends_while_it_waits_for_the_roots(workplace: Workplace) -> None:
    """What waits is served as it can be, and nothing keeps the process."""
    async with asked(workplace) as (client, _):
        await client.send(client.compose("tools/call", {"name": "list_modes"}, id="last"))
        await client.end_input()
        assert [each.get("id") for each in await client.remaining()] == ["last"]


def test_of_several_roots_the_one_with_modes_is_the_project(workplace: Workplace) -> None:
    """Then one that has rules, then any repository, then the first."""
    plain, ruled, repository = (workplace.home / name for name in ("plain", "ruled", "repository"))
    for directory, mark in ((plain, ""), (ruled, ".roo"), (repository, ".git")):
        (directory / mark).mkdir(parents=True)
    order = [plain, repository, ruled, workplace.two, workplace.one]
    chosen = []
    while order:
        root = choose_project([directory.as_uri() for directory in order], workplace.config)
        assert root is not None
        chosen.append(root.name)
        order.remove(root)
    assert chosen == ["two", "one", "ruled", "repository", "plain"]


def test_a_root_below_a_project_is_in_that_project(workplace: Workplace) -> None:
    """As a person who works there would have it."""
    below = workplace.one / "src" / "deep"
    below.mkdir(parents=True)
    assert choose_project([below.as_uri()], workplace.config) == workplace.one


@pytest.mark.parametrize("name", ["with blank", "ümläut", "100%", "a#b?c"])
def test_a_uri_is_read_as_the_directory_that_it_names(tmp_path: Path, name: str) -> None:
    """Escapes are undone, once."""
    (tmp_path / name).mkdir()
    assert directory_of((tmp_path / name).as_uri()) == tmp_path / name


@pytest.mark.parametrize("uri", ["", "file:", "file://server/share", "file:///%ff", "file:///a%00b", "x:/", "//[", "/"])
def test_what_names_no_directory_here_is_none(uri: str) -> None:
    """A client may say anything."""
    assert directory_of(uri) is None
