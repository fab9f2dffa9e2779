"""Every error of the API reference, in every version of the protocol, and the workflow in which there is none."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from modes_actor.wire.versions import ALL_VERSIONS, HANDSHAKE_VERSIONS, V2026_07_28, Version
from tests.conversation import Json
from tests.modes_house import TOOLS, UNKNOWN_SESSION, Client, Place, said, working

PHRASES = {
    -32001: "Mode not found",
    -32002: "Task not found",
    -32003: "Session expired",
    -32004: "Validation error",
    -32005: "Tool restriction error",
    -32006: "File restriction error",
}
LIVE, EXPIRED, DONE, NOBODYS = "<live>", "<expired>", "<done>", UNKNOWN_SESSION
ASK, ARCHITECT = "<in ask>", "<in architect>"
BAD_SLUG, BAD_ID = "no/such mode", "not a session"
WRITE = "write_to_file"

TOOL_ROWS: dict[str, tuple[str, Json, int]] = {
    "list_modes: unknown source": ("list_modes", {"source": "nowhere"}, -32004),
    "list_modes: source is no text": ("list_modes", {"source": 5}, -32004),
    "get_mode_info: malformed": ("get_mode_info", {"mode_slug": BAD_SLUG}, -32004),
    "get_mode_info: empty": ("get_mode_info", {"mode_slug": ""}, -32004),
    "get_mode_info: missing": ("get_mode_info", {}, -32004),
    "get_mode_info: null": ("get_mode_info", {"mode_slug": None}, -32004),
    "get_mode_info: flag is no boolean": (
        "get_mode_info",
        {"mode_slug": "code", "include_system_prompt": "yes"},
        -32004,
    ),
    "get_mode_info: unknown": ("get_mode_info", {"mode_slug": "nope"}, -32001),
    "create_task: malformed mode": ("create_task", {"mode_slug": BAD_SLUG}, -32004),
    "create_task: malformed parent": ("create_task", {"mode_slug": "code", "parent_session_id": BAD_ID}, -32004),
    "create_task: parent is done": ("create_task", {"mode_slug": "code", "parent_session_id": DONE}, -32004),
    "create_task: unknown mode": ("create_task", {"mode_slug": "nope"}, -32001),
    "create_task: unknown parent": ("create_task", {"mode_slug": "code", "parent_session_id": NOBODYS}, -32002),
    "create_task: expired parent": ("create_task", {"mode_slug": "code", "parent_session_id": EXPIRED}, -32003),
    "switch_mode: malformed session": ("switch_mode", {"session_id": BAD_ID, "new_mode_slug": "code"}, -32004),
    "switch_mode: malformed mode": ("switch_mode", {"session_id": LIVE, "new_mode_slug": BAD_SLUG}, -32004),
    "switch_mode: missing mode": ("switch_mode", {"session_id": LIVE}, -32004),
    "switch_mode: done": ("switch_mode", {"session_id": DONE, "new_mode_slug": "code"}, -32004),
    "switch_mode: unknown session": ("switch_mode", {"session_id": NOBODYS, "new_mode_slug": "code"}, -32002),
    "switch_mode: expired": ("switch_mode", {"session_id": EXPIRED, "new_mode_slug": "code"}, -32003),
    "switch_mode: unknown mode": ("switch_mode", {"session_id": LIVE, "new_mode_slug": "nope"}, -32001),
    "get_task_info: malformed": ("get_task_info", {"session_id": BAD_ID}, -32004),
    "get_task_info: unknown": ("get_task_info", {"session_id": NOBODYS}, -32002),
    "get_task_info: expired": ("get_task_info", {"session_id": EXPIRED}, -32003),
    "validate_tool_use: malformed session": ("validate_tool_use", {"session_id": BAD_ID, "tool_name": WRITE}, -32004),
    "validate_tool_use: empty tool": ("validate_tool_use", {"session_id": LIVE, "tool_name": ""}, -32004),
    "validate_tool_use: tool is no text": ("validate_tool_use", {"session_id": LIVE, "tool_name": 5}, -32004),
    "validate_tool_use: arguments are no object": (
        "validate_tool_use",
        {"session_id": LIVE, "tool_name": WRITE, "arguments": ["a.md"]},
        -32004,
    ),
    "validate_tool_use: unknown": ("validate_tool_use", {"session_id": NOBODYS, "tool_name": WRITE}, -32002),
    "validate_tool_use: expired": ("validate_tool_use", {"session_id": EXPIRED, "tool_name": WRITE}, -32003),
    "validate_tool_use: enforced tool": (
        "validate_tool_use",
        {"session_id": ASK, "tool_name": WRITE, "file_path": "a.md", "enforce": True},
        -32005,
    ),
    "validate_tool_use: enforced file": (
        "validate_tool_use",
        {"session_id": ARCHITECT, "tool_name": WRITE, "file_path": "config.py", "enforce": True},
        -32006,
    ),
    "complete_task: malformed": ("complete_task", {"session_id": BAD_ID, "status": "completed"}, -32004),
    "complete_task: unknown status": ("complete_task", {"session_id": LIVE, "status": "active"}, -32004),
    "complete_task: missing status": ("complete_task", {"session_id": LIVE}, -32004),
    "complete_task: done": ("complete_task", {"session_id": DONE, "status": "failed"}, -32004),
    "complete_task: unknown": ("complete_task", {"session_id": NOBODYS, "status": "completed"}, -32002),
    "complete_task: expired": ("complete_task", {"session_id": EXPIRED, "status": "completed"}, -32003),
    # What is malformed is said before anything is looked up.
    "switch_mode: malformed mode, unknown session": (
        "switch_mode",
        {"session_id": NOBODYS, "new_mode_slug": BAD_SLUG},
        -32004,
    ),
    "switch_mode: malformed session, unknown mode": (
        "switch_mode",
        {"session_id": BAD_ID, "new_mode_slug": "nope"},
        -32004,
    ),
    "create_task: malformed parent, unknown mode": (
        "create_task",
        {"mode_slug": "nope", "parent_session_id": BAD_ID},
        -32004,
    ),
    "complete_task: unknown status and session": ("complete_task", {"session_id": NOBODYS, "status": "x"}, -32004),
}


def handoff(session_id: str, to_mode: str) -> Json:
    return {"name": "handoff", "arguments": {"session_id": session_id, "to_mode": to_mode}}


OTHER_ROWS: dict[str, tuple[str, Json, int]] = {
    "read: another scheme": ("resources/read", {"uri": "file:///etc/passwd"}, -32004),
    "read: no URI": ("resources/read", {"uri": "code"}, -32004),
    "read: nothing": ("resources/read", {"uri": ""}, -32004),
    "read: no slug": ("resources/read", {"uri": "mode://"}, -32004),
    "read: malformed slug": ("resources/read", {"uri": "mode://a_b"}, -32004),
    "read: a slug and a line break": ("resources/read", {"uri": "mode://code\n"}, -32004),
    "read: unknown part": ("resources/read", {"uri": "mode://code/nope"}, -32004),
    "read: empty part": ("resources/read", {"uri": "mode://code/"}, -32004),
    "read: part of a part": ("resources/read", {"uri": "mode://code/config/x"}, -32004),
    "read: a query": ("resources/read", {"uri": "mode://code?x"}, -32004),
    "read: unknown part of an unknown mode": ("resources/read", {"uri": "mode://nope/nope"}, -32004),
    "read: unknown mode": ("resources/read", {"uri": "mode://nope"}, -32001),
    "read: part of an unknown mode": ("resources/read", {"uri": "mode://nope/config"}, -32001),
    "read: malformed task": ("resources/read", {"uri": "task://x"}, -32004),
    "read: no task": ("resources/read", {"uri": "task://"}, -32004),
    "read: unknown task": ("resources/read", {"uri": f"task://{NOBODYS}"}, -32002),
    "read: expired task": ("resources/read", {"uri": f"task://{EXPIRED}"}, -32003),
    "handoff: malformed session": ("prompts/get", handoff(BAD_ID, "code"), -32004),
    "handoff: malformed mode": ("prompts/get", handoff(LIVE, BAD_SLUG), -32004),
    "handoff: malformed mode, unknown session": ("prompts/get", handoff(NOBODYS, BAD_SLUG), -32004),
    "handoff: unknown session": ("prompts/get", handoff(NOBODYS, "code"), -32002),
    "handoff: expired session": ("prompts/get", handoff(EXPIRED, "code"), -32003),
    "handoff: unknown mode": ("prompts/get", handoff(LIVE, "nope"), -32001),
}

every_version = pytest.mark.parametrize("version", ALL_VERSIONS, ids=lambda version: version.name)


class Prepared:
    """A client with a session of each kind, which rows name by a word in brackets."""

    def __init__(self, client: Client, sessions: dict[str, str]) -> None:
        self.client = client
        self._sessions = sessions

    def filled(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {key: self.filled(each) for key, each in value.items()}
        for word, session_id in self._sessions.items():
            if isinstance(value, str):
                value = value.replace(word, session_id)
        return value


@asynccontextmanager
async def prepared(directory: Path, version: Version) -> AsyncIterator[Prepared]:
    async with working(directory, version=version) as client:
        sessions = {EXPIRED: await client.create()}
        client.place.clock.advance(3601)
        sessions |= {LIVE: await client.create(), DONE: await client.create()}
        sessions |= {ASK: await client.create("ask"), ARCHITECT: await client.create("architect")}
        await client.call("complete_task", session_id=sessions[DONE], status="completed")
        yield Prepared(client, sessions)


async def validators(client: Client) -> dict[str, Any]:
    """For the structured content of each tool, as it is listed in the client's version."""
    tools = await client.tools()
    return {name: jsonschema_rs.validator_for(tool["outputSchema"]) for name, tool in tools.items()}


@pytest.mark.parametrize("version", HANDSHAKE_VERSIONS, ids=lambda version: version.name)
@pytest.mark.parametrize("row", [*TOOL_ROWS, *OTHER_ROWS])
async def test_a_handshake_client_gets_the_code_the_phrase_and_a_sentence(
    row: str, version: Version, tmp_path: Path
) -> None:
    """The message begins with the reference's phrase and goes on; the data is text."""
    async with prepared(tmp_path, version) as prepared_:
        if row in TOOL_ROWS:
            name, arguments, code = TOOL_ROWS[row]
            method, params = "tools/call", {"name": name, "arguments": prepared_.filled(arguments)}
        else:
            method, params, code = OTHER_ROWS[row]
        error = await prepared_.client.error(method, prepared_.filled(params))
    assert error["code"] == code, error
    assert error["message"].startswith(PHRASES[code])
    assert len(error["message"]) > len(PHRASES[code]) + 5
    assert isinstance(error["data"], str)
    assert error["data"] in error["message"]


@pytest.mark.parametrize("row", TOOL_ROWS)
async def test_a_stateless_client_gets_a_tools_error_as_a_result(row: str, tmp_path: Path) -> None:
    """With the same words, which a model can read, and the reference's code inside; valid by the tool's own schema."""
    name, arguments, code = TOOL_ROWS[row]
    async with prepared(tmp_path, V2026_07_28) as prepared_:
        result = await prepared_.client.result("tools/call", {"name": name, "arguments": prepared_.filled(arguments)})
        validator = (await validators(prepared_.client))[name]
    error = result["structuredContent"]["error"]
    assert (result["isError"], error["code"]) == (True, code), result
    assert error["message"] == said(result)
    assert error["message"].startswith(PHRASES[code])
    assert error["name"]
    assert [each.message for each in validator.iter_errors(result["structuredContent"])] == []


@pytest.mark.parametrize("row", OTHER_ROWS)
async def test_a_stateless_client_gets_other_errors_as_invalid_params(row: str, tmp_path: Path) -> None:
    """The codes of the handshake era are not of this one; the words are the same."""
    method, params, code = OTHER_ROWS[row]
    async with prepared(tmp_path, V2026_07_28) as prepared_:
        error = await prepared_.client.error(method, prepared_.filled(params))
    assert error["code"] == -32602
    assert error["message"].startswith(PHRASES[code]), error


@every_version
async def test_protocol_errors_are_the_same_in_every_version(version: Version, tmp_path: Path) -> None:
    """Bad JSON, a bad envelope, an unknown method, bad params, an unknown tool, an unknown prompt."""
    async with working(tmp_path, version=version) as client:
        conversation = client.conversation
        await client.result("tools/list")
        codes = []
        for line in (b"{\n", b'{"jsonrpc": "2.0", "id": 5}\n'):
            await conversation.send_bytes(line)
            codes.append((await conversation.receive())["error"]["code"])
        calls: list[tuple[str, Json]] = [("no/such", {}), ("resources/read", {}), ("tools/call", {"name": "nope"})]
        calls += [("prompts/get", {"name": "nope"}), ("prompts/get", {"name": "handoff"})]
        codes += [(await client.error(method, params))["code"] for method, params in calls]
    assert codes == [-32700, -32600, -32601, -32602, -32602, -32602, -32602]


@every_version
async def test_the_workflow_of_the_reference_works(version: Version, tmp_path: Path) -> None:
    """Step by step; and each result is what the tool's own schema, as listed, says it is."""
    async with working(Place(tmp_path, persistent=True), version=version) as client:
        valid = await validators(client)

        async def step(name: str, **arguments: Any) -> Json:
            result = await client.call(name, **arguments)
            assert [each.message for each in valid[name].iter_errors(result["structuredContent"])] == []
            return result

        assert list(valid) == TOOLS
        assert said(await step("list_modes", source="all")).startswith("Available modes:\n\n1. code (💻 Code)")
        assert said(await step("get_mode_info", mode_slug="architect", include_system_prompt=False)).startswith("Mode:")
        created = await step("create_task", mode_slug="architect", initial_message="Design it")
        session_id = created["metadata"]["session_id"]
        child = (await step("create_task", mode_slug="ask", parent_session_id=session_id))["metadata"]["session_id"]
        info = await step("get_task_info", session_id=session_id, include_hierarchy=True, include_messages=True)
        assert info["structuredContent"]["messages"][0]["content"] == "Design it"
        use = {"session_id": session_id, "tool_name": WRITE}
        allowed = await step("validate_tool_use", **use, file_path="design.md")
        assert (allowed["metadata"]["allowed"], "✓ Allowed" in said(allowed)) == (True, True)
        assert (await step("validate_tool_use", **use, file_path="a.py"))["metadata"]["allowed"] is False
        switched = await step("switch_mode", session_id=session_id, new_mode_slug="code", reason="Ready")
        assert switched["metadata"] == {"old_mode": "architect", "new_mode": "code"}
        assert (await step("validate_tool_use", **use, file_path="a.py"))["metadata"]["allowed"] is True
        completed = await step("complete_task", session_id=session_id, status="completed", result="Approved")
        assert completed["structuredContent"]["open_subtasks"] == 1
        await step("complete_task", session_id=child, status="cancelled")
        after = await step("get_task_info", session_id=session_id)
        assert after["structuredContent"]["state"] == "completed"
        assert after["structuredContent"]["mode_slug"] == "code"


@every_version
@pytest.mark.parametrize("mode_slug", ["docs", "DocWriter", "narrow", "mine", "orchestrator"])
async def test_all_that_is_told_of_a_mode_is_valid_by_the_tools_schema(
    mode_slug: str, version: Version, tmp_path: Path
) -> None:
    """Also of modes that lack most members."""
    async with working(tmp_path, version=version) as client:
        result = await client.call("get_mode_info", mode_slug=mode_slug, include_system_prompt=True)
        validator = (await validators(client))["get_mode_info"]
    assert [each.message for each in validator.iter_errors(result["structuredContent"])] == []


async def test_a_stateless_tools_output_is_its_result_or_an_error_and_never_both(tmp_path: Path) -> None:
    """`oneOf`: a client that checks must be able to tell them apart."""
    async with working(tmp_path, version=V2026_07_28) as client:
        schemas = {name: tool["outputSchema"] for name, tool in (await client.tools()).items()}
    assert {len(schema["oneOf"]) for schema in schemas.values()} == {2}
    error = {"error": {"code": -32004, "name": "x", "message": "x"}}
    for schema in schemas.values():
        fits = [jsonschema_rs.validator_for(each).is_valid(error) for each in schema["oneOf"]]
        assert fits.count(True) == 1


async def test_an_unknown_mode_is_answered_with_those_there_are(tmp_path: Path) -> None:
    """To the letter of the reference."""
    place = Place(tmp_path)
    place.mode_file.unlink()
    (place.global_dir / "modes.yaml").unlink()
    async with working(place) as client:
        error = await client.refusal("get_mode_info", mode_slug="invalid-mode")
    assert error["data"] == "Mode not found: invalid-mode. Available: code, architect, ask, debug, orchestrator"


@pytest.mark.parametrize(
    ("row", "data"),
    [
        ("get_task_info: expired", "Session <expired> has expired (timeout: 3600s)"),
        (
            "validate_tool_use: enforced tool",
            "Tool 'write_to_file' cannot be used in 'ask' mode. Tool group 'edit' is not enabled.",
        ),
        (
            "validate_tool_use: enforced file",
            r"Cannot edit 'config.py' in 'architect' mode. Only files matching '\.md$' are allowed.",
        ),
    ],
)
async def test_the_data_of_an_error_begins_as_in_the_reference(row: str, data: str, tmp_path: Path) -> None:
    """To the letter; what helps further comes after it."""
    name, arguments, _ = TOOL_ROWS[row]
    async with prepared(tmp_path, HANDSHAKE_VERSIONS[0]) as prepared_:
        error = await prepared_.client.refusal(name, **prepared_.filled(arguments))
        assert error["data"].startswith(prepared_.filled(data)), error


@every_version
@pytest.mark.parametrize(
    ("tool", "arguments", "parameter", "meant"),
    [
        ("get_mode_info", {"mode_slug": "architekt"}, "", "architect"),
        ("get_mode_info", {"mode_slug": "DocWriterr"}, "", "DocWriter"),
        ("switch_mode", {"session_id": LIVE, "new_mode_slug": "debgu"}, "", "debug"),
        ("list_modes", {"source": "bultin"}, "source", "builtin"),
        ("complete_task", {"session_id": LIVE, "status": "Complete"}, "status", "completed"),
    ],
)
async def test_a_value_that_is_nearly_right_is_answered_with_the_one_that_was_meant(
    tool: str, arguments: Json, parameter: str, meant: str, version: Version, tmp_path: Path
) -> None:
    """Spelt as it must be sent; a wrong choice also names its parameter."""
    async with prepared(tmp_path, version) as prepared_:
        message = (await prepared_.client.refusal(tool, **prepared_.filled(arguments)))["message"]
    assert parameter in message
    hint = message.lower().index("did you mean")
    assert meant in message[hint : hint + 40]


@pytest.mark.parametrize(
    ("tool", "arguments", "words"),
    [
        ("create_task", {}, ["mode_slug"]),
        ("create_task", {"mode_slug": 5}, ["mode_slug"]),
        ("create_task", {"mode_slug": BAD_SLUG}, ["mode_slug", BAD_SLUG]),
        ("create_task", {"mode_slug": "code", "parent_session_id": BAD_ID}, [BAD_ID]),
        ("switch_mode", {"session_id": LIVE, "new_mode_slug": BAD_SLUG}, ["new_mode_slug"]),
        ("complete_task", {"session_id": LIVE}, ["status", "completed", "failed", "cancelled"]),
        ("complete_task", {"session_id": DONE, "status": "failed"}, ["completed"]),
        ("switch_mode", {"session_id": DONE, "new_mode_slug": "ask"}, ["completed"]),
    ],
)
async def test_a_validation_error_says_what_was_expected_of_which_parameter(
    tool: str, arguments: Json, words: list[str], tmp_path: Path
) -> None:
    """The parameter, what it may be, and for a task that is done its state."""
    async with prepared(tmp_path, HANDSHAKE_VERSIONS[-1]) as prepared_:
        error = await prepared_.client.refusal(tool, **prepared_.filled(arguments))
    assert all(each in error["message"] for each in words), error


@every_version
async def test_an_error_does_not_grow_with_what_it_complains_of(version: Version, tmp_path: Path) -> None:
    """A slug of a hundred thousand letters is not sent back."""
    async with working(tmp_path, version=version) as client:
        for slug in ("x" * 100_000, "/" * 100_000):
            assert len((await client.refusal("get_mode_info", mode_slug=slug))["message"]) < 1_000


async def test_a_session_is_as_good_as_new_until_the_very_end_of_its_time(tmp_path: Path) -> None:
    """Any use begins its time anew: validating, too."""
    async with working(tmp_path) as client:
        session_id = await client.create()
        for _ in range(3):
            client.place.clock.advance(3600)
            assert (await client.told("validate_tool_use", session_id=session_id, tool_name="read_file"))["allowed"]
        client.place.clock.advance(3600.5)
        error = await client.refusal("validate_tool_use", session_id=session_id, tool_name="read_file")
    assert error["code"] == -32003


async def test_what_is_expired_for_long_is_still_expired_in_a_new_server(tmp_path: Path) -> None:
    """Not "not found": an editor restarts its servers at will."""
    place = Place(tmp_path, persistent=True)
    async with working(place) as client:
        session_id = await client.create()
    place.clock.advance(7200)
    async with working(place) as client:
        assert (await client.refusal("get_task_info", session_id=session_id))["code"] == -32003
