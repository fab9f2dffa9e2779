"""The fuzzer knows by itself what a mode allows: a server that always says yes, or always no, does not get away."""

import msgspec
import pytest

from modes_actor.wire.base import CLIENT_CAPABILITIES_KEY, PROTOCOL_VERSION_KEY
from tests.scripts import script

expectation, ground, judge, oracle = map(script, ("fuzz_expectation", "fuzz_ground", "fuzz_judge", "fuzz_oracle"))
permissions, reading = map(script, ("fuzz_permissions", "fuzz_reading"))

META = {PROTOCOL_VERSION_KEY: "2026-07-28", CLIENT_CAPABILITIES_KEY: {}}
SESSION = {mode: expectation.anchor(number) for number, mode in enumerate(sorted(permissions.SLUGS))}

ALLOWED = {"structuredContent": {"allowed": True}}
DENIED = {"structuredContent": {"allowed": False}}
NO_TOOL, NO_FILE = (
    {"isError": True, "structuredContent": {"error": {"code": code, "name": "x", "message": "m"}}}
    for code in (expectation.TOOL_RESTRICTED, expectation.FILE_RESTRICTED)
)

Asked = dict[str, object]
ARCHITECT = {"session_id": SESSION["architect"], "tool_name": "write_to_file"}
OTHER_GROUP: Asked = {"session_id": SESSION["ask"], "tool_name": "execute_command"}
OTHER_PATH: Asked = {**ARCHITECT, "file_path": "src/app.py"}
ITS_PATH: Asked = {**ARCHITECT, "file_path": "docs/a.md"}
ITS_GROUP: Asked = {"session_id": SESSION["docs"], "tool_name": "read_file", "file_path": "src/app.py"}
BY_ITS_PARENT: Asked = {"session_id": SESSION["review"], "tool_name": "apply_diff", "file_path": "a.py"}


def enforced(asked: Asked) -> Asked:
    return {**asked, "enforce": True}


def verdict_on(*calls: tuple[str, Asked], said: object) -> str | None:
    """The promise that is broken by this answer to the last call, none of which was answered before."""
    expected = oracle.Oracle(permissions.SLUGS, anchors=len(SESSION))
    judged = judge.Judge(expected)
    for number, (name, arguments) in enumerate(calls):
        params = {"name": name, "arguments": arguments, "_meta": META}
        request = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}
        understood = reading.understand(msgspec.json.encode(request), ground.LINE_LIMIT)
        expected.take(understood, number, number)
    try:
        judged.hear(msgspec.json.encode({"jsonrpc": "2.0", "id": 0, "result": said}) + b"\n")
    except judge.Broken as broken:
        return str(broken.promise)
    return None


@pytest.mark.parametrize("asked", [OTHER_GROUP, OTHER_PATH, BY_ITS_PARENT])
def test_a_server_that_allows_everything_is_found(asked: Asked) -> None:
    """By a tool of a group that the mode does not have, and by a path that its pattern does not match."""
    assert verdict_on(("validate_tool_use", asked), said=ALLOWED) == judge.PERMISSIONS
    assert verdict_on(("validate_tool_use", enforced(asked)), said=ALLOWED) == judge.PERMISSIONS
    assert verdict_on(("validate_tool_use", asked), said=DENIED) is None


@pytest.mark.parametrize("asked", [ITS_PATH, ITS_GROUP])
def test_a_server_that_denies_everything_is_found(asked: Asked) -> None:
    """By a group that the mode has, and by a path that its pattern matches."""
    assert verdict_on(("validate_tool_use", asked), said=DENIED) == judge.PERMISSIONS
    for denied in (NO_TOOL, NO_FILE):
        assert verdict_on(("validate_tool_use", enforced(asked)), said=denied) == judge.PERMISSIONS
    assert verdict_on(("validate_tool_use", enforced(asked)), said=ALLOWED) is None


def test_a_denial_for_another_reason_is_found() -> None:
    """A path is not a group."""
    assert verdict_on(("validate_tool_use", enforced(OTHER_PATH)), said=NO_TOOL) == judge.PERMISSIONS
    assert verdict_on(("validate_tool_use", enforced(OTHER_PATH)), said=NO_FILE) is None
    assert verdict_on(("validate_tool_use", enforced(OTHER_GROUP)), said=NO_FILE) == judge.PERMISSIONS
    assert verdict_on(("validate_tool_use", enforced(OTHER_GROUP)), said=NO_TOOL) is None


def test_a_result_that_says_neither_yes_nor_no_is_found() -> None:
    """Whatever else is in it."""
    assert verdict_on(("validate_tool_use", ITS_PATH), said={"content": []}) == judge.PERMISSIONS


def test_a_session_that_may_have_been_switched_may_be_in_either_mode() -> None:
    """Also if the switch came later: it may have been faster."""
    switch: Asked = {"session_id": SESSION["ask"], "new_mode_slug": "code"}
    for said in (ALLOWED, DENIED):
        assert verdict_on(("validate_tool_use", OTHER_GROUP), ("switch_mode", switch), said=said) is None
    elsewhere: Asked = {"session_id": SESSION["ask"], "new_mode_slug": "nowhere"}
    calls = (("validate_tool_use", OTHER_GROUP), ("switch_mode", elsewhere))
    assert verdict_on(*calls, said=ALLOWED) == judge.PERMISSIONS


@pytest.mark.parametrize(
    "asked",
    [
        {**ITS_PATH, "arguments": {"path": "src/app.py"}},
        {**ARCHITECT, "file_path": "../x.md"},
        {"session_id": SESSION["night-shift"], "tool_name": "read_file"},
        {"session_id": SESSION["docs"], "tool_name": "mcp__github__delete_repo"},
    ],
)
def test_what_cannot_be_told_by_groups_and_plain_paths_may_come_out_either_way(asked: Asked) -> None:
    """Other files, odd paths, hours and servers are left to those who know them."""
    for said in (ALLOWED, DENIED):
        assert verdict_on(("validate_tool_use", asked), said=said) is None


def test_only_a_use_of_which_one_thing_can_be_right_counts_as_judged() -> None:
    """In either mode of a session that may have been switched, something else may be."""
    known = [
        permissions.is_known(expectation.Use(modes, "execute_command", None, False), expectation.RESULT)
        for modes in ({"ask"}, {"code"}, {"ask", "code"})
    ]
    assert known == [True, True, False]
