"""The system prompt of a mode: who the model is, what it may use, whom it may hand over to, and what it must heed.

Pure: the same mode, catalog and project give the same text, to the letter.
"""

from collections.abc import Iterator, Sequence

from msgspec import Struct

from modes_actor.modes.catalog import ModeCatalog, Rules
from modes_actor.modes.model import Group, McpRestrictions, ModeConfig, ToolPattern
from modes_actor.modes.restrictions import why_not
from modes_actor.modes.rules import Rule
from modes_actor.modes.servers import McpServers

_GROUP_WORDS = {
    "read": "read, list and search files",
    "edit": "create and change files",
    "browser": "use a browser",
    "command": "run commands",
    "mcp": "use tools and resources of MCP servers",
    "modes": "switch to another mode and start tasks in one",
}


class Project(Struct, frozen=True):
    """What a prompt says about the surroundings."""

    servers: McpServers
    rules: Sequence[Rule] = ()


def system_prompt(mode: ModeConfig, catalog: ModeCatalog, project: Project) -> str:
    sections = [
        catalog.role_of(mode).strip(),
        _section("When this mode applies", (mode.when_to_use or "").strip()),
        _section("What you may use", "\n".join(_tools(mode, catalog, project.servers))),
        _section("Other modes", "\n".join(_others(mode, catalog))),
        _section("Instructions", (mode.custom_instructions or "").strip()),
        *(_section(f"Rules from {rule.source}", rule.text) for rule in project.rules),
    ]
    return "\n\n".join(filter(None, sections)) + "\n"


def _section(heading: str, text: str) -> str:
    return f"# {heading}\n\n{text}" if text else ""


def _tools(mode: ModeConfig, catalog: ModeCatalog, servers: McpServers) -> Iterator[str]:
    lineage = catalog.lineage(mode)
    allowed = list(lineage[0].groups) if lineage else []
    for name, words in _GROUP_WORDS.items():
        limits = _limits(name, lineage) if lineage and name in allowed else None
        if limits is None:
            yield (
                f"- You may not {words}." if name != "modes" else "- You may ask, finish, switch modes and start tasks."
            )
        else:
            yield f"- You may {words}{''.join(limits)}."
            if name == "mcp" and lineage:
                yield from (f"  - {line}" for line in _servers(lineage, servers))
    yield "The server enforces this: what is not allowed here is refused, however it is asked for."


def _limits(name: str, lineage: tuple[Rules, ...]) -> list[str] | None:
    """What narrows a group, by the mode and all it extends; None if one of them does not have it."""
    limits: list[str] = []
    for rules in lineage:
        found = rules.groups.get(name)
        if found is None:
            return None
        limits += [limit for limit in _group_limits(found.group) if limit not in limits]
    return limits


def _group_limits(group: Group) -> Iterator[str]:
    if group.file_regex is not None:
        described = f" ({group.description})" if group.description else ""
        yield f", only those whose path matches `{group.file_regex}`{described}"
    elif group.description:
        yield f" ({group.description})"
    if group.window is not None:
        yield f", only {group.window.text}"


def _servers(lineage: tuple[Rules, ...], servers: McpServers) -> Iterator[str]:
    everyone = [rules.mode.mcp_restrictions for rules in lineage]
    for name in sorted(servers.servers):
        against = next((why for each in everyone if (why := why_not(each, name, None, servers))), None)
        yield f"Server `{name}`: {'not allowed' if against else 'allowed'}"
    for restrictions in filter(None, everyone):
        yield from _restriction_lines(restrictions)


def _restriction_lines(restrictions: McpRestrictions) -> Iterator[str]:
    def names(patterns: Sequence[str | ToolPattern]) -> str:
        shown = dict.fromkeys(str(each) for each in patterns)
        return ", ".join(f"`{name}`" for name in shown) or "none"

    if restrictions.allowed_servers is not None:
        yield f"Only these servers: {names(restrictions.allowed_servers)}"
    if restrictions.disallowed_servers:
        yield f"Never these servers: {names(restrictions.disallowed_servers)}"
    if restrictions.allowed_tools is not None:
        yield f"Only these tools: {names(restrictions.allowed_tools)}"
    if restrictions.disallowed_tools:
        yield f"Never these tools: {names(restrictions.disallowed_tools)}"
    if restrictions.window is not None:
        yield f"Only {restrictions.window.text}"


def _others(mode: ModeConfig, catalog: ModeCatalog) -> Iterator[str]:
    for other in catalog:
        if other.slug != mode.slug:
            what = other.when_to_use or other.description or catalog.role_of(other)
            yield f"- `{other.slug}` ({other.name}): {_first_sentence(what)}"


def _first_sentence(text: str) -> str:
    line = " ".join(text.split())
    end = line.find(". ")
    line = line if end < 0 else line[: end + 1]
    return line if len(line) <= 300 else line[:299].rstrip() + "…"
