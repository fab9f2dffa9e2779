"""One more mode in a mode file: what it then says, and that nothing else in it changes."""

import difflib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modes_actor.cli.mode_editing import Added, CannotAdd, add_mode, snippet
from modes_actor.cli.mode_writing import NewGroup, NewMode, NewRestrictions, restrictions_to_write
from modes_actor.modes.model import GROUP_NAMES, ModeConfig
from modes_actor.modes.reading import read_modes
from modes_actor.modes.templates import templates

CORPUS = Path(__file__).parents[2] / "shared" / "corpus" / "roomodes"

PLAIN = NewMode(slug="docs", name="Docs", role_definition="You write.", groups=("read", ("edit", NewGroup(r"\.md$"))))

DOCS = r"""  - slug: docs
    name: Docs
    roleDefinition: You write.
    groups:
      - read
      - [edit, {fileRegex: '\.md$'}]
"""
DOCS_AT_THE_LEFT = "".join(line[2:] for line in DOCS.splitlines(keepends=True))

OLD = """  - slug: old
    name: Old
    roleDefinition: You are old.
    groups: [read]
"""
OLD_AT_THE_LEFT = "".join(line[2:] for line in OLD.splitlines(keepends=True))

JSON_DOCS = r"""{"slug": "docs", "name": "Docs", "roleDefinition": "You write.", """
JSON_DOCS += r""""groups": ["read", ["edit", {"fileRegex": "\\.md$"}]]}"""

JSON_OLD = """{
  "customModes": [
    {
      "slug": "old",
      "name": "Old \\ud83d\\udc74",
      "roleDefinition": "You are old.",
      "groups": ["read"]
    }
  ]
}
"""


def added(text: str, mode: NewMode = PLAIN) -> Added:
    return add_mode(text, mode, file="f", source="project")


def refusal(text: str) -> tuple[str, int | None]:
    with pytest.raises(CannotAdd) as caught:
        added(text)
    return str(caught.value), caught.value.line


# Where it goes.


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param("", f"customModes:\n{DOCS}", id="an empty file"),
        pytest.param("# Ours\n", f"# Ours\ncustomModes:\n{DOCS}", id="nothing but a comment"),
        pytest.param("---\n...\n", f"---\ncustomModes:\n{DOCS}...\n", id="nothing between the marks of a document"),
        pytest.param("customModes: []\n", f"customModes:\n{DOCS}", id="an empty list"),
        pytest.param("customModes: [ ] # none\nx: 1", f"customModes: # none\n{DOCS}x: 1", id="a comment behind it"),
        pytest.param("customModes:\n", f"customModes:\n{DOCS}", id="no list"),
        pytest.param("customModes:", f"customModes:\n{DOCS}", id="no list and no line end"),
        pytest.param("customModes: ~  # ours\n", f"customModes:  # ours\n{DOCS}", id="a null"),
        pytest.param(
            "customModes:\n  # here\n\n# x\n", f"customModes:\n  # here\n{DOCS}\n# x\n", id="a comment inside"
        ),
        pytest.param("x: 1\n", f"x: 1\ncustomModes:\n{DOCS}", id="another member only"),
        pytest.param(f"customModes:\n{OLD}", f"customModes:\n{OLD}{DOCS}", id="one mode"),
        pytest.param(f"custom_modes:\n{OLD}", f"custom_modes:\n{OLD}{DOCS}", id="another spelling"),
        pytest.param(
            f"customModes:\n{OLD_AT_THE_LEFT}x: 1\n",
            f"customModes:\n{OLD_AT_THE_LEFT}{DOCS_AT_THE_LEFT}x: 1\n",
            id="dashes below the key",
        ),
        pytest.param(OLD_AT_THE_LEFT, OLD_AT_THE_LEFT + DOCS_AT_THE_LEFT, id="a list alone"),
        pytest.param(f"customModes:\n{OLD[:-1]}", f"customModes:\n{OLD}{DOCS}", id="no line end at the end"),
        pytest.param(f"customModes:\n{OLD}...\n", f"customModes:\n{OLD}{DOCS}...\n", id="a mark at the end"),
        pytest.param(
            f"customModes:\n{OLD}  # - slug: later\n\n# The end\n\n",
            f"customModes:\n{OLD}  # - slug: later\n{DOCS}\n# The end\n\n",
            id="comments below it",
        ),
        pytest.param(
            f"customModes:\n{OLD_AT_THE_LEFT}# About x\nx: 1\n",
            f"customModes:\n{OLD_AT_THE_LEFT}{DOCS_AT_THE_LEFT}# About x\nx: 1\n",
            id="a comment that may belong to what follows",
        ),
        pytest.param(
            f"customModes:\n{OLD}\n  # Second\n{OLD.replace('old', 'new')}",
            f"customModes:\n{OLD}\n  # Second\n{OLD.replace('old', 'new')}\n{DOCS}",
            id="blank lines between the modes",
        ),
        pytest.param(
            f"customModes:\n{OLD}    customInstructions: |+\n      Kept:\n\n\n",
            f"customModes:\n{OLD}    customInstructions: |+\n      Kept:\n\n\n{DOCS}",
            id="blank lines that are part of a text",
        ),
        pytest.param(
            f"customModes:\n{OLD}    customInstructions: |\n      Not kept:\n\n\nx: 1\n",
            f"customModes:\n{OLD}    customInstructions: |\n      Not kept:\n{DOCS}\n\nx: 1\n",
            id="blank lines that are not",
        ),
        pytest.param(
            f"a: &g [read]\ncustomModes:\n{OLD}    source: *g # c\n",
            f"a: &g [read]\ncustomModes:\n{OLD}    source: *g # c\n{DOCS}",
            id="an alias at the end",
        ),
    ],
)
def test_a_mode_is_added_to_yaml_below_the_others(before: str, after: str) -> None:
    """In the style of the list, and what is below the list stays below."""
    assert added(before).text == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('{"customModes":[]}', None),
        ("[]\n", None),
        ("{}", None),
        ('{"customModes": null}', None),
        ('[{"slug": "a"}]', f'[{{"slug": "a"}}, {JSON_DOCS}]'),
        ('{"a": 1}\n', f'{{"customModes": [{JSON_DOCS}], "a": 1}}\n'),
        ('{"customModes":[{"slug":"a"}],"x":1}', None),
        ("customModes: [{slug: a}]  # one\nx: 1\n", f"customModes: [{{slug: a}}, {JSON_DOCS}]  # one\nx: 1\n"),
        ("{customModes: [{slug: a}, ]}", f"{{customModes: [{{slug: a}}, {JSON_DOCS}, ]}}"),
    ],
)
def test_a_mode_is_added_between_brackets(before: str, after: str | None) -> None:
    """What is on one line stays on one line, if there is something on it."""
    edited = added(before).text
    assert after is None or edited == after
    assert read_modes(edited, file="f", source="project").modes[-1].name == "Docs"


def test_a_minified_file_stays_minified() -> None:
    """Not one blank more."""
    before = '{"customModes":[{"slug":"a","name":"A","roleDefinition":"A","groups":[]}]}'
    assert added(before).text == before[:-2] + "," + JSON_DOCS.replace(", ", ",").replace(": ", ":") + "]}"


@pytest.mark.parametrize("unit", ["  ", "    ", "\t"])
def test_a_json_file_gets_the_mode_with_its_own_indentation(unit: str) -> None:
    """Characters beyond the first plane that are written as two escapes are no obstacle."""
    before = JSON_OLD.replace("  ", unit)
    item = [
        "    {",
        '      "slug": "docs",',
        '      "name": "Docs",',
        '      "roleDefinition": "You write.",',
        r'      "groups": ["read", ["edit", {"fileRegex": "\\.md$"}]]',
        "    }",
    ]
    expected = JSON_OLD.replace("    }\n", "    },\n" + "\n".join(item) + "\n").replace("  ", unit)
    assert added(before).text == expected


@pytest.mark.parametrize(
    "before",
    [
        "customModes: [\n  {slug: a}, # first\n  # the end\n]\n",
        "customModes: [ # none yet\n]\n",
        "customModes: [{\n  slug: a\n}]\n",
        "customModes: [&a {slug: a},\n  *a\n]\n",
    ],
)
def test_comments_between_brackets_stay(before: str) -> None:
    """Nothing but insertions."""
    edited = added(before).text
    assert is_kept(before, edited)
    assert read_modes(edited, file="f", source="project").modes[-1].name == "Docs"


def test_line_ends_of_windows_are_kept() -> None:
    """And given to the new lines."""
    before = f"customModes:\n{OLD}".replace("\n", "\r\n")
    assert added(before).text == f"customModes:\n{OLD}{DOCS}".replace("\n", "\r\n")


def test_a_byte_order_mark_is_kept() -> None:
    """At the beginning, where it was."""
    assert added(f"\ufeffcustomModes:\n{OLD}").text == f"\ufeffcustomModes:\n{OLD}{DOCS}"


def test_control_characters_elsewhere_are_no_obstacle() -> None:
    """They are text in YAML 1.2, if not to the library."""
    before = f"customModes:\n{OLD}    description: a\x85b\u2028c\x07d\n"
    assert added(before).text == before + DOCS


def test_tabs_where_yaml_has_none_are_no_obstacle() -> None:
    """A blank line of tabs is read as one, and left as it is."""
    before = f"customModes:\n{OLD}\t\n"
    assert added(before).text == f"customModes:\n{OLD}{DOCS}\t\n"


def test_mistakes_in_the_file_do_not_keep_a_mode_out() -> None:
    """What cannot be read of it cannot before and after."""
    before = "customModes:\n  - slug: broken\n  - 7\n"
    assert added(before).text == before + DOCS


def test_the_places_of_the_mode_and_its_role_are_told() -> None:
    """So that a person can go there."""
    edited = added(f"customModes:\n{OLD}")
    assert (edited.mode.slug, edited.mode.origin.line, edited.role_line) == ("docs", 6, 8)


# What it says.

SHAPES = (
    "",
    "# c",
    "customModes: []\n",
    "customModes:\n\n\n",
    f"customModes:\n{OLD}",
    f"customModes:\n{OLD_AT_THE_LEFT}\n# c\nx: 1\n",
    f"\ufeffcustomModes:\n{OLD}".replace("\n", "\r\n"),
    OLD_AT_THE_LEFT + "...\n",
    "customModes: [{slug: a, name: A, roleDefinition: A, groups: []}]",
    "[]",
    JSON_OLD,
    '{"customModes":[{"slug":"a","name":"A","roleDefinition":"A","groups":[]}]}',
)

wild = st.text(
    st.one_of(
        st.sampled_from(
            "\n \t:#-'\"\\|>&*!%@`{}[],?~\r\x00\x1b\x7f\x85\xa0\u2028\ufeff\u200d\ufffe“’—\U0001f469\U00010fff"
        ),
        st.characters(exclude_categories=["Cs"]),
    ),
    max_size=30,
)
texts = st.one_of(
    wild, st.sampled_from(["yes", "null", "1", "0x1", "1.5", ".nan", "=", "<<", "---", "- a", "a: b", "a #b"])
)
some_text = texts.filter(bool)
restrictions = st.builds(
    NewRestrictions,
    allowed_servers=st.none() | st.lists(some_text, max_size=30).map(tuple),
    disallowed_tools=st.none() | st.just(("mcp__github__*",) * 40),
)
groups = st.lists(st.sampled_from(GROUP_NAMES), unique=True).map(tuple)
patterns = st.none() | st.sampled_from([r"\.md$", "^docs/", r"'\"$", r"[^\\]{2,}: #", "é|\u2028", "\t"])


@given(
    shape=st.sampled_from(SHAPES),
    slug=st.from_regex("[a-zA-Z0-9-]{1,9}", fullmatch=True).filter(lambda slug: slug not in ("a", "old")),
    name=some_text,
    fields=st.fixed_dictionaries(
        {"role_definition": some_text},
        optional={"description": texts, "when_to_use": texts, "custom_instructions": texts},
    ),
    groups=groups,
    pattern=patterns,
    restrictions=st.none() | restrictions,
)
def test_any_text_in_any_field_reads_back_as_asked_from_any_file(
    shape: str,
    slug: str,
    name: str,
    fields: dict[str, str],
    groups: tuple[str, ...],
    pattern: str | None,
    restrictions: NewRestrictions | None,
) -> None:
    """And the modes that were there are as they were, in their places."""
    entries = tuple((group, NewGroup(pattern)) if group == "edit" and pattern else group for group in groups)
    if restrictions is not None and "mcp" not in groups:
        entries += ("mcp",)
    mode = NewMode(slug=slug, name=name, groups=entries, mcp_restrictions=restrictions, **fields)  # type: ignore[arg-type]
    edited = added(shape, mode)
    *others, new = read_modes(edited.text, file="f", source="project").modes
    assert others == read_modes(shape, file="f", source="project").modes
    assert as_asked(new) == (
        slug,
        name,
        tuple(fields.get(key) for key in ("role_definition", "description", "when_to_use", "custom_instructions")),
        [(entry, None) if isinstance(entry, str) else (entry[0], entry[1].file_regex) for entry in entries],
        None if restrictions is None else (restrictions.allowed_servers, restrictions.disallowed_tools),
    )
    assert is_kept(shape.replace("[]", "").rstrip(), edited.text)


def as_asked(mode: ModeConfig) -> object:
    found = mode.mcp_restrictions
    tools = None if found is None or found.disallowed_tools is None else tuple(map(str, found.disallowed_tools))
    return (
        mode.slug,
        mode.name,
        (mode.role_definition, mode.description, mode.when_to_use, mode.custom_instructions),
        [(group.name, group.file_regex) for group in mode.groups or ()],
        None if found is None else (found.allowed_servers, tools),
    )


def is_kept(before: str, after: str) -> bool:
    """Whether every character is there, in order."""
    rest = iter(after)
    return all(char in rest for char in before)


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("You write.", " You write."),
        ("📝 Docs", " 📝 Docs"),
        ("Don't: never # really", " 'Don''t: never # really'"),
        ("yes", " 'yes'"),
        ("42", " '42'"),
        (" a ", " ' a '"),
        ("http://a#b", " http://a#b"),
        ("- a", " '- a'"),
        ("a\tb", r' "a\tb"'),
        ("a\u200bb", r' "a\u200bb"'),
        ("One:\n\n  - two # 2\n", " |\n      One:\n\n        - two # 2"),
        ("One\nTwo", " |-\n      One\n      Two"),
        (" One\nTwo", r' " One\nTwo"'),
        ("One\n\n", r' "One\n\n"'),
        ("One\r\nTwo", r' "One\r\nTwo"'),
        ("\U000e0067", r' "\U000e0067"'),
    ],
)
def test_a_text_is_written_as_a_person_would_write_it(text: str, written: str) -> None:
    """Plain where that is safe, in single quotes, in lines, and with escapes only where nothing else will do."""
    mode = NewMode(slug="a", name="A", custom_instructions=text, role_definition="x")
    expected = f"- slug: a\n  name: A\n  roleDefinition: x\n  customInstructions:{written}".replace(
        "\n      ", "\n    "
    )
    assert snippet("", mode) == expected


@pytest.mark.parametrize("name", list(templates()))
@pytest.mark.parametrize("shape", ["", "[]"])
def test_a_template_is_written_so_that_it_means_the_same(name: str, shape: str) -> None:
    """The same servers, and the same tools of the same servers; in lines that can be read."""
    wanted = templates()[name].restrictions
    mode = NewMode(
        slug="a", name="A", role_definition="A", groups=("mcp",), mcp_restrictions=restrictions_to_write(wanted)
    )
    edited = added(shape, mode)
    found = edited.mode.mcp_restrictions
    assert found is not None
    assert (found.allowed_servers, found.disallowed_servers) == (wanted.allowed_servers, wanted.disallowed_servers)
    assert pairs(found.disallowed_tools) == pairs(wanted.disallowed_tools)
    assert max(map(len, edited.text.splitlines())) <= 120


def pairs(tools: object) -> list[tuple[str, str]]:
    return [(tool.server, tool.tool) for tool in tools] if isinstance(tools, tuple) else []


# What cannot be.


@pytest.mark.parametrize(
    ("text", "reason", "line"),
    [
        ("a: [\n", "the file cannot be read, so mend that first: did not find expected node content", 2),
        ("customModes: text\n", "`customModes` must be a list, not 'text'", 1),
        ("x: 1\ncustomModes: {}\n", "`customModes` must be a list, not a mapping", 2),
        ("text\n", "the file holds no modes", 1),
        (
            "customModes: []\n---\na: 1\n",
            "the file cannot be read, so mend that first: There is a second document behind `---`",
            2,
        ),
        (f"customModes:\n{DOCS}", "there is a mode `docs` already", 2),
        ("customModes:\n  - name: x\n    slug: docs\n", "there is a mode `docs` already", 2),
    ],
)
def test_a_file_that_takes_no_mode_is_refused_with_the_reason_and_the_line(text: str, reason: str, line: int) -> None:
    """A mode that is there, but left out for a mistake, is there all the same."""
    assert refusal(text) == (reason, line)


@pytest.mark.parametrize(
    "text",
    [
        "customModes: &modes []\nx: *modes\n",
        "customModes: []\ncustomModes: []\n",
        "customModes: []\ncustom_modes: []\n",
        "customModes: &modes\n  - slug: a\n",
        '{"customModes"\n: []}',
        f"customModes:\n{OLD}".replace(" -", "\u00a0-"),
        f"customModes:\n{OLD}".replace("name: Old", "name: “Old: x”"),
    ],
)
def test_an_edit_that_would_change_more_than_it_should_is_not_made(text: str) -> None:
    """Aliases, members that are there twice, a file that is read only after repairs."""
    assert refusal(text) == (
        "the file is written in a way that cannot be edited without changing something else in it",
        None,
    )


def test_a_snippet_is_in_the_language_of_the_file() -> None:
    """A person can paste it."""
    assert snippet("customModes:\n", PLAIN) == DOCS_AT_THE_LEFT.rstrip()
    assert snippet("\ufeff {\n", PLAIN).replace("\n  ", " ").replace("\n", "") == JSON_DOCS.replace("{", "{ ", 1)


@pytest.mark.skipif(not CORPUS.exists(), reason=f"there is no corpus in {CORPUS}")
def test_people_s_files_take_a_mode_and_lose_nothing() -> None:
    """Every one of them but the one that is no YAML."""
    refused = []
    for path in sorted(CORPUS.glob("*.roomodes")):
        before = path.read_bytes().decode()
        try:
            after = added(before, NewMode(slug="quite-new", name="New: 1", role_definition="A\nB", groups=())).text
        except CannotAdd:
            refused.append(path.stem)
            continue
        kinds = {line[0] for line in difflib.ndiff(before.splitlines(), after.splitlines())}
        assert is_kept(before, after)
        assert kinds <= {" ", "+", "-", "?"}
    assert refused == ["AIM-kennisplatformen+k-baas-2"]
