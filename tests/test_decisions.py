"""Decisions: groups, tools, what a mode extends, the clock, and what a denial says.

Files and MCP servers have test files of their own.
No rule, no exception and no timeout ever means "allowed".
"""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec import structs

from modes_actor.modes import decisions
from modes_actor.modes.catalog import ModeCatalog, builtin_modes
from modes_actor.modes.decisions import Allowed, Decision, DecisionContext, Denied, Rule, ToolUse, decide, decide_many
from modes_actor.modes.model import Group, GroupName, McpRestrictions, ModeConfig, Origin, Problem, TimeWindow
from modes_actor.modes.model import ToolPattern as Pattern
from modes_actor.modes.reading import read_modes
from modes_actor.modes.servers import McpServer, McpServers
from modes_actor.modes.windows import make_window
from modes_actor.wire.errors import ErrorCode

REPEATABLE = settings(derandomize=True, database=None, deadline=None, max_examples=300)

ROOT = "/no/such/project"
HERE = Origin(".roomodes", 3)
HOUSE = Origin("built-in rule")
NOON = datetime(2024, 1, 1, 12, tzinfo=UTC)  # a Monday
OFFICE_HOURS = make_window("09:00-18:00", ["mon"], "UTC")

READ = "read_file search_files list_files list_code_definition_names codebase_search fetch_instructions"
EDIT = "apply_diff write_to_file insert_content search_and_replace edit edit_file search_replace apply_patch"
TOOLS: dict[GroupName, list[str]] = {
    "read": READ.split(),
    "edit": [*EDIT.split(), "generate_image", "write_file", "multi_apply_diff"],
    "browser": ["browser_action"],
    "command": ["execute_command", "read_command_output"],
    "mcp": ["use_mcp_tool", "access_mcp_resource", "mcp__github__get_issue", "mcp--github--get_issue"],
}
ALWAYS_TEXT = "ask_followup_question attempt_completion switch_mode new_task update_todo_list run_slash_command skill"
ALWAYS = ALWAYS_TEXT.split()
OWN = ["list_modes", "get_mode_info", "create_task", "get_task_info", "validate_tool_use", "complete_task"]
UNKNOWN_TEXT = "* READ_FILE custom_tool read mcp mcp__ mcp__a mcp__a__ mcp____b mcp_a_b MCP__a__b read\0 \ud800"
UNKNOWN = ["", " read_file", "read_file ", "read_file\n", *UNKNOWN_TEXT.split()]
EVERY_TOOL = [(group, tool) for group, tools in TOOLS.items() for tool in tools]


@pytest.fixture(autouse=True)
def _time_for_suggestions(monkeypatch: pytest.MonkeyPatch) -> None:
    """A slow machine finds the same modes as a fast one."""
    monkeypatch.setattr(decisions, "SUGGESTION_SECONDS", 3600)


def group(name: GroupName, pattern: str | None = None, window: TimeWindow | None = None) -> Group:
    return Group(name, HERE, pattern, window=window)


def mode(slug: str, *groups: Group | GroupName, **more: Any) -> ModeConfig:
    made = tuple(each if isinstance(each, Group) else group(each) for each in groups)
    return ModeConfig(
        slug=slug, name=slug, source="project", origin=HERE, role_definition="You help.", groups=made, **more
    )


def context(*modes: ModeConfig, now: datetime = NOON, servers: McpServers | None = None) -> DecisionContext:
    return DecisionContext(ModeCatalog(modes), ROOT, servers or McpServers(), lambda: now)


def decided(
    asked: ModeConfig, tool: str, arguments: Mapping[str, Any] | None = None, *others: ModeConfig, now: datetime = NOON
) -> Decision:
    return decide(asked, tool, arguments, context(asked, *others, now=now))


def is_allowed(asked: ModeConfig, tool: str, *others: ModeConfig, now: datetime = NOON, **arguments: Any) -> bool:
    return isinstance(decided(asked, tool, arguments, *others, now=now), Allowed)


def read(text: str) -> ModeConfig:
    """The one mode of a file, whatever is wrong with it."""
    (found,) = read_modes(text, file=".roomodes", source="project").modes
    return found


# Groups and tools.


@pytest.mark.parametrize(("name", "tool"), EVERY_TOOL)
def test_a_mode_with_the_group_may_use_each_of_its_tools(name: GroupName, tool: str) -> None:
    """And is told which rule allows it."""
    assert decided(mode("m", name), tool) == Allowed("m", tool, Rule(f"group {name}", HERE))


@pytest.mark.parametrize(("name", "tool"), EVERY_TOOL)
def test_a_mode_with_all_other_groups_may_not_use_the_tool(name: GroupName, tool: str) -> None:
    """No tool is in two groups."""
    others: list[GroupName] = [other for other in (*TOOLS, "modes") if other != name]
    found = decided(mode("m", *others), tool)
    assert found == Denied(
        "m",
        tool,
        Rule(f"groups: {', '.join(others)}", HERE),
        ErrorCode.TOOL_RESTRICTION_ERROR,
        f"Tool '{tool}' cannot be used in 'm' mode. Tool group '{name}' is not enabled. [.roomodes:3]",
        f"Tool group '{name}' is not enabled.",
    )


@pytest.mark.parametrize("tool", [*ALWAYS, *OWN])
def test_some_tools_are_allowed_in_every_mode(tool: str) -> None:
    """Even in one without groups: no mode is without a way to ask, to finish or to hand over."""
    assert decided(mode("m"), tool) == Allowed("m", tool, Rule("allowed in every mode", HOUSE))


@pytest.mark.parametrize("tool", UNKNOWN)
def test_an_unknown_tool_is_denied_in_every_mode(tool: str) -> None:
    """No mode can allow what nobody knows, so none is suggested."""
    everything = mode("m", "read", "edit", "browser", "command", "mcp", "modes")
    found = decided(everything, tool, None, *builtin_modes())
    assert isinstance(found, Denied)
    assert (found.rule, found.code, found.allowed_in) == (
        Rule("no group has this tool", HOUSE),
        ErrorCode.TOOL_RESTRICTION_ERROR,
        (),
    )


def test_a_misspelt_tool_is_denied_with_the_name_that_was_meant() -> None:
    """A model mends its own call when it is told how."""
    found = decided(mode("m", "read"), "read_fil")
    assert isinstance(found, Denied)
    assert "did you mean `read_file`?" in found.message


@pytest.mark.parametrize(
    ("slug", "expected"),
    [
        ("code", "read_file write_to_file execute_command browser_action use_mcp_tool switch_mode"),
        ("architect", "read_file browser_action use_mcp_tool switch_mode"),
        ("ask", "read_file browser_action use_mcp_tool switch_mode"),
        ("debug", "read_file write_to_file execute_command browser_action use_mcp_tool switch_mode"),
        ("orchestrator", "switch_mode"),
    ],
)
def test_each_built_in_mode_allows_what_its_description_promises(slug: str, expected: str) -> None:
    """Writing a Python file is left to the modes that write code."""
    asked = {each.slug: each for each in builtin_modes()}[slug]
    tools = ["read_file", "write_to_file", "execute_command", "browser_action", "use_mcp_tool", "switch_mode"]
    assert [tool for tool in tools if is_allowed(asked, tool, path="x.py")] == expected.split()


@pytest.mark.parametrize("name", ["command", "browser"])
def test_a_pattern_on_a_group_whose_tools_name_no_files_allows_none_of_them(name: GroupName) -> None:
    """An argument that the tool does not have must not pass for the file that it touches."""
    tool = TOOLS[name][0]
    assert not is_allowed(mode("m", group(name, r"\.md$")), tool, command="rm -rf src", path="a.md")


# What a denial says.


def test_a_denial_names_rule_place_code_and_the_modes_that_allow_it() -> None:
    """Everything a model needs to ask for a better mode."""
    ask = {each.slug: each for each in builtin_modes()}["ask"]
    assert decide(ask, "write_to_file", {"path": "x.py"}, context(*builtin_modes())) == Denied(
        "ask",
        "write_to_file",
        Rule("groups: read, browser, mcp, modes", Origin("built-in mode ask")),
        ErrorCode.TOOL_RESTRICTION_ERROR,
        "Tool 'write_to_file' cannot be used in 'ask' mode. Tool group 'edit' is not enabled. [built-in mode ask]"
        " Modes that allow it: code, debug.",
        "Tool group 'edit' is not enabled.",
        ("code", "debug"),
    )


def test_a_denied_file_names_the_pattern_and_the_file() -> None:
    """With its own code, and with the words of the mode's author."""
    docs = mode("docs", Group("edit", Origin(".roomodes", 9), r"\.md$", "Markdown only"))
    assert decided(docs, "write_to_file", {"path": "x.py"}, mode("free", "edit")) == Denied(
        "docs",
        "write_to_file",
        Rule(r"group edit, files matching \.md$", Origin(".roomodes", 9)),
        ErrorCode.FILE_RESTRICTION_ERROR,
        r"Cannot edit 'x.py' in 'docs' mode. Only files matching '\.md$' are allowed. (Markdown only) [.roomodes:9]"
        " Modes that allow it: free.",
        r"Only files matching '\.md$' are allowed. (Markdown only)",
        ("free",),
        r"\.md$",
    )


def test_a_denial_to_read_does_not_speak_of_editing() -> None:
    """A pattern may be on the group `read`, too."""
    found = decided(mode("m", group("read", r"\.md$")), "read_file", {"path": "x.py"})
    assert isinstance(found, Denied)
    assert "edit" not in found.message


@REPEATABLE
@given(st.text(max_size=5_000).map(lambda text: text * 3), st.booleans())
def test_a_message_is_one_short_printable_line_whatever_was_asked_for(hostile: str, as_server: bool) -> None:
    """A client's own words come back in it, and must not be able to fake or flood anything."""
    use = ("use_mcp_tool", {"server_name": hostile, "tool_name": hostile}) if as_server else (hostile, {"path": "x"})
    unsure = context(mode("m", "mcp"), servers=McpServers(complete=False))
    found = decide(mode("m", "mcp"), *use, unsure)
    assert not isinstance(found, Denied) or (len(found.message) < 2_000 and found.message.isprintable())


# Narrowing another mode.


def test_a_mode_allows_what_both_it_and_its_base_allow() -> None:
    """Two patterns must both be met."""
    base, narrow = mode("base", group("edit", "^docs/")), mode("narrow", group("edit", r"\.md$"), extends="base")
    paths = ["docs/a.md", "docs/a.py", "a.md"]
    assert [is_allowed(narrow, "write_to_file", base, path=path) for path in paths] == [True, False, False]


def test_a_mode_without_groups_of_its_own_has_those_of_its_base() -> None:
    """So a mode may narrow nothing but the MCP servers."""
    narrow = read("[{slug: narrow, name: N, extends: base}]")
    base = mode("base", group("edit", r"\.md$"))
    assert [is_allowed(narrow, "write_to_file", base, path=path) for path in ("a.md", "a.py")] == [True, False]


@pytest.mark.parametrize(
    "written",
    [
        "groups: []",
        "groups: edit",
        "groups: [edti]",
        "groups: [[edit, {fileRegex: '('}]]",
        "groups: [[edit, {activeHours: never}]]",
        "groups: [mcp], mcpRestrictions: 5",
    ],
)
def test_groups_that_cannot_be_read_are_not_replaced_by_those_of_the_base(written: str) -> None:
    """The mode did say something of groups; what makes no sense never allows anything."""
    narrow = read(f"[{{slug: narrow, name: N, roleDefinition: R, extends: base, {written}}}]")
    assert not is_allowed(narrow, "write_to_file", mode("base", "edit", "mcp"), path="a.py")


@pytest.mark.parametrize(
    "groups",
    [
        "[[edit, {fileRegex: }]]",
        "[[edit, {activeHours: }]]",
        "[[edit, {activeHours: '22:00-23:00', timezone: UTC}], edit]",
    ],
)
def test_an_option_is_not_lost_for_being_empty_or_for_a_second_entry(groups: str) -> None:
    """Something was meant to be restricted."""
    assert not is_allowed(read(f"[{{slug: m, name: N, roleDefinition: R, groups: {groups}}}]"), "edit", path="x.py")


@pytest.mark.parametrize("base", ["404", "[ask]", "{slug: ask}", "true"])
def test_an_extends_that_cannot_be_read_allows_nothing(base: str) -> None:
    """The mode was meant to be narrower than something; nobody knows than what."""
    found = read_modes(
        f"[{{slug: m, name: N, roleDefinition: R, extends: {base}, groups: [edit]}}]", file="f", source="project"
    )
    assert not any(is_allowed(each, "write_to_file", path="x.py") for each in found.modes)


@pytest.mark.parametrize(
    ("base", "why"),
    [
        ("nope", "which does not exist"),
        ("m", "and so on: in a circle, to nowhere, or over more than 16 modes"),
        ("loop", "and so on: in a circle, to nowhere, or over more than 16 modes"),
    ],
)
def test_a_mode_whose_base_cannot_be_followed_may_use_no_tools(base: str, why: str) -> None:
    """And the catalog has a Problem that says why."""
    broken, loop = mode("m", "read", extends=base), mode("loop", "read", extends="m")
    modes = [broken, loop] if base == "loop" else [broken]
    catalog = ModeCatalog(modes)
    assert decide(broken, "read_file", {}, DecisionContext(catalog, ROOT)) == Denied(
        "m",
        "read_file",
        Rule(f"extends: {base}", HERE),
        ErrorCode.TOOL_RESTRICTION_ERROR,
        f"Tool 'read_file' cannot be used in 'm' mode. The mode extends '{base}', which cannot be followed."
        " [.roomodes:3]",
        f"The mode extends '{base}', which cannot be followed.",
    )
    problem = f"The mode `m` extends `{base}`, {why}; it may use no tools"
    assert Problem(".roomodes", 3, 1, "error", problem) in catalog.problems


def test_a_mode_from_before_a_reload_leaves_nothing_of_its_rules_behind() -> None:
    """Somebody may still hold it; the catalog's own mode of that name must not be judged by it."""
    current = mode("m", "read")
    after = context(current)
    decide(mode("m", "read", "edit"), "write_to_file", {"path": "x.py"}, after)
    assert isinstance(decide(current, "write_to_file", {"path": "x.py"}, after), Denied)


def test_a_mode_that_is_not_the_catalogs_own_is_not_allowed_more_than_it_says() -> None:
    """Whatever was asked before it."""
    after = context(mode("m", "read", "edit"))
    decide(mode("m", "read", "edit"), "write_to_file", {"path": "x.py"}, after)
    assert isinstance(decide(mode("m", "read"), "write_to_file", {"path": "x.py"}, after), Denied)


# The clock.


@pytest.mark.parametrize(("hour", "expected"), [(8, False), (9, True), (17, True), (18, False)])
def test_a_group_with_a_window_is_enabled_only_inside(hour: int, expected: bool) -> None:
    """By the clock that was given."""
    asked = mode("m", group("command", window=OFFICE_HOURS))
    assert expected is is_allowed(asked, "execute_command", now=NOON.replace(hour=hour))


def test_a_closed_window_is_named_with_its_place() -> None:
    """A person sees when to come back."""
    asked = mode("m", group("command", window=OFFICE_HOURS))
    assert decided(asked, "execute_command", now=NOON + timedelta(days=1)) == Denied(
        "m",
        "execute_command",
        Rule("command only 09:00-18:00 mon UTC", HERE),
        ErrorCode.TOOL_RESTRICTION_ERROR,
        "Tool 'execute_command' cannot be used in 'm' mode. Tool group 'command' is enabled only"
        " 09:00-18:00 mon UTC. [.roomodes:3]",
        "Tool group 'command' is enabled only 09:00-18:00 mon UTC.",
        restriction="09:00-18:00 mon UTC",
    )


def test_the_window_of_a_base_counts_too() -> None:
    """What the base does not allow now, the mode does not either."""
    base = mode("base", group("command", window=OFFICE_HOURS))
    narrow = mode("narrow", "command", extends="base")
    assert not is_allowed(narrow, "execute_command", base, now=NOON + timedelta(days=1))


def test_a_clock_that_fails_allows_nothing() -> None:
    """Without the time nobody can say that a window is open."""

    def broken() -> datetime:
        raise OSError

    asked = mode("m", group("command", window=OFFICE_HOURS))
    found = decide(asked, "execute_command", {}, DecisionContext(ModeCatalog([asked]), ROOT, now=broken))
    assert isinstance(found, Denied)


def test_another_modes_trouble_does_not_hide_why_this_one_denies() -> None:
    """Looking for modes that allow it must not spoil the answer."""
    troubled = mode("troubled", group("command", window=structs.replace(OFFICE_HOURS, timezone="Mars/Olympus")))
    found = decided(mode("m", "read"), "execute_command", {}, troubled)
    assert isinstance(found, Denied)
    assert (found.rule, found.allowed_in) == (Rule("groups: read", HERE), ())


# Batches and properties.


def test_a_batch_is_decided_like_its_uses_one_by_one() -> None:
    """In their order."""
    asked = mode("m", group("edit", r"\.md$"), "read", "mcp")
    uses = [ToolUse("write_to_file", {"path": path}) for path in ("a.md", "a.py", "../a.md", "a.md")]
    uses += [ToolUse("nope"), ToolUse("read_file"), ToolUse("mcp__a__b"), ToolUse("execute_command")]
    given = context(asked)
    assert decide_many(asked, uses, given) == [decide(asked, use.tool, use.arguments, given) for use in uses]


patterns = st.sampled_from([None, r"\.md$", "^docs/", "x", "(?!)"])
windows = st.sampled_from([None, OFFICE_HOURS, make_window("22:00-06:00", None, "UTC")])
names = st.sampled_from([*TOOLS, "modes"])
groups = st.lists(st.builds(group, names, patterns, windows), unique_by=lambda each: each.name, max_size=6).map(tuple)
servers = st.sampled_from(["docs", "admin", "*", "d*"])
tool_patterns = st.builds(Pattern, servers, st.sampled_from(["get", "drop", "*", "ge?"]))


def listed(entries: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | st.lists(entries, max_size=2).map(tuple)


restrictions = st.none() | st.builds(
    McpRestrictions, st.just(HERE), *[listed(servers)] * 2, *[listed(tool_patterns)] * 2, windows
)
tool_names = st.sampled_from([tool for _, tool in EVERY_TOOL] + ["mcp__docs__get", "mcp__admin__drop", *ALWAYS])
likely = st.fixed_dictionaries(
    {},
    optional={
        "path": st.sampled_from(["a.md", "docs/x.py", "docs/a.md", "../a.md", "", "x"]),
        "server_name": st.sampled_from(["docs", "admin", "other"]),
        "tool_name": st.sampled_from(["get", "drop"]),
    },
)
SERVERS = McpServers({"admin": McpServer("admin", default_enabled=False)})
moments = st.sampled_from([NOON, NOON.replace(hour=23), NOON + timedelta(days=2)])


@REPEATABLE
@given(groups, groups, restrictions, restrictions, tool_names, likely, moments)
def test_a_mode_never_allows_what_its_base_denies(
    of_base: Any, own: Any, base_mcp: Any, own_mcp: Any, tool: str, arguments: dict[str, Any], now: datetime
) -> None:
    """Whatever either says of groups, patterns, windows, servers and tools."""
    base = mode("base", *of_base, mcp_restrictions=base_mcp)
    narrow = mode("narrow", *own, mcp_restrictions=own_mcp, extends="base")
    given = context(base, narrow, now=now, servers=SERVERS)
    verdicts = [isinstance(decide(each, tool, arguments, given), Allowed) for each in (narrow, base)]
    assert verdicts != [True, False]


@REPEATABLE
@given(groups, restrictions, st.sampled_from(["pattern", "window", "tools", "servers"]), tool_names, likely, moments)
def test_a_mode_with_one_restriction_more_never_allows_more(
    own: Any, mcp: Any, added: str, tool: str, arguments: dict[str, Any], now: datetime
) -> None:
    """A pattern, a window, an entry of `disallowedTools` or of `disallowedServers`."""
    limits = mcp or McpRestrictions(HERE)
    narrowed, fewer = own, limits
    if added == "pattern":
        narrowed, fewer = [structs.replace(each, file_regex=each.file_regex or "a") for each in own], mcp
    elif added == "window":
        narrowed, fewer = [structs.replace(each, window=each.window or OFFICE_HOURS) for each in own], mcp
    elif added == "tools":
        fewer = structs.replace(limits, disallowed_tools=(*(limits.disallowed_tools or ()), Pattern("*", "get")))
    else:
        fewer = structs.replace(limits, disallowed_servers=(*(limits.disallowed_servers or ()), "docs"))
    before, after = mode("m", *own, mcp_restrictions=mcp), mode("m", *narrowed, mcp_restrictions=fewer)
    verdicts = [
        isinstance(decide(each, tool, arguments, context(each, now=now, servers=SERVERS)), Allowed)
        for each in (after, before)
    ]
    assert verdicts != [True, False]


scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
values = st.recursive(scalars, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=8)
KEYS = ["path", "file_path", "paths", "files", "args", "file", "patch", "diff", "server_name", "tool_name"]
any_arguments = st.none() | st.dictionaries(st.sampled_from(KEYS) | st.text(), values, max_size=4)


@REPEATABLE
@given(tool_names | st.text() | st.text().map("mcp__".__add__), any_arguments)
@example("mcp__" + "_" * 50, None)
@example("apply_patch", {"patch": "*** Move to: \ud800"})
def test_a_decision_never_raises(tool: str, arguments: dict[str, Any] | None) -> None:
    """Whatever strings and JSON a client sends, it gets an answer about the mode and the tool it asked for."""
    asked = mode("m", group("edit", r"\.md$"), group("read", "^docs/"), "mcp", "command")
    found = decide(asked, tool, arguments, context(asked, *builtin_modes(), servers=SERVERS))
    assert (found.mode, found.tool) == ("m", tool)
