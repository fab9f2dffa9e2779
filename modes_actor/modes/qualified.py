"""Qualified names of MCP tools, `mcp__server__tool`, and all the ways in which one can be split."""

import re
from typing import Final

from modes_actor.modes.model import ToolPattern

LONGEST_NAME: Final = 256
_PREFIX = re.compile(r"mcp(?:__|--)")
_SEPARATOR = re.compile(r"(?=__|--)")


def name_readings(name: str) -> list[tuple[str, str]] | None:
    """The servers and tools that a tool's name can mean; None if it is no qualified name at all.

    A server's own name may hold the separator, so a name can have several readings; or none that makes sense, as one
    that is absurdly long.
    """
    if _PREFIX.match(name) is None:
        return None
    if len(name) > LONGEST_NAME:
        return []
    rest = name[5:]
    cuts = [found.start() for found in _SEPARATOR.finditer(rest)]
    return [(rest[:at], rest[at + 2 :]) for at in cuts if at and rest[at + 2 :]]


def pattern_readings(text: str) -> tuple[ToolPattern, ...]:
    """What a qualified pattern can cover; nothing if it is none. `mcp__*` and `mcp__server` cover all tools."""
    readings = name_readings(text)
    if readings is None or len(text) <= 5:
        return ()
    if not readings and _SEPARATOR.search(text[5:]) is None and len(text) <= LONGEST_NAME:
        readings = [(text[5:], "*")]
    return tuple(ToolPattern(server, tool, text) for server, tool in readings)
