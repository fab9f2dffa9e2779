"""What commands say on stdout: tables and colours to a person at a terminal, plain text to a pipe, JSON on request.

Promises: `rich` is loaded on a terminal only; nothing that is said is taken for markup, or obeyed by the terminal; JSON
is ASCII where the stream knows no better.
"""

import json
import os
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, Literal, TextIO

import msgspec
from msgspec import Struct

from modes_actor.cli.printable import OBEYED, printable
from modes_actor.cli.stderr import tell

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

Style = Literal["good", "bad", "warn", "dim", "strong", "name"]
_STYLES: Final[Mapping[Style, str]] = {
    "good": "green",
    "bad": "red",
    "warn": "yellow",
    "dim": "dim",
    "strong": "bold",
    "name": "cyan",
}

_MARKS: Final[Mapping[str, Style]] = {"✓ ": "good", "✗ ": "dim"}

_GAP: Final = 2
"""Blanks between two columns."""
_NARROW: Final = 10
"""A column that would have to be narrower than this, and than its content, is no column any more, even if its words
would fit."""


class Styled(Struct, frozen=True):
    """Text in a colour, where there are colours."""

    text: str
    style: Style


Words = str | Styled


class Output:
    """Where a command writes. With `as_json` it should say one JSON value and nothing else."""

    def __init__(self, stream: TextIO, *, as_json: bool = False, environment: Mapping[str, str] | None = None) -> None:
        self._environment = os.environ if environment is None else environment
        self.as_json = as_json
        self.is_rich = stream.isatty() and self._environment.get("TERM") != "dumb"
        self._stream = stream
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # a terminal that knows no emoji is no reason to fail

    def line(self, *words: Words) -> None:
        """One line, of words with their styles one after the other."""
        if self.is_rich:
            self._console.print(_text(*words), soft_wrap=True)
        else:
            print("".join(map(_plain, words)), file=self._stream)

    def table(self, columns: Sequence[str], rows: Sequence[Sequence[Words]]) -> None:
        """A table: drawn on a terminal; in a pipe columns with two blanks between them, the headings in capitals.

        Cells have one line each. The first column, which says what a row is about, is never folded, and the others only
        between words, so that a path can be copied: where there is no room for a table so, each row becomes a
        paragraph, without the cells that are empty.
        """
        columns = [_plain(_one_line(column)) for column in columns]
        cells = [[_one_line(cell) for cell in row] for row in rows]
        if not self.is_rich:
            for line in _aligned([[column.upper() for column in columns], *([*map(_plain, row)] for row in cells)]):
                print(line, file=self._stream)
        elif (widths := _fitting([columns, *([*map(_plain, row)] for row in cells)], self._console.width)) is not None:
            self._draw(columns, cells, widths)
        else:
            self._paragraphs(columns, cells)

    def facts(self, facts: Sequence[tuple[str, Words]]) -> None:
        """Labels and what there is to say about each, one line each, all beginning in the same column."""
        widest = max((_width(label) for label, _ in facts), default=0)
        for label, words in facts:
            self.line(Styled(label + " " * (widest - _width(label) + _GAP), "dim"), _one_line(words))

    def text(self, text: str) -> None:
        """Several lines as the tools tell them, with their headings and marks in the styles that these have here."""
        for line in text.removesuffix("\n").split("\n"):
            mark = _MARKS.get(line[:2])
            is_heading = line.endswith(":") and not line.startswith(" ")
            self.line(Styled(line, mark or "strong") if mark or is_heading else line)

    def note(self, sentence: str) -> None:
        """A word to a person beside the output, on stderr."""
        tell(sentence)

    def json(self, value: Any) -> None:
        """A value, Structs too, as indented JSON."""
        builtins = msgspec.to_builtins(value)
        text = OBEYED.sub(_escape, json.dumps(builtins, indent=2, ensure_ascii=False))
        try:
            text.encode(self._stream.encoding or "utf-8")
        except UnicodeEncodeError:
            text = json.dumps(builtins, indent=2)  # programs want the text, not what is left of it
        print(text, file=self._stream)

    def _draw(self, columns: Sequence[str], rows: Sequence[Sequence[Words]], widths: Sequence[int]) -> None:
        from rich import box
        from rich.table import Table

        table = Table(
            box=box.SIMPLE_HEAD, show_edge=False, padding=(0, _GAP - 1, 0, 0), pad_edge=False, header_style="bold"
        )
        for column, width in zip(columns, widths, strict=True):
            table.add_column(column, overflow="fold", width=width)
        for row in rows:
            table.add_row(*map(_text, row))
        self._console.print(table)

    def _paragraphs(self, columns: Sequence[str], rows: Sequence[Sequence[Words]]) -> None:
        for number, row in enumerate(rows):
            if number:
                self.line()
            self.line(row[0])
            others = zip(columns[1:], row[1:], strict=True)
            self.facts([(f"  {column}", cell) for column, cell in others if _plain(cell)])

    @cached_property
    def _console(self) -> "Console":
        from rich.console import Console

        has_colours = not self._environment.get("NO_COLOR")
        return Console(
            file=self._stream,
            no_color=not has_colours,
            highlight=False,
            emoji=False,
            markup=False,
            _environ=self._environment,
        )


def _plain(words: Words) -> str:
    return printable(words if isinstance(words, str) else words.text)


def _text(*words: Words) -> "Text":
    from rich.text import Text

    return Text.assemble(
        *(_plain(each) if isinstance(each, str) else (_plain(each), _STYLES[each.style]) for each in words)
    )


def _one_line(words: Words) -> Words:
    if isinstance(words, Styled):
        return Styled(" ".join(words.text.splitlines()).replace("\t", " "), words.style)
    return " ".join(words.splitlines()).replace("\t", " ")


def _escape(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}"


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = _widths(rows)
    return [
        (" " * _GAP).join(cell + " " * (width - _width(cell)) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def _widths(rows: Sequence[Sequence[str]]) -> list[int]:
    return [max(map(_width, column)) for column in zip(*rows, strict=True)]


def _fitting(rows: Sequence[Sequence[str]], room: int) -> list[int] | None:
    """How wide each column is in a table of at most that width; None if words would have to be folded."""
    most = _widths(rows)
    words = _widths([[max(cell.split(), key=_width, default="") for cell in row] for row in rows])
    widths = [max(word, min(width, _NARROW)) for word, width in zip(words, most, strict=True)]
    widths[0] = most[0]
    left = room - sum(widths) - _GAP * len(widths) + 1  # the last column has one blank behind it
    if left < 0:
        return None
    while left and (short := [number for number, width in enumerate(widths) if width < most[number]]):
        for number in short[:left]:
            widths[number] += 1
            left -= 1
    return widths


def _width(text: str) -> int:
    """Columns on a terminal."""
    return sum(_widths_of_characters(text))


def _widths_of_characters(text: str) -> Iterator[int]:
    """Wide characters take two columns, marks on another none; joined ones are drawn as one."""
    before = ""
    for char, after in pairwise([*text, ""]):
        if before == "\u200d" or char in "\u200d\ufe0f" or unicodedata.combining(char):
            yield 0
        elif after == "\ufe0f" or unicodedata.east_asian_width(char) in "WF":
            yield 2
        else:
            yield 1
        before = char
