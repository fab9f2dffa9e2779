"""The seven tools, each as the API reference shows it, and what goes beyond it."""

import re
from pathlib import Path
from typing import Any

import pytest
from trio.testing import MockClock

from modes_actor.modes.tools import tool_table
from modes_actor.wire.versions import V2026_07_28
from tests.conversation import Json
from tests.modes_house import (
    ALL_MODES,
    BUILTIN,
    CHOICES,
    GROUPS,
    PARAMETERS,
    ROOMODES,
    TOOLS,
    Client,
    objects_in,
    said,
    working,
)


async def test_there_are_seven_tools_in_the_order_of_the_reference(tmp_path: Path) -> None:
    """No more, so that a client pays for seven schemas."""
    async with working(tmp_path) as client:
        assert list(await client.tools()) == TOOLS


@pytest.mark.parametrize("name", TOOLS)
async def test_parameters_are_those_of_the_reference(name: str, tmp_path: Path) -> None:
    """Names, types, which are required, and which values a choice has."""
    async with working(tmp_path) as client:
        schema = (await client.tools())[name]["inputSchema"]
    properties = schema["properties"]
    assert ({key: each["type"] for key, each in properties.items()}, schema.get("required", [])) == PARAMETERS[name]
    choices = {(name, key): set(each["enum"]) for key, each in properties.items() if "enum" in each}
    assert choices == {place: values for place, values in CHOICES.items() if place[0] == name}


@pytest.mark.parametrize("kind", ["inputSchema", "outputSchema"])
@pytest.mark.parametrize("name", TOOLS)
async def test_a_schema_is_one_that_a_model_can_read(name: str, kind: str, tmp_path: Path) -> None:
    """An object, nothing to look up elsewhere, no alternatives at the top, every property described."""
    async with working(tmp_path) as client:
        schema = (await client.tools())[name][kind]
    assert schema["type"] == "object"
    assert not {"anyOf", "oneOf", "allOf", "$defs"} & set(schema)
    assert not [each for each in objects_in(schema) if "$ref" in each]
    described = [each for within in objects_in(schema) for each in within.get("properties", {}).values()]
    assert described
    assert all(isinstance(each.get("description"), str) and each["description"] for each in described)


@pytest.mark.parametrize("name", TOOLS)
async def test_a_tool_has_a_title_a_description_and_hints(name: str, tmp_path: Path) -> None:
    """For the person who is asked to allow it, and for the client that decides whether to ask."""
    async with working(tmp_path) as client:
        tool = (await client.tools())[name]
    assert tool["title"] == tool["annotations"]["title"] != name
    assert tool["description"]
    hints = {key for key, value in tool["annotations"].items() if isinstance(value, bool)}
    assert hints == {"readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"}
    looks = name in ("list_modes", "get_mode_info", "get_task_info", "validate_tool_use")
    assert tool["annotations"]["readOnlyHint"] is looks
    assert tool["annotations"]["destructiveHint"] is (name == "complete_task")


async def test_a_tool_that_says_it_is_idempotent_is(tmp_path: Path) -> None:
    """Doing it a second time changes nothing more: what the hint means in every version of the protocol."""
    async with working(tmp_path) as client:
        hints = {name: tool["annotations"]["idempotentHint"] for name, tool in (await client.tools()).items()}
        session_id = await client.create()
        arguments = {"session_id": session_id, "new_mode_slug": "debug", "reason": "x"}
        await client.call("switch_mode", **arguments)
        once = (await client.told("get_task_info", session_id=session_id))["mode_history"]
        await client.call("switch_mode", **arguments)
        twice = (await client.told("get_task_info", session_id=session_id))["mode_history"]
    assert (hints["create_task"], hints["complete_task"]) == (False, False)
    assert not hints["switch_mode"] or once == twice


async def test_list_modes_tells_of_each_mode_as_the_reference_does(tmp_path: Path) -> None:
    """A numbered paragraph for each: slug, name, source, description, groups."""
    async with working(tmp_path) as client:
        result = await client.call("list_modes", source="builtin")
    text, modes = said(result), result["structuredContent"]["modes"]
    opening, *paragraphs = text.removesuffix("\n").split("\n\n")
    assert opening == "Available modes:"
    assert paragraphs[0] == (
        f"1. code (💻 Code) - builtin\n   Description: {modes[0]['description']}\n"
        "   Tool groups: read, edit, browser, command, mcp, modes"
    )
    assert paragraphs[4].endswith("\n   Tool groups: modes")
    assert r"edit (\.md$)" in paragraphs[1]
    assert [mode["slug"] for mode in modes] == BUILTIN
    assert modes[2]["groups"] == ["read", "browser", "mcp", "modes"]
    assert "metadata" not in result


@pytest.mark.parametrize(
    ("source", "slugs"),
    [
        ("builtin", BUILTIN),
        ("global", ["mine"]),
        ("project", ["docs", "DocWriter", "narrow"]),
        ("all", ALL_MODES),
        (None, ALL_MODES),
    ],
)
async def test_list_modes_filters_by_source(source: str | None, slugs: list[str], tmp_path: Path) -> None:
    """All of them unless one is named."""
    async with working(tmp_path) as client:
        result = await client.call("list_modes", **({} if source is None else {"source": source}))
    assert [mode["slug"] for mode in result["structuredContent"]["modes"]] == slugs
    assert re.findall(r"^\d+\. (\S+) ", said(result), re.MULTILINE) == slugs


async def test_get_mode_info_tells_of_a_built_in_mode_as_the_reference_does(tmp_path: Path) -> None:
    """To the letter, but for the words of the mode itself."""
    async with working(tmp_path) as client:
        result = await client.call("get_mode_info", mode_slug="architect", include_system_prompt=False)
    told = result["structuredContent"]
    assert said(result) == (
        f"Mode: 🏗️ Architect (architect)\nSource: builtin\nDescription: {told['description']}\n\n"
        f"When to use:\n{told['when_to_use']}\n\n"
        "Tool Groups:\n✓ read\n✓ edit (restricted to: \\.md$)\n✓ browser\n✗ command (not available)\n✓ mcp\n✓ modes\n\n"
        f"Custom Instructions:\n{told['custom_instructions']}\n"
    )
    assert told["role_definition"]
    assert "system_prompt" not in told


async def test_get_mode_info_says_where_a_custom_mode_is_written_and_what_it_may_reach(tmp_path: Path) -> None:
    """File and line, every group, and its restrictions about MCP."""
    async with working(tmp_path) as client:
        result = await client.call("get_mode_info", mode_slug="docs")
        line = ROOMODES.splitlines().index("  - slug: docs") + 1
        place = f"{client.place.mode_file}:{line}"
    text, told = said(result), result["structuredContent"]
    assert text.startswith("Mode: 📝 Docs (docs)\nSource: project\n")
    assert place in text
    assert "✓ edit (restricted to: ^docs/)\n✗ browser (not available)\n" in text
    assert "github" in text
    assert "mcp__github__delete_repo" in text
    assert (told["defined_in"], list(told["tool_groups"])) == (place, GROUPS)
    assert told["tool_groups"]["edit"] == {"enabled": True, "file_regex": ["^docs/"]}
    assert told["tool_groups"]["command"] == {"enabled": False}


async def test_get_mode_info_has_the_whole_prompt_if_it_is_asked_for(tmp_path: Path) -> None:
    """In the text and in the structured content, and the same as the resource."""
    async with working(tmp_path) as client:
        result = await client.call("get_mode_info", mode_slug="docs", include_system_prompt=True)
        prompt = await client.read("mode://docs/system_prompt")
    assert result["structuredContent"]["system_prompt"] == prompt
    assert prompt in said(result)
    assert "You write guides." in prompt


async def test_a_mode_that_extends_another_is_told_with_what_it_really_allows(tmp_path: Path) -> None:
    """Never more than its base: a group that the base lacks is not available, and both patterns count."""
    async with working(tmp_path) as client:
        result = await client.call("get_mode_info", mode_slug="narrow")
    groups = result["structuredContent"]["tool_groups"]
    assert [name for name in GROUPS if groups[name]["enabled"]] == ["read", "edit"]
    assert set(groups["edit"]["file_regex"]) == {r"\.md$", "^docs/"}
    assert "✗ command (not available)" in said(result)
    assert "docs" in said(result).split("Tool Groups:")[0]


async def test_a_mode_that_extends_another_is_told_with_the_restrictions_it_inherits(tmp_path: Path) -> None:
    """They are enforced on it, so a model that reads of it must see them."""
    async with working(tmp_path) as client:
        session_id = await client.create("DocWriter")
        use = {"session_id": session_id, "tool_name": "mcp__github__delete_repo"}
        assert (await client.told("validate_tool_use", **use))["allowed"] is False
        result = await client.call("get_mode_info", mode_slug="DocWriter")
    assert "mcp__github__delete_repo" in said(result)
    assert any("mcp__github__delete_repo" in line for line in result["structuredContent"]["mcp_restrictions"])


async def test_create_task_answers_as_the_reference_does(tmp_path: Path) -> None:
    """Text, metadata and structured content; ids that cannot be guessed."""
    async with working(tmp_path) as client:
        result = await client.call("create_task", mode_slug="code", initial_message="Create a module")
    metadata = result["metadata"]
    session_id, task_id = metadata["session_id"], metadata["task_id"]
    assert metadata == {"session_id": session_id, "task_id": task_id, "mode_slug": "code"}
    assert result["structuredContent"] == {**metadata, "state": "active"}
    assert re.fullmatch("sess_[0-9a-f]{32}", session_id)
    assert re.fullmatch("task_[0-9a-f]{12,}", task_id)
    assert said(result) == (
        f"Task created successfully\n\nSession ID: {session_id}\nTask ID: {task_id}\nMode: code (💻 Code)\n"
        "State: active\n\nUse this session_id for subsequent operations."
    )


async def test_a_new_task_has_its_first_message_and_its_mode_in_its_history(tmp_path: Path) -> None:
    """Both with the time."""
    async with working(tmp_path) as client:
        session_id = await client.create("ask", initial_message="Why?")
        told = await client.told("get_task_info", session_id=session_id, include_messages=True)
    when = "2025-01-13T10:30:00.000Z"
    assert told["messages"] == [{"role": "user", "content": "Why?", "timestamp": when}]
    assert told["mode_history"] == [{"mode": "ask", "timestamp": when}]


async def test_switch_mode_answers_as_the_reference_does(tmp_path: Path) -> None:
    """Text and metadata to the letter; the new groups also as structured content."""
    async with working(tmp_path) as client:
        session_id = await client.create()
        reason = "Need to investigate a runtime error"
        result = await client.call("switch_mode", session_id=session_id, new_mode_slug="debug", reason=reason)
    assert said(result) == (
        f"Mode switched successfully\n\nSession: {session_id}\nOld mode: code\nNew mode: debug\nReason: {reason}\n\n"
        "New tool groups:\n✓ read\n✓ edit\n✓ browser\n✓ command\n✓ mcp\n✓ modes\n"
    )
    assert result["metadata"] == {"old_mode": "code", "new_mode": "debug"}
    assert result["structuredContent"] == {
        "session_id": session_id,
        "old_mode": "code",
        "new_mode": "debug",
        "reason": reason,
        "tool_groups": {name: {"enabled": True} for name in GROUPS},
    }


async def test_a_switch_counts_at_once_and_its_reason_is_kept(tmp_path: Path) -> None:
    """The next decision is the new mode's; the history says why."""
    async with working(tmp_path) as client:
        session_id = await client.create("ask")
        use = {"session_id": session_id, "tool_name": "write_to_file", "file_path": "a.py"}
        before = (await client.told("validate_tool_use", **use))["allowed"]
        client.place.clock.advance(60)
        await client.call("switch_mode", session_id=session_id, new_mode_slug="code", reason="to write it")
        after = (await client.told("validate_tool_use", **use))["allowed"]
        history = (await client.told("get_task_info", session_id=session_id))["mode_history"]
    assert (before, after) == (False, True)
    assert history[1:] == [{"mode": "code", "reason": "to write it", "timestamp": "2025-01-13T10:31:00.000Z"}]


async def test_get_task_info_answers_as_the_reference_does(tmp_path: Path) -> None:
    """Age, idle time (before this question), and the tasks around it."""
    async with working(tmp_path) as client:
        sessions = await client.family()
        client.place.clock.now += 240 - 3
        tasks = [(await client.told("get_task_info", session_id=each))["task_id"] for each in sessions]
        client.place.clock.advance(60)
        text = await client.text("get_task_info", session_id=sessions[1], include_hierarchy=True)
    assert text.startswith(
        f"Task Information\n\nSession ID: {sessions[1]}\nTask ID: {tasks[1]}\nMode: code (💻 Code)\nState: active\n"
        "Created: 2025-01-13T10:30:01.000Z\n\nSession Age: 299s\nIdle Time: 60s\n\n"
        f"Hierarchy:\n  Parent Task: {tasks[0]}\n  Child Tasks: {tasks[2]}, {tasks[3]}\n"
    )


async def test_a_hierarchy_is_the_whole_tree_as_a_flat_list(tmp_path: Path) -> None:
    """Parents before children, each with its depth, seen from any of them."""
    async with working(tmp_path) as client:
        sessions = await client.family()
        trees = [
            (await client.told("get_task_info", session_id=each, include_hierarchy=True))["hierarchy"]
            for each in sessions
        ]
    shown = [(node["session_id"], node.get("parent_session_id"), node["depth"]) for node in trees[0]]
    top, child, *grandchildren = sessions
    assert shown == [(top, None, 0), (child, top, 1), (grandchildren[0], child, 2), (grandchildren[1], child, 2)]
    assert trees == [trees[0]] * 4


async def test_a_task_knows_its_parent_however_large_their_tree_is(tmp_path: Path) -> None:
    """A list may have an end; what it says must still be true."""
    async with working(tmp_path) as client:
        top = await client.create()
        for _ in range(1_000):
            client.place.clock.advance(1)
            parent = await client.told("create_task", mode_slug="code", parent_session_id=top)
        session_id = await client.create(parent_session_id=parent["session_id"])
        text = await client.text("get_task_info", session_id=session_id, include_hierarchy=True)
    assert f"\n  Parent Task: {parent['task_id']}\n" in text


async def test_get_task_info_leaves_out_what_was_not_asked_for(tmp_path: Path) -> None:
    """Neither messages nor hierarchy, in text or structure."""
    async with working(tmp_path) as client:
        result = await client.call("get_task_info", session_id=await client.create(initial_message="secret"))
    assert not {"messages", "hierarchy", "metadata"} & set(result["structuredContent"])
    assert "metadata" not in result
    assert not re.search("secret|Messages|Hierarchy", said(result))


async def test_complete_task_answers_as_the_reference_does(tmp_path: Path) -> None:
    """And the result becomes an assistant's message."""
    async with working(tmp_path) as client:
        created = await client.told("create_task", mode_slug="code")
        session_id = created["session_id"]
        result = await client.call("complete_task", session_id=session_id, status="completed", result="All done")
        info = await client.told("get_task_info", session_id=session_id, include_messages=True)
    assert said(result) == (
        f"Task completed successfully\n\nSession: {session_id}\nTask: {created['task_id']}\nStatus: completed\n"
        "Result: All done\n\nThe session will be cleaned up automatically."
    )
    assert "metadata" not in result
    assert (info["state"], info["completed_at"]) == ("completed", "2025-01-13T10:30:00.000Z")
    assert [(each["role"], each["content"]) for each in info["messages"]] == [("assistant", "All done")]


@pytest.mark.parametrize("status", ["failed", "cancelled"])
async def test_a_task_that_did_not_succeed_is_not_called_a_success(status: str, tmp_path: Path) -> None:
    """The status is in the text and in the structure."""
    async with working(tmp_path) as client:
        result = await client.call("complete_task", session_id=await client.create(), status=status)
    assert f"\nStatus: {status}\n" in said(result)
    assert "success" not in said(result)
    assert result["structuredContent"]["status"] == status


async def test_cancelling_a_task_cancels_what_is_active_below_it_and_says_which(tmp_path: Path) -> None:
    """Of any depth; what was done already stays done."""
    async with working(tmp_path) as client:
        top, child, first, second = await client.family()
        await client.call("complete_task", session_id=first, status="failed")
        result = await client.call("complete_task", session_id=top, status="cancelled")
        states = [(await client.told("get_task_info", session_id=each))["state"] for each in (child, first, second)]
    assert set(result["structuredContent"]["cancelled_sessions"]) == {child, second}
    assert all(each in said(result) for each in (child, second))
    assert states == ["cancelled", "failed", "cancelled"]


async def test_completing_a_parent_says_how_many_children_are_still_open(tmp_path: Path) -> None:
    """It does not end them."""
    async with working(tmp_path) as client:
        _, child, first, _ = await client.family()
        result = await client.call("complete_task", session_id=child, status="completed")
        state = (await client.told("get_task_info", session_id=first))["state"]
    assert (result["structuredContent"]["open_subtasks"], state) == (2, "active")
    assert re.search(r"open.*2|2.*open", said(result))


USE = {"tool_name": "write_to_file", "file_path": "config.json"}


async def judged(client: Client, mode: str, **use: Any) -> Json:
    return await client.told("validate_tool_use", session_id=await client.create(mode), **use)


async def test_a_tool_that_is_allowed_is_answered_as_the_reference_does(tmp_path: Path) -> None:
    """Text and metadata to the letter."""
    async with working(tmp_path) as client:
        session_id = await client.create()
        result = await client.call("validate_tool_use", session_id=session_id, tool_name="write_to_file")
    assert said(result) == (
        f"Tool validation result\n\nTool: write_to_file\nSession: {session_id}\nMode: code\n\nResult: ✓ Allowed\n"
    )
    assert result["metadata"] == {"allowed": True, "tool_name": "write_to_file", "mode": "code"}
    assert result["structuredContent"].items() >= result["metadata"].items()


async def test_a_tool_that_is_not_allowed_is_answered_as_the_reference_does(tmp_path: Path) -> None:
    """To the letter of its example; what is said besides comes after."""
    async with working(tmp_path) as client:
        session_id = await client.create("architect")
        text = await client.text("validate_tool_use", session_id=session_id, **USE)
    assert text.startswith(
        f"Tool validation result\n\nTool: write_to_file\nSession: {session_id}\nMode: architect\nFile: config.json\n\n"
        "Result: ❌ Not allowed\nReason: Tool group 'edit' is restricted to files matching: \\.md$"
    )


async def test_a_denial_has_exactly_the_metadata_of_the_design(tmp_path: Path) -> None:
    """With the pattern that was not met, and why in a sentence."""
    async with working(tmp_path) as client:
        result = await client.call("validate_tool_use", session_id=await client.create("architect"), **USE)
    metadata = result["metadata"]
    error = metadata.pop("error")
    expected = {"allowed": False, "tool_name": "write_to_file", "mode": "architect", "restriction": r"\.md$"}
    assert metadata == expected
    assert error
    assert error in said(result)


async def test_a_denial_names_the_rule_where_it_is_written_and_the_modes_that_would_allow_it(tmp_path: Path) -> None:
    """So that a person knows what to change, and a model where to go."""
    async with working(tmp_path) as client:
        told = await judged(client, "docs", **USE)
        line = next(number for number, text in enumerate(ROOMODES.splitlines(), 1) if "fileRegex: '^docs/'" in text)
        place = f"{client.place.mode_file}:{line}"
    assert (told["defined_in"], told["allowed_in"]) == (place, ["code", "debug"])
    assert "^docs/" in told["rule"]
    assert all(words in told["error"] for words in (place, "code", "debug", "config.json"))


@pytest.mark.parametrize(
    ("mode", "use", "allowed"),
    [
        ("architect", {"tool_name": "write_to_file", "file_path": "design.md"}, True),
        ("architect", {"tool_name": "write_to_file", "file_path": ""}, False),
        ("architect", {"tool_name": "write_to_file"}, False),
        ("architect", {"tool_name": "write_to_file", "arguments": {"path": "design.md"}}, True),
        ("architect", {"tool_name": "write_to_file", "file_path": "a.md", "arguments": {"path": "a.py"}}, False),
        ("architect", {"tool_name": "write_to_file", "file_path": "a.py", "arguments": {"paths": ["a.md"]}}, False),
        ("architect", {"tool_name": "write_to_file", "file_path": "../a.md"}, False),
        ("architect", {"tool_name": "apply_patch", "arguments": {"patch": "*** Update File: a.py"}}, False),
        ("architect", {"tool_name": "apply_patch", "arguments": {"patch": "*** Update File: a.md"}}, True),
        ("ask", {"tool_name": "execute_command"}, False),
        ("ask", {"tool_name": "no_such_tool"}, False),
        ("orchestrator", {"tool_name": "attempt_completion"}, True),
        ("orchestrator", {"tool_name": "complete_task"}, True),
        ("docs", {"tool_name": "use_mcp_tool", "arguments": {"server_name": "github", "tool_name": "get"}}, True),
        ("docs", {"tool_name": "use_mcp_tool", "arguments": {"server_name": "other", "tool_name": "get"}}, False),
        ("docs", {"tool_name": "mcp__github__delete_repo"}, False),
        ("narrow", {"tool_name": "execute_command"}, False),
        ("narrow", {"tool_name": "write_to_file", "file_path": "docs/a.md"}, True),
        ("narrow", {"tool_name": "write_to_file", "file_path": "docs/a.py"}, False),
        ("narrow", {"tool_name": "write_to_file", "file_path": "a.md"}, False),
    ],
)
async def test_the_mode_decides_with_all_that_is_known_of_the_use(
    mode: str, use: dict[str, Any], allowed: bool, tmp_path: Path
) -> None:
    """The file, the tool's own arguments, and every mode that is extended."""
    async with working(tmp_path) as client:
        assert (await judged(client, mode, **use))["allowed"] is allowed


@pytest.mark.parametrize("tool", ["read_file", "switch_mode"])
async def test_a_mode_that_is_gone_allows_nothing_but_to_leave_it(
    tool: str, tmp_path: Path, autojump_clock: MockClock
) -> None:
    """What is always allowed still is; a denial names the modes to go to; and going there helps."""
    async with working(tmp_path, version=V2026_07_28) as client:
        session_id = await client.create("docs")
        await client.place.save_modes(None)
        told = await client.told("validate_tool_use", session_id=session_id, tool_name=tool)
        info = await client.text("get_task_info", session_id=session_id)
        await client.call("switch_mode", session_id=session_id, new_mode_slug="ask")
        after = await client.told("validate_tool_use", session_id=session_id, tool_name=tool)
    assert "\nMode: docs (" in info
    assert (told["allowed"], after["allowed"]) == (tool == "switch_mode", True)
    assert tool == "switch_mode" or "ask" in told["allowed_in"]


async def test_an_ended_task_is_still_judged_by_its_mode(tmp_path: Path) -> None:
    """Its session can be read until it expires, and what it may do is a matter of its mode alone."""
    async with working(tmp_path) as client:
        session_id = (await client.call("create_task", mode_slug="ask"))["structuredContent"]["session_id"]
        await client.call("complete_task", session_id=session_id, status="completed")
        judged = await client.call("validate_tool_use", session_id=session_id, tool_name="read_file")
        assert judged["structuredContent"]["allowed"] is True


async def test_what_is_asked_after_a_switch_is_decided_in_the_new_mode(tmp_path: Path) -> None:
    """Also by a client that does not wait for the answer to the switch; what it asked before is decided in the old."""
    async with working(tmp_path) as client:
        session_id = (await client.call("create_task", mode_slug="code"))["structuredContent"]["session_id"]
        conversation = client.conversation

        def asked(number: int) -> Json:
            arguments = {"session_id": session_id, "tool_name": "execute_command"}
            return conversation.compose("tools/call", {"name": "validate_tool_use", "arguments": arguments}, id=number)

        def switched(number: int, slug: str) -> Json:
            arguments = {"session_id": session_id, "new_mode_slug": slug}
            return conversation.compose("tools/call", {"name": "switch_mode", "arguments": arguments}, id=number)

        await conversation.send(asked(1), switched(2, "ask"), asked(3))
        first = {answer["id"]: answer["result"] for answer in [await conversation.receive() for _ in range(3)]}
        await conversation.send(switched(4, "nope"), asked(5))
        last = {answer["id"]: answer for answer in [await conversation.receive() for _ in range(2)]}
    allowed = [first[1], first[3], last[5]["result"]]
    assert [each["structuredContent"]["allowed"] for each in allowed] == [True, False, False]
    assert last[4]["error"]["code"] == -32001


async def test_this_servers_own_tools_are_allowed_in_every_mode(tmp_path: Path) -> None:
    """The table that decisions use knows every tool that is offered, and no other."""
    async with working(tmp_path) as client:
        assert set(await client.tools()) == tool_table().own


async def test_a_missing_argument_is_described(tmp_path: Path) -> None:
    """So that the next try can be right."""
    async with working(tmp_path) as client:
        error = await client.error("tools/call", {"name": "create_task", "arguments": {}})
    assert error["data"] == "create_task: `mode_slug` is missing: Mode to use for this task"


async def test_a_link_that_changes_between_requests_is_followed_anew(tmp_path: Path) -> None:
    """Where a path leads is remembered for the requests of one batch, and not for the next."""
    async with working(tmp_path) as client:
        for name in ("docs", "src"):
            (client.place.project / name).mkdir()
        link = client.place.project / "docs" / "link"
        session_id = await client.create("docs")
        use = {"session_id": session_id, "tool_name": "write_to_file", "file_path": "docs/link/a.md"}
        allowed = []
        for target in ("../docs", "../src"):
            link.symlink_to(target)
            allowed.append((await client.told("validate_tool_use", **use))["allowed"])
            link.unlink()
    assert allowed == [True, False]
