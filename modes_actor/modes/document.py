"""The text of a mode file to a tree of values that know where they stand. YAML 1.2, and so JSON.

Promises: any text gives a tree or an `Unreadable`, never another exception; the text as written is read first, and only
if that fails a repaired one; what a scalar says is kept to the letter; a small text cannot make a large tree.
"""

import re
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final, TypeAlias, Union

from msgspec import Struct

if TYPE_CHECKING:
    import yaml

Value = str | int | float | bool | None

DEPTH_LIMIT: Final = 100
SIZE_LIMIT: Final = 250_000
"""Values in a tree, each counted wherever an alias repeats it."""


class Scalar(Struct, frozen=True):
    value: Value
    line: int
    column: int


class Items(Struct):
    items: list["Node"]
    line: int
    column: int
    size: int = 1


class Fields(Struct):
    """A mapping. Of a key that is there twice the last counts; the others are in `repeated`."""

    fields: dict[str, tuple[Scalar, "Node"]]
    line: int
    column: int
    repeated: list[Scalar]
    size: int = 1


Node: TypeAlias = Union[Scalar, Items, Fields]


class Document(Struct):
    root: Node
    repairs: list[str]
    """What had to be changed in the text before it could be read."""


class Unreadable(Exception):
    """The text is neither YAML nor JSON. Lines and columns count from 1."""

    def __init__(self, message: str, line: int = 1, column: int = 1) -> None:
        super().__init__(message)
        self.message = message
        self.line = line
        self.column = column


def read_document(text: str) -> Document:
    """Read a whole file. Raises `Unreadable`, about the text as it was written."""
    try:
        return Document(_read(text), [])
    except Unreadable as error:
        first = error
    repairs: list[str] = []
    repaired = text
    for repair, name in _REPAIRS:
        before, repaired = repaired, repair(repaired)
        if repaired != before:
            if name is not None:
                repairs.append(name)
            try:
                return Document(_read(repaired), repairs)
            except Unreadable:
                continue
    rescued = _read_json(text)
    if rescued is None:
        raise first
    return Document(rescued, [])


# Repairs, each on top of the one before. None moves anything to another line.

_SURROGATES = re.compile(r"((?<!\\)(?:\\\\)*)\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})")
_TAB_AFTER_DASH = re.compile(r"^( *-[ \t]{1,20})(?=\S)", re.MULTILINE)
_TYPOGRAPHY = str.maketrans(
    {
        "\u00a0": " ",
        **dict.fromkeys("\u200b\u200c\u200d", ""),
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-"),
        **dict.fromkeys("\u2018\u2019", "'"),
        **dict.fromkeys("\u201c\u201d", '"'),
    }
)


def _join_surrogates(text: str) -> str:
    """JSON writes a character beyond the first plane as two escapes, YAML as one."""

    def joined(match: re.Match[str]) -> str:
        high, low = int(match[2], 16), int(match[3], 16)
        return f"{match[1]}\\U{0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00):08x}"

    return _SURROGATES.sub(joined, text)


def _blank_out_tabs(text: str) -> str:
    """Tabs in blank lines and after the dash of an item, where YAML 1.2 allows them."""
    lines = [line.replace("\t", " ") if "\t" in line and not line.strip() else line for line in text.split("\n")]
    return _TAB_AFTER_DASH.sub(lambda found: found[0].replace("\t", " "), "\n".join(lines))


def plain_typography(text: str) -> str:
    """Quotes, dashes and spaces as a keyboard writes them, for text that a word processor or a web page improved."""
    return text.translate(_TYPOGRAPHY)


_REPAIRS: Final = (
    (_join_surrogates, None),
    (_blank_out_tabs, "tabs"),
    (plain_typography, "typographic quotes, dashes and spaces"),
)
"""With the word for each; a text in need of the first is in order, only not for this library."""


def _read_json(text: str) -> Node | None:
    """JSON laid out in a way that YAML refuses. Here values have no places of their own: all stand at the beginning."""
    import json

    def refuse(constant: str) -> None:
        raise ValueError(constant)

    def fields(pairs: list[tuple[str, Any]]) -> Fields:
        keys = [Scalar(_encodable(name), 1, 1) for name, _ in pairs]
        found = {str(key.value): (key, _from_json(value)) for key, (_, value) in zip(keys, pairs, strict=True)}
        repeated = [key for key, count in Counter(key.value for key in keys).items() if count > 1]
        return Fields(found, 1, 1, [Scalar(name, 1, 1) for name in repeated])

    try:
        return _from_json(json.loads(text.removeprefix("\ufeff"), parse_constant=refuse, object_pairs_hook=fields))
    except (ValueError, RecursionError):
        return None


def _from_json(value: Any) -> Node:
    if isinstance(value, Fields):
        return value
    if isinstance(value, list):
        return Items([_from_json(item) for item in value], 1, 1)
    return Scalar(_encodable(value) if isinstance(value, str) else value, 1, 1)


def _encodable(text: str) -> str:
    """Without halves of surrogate pairs: JSON can write them, but nobody can send them on."""
    return text.encode(errors="replace").decode() if not text.isascii() else text


# YAML 1.1, which is what the library reads, takes some characters for line ends and refuses others. In YAML 1.2 all of
# them are text, so they travel as characters for private use, one for one: no position changes.

_SHIELDED: Final = [*range(9), 0xB, 0xC, *range(0xE, 0x20), *range(0x7F, 0xA0), 0x2028, 0x2029, 0xFEFF, 0xFFFE, 0xFFFF]
_TO_SHIELD = re.compile("[" + "".join(map(re.escape, map(chr, _SHIELDED))) + "]|\r(?!\n)")
_PRIVATE: Final = (0x10F000, 0xF0000, 0x100000)


def _read(text: str) -> Node:
    import yaml  # only a project that has mode files pays for it

    text = text.removeprefix("\ufeff")
    unshield: dict[int, int] | None = None
    if _TO_SHIELD.search(text):
        private = next(
            (first for first in _PRIVATE if not re.search(f"[{chr(first)}-{chr(first + 0xFF)}]", text)), None
        )
        if private is None:
            raise Unreadable("The file has both control characters and all kinds of characters for private use")
        shield = {char: private + index for index, char in enumerate([*_SHIELDED, ord("\r")])}
        unshield = {private: char for char, private in shield.items()}
        text = _TO_SHIELD.sub(lambda found: chr(shield[ord(found[0])]), text)
    if not text.endswith("\n"):
        text += "\n"  # else the last line of a block scalar would lose its end
    try:
        return _Builder(unshield).build(yaml.parse(text, Loader=getattr(yaml, "CLoader", yaml.Loader)))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
        raise Unreadable(error.problem or error.context or "This is not YAML", line, column) from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise Unreadable(str(error).partition("\n")[0]) from error


class _Open(Struct):
    """A collection whose end has not come yet."""

    node: Items | Fields
    anchor: str | None
    key: Scalar | None = None


class _Builder:
    """Events to one tree, without recursion: no nesting can exhaust the stack."""

    def __init__(self, unshield: dict[int, int] | None) -> None:
        self._unshield = unshield
        self._open: list[_Open] = []
        self._anchors: dict[str, Node | None] = {}
        self._root: Node | None = None
        self._documents = 0

    def build(self, events: "Iterable[yaml.Event]") -> Node:
        import yaml

        for event in events:
            if isinstance(event, yaml.ScalarEvent):
                self._add(self._scalar(event), event.anchor)
            elif isinstance(event, yaml.SequenceStartEvent):
                self._begin(Items([], *_place(event)), event.anchor)
            elif isinstance(event, yaml.MappingStartEvent):
                self._begin(Fields({}, *_place(event), []), event.anchor)
            elif isinstance(event, yaml.CollectionEndEvent):
                closed = self._open.pop()
                self._add(closed.node, closed.anchor)
            elif isinstance(event, yaml.AliasEvent):
                self._alias(event)
            elif isinstance(event, yaml.DocumentStartEvent):
                self._documents += 1
                if self._documents > 1:
                    raise Unreadable("There is a second document behind `---`", *_place(event))
        return self._root or Scalar(None, 1, 1)

    def _scalar(self, event: "yaml.ScalarEvent") -> Scalar:
        text = event.value
        if self._unshield is not None:
            text = text.translate(self._unshield)
        plain = event.tag is None and event.implicit[0]
        return Scalar(_core_value(text) if plain else text, *_place(event))

    def _alias(self, event: "yaml.AliasEvent") -> None:
        node = self._anchors.get(event.anchor or "")
        if node is None:
            raise Unreadable(f"`*{event.anchor}` stands for nothing, or for what it is in", *_place(event))
        self._add(node, None)

    def _begin(self, node: Items | Fields, anchor: str | None) -> None:
        if len(self._open) >= DEPTH_LIMIT:
            raise Unreadable("nested too deeply", node.line, node.column)
        if anchor is not None:
            self._anchors[anchor] = None
        self._open.append(_Open(node, anchor))

    def _add(self, node: Node, anchor: str | None) -> None:
        if anchor is not None:
            self._anchors[anchor] = node
        if not self._open:
            self._root = node
            return
        parent = self._open[-1]
        parent.node.size += 1 if isinstance(node, Scalar) else node.size
        if parent.node.size > SIZE_LIMIT:
            raise Unreadable("too many values, or aliases of aliases", node.line, node.column)
        if isinstance(parent.node, Items):
            parent.node.items.append(node)
        elif parent.key is None:
            parent.key = node if isinstance(node, Scalar) else Scalar("", node.line, node.column)
        else:
            key, parent.key = parent.key, None
            name = key.value if isinstance(key.value, str) else _key_text(key.value)
            if name in parent.node.fields:
                parent.node.repeated.append(key)
            parent.node.fields[name] = (key, node)


def _place(event: "yaml.Event") -> tuple[int, int]:
    mark = event.start_mark
    return (mark.line + 1, mark.column + 1) if mark else (1, 1)


def _key_text(value: Value) -> str:
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


_WORDS: Final[dict[str, Value]] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_INTEGER = re.compile(r"[-+]?[0-9]{1,300}|0o[0-7]{1,300}|0x[0-9a-fA-F]{1,300}")
_FLOAT = re.compile(
    r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"
)


def _core_value(text: str) -> Value:
    """A plain scalar by YAML 1.2's core schema: `yes`, `on` and dates are text."""
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in "+-.0123456789":
        return text
    if _INTEGER.fullmatch(text):
        return int(text, 0) if text[:2] in ("0o", "0x") else int(text)
    if _FLOAT.fullmatch(text):
        return float(text.lower().replace(".", "") if text[-1] in "fFnN" else text)
    return text
