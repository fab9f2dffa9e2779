"""What a mode's `mcpRestrictions` say about a server or one of its tools. Deny wins.

Names count as clients may spell them (`names.alike`): what reaches a server must not get past a rule about it.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from modes_actor.modes.model import McpRestrictions, ModeConfig, Problem, ToolPattern
from modes_actor.modes.names import alike, covers, covers_alike
from modes_actor.modes.servers import McpServers
from modes_actor.spelling import did_you_mean
from modes_actor.wire.errors import shortened

SOME_TOOL: Final = ""
"""Stands for a tool that was not named: it may be any."""


def why_not(restrictions: McpRestrictions | None, server: str, tool: str | None, servers: McpServers) -> str | None:
    """The rule against a tool of a server, or against the server's resources (`tool` None); None if there is none."""
    allowed = restrictions.allowed_servers if restrictions is not None else None
    if not _enabled_by_default(servers, server) and _first_allowing(allowed or (), server, servers) is None:
        shown = shortened(server, length=100)
        return f"server '{shown}' is not enabled by default, and `allowedServers` does not name it"
    if restrictions is None:
        return None
    if (found := _first_denying(restrictions.disallowed_servers or (), server)) is not None:
        return f"`disallowedServers` has '{found}'"
    if allowed is not None and _first_allowing(allowed, server, servers) is None:
        return f"`allowedServers` has only {_listed(allowed)}"
    if tool is None:
        return None  # lists of tools say nothing about resources
    return _why_not_tool(restrictions, server, tool)


def _why_not_tool(restrictions: McpRestrictions, server: str, tool: str) -> str | None:
    allowed, disallowed = restrictions.allowed_tools, restrictions.disallowed_tools or ()
    if tool is SOME_TOOL and (allowed is not None or disallowed):
        return "no tool is named, and not every tool is allowed"
    for pattern in disallowed:
        if covers_alike(pattern.server, server) and covers_alike(pattern.tool, tool):
            return f"`disallowedTools` has '{pattern}'"
    if allowed is not None and not any(
        _allows(pattern.server, server) and _allows(pattern.tool, tool) for pattern in allowed
    ):
        return f"`allowedTools` has only {_listed(list(dict.fromkeys(map(str, allowed))))}"
    return None


def restriction_problems(mode: ModeConfig, servers: McpServers) -> Iterator[Problem]:
    """Rules that contradict each other, and names that nobody configured. Deny wins, so these are warnings."""
    restrictions = mode.mcp_restrictions
    if restrictions is None:
        return
    origin = restrictions.origin
    for message, hint in [*_contradictions(mode, restrictions), *_not_configured(restrictions, servers)]:
        yield Problem(origin.file, origin.line or 1, 1, "warning", f"Mode `{mode.slug}`: {message}", hint)


def _contradictions(mode: ModeConfig, restrictions: McpRestrictions) -> Iterator[tuple[str, None]]:
    allowed, disallowed = restrictions.allowed_servers, restrictions.disallowed_servers or ()
    for server in allowed or ():
        if _first_denying(disallowed, server) is not None:
            yield f"server '{server}' is both allowed and disallowed; it is disallowed", None
    for text, readings in _by_text(restrictions.allowed_tools or ()).items():
        if all(_first_denying(disallowed, each.server) is not None for each in readings):
            yield f"tool '{text}' is allowed, but its server is disallowed", None
        elif all(_why_not_tool(_only_disallowed(restrictions), each.server, each.tool) for each in readings):
            yield f"tool '{text}' is both allowed and disallowed; it is disallowed", None
        elif allowed is not None and not any(
            covers(each.server, server) or covers(server, each.server) for each in readings for server in allowed
        ):
            yield f"tool '{text}' is allowed, but `allowedServers` does not have its server", None
    if mode.group("mcp") is None and mode.extends is None:
        yield "there are `mcpRestrictions`, but the group `mcp` is not among its groups", None


def _not_configured(restrictions: McpRestrictions, servers: McpServers) -> Iterator[tuple[str, str | None]]:
    if not (servers.known and servers.complete):
        return
    for server in dict.fromkeys([*(restrictions.allowed_servers or ()), *(restrictions.disallowed_servers or ())]):
        if not any(covers(server, known) for known in servers.servers):
            yield f"server '{server}' is not configured", did_you_mean(server, servers.servers)
    tools = [*(restrictions.allowed_tools or ()), *(restrictions.disallowed_tools or ())]
    for text, readings in _by_text(tools).items():
        meant = [each for each in readings if any(covers(each.server, known) for known in servers.servers)]
        if not meant:
            shown = f"server '{readings[0].server}'" if len(readings) == 1 else f"the server of '{text}'"
            yield f"{shown} is not configured", did_you_mean(readings[0].server, servers.servers)
        for pattern in meant[:1]:
            known = servers.servers.get(pattern.server)
            tools_there = known.tools if known is not None else None
            if tools_there is not None and not any(covers(pattern.tool, tool) for tool in tools_there):
                hint = did_you_mean(pattern.tool, tools_there)
                yield f"server '{pattern.server}' has no tool '{pattern.tool}'", hint


def _by_text(patterns: Iterable[ToolPattern]) -> dict[str, list[ToolPattern]]:
    found: dict[str, list[ToolPattern]] = {}
    for pattern in patterns:
        found.setdefault(str(pattern), []).append(pattern)
    return found


def _only_disallowed(restrictions: McpRestrictions) -> McpRestrictions:
    return McpRestrictions(restrictions.origin, disallowed_tools=restrictions.disallowed_tools)


def _enabled_by_default(servers: McpServers, name: str) -> bool:
    if not servers.is_enabled_by_default(name):
        return False
    if name in servers.servers:
        return True
    # Nobody configured it under this name; but it may be another spelling of one that must be named.
    return all(server.default_enabled for server in servers.servers.values() if covers_alike(server.name, name))


def _allows(pattern: str, name: str) -> bool:
    return covers(pattern, name) or covers(alike(pattern), alike(name))


def _first_allowing(patterns: tuple[str, ...], server: str, servers: McpServers) -> str | None:
    # A server that is configured under this very name is meant, and no other that is spelt like it.
    allows = covers if server in servers.servers else _allows
    return next((pattern for pattern in patterns if allows(pattern, server)), None)


def _first_denying(patterns: tuple[str, ...], server: str) -> str | None:
    return next((pattern for pattern in patterns if covers_alike(pattern, server)), None)


def _listed(names: tuple[str, ...] | list[str]) -> str:
    shown = ", ".join(f"'{name}'" for name in names[:5]) or "nothing"
    return shown if len(names) <= 5 else f"{shown} and {len(names) - 5} more"
