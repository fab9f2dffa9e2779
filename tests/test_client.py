"""The client: how it opens, the seven tools, and what every server may have."""

from pathlib import Path

import msgspec
import pytest
import trio
import trio.testing

from modes_actor.client import (
    BadAnswer,
    ServerDescription,
    ServerError,
)
from modes_actor.surface.mode_results import TaskCompletedResult, TaskCreated, ToolGroup, Validation
from modes_actor.wire.base import Implementation
from modes_actor.wire.completion import PromptReference
from modes_actor.wire.content import TextContent
from modes_actor.wire.lifecycle import ListCapability, ResourcesCapability, ServerCapabilities
from modes_actor.wire.prompts import PromptMessage
from modes_actor.wire.versions import V2025_11_25, V2026_07_28
from tests.conversation import Json
from tests.modes_house import ALL_MODES, TOOLS, Place
from tests.sample_offer import sample_offer
from tests.scripted_server import INTRODUCTION, EraName, Outcome, Scripted, in_both_eras, scripted, serving

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
