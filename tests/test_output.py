"""What commands say: to a terminal, to a pipe, as JSON; on streams that know less than they should."""

import io
import json
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Struct
from rich.cells import cell_len

from modes_actor.cli.output import Output, Styled, Words
from tests.process import Process, Wire, program

REPEATABLE = settings(derandomize=True, database=None, deadline=None, max_examples=200)

COLOUR = re.compile(r"\x1b\[(?:3[0-7]|9[0-7])m")
ESCAPE = re.compile(r"\x1b\[[0-9;]*m")
OBEYED = {*map(chr, (*range(9), *range(11, 32), *range(0x7F, 0xA0))), *"\u202a\u202b\u202c\u202d\u202e\u2066\u2069"}
COLUMNS = ["slug", "name", "groups"]
ROWS: list[list[Words]] = [
    [Styled("architect", "name"), "🏗️ Architect", "read, edit (\\.md$), browser, mcp, modes"],
    [Styled("orchestrator", "name"), "🪃 Orchestrator", "modes"],
]


class Terminal(io.StringIO):
    """What a person sees."""

    def isatty(self) -> bool:
        return True


def at_terminal(say: Callable[[Output], object], *, columns: int = 200, **environment: str) -> str:
    """What is shown, with its escape sequences."""
    stream = Terminal()
    say(Output(stream, environment={"TERM": "xterm-256color", "COLUMNS": str(columns), **environment}))
    return stream.getvalue()


def piped(say: Callable[[Output], object]) -> str:
    stream = io.StringIO()
    say(Output(stream, environment={"TERM": "xterm-256color"}))
    return stream.getvalue()


def shown(say: Callable[[Output], object], *, columns: int = 200) -> list[str]:
    """The lines that a person reads at a terminal, without trailing blanks."""
    return [line.rstrip() for line in ESCAPE.sub("", at_terminal(say, columns=columns)).splitlines()]


def the_table(output: Output) -> None:
    output.table(COLUMNS, ROWS)


# A terminal.


def test_a_terminal_gets_colours() -> None:
    """In a table, in a line, in a text."""

    def says(output: Output) -> None:
        the_table(output)
        output.line(Styled("good", "good"), " news")
        output.text("✓ read\n")

    coloured = [line for line in at_terminal(says).splitlines() if COLOUR.search(line)]
    assert [ESCAPE.sub("", line).split()[0] for line in coloured] == ["architect", "orchestrator", "good", "✓"]


def test_who_wants_no_colour_gets_none() -> None:
    """`NO_COLOR` leaves the table a table."""
    plain = at_terminal(the_table, NO_COLOR="1")
    assert COLOUR.search(plain) is None
    assert ESCAPE.sub("", plain) == ESCAPE.sub("", at_terminal(the_table))


def test_a_dumb_terminal_gets_what_a_pipe_gets() -> None:
    """It would show escape sequences as they are."""
    assert at_terminal(the_table, TERM="dumb") == piped(the_table)


def test_a_line_longer_than_the_terminal_is_left_to_the_terminal() -> None:
    """So that it is copied as one line."""
    assert shown(lambda output: output.line("word " * 40, "end"), columns=30) == ["word " * 40 + "end"]


@pytest.mark.parametrize("columns", [48, 60, 80, 200])
def test_the_first_column_of_a_table_is_never_folded(columns: int) -> None:
    """The others are, as far as that can be read."""
    heading, _, *lines = shown(the_table, columns=columns)
    assert heading.split() == COLUMNS
    assert [line.split()[0] for line in lines if not line.startswith(" ")] == ["architect", "orchestrator"]
    assert max(map(cell_len, lines)) <= columns


@pytest.mark.parametrize("columns", [10, 30])
def test_where_there_is_no_room_for_a_table_each_row_is_a_paragraph(columns: int) -> None:
    """Nobody reads a column of three letters."""
    assert shown(the_table, columns=columns) == [
        "architect",
        "  name    🏗️ Architect",
        "  groups  read, edit (\\.md$), browser, mcp, modes",
        "",
        "orchestrator",
        "  name    🪃 Orchestrator",
        "  groups  modes",
    ]


def the_files(output: Output) -> None:
    path = "/home/somebody/.config/Code/User/globalStorage/settings/mcp_settings.json"
    output.table(["client", "file", "registered"], [["roo", path, "no, and it is a long story why that is so"]])


def test_a_path_is_never_folded() -> None:
    """It is there to be copied: what can be folded is, between its words."""
    path = "/home/somebody/.config/Code/User/globalStorage/settings/mcp_settings.json"
    assert shown(the_files, columns=100) == [
        "client  file" + " " * 71 + "registered",
        "─" * 99,
        f"roo     {path}  no, and it is a",
        " " * 83 + "long story why",
        " " * 83 + "that is so",
    ]


@pytest.mark.parametrize("columns", [60, 80])
def test_where_a_path_would_have_to_be_folded_each_row_is_a_paragraph(columns: int) -> None:
    """The terminal breaks it where it must, and it is copied as one."""
    assert shown(the_files, columns=columns) == [
        "roo",
        "  file        /home/somebody/.config/Code/User/globalStorage/settings/mcp_settings.json",
        "  registered  no, and it is a long story why that is so",
    ]


def test_a_paragraph_leaves_out_what_is_empty() -> None:
    """There is no column whose place it would have to keep."""
    say = lambda output: output.table(COLUMNS, [["code", Styled("", "dim"), "read"]])  # noqa: E731
    assert shown(say, columns=10) == ["code", "  groups  read"]


def test_a_table_without_rows_is_its_headings() -> None:
    """On a terminal and in a pipe."""
    for say in (shown, lambda nothing: piped(nothing).splitlines()):
        assert say(lambda output: output.table(["a", "b"], []))[0].lower().split() == ["a", "b"]


# A pipe.


def test_a_pipe_gets_aligned_text() -> None:
    """Two blanks between columns, headings in capitals, nothing at the ends of lines."""
    assert piped(the_table).splitlines() == [
        "SLUG          NAME             GROUPS",
        "architect     🏗️ Architect     read, edit (\\.md$), browser, mcp, modes",
        "orchestrator  🪃 Orchestrator  modes",
    ]


@pytest.mark.parametrize(
    "name",
    ["plain", "📝 Docs", "🏗️", "👩‍💻 Dev", "日本語", "e\u0301te\u0301", "ｗｉｄｅ", "❓", ""],
    ids=["plain", "emoji", "emoji by selector", "joined emoji", "wide", "combining", "full width", "sign", "empty"],
)
def test_columns_stay_aligned_whatever_is_in_them(name: str) -> None:
    """Counted in columns of a terminal, not in characters."""
    heading, row = piped(lambda output: output.table(["name", "next"], [[name, "next"]])).splitlines()
    assert cell_len(row.removesuffix("next")) == cell_len(heading.removesuffix("NEXT")) == max(4, cell_len(name)) + 2


def test_facts_begin_in_one_column() -> None:
    """A label may have wide characters, too."""
    facts: list[tuple[str, Words]] = [("rule", "group edit"), ("🏗️ in", Styled("a\nb", "dim")), ("x", "")]
    assert piped(lambda output: output.facts(facts)) == "rule   group edit\n🏗️ in  a b\nx      \n"
    assert piped(lambda output: output.facts([])) == ""


# What must not be obeyed.

SAYS: dict[str, Callable[[Output, str], None]] = {
    "line": lambda output, text: output.line(text, Styled(text, "name")),
    "cell": lambda output, text: output.table(["a", text], [[text, Styled(text, "name")]]),
    "fact": lambda output, text: output.facts([(text, text)]),
    "text": lambda output, text: output.text(text),
}
each_way = pytest.mark.parametrize("say", SAYS.values(), ids=SAYS)


@each_way
@pytest.mark.parametrize("text", ["[red]Docs[/red]", "[/]", ":smile:", "[link=x]y", "\\[bold]"])
def test_markup_is_shown_as_it_is(say: Callable[[Output, str], None], text: str) -> None:
    """A mode may be called whatever its author likes."""
    assert text in "\n".join(shown(lambda output: say(output, text)))
    assert text in piped(lambda output: say(output, text))


@each_way
@REPEATABLE
@given(text=st.text(st.sampled_from("a \n\t\r\x1b[31m]0;\x07\x08\x9b\x7f\x00\u202e\u2066é🏗\ufe0f\u200d"), max_size=30))
def test_no_text_makes_a_terminal_do_anything(say: Callable[[Output, str], None], text: str) -> None:
    """Modes and messages are other people's; nothing but our own colours gets through."""
    assert not OBEYED & set(piped(lambda output: say(output, text)))
    assert not OBEYED & set(ESCAPE.sub("", at_terminal(lambda output: say(output, text))))


def test_escape_sequences_leave_a_mark() -> None:
    """So that a person sees that there is something."""
    assert piped(lambda output: output.line("a\x1b[31mb\r\nc\rd\te")) == "a�[31mb\nc�d\te\n"


def test_a_note_is_as_harmless(capfd: pytest.CaptureFixture[str]) -> None:
    """It goes to stderr, which is mostly a terminal."""
    Output(io.StringIO()).note("a\x1b]0;title\x07b")
    assert capfd.readouterr() == ("", "a�]0;title�b\n")


def test_a_cell_is_one_line() -> None:
    """A row of a table must stay a row."""
    say = lambda output: output.table(["a", "b"], [["one\ntwo", "three\r\n\tfour"]])  # noqa: E731
    assert piped(say).splitlines()[1:] == ["one two  three  four"]
    assert shown(say)[2:] == ["one two  three  four"]


# JSON.


class Named(Struct, rename="camel", omit_defaults=True):
    mode_slug: str
    text: str | None = None


def test_json_is_one_value() -> None:
    """Indented, with Structs as they go over the wire."""
    said = piped(lambda output: output.json([Named("🏗️"), {"a": []}]))
    assert said == '[\n  {\n    "modeSlug": "🏗️"\n  },\n  {\n    "a": []\n  }\n]\n'


@pytest.mark.parametrize("encoding", ["utf-8", "ascii", "latin-1", "cp1252"])
@pytest.mark.parametrize("text", ["🏗️ [red]", "\x1b[31m\x9b\x7f\u202e\r\n", "ü", "\udc80", '"\\u001b"'])
def test_json_keeps_every_text_on_every_stream(text: str, encoding: str) -> None:
    """A program must get what is there, and its terminal nothing to obey."""
    stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    Output(stream, as_json=True).json({"text": text})
    stream.seek(0)
    said = stream.read()
    assert json.loads(said) == {"text": text}
    assert not OBEYED & set(said)


# Streams.


def test_a_stream_that_knows_no_emoji_gets_the_rest() -> None:
    """A question mark instead of a crash."""
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    output = Output(stream, environment={})
    the_table(output)
    output.line("✓ é")
    stream.seek(0)
    assert stream.read().splitlines()[2:] == ["orchestrator  ? Orchestrator  modes", "? ?"]


REPORTS_RICH = """
import sys
from modes_actor.cli import main
main(["modes"])
print("rich" in sys.modules, file=sys.stderr)
"""


def test_rich_is_not_loaded_for_a_pipe(tmp_path: Path) -> None:
    """Nobody pays for colours that nobody sees."""
    with Process(program(REPORTS_RICH), environment={"HOME": str(tmp_path)}) as process:
        assert process.wire.rest().startswith(b"SLUG")
        assert process.finish() == (0, [], "False\n")


@pytest.mark.skipif(sys.platform == "win32", reason="terminals of POSIX")
def test_rich_draws_on_a_real_terminal(tmp_path: Path) -> None:
    """As wide as that is."""
    import pty

    near, far = pty.openpty()
    environment = {"HOME": str(tmp_path), "TERM": "xterm", "COLUMNS": "70", "NO_COLOR": ""}
    with Process(program(REPORTS_RICH), stdout=far, environment=environment) as process:
        os.close(far)
        said = Wire(reads=near, writes=near).rest().decode()
        assert process.finish() == (0, [], "True\n")
    os.close(near)
    assert COLOUR.search(said) is not None
    lines = ESCAPE.sub("", said).splitlines()
    assert lines[0].split() == ["slug", "name", "groups", "source", "defined", "in"]
    assert max(map(cell_len, lines)) <= 70
