"""One more mode in the text of a mode file, and every character that was there before left as it is.

An edit is made as text, and read again before it is given out: the file must mean what it meant, and one mode more.
Where no edit does that, `CannotAdd` says so; nothing is ever guessed. Files are not opened here.
"""

import re
from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from modes_actor.cli.mode_writing import NewMode, Plain, json_item, json_line, members, yaml_item
from modes_actor.modes.document import Document, Fields, Items, Node, Scalar, Unreadable, read_document
from modes_actor.modes.model import ModeConfig, Problem, Source
from modes_actor.modes.reading import read_modes

if TYPE_CHECKING:
    import yaml

_LIST_NAMES: Final = ("customModes", "custom_modes")


class CannotAdd(Exception):
    """A sentence for people: what is in the way. `line` counts from 1."""

    def __init__(self, reason: str, *, line: int | None = None) -> None:
        super().__init__(reason)
        self.line = line


class Added(Struct, frozen=True):
    """A file with one more mode."""

    text: str
    mode: ModeConfig
    """As it will be read."""
    role_line: int | None
    """Where its role is written, if it has one of its own."""


def add_mode(text: str, mode: NewMode, *, file: str, source: Source) -> Added:
    """Add the mode as the last one. `file` is only a name. Raises `CannotAdd`."""
    before = read_modes(text, file=file, source=source)
    try:
        document = read_document(text)
    except Unreadable as error:
        raise CannotAdd(f"the file cannot be read, so mend that first: {error.message}", line=error.line) from error
    if (taken := _line_of(mode.slug, document.root)) is not None:
        raise CannotAdd(f"there is a mode `{mode.slug}` already", line=taken)
    wanted = _with_mode(document, mode)
    if wanted is None:
        problem = before.problems[-1]
        raise CannotAdd(problem.message[:1].lower() + problem.message[1:], line=problem.line)
    known = [_without_place(problem) for problem in before.problems]
    for edited in _edits(text, mode):
        try:
            found = read_document(edited)
        except Unreadable:
            continue
        after = read_modes(edited, file=file, source=source)
        if (
            _meaning(found.root) == wanted
            and found.repairs == document.repairs
            and after.modes[:-1] == before.modes
            and [each.slug for each in after.modes[len(before.modes) :]] == [mode.slug]
            and all(_without_place(problem) in known for problem in after.problems)
        ):
            return Added(edited, after.modes[-1], _role_line(found.root))
    raise CannotAdd("the file is written in a way that cannot be edited without changing something else in it")


def snippet(text: str, mode: NewMode) -> str:
    """The mode as a person would paste it into the text."""
    is_json = text.lstrip("\ufeff \t\r\n").startswith(("{", "["))
    return "\n".join(json_item(mode, unit="  ") if is_json else yaml_item(mode))


# What a text means.


def _line_of(slug: str, root: Node) -> int | None:
    modes = _list_in(root)
    for node in modes.items if modes is not None else ():
        if isinstance(node, Fields) and (found := node.fields.get("slug")) is not None:
            value = found[1]
            if isinstance(value, Scalar) and value.value == slug:
                return node.line
    return None


def _role_line(root: Node) -> int | None:
    modes = _list_in(root)
    last = modes.items[-1] if modes is not None else None
    role = last.fields.get("roleDefinition") if isinstance(last, Fields) else None
    return None if role is None else role[0].line


def _list_in(root: Node) -> Items | None:
    if isinstance(root, Fields):
        root = next((root.fields[name][1] for name in _LIST_NAMES if name in root.fields), root)
    return root if isinstance(root, Items) else None


def _with_mode(document: Document, mode: NewMode) -> object:
    """What the text must mean with the mode in it; None where there is no place for one."""
    root = document.root
    if isinstance(root, Scalar) and root.value is None:
        root = Fields({}, 1, 1, [])
    if _list_in(root) is None:
        if not isinstance(root, Fields):
            return None
        name = next((name for name in _LIST_NAMES if name in root.fields), _LIST_NAMES[0])
        there = root.fields.get(name)
        if there is not None and not (isinstance(there[1], Scalar) and there[1].value is None):
            return None
        root.fields[name] = (Scalar(name, 1, 1), Items([], 1, 1))
    modes = _list_in(root)
    assert modes is not None  # it was put in if it was not there
    modes.items.append(_node(members(mode)))
    return _meaning(root)


def _node(value: Plain) -> Node:
    if isinstance(value, str):
        return Scalar(value, 1, 1)
    if isinstance(value, dict):
        return Fields({key: (Scalar(key, 1, 1), _node(each)) for key, each in value.items()}, 1, 1, [])
    return Items([_node(each) for each in value], 1, 1)


def _meaning(node: Node) -> object:
    """All of a tree but its places."""
    match node:
        case Scalar():
            return repr(node.value)  # for True == 1, and nan != nan
        case Items():
            return [_meaning(each) for each in node.items]
        case Fields():
            repeated = sorted(repr(key.value) for key in node.repeated)
            return {name: _meaning(value) for name, (_, value) in node.fields.items()}, repeated


def _without_place(problem: Problem) -> tuple[str, str, str | None]:
    return problem.severity, problem.message, problem.hint


# Ways to write it.


def _edits(text: str, mode: NewMode) -> Iterator[str]:
    """Texts with the mode in them, perhaps; those that look best first."""
    import yaml

    try:
        yield from _Text(text).edits(mode)
    except yaml.YAMLError:
        return  # it can be read by other means only, which know no places


_NOT_YAML = re.compile(
    "[^\t\n\r\x20-\x7e\u00a0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]|\r(?!\n)"
)
"""Characters that YAML 1.1 refuses, or takes for line ends."""
_HALF_ESCAPED = re.compile(r"\\u[dD][89a-fA-F][0-9a-fA-F]{2}")
_TAB_AFTER_DASH = re.compile(r"^( *-[ \t]{1,20})(?=\S)|^[ \t]+$", re.MULTILINE)


class _Text:
    """A text, and a view of it that the YAML library reads: other characters here and there, all in the same places."""

    def __init__(self, text: str) -> None:
        self.mark = "\ufeff" if text.startswith("\ufeff") else ""
        self.text = text.removeprefix("\ufeff")
        found = re.search(r"\r?\n", self.text)
        self.newline = found[0] if found else "\n"
        view = _HALF_ESCAPED.sub(r"\\u0041", _NOT_YAML.sub("x", self.text))
        self._view = _TAB_AFTER_DASH.sub(lambda blank: blank[0].replace("\t", " "), view)

    @cached_property
    def _tokens(self) -> "list[yaml.Token]":
        """What stands in the text: neither comments nor what is only there to be an end."""
        import yaml

        tokens = yaml.scan(self._view, Loader=getattr(yaml, "CLoader", yaml.Loader))
        return [token for token in tokens if not isinstance(token, yaml.BlockEndToken | yaml.StreamStartToken)]

    def edits(self, mode: NewMode) -> Iterator[str]:
        import yaml

        root = yaml.compose(self._view, Loader=getattr(yaml, "CLoader", yaml.Loader))
        if root is None or isinstance(root, yaml.ScalarNode):
            yield self._new_list(mode, "")
        elif isinstance(root, yaml.SequenceNode):
            yield from self._append(mode, root, is_alone=True)
        elif isinstance(root, yaml.MappingNode):
            found = next((pair for pair in root.value if pair[0].value in _LIST_NAMES), None)
            if found is not None:
                yield from self._under(mode, root, *found)
            elif root.flow_style:
                start = root.start_mark.index + 1
                yield from self._with(start, start, '"customModes": []' + (", " if root.value else "")).edits(mode)
            else:
                yield self._new_list(mode, " " * root.start_mark.column)

    def _under(self, mode: NewMode, root: "yaml.MappingNode", key: "yaml.Node", value: "yaml.Node") -> Iterator[str]:
        import yaml

        start, end = value.start_mark.index, value.end_mark.index
        if isinstance(value, yaml.SequenceNode):
            is_blank = value.flow_style and not self.text[start:end].strip("[] \t\r\n")
            if not is_blank or root.flow_style:
                yield from self._append(mode, value, is_alone=len(root.value) == 1)
                return
        elif root.flow_style:
            yield from self._with(start, end, "[]" if start < end else " []").edits(mode)
            return
        start = len(self.text[:start].rstrip(" \t")) if start < end else start
        emptied = self._with(start, end, "")
        for indent in (key.start_mark.column + 2, key.start_mark.column):
            yield emptied._insert(emptied._line_after(start, indent), yaml_item(mode), " " * indent)

    def _append(self, mode: NewMode, modes: "yaml.SequenceNode", *, is_alone: bool) -> Iterator[str]:
        start, end = modes.start_mark.index, modes.end_mark.index
        if modes.flow_style:
            if self.text[start] == "[":
                yield self._append_in_brackets(mode, start, end - 1, is_alone=is_alone)
        elif self.text[start] == "-":
            yield from self._append_below(mode, start, end, modes.start_mark.column)

    # Block style: lines.

    def _append_below(self, mode: NewMode, start: int, end: int, column: int) -> Iterator[str]:
        import yaml

        inside = [token for token in self._tokens if start <= token.start_mark.index < end]
        last_end = max(token.end_mark.index for token in inside)
        marks = [token.start_mark for token in inside if isinstance(token, yaml.BlockEntryToken)]
        dashes = [mark.line for mark in marks if mark.column == column]
        gap = [""] if len(dashes) > 1 and self._follows_a_blank_line(dashes[-1]) else []
        item = yaml_item(mode)
        visible_end = len(self.text[:last_end].rstrip())
        for item_end in (visible_end, last_end):  # blank lines after it may be part of a text
            at = self._line_after(item_end, max(column, 1))
            for lines in (gap + item, item):
                yield self._insert(at, lines, " " * column)

    def _follows_a_blank_line(self, number: int) -> bool:
        lines = self.text.split("\n")
        while number > 0 and lines[number - 1].lstrip().startswith("#"):
            number -= 1
        return number > 0 and not lines[number - 1].strip()

    def _new_list(self, mode: NewMode, indent: str) -> str:
        import yaml

        ends = (token.start_mark.index for token in self._tokens if isinstance(token, yaml.DocumentEndToken))
        at = next(ends, len(self.text))
        return self._insert(
            at, [f"{_LIST_NAMES[0]}:", *(f"  {line}" if line else "" for line in yaml_item(mode))], indent
        )

    def _line_after(self, at: int, column: int) -> int:
        """Where the next line begins, behind comments that belong to what is before: as far to the right as that."""
        if at == 0 or self.text[at - 1] != "\n":
            at = self._next_line(at)
        comment = re.compile(rf" {{{column},}}#")
        while comment.match(self.text, at):
            at = self._next_line(at)
        return at

    def _next_line(self, at: int) -> int:
        return self.text.find("\n", at) + 1 or len(self.text)

    def _insert(self, at: int, lines: list[str], indent: str) -> str:
        before = self.text[:at]
        if before and not before.endswith("\n"):
            before += self.newline
        written = "".join(f"{indent if line else ''}{line}{self.newline}" for line in lines)
        return self.mark + before + written + self.text[at:]

    # Flow style: brackets.

    def _append_in_brackets(self, mode: NewMode, start: int, end: int, *, is_alone: bool) -> str:
        """As the last item. What stands before the closing bracket, comments too, stays before the item."""
        import yaml

        inside = self.text[start + 1 : end]
        tokens = [token for token in self._tokens if start < token.start_mark.index < end]
        last = tokens[-1] if tokens else None
        has_comma = isinstance(last, yaml.FlowEntryToken)
        anchor = start + 1 + len(inside.rstrip())
        before, after = self.text[:anchor], self.text[anchor:]
        if last is not None and not has_comma:
            at = last.end_mark.index
            before = self.text[:at] + "," + self.text[at:anchor]
        if "\n" in inside or (last is None and (is_alone or "\n" in self.text.strip())):
            here = self._indent_at(start)
            unit = self._indent_unit()
            on_lines = [at for at in _item_starts(tokens) if self._begins_line(at)]
            indent = self._indent_at(on_lines[-1]) if on_lines else here + unit
            written = "".join(f"{self.newline}{indent}{line}" for line in json_item(mode, unit=unit))
            if "\n" not in self.text[anchor:end]:
                after = self.newline + here + self.text[end:]
        else:
            is_compact = '":' in self.text and '": ' not in self.text
            written = (" " if last and not is_compact else "") + json_line(mode, is_compact=is_compact)
        return self.mark + before + written + ("," if has_comma else "") + after

    def _indent_unit(self) -> str:
        found = re.search(r"^[ \t]+(?=\S)", self.text, re.MULTILINE)
        return found[0] if found else "  "

    def _indent_at(self, at: int) -> str:
        line = self.text[self.text.rfind("\n", 0, at) + 1 : at]
        return line[: len(line) - len(line.lstrip(" \t"))]

    def _begins_line(self, at: int) -> bool:
        return not self.text[self.text.rfind("\n", 0, at) + 1 : at].strip(" \t")

    def _with(self, start: int, end: int, text: str) -> "_Text":
        return _Text(self.mark + self.text[:start] + text + self.text[end:])


def _item_starts(tokens: "list[yaml.Token]") -> Iterator[int]:
    """Where the items of a list in brackets begin; the tokens are those between the brackets."""
    import yaml

    depth = 0
    is_next = True
    for token in tokens:
        if is_next:
            yield token.start_mark.index
        depth += isinstance(token, yaml.FlowSequenceStartToken | yaml.FlowMappingStartToken)
        depth -= isinstance(token, yaml.FlowSequenceEndToken | yaml.FlowMappingEndToken)
        is_next = depth == 0 and isinstance(token, yaml.FlowEntryToken)
