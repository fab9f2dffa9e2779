"""One member of a JSON file with comments, set or removed, and every other character left as it is.

Each edit is checked before it is given out: the new text must mean what the old one meant, with just that change. What
cannot be edited so raises `CannotEdit`; nothing is ever guessed. Files and clients are not known here.
"""

import json
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

from msgspec import Struct

from modes_actor.jsonc import JsonMember, JsonObject, line_of, object_at, plain_json, without_comments

_KINDS: Final = {"[": "an array", '"': "a string", "t": "true", "f": "false", "n": "null"}
_INDENT: Final = "  "
"""For files that do not show how they are indented."""


class CannotEdit(Exception):
    """A sentence for people: what is in the way, and what was expected. `line` counts from 1."""

    def __init__(self, reason: str, *, line: int | None = None) -> None:
        super().__init__(reason if line is None else f"line {line}: {reason}")
        self.reason = reason
        self.line = line


class _Layout(Struct, frozen=True):
    newline: str
    """Empty where all must stay on one line."""
    unit: str


def set_member(text: str, path: Sequence[str], value: object) -> str:
    """The text with the member at `path` set to `value`, in its old place or as the last of its object.

    Missing objects on the way are made; a text without a value becomes an object. A member that has that value already
    is left as it is written.
    """
    if not path:
        raise ValueError("a member has a path")
    wanted = parsed(text)
    if wanted is None:
        wanted = {}
        edited = _first_object(text, path, value)
    else:
        found, depth, member = _locate(text, path)
        if member is not None and _same(json.loads(plain_json(text[member.value : member.end])), value):
            return text
        edited = _replace(text, member, value) if member else _append(text, found, path[depth:], value)
    _put(wanted, path, value)
    return _checked(edited, wanted)


def remove_member(text: str, path: Sequence[str]) -> str:
    """The text without the member at `path`, and without its other copies if the key is there more than once.

    Comments and the objects around it stay, even if they are empty now: as `{}`. What is not there need not be removed.
    """
    if not path:
        raise ValueError("a member has a path")
    wanted = parsed(text)
    if wanted is None:
        return text
    edited = text
    while True:
        found, _, member = _locate(edited, path)
        if member is None:
            break
        edited = _cut(edited, found, member)
    if edited == text:
        return text
    parent = wanted
    for key in path[:-1]:
        parent = parent[key]
    del parent[path[-1]]
    return _checked(edited, wanted)


def parsed(text: str) -> Any:
    """What the text means; None if there is nothing in it but blanks and comments.

    Raises `CannotEdit` unless it is one JSON object.
    """
    plain = plain_json(text)
    if not plain.strip():
        return None
    try:
        value = json.loads(plain, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        raise CannotEdit(f"this is not JSON: {error.msg}; mend it and try again", line=error.lineno) from None
    except (ValueError, RecursionError) as error:
        raise CannotEdit(f"this is not JSON that can be edited: {error}") from None
    if not isinstance(value, dict):
        at = len(plain) - len(plain.lstrip())
        raise CannotEdit(f"expected an object here, found {_kind(plain, at)}", line=line_of(plain, at))
    return value


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON value")


def _locate(text: str, path: Sequence[str]) -> tuple[JsonObject, int, JsonMember | None]:
    """The deepest object there is on the path, how many steps lead to it, and the member if the path ends in it."""
    clean, found = _root(text)
    for depth, key in enumerate(path):
        member = found.last(key)
        if member is None or depth == len(path) - 1:
            return found, depth, member
        if clean[member.value] != "{":
            what = f'"{key}" should be an object, but it is {_kind(clean, member.value)}'
            raise CannotEdit(what, line=line_of(clean, member.value))
        found = object_at(clean, member.value)
    raise AssertionError("the loop ends at the last step")


@lru_cache(maxsize=1)
def _root(text: str) -> tuple[str, JsonObject]:
    """The text without comments, and its object. Each edit asks several times, and files may be large."""
    clean = without_comments(text)
    return clean, object_at(clean, clean.index("{"))


def _replace(text: str, member: JsonMember, value: object) -> str:
    old = text[member.value : member.end]
    on_lines = "\n" in old or not old.startswith(("{", "[")) or old.strip("{[]} \t") == ""
    layout = _layout(text)
    if not (on_lines and _starts_line(text, member.start)):
        layout = _Layout("", "")
    written = _written(value, layout, _indent_at(text, member.start))
    return text[: member.value] + written + text[member.end :]


def _append(text: str, found: JsonObject, path: Sequence[str], value: object) -> str:
    """A new last member. What stands before the closing bracket, comments too, stays before the new member."""
    inside = text[found.open + 1 : found.close]
    layout = _layout(text)
    here = _indent_at(text, found.open)
    anchor = found.open + 1 + len(inside.rstrip(" \t\r\n"))
    last = found.members[-1] if found.members else None
    on_lines = bool(layout.newline) and ("\n" in inside or last is None)
    indent = next((_indent_at(text, m.start) for m in reversed(found.members) if _starts_line(text, m.start)), None)
    if indent is None:
        indent = here + layout.unit
    layout = layout if on_lines else _Layout("", "")
    trailing = "," if last is not None and last.comma is not None else ""
    key = json.dumps(path[0], ensure_ascii=False)
    member = f"{key}: {_written(_nested(path[1:], value), layout, indent)}{trailing}"
    before = layout.newline + indent if on_lines else " " if last or inside.strip() else ""
    after = text[anchor:]
    if on_lines and "\n" not in text[anchor : found.close]:
        after = layout.newline + here + text[found.close :]
    head = text[:anchor]
    if last is not None and last.comma is None:
        head = text[: last.end] + "," + text[last.end : anchor]
    return head + before + member + after


def _cut(text: str, found: JsonObject, member: JsonMember) -> str:
    """Out with a member and one comma: its own, or else that of the member before it."""
    at = found.members.index(member)
    start, end = member.start, member.end if member.comma is None else member.comma + 1
    if member.comma is not None and text[member.end : member.comma].strip():  # a comment between them stays
        text = text[: member.comma] + text[member.comma + 1 :]
        end = member.end
    rest = re.compile(r"[ \t]*(\r\n|\n|\r)?").match(text, end)
    assert rest is not None  # it matches nothing at least
    if _starts_line(text, start) and rest[1]:
        start -= len(_indent_at(text, start))
        end = rest.end()
    elif member.comma is not None and at + 1 < len(found.members):
        end = rest.end(0) - len(rest[1] or "")
    else:
        before = text[:start].rstrip(" \t")
        start = len(before) if before.endswith((",", "{")) else start
    if len(found.members) == 1 and not (text[found.open + 1 : start] + text[end : found.close]).strip():
        return text[: found.open + 1] + text[found.close :]
    text = text[:start] + text[end:]
    if member.comma is None and at > 0:
        comma = found.members[at - 1].comma
        assert comma is not None  # a member follows it
        text = text[:comma] + text[comma + 1 :]
    return text


def _first_object(text: str, path: Sequence[str], value: object) -> str:
    newline = _newline(text) or "\n"
    written = _written(_nested(path, value), _Layout(newline, _INDENT), "")
    mark = "\ufeff" if text.startswith("\ufeff") else ""
    comments = text[len(mark) :].rstrip()
    if not comments:
        return mark + written + newline
    return mark + comments + newline + written + text[len(mark) + len(comments) :]


def _written(value: object, layout: _Layout, indent: str) -> str:
    """As people write it: an object's members on lines of their own, an array of plain values on one."""
    inner = indent + layout.unit
    if isinstance(value, dict) and value and layout.newline:
        items = [f"{json.dumps(k, ensure_ascii=False)}: {_written(v, layout, inner)}" for k, v in value.items()]
        brackets = "{}"
    elif isinstance(value, list) and layout.newline and any(isinstance(item, dict | list) for item in value):
        items = [_written(item, layout, inner) for item in value]
        brackets = "[]"
    else:
        return json.dumps(value, ensure_ascii=False)
    lines = f",{layout.newline}".join(inner + item for item in items)
    return brackets[0] + layout.newline + lines + layout.newline + indent + brackets[1]


def _nested(path: Sequence[str], value: object) -> object:
    for key in reversed(path):
        value = {key: value}
    return value


def _layout(text: str) -> _Layout:
    clean, root = _root(text)
    newline = _newline(text)
    if not newline and not root.members:
        newline = "\n"  # `{}`: nothing says that it must stay on one line
    for member in root.members:
        if _starts_line(text, member.start):
            return _Layout(newline, _indent_at(text, member.start).removeprefix(_indent_at(text, root.open)))
    return _Layout(newline if "\n" in clean[root.open : root.close] or not root.members else "", _INDENT)


def _newline(text: str) -> str:
    found = re.search(r"\r\n|\n", text)
    return found[0] if found else ""


def _line_start(text: str, at: int) -> int:
    return max(text.rfind("\n", 0, at), text.rfind("\r", 0, at)) + 1


def _indent_at(text: str, at: int) -> str:
    """The blanks that the line of this offset begins with."""
    line = text[_line_start(text, at) : at].removeprefix("\ufeff")
    return line[: len(line) - len(line.lstrip(" \t"))]


def _starts_line(text: str, at: int) -> bool:
    start = _line_start(text, at)
    return start > 0 and not text[start:at].strip(" \t")


def _put(root: dict[str, Any], path: Sequence[str], value: object) -> None:
    for key in path[:-1]:
        root = root.setdefault(key, {})
    root[path[-1]] = value


def _same(one: object, other: object) -> bool:
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def _checked(edited: str, wanted: object) -> str:
    if json.dumps(parsed(edited)) != json.dumps(wanted):  # as text, for 1 == True
        raise CannotEdit("the edit would have changed something else in this file; please make it by hand")
    return edited


def _kind(clean: str, at: int) -> str:
    return _KINDS.get(clean[at], "a number")
