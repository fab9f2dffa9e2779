"""A mode as a person would write it down: as an item of a YAML list, or as JSON.

Promises: what is written means what the mode says to the letter, whatever characters are in it, to YAML 1.1, YAML 1.2
and (the JSON) to JSON. Where it goes in a file is not known here.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeAlias, Union

import msgspec
from msgspec import Struct

from modes_actor.modes.model import GroupName, McpRestrictions

Plain: TypeAlias = Union[str, Sequence["Plain"], Mapping[str, "Plain"]]
"""What a mode consists of when it is written."""

WIDTH: Final = 100
"""Of lines with lists; texts are not broken."""


class NewGroup(Struct, frozen=True, rename="camel"):
    """The options of a group."""

    file_regex: str


class NewRestrictions(Struct, frozen=True, rename="camel", omit_defaults=True):
    allowed_servers: tuple[str, ...] | None = None
    disallowed_servers: tuple[str, ...] | None = None
    allowed_tools: tuple[str, ...] | None = None
    disallowed_tools: tuple[str, ...] | None = None


class NewMode(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A mode that is to be written; its fields in the order in which they are."""

    slug: str
    name: str
    extends: str | None = None
    description: str | None = None
    role_definition: str | None = None
    when_to_use: str | None = None
    custom_instructions: str | None = None
    groups: tuple[GroupName | tuple[GroupName, NewGroup], ...] | None = None
    mcp_restrictions: NewRestrictions | None = None


def restrictions_to_write(restrictions: McpRestrictions) -> NewRestrictions:
    """The lists of a template, tools by their qualified names."""
    tools = [
        None if patterns is None else tuple(map(str, patterns))
        for patterns in (restrictions.allowed_tools, restrictions.disallowed_tools)
    ]
    return NewRestrictions(restrictions.allowed_servers, restrictions.disallowed_servers, *tools)


def members(mode: NewMode) -> dict[str, Plain]:
    """The members of a mode, as they stand in a file."""
    found: dict[str, Plain] = msgspec.to_builtins(mode)
    return found


def yaml_item(mode: NewMode) -> list[str]:
    """The lines of an item in a block list, the dash in the first column."""
    lines = _yaml_members(members(mode), is_mode=True)
    return [f"{'  ' if index else '- '}{line}" if line else "" for index, line in enumerate(lines)]


def json_item(mode: NewMode, *, unit: str) -> list[str]:
    """The lines of an object, its members indented by `unit`. All of it is good in YAML's flow style, too."""
    return _json_lines(members(mode), unit)


def json_line(mode: NewMode, *, is_compact: bool = False) -> str:
    """The object on one line, without any blanks if it is to be compact."""
    return _json(members(mode), is_compact=is_compact)


# YAML.


def _yaml_members(fields: Mapping[str, Plain], *, is_mode: bool = False) -> list[str]:
    lines: list[str] = []
    for key, value in fields.items():
        if isinstance(value, str):
            lines += _yaml_text(key, value)
        elif isinstance(value, Mapping) and value:
            lines += [f"{key}:", *(f"  {line}" for line in _yaml_members(value))]
        elif is_mode and value:
            lines += [f"{key}:", *(f"  - {_flow(item)}" for item in value)]
        elif len(whole := f"{key}: {_flow(value)}") <= WIDTH:
            lines.append(whole)
        else:
            first, *rest = _rows(map(_flow, value))
            lines += [f"{key}:", f"  [{first}", *(f"   {row}" for row in rest)]
            lines[-1] += "]"
    return lines


def _yaml_text(key: str, text: str) -> list[str]:
    if not _is_good_in_block(text):
        return [f"{key}: {_scalar(text, _PLAIN_IN_BLOCK)}"]
    sign = "|" if text.endswith("\n") else "|-"
    return [f"{key}: {sign}", *(f"  {line}" if line else "" for line in text.removesuffix("\n").split("\n"))]


def _is_good_in_block(text: str) -> bool:
    """Whether several lines can stand as they are: nothing invisible says where they begin or end."""
    lines = text.removesuffix("\n").split("\n")
    return (
        "\n" in text
        and all(line.strip() or not line for line in lines)
        and bool(lines[0] and lines[-1])
        and not lines[0].startswith(" ")
        and not any(line.startswith("\t") for line in lines)
        and _is_visible(text.replace("\n", "").replace("\t", ""))
    )


_JOINERS: Final = "\u200c\u200d"
"""Not printable to Python, but part of what people write: emoji, Persian."""
_PLAIN_IN_BLOCK = re.compile(r"(?:[A-Za-z_]|[^\x00-\x7f])(?:[^:#]|:(?! |\Z)|(?<! )#)*(?<![ :])")
_PLAIN_IN_FLOW = re.compile(r"(?:[A-Za-z_]|[^\x00-\x7f])(?:[^:#,\[\]{}'\"\\])*(?<! )")
_WORDS: Final = frozenset(("true", "false", "null", "yes", "no", "on", "off", "y", "n"))
"""Some parser of YAML takes these for something else than text."""


def _scalar(text: str, plain: re.Pattern[str]) -> str:
    if not _is_visible(text):
        return _double_quoted(text)
    if plain.fullmatch(text) and text.casefold() not in _WORDS:
        return text
    return "'" + text.replace("'", "''") + "'"


def _flow(value: Plain) -> str:
    if isinstance(value, str):
        return _scalar(value, _PLAIN_IN_FLOW)
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {_flow(each)}" for key, each in value.items()) + "}"
    return "[" + ", ".join(map(_flow, value)) + "]"


def _is_visible(text: str) -> bool:
    return all(char.isprintable() or char in _JOINERS for char in text)


def _double_quoted(text: str) -> str:
    """As JSON has it; but characters that JSON has two escapes for have one."""

    def escaped(char: str) -> str:
        return char if _is_visible(char) else f"\\U{ord(char):08x}"

    return "".join(escaped(char) if ord(char) > 0xFFFF else char for char in _json_text(text))


# JSON.


def _json_lines(value: Plain, unit: str) -> list[str]:
    if isinstance(value, Mapping):
        return ["{", *(unit + line for line in _json_members(value, unit)), "}"]
    if isinstance(value, str):
        return [_json_text(value)]
    whole = _json(value)
    return [whole] if len(whole) <= WIDTH else ["[", *(unit + row for row in _rows(map(_json, value))), "]"]


def _json_members(fields: Mapping[str, Plain], unit: str) -> list[str]:
    written = [_json_lines(value, unit) for value in fields.values()]
    for key, lines in zip(fields, written, strict=True):
        lines[0] = f'"{key}": {lines[0]}'
    for lines in written[:-1]:
        lines[-1] += ","
    return [line for lines in written for line in lines]


def _json(value: Plain, *, is_compact: bool = False) -> str:
    comma, colon = (",", ":") if is_compact else (", ", ": ")
    if isinstance(value, str):
        return _json_text(value)
    if isinstance(value, Mapping):
        fields = (f'"{key}"{colon}{_json(each, is_compact=is_compact)}' for key, each in value.items())
        return "{" + comma.join(fields) + "}"
    return "[" + comma.join(_json(each, is_compact=is_compact) for each in value) + "]"


def _json_text(text: str) -> str:
    """Invisible characters are escaped, so that nobody takes one for a line end; beyond the first plane they cannot."""
    quoted: str = json.dumps(text, ensure_ascii=False)
    return "".join(
        char if char.isprintable() or char in _JOINERS or ord(char) > 0xFFFF else f"\\u{ord(char):04x}"
        for char in quoted
    )


# Lists too long for a line.


def _rows(items: Iterable[str]) -> list[str]:
    """The items with commas between them, on as few lines as there must be."""
    first, *rest = items
    rows = [first]
    for item in rest:
        if len(rows[-1]) + len(item) + len(", ,") <= WIDTH:
            rows[-1] += f", {item}"
        else:
            rows[-1] += ","
            rows.append(item)
    return rows
