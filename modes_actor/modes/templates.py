"""Ready-made restrictions, and which of them would suit a mode that has none. The templates are `templates.json`."""

from functools import cache
from pathlib import Path

import msgspec
from msgspec import Struct

from modes_actor.modes.model import McpRestrictions, ModeConfig, Origin, ToolPattern
from modes_actor.modes.servers import McpServers


class _TemplateFile(Struct, rename="camel", forbid_unknown_fields=True):
    description: str
    allowed_servers: tuple[str, ...] | None = None
    disallowed_servers: tuple[str, ...] | None = None
    disallowed_verbs: tuple[str, ...] = ()
    """Words: a tool whose name has one of them is refused, on any server."""


class Template(Struct, frozen=True):
    name: str
    description: str
    restrictions: McpRestrictions


class Suggestion(Struct, frozen=True):
    """Restrictions that would suit a mode, and why."""

    template: str
    restrictions: McpRestrictions
    reason: str


@cache
def templates() -> dict[str, Template]:
    files = msgspec.json.decode((Path(__file__).parent / "templates.json").read_bytes(), type=dict[str, _TemplateFile])
    return {name: Template(name, file.description, _restrictions(name, file)) for name, file in files.items()}


def suggest_restrictions(mode: ModeConfig, servers: McpServers) -> Suggestion | None:
    """For a mode that may use MCP servers without any restriction; None where there is nothing to suggest.

    A mode that may not change files or run commands here should not do so through a server either; one that may is
    still better off without servers that administer something, where there are any.
    """
    if mode.group("mcp") is None or mode.mcp_restrictions is not None:
        return None
    edit = mode.group("edit")
    if mode.group("command") is None and (edit is None or edit.file_regex is not None):
        limited = "edits only some files" if edit is not None else "edits no files"
        return _suggestion("read-only", f"`{mode.slug}` {limited} and runs no commands, but any MCP server may do both")
    if any("admin" in name.lower() for name in servers.servers):
        return _suggestion("no-admin", f"`{mode.slug}` may use every server, those for administration too")
    return None


def _suggestion(template: str, reason: str) -> Suggestion:
    return Suggestion(template, templates()[template].restrictions, reason)


def _restrictions(name: str, file: _TemplateFile) -> McpRestrictions:
    forms = ("{}", "{}_*", "*_{}", "*_{}_*")
    tools = [form.format(verb) for verb in file.disallowed_verbs for form in forms]
    return McpRestrictions(
        origin=Origin(f"template {name}"),
        allowed_servers=file.allowed_servers,
        disallowed_servers=file.disallowed_servers,
        disallowed_tools=tuple(ToolPattern("*", tool) for tool in tools) or None,
    )
