"""JSON with comments and trailing commas, as editors and people write it: made plain, and where its members stand.

`plain_json` and `without_comments` promise that their result is as long as their argument and has its line ends where
they were, so that the offset, line and column a decoder complains about are those of the file. They know nothing of
JSON beyond strings, comments, commas and closing brackets: whether the rest is JSON is for the decoder to say.
"""

import json
import re
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

_A_STRING: Final = r'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)'
"""To the end of the text if nothing closes it: what looks like a comment in it is none."""
_STRING: Final = re.compile(_A_STRING, re.DOTALL)
_PIECES: Final = re.compile(
    _A_STRING
    + r"""
    | //[^\r\n]*
    | /\*(?:.*?\*/|.*)                # to the end of the text if nothing closes it
    | ,
    | [\]}]
    | [^\s"/,\]}]+                    # anything else that is not blank
    | /                               # no comment: left for the decoder
    """,
    re.VERBOSE | re.DOTALL,
)
_TRAILING: Final = re.compile(r",\s*[\]}]")
_NOT_LINE_END: Final = re.compile(r"[^\r\n]")
_TOKEN: Final = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\],:]|[^\s{}\[\],:"]+')


def plain_json(text: str) -> str:
    """The text with blanks for comments, trailing commas and a byte order mark. Never raises."""
    return _blank(text, commas=True)


def without_comments(text: str) -> str:
    """The text with blanks for comments and a byte order mark only. Never raises."""
    return _blank(text, commas=False)


def _is_plain(text: str) -> bool:
    """Nothing in it can be a comment or a trailing comma. Most files are such, and large ones are found so fast."""
    beside = _STRING.sub("0", text)
    return "/" not in beside and not beside.startswith("\ufeff") and _TRAILING.search(beside) is None


def _blank(text: str, *, commas: bool) -> str:
    if _is_plain(text):
        return text
    kept: list[str] = []
    done = 0
    comma: int | None = None  # where one is that a closing bracket would make trailing
    before = ""  # the last piece that was no comment: a comma straight after a bracket trails nothing
    if text.startswith("\ufeff"):
        kept.append(" ")
        done = 1
    for found in _PIECES.finditer(text, done):
        piece = found[0]
        start, end = found.span()
        if piece.startswith("//") or (piece.startswith("/*") and piece.endswith("*/") and len(piece) >= 4):
            kept += [text[done:start], _NOT_LINE_END.sub(" ", piece)]
            done = end
            continue
        if piece == "," and before and before[-1] not in "[{:,":
            comma = len(kept) + 1
            kept += [text[done:start], ","]
            done = end
        elif piece in "]}" and comma is not None and commas:
            kept[comma] = " "
            comma = None
        else:
            comma = None
        before = piece
    return "".join([*kept, text[done:]])


class JsonMember(Struct, frozen=True):
    """A member of an object, by offsets: of its key, of its value, and of the end of that."""

    key: str
    start: int
    value: int
    end: int
    comma: int | None
    """The comma after it, trailing or not."""


class JsonObject(Struct, frozen=True):
    open: int
    close: int
    members: tuple[JsonMember, ...]

    def last(self, key: str) -> JsonMember | None:
        """Of members with one key, parsers take the last."""
        return next((member for member in reversed(self.members) if member.key == key), None)


def object_at(clean: str, start: int) -> JsonObject:
    """The object that opens at `start`, in JSON that is known to be good but for trailing commas."""
    members: list[JsonMember] = []
    key: re.Match[str] | None = None
    value = end = -1
    depth = 0
    for token in _TOKEN.finditer(clean, start):
        mark = token[0]
        if depth == 1 and mark in ",}":
            if key is not None:
                comma = token.start() if mark == "," else None
                members.append(JsonMember(json.loads(key[0]), key.start(), value, end, comma))
            if mark == "}":
                return JsonObject(start, token.start(), tuple(members))
            key, value = None, -1
        elif depth == 1 and key is None:
            key = token
        elif depth == 1 and mark != ":" and value < 0:
            value = token.start()
        depth += (mark in "{[") - (mark in "}]")
        if depth == 1:
            end = token.end()
    raise AssertionError("good JSON closes its objects")


def place_of(text: str, path: Sequence[str]) -> int:
    """The offset of the member at the path, or of the last one on the way that is there. The text is good JSON."""
    clean = without_comments(text)
    at = len(clean) - len(clean.lstrip())
    here = at
    for key in path:
        if clean[here : here + 1] != "{" or (member := object_at(clean, here).last(key)) is None:
            break
        at, here = member.start, member.value
    return at


def line_of(text: str, at: int) -> int:
    """The line of an offset, counted from 1."""
    return len(re.findall(r"\r\n|\n|\r", text[:at])) + 1
