"""One member of a TOML file set or removed, and every other character left as it is. The twin of `json_edit`.

The text is cut into statements, headers and members, and only whole statements or the value of one are touched. Each
edit is checked before it is given out: the new text must mean what the old one meant, with just that change. What
cannot be edited so raises `CannotEdit`, as does a member inside of an inline table.
"""

import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from modes_actor.cli.editors.json_edit import CannotEdit
from modes_actor.jsonc import line_of

_PIECE: Final = re.compile(
    r"""
    "{3}(?:[^"\\]|\\.|"{1,2}(?!"))*"{3,5}    # the closing quotes may have up to two of the content before them
    | '{3}(?:[^']|'{1,2}(?!'))*'{3,5}
    | "(?:[^"\\]|\\.)*"
    | '[^']*'
    | \#[^\n]*
    | \n
    | [\[\]{}]
    | [^"'\#\n\[\]{}]+
    """,
    re.VERBOSE | re.DOTALL,
)
_BETWEEN: Final = re.compile(r"(?:[ \t]*(?:#[^\n]*)?\r?\n)*[ \t]*(?:#[^\n]*)?")
"""Blank lines and comments before a statement, and what it is indented with."""
_PART: Final = r"""(?:"(?:[^"\\]|\\.)*"|'[^']*'|[A-Za-z0-9_-]+)"""
_KEY: Final = re.compile(rf"{_PART}(?:[ \t]*\.[ \t]*{_PART})*")
_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")


class _Statement(Struct, frozen=True):
    """A header or a member, with its whole lines."""

    table: tuple[str, ...]
    """The table it is in, or that it opens."""
    path: tuple[str, ...]
    start: int
    value: tuple[int, int] | None
    """None: a header."""
    end: int


def set_member(text: str, path: Sequence[str], value: object) -> str:
    """The text with the member at `path` set to `value`, in its old place; a new table comes at the end."""
    path = _checked_path(path)
    wanted = parsed(text)
    old = _found(wanted, path)
    if old is not None and _same(old[0], value):
        return text
    mark, body = _without_mark(text)
    statements = [*_statements(body)]
    _put(wanted, path, value)
    same = next((each for each in statements if each.path == path and each.value), None)
    if same is not None and same.value is not None:
        edited = body[: same.value[0]] + _written(value) + body[same.value[1] :]
    elif old is not None:
        edited = _replaced(body, statements, path, value)
    elif isinstance(value, dict):
        edited = _with_table(body, path, value)
    else:
        edited = _with_line(body, statements, path, value)
    if not _means(edited, wanted):
        raise _in_the_way(body, statements, path, value)
    return mark + edited


def remove_member(text: str, path: Sequence[str]) -> str:
    """The text without the member at `path`: its tables with all in them, its lines with the comments on them.

    Other comments stay. What is not there need not be removed.
    """
    path = _checked_path(path)
    wanted = parsed(text)
    old = _found(wanted, path)
    if old is None:
        return text
    mark, body = _without_mark(text)
    statements = [*_statements(body)]
    edited = _without(body, _cuts(body, statements, path))
    _delete(wanted, path)
    if not _means(edited, wanted, but_for_empty=path):
        raise _in_the_way(body, statements, path, old[0])
    return mark + edited


def parsed(text: str) -> dict[str, Any]:
    """What the text means. Raises `CannotEdit` if it is not TOML."""
    try:
        return tomllib.loads(_without_mark(text)[1])
    except (ValueError, RecursionError) as error:
        found = re.search(r" \(at line (\d+), column \d+\)", str(error))
        reason = str(error) if found is None else str(error).replace(found[0], "")
        line = int(found[1]) if found else None
        raise CannotEdit(f"this is not TOML: {reason}; mend it and try again", line=line) from None


def _statements(body: str) -> Iterator[_Statement]:
    """Of a text that is known to be good TOML."""
    table: tuple[str, ...] = ()
    at = _after(body, 0)
    while at < len(body):
        is_header = body[at] == "["
        key = _KEY.search(body, at)
        assert key is not None  # good TOML has nothing else here
        words = _words(key[0])
        if is_header:
            table, value = words, None
            end = _line_end(body, key.end())
        else:
            value = _value(body, body.index("=", key.end()) + 1)
            end = _line_end(body, value[1])
        path = table if is_header else (*table, *words)
        yield _Statement(table, path, body.rfind("\n", 0, at) + 1, value, end)
        at = _after(body, end)


def _after(body: str, at: int) -> int:
    """Where the next statement begins."""
    found = _BETWEEN.match(body, at)
    assert found is not None  # it matches nothing at least
    return found.end()


def _words(key: str) -> tuple[str, ...]:
    """What a dotted key means."""
    words: list[str] = []
    meaning: Any = tomllib.loads(f"{key} = 0")
    while isinstance(meaning, dict):
        [(word, meaning)] = meaning.items()
        words.append(word)
    return tuple(words)


def _value(body: str, at: int) -> tuple[int, int]:
    """From where to where a value goes that begins after `at`."""
    start = end = _past_blanks(body, at)
    depth = 0
    for piece in _PIECE.finditer(body, start):
        mark = piece[0]
        if depth == 0 and (mark == "\n" or mark[0] == "#"):
            break
        depth += (mark in "[{") - (mark in "]}")
        end = piece.start() + len(mark.rstrip()) if mark.strip() else end
    return start, end


def _past_blanks(body: str, at: int) -> int:
    while body[at : at + 1] in (" ", "\t"):
        at += 1
    return at


def _line_end(body: str, at: int) -> int:
    end = body.find("\n", at)
    return len(body) if end < 0 else end + 1


def _cuts(body: str, statements: Sequence[_Statement], path: tuple[str, ...]) -> list[tuple[int, int]]:
    """What goes if all at the path goes: its statements, and in its own tables what stands between them."""
    cuts: list[tuple[int, int]] = []
    for each in statements:
        if each.path[: len(path)] == path:
            is_inside = each.value is not None and each.table[: len(path)] == path  # then its header goes, too
            start = cuts.pop()[0] if is_inside else each.start
            cuts.append((start, each.end))
    return cuts


def _without(body: str, cuts: Sequence[tuple[int, int]]) -> str:
    """The text without what is cut, and without the blank lines that set it off."""
    for start, end in reversed(cuts):
        head, tail = body[:start], body[end:]
        if not head or re.search(r"\n[ \t]*\r?\n\Z", head):
            kept = re.sub(r"\A(?:[ \t]*\r?\n)+", "", tail)
            if kept.strip():
                tail = kept
            else:
                head = re.sub(r"(?<=\n)[ \t]*\r?\n\Z", "", head)
        body = head + tail
    return body


def _replaced(body: str, statements: Sequence[_Statement], path: tuple[str, ...], value: object) -> str:
    """Another value for what is written as one table or several."""
    cuts = _cuts(body, statements, path)
    if not (cuts and isinstance(value, dict)):
        raise _in_the_way(body, statements, path, value)
    (start, end), *others = cuts
    is_table = any(each.start == start and each.value is None for each in statements)
    if not is_table:
        return _with_table(_without(body, cuts), path, value)
    return body[:start] + _table(body, path, value) + _without(body[end:], [(a - end, b - end) for a, b in others])


def _with_table(body: str, path: tuple[str, ...], value: Mapping[str, object]) -> str:
    """With a table at the end, where it can be in nobody's way."""
    newline = _newline(body)
    head = body if not body or body.endswith("\n") else body + newline
    gap = newline if head.strip() and not head.endswith(("\n\n", "\n\r\n")) else ""
    return head + gap + _table(body, path, value)


def _with_line(body: str, statements: Sequence[_Statement], path: tuple[str, ...], value: object) -> str:
    """With a member more in the table it belongs to, after those that are there."""
    parent = path[:-1]
    own = [each for each in statements if each.table == parent]
    dotted = [each for each in statements if each.path[: len(parent)] == parent and len(each.table) < len(parent)]
    near = own or dotted
    if not near:
        return _with_table(body, parent, {path[-1]: value})
    newline = _newline(body)
    last = near[-1]
    words = path[len(last.table) :]
    indent = body[last.start : _past_blanks(body, last.start)]
    head = body[: last.end] if body[: last.end].endswith("\n") else body[: last.end] + newline
    return f"{head}{indent}{_key(words)} = {_written(value)}{newline}{body[last.end :]}"


def _table(body: str, path: tuple[str, ...], value: Mapping[str, object]) -> str:
    lines = [f"[{_key(path)}]", *(f"{_key([key])} = {_written(member)}" for key, member in value.items())]
    return "".join(line + _newline(body) for line in lines)


def _key(path: Sequence[str]) -> str:
    return ".".join(part if _BARE.fullmatch(part) else _written(part) for part in path)


def _written(value: object) -> str:
    if isinstance(value, Mapping):
        members = ", ".join(f"{_key([key])} = {_written(member)}" for key, member in value.items())
        return f"{{ {members} }}" if members else "{}"
    if isinstance(value, list):
        return f"[{', '.join(map(_written, value))}]"
    # Strings, numbers and booleans are written as in JSON, but for one character that TOML wants escaped.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _newline(body: str) -> str:
    """CRLF only if all lines end so: a file with both is left with both."""
    return "\r\n" if "\r\n" in body and not re.search(r"(?<!\r)\n", body) else "\n"


def _checked_path(path: Sequence[str]) -> tuple[str, ...]:
    if not path:
        raise ValueError("a member has a path")
    return tuple(path)


def _found(document: dict[str, Any], path: Sequence[str]) -> tuple[object] | None:
    """The value at the path, if there is one. Raises `CannotEdit` if something on the way is no table."""
    here: Any = document
    for key in path[:-1]:
        if key not in here:
            return None
        here = here[key]
        if not isinstance(here, dict):
            raise CannotEdit(f'"{key}" should be a table, but it is something else')
    return (here[path[-1]],) if path[-1] in here else None


def _put(document: Any, path: Sequence[str], value: object) -> None:
    for key in path[:-1]:
        document = document.setdefault(key, {})
    document[path[-1]] = value


def _delete(document: Any, path: Sequence[str]) -> None:
    for key in path[:-1]:
        document = document[key]
    del document[path[-1]]


def _means(body: str, wanted: dict[str, Any], *, but_for_empty: Sequence[str] = ()) -> bool:
    """A table that only the headers of others made is gone with them: `but_for_empty` is where that does not count."""
    try:
        meaning = tomllib.loads(body)
    except (ValueError, RecursionError):
        return False
    for length in range(len(but_for_empty) - 1, 0, -1):
        for document in (meaning, wanted):
            above = but_for_empty[:length]
            found = _found(document, above)
            if found == ({},):
                _delete(document, above)
    return _same(meaning, wanted)


def _same(one: object, other: object) -> bool:
    """Equal, and of the same types: `1 == True` to Python. NaN is what it is."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return type(one) is type(other) and repr(one) == repr(other)


def _in_the_way(body: str, statements: Sequence[_Statement], path: tuple[str, ...], value: object) -> CannotEdit:
    table = path if isinstance(value, Mapping) else path[:-1]
    for each in statements:
        if each.value and each.path == path[: len(each.path)] and len(each.path) < len(path):
            what = f"{_key(each.path)} is an inline table; write it as [{_key(table)}], or make the change by hand"
            return CannotEdit(what, line=line_of(body, each.value[0]))
    return CannotEdit("this file is written in a way that cannot be edited here; please make the change by hand")


def _without_mark(text: str) -> tuple[str, str]:
    return ("\ufeff", text[1:]) if text.startswith("\ufeff") else ("", text)
