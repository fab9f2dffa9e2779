"""The text of a mode file: what it says, to the letter, and where; and that no text does any harm."""

import json
import math
from typing import Any

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from modes_actor.modes import document as documents
from modes_actor.modes.document import Document, Fields, Items, Node, Scalar, Unreadable, read_document

REPEATABLE = settings(derandomize=True, database=None, deadline=None)
OFTEN = settings(REPEATABLE, max_examples=500)

BOM = "\ufeff"
SAMPLES = {
    "emoji": "🚀 go",
    "ZWJ emoji": "👩\u200d💻 and 👨\u200d👩\u200d👧",
    "variation selector": "🏗\ufe0f",
    "CJK": "架构师。",
    "smart quotes": "“double” and ‘single’",
    "dashes": "a – b — c − d",
    "no-break and zero-width spaces": "a\u00a0b\u200bc\u2060d",
    "NEL": "a\x85b",
    "line and paragraph separators": "a\u2028b\u2029c",
    "lone CR": "a\rb",
    "control characters": "a\x00\x07\x1b[0m\x7f\x9fb",
    "BOM inside": f"a{BOM}b",
    "noncharacters": "a\ufffe\uffffb\U0001ffff",
    "private use": "\ue000 \U0010f001",
    "tabs": "a\tb",
    "YAML's own signs": "a: b # c, [d] {e} &f *g !h %i @j `k` 'l' \"m\" | >",
}

strings = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
# JSON's integers are read as long as they are sane; floats print alike in JSON and Python.
numbers = st.integers(-(10**30), 10**30) | st.floats(allow_nan=False, allow_infinity=False)
scalars = st.none() | st.booleans() | numbers | strings
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(strings, inner, max_size=4), max_leaves=12
)

TOKENS = list("[]{},:#'\"\\\n\r\t~a“’–\u00a0\u200d\x00\x85\u2028\ufeff\U0010f000\ud800")
TOKENS += ["- ", "-\t", ": ", "? ", "\n  ", "\r\n", "&a ", "*a", "!t ", "|\n", ">-\n", " #", "---\n", "...\n", "<<"]
TOKENS += ["%YAML 1.1\n", "\\ud83d\\ude00", "\\ud83d", "null", "0x1", "1e9", ".inf"]
texts = st.lists(st.sampled_from(TOKENS) | st.text(max_size=4), max_size=30).map("".join)


def plain(node: Node) -> Any:
    """The values alone."""
    match node:
        case Scalar(value=value):
            return value
        case Items(items=items):
            return [plain(item) for item in items]
        case Fields(fields=fields):
            return {name: plain(value) for name, (_, value) in fields.items()}


def read(text: str) -> Any:
    """What the text says, if it can be read as it is."""
    document = read_document(text)
    assert document.repairs == []
    return plain(document.root)


def refusal(text: str) -> tuple[str, int, int]:
    with pytest.raises(Unreadable) as caught:
        read_document(text)
    return caught.value.message, caught.value.line, caught.value.column


# Values.


OLD = ["yes", "No", "on", "OFF", "y", "n", "12:30", "2001-01-01", "=", "<<", "1_000", "0b11", "-0x1", "+", "e3"]


@pytest.mark.parametrize("text", OLD)
def test_what_only_yaml_1_1_takes_for_a_value_is_text(text: str) -> None:
    """YAML 1.2's core schema knows no other booleans, no dates and no sexagesimal numbers."""
    assert {"a": text} == read(f"a: {text}")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *((text, None) for text in ("", "~", "null", "Null", "NULL")),
        *((text, True) for text in ("true", "True", "TRUE")),
        *((text, False) for text in ("false", "False", "FALSE")),
        ("0", 0), ("-12", -12), ("+7", 7), ("010", 10), ("08", 8), ("0o17", 15), ("0x1F", 31),
        ("1e3", 1000.0), ("1.", 1.0), (".5", 0.5), ("-1.5E-2", -0.015), (".inf", math.inf), ("-.INF", -math.inf),
    ],
)  # fmt: skip
def test_plain_scalars_follow_the_core_schema(text: str, value: object) -> None:
    """In type as well as in value."""
    found = read(f"a: {text}")["a"]
    assert (type(value), value) == (type(found), found)


def test_not_a_number_is_one() -> None:
    """The one value that equals nothing."""
    assert math.isnan(read("a: .nan")["a"])


def test_a_number_of_a_million_digits_is_read() -> None:
    """Python refuses to make an integer of it; nothing is raised."""
    assert isinstance(read("a: " + "9" * 1_000_000)["a"], float)


@pytest.mark.parametrize(
    "text", ["'1'", '"true"', "! 1", "!foo 1", "!!python/object:os.system 1", '!!int "1"', "|-\n  1"]
)
def test_what_is_quoted_or_tagged_is_text(text: str) -> None:
    """A tag is never obeyed."""
    assert {"a": text.strip("'\"").rpartition(" ")[2].strip('"')} == read(f"a: {text}")


def test_keys_are_text_whatever_they_look_like() -> None:
    """As in JavaScript; a key of several values is none that anybody asks for."""
    assert read("1: a\ntrue: b\nnull: c\n") == {"1": "a", "true": "b", "": "c"}


def test_a_merge_key_is_an_ordinary_key() -> None:
    """YAML 1.2 has no merging, and neither had Roo."""
    assert read("a: &a {x: 1}\nb: {<<: *a}\n") == {"a": {"x": 1}, "b": {"<<": {"x": 1}}}


def test_the_last_of_two_equal_keys_counts_and_the_last_is_reported() -> None:
    """With its place."""
    root = read_document("a: 1\nb: 2\na: 3\n").root
    assert isinstance(root, Fields)
    assert ({"a": 3, "b": 2}, [Scalar("a", 3, 1)]) == (plain(root), root.repeated)


@pytest.mark.parametrize("text", ["", "\n\n", "# only a comment\n", "---\n", BOM, "null", "~", "---\n...\n"])
def test_an_empty_text_is_null(text: str) -> None:
    """Emptiness is a value here; what it means is for others to say."""
    assert read(text) is None


def test_anchors_and_aliases_stand_for_the_same_value() -> None:
    """Of scalars, lists and mappings; an anchor may be used again for something else."""
    text = "a: &x text\nb: *x\nc: &y [1, {k: &x other}]\nd: *y\ne: *x\n"
    complex_value = [1, {"k": "other"}]
    assert {"a": "text", "b": "text", "c": complex_value, "d": complex_value, "e": "other"} == read(text)


# Text to the letter.


@pytest.mark.parametrize("sample", SAMPLES.values(), ids=SAMPLES.keys())
def test_a_literal_block_is_kept_to_the_letter(sample: str) -> None:
    """None of these characters ends a line, and none is replaced."""
    assert {"a": f"{sample}\nmore\n"} == read(f"a: |\n  {sample}\n  more\n")


@pytest.mark.parametrize("sample", SAMPLES.values(), ids=SAMPLES.keys())
def test_a_single_quoted_text_is_kept_to_the_letter(sample: str) -> None:
    """But for its own quote, which is doubled."""
    doubled = sample.replace("'", "''")
    assert {"a": sample} == read(f"a: '{doubled}'\n")


@pytest.mark.parametrize("indent", [None, 2, "\t"])
@pytest.mark.parametrize("sample", SAMPLES.values(), ids=SAMPLES.keys())
def test_a_json_text_is_kept_to_the_letter(sample: str, indent: int | str | None) -> None:
    """However JSON lays it out."""
    assert {"a": [sample]} == read(json.dumps({"a": [sample]}, ensure_ascii=False, indent=indent))


@REPEATABLE
@given(st.lists(strings.map(lambda line: "x" + line.replace("\n", "").replace("\r", "")), min_size=1))
def test_any_lines_of_a_literal_block_come_back(lines: list[str]) -> None:
    """Whatever characters a person puts into instructions."""
    block = "".join(f"  {line}\n" for line in lines)
    assert {"a": "".join(f"{line}\n" for line in lines), "b": 1} == read(f"a: |\n{block}b: 1\n")


@OFTEN
@given(values, st.booleans(), st.sampled_from([None, 2, "\t"]))
@example({"a": "🚀"}, True, None)
def test_json_says_what_json_says(value: Any, ascii_only: bool, indent: int | str | None) -> None:
    """All that `json.dumps` writes, with escapes for what is not ASCII or without, in one line or many."""
    assert value == plain(read_document(json.dumps(value, ensure_ascii=ascii_only, indent=indent)).root)


@pytest.mark.parametrize(
    "text",
    ['\t{"a": 1}', '{"a"\n: 1}', '{"a"\t:\t1}', '{\n\t\n"a":1\n}\n\t', '{"a":1,"' + "k" * 2000 + '":2}'],
    ids=["tab before it", "colon on the next line", "tabs around a colon", "lines of tabs", "long key"],
)
def test_json_is_read_however_it_is_laid_out(text: str) -> None:
    """A `.roomodes` may be JSON: what any JSON parser reads is no reason to lose the modes."""
    assert json.loads(text) == plain(read_document(text).root)


def test_escaped_surrogates_are_one_character_and_an_escaped_backslash_is_not() -> None:
    """It is how JSON writes an emoji."""
    text = r'{"a": "\ud83d\ude80 \\ud83d\\ude80"}'
    assert plain(read_document(text).root) == {"a": "🚀 \\ud83d\\ude80"}


def test_control_characters_and_any_others_can_stand_together() -> None:
    """No character has a meaning of its own that would make the file unreadable."""
    assert read("a: '\x07 \U0010f000 \U0010f0ff'\n") == {"a": "\x07 \U0010f000 \U0010f0ff"}


@pytest.mark.parametrize("style", ["|", ">", "|+", "\n    "])
def test_a_last_line_without_an_end_is_as_good_as_with_one(style: str) -> None:
    """An editor that leaves out the final newline changes nothing."""
    text = f"a:\n  b: {style}\n    last words"
    assert read(text + "\n") == read(text)


def test_crlf_ends_a_line_as_lf_does() -> None:
    """A file from Windows says the same, in the same places."""
    text = "a: |\n  one\n  two\nb:\n  - 'x\n    y'\n  - z\n"
    assert read_document(text) == read_document(text.replace("\n", "\r\n"))


def test_a_bom_is_no_part_of_the_text() -> None:
    """And moves nothing."""
    assert read_document("a: 1\n") == read_document(f"{BOM}a: 1\n")


# Places.


def test_every_value_knows_its_line_and_column() -> None:
    """Counted from 1, in characters: an emoji is one column."""
    text = "# top\ncustomModes:\n  - slug: a\n    🚀🚀: [x, {y: 1}]\n"
    flow = Items(
        [
            Scalar("x", 4, 10),
            Fields({"y": (Scalar("y", 4, 14), Scalar(1, 4, 17))}, 4, 13, [], 3),
        ],
        4,
        9,
        5,
    )
    mode = Fields(
        {"slug": (Scalar("slug", 3, 5), Scalar("a", 3, 11)), "🚀🚀": (Scalar("🚀🚀", 4, 5), flow)}, 3, 5, [], 9
    )
    root = Fields({"customModes": (Scalar("customModes", 2, 1), Items([mode], 3, 3, 10))}, 2, 1, [], 12)
    assert Document(root, []) == read_document(text)


@pytest.mark.parametrize("sample", ["\x85", "\u2028", "\u2029", "\r", "\x0b", "\x0c"])
def test_what_ends_no_line_moves_no_line(sample: str) -> None:
    """Even though other programs take it for the end of one."""
    root = read_document(f"a: 'x{sample}y' \nb: 1\n").root
    assert isinstance(root, Fields)
    assert (Scalar("b", 2, 1), Scalar(1, 2, 4)) == root.fields["b"]


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ("a: 1\nb: [1, 2\n", 3, 1),
        ("a: 1\nb: c: d\n", 2, 5),
        ("a: 1\n---\nb: 2\n", 2, 1),
        ("a: *nobody\n", 1, 4),
        ("a:\n  - &b [1, *b]\n", 2, 12),
        ("🚀: @x\n", 1, 4),
        ("a: b\r\nc: d: e\r\n", 2, 5),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_place(text: str, line: int, column: int) -> None:
    """In the text as it was written."""
    assert (line, column) == refusal(text)[1:]


# Repairs.


def test_a_valid_text_is_never_repaired() -> None:
    """Although each of the repairs would find something to do."""
    text = "a: “quoted” – 👩\u200d💻\nb: |\n  x\n\t\n  '\\ud83d\\ude80'\n".replace("\n\t\n", "\n  \t\n")
    assert read(text) == {"a": "“quoted” – 👩\u200d💻", "b": "x\n\t\n'\\ud83d\\ude80'\n"}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("-\ta\n-\tb\n", ["a", "b"]),
        ("- \ta\n- \tb\n", ["a", "b"]),
        ("a:\n  - x: 1\n\t\n  - x: 2\n", {"a": [{"x": 1}, {"x": 2}]}),
        ("a: [‘b: c’, ‘d’]\nx: {“y: z”: 1}\n", {"a": ["b: c", "d"], "x": {"y: z": 1}}),
    ],
    ids=["tab for a blank", "tab after a blank", "line of tabs", "typographic quotes"],
)
def test_what_an_editor_or_a_web_page_did_to_a_text_is_undone(text: str, value: object) -> None:
    """Such a text either says this as it is, or it is repaired."""
    assert value == plain(read_document(text).root)


def test_a_repair_is_owned_up_to() -> None:
    """So that a person can be told; and it moves nothing to another line."""
    document = read_document("a: {b: 1,\n  c: [“: ”]}\nd: ‘: ’\n")
    assert isinstance(document.root, Fields)
    assert (["typographic quotes, dashes and spaces"], Scalar(": ", 3, 4)) == (
        document.repairs,
        document.root.fields["d"][1],
    )


def test_a_text_beyond_repair_is_refused_as_it_was_written() -> None:
    """The place of the first reading, not of the last."""
    text = "a: 1\nb: [\u200b\u200b“x” 1\nc: d: e\n"
    with pytest.raises(yaml.MarkedYAMLError) as caught:
        list(yaml.parse(text, Loader=yaml.CLoader))
    mark = caught.value.problem_mark
    assert mark is not None
    assert (mark.line + 1, mark.column + 1) == refusal(text)[1:]


# No harm.


@OFTEN
@given(texts | st.text())
@example("\ud800")
@example("\x00\U0010f000")
@example("a: &a [*a]")
@example("? ? ? ?")
@example("*a")
@example('"\\U00110000"')
@example('"\\ud800"')
@example("%TAG ! tag:x,2000:\n--- !!x y")
def test_any_text_is_read_or_refused(text: str) -> None:
    """Nothing else is ever raised, and a refusal names a place in the text."""
    refused: Unreadable | None = None
    try:
        read_document(text)
    except Unreadable as error:
        refused = error
    assert refused is None or (refused.message and refused.line >= 1 and refused.column >= 1)


@OFTEN
@given(texts)
def test_what_is_read_can_be_written_as_utf_8(text: str) -> None:
    """Every text of a mode goes to a client: half of a surrogate pair must not get that far."""
    try:
        root = read_document(text).root
    except Unreadable:
        return
    assert json.dumps(plain(root), ensure_ascii=False).encode()


@pytest.mark.parametrize("opening", ["[", "{a: ", "- ", "? ", "[{a: "])
@pytest.mark.parametrize("depth", [documents.DEPTH_LIMIT + 1, 100_000])
def test_nesting_without_end_is_refused(opening: str, depth: int) -> None:
    """Without exhausting any stack, Python's or C's."""
    assert refusal(opening * depth)[0]


def test_nesting_up_to_the_limit_is_read() -> None:
    """No mode needs a tenth of it."""
    found = read("[" * documents.DEPTH_LIMIT + "]" * documents.DEPTH_LIMIT)
    for _ in range(documents.DEPTH_LIMIT - 1):
        (found,) = found
    assert found == []


def test_an_alias_bomb_is_refused() -> None:
    """Nine lines that would be a billion values."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    assert "alias" in refusal("\n".join(lines))[0]


def test_a_long_list_of_one_alias_is_read() -> None:
    """Sharing is what aliases are for."""
    assert read("a: &a x\nb: [" + "*a, " * 1000 + "]") == {"a": "x", "b": ["x"] * 1000}


def test_more_values_than_any_file_needs_are_refused() -> None:
    """However they are written."""
    assert refusal("[" + "1," * (documents.SIZE_LIMIT + 1) + "]")[0]
