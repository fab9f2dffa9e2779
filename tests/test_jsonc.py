"""JSON with comments: what is blanked, what is not, and where members stand."""

import json
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from modes_actor.jsonc import JsonMember, JsonObject, line_of, object_at, place_of, plain_json, without_comments
from tests.json_documents import documents

REPEATABLE = settings(derandomize=True, database=None, deadline=None)


@REPEATABLE
@given(documents())
def test_a_text_made_plain_means_what_it_meant(document: tuple[dict[str, Any], str]) -> None:
    """Whatever comments, trailing commas and byte order mark there are."""
    value, text = document
    assert json.loads(plain_json(text)) == value


@REPEATABLE
@given(st.text(alphabet='{}[],:"\\/*\n\r\t a1\ufeff'))
def test_offsets_and_lines_stay_where_they_were(text: str) -> None:
    """Also in what is no JSON at all: a decoder's complaint must fit the file."""
    ends = [found.span() for found in re.finditer(r"[\r\n]", text)]
    for blanked in (plain_json(text), without_comments(text)):
        assert len(blanked) == len(text)
        assert [found.span() for found in re.finditer(r"[\r\n]", blanked)] == ends


@REPEATABLE
@given(st.text(alphabet='{}[],:"\\/*\n a1'))
def test_only_blanks_take_the_place_of_anything(text: str) -> None:
    """A character either stays or becomes a blank."""
    for blanked in (plain_json(text), without_comments(text)):
        assert all(new in (old, " ") for old, new in zip(text, blanked, strict=True))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"a": "// no /* no */"}', '{"a": "// no /* no */"}'),
        ('{"a": 1, // why\n}', '{"a": 1        \n}'),
        ("[1, /* , */ 2,]", "[1,         2 ]"),
        ("[,]", "[,]"),
        ("[1,,]", "[1,,]"),
        ('{"a":,}', '{"a":,}'),
        ("[1] /* open", "[1] /* open"),
        ('["open // no', '["open // no'),
        ("/*/", "/*/"),
        ("1 / 2", "1 / 2"),
        ('\ufeff{"a": 1}', ' {"a": 1}'),
    ],
)
def test_what_is_wrong_stays_wrong(text: str, expected: str) -> None:
    """Only comments and commas after something are blanked: the rest is for the decoder to judge."""
    assert plain_json(text) == expected


@pytest.mark.parametrize("end", ["", "\\"])
def test_a_string_that_nothing_closes_is_read_once(end: str) -> None:
    """Not once from each of its quotes on, which would take minutes here."""
    text = '{"a": "' + '\\"' * 200_000 + end
    assert (plain_json(text), plain_json(text + "\n// no comment")) == (text, text + "\n// no comment")


def test_trailing_commas_stay_where_only_comments_go() -> None:
    """An editor has to see them."""
    assert without_comments("[1, /* two */]") == "[1,          ]"


def test_an_object_is_found_with_its_members() -> None:
    """By offsets, its last comma too."""
    text = '{"a": {"b": [1, {}]}, "c" : 2 ,}'
    expected = JsonObject(0, 31, (JsonMember("a", 1, 6, 20, 20), JsonMember("c", 22, 28, 29, 30)))
    assert object_at(text, 0) == expected


def test_of_members_with_one_key_the_last_counts() -> None:
    """As for every parser."""
    found = object_at('{"a": 1, "a": 2}', 0)
    assert found.last("a") == JsonMember("a", 9, 14, 15, None)
    assert found.last("b") is None


@REPEATABLE
@given(documents())
def test_a_member_is_where_its_place_says(document: tuple[dict[str, Any], str]) -> None:
    """The key stands there, as JSON writes it."""
    value, text = document
    for key in value:
        at = place_of(text, [key])
        decoded, _ = json.JSONDecoder().raw_decode(text, at)
        assert decoded == key


@pytest.mark.parametrize(
    ("path", "expected"),
    [(["a", "b"], '"b"'), (["a", "nope"], '"a"'), (["nope"], "{"), (["a", "b", "c"], '"b"'), ([], "{")],
)
def test_the_place_of_what_is_missing_is_that_of_what_it_would_be_in(path: list[str], expected: str) -> None:
    """So that a complaint always has a line."""
    text = ' // first\n{"a": {\n  "b": 1}}'
    assert text[place_of(text, path) :].startswith(expected)


@pytest.mark.parametrize(("at", "expected"), [(0, 1), (1, 1), (2, 2), (5, 3), (6, 4)])
def test_lines_end_in_any_of_three_ways(at: int, expected: int) -> None:
    """Counted from 1."""
    assert line_of("a\nb\r\n\rc", at) == expected


@pytest.mark.parametrize(
    "text",
    [
        '{"a": "// no comment, /* neither */ ,]", "b": [1, 2]}',
        '{"a": "\\",]", "b": "\\\\", "c": {}}',
        "",
        "{,}",
        '{"a": "open ,]',
    ],
)
def test_what_is_plain_already_is_left_as_it_is(text: str) -> None:
    """Strings may look like anything."""
    assert (plain_json(text), without_comments(text)) == (text, text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"a": 1,}', '{"a": 1 }'),
        ('{"a": 1,\r\n\t }', '{"a": 1 \r\n\t }'),
        ('["/", 1 , ]', '["/", 1   ]'),
        ("[1,/**/]", "[1     ]"),
        ('{"a": "b"} // c', '{"a": "b"}     '),
        ("[1] /", "[1] /"),
    ],
)
def test_what_is_nearly_plain_is_not_taken_for_it(text: str, expected: str) -> None:
    """A comma or a comment at the end makes the difference; a lone slash is left for the decoder."""
    assert plain_json(text) == expected
