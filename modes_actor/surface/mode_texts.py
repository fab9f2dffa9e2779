"""How modes and tasks are told to people and models: the texts of the seven tools."""

from collections.abc import Iterable, Iterator

from modes_actor.modes.catalog import ModeCatalog, Rules
from modes_actor.modes.model import GROUP_NAMES, McpRestrictions, ModeConfig
from modes_actor.sessions.model import HIERARCHY_LIMIT, Hierarchy, ModeChange, Session, TaskRecord, iso_time

DEEPEST_INDENTED = 20


def mode_list(modes: Iterable[ModeConfig], catalog: ModeCatalog) -> str:
    lines = ["Available modes:", ""]
    for number, mode in enumerate(modes, 1):
        lines.append(f"{number}. {mode.slug} ({mode.name}) - {mode.source}")
        if mode.description:
            lines.append(f"   Description: {mode.description}")
        lines.append(f"   Tool groups: {', '.join(groups_in_short(mode, catalog)) or 'none'}")
        lines.append("")
    return "\n".join(lines)


def mode_info(mode: ModeConfig, catalog: ModeCatalog, system_prompt: str | None) -> str:
    head = [f"Mode: {mode.name} ({mode.slug})", f"Source: {mode.source}"]
    if mode.source != "builtin":
        head.append(f"Defined in: {mode.origin}")
    if mode.extends is not None:
        head.append(f"Extends: {mode.extends} (allows no more than that)")
    if mode.description:
        head.append(f"Description: {mode.description}")
    sections = ["\n".join(head)]
    if mode.when_to_use:
        sections.append(f"When to use:\n{mode.when_to_use}")
    sections.append("Tool Groups:\n" + "\n".join(group_lines(mode, catalog)))
    if restrictions := restriction_lines(mode, catalog):
        sections.append("MCP Restrictions:\n" + "\n".join(restrictions))
    if mode.custom_instructions:
        sections.append(f"Custom Instructions:\n{mode.custom_instructions}")
    if system_prompt is not None:
        sections.append(f"System Prompt:\n{system_prompt}")
    return "\n\n".join(sections) + "\n"


def group_lines(mode: ModeConfig, catalog: ModeCatalog) -> list[str]:
    """Every group there is, with a mark for whether the mode may use it, and for what."""
    lines: list[str] = []
    for name in GROUP_NAMES:
        lineage = catalog.lineage(mode)
        patterns = group_patterns(name, lineage)
        if patterns is None:
            lines.append(f"✗ {name} (not available)")
        else:
            files = f" (restricted to: {' and '.join(patterns)})" if patterns else ""
            found = [rules.groups[name].group.window for rules in lineage or ()]
            hours = "".join(f" (only {window.text})" for window in found if window is not None)
            lines.append(f"✓ {name}{files}{hours}")
    return lines


def group_patterns(name: str, lineage: tuple[Rules, ...] | None) -> list[str] | None:
    """The patterns that limit a group, the mode's own and those of what it extends; None if it does not have it."""
    found = [rules.groups.get(name) for rules in lineage or ()]
    if not found or any(each is None for each in found):
        return None
    return list(dict.fromkeys(each.group.file_regex for each in found if each and each.group.file_regex))


def groups_in_short(mode: ModeConfig, catalog: ModeCatalog) -> Iterator[str]:
    """The groups the mode may use, each with the patterns that limit it."""
    lineage = catalog.lineage(mode)
    for name in GROUP_NAMES:
        patterns = group_patterns(name, lineage)
        if patterns is not None:
            yield f"{name} ({' and '.join(patterns)})" if patterns else name


def restriction_lines(mode: ModeConfig, catalog: ModeCatalog) -> list[str]:
    """The rules about MCP, the mode's own and those of what it extends."""
    lines: list[str] = []
    for each in [rules.mode for rules in catalog.lineage(mode) or ()] or [mode]:
        inherited = "" if each.slug == mode.slug else f" (from {each.slug})"
        lines += [f"{line}{inherited}" for line in _restriction_lines(each.mcp_restrictions)]
    return lines


def _restriction_lines(restrictions: McpRestrictions | None) -> Iterator[str]:
    if restrictions is None:
        return
    kinds = (
        ("Allowed servers", restrictions.allowed_servers),
        ("Disallowed servers", restrictions.disallowed_servers),
        ("Allowed tools", restrictions.allowed_tools),
        ("Disallowed tools", restrictions.disallowed_tools),
    )
    for label, names in kinds:
        if names is not None:
            yield f"{label}: {', '.join(map(str, names)) or 'none'}"
    if restrictions.window is not None:
        yield f"Only: {restrictions.window.text}"


def task_info(
    record: TaskRecord, mode_name: str, *, age: float, idle: float, history: list[ModeChange] | None = None
) -> str:
    session, messages, hierarchy = record.session, record.messages, record.hierarchy
    task = session.task
    lines = [
        "Task Information",
        "",
        f"Session ID: {session.session_id}",
        f"Task ID: {task.task_id}",
        f"Mode: {task.mode} ({mode_name})",
        f"State: {task.state}",
        f"Created: {iso_time(task.created)}",
    ]
    if task.completed is not None:
        lines.append(f"Completed: {iso_time(task.completed)}")
    lines += ["", f"Session Age: {age:.0f}s", f"Idle Time: {idle:.0f}s"]
    if hierarchy is not None:
        lines += ["", "Hierarchy:", *_hierarchy_lines(session, hierarchy)]
    if history is not None:
        lines += ["", "Modes:"]
        lines += [
            f"  [{iso_time(each.timestamp)}] {each.mode}{f': {each.reason}' if each.reason else ''}" for each in history
        ]
    if messages is not None:
        lines += ["", f"Messages ({len(messages)}):"]
        lines += [f"  [{iso_time(each.timestamp)}] {each.role}: {each.content}" for each in messages]
    return "\n".join(lines) + "\n"


def _hierarchy_lines(session: Session, hierarchy: Hierarchy) -> Iterator[str]:
    parent, nodes = hierarchy.parent, hierarchy.nodes
    yield f"  Parent Task: {parent.task.task_id if parent else 'none'}"
    yield f"  Child Tasks: {', '.join(child.task.task_id for child in hierarchy.children) or 'none'}"
    if len(nodes) > 1:
        yield "  All:"
        for node in nodes:
            here = "  <- this one" if node.session_id == session.session_id else ""
            indent = "  " * min(node.depth, DEEPEST_INDENTED)
            yield f"    {indent}{node.task_id} ({node.mode}, {node.state}) {node.session_id}{here}"
        if len(nodes) >= HIERARCHY_LIMIT:
            yield "    … and more"
