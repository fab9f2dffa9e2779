"""Every message of the real offer, held against the official schema of the version in force.

The schemas are not part of this project; without them these tests are skipped.
"""

from pathlib import Path
from typing import Any

import pytest
from trio.testing import MockClock

from modes_actor.wire.versions import ALL_VERSIONS, V2026_07_28, Era, Version
from tests.conversation import CLIENT_INFO, Json
from tests.modes_house import ALL_MODES, ROOMODES, Client, Place, working
from tests.test_mode_errors import OTHER_ROWS, TOOL_ROWS, prepared
from tests.test_schema import SCHEMAS, answer_to, check_message, check_result, schema_of

pytestmark = pytest.mark.skipif(
    not SCHEMAS.is_dir(), reason="the official schemas are not in ../shared/mcp-schema, seen from the project"
)

every_version = pytest.mark.parametrize("version", ALL_VERSIONS, ids=lambda version: version.name)

LISTS = {
    "tools/list": "ListToolsResult",
    "resources/list": "ListResourcesResult",
    "resources/templates/list": "ListResourceTemplatesResult",
    "prompts/list": "ListPromptsResult",
}
WORK: list[tuple[str, Json]] = [
    ("list_modes", {}),
    ("get_mode_info", {"mode_slug": "docs", "include_system_prompt": True}),
    ("get_mode_info", {"mode_slug": "DocWriter"}),
    ("create_task", {"mode_slug": "ask", "parent_session_id": "<live>"}),
    ("get_task_info", {"session_id": "<live>", "include_messages": True, "include_hierarchy": True}),
    ("get_task_info", {"session_id": "<done>"}),
    ("validate_tool_use", {"session_id": "<live>", "tool_name": "read_file"}),
    ("validate_tool_use", {"session_id": "<in architect>", "tool_name": "write_to_file", "file_path": "a.py"}),
    ("switch_mode", {"session_id": "<live>", "new_mode_slug": "docs", "reason": "x"}),
    ("switch_mode", {"session_id": "<live>", "new_mode_slug": "narrow"}),
    ("complete_task", {"session_id": "<live>", "status": "cancelled", "result": "x"}),
]


async def check(client: Client, version: Version, definition: str, method: str, params: Json) -> None:
    """Send a request that the schema knows, and hold its answer against the schema."""
    schema = schema_of(version)
    request = client.conversation.compose(method, params)
    schema.check(schema.methods("ClientRequest")[method], request)
    await client.conversation.send(request)
    check_result(await client.conversation.receive(), definition, version)


@every_version
async def test_the_opening_is_what_the_schema_says(version: Version, tmp_path: Path) -> None:
    """With capabilities and instructions."""
    offer = Place(tmp_path).offer()
    if version.era is Era.STATELESS:
        check_result(await answer_to(version, "server/discover", {}, offer), "DiscoverResult", version)
    else:
        params: Json = {"protocolVersion": version.name, "capabilities": {}, "clientInfo": CLIENT_INFO}
        check_result(await answer_to(version, "initialize", params, offer), "InitializeResult", version)


@every_version
@pytest.mark.parametrize("method", LISTS)
async def test_a_list_is_what_the_schema_says(method: str, version: Version, tmp_path: Path) -> None:
    """Of the seven tools, of all modes as resources and prompts."""
    check_result(await answer_to(version, method, {}, Place(tmp_path).offer()), LISTS[method], version)


@every_version
async def test_every_result_of_a_tool_is_what_the_schema_says(version: Version, tmp_path: Path) -> None:
    """With metadata beside it where the reference has it."""
    async with prepared(tmp_path, version) as prepared_:
        for name, arguments in WORK:
            params = {"name": name, "arguments": prepared_.filled(arguments)}
            await check(prepared_.client, version, "CallToolResult", "tools/call", params)


@every_version
async def test_every_resource_reads_as_the_schema_says(version: Version, tmp_path: Path) -> None:
    """Modes, their parts, and a task."""
    async with working(tmp_path, version=version) as client:
        uris = [each["uri"] for each in (await client.result("resources/list"))["resources"]]
        uris.append(f"task://{await client.create(initial_message='x')}")
        for uri in uris:
            await check(client, version, "ReadResourceResult", "resources/read", {"uri": uri})


@every_version
async def test_every_prompt_is_what_the_schema_says(version: Version, tmp_path: Path) -> None:
    """Each mode's, and the handoff."""
    async with working(tmp_path, version=version) as client:
        arguments: dict[str, Json] = {slug: {"task": "x"} for slug in ALL_MODES}
        arguments["handoff"] = {"session_id": await client.create(), "to_mode": "ask"}
        for name, given in arguments.items():
            await check(client, version, "GetPromptResult", "prompts/get", {"name": name, "arguments": given})


@every_version
@pytest.mark.parametrize("argument", ["to_mode", "session_id", "source", "status", "group", "task"])
async def test_a_completion_is_what_the_schema_says(argument: str, version: Version, tmp_path: Path) -> None:
    """Also where there is nothing to complete."""
    async with working(tmp_path, version=version) as client:
        await client.create()
        ref = {"type": "ref/prompt", "name": "handoff"}
        params = {"ref": ref, "argument": {"name": argument, "value": ""}}
        await check(client, version, "CompleteResult", "completion/complete", params)


@every_version
async def test_every_error_is_what_the_schema_says(version: Version, tmp_path: Path) -> None:
    """A tool's in the stateless era is a result."""
    calls: list[tuple[str, Json]] = [(method, params) for method, params, _ in OTHER_ROWS.values()]
    calls += [("tools/call", {"name": name, "arguments": arguments}) for name, arguments, _ in TOOL_ROWS.values()]
    async with prepared(tmp_path, version) as prepared_:
        for method, params in calls:
            answer = await prepared_.client.request(method, prepared_.filled(params))
            if version is V2026_07_28 and method == "tools/call":
                check_result(answer, "CallToolResult", version)
            else:
                check_message(answer, version)


async def receive_all(client: Client, end: str) -> list[Any]:
    """All that comes, until the answer of that id."""
    messages = []
    while (message := await client.conversation.receive()).get("id") != end:
        messages.append(message)
    return messages


@every_version
async def test_news_of_modes_and_tasks_is_what_the_schema_says(
    version: Version, tmp_path: Path, autojump_clock: MockClock
) -> None:
    """Of both lists, of a mode, and of a task."""
    async with working(tmp_path, version=version) as client:
        session_id = await client.create()
        uris = ["mode://docs", f"task://{session_id}"]
        await client.subscribe(*uris, resourcesListChanged=True, promptsListChanged=True)
        await client.place.save_modes(ROOMODES.replace("Be brief.", "Be long."))
        arguments = {"session_id": session_id, "new_mode_slug": "ask"}
        call = {"name": "switch_mode", "arguments": arguments}
        await client.conversation.send(client.conversation.compose("tools/call", call, id="switch"))
        heard = await receive_all(client, "switch")
        await client.conversation.send(client.conversation.compose("tools/list", id="end"))
        heard += await receive_all(client, "end")
    for message in heard:
        check_message(message, version)
    assert len(heard) == 4
