"""One member of a JSON file with comments, set and removed: the value is the intended one, all else is as it was."""

import copy
import json
import re
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from modes_actor.cli.editors.json_edit import CannotEdit, parsed, remove_member, set_member
from modes_actor.jsonc import JsonObject, object_at, plain_json, without_comments
from tests.json_documents import PATHS, VALUES, documents

REPEATABLE = settings(derandomize=True, database=None, deadline=None)

Document = tuple[dict[str, Any], str]


def meaning(text: str) -> str:
    """As text, because `1 == True`."""
    return json.dumps(json.loads(plain_json(text)))


def with_member(value: dict[str, Any], path: Sequence[str], member: Any) -> dict[str, Any] | None:
    """None if something that is no object is in the way."""
    root = here = copy.deepcopy(value)
    for key in path[:-1]:
        here = here.setdefault(key, {})
        if not isinstance(here, dict):
            return None
    here[path[-1]] = member
    return root


def innermost(text: str, path: Sequence[str]) -> tuple[JsonObject, str]:
    """The deepest object on the path, and the key that is looked for in it."""
    clean = without_comments(text)
    found = object_at(clean, clean.index("{"))
    for key in path[:-1]:
        member = found.last(key)
        if member is None:
            return found, key
        found = object_at(clean, member.value)
    return found, path[-1]


def visible(text: str) -> str:
    return re.sub(r"[ \t\r\n]", "", text)


@REPEATABLE
@given(documents(), PATHS, VALUES)
def test_a_member_that_is_set_is_all_that_changes_in_the_meaning(document: Document, path: list[str], new: Any) -> None:
    """Whatever the document and the path; the order of members, too."""
    value, text = document
    expected = with_member(value, path, new)
    assume(expected is not None)
    assert meaning(set_member(text, path, new)) == json.dumps(expected)


@REPEATABLE
@given(documents(), PATHS, VALUES)
def test_what_is_set_already_is_not_written_again(document: Document, path: list[str], new: Any) -> None:
    """Once is as good as twice."""
    value, text = document
    assume(with_member(value, path, new) is not None)
    once = set_member(text, path, new)
    assert set_member(once, path, new) == once


@REPEATABLE
@given(documents(), PATHS, VALUES)
def test_all_characters_around_a_member_stay(document: Document, path: list[str], new: Any) -> None:
    """Before it and after it; of a new one, blanks before the closing bracket may go, and a comma may come."""
    value, text = document
    assume(with_member(value, path, new) is not None)
    found, key = innermost(text, path)
    member = found.last(key)
    edited = set_member(text, path, new)
    if member is not None:
        assert edited.startswith(text[: member.value])
        assert edited.endswith(text[member.end :])
    else:
        assert edited.startswith(text[: found.members[-1].end if found.members else found.open + 1])
        assert edited.endswith(text[found.close :])
        rest = iter(visible(edited))
        assert all(character in rest for character in visible(text))


@REPEATABLE
@given(documents(), PATHS, VALUES)
def test_lines_go_on_ending_as_they_did(document: Document, path: list[str], new: Any) -> None:
    """A file with CRLF gets nothing else."""
    value, text = document
    assume(with_member(value, path, new) is not None)
    text = re.sub(r"\r?\n", "\r\n", text) + "\r\n"
    assert re.search(r"(?<!\r)\n", set_member(text, path, new)) is None


@REPEATABLE
@given(documents(), PATHS, VALUES)
def test_what_was_set_can_be_removed_again(document: Document, path: list[str], new: Any) -> None:
    """The text is the old one then, but for blanks before a closing bracket that stood on no line of its own."""
    value, text = document
    assume(with_member(value, path, new) is not None)
    assume(not has(value, path))
    first_new = next(path[:length] for length in range(1, len(path) + 1) if not has(value, path[:length]))
    assert visible(remove_member(set_member(text, path, new), first_new)) == visible(text)


def has(value: Any, path: Sequence[str]) -> bool:
    for key in path:
        if not isinstance(value, dict) or key not in value:
            return False
        value = value[key]
    return True


def paths_in(value: Any) -> list[list[str]]:
    if not isinstance(value, dict):
        return []
    return [path for key, each in value.items() for path in ([key], *([key, *rest] for rest in paths_in(each)))]


@REPEATABLE
@given(documents(), st.data())
def test_a_member_that_is_removed_is_all_that_goes(document: Document, data: st.DataObject) -> None:
    """Of the meaning, and of the text: it, a comma, and blanks around it."""
    value, text = document
    assume(value)
    path = data.draw(st.sampled_from(paths_in(value)))
    expected = copy.deepcopy(value)
    here = expected
    for key in path[:-1]:
        here = here[key]
    del here[path[-1]]
    found, key = innermost(text, path)
    member = found.last(key)
    assert member is not None
    edited = remove_member(text, path)
    assert meaning(edited) == json.dumps(expected)
    assert visible(edited).replace(",", "") == visible(text[: member.start] + text[member.end :]).replace(",", "")
    assert remove_member(edited, path) == edited


AS_PEOPLE_WRITE = """\
// of the editor
{
  "theme": "dark", // at night
  /* servers */
  "servers": {
    "one": {
      "command": "a",
      "args": ["-x"]
    } // the first
  }
}
"""


@pytest.mark.parametrize("text", [AS_PEOPLE_WRITE, AS_PEOPLE_WRITE.replace("\n", "\r\n"), '{"servers": {"one": {}}}'])
@pytest.mark.parametrize("path", [["servers", "two"], ["new"], ["servers", "one", "env", "A"]])
def test_a_file_in_the_usual_layout_comes_back_to_the_character(text: str, path: list[str]) -> None:
    """Every bracket that closes on a line of its own, or all on one line."""
    edited = set_member(text, path, {"command": "b"})
    above = path[:3] if path[-1] == "A" else path
    assert edited != text
    assert remove_member(edited, above) == text


def test_a_new_member_is_laid_out_as_its_neighbours() -> None:
    """Indentation, line ends and all; a comment stays with the member that it stood behind."""
    expected = AS_PEOPLE_WRITE.replace(
        "    } // the first\n",
        """\
    }, // the first
    "two": {
      "command": "b",
      "args": []
    }
""",
    )
    assert set_member(AS_PEOPLE_WRITE, ["servers", "two"], {"command": "b", "args": []}) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", '{\n  "a": 1\n}\n'),
        ("\ufeff", '\ufeff{\n  "a": 1\n}\n'),
        ("// mine\n", '// mine\n{\n  "a": 1\n}\n'),
        ("{}", '{\n  "a": 1\n}'),
        ("{}\r\n", '{\r\n  "a": 1\r\n}\r\n'),
        ('{"b": 2}', '{"b": 2, "a": 1}'),
        ('{"b": 2,}', '{"b": 2, "a": 1,}'),
        ('{\n\t"b": 2\n}', '{\n\t"b": 2,\n\t"a": 1\n}'),
        ('{\n    "b": 2, // two\n}', '{\n    "b": 2, // two\n    "a": 1,\n}'),
        ('{\n  "b": 2\n  // "c": 3\n}', '{\n  "b": 2,\n  // "c": 3\n  "a": 1\n}'),
        ("{ // nothing yet\n}", '{ // nothing yet\n  "a": 1\n}'),
    ],
)
def test_a_first_or_last_member_is_added(text: str, expected: str) -> None:
    """Where trailing commas are the habit, it gets one."""
    assert set_member(text, ["a"], 1) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"a": 1}', "{}"),
        ('{\n  "a": 1\n}\n', "{}\n"),
        ('{\n  // why\n  "a": 1\n}', "{\n  // why\n}"),
        ('{"a": 1, "b": 2}', '{"b": 2}'),
        ('{"b": 2, "a": 1}', '{"b": 2}'),
        ('{"b": 2, "a": 1,}', '{"b": 2,}'),
        ('{\n  "b": 2, // two\n  "a": 1 // one\n}', '{\n  "b": 2 // two\n   // one\n}'),
        ('{"a": 1, "b": 2, "a": 3}', '{"b": 2}'),
    ],
)
def test_a_member_is_removed_with_its_comma(text: str, expected: str) -> None:
    """And all its copies, where a key is there twice."""
    assert remove_member(text, ["a"]) == expected


@pytest.mark.parametrize("text", ["", "// only\n", "{}", '{"b": {"a": 1}}'])
def test_what_is_not_there_is_not_removed(text: str) -> None:
    """And nothing is written anew."""
    assert remove_member(text, ["a", "b"]) == text


def test_an_integer_takes_the_place_of_a_boolean() -> None:
    """Though Python takes them for equal."""
    assert set_member('{"a": true}', ["a"], 1) == '{"a": 1}'


@pytest.mark.parametrize(
    ("text", "path", "line", "reason"),
    [
        ('{\n"a": }', ["b"], 2, "this is not JSON: Expecting value; mend it and try again"),
        ("\n[1]", ["b"], 2, "expected an object here, found an array"),
        ('{"a":\n"x"}', ["a", "b"], 2, '"a" should be an object, but it is a string'),
        ('{"a": NaN}', ["b"], None, "this is not JSON that can be edited: NaN is no JSON value"),
    ],
)
def test_what_cannot_be_edited_is_refused_with_its_line(
    text: str, path: list[str], line: int | None, reason: str
) -> None:
    """And with what was expected instead."""
    with pytest.raises(CannotEdit) as caught:
        set_member(text, path, 1)
    assert (caught.value.line, caught.value.reason) == (line, reason)


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000, '{"a": 1' + "0" * 5_000 + "}"])
def test_what_python_cannot_read_is_refused_too(text: str) -> None:
    """Depth and digits without end."""
    with pytest.raises(CannotEdit, match="this is not JSON"):
        parsed(text)


@pytest.mark.parametrize("edit", [lambda: set_member("{}", [], 1), lambda: remove_member("{}", [])])
def test_a_path_leads_somewhere(edit: Any) -> None:
    """The document itself is nobody's member."""
    with pytest.raises(ValueError, match="a member has a path"):
        edit()
