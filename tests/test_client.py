"""The client, against a server in this process and against one that says whatever a test wants it to say."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal, Unpack

import msgspec
import pytest
import trio
import trio.testing

from modes_actor.client import (
    INPUT_ROUNDS,
    BadAnswer,
    Client,
    FileRestricted,
    ModeNotFound,
    Options,
    ServerDescription,
    ServerError,
    ServerGone,
    SessionExpired,
    TaskNotFound,
    ToolFailed,
    ToolRestricted,
    ValidationFailed,
    connect,
)
from modes_actor.server import Server
from modes_actor.surface.mode_results import TaskCompletedResult, TaskCreated, ToolGroup, Validation
from modes_actor.surface.offer import Offer
from modes_actor.wire.base import Implementation
from modes_actor.wire.client_features import Root
from modes_actor.wire.completion import PromptReference
from modes_actor.wire.content import TextContent
from modes_actor.wire.jsonrpc import Notification
from modes_actor.wire.lifecycle import ListCapability, ResourcesCapability, ServerCapabilities
from modes_actor.wire.prompts import PromptMessage
from modes_actor.wire.versions import V2025_11_25, V2026_07_28
from tests.conversation import Json
from tests.modes_house import ALL_MODES, TOOLS, UNKNOWN_SESSION, Place
from tests.sample_offer import Gate, sample_offer

EraName = Literal["handshake", "stateless"]

in_both_eras = pytest.mark.parametrize("era", ["handshake", "stateless"])

INTRODUCTION: Json = {
    "protocolVersion": V2025_11_25.name,
    "capabilities": {},
    "serverInfo": {"name": "scripted", "version": "1"},
}


@asynccontextmanager
async def serving(offer: Offer, **options: Unpack[Options]) -> AsyncIterator[Client]:
    """A client of a server of that offer."""
    to_server, server_receives = trio.testing.memory_stream_one_way_pair()
    server_sends, from_server = trio.testing.memory_stream_one_way_pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(Server(offer).serve, server_receives, server_sends)
        async with connect(from_server, to_server, **options) as client:
            yield client


class Scripted:
    """A server's side, played by a test."""

    def __init__(self, *, unread_is_full: bool = False) -> None:
        """`unread_is_full`: the client's writes wait until the server reads, as on a pipe that is full."""
        self.client_sends: trio.abc.SendStream
        self.receives: trio.abc.ReceiveStream
        if unread_is_full:
            self.client_sends, self.receives = trio.testing.lockstep_stream_one_way_pair()
        else:
            self.client_sends, self.receives = trio.testing.memory_stream_one_way_pair()
        self.sends, self.client_receives = trio.testing.memory_stream_one_way_pair()
        self._received = bytearray()

    def client(self, **options: Unpack[Options]) -> Any:
        return connect(self.client_receives, self.client_sends, **options)

    async def say(self, *messages: Any) -> None:
        await self.sends.send_all(b"".join(msgspec.json.encode(message) + b"\n" for message in messages))

    async def answer(self, request: Json, result: Any) -> None:
        await self.say(answer_to(request, result))

    async def hear(self) -> Json:
        """The next message."""
        while b"\n" not in self._received:
            chunk = await self.receives.receive_some()
            assert chunk, f"the client closed its end after {bytes(self._received)!r}"
            self._received += chunk
        line, _, self._received = self._received.partition(b"\n")
        message: Json = msgspec.json.decode(line)
        return message

    async def shake_hands(self, introduction: Json = INTRODUCTION) -> Json:
        """Answer the handshake; return its params."""
        request = await self.hear()
        assert request["method"] == "initialize"
        await self.answer(request, introduction)
        params: Json = request["params"]
        return params

    async def end_when_left(self) -> None:
        """Close the server's end when the client has closed its own."""
        try:
            while await self.receives.receive_some():
                pass
        except trio.ClosedResourceError:
            pass  # the server had stopped reading before
        await self.sends.aclose()


def answer_to(request: Json, result: Any) -> Json:
    return {"jsonrpc": "2.0", "id": request["id"], "result": result}


@asynccontextmanager
async def scripted(
    script: Scripted | None = None, **options: Unpack[Options]
) -> AsyncIterator[tuple[Client, Scripted, trio.Nursery]]:
    """A conversation, already open, with a server that a test plays; and a nursery for the client's calls."""
    server = script or Scripted()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(server.shake_hands)
        async with server.client(**options) as client:
            assert (await server.hear())["method"] == "notifications/initialized"
            yield client, server, nursery
            nursery.start_soon(server.end_when_left)


class Outcome:
    """What comes of a call in another task."""

    def __init__(self) -> None:
        self.result: Any = None
        self.error: Exception | None = None

    async def of(self, call: Callable[..., Any], *arguments: Any) -> None:
        try:
            self.result = await call(*arguments)
        except Exception as error:
            self.error = error


# Opening.


async def test_a_handshake_tells_who_the_server_is() -> None:
    """In the newest handshake version."""
    async with serving(sample_offer()) as client:
        assert client.server == ServerDescription(
            name="sample",
            version="1",
            protocol_version=V2025_11_25.name,
            capabilities=ServerCapabilities(
                tools=ListCapability(list_changed=True),
                resources=ResourcesCapability(subscribe=True, list_changed=True),
                prompts=ListCapability(list_changed=True),
                completions={},
                logging={},
            ),
            instructions="Echo things.",
        )


async def test_a_discovery_tells_who_the_server_is() -> None:
    """Its name is in the metadata there."""
    async with serving(sample_offer(), era="stateless") as client:
        server = client.server
    assert (server.name, server.version, server.protocol_version) == ("sample", "1", V2026_07_28.name)
    assert server.instructions == "Echo things."
    assert server.capabilities.tools is not None


@in_both_eras
async def test_the_client_says_who_it_is(era: EraName) -> None:
    """With the handshake, or with every request."""
    async with serving(sample_offer(), era=era, client_info=Implementation("me", "3")) as client:
        assert (await client.call_tool("who")).text.startswith("me in ")


async def test_the_handshake_is_completed_by_a_notification() -> None:
    """A server may wait for it before it does anything."""
    server = Scripted()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(server.shake_hands)
        async with server.client():
            assert await server.hear() == {"jsonrpc": "2.0", "method": "notifications/initialized"}
            nursery.start_soon(server.end_when_left)


async def test_what_the_client_does_not_need_may_be_anything() -> None:
    """Other servers say more of themselves, in ways of their own, and print what is no message."""
    server = Scripted()
    strange: Json = {
        "protocolVersion": "2024-11-05",
        "capabilities": {"tools": {"new": 1}, "newest": True},
        "serverInfo": {"name": "other", "version": "9", "icons": "none", "mood": 1},
        "_meta": None,
        "more": [],
    }
    async with trio.open_nursery() as nursery:
        await server.sends.send_all(b"starting...\n\n[1]\n")
        nursery.start_soon(server.shake_hands, strange)
        async with server.client() as client:
            nursery.start_soon(server.end_when_left)
    assert (client.server.name, client.server.version, client.server.protocol_version) == ("other", "9", "2024-11-05")


async def test_a_server_of_an_unknown_version_is_left() -> None:
    """What it says could mean anything."""
    server = Scripted()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(server.shake_hands, {**INTRODUCTION, "protocolVersion": "1999-01-01"})
        with pytest.raises(BadAnswer, match="1999-01-01"):
            async with server.client(patience=0):
                pytest.fail("it must not be talked to")


async def test_an_opening_that_is_refused_is_an_error() -> None:
    """It comes out of the block as it is, and not in a group."""
    server = Scripted()

    async def refuse() -> None:
        request = await server.hear()
        await server.say({"jsonrpc": "2.0", "id": request["id"], "error": {"code": -32000, "message": "not today"}})

    async with trio.open_nursery() as nursery:
        nursery.start_soon(refuse)
        with pytest.raises(ServerError, match="not today") as caught:
            async with server.client(patience=0):
                pytest.fail("it was refused")
    assert caught.value.code == -32000


# The seven tools.


@in_both_eras
async def test_a_task_goes_through_its_life(tmp_path: Path, era: EraName) -> None:
    """All of the tools, with what they tell as Structs."""
    async with serving(Place(tmp_path).offer(), era=era) as client:
        assert [mode.slug for mode in (await client.list_modes()).modes] == ALL_MODES
        assert [mode.slug for mode in (await client.list_modes("global")).modes] == ["mine"]
        docs = await client.get_mode_info("docs")
        assert (docs.role_definition, docs.system_prompt) == ("You write guides.", None)
        assert docs.tool_groups["edit"] == ToolGroup(enabled=True, file_regex=["^docs/"])
        prompted = await client.get_mode_info("docs", include_system_prompt=True)
        assert "You write guides." in (prompted.system_prompt or "")

        parent = await client.create_task("orchestrator")
        created = await client.create_task("architect", "Draw a plan", parent.session_id)
        assert created == TaskCreated(
            session_id=created.session_id, task_id=created.task_id, mode_slug="architect", state="active"
        )
        session = created.session_id
        denied = await client.validate_tool_use(session, "write_to_file", "src/app.py")
        assert (denied.allowed, denied.mode, denied.allowed_in) == (False, "architect", ["code", "debug"])
        named = await client.validate_tool_use(session, "write_to_file", arguments={"path": "src/app.py"})
        assert named == denied

        switched = await client.switch_mode(session, "code", "time to build")
        assert (switched.old_mode, switched.new_mode, switched.reason) == ("architect", "code", "time to build")
        allowed = await client.validate_tool_use(session, "write_to_file", "src/app.py", enforce=True)
        assert allowed == Validation(allowed=True, tool_name="write_to_file", mode="code", rule=allowed.rule)

        brief = await client.get_task_info(session)
        assert (brief.messages, brief.hierarchy, brief.parent_session_id) == (None, None, parent.session_id)
        task = await client.get_task_info(session, include_messages=True, include_hierarchy=True)
        assert [message.content for message in task.messages or []] == ["Draw a plan"]
        assert [node.session_id for node in task.hierarchy or []] == [parent.session_id, session]

        assert await client.complete_task(session, "completed", "done") == TaskCompletedResult(
            session_id=session,
            task_id=created.task_id,
            status="completed",
            result="done",
            cancelled_sessions=[],
            open_subtasks=0,
        )


@in_both_eras
async def test_a_tools_words_for_people_can_be_had_too(tmp_path: Path, era: EraName) -> None:
    """Beside what it tells programs."""
    async with serving(Place(tmp_path).offer(), era=era) as client:
        result = await client.call_tool("create_task", {"mode_slug": "code"})
    assert result.text.startswith("Task created successfully\n\nSession ID: sess_")
    assert result.structured["mode_slug"] == "code"
    assert result.metadata["task_id"] == result.structured["task_id"]


async def test_what_is_not_given_is_not_sent() -> None:
    """No nulls, and no flags that say what is so anyway."""
    async with scripted() as (client, server, nursery):
        nursery.start_soon(Outcome().of, client.validate_tool_use, "sess_1", "read_file")
        request = await server.hear()
        assert request["params"] == {
            "name": "validate_tool_use",
            "arguments": {"session_id": "sess_1", "tool_name": "read_file"},
        }
        await server.answer(request, {"content": []})


# Errors.


async def unknown_mode(client: Client, place: Place) -> object:
    return await client.get_mode_info("nope")


async def unknown_mode_resource(client: Client, place: Place) -> object:
    return await client.read_resource("mode://nope")


async def unknown_session(client: Client, place: Place) -> object:
    return await client.get_task_info(UNKNOWN_SESSION)


async def expired_session(client: Client, place: Place) -> object:
    created = await client.create_task("code")
    place.clock.advance(3601)
    return await client.get_task_info(created.session_id)


async def malformed_slug(client: Client, place: Place) -> object:
    return await client.create_task("Not a slug!")


async def forbidden_tool(client: Client, place: Place) -> object:
    created = await client.create_task("ask")
    return await client.validate_tool_use(created.session_id, "execute_command", enforce=True)


async def forbidden_file(client: Client, place: Place) -> object:
    created = await client.create_task("architect")
    return await client.validate_tool_use(created.session_id, "write_to_file", "src/app.py", enforce=True)


@in_both_eras
@pytest.mark.parametrize(
    ("attempt", "expected"),
    [
        (unknown_mode, ModeNotFound),
        (unknown_mode_resource, ModeNotFound),
        (unknown_session, TaskNotFound),
        (expired_session, SessionExpired),
        (malformed_slug, ValidationFailed),
        (forbidden_tool, ToolRestricted),
        (forbidden_file, FileRestricted),
    ],
)
async def test_a_refusal_is_the_same_exception_in_both_eras(
    tmp_path: Path, attempt: Callable[[Client, Place], Any], expected: type[ServerError], era: EraName
) -> None:
    """Although one era answers with an error and the other with a result."""
    place = Place(tmp_path)
    async with serving(place.offer(), era=era) as client:
        with pytest.raises(ServerError) as caught:
            await attempt(client, place)
    assert type(caught.value) is expected
    assert caught.value.message == str(caught.value)
    assert caught.value.message.startswith(expected.told_as.phrase)
    assert caught.value.code in (expected.told_as.code, -32602)


async def test_the_numbers_of_other_servers_are_not_taken_for_ours() -> None:
    """Many answer -32001 and -32002 for reasons of their own."""
    async with scripted() as (client, server, nursery):
        outcomes = []
        for code, message in ((-32001, "Request timed out"), (-32002, "Resource not found: x")):
            outcomes.append(outcome := Outcome())
            nursery.start_soon(outcome.of, client.read_resource, "x")
            error = {"code": code, "message": message, "data": {"uri": "x"}}
            await server.say({"jsonrpc": "2.0", "id": (await server.hear())["id"], "error": error})
        await trio.testing.wait_all_tasks_blocked()
    told = [
        (type(each.error), each.error.code, each.error.data) for each in outcomes if isinstance(each.error, ServerError)
    ]
    assert told == [(ServerError, -32001, {"uri": "x"}), (ServerError, -32002, {"uri": "x"})]


async def test_a_tool_that_fails_in_its_own_words_is_an_exception_too() -> None:
    """Nobody should take its complaint for a result."""
    async with scripted() as (client, server, nursery):
        nursery.start_soon((outcome := Outcome()).of, client.call_tool, "deploy")
        await server.answer(await server.hear(), {"content": [{"type": "text", "text": "no disk"}], "isError": True})
        await trio.testing.wait_all_tasks_blocked()
    assert isinstance(outcome.error, ToolFailed)
    assert (str(outcome.error), outcome.error.result.is_error) == ("no disk", True)


@pytest.mark.parametrize(
    "answer",
    [
        {"result": {"content": [], "structuredContent": {"modes": 7}}},
        {"result": "fine"},
        {"error": "no"},
        {},
    ],
    ids=["a wrong Struct", "no object", "no error object", "nothing"],
)
async def test_an_answer_that_makes_no_sense_is_an_exception(answer: Json) -> None:
    """The call does not wait for a better one."""
    async with scripted() as (client, server, nursery):
        nursery.start_soon((outcome := Outcome()).of, client.list_modes)
        await server.say({"jsonrpc": "2.0", "id": (await server.hear())["id"], **answer})
        await trio.testing.wait_all_tasks_blocked()
    assert isinstance(outcome.error, BadAnswer)


# What every server may have.


@in_both_eras
async def test_what_a_server_offers_can_be_listed_and_asked_for(tmp_path: Path, era: EraName) -> None:
    """Tools, resources, prompts, and values for their arguments."""
    async with serving(Place(tmp_path).offer(), era=era) as client:
        await client.ping()
        assert [tool.name for tool in await client.list_tools()] == TOOLS
        assert "mode://docs" in [resource.uri for resource in await client.list_resources()]
        assert "You write guides." in await client.read_resource("mode://docs")
        assert "docs" in [prompt.name for prompt in await client.list_prompts()]
        assert "You write guides." in str((await client.get_prompt("docs")).messages)
    async with serving(sample_offer(), era=era) as client:
        completion = await client.complete(PromptReference("greet"), "who", "x", chosen={"how": "loudly"})
        assert completion.values == ["xa", "xb", "xc"]
        greeting = await client.get_prompt("greet", {"who": "you"})
        assert greeting.messages == [PromptMessage("assistant", TextContent("Hello, you"))]
        templates = await client.request("resources/templates/list")
        assert msgspec.json.decode(templates)["resourceTemplates"][0]["uriTemplate"] == "sample://{name}"
        with pytest.raises(BadAnswer, match="sample://two has no text"):
            await client.read_resource("sample://two")


async def test_lists_are_followed_to_their_last_page() -> None:
    """A server may cut them as it likes, empty pages too."""
    async with scripted() as (client, server, nursery):
        nursery.start_soon((outcome := Outcome()).of, client.list_resources)
        pages = {None: (["a", "b"], "second"), "second": ([], "third"), "third": (["c"], None)}
        for _ in pages:
            request = await server.hear()
            names, cursor = pages[request.get("params", {}).get("cursor")]
            resources = [{"uri": f"x:{name}", "name": name} for name in names]
            await server.answer(request, {"resources": resources, "nextCursor": cursor})
        await trio.testing.wait_all_tasks_blocked()
    assert [resource.name for resource in outcome.result] == ["a", "b", "c"]


async def test_pages_that_go_round_in_circles_are_an_exception() -> None:
    """The list would have no end."""
    async with scripted() as (client, server, nursery):
        nursery.start_soon((outcome := Outcome()).of, client.list_tools)
        for _ in range(2):
            await server.answer(await server.hear(), {"tools": [], "nextCursor": "again"})
        await trio.testing.wait_all_tasks_blocked()
    assert isinstance(outcome.error, BadAnswer)


# Many calls at a time.


async def test_each_call_gets_its_own_answer_in_whatever_order_they_come() -> None:
    """Calls are sent at once, without waiting for one another; ids tell the answers apart."""
    async with scripted() as (client, server, nursery):
        outcomes = [Outcome() for _ in range(20)]
        for number, outcome in enumerate(outcomes):
            nursery.start_soon(outcome.of, client.request, "echo", {"number": number})
        requests = [await server.hear() for _ in outcomes]
        await server.say(*(answer_to(request, request["params"]) for request in reversed(requests)))
        await trio.testing.wait_all_tasks_blocked()
    assert len({request["id"] for request in requests}) == 20
    assert [msgspec.json.decode(outcome.result) for outcome in outcomes] == [{"number": n} for n in range(20)]


async def test_answers_may_come_in_an_array() -> None:
    """As a server of 2025-03-26 may send them."""
    async with scripted() as (client, server, nursery):
        outcomes = [Outcome(), Outcome()]
        for outcome in outcomes:
            nursery.start_soon(outcome.of, client.request, "echo")
        await server.say([answer_to(await server.hear(), {}) for _ in outcomes])
        await trio.testing.wait_all_tasks_blocked()
    assert [bytes(outcome.result) for outcome in outcomes] == [b"{}", b"{}"]


async def test_only_the_first_answer_to_a_call_counts() -> None:
    """And an error that is null is none."""
    async with scripted() as (client, server, nursery):
        nursery.start_soon((outcome := Outcome()).of, client.request, "echo")
        request = await server.hear()
        await server.say({**answer_to(request, 1), "error": None}, answer_to(request, 2))
        await trio.testing.wait_all_tasks_blocked()
    assert bytes(outcome.result) == b"1"


async def test_a_call_that_is_cancelled_is_withdrawn_and_its_late_answer_dropped() -> None:
    """The next call gets its own."""
    async with scripted() as (client, server, nursery):
        with trio.CancelScope() as scope:
            nursery.start_soon(_cancel_when_blocked, scope)
            await client.request("slow")
        request = await server.hear()
        assert await server.hear() == {
            "jsonrpc": "2.0",
            "method": "notifications/cancelled",
            "params": {"requestId": request["id"]},
        }
        await server.answer(request, {"late": True})
        nursery.start_soon((outcome := Outcome()).of, client.request, "next")
        await server.answer(await server.hear(), {"late": False})
        await trio.testing.wait_all_tasks_blocked()
    assert bytes(outcome.result) == b'{"late":false}'


async def _cancel_when_blocked(scope: trio.CancelScope) -> None:
    await trio.testing.wait_all_tasks_blocked()
    scope.cancel()


@in_both_eras
async def test_a_cancelled_call_stops_the_servers_work(era: EraName) -> None:
    """The real one understands the withdrawal."""
    gate = Gate()
    async with serving(sample_offer(gate), era=era) as client, trio.open_nursery() as nursery:
        with trio.CancelScope() as scope:
            nursery.start_soon(_cancel_when_blocked, scope)
            await client.call_tool("wait")
        await trio.testing.wait_all_tasks_blocked()
        assert (gate.entered, gate.cancelled) == (1, 1)


async def test_a_handshake_that_is_cancelled_is_not_withdrawn() -> None:
    """The protocol forbids it: the conversation just ends, even if the server reads only then."""
    server = Scripted(unread_is_full=True)
    heard: list[str] = []

    async def cancel_and_read(scope: trio.CancelScope) -> None:
        await _cancel_when_blocked(scope)
        await trio.testing.wait_all_tasks_blocked()
        heard.append((await server.hear())["method"])
        heard.append((await server.receives.receive_some()).decode())

    async with trio.open_nursery() as nursery:
        with trio.CancelScope() as scope:
            nursery.start_soon(cancel_and_read, scope)
            async with server.client():
                pytest.fail("nobody answered")
    assert heard == ["initialize", ""]


async def test_a_frame_is_sent_whole_although_its_call_is_cancelled_in_the_middle() -> None:
    """Half a line would make the rest of the conversation unreadable."""
    async with scripted(Scripted(unread_is_full=True)) as (client, server, nursery):
        with trio.CancelScope() as scope:
            nursery.start_soon(_cancel_when_blocked, scope)
            await client.request("slow", {"text": "x" * 1000})
        beginning = bytes(await server.receives.receive_some(10))
        await trio.testing.wait_all_tasks_blocked()
        server._received += beginning
        request = await server.hear()
        assert request["params"] == {"text": "x" * 1000}
        assert (await server.hear())["params"] == {"requestId": request["id"]}


# What a server asks and tells.


async def test_a_server_that_asks_is_answered() -> None:
    """With a sign of life, or that it asked for something this client does not do."""
    async with scripted() as (_, server, _):
        for method in ("ping", "roots/list", "sampling/createMessage"):
            await server.say({"jsonrpc": "2.0", "id": method, "method": method})
        heard = [await server.hear() for _ in range(3)]
    assert heard[0] == {"jsonrpc": "2.0", "id": "ping", "result": {}}
    assert [(each["id"], each["error"]["code"]) for each in heard[1:]] == [
        ("roots/list", -32601),
        ("sampling/createMessage", -32601),
    ]


@pytest.mark.parametrize(
    ("options", "declared"),
    [(Options(), {}), (Options(roots=[]), {"roots": {}})],
    ids=["without roots", "with an empty list of them"],
)
async def test_roots_are_declared_only_by_a_client_that_can_tell_them(options: Options, declared: Json) -> None:
    """That there are none can be told too."""
    opened_with: list[Json] = []
    server = Scripted()

    async def serve() -> None:
        opened_with.append(await server.shake_hands())
        await server.end_when_left()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve)
        async with server.client(**options):
            pass
    assert [params["capabilities"] for params in opened_with] == [declared]


@in_both_eras
async def test_a_server_that_asks_for_roots_is_told(era: EraName) -> None:
    """Whether it asks with a request or within an answer."""
    async with serving(sample_offer(), era=era, roots=[Root("file:///a"), Root("file:///b", "B")]) as client:
        assert (await client.call_tool("ask_roots")).text == "file:///a, file:///b"


async def test_a_stateless_server_that_never_stops_asking_is_given_up() -> None:
    """Each of its answers is another question."""
    server = Scripted()
    asked = []

    async def ask_on() -> None:
        await server.answer(await server.hear(), {})
        for turn in range(INPUT_ROUNDS):
            request = await server.hear()
            asked.append(request["params"].get("requestState"))
            state: Json = {"requestState": f"turn {turn}"} if turn % 2 == 0 else {"inputRequests": {}}
            await server.answer(request, {"resultType": "input_required", **state})
        await server.end_when_left()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask_on)
        async with server.client(era="stateless") as client:
            with pytest.raises(BadAnswer, match="wanted input for slow"):
                await client.request("slow")
    assert asked == [f"turn {turn - 1}" if turn % 2 else None for turn in range(INPUT_ROUNDS)]


async def test_a_stateless_server_that_asks_for_more_than_was_offered_gets_no_answer() -> None:
    """The call fails, because the server will not go on without."""
    server = Scripted()

    async def ask_for_a_model() -> None:
        await server.answer(await server.hear(), {})
        wanted = {"model": {"method": "sampling/createMessage", "params": {}}}
        await server.answer(await server.hear(), {"resultType": "input_required", "inputRequests": wanted})

    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask_for_a_model)
        async with server.client(era="stateless", patience=0) as client:
            with pytest.raises(BadAnswer, match="sampling/createMessage"):
                await client.request("slow")


async def test_notifications_go_to_whoever_wants_them() -> None:
    """In order, and before the answer that came after them."""
    heard: list[Notification] = []
    async with scripted(notifications=heard.append) as (client, server, nursery):
        nursery.start_soon((outcome := Outcome()).of, client.request, "work")
        progress = [{"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progress": n}} for n in (1, 2)]
        await server.say(*progress, answer_to(await server.hear(), {}))
        await trio.testing.wait_all_tasks_blocked()
        assert outcome.result is not None
    assert [(each.method, msgspec.json.decode(each.params)) for each in heard] == [
        ("notifications/progress", {"progress": 1}),
        ("notifications/progress", {"progress": 2}),
    ]


async def test_notifications_that_nobody_wants_hold_nothing_up() -> None:
    """However many come."""
    async with scripted() as (client, server, nursery):
        nursery.start_soon((outcome := Outcome()).of, client.request, "work")
        chatter = {"jsonrpc": "2.0", "method": "notifications/message", "params": {}}
        await server.say(*[chatter] * 5000, answer_to(await server.hear(), {}))
        await trio.testing.wait_all_tasks_blocked()
    assert bytes(outcome.result) == b"{}"


async def test_every_line_can_be_traced() -> None:
    """In both directions, as it is on the wire."""
    lines: list[tuple[str, Any]] = []
    async with serving(
        sample_offer(), trace=lambda direction, line: lines.append((direction, msgspec.json.decode(line)))
    ) as client:
        await client.ping()
    assert [(direction, line.get("method")) for direction, line in lines] == [
        ("sent", "initialize"),
        ("received", None),
        ("sent", "notifications/initialized"),
        ("sent", "ping"),
        ("received", None),
    ]
    assert lines[-1] == ("received", {"jsonrpc": "2.0", "id": 2, "result": {}})


# The end.


async def test_every_waiting_call_learns_that_the_server_has_gone() -> None:
    """And so does every call after that."""
    async with scripted() as (client, server, nursery):
        outcomes = [Outcome(), Outcome()]
        for outcome in outcomes:
            nursery.start_soon(outcome.of, client.ping)
        await trio.testing.wait_all_tasks_blocked()
        await server.sends.aclose()
        await trio.testing.wait_all_tasks_blocked()
        assert [str(each.error) for each in outcomes] == [
            "The server closed the connection before ping was answered"
        ] * 2
        with pytest.raises(ServerGone, match="The server closed the connection"):
            await client.ping()


async def test_what_a_server_said_before_it_went_is_still_heard() -> None:
    """Its last line too, which may lack a newline."""
    async with scripted() as (client, server, nursery):
        nursery.start_soon((outcome := Outcome()).of, client.request, "last")
        await server.sends.send_all(msgspec.json.encode(answer_to(await server.hear(), {"last": 1})))
        await server.sends.aclose()
        await trio.testing.wait_all_tasks_blocked()
    assert bytes(outcome.result) == b'{"last":1}'


async def test_a_connection_that_breaks_is_the_end_of_it() -> None:
    """As when a socket is reset."""

    async def break_off() -> None:
        raise trio.BrokenResourceError

    async with scripted() as (client, server, nursery):
        nursery.start_soon((outcome := Outcome()).of, client.ping)
        server.client_receives.receive_some_hook = break_off
        await server.say({"jsonrpc": "2.0", "method": "notifications/message"})
        await trio.testing.wait_all_tasks_blocked()
    assert isinstance(outcome.error, ServerGone)


async def test_a_server_that_reads_no_more_is_gone_though_it_does_not_say_so(autojump_clock: object) -> None:
    """It gets some time to end its sentence, and the call does not wait for longer."""
    async with scripted() as (client, server, _):
        await server.receives.aclose()
        with pytest.raises(ServerGone):
            await client.ping()


async def test_a_line_over_the_limit_ends_the_conversation() -> None:
    """Whose answer it was cannot be told, so no call may wait for it."""
    async with scripted(line_limit=1000) as (client, server, nursery):
        nursery.start_soon((outcome := Outcome()).of, client.request, "long")
        await server.answer(await server.hear(), "x" * 1000)
        await trio.testing.wait_all_tasks_blocked()
    assert isinstance(outcome.error, ServerGone)
    assert "more than 1,000 bytes" in str(outcome.error)


async def test_a_call_that_waits_for_room_ends_with_the_server() -> None:
    """While a server reads nothing, calls wait with their words; nothing of theirs piles up."""
    sent: list[bytes] = []
    async with scripted(Scripted(unread_is_full=True), patience=0, trace=lambda direction, line: sent.append(line)) as (
        client,
        server,
        nursery,
    ):
        first, second = Outcome(), Outcome()
        nursery.start_soon(first.of, client.request, "big", {"text": "x" * 9_000_000})
        await trio.testing.wait_all_tasks_blocked()
        before = len(sent)
        nursery.start_soon(second.of, client.request, "waits")
        await server.say({"jsonrpc": "2.0", "id": 1, "method": "ping"})
        await trio.testing.wait_all_tasks_blocked()
        assert [b'"ping"' in line for line in sent[before:]] == [True]  # the server's question; no word of ours
        await server.sends.aclose()
        await trio.testing.wait_all_tasks_blocked()
        assert [type(first.error), type(second.error)] == [ServerGone, ServerGone]


async def test_a_call_that_is_still_waiting_when_the_block_is_left_learns_of_it() -> None:
    """It is in another task, and must not wait forever."""
    async with trio.open_nursery() as calls, scripted() as (client, server, _):
        calls.start_soon((outcome := Outcome()).of, client.ping)
        await server.hear()
    assert str(outcome.error) == "The client was closed before ping was answered"


async def test_leaving_waits_for_the_server_to_end_but_not_forever(autojump_clock: object) -> None:
    """One that reads nothing and closes nothing is left after a while."""
    server = Scripted(unread_is_full=True)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(server.shake_hands)
        with trio.fail_after(100):
            async with server.client(patience=20) as client:
                nursery.start_soon(Outcome().of, client.request, "unread")
                await trio.testing.wait_all_tasks_blocked()
                started = trio.current_time()
        assert trio.current_time() - started == 20


async def test_what_was_said_last_is_sent_before_the_end() -> None:
    """Leaving closes the stream after the last frame, not before."""
    server = Scripted(unread_is_full=True)
    heard: list[str] = []

    async def read_slowly() -> None:
        await trio.testing.wait_all_tasks_blocked()
        heard.extend([(await server.hear())["method"] for _ in range(2)])
        await server.end_when_left()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(server.shake_hands)
        async with server.client() as client:
            await server.hear()
            for method in ("being written", "queued"):
                nursery.start_soon(Outcome().of, client.request, method)
                await trio.testing.wait_all_tasks_blocked()
            nursery.start_soon(read_slowly)
    assert heard == ["being written", "queued"]


async def test_an_exception_of_the_block_comes_out_as_it_is() -> None:
    """Not in a group: whoever uses a client should not have to know about its tasks."""
    server = Scripted()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(server.shake_hands)
        with pytest.raises(KeyError):
            async with server.client(patience=0):
                raise KeyError("mine")


async def test_both_streams_are_closed_at_the_end_also_when_cancelled() -> None:
    """Whoever gave them away need not think of them again."""
    for cancelled in (False, True):
        server = Scripted()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(server.shake_hands)
            with trio.CancelScope() as scope:
                async with server.client(patience=0):
                    if cancelled:
                        scope.cancel()
                        await trio.lowlevel.checkpoint()
        with pytest.raises(trio.ClosedResourceError):
            await server.client_sends.send_all(b"x")
        with pytest.raises(trio.ClosedResourceError):
            await server.client_receives.receive_some()
