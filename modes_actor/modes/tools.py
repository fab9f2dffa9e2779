"""Which tool belongs to which group. The table itself is `tools.json`."""

from functools import cache
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from modes_actor.modes.model import GroupName

FILE_GROUPS: Final = ("read", "edit")
"""The groups whose tools name the files they touch, so that a pattern can be held against them."""


class ToolTable(Struct, frozen=True):
    groups: dict[GroupName, tuple[str, ...]]
    always: frozenset[str]
    """Allowed in every mode: without them no mode could ask, finish or hand over."""
    own: frozenset[str]
    """This server's own tools. They change no file, so no mode is without them."""
    aliases: dict[str, str]


@cache
def tool_table() -> ToolTable:
    return msgspec.json.decode((Path(__file__).parent / "tools.json").read_bytes(), type=ToolTable)


@cache
def group_of() -> dict[str, GroupName]:
    """The group of every tool, under each of its names."""
    table = tool_table()
    by_name = {tool: group for group, tools in table.groups.items() for tool in tools}
    return by_name | {alias: by_name[tool] for alias, tool in table.aliases.items()}
