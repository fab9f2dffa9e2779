"""One member of a TOML file set or removed, with the rest of the file as it is. The twin of `json_edit`.

Each edit is checked before it is given out: the new text must mean what the old one meant, with just that change, else
`CannotEdit`. Only this module loads tomlkit.
"""

import re
import tomllib
from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError

from modes_actor.cli.editors.json_edit import CannotEdit


def set_member(text: str, path: Sequence[str], value: object) -> str:
    """The text with the member at `path` set to `value`, in its old place; a new table comes at the end."""
    if not path:
        raise ValueError("a member has a path")
    mark, body = _without_mark(text)
    wanted = parsed(text)
    parent = _parent(wanted, path)
    if parent is not None and path[-1] in parent and _same(parent[path[-1]], value):
        return text
    is_new_table = isinstance(value, dict) and (parent is None or path[-1] not in parent)
    _put(wanted, path, value)
    if is_new_table and value:
        appended = _appended(body, path, value)
        if _means(appended, [wanted]):
            return mark + appended
    return mark + _edited(body, lambda document: _put(document, path, value), [wanted])


def remove_member(text: str, path: Sequence[str]) -> str:
    """The text without the member at `path`. Comments stay, those after a removed table too.

    What is not there need not be removed.
    """
    if not path:
        raise ValueError("a member has a path")
    mark, body = _without_mark(text)
    wanted = parsed(text)
    parent = _parent(wanted, path)
    if parent is None or path[-1] not in parent:
        return text
    del parent[path[-1]]
    meanings = [deepcopy(wanted)]
    for length in range(len(path) - 1, 0, -1):  # a table that only the headers of others made is gone with them
        above = _parent(wanted, path[:length])
        if above is None or above[path[length - 1]]:
            break
        del above[path[length - 1]]
        meanings.append(deepcopy(wanted))

    def remove(document: Any) -> None:
        for key in path[:-1]:
            document = document[key]
        del document[path[-1]]

    edited = _edited(body, remove, meanings)
    with_comments = _with_comments_after(body, edited)
    return mark + (with_comments if _means(with_comments, meanings) else edited)


def parsed(text: str) -> dict[str, Any]:
    """What the text means. Raises `CannotEdit` if it is not TOML."""
    try:
        return tomllib.loads(_without_mark(text)[1])
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        found = re.search(r" \(at line (\d+), column \d+\)", str(error))
        reason = str(error) if found is None else str(error).replace(found[0], "")
        line = int(found[1]) if found else None
        raise CannotEdit(f"this is not TOML: {reason}; mend it and try again", line=line) from None


def _parent(document: dict[str, Any], path: Sequence[str]) -> dict[str, Any] | None:
    """The table that the last step of the path is taken in; None if there is none yet."""
    table: Any = document
    for key in path[:-1]:
        if key not in table:
            return None
        table = table[key]
        if not isinstance(table, dict):
            raise CannotEdit(f'"{key}" should be a table, but it is something else')
    result: dict[str, Any] = table
    return result


def _put(document: Any, path: Sequence[str], value: object) -> None:
    for key in path[:-1]:
        if key not in document:
            document[key] = {}
        document = document[key]
    document[path[-1]] = value


def _appended(body: str, path: Sequence[str], value: Any) -> str:
    """The text with a table of its own at the end, where it can be in nobody's way."""
    table = tomlkit.document()
    here: Any = table
    for key in path[:-1]:
        here[key] = tomlkit.table(is_super_table=True)
        here = here[key]
    here[path[-1]] = value
    newline = _newline(body)
    head = body if not body or body.endswith("\n") else body + newline
    gap = newline if head.strip() and not head.endswith(newline * 2) else ""
    return head + gap + _with_newlines(tomlkit.dumps(table), body)


def _edited(body: str, edit: Callable[[Any], None], meanings: list[dict[str, Any]]) -> str:
    try:
        document = tomlkit.parse(body)
        edit(document)
        edited = _with_newlines(tomlkit.dumps(document), body)
    except (TOMLKitError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise CannotEdit(f"this file is written in a way that cannot be edited here ({error})") from None
    if not _means(edited, meanings):
        raise CannotEdit("the edit would have changed something else in this file; please make it by hand")
    return edited


def _with_comments_after(body: str, edited: str) -> str:
    """The edited text with the comments back that stood after the removed table.

    To tomlkit, what comes before the next header belongs to the table above it; to people it belongs below.
    """
    length = len(body) - len(edited)
    start = next((at for at, (one, other) in enumerate(zip(body, edited, strict=False)) if one != other), len(edited))
    if length <= 0 or body[start + length :] != edited[start:]:
        return edited
    while start and body[start - 1] != "\n" and body[start - 1] == body[start + length - 1]:
        start -= 1  # the same cut, seen from the beginning of its line
    lines = body[start : start + length].splitlines(keepends=True)
    kept = len(lines)
    while kept and lines[kept - 1].strip()[:1] in ("", "#"):
        kept -= 1
    after = "".join(lines[kept:])
    head, tail = body[:start], body[start + length :]
    if "#" in after:
        return head + after.lstrip("\r\n") + tail
    if not tail:
        return re.sub(r"(?<=\n)(\r?\n)\Z", "", head)  # the blank line that set the table off
    return edited


def _with_newlines(edited: str, body: str) -> str:
    return re.sub(r"(?<!\r)\n", "\r\n", edited) if _newline(body) == "\r\n" else edited


def _newline(body: str) -> str:
    """CRLF only if all lines end so: a file with both is left with both."""
    return "\r\n" if "\r\n" in body and not re.search(r"(?<!\r)\n", body) else "\n"


def _means(text: str, meanings: list[dict[str, Any]]) -> bool:
    try:
        return any(_same(tomllib.loads(text), meaning) for meaning in meanings)
    except (tomllib.TOMLDecodeError, RecursionError):
        return False


def _same(one: object, other: object) -> bool:
    """Equal, and of the same types: `1 == True` to Python. NaN is what it is."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return type(one) is type(other) and repr(one) == repr(other)


def _without_mark(text: str) -> tuple[str, str]:
    return ("\ufeff", text[1:]) if text.startswith("\ufeff") else ("", text)
