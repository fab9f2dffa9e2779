"""What the proofs and benchmarks share: options, progress, verdicts, tables, JSON, and the exit code.

A script measures or breaks something, fills a Struct of its own, and hands it to `emit` with what it found out. The
exit code is 0 if every promise was kept, 1 if one was broken, 2 if the script could not do its work or
was interrupted.
"""

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

import msgspec
from msgspec import Struct

if TYPE_CHECKING:
    from rich.progress import Progress as Bar

WORDS: Final = {True: "kept", False: "BROKEN", None: "skipped"}


class Verdict(Struct, frozen=True):
    """Whether a promise is kept; None where that cannot be found out here."""

    promise: str
    found: str
    kept: bool | None


class Section(Struct, frozen=True):
    """A table of the summary."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    left: int = 1
    """How many of the columns are words."""


class Options(Struct, frozen=True, kw_only=True):
    """What every script can be told."""

    duration: float
    seed: int
    json: bool
    svg: Path | None


def options_parser(description: str, *, duration: float, repeats: str = "what is drawn") -> argparse.ArgumentParser:
    """A parser with the common options. `duration`: seconds, by default. `repeats`: what a seed does."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument(
        "--duration", type=_seconds, default=duration, metavar="SECONDS", help=f"how long (default: {duration:g})"
    )
    parser.add_argument("--seed", type=int, metavar="N", help=f"to repeat {repeats} (default: another each time)")
    parser.add_argument("--json", action="store_true", help="one JSON value on stdout instead of tables")
    parser.add_argument("--svg", type=Path, metavar="FILE", help="draw a chart")
    return parser


def common_options(parsed: argparse.Namespace) -> Options:
    seed = parsed.seed if parsed.seed is not None else time.time_ns() % 2**32
    return Options(duration=parsed.duration, seed=seed, json=parsed.json, svg=parsed.svg)


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0 < seconds < 10**9:
        raise argparse.ArgumentTypeError("must be above 0")
    return seconds


class Progress:
    """A bar on a terminal, nothing elsewhere. Always on stderr: stdout is for the result."""

    def __init__(self, what: str, total: float, *, shown: bool | None = None) -> None:
        self._what, self._total = what, total
        self._shown = sys.stderr.isatty() if shown is None else shown
        self._bar: Bar | None = None

    def __enter__(self) -> Self:
        if self._shown:
            from rich.console import Console
            from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
            from rich.progress import Progress as Bar

            columns = (
                TextColumn("{task.description}"),
                BarColumn(),
                TimeRemainingColumn(),
                TextColumn("{task.fields[said]}"),
            )
            # Drawn when there is news and at no other time: a thread of its own would show in what is measured.
            self._bar = Bar(*columns, console=Console(stderr=True), transient=True, auto_refresh=False)
            self._bar.start()
            self._task = self._bar.add_task(self._what, total=self._total, said="")
        return self

    def show(self, done: float, said: str = "") -> None:
        """How far it is, in the unit of the total, and a few words about it."""
        if self._bar is not None:
            self._bar.update(self._task, completed=done, said=said, refresh=True)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()


def emit(report: Struct, sections: Sequence[Section], verdicts: Sequence[Verdict], *, as_json: bool) -> int:
    """Print the report, and return the exit code that the verdicts come to."""
    if as_json:
        print(msgspec.json.format(msgspec.json.encode(report)).decode())
    else:
        judged = Section(
            ("verdict", "promise", "found"), [(WORDS[each.kept], each.promise, each.found) for each in verdicts], left=3
        )
        print("\n\n".join(table(each) for each in (*sections, judged)))
    return 1 if any(verdict.kept is False for verdict in verdicts) else 0


def first_of(error: BaseException) -> BaseException:
    """Of a group that `except*` has caught, one exception. Raise it, or what it means, only after that statement:

    Python before 3.11.4 makes a group of whatever is raised in one.
    """
    return first_of(error.exceptions[0]) if isinstance(error, BaseExceptionGroup) else error


def interruptible(main: Callable[[], int]) -> int:
    """What `main` returns; if Ctrl-C ends it, 2, and a line instead of a traceback: no promise was found broken."""
    try:
        return main()
    except KeyboardInterrupt:
        pass
    except BaseExceptionGroup as group:
        if group.subgroup(KeyboardInterrupt) is None:
            raise  # otherwise the rest is what came of the interruption
    print("Interrupted.", file=sys.stderr)
    return 2


def table(section: Section, *, markdown: bool = False) -> str:
    """Aligned columns: words to the left, numbers to the right."""
    header, rows, left = section.header, section.rows, section.left
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    last = ":" if markdown else "-"
    rule = ["-" * (width - 1) + ("-" if index < left else last) for index, width in enumerate(widths)]
    lines = [
        [cell.ljust(width) if index < left else cell.rjust(width) for index, (cell, width) in enumerate(cells)]
        for cells in (list(zip(row, widths, strict=True)) for row in (header, rule, *rows))
    ]
    return "\n".join(f"| {' | '.join(line)} |" if markdown else "   ".join(line).rstrip() for line in lines)
