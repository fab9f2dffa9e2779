"""What commands say on stdout: tables and colours to a person at a terminal, plain text to a pipe, JSON on request.

`rich` is loaded on a terminal only. Nothing that is said is taken for markup.
"""

import os
import unicodedata
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Literal, TextIO

import msgspec
from msgspec import Struct

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


class Styled(Struct, frozen=True):
    """Text in a colour, where there are colours."""

    text: str
    style: Style


Words = str | Styled


class Output:
    """Where a command writes. With `as_json` it should say one JSON value and nothing else."""

    def __init__(self, stream: TextIO, *, as_json: bool = False, environment: Mapping[str, str] | None = None) -> None:
        environment = os.environ if environment is None else environment
        self.as_json = as_json
        self.is_rich = stream.isatty() and environment.get("TERM") != "dumb"
        self._has_colours = not environment.get("NO_COLOR")
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
        """A table: drawn on a terminal; in a pipe columns with two blanks between them, the headings in capitals."""
        if not self.is_rich:
            for line in _aligned([[column.upper() for column in columns], *([*map(_plain, row)] for row in rows)]):
                print(line, file=self._stream)
            return
        from rich import box
        from rich.table import Table

        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold")
        for column in columns:
            table.add_column(column, overflow="fold")
        for row in rows:
            table.add_row(*map(_text, row))
        self._console.print(table)

    def note(self, sentence: str) -> None:
        """A word to a person beside the output, on stderr."""
        tell(sentence)

    def json(self, value: Any) -> None:
        """A value, Structs too, as indented JSON."""
        encoded = msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
        print(encoded, file=self._stream)

    @cached_property
    def _console(self) -> "Console":
        from rich.console import Console

        return Console(file=self._stream, no_color=not self._has_colours, highlight=False, emoji=False, markup=False)


def _plain(words: Words) -> str:
    return words if isinstance(words, str) else words.text


def _text(*words: Words) -> "Text":
    from rich.text import Text

    return Text.assemble(*(each if isinstance(each, str) else (each.text, _STYLES[each.style]) for each in words))


def _aligned(rows: list[list[str]]) -> list[str]:
    widths = [max(map(_width, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(cell + " " * (width - _width(cell)) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def _width(text: str) -> int:
    """Columns on a terminal: wide characters take two, marks on another none."""
    return sum(
        0
        if unicodedata.combining(char) or char in "\ufe0f\u200d"
        else 2
        if unicodedata.east_asian_width(char) in "WF"
        else 1
        for char in text
    )
