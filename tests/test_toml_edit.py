"""One member of a TOML file, set and removed: the value is the intended one, all else is as it was."""

import copy
import re
import tomllib
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from modes_actor.cli.editors.json_edit import CannotEdit
from modes_actor.cli.editors.toml_edit import parsed, remove_member, set_member
from tests.toml_documents import documents

REPEATABLE = settings(derandomize=True, database=None, deadline=None)

OURS = ("mcp_servers", "ours")
MEMBERS = st.sampled_from([OURS, ("mcp_servers", "new"), (*OURS, "command"), (*OURS, "env"), (*OURS, "new")])
TABLES = st.sampled_from(
    [{"command": "/c", "args": ["--x"]}, {"command": 'C:\\"d\x7f"', "args": [], "env": {"A b": "é"}}, {}]
)
PLAIN = st.sampled_from(["text", ["a", "b"], True, 5])
GOOD = '''\
model = "o" # mine

[mcp_servers.one]
command = "a" # the first
args = ["""
]"""]

# the second
[mcp_servers.two]
command = "b"
'''


def value_at(document: Any, path: Sequence[str]) -> Any:
    for key in path:
        if not isinstance(document, dict) or key not in document:
            return None
        document = document[key]
    return document


def with_member(document: dict[str, Any], path: Sequence[str], member: object) -> dict[str, Any]:
    root = here = copy.deepcopy(document)
    for key in path[:-1]:
        here = here.setdefault(key, {})
    here[path[-1]] = member
    return root


def without_member(document: dict[str, Any], path: Sequence[str]) -> dict[str, Any]:
    """Tables that are only there for it go with it."""
    root = copy.deepcopy(document)
    for length in range(len(path), 0, -1):
        above = value_at(root, path[: length - 1])
        if length == len(path) or above[path[length - 1]] == {}:
            del above[path[length - 1]]
    return root


def lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.strip()]


def is_inline(text: str, path: Sequence[str]) -> bool:
    return "ours = {" in text and len(path) > len(OURS) and path[:2] == OURS


@REPEATABLE
@given(documents(), MEMBERS, TABLES)
def test_a_table_that_is_set_is_all_that_changes_in_the_meaning(text: str, path: tuple[str, ...], new: Any) -> None:
    """Whatever it is now: nothing, a table, several, lines in another; and once is as good as twice."""
    assume(not is_inline(text, path))
    edited = set_member(text, path, new)
    assert parsed(edited) == with_member(parsed(text), path, new)
    assert set_member(edited, path, new) == edited


@REPEATABLE
@given(documents(), st.sampled_from([(*OURS, "command"), (*OURS, "new"), ("mcp_servers", "new", "x")]), PLAIN)
def test_a_line_that_is_set_is_all_that_changes_in_the_text(text: str, path: tuple[str, ...], new: Any) -> None:
    """All other lines are there, in their order."""
    assume(not is_inline(text, path))
    old = value_at(parsed(text), path)
    edited = set_member(text, path, new)
    assert value_at(parsed(edited), path) == new
    rest = iter(lines(edited))
    missing = [line for line in lines(text) if line not in rest] if old is None else []
    assert missing == []
    assert len(lines(edited)) - len(lines(text)) in ((0,) if old is not None else (1, 2))


@REPEATABLE
@given(documents(), TABLES)
def test_a_new_table_comes_at_the_end_and_goes_again(text: str, new: Any) -> None:
    """The text before it is as it was, and is so again, but for blank lines at its end."""
    path = ("mcp_servers", "new")
    edited = set_member(text, path, new)
    assert edited.startswith(text)
    assert "mcp_servers.new" in edited
    assert remove_member(edited, path).rstrip() == text.rstrip()


@REPEATABLE
@given(documents(), st.sampled_from([OURS, (*OURS, "command"), (*OURS, "env"), ("mcp_servers", "a")]))
def test_a_member_that_is_removed_is_all_that_goes(text: str, path: tuple[str, ...]) -> None:
    """Of the meaning; and of the text nothing but whole lines, no comment outside of it among them."""
    document = parsed(text)
    assume(value_at(document, path) is not None)
    assume(not is_inline(text, path))
    edited = remove_member(text, path)
    assert without_member(document, path) == without_member(with_member(parsed(edited), path, {}), path)
    rest = iter(lines(text))
    assert all(line in rest for line in lines(edited))
    assert remove_member(edited, path) == edited


@REPEATABLE
@given(documents(), MEMBERS, TABLES)
def test_lines_go_on_ending_as_they_did(text: str, path: tuple[str, ...], new: Any) -> None:
    """A file with CRLF gets nothing else."""
    assume(not is_inline(text, path))
    text = re.sub(r"\r?\n", "\r\n", text) + "\r\n"
    assert re.search(r"(?<!\r)\n", set_member(text, path, new)) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", '[mcp_servers.ours]\ncommand = "c"\nargs = []\n'),
        ("\ufeff", '\ufeff[mcp_servers.ours]\ncommand = "c"\nargs = []\n'),
        ("a = 1", 'a = 1\n\n[mcp_servers.ours]\ncommand = "c"\nargs = []\n'),
        ("a = 1\r\n", 'a = 1\r\n\r\n[mcp_servers.ours]\r\ncommand = "c"\r\nargs = []\r\n'),
        ("a = 1\n\n", 'a = 1\n\n[mcp_servers.ours]\ncommand = "c"\nargs = []\n'),
        ("[mcp_servers]\nours = 1 # why\n", '[mcp_servers]\nours = { command = "c", args = [] } # why\n'),
        (
            "[mcp_servers.ours]\nurl = 1\n# old\nb = 2\n\n# next\n[z]\n[mcp_servers.ours.env]\nc = 3\n",
            '[mcp_servers.ours]\ncommand = "c"\nargs = []\n\n# next\n[z]\n',
        ),
    ],
)
def test_a_table_is_written_where_the_old_one_was_or_at_the_end(text: str, expected: str) -> None:
    """With a blank line before it, where there is none."""
    assert set_member(text, OURS, {"command": "c", "args": []}) == expected


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("mcp_servers", "one", "command"), 'command = "NEW" # the first'),
        (("mcp_servers", "two", "cwd"), 'cwd = "NEW"'),
        (("model",), 'model = "NEW" # mine'),
    ],
)
def test_a_line_is_changed_in_its_place(path: tuple[str, ...], line: str) -> None:
    """With what stands behind it."""
    edited = set_member(GOOD, path, "NEW")
    assert [each for each in edited.splitlines() if each not in GOOD.splitlines()] == [line]


def test_a_table_is_removed_with_what_is_in_it_and_no_more() -> None:
    """A comment above the next one stays with the next one."""
    expected = 'model = "o" # mine\n\n# the second\n[mcp_servers.two]\ncommand = "b"\n'
    assert remove_member(GOOD, ("mcp_servers", "one")) == expected


@pytest.mark.parametrize("path", [("nope",), ("mcp_servers", "nope"), ("mcp_servers", "two", "env", "A")])
def test_what_is_not_there_is_not_removed(path: tuple[str, ...]) -> None:
    """And nothing is written anew."""
    assert remove_member(GOOD, path) == GOOD


def test_what_is_set_already_is_left_as_it_is_written() -> None:
    """However it is written."""
    text = "[mcp_servers]\nours.command = 'c'\n'ours'.args = [ ]\n"
    assert set_member(text, OURS, {"command": "c", "args": []}) == text


@pytest.mark.parametrize("edit", [lambda text, path: set_member(text, path, {"a": 1}), remove_member])
def test_an_inline_table_is_left_to_its_owner(edit: Any) -> None:
    """With the line, and what would help."""
    with pytest.raises(CannotEdit) as caught:
        edit("\nmcp_servers = {ours = {command = 'x'}}\n", OURS)
    assert (caught.value.line, caught.value.reason) == (
        2,
        "mcp_servers is an inline table; write it as [mcp_servers.ours], or make the change by hand",
    )


@pytest.mark.parametrize(
    ("text", "inline"),
    [
        ("[mcp_servers]\nours = { command = 'x' }\n", "mcp_servers.ours"),
        ("a = 1\nmcp_servers = {ours = {command = 'x'}}\n", "mcp_servers"),
    ],
)
@pytest.mark.parametrize("edit", [lambda text, path: set_member(text, path, "y"), remove_member])
def test_of_a_member_in_an_inline_table_the_table_is_named(edit: Any, text: str, inline: str) -> None:
    """What is to be written is its header, not one of the member."""
    with pytest.raises(CannotEdit) as caught:
        edit(text, (*OURS, "command"))
    assert (caught.value.line, caught.value.reason) == (
        2,
        f"{inline} is an inline table; write it as [mcp_servers.ours], or make the change by hand",
    )


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("a = 1\nb =\n", 2, "this is not TOML: Invalid value; mend it and try again"),
        ("mcp_servers = 1", None, '"mcp_servers" should be a table, but it is something else'),
        ("[[mcp_servers]]", None, '"mcp_servers" should be a table, but it is something else'),
    ],
)
def test_what_cannot_be_edited_is_refused(text: str, line: int | None, reason: str) -> None:
    """With its line, where there is one."""
    with pytest.raises(CannotEdit) as caught:
        set_member(text, OURS, {})
    assert (caught.value.line, caught.value.reason) == (line, reason)


@pytest.mark.parametrize("text", ["a = " + "[" * 100_000, "a = 1" + "0" * 5_000])
def test_what_python_cannot_read_is_refused_too(text: str) -> None:
    """Depth and digits without end."""
    with pytest.raises(CannotEdit, match="this is not TOML"):
        parsed(text)


def test_a_string_takes_the_place_of_no_table() -> None:
    """Nobody can have meant that."""
    with pytest.raises(CannotEdit, match="cannot be edited here"):
        set_member(GOOD, ("mcp_servers", "one"), "x")


@pytest.mark.parametrize("edit", [lambda: set_member("", [], 1), lambda: remove_member("", [])])
def test_a_path_leads_somewhere(edit: Any) -> None:
    """The document itself is nobody's member."""
    with pytest.raises(ValueError, match="a member has a path"):
        edit()


def test_a_value_that_is_not_even_itself_is_no_obstacle() -> None:
    """Not a number is what it was."""
    assert set_member("a = nan\n", ["b"], {}) == "a = nan\n\n[b]\n"


def test_an_integer_takes_the_place_of_a_boolean() -> None:
    """Though Python takes them for equal."""
    assert set_member("a = true\n", ["a"], 1) == "a = 1\n"


def test_keys_are_what_they_mean() -> None:
    """However they are quoted."""
    text = "[\"mcp_servers\" . 'ours']\n\"c\\u006fmmand\" = 'x'\n"
    assert tomllib.loads(remove_member(text, (*OURS, "command"))) == {"mcp_servers": {"ours": {}}}
