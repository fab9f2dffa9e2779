"""The change of a text as a unified diff for a person: quick for large texts, and never wider than can be read."""

import difflib
import re
from collections.abc import Iterator, Sequence
from itertools import groupby, zip_longest
from typing import Final

CONTEXT: Final = 3
WIDTH: Final = 1000
"""Characters of a line. Of longer ones, as of files that are one line, what changed is shown between two `…`."""
_AROUND: Final = 80
_HUNK: Final = re.compile(r"@@ -(\d+)(.*) \+(\d+)(.*) @@\n")


def unified(before: str, after: str, old: str, new: str) -> str:
    """From the file `old` to the file `new`; empty if there is no change.

    Without the carriage returns at the ends of lines, which a terminal would obey.
    """
    # Only what is between the first and the last change is compared: all else may be very long.
    start = same = _common(before, after)
    for _ in range(CONTEXT + 1):
        start = before.rfind("\n", 0, max(0, start - 1)) + 1
    tail = before[len(before) - _common(before[same:][::-1], after[same:][::-1]) :]
    kept = 0
    for _ in range(CONTEXT + 1):
        kept = tail.find("\n", kept) + 1 or len(tail)
    rest = len(tail) - kept
    ours, theirs = (_lines(text[start : len(text) - rest]) for text in (before, after))
    head = before.count("\n", 0, start)
    lines = _readable([*difflib.unified_diff(ours, theirs, old, new, n=CONTEXT)], head)
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def _readable(lines: Sequence[str], head: int) -> Iterator[str]:
    """With the numbers that lines have in the whole text, and with long lines shortened."""
    yield from lines[:2]
    for mark, group in groupby(lines[2:], key=lambda line: line[0] if line[0] in "@ " else "change"):
        if mark == "@":
            yield from (_renumbered(line, head) for line in group)
        elif mark == " ":
            yield from (_shortened(line, 0, len(line)) for line in group)
        else:
            yield from _changed([*group])


def _changed(lines: Sequence[str]) -> Iterator[str]:
    """Lines that went, each with the one that came in its place."""
    gone, come = ([line for line in lines if line[0] == mark] for mark in "-+")
    shown: dict[str, list[str]] = {"-": [], "+": []}
    for pair in zip_longest(gone, come, fillvalue=""):
        start = 1 + _common(pair[0][1:], pair[1][1:])
        end = _common(pair[0][start:][::-1], pair[1][start:][::-1])
        for line in filter(None, pair):
            shown[line[0]].append(_shortened(line, start, len(line) - end))
    yield from shown["-"]
    yield from shown["+"]


def _shortened(line: str, start: int, end: int) -> str:
    """What is between two offsets, and a little around it."""
    body = line.rstrip("\r\n")
    if len(body) <= WIDTH:
        return re.sub(r"\r$", "", line, flags=re.MULTILINE)
    first = max(1, start - _AROUND)
    last = min(len(body), end + _AROUND, first + WIDTH)
    before, after = "…" if first > 1 else "", "…" if last < len(body) else ""
    return line[0] + before + body[first:last] + after + ("\n" if line.endswith("\n") else "")


def _renumbered(hunk: str, head: int) -> str:
    found = _HUNK.fullmatch(hunk)
    assert found is not None  # so the library writes them
    return f"@@ -{int(found[1]) + head}{found[2]} +{int(found[3]) + head}{found[4]} @@\n"


def _common(one: Sequence[str], other: Sequence[str]) -> int:
    """How long they are the same from the beginning. By halves, as to compare at once is much quicker."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _lines(text: str) -> list[str]:
    return re.findall(r"[^\n]*\n|[^\n]+\Z", text)
