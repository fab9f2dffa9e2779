"""Modes out of a text: what is well written, what is wrong and where, and what must not be allowed for all that."""

import copy
import json
from typing import Any

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from modes_actor.modes.model import Group, McpRestrictions, ModeConfig, Origin, TimeWindow, ToolPattern
from modes_actor.modes.reading import ModeFile, read_modes

REPEATABLE = settings(derandomize=True, database=None, deadline=None)
OFTEN = settings(REPEATABLE, max_examples=400)
FILE = "/project/.roomodes"

BEFORE = "customModes:\n  - {slug: first, name: First, roleDefinition: One., groups: [read]}\n"
AFTER = "  - {slug: last, name: Last, roleDefinition: Three., groups: [command]}\n"
NAMED = "- slug: mid\n  name: Mid\n  roleDefinition: Two.\n"


def read(text: str) -> ModeFile:
    return read_modes(text, file=FILE, source="project")


def read_between(mode: str) -> ModeFile:
    """A mode that begins in line 3, column 3, between two good ones."""
    return read(BEFORE + "".join(f"  {line}\n" for line in mode.splitlines()) + AFTER)


def only(text: str) -> ModeConfig:
    found = read(text)
    assert found.problems == []
    (mode,) = found.modes
    return mode


def groups(mode: ModeConfig) -> list[tuple[str, str | None]]:
    return [(group.name, group.file_regex) for group in mode.groups or ()]


def reach(mode: str) -> dict[str, str | None]:
    """The groups that a mode may use, with their patterns; none if it was left out."""
    found = {each.slug: each for each in read_between(mode).modes}
    assert [slug for slug in found if slug != "mid"] == ["first", "last"]
    return dict(groups(found["mid"])) if "mid" in found else {}


def problems(found: ModeFile) -> list[tuple[str, int, int, str]]:
    return [(problem.file, problem.line, problem.column, problem.severity) for problem in found.problems]


# What is well written.

FULL = r"""
customModes:
  - slug: docs-writer
    name: 📝 Docs
    roleDefinition: >-
      You write
      “docs”.
    whenToUse: For docs.
    description: ''
    customInstructions: |
      One.
        Two.
    groups:
      - read
      - - edit
        - fileRegex: \.mdx?$
          description: Markdown
      - [command, {activeHours: "09:00-18:00", days: [mon, Friday], timezone: UTC}]
      - browser
      - mcp
    extends: code
    mcpRestrictions:
      allowedServers: [docs, "wiki-*"]
      disallowedServers: []
      allowedTools: [{serverName: docs, toolName: "get_?"}, mcp__wiki-a__*]
      disallowedTools: [mcp__*]
"""
SNAKE = {"roleDefinition": "role_definition", "whenToUse": "when_to_use", "customInstructions": "custom_instructions"}
SNAKE |= {"customModes": "custom_modes", "fileRegex": "file_regex", "activeHours": "active_hours"}
SNAKE |= {"extends": "base_mode", "mcpRestrictions": "mcp_restrictions", "allowedServers": "allowed_servers"}
SNAKE |= {"disallowedServers": "disallowed_servers", "allowedTools": "allowed_tools", "serverName": "server_name"}
SNAKE |= {"disallowedTools": "disallowed_tools", "toolName": "tool_name"}


def at(line: int) -> Origin:
    return Origin(FILE, line)


def test_a_mode_is_all_that_is_written_with_the_place_of_each_rule() -> None:
    """The whole of it, once."""
    window = TimeWindow("09:00-18:00 mon, Friday UTC", 540, 1080, ("mon", "fri"), "UTC")
    expected = ModeConfig(
        slug="docs-writer",
        name="📝 Docs",
        source="project",
        origin=at(3),
        role_definition="You write “docs”.",
        when_to_use="For docs.",
        description="",
        custom_instructions="One.\n  Two.\n",
        groups=(
            Group("read", at(14)),
            Group("edit", at(15), r"\.mdx?$", "Markdown"),
            Group("command", at(18), window=window),
            Group("browser", at(19)),
            Group("mcp", at(20)),
        ),
        mcp_restrictions=McpRestrictions(
            origin=at(23),
            allowed_servers=("docs", "wiki-*"),
            disallowed_servers=(),
            allowed_tools=(ToolPattern("docs", "get_?"), ToolPattern("wiki-a", "*", "mcp__wiki-a__*")),
            disallowed_tools=(ToolPattern("*", "*", "mcp__*"),),
        ),
        extends="code",
    )
    assert ModeFile([expected], []) == read(FULL)


def test_snake_case_says_the_same_as_camel_case() -> None:
    """For every key there is."""
    text = FULL
    for camel, snake in SNAKE.items():
        text = text.replace(f"{camel}:", f"{snake}:")
    assert read(FULL) == read(text)


def test_a_bare_list_says_the_same_as_custom_modes() -> None:
    """As the documents show it."""
    assert read("customModes:\n" + NAMED + "  groups: []\n").modes == [
        ModeConfig(slug="mid", name="Mid", source="project", origin=at(2), role_definition="Two.")
    ]
    assert read("\n" + NAMED + "  groups: []\n") == read("customModes:\n" + NAMED + "  groups: []\n")


def test_json_with_escapes_is_in_order() -> None:
    """It is what most programs write: nobody needs to be told anything."""
    mode = {"slug": "a", "name": "🚀", "roleDefinition": "“R” 👩\u200d💻", "groups": ["read"]}
    found = only(json.dumps({"customModes": [mode]}, indent="\t"))
    assert (found.name, found.role_definition) == ("🚀", "“R” 👩\u200d💻")


@pytest.mark.parametrize("empty", ["customModes: []", "customModes:", "[]"])
def test_a_file_may_have_no_modes(empty: str) -> None:
    """That is what it says, so it is in order."""
    assert ModeFile([], []) == read(empty)


@pytest.mark.parametrize(
    "group",
    [
        "edit",
        "[edit]",
        "[edit, {}]",
        '[edit, {fileRegex: ""}]',
        r"[edit, {fileRegex: \.md$}]",
        "browser",
        "[browser, {}]",
    ],
)
def test_the_forms_of_a_group(group: str) -> None:
    """None of them is a problem, deprecated or not; an empty pattern is none."""
    expected = ("browser" if "browser" in group else "edit", r"\.md$" if "md" in group else None)
    assert [expected] == groups(only(NAMED + f"  groups: [{group}]\n"))


@pytest.mark.parametrize("slug", ["-", "A", "0", "2024", "Ünter", "a_b", "a" * 300])
def test_a_slug_has_letters_digits_and_dashes(slug: str) -> None:
    """ASCII ones, any number of them, in any case."""
    found = read(NAMED.replace("mid", f"'{slug}'") + "  groups: []\n").modes
    assert [mode.slug for mode in found] == ([] if slug in ("Ünter", "a_b") else [slug])


def test_a_file_of_many_large_modes_loads() -> None:
    """As large as the largest in the wild: 186 modes in 1.4 MB."""
    role = "Ä“ß” " * 1_000
    modes = [{"slug": f"m-{n}", "name": f"M{n} 🚀", "roleDefinition": role, "groups": []} for n in range(186)]
    text = json.dumps({"customModes": modes}, ensure_ascii=False)
    assert len(text.encode()) > 1_400_000
    found = read(text)
    assert found.problems == []
    assert [(f"m-{n}", f"M{n} 🚀", role) for n in range(186)] == [
        (mode.slug, mode.name, mode.role_definition) for mode in found.modes
    ]


# What is wrong.


@pytest.mark.parametrize(
    ("mode", "line", "column", "word"),
    [
        ("- just text", 3, 5, "mapping"),
        ("- [slug, mid]", 3, 5, "mapping"),
        ("-", 3, 4, "mapping"),
        ("- name: Mid\n  roleDefinition: R\n  groups: []", 3, 5, "slug"),
        (NAMED.replace("mid", "mid dle") + "  groups: []", 3, 11, "mid dle"),
        (NAMED.replace("mid", '"mid\\n"') + "  groups: []", 3, 11, "slug"),
        (NAMED.replace("mid", '""') + "  groups: []", 3, 11, "slug"),
        (NAMED.replace("mid", "2024") + "  groups: []", 3, 11, "slug"),
        ("- slug: mid\n  roleDefinition: R\n  groups: []", 3, 5, "name"),
        ("- slug: mid\n  name: M\n  groups: []", 3, 5, "roleDefinition"),
        ("- slug: mid\n  name: ''\n  roleDefinition: R\n  groups: []", 3, 5, "name"),
        (NAMED.replace("mid", "first") + "  groups: []", 3, 5, "first"),
    ],
)
def test_a_mode_that_cannot_be_used_is_left_out(mode: str, line: int, column: int, word: str) -> None:
    """One problem, at its place; the modes around it load."""
    found = read_between(mode)
    assert [each.slug for each in found.modes] == ["first", "last"]
    assert [(FILE, line, column, "error")] == problems(found)
    assert word in found.problems[0].message


def test_a_number_for_a_name_is_said_to_be_in_need_of_quotes() -> None:
    """Both what is wrong with it and what follows from that."""
    found = read_between(NAMED.replace("Mid", "12") + "  groups: []")
    assert problems(found) == [(FILE, 4, 11, "error"), (FILE, 3, 5, "error")]
    assert found.problems[0].hint == "put it in quotes"


READ: list[tuple[str, str | None]] = [("read", None)]
SLIGHT: list[tuple[str, int, int, str, list[tuple[str, str | None]]]] = [
    *(
        ("groups: [read, " + group + "]", 6, 20, "error", READ)
        for group in ("raed", "Edit", "5", "~", "[]", "{edit: {}}")
    ),
    *(("groups: [read, [edit, " + options + "]]", 6, 27, "error", READ) for options in ("~", "[x]", "x")),
    *(("groups: [read, [edit, {fileRegex: " + text + "}]]", 6, 39, "error", READ) for text in ("(", "5", "[a]")),
    ("groups: [read, [edit, {}, {}]]", 6, 20, "error", READ),
    ("groups: [read, read]", 6, 20, "error", READ),
    ("groups: [edit, [edit, {fileRegex: x}]]", 6, 20, "error", [("edit", "x")]),
    ("groups: [[edit, {fileRegex: x}], edit]", 6, 38, "error", [("edit", "x")]),
    ("groups: read", 6, 13, "error", []),
    ("groups: {read: true}", 6, 13, "error", []),
    ("groups:", 6, 5, "error", []),
    ("groups: [read, [command, {fileRegex: x}]]", 6, 42, "warning", [*READ, ("command", "x")]),
    ("groups: [read]\ndescription: 5", 7, 18, "error", READ),
    ("groups: [read]\nwhenToUse: [a]", 7, 16, "error", READ),
    ("groups: [read]\ncustomInstructions: true", 7, 25, "error", READ),
    ("groups: [read]\ncustomInstruction: x", 7, 5, "warning", READ),
    ("groups: [read]\nzzz: x", 7, 5, "info", READ),
    ("groups: [read]\nname: Again", 7, 5, "warning", READ),
]


@pytest.mark.parametrize(("rest", "line", "column", "severity", "expected"), SLIGHT)
def test_what_is_wrong_within_a_mode_costs_no_more_than_itself(
    rest: str, line: int, column: int, severity: str, expected: list[tuple[str, str | None]]
) -> None:
    """One problem, at its place; the rest of the mode and the modes around it load."""
    found = read_between(NAMED + "".join(f"  {line}\n" for line in rest.splitlines()))
    assert [mode.slug for mode in found.modes] == ["first", "mid", "last"]
    assert expected == groups(found.modes[1])
    assert [(FILE, line, column, severity)] == problems(found)


@pytest.mark.parametrize(
    "text", ["", "# nothing\n", "customModes: x", "customModes: {}", "5", "modes: []", "{}", "a: ["]
)
def test_a_file_that_makes_no_sense_says_nothing(text: str) -> None:
    """Not even that there are no modes: one error, and it is not readable."""
    found = read(text)
    assert (found.modes, found.readable) == ([], False)
    assert "error" in [problem.severity for problem in found.problems]


def test_a_repair_is_a_warning() -> None:
    """The modes load, and the person is told that the text was changed for it."""
    found = read(BEFORE + AFTER + "  - {slug: mid, name: “a: b”, roleDefinition: R, groups: [read]}\n")
    assert [mode.slug for mode in found.modes] == ["first", "last", "mid"]
    assert [problem.severity for problem in found.problems] == ["warning"]


@pytest.mark.parametrize("rest", ["- slug: LONG", "- LONG", NAMED + "  groups: LONG", NAMED + "  groups: [LONG]"])
def test_a_problem_does_not_repeat_a_long_value(rest: str) -> None:
    """A message is for a person; and aliases of one long text must not become as many copies."""
    found = read_between(rest.replace("LONG", "é" * 100_000))
    assert max(len(str(problem)) for problem in found.problems) < 1_000


def test_a_tool_with_many_separators_does_not_grow_without_bound() -> None:
    """Each way to split the name is a rule: their text together must not be the square of what was written."""
    name = "mcp__" + "a__" * 2_000 + "a"
    found = read(NAMED + f"  groups: [mcp]\n  mcpRestrictions: {{disallowedTools: [{name}]}}\n")
    kept = [mode.mcp_restrictions.disallowed_tools or () for mode in found.modes if mode.mcp_restrictions]
    assert sum(len(tool.server) + len(tool.tool) for tools in kept for tool in tools) < 100 * len(name)


# What cannot be understood never allows anything.


NONSENSE = ["x", "[a]", "5", "{allowedServers: a}", "{allowedServers: }", "{allowedServers: {a: b}}"]
NONSENSE += ["{allowedServers: [a, 5]}", "{allowedServers: [a, ~]}", '{allowedServers: [""]}', "{allowdServers: [a]}"]
NONSENSE += ["{allow: [a]}", "{disallowedServers: }", "{disallowedTools: [create]}", "{disallowedTools: mcp__a__b}"]
NONSENSE += ["{disallowedTools: [{serverName: a}]}", "{disallowedTools: [{serverName: a, toolName: 5}]}"]
NONSENSE += ["{disallowedTools: [{serverName: a, toolName: b, server: c}]}", "{disallowedTools: [mcp__]}"]
NONSENSE += ["{activeHours: nine to five}", "{activeHours: }", '{activeHours: "09:00-18:00", timezone: Mars/Base}']
NONSENSE += ["{days: mon}", "{days: []}", "{days: [someday]}", "{days: [monkey]}"]


@pytest.mark.parametrize("restrictions", NONSENSE)
def test_restrictions_that_make_no_sense_allow_no_server(restrictions: str) -> None:
    """And leave the groups, and the other modes, alone."""
    found = read_between(NAMED + f"  groups: [read, mcp]\n  mcpRestrictions: {restrictions}\n")
    assert [mode.slug for mode in found.modes] == ["first", "mid", "last"]
    limits = found.modes[1].mcp_restrictions
    assert limits is not None
    assert limits == McpRestrictions(limits.origin, allowed_servers=())


SLIPS = ["{fileRegex: }", "{fileregex: x}", "{file-regex: x}", "{regex: x}"]
SLIPS += ["{activeHours: }", "{activeHours: 9}", "{days: [monkey]}", "{timezone: Nowhere}"]


@pytest.mark.parametrize("options", SLIPS)
def test_options_that_make_no_sense_never_leave_a_group_unrestricted(options: str) -> None:
    """Somebody meant to restrict it: a slip of the pen must not undo that."""
    assert "edit" not in reach(NAMED + f"  groups: [read, [edit, {options}]]\n")


def test_of_two_spellings_of_one_restriction_none_is_dropped_in_silence() -> None:
    """`disallowedServers` and `disallowed_servers` are one key that is there twice."""
    twice = "{disallowedServers: [a], disallowed_servers: [b]}"
    found = read_between(NAMED + f"  groups: [mcp]\n  mcpRestrictions: {twice}\n")
    assert found.problems


@pytest.mark.parametrize(
    "twice", ["[[mcp, {activeHours: 09:00-18:00}], mcp]", "[mcp, [mcp, {activeHours: 09:00-18:00}]]"]
)
def test_of_a_group_that_is_there_twice_the_one_with_hours_counts(twice: str) -> None:
    """It allows less than the other, in whichever order they stand."""
    (mode,) = read(NAMED + f"  groups: {twice}\n").modes
    assert [group.window.start for group in mode.groups or () if group.window] == [540]


def test_two_bases_are_a_problem() -> None:
    """Only one of them could narrow the mode."""
    assert read_between(NAMED + "  groups: [read]\n  extends: ask\n  baseMode: orchestrator\n").problems


# Whatever somebody does to a file.

VALID: Any = {"customModes": [*yaml.safe_load(BEFORE)["customModes"], *yaml.safe_load(FULL)["customModes"]]}
VALID["customModes"] += yaml.safe_load(AFTER)
texts = st.text(max_size=8) | st.sampled_from(["edit", "(", "mcp__", "code", "last"])
trees = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
edits = st.tuples(
    st.integers(0, 2000), st.integers(0, 30), st.text(max_size=3) | st.sampled_from(list("\n\t-:[]{}'\"&*#|>"))
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, each in inner for place in places(each, (*path, key)))]


IN_TWO = [place for place in places(VALID) if place[:2] == ("customModes", 1)]


@OFTEN
@given(st.lists(edits, min_size=1, max_size=4))
def test_no_slip_of_the_pen_raises(slips: list[tuple[int, int, str]]) -> None:
    """Whatever is cut out of a good file or typed into it, there are modes and problems, or only problems."""
    text = FULL
    for start, length, typed in slips:
        start %= len(text) + 1
        text = text[:start] + typed + text[start + length :]
    found = read(text)
    assert found.readable or found.problems


@OFTEN
@given(st.sampled_from(IN_TWO), trees)
@example(("customModes", 1, "groups"), [["edit", {"fileRegex": None}]])
def test_whatever_is_wrong_with_one_mode_the_others_load(place: tuple[Any, ...], value: Any) -> None:
    """Any value in the place of any other, anywhere in the second of three modes."""
    damaged = copy.deepcopy(VALID)
    target: Any = damaged
    for key in place[:-1]:
        target = target[key]
    target[place[-1]] = value
    good = {mode.slug: mode for mode in read(json.dumps(VALID)).modes}
    found = {mode.slug: mode for mode in read(json.dumps(damaged)).modes}
    assert (good["first"], good["last"]) == (found.get("first"), found.get("last"))


@pytest.mark.parametrize(
    "member",
    [
        "mcpRestrictions:",
        "extends:",
        "mcpRestrictons: {allowedServers: [x]}",
        "extend: ask",
        "base: ask",
        "mcpRestrictions: {allowedServers: [x]}\n  mcp_restrictions: {}",
        "groups: [read]",
        "fileRegex: x",
        "activeHours: 03:00-03:01",
        "allowedServers: [x]",
    ],
)
def test_a_member_that_restricts_in_a_way_nobody_can_tell_leaves_no_tools(member: str) -> None:
    """Empty, repeated, misspelt or misplaced: its author meant to restrict, and is told what is wrong."""
    found = read_between(NAMED + f"  groups: [read, edit, mcp]\n  {member}\n")
    assert [mode.slug for mode in found.modes] == ["first", "mid", "last"]
    mode = found.modes[1]
    assert mode.groups == ()
    assert [problem.severity for problem in found.problems].count("error") >= 1


@pytest.mark.parametrize(
    ("member", "message", "hint"),
    [
        (
            "mcpRestrictons: {allowedServers: [x]}",
            "`mcpRestrictons` of `mid` is misspelt",
            "did you mean `mcpRestrictions`?",
        ),
        ("base: ask", "`base` of `mid` is misspelt", "did you mean `baseMode`?"),
        ("fileRegex: x", "`fileRegex` of `mid` belongs into a group's options or into `mcpRestrictions`", None),
        ("groups: [read]", "`groups` of `mid` is there twice", None),
        ("extends:", "`extends` of `mid` has no value", None),
    ],
)
def test_a_member_that_restricts_in_a_way_nobody_can_tell_is_one_problem(
    member: str, message: str, hint: str | None
) -> None:
    """Not also one that means nothing, or of which the last one counts."""
    (problem,) = read_between(NAMED + f"  groups: [read, edit, mcp]\n  {member}\n").problems
    assert (problem.severity, problem.message, problem.hint) == ("error", f"{message}; the mode may use no tools", hint)


@pytest.mark.parametrize("extends", ["", "  extends: other\n"])
def test_groups_without_a_value_are_none_also_in_a_mode_that_extends_another(extends: str) -> None:
    """Whoever wrote the key wanted it to say something, and not that the other mode's groups are this one's."""
    found = read_between(NAMED + f"{extends}  groups:\n")
    assert groups(found.modes[1]) == []
    assert [(problem.message, problem.hint) for problem in found.problems] == [
        ("`groups` of `mid` has no value; the mode may use no tools", "write `groups: []` if that is meant")
    ]


def test_of_a_misspelt_group_list_its_place_and_the_lack_are_told() -> None:
    """Each once."""
    found = read_between(NAMED + "  gruops: [read]\n")
    assert [(problem.message, problem.hint) for problem in found.problems] == [
        ("`gruops` of `mid` is misspelt; the mode may use no tools", "did you mean `groups`?"),
        ("The mode `mid` has no `groups`, so it may use no tools", "write `groups: []` if that is meant"),
    ]


@pytest.mark.parametrize("member", ["model: x", "icon: x", "author: me", "notes: y"])
def test_a_member_that_says_something_else_costs_nothing(member: str) -> None:
    """Files in the wild have all kinds of members."""
    assert reach(NAMED + f"  groups: [read]\n  {member}\n") == {"read": None}
