"""Modes and tasks as resources: `mode://slug`, `/config`, `/system_prompt`, and `task://session_id`."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from modes_actor.actor.context import RequestContext
from modes_actor.modes.catalog import ModeCatalog
from modes_actor.modes.model import Group, McpRestrictions, ModeConfig, TimeWindow
from modes_actor.surface.house import House
from modes_actor.surface.mode_tools import mode_details, task_details
from modes_actor.wire.base import Annotations
from modes_actor.wire.content import ResourceContents
from modes_actor.wire.errors import ValidationFailed, shortened
from modes_actor.wire.resources import ReadResourceResult, Resource, ResourceTemplate

JSON, TEXT = "application/json", "text/plain"

_MODE_URI = re.compile(r"mode://([^/]*)(?:/(.*))?", re.DOTALL)
_TASK_URI = re.compile(r"task://(.*)", re.DOTALL)


class ModeResources:
    def __init__(self, house: House) -> None:
        self._house = house
        self._listed: tuple[ModeCatalog, list[Resource]] | None = None

    def resources(self) -> Sequence[Resource]:
        catalog = self._house.catalog
        if self._listed is None or self._listed[0] is not catalog:
            self._listed = (catalog, [resource for mode in catalog for resource in self._of_mode(mode)])
        return self._listed[1]

    def templates(self) -> Sequence[ResourceTemplate]:
        return [
            ResourceTemplate(uri_template="mode://{slug}", name="Mode", mime_type=JSON, description="A mode, whole"),
            ResourceTemplate(
                uri_template="mode://{slug}/config",
                name="Mode - Configuration",
                mime_type=JSON,
                description="A mode as a mode file would have it",
            ),
            ResourceTemplate(
                uri_template="mode://{slug}/system_prompt",
                name="Mode - System Prompt",
                mime_type=TEXT,
                description="The prompt of a mode, with the project's rules",
            ),
            ResourceTemplate(
                uri_template="task://{session_id}",
                name="Task",
                mime_type=JSON,
                description="A task with its messages and its hierarchy",
            ),
        ]

    def read(self, uri: str, context: RequestContext) -> ReadResourceResult:
        """Syntax is checked before anything is looked up: malformed is a validation error, unknown is not found."""
        if found := _MODE_URI.fullmatch(uri):
            slug, part = found[1], found[2]
            if part not in (None, "config", "system_prompt"):
                shown = shortened(part, length=100)
                raise ValidationFailed(f"'{shown}' is no part of a mode: there are `config` and `system_prompt`")
            return self._read_mode(uri, self._house.mode(slug, parameter="uri"), part)
        if found := _TASK_URI.fullmatch(uri):
            session = self._house.sessions.get(found[1])
            return _one(uri, JSON, _json(task_details(self._house.sessions.record(session))))
        shown = shortened(uri, length=100)
        raise ValidationFailed(f"'{shown}' is no URI of this server: they begin with `mode://` or `task://`")

    def _read_mode(self, uri: str, mode: ModeConfig, part: str | None) -> ReadResourceResult:
        if part == "system_prompt":
            return _one(uri, TEXT, self._house.system_prompt(mode))
        return _one(uri, JSON, _json(self._config(mode) if part == "config" else self._whole(mode)))

    def _whole(self, mode: ModeConfig) -> dict[str, Any]:
        """All about a mode, under the names of the API reference."""
        details: dict[str, Any] = msgspec.to_builtins(mode_details(mode, self._house))
        for group in details["tool_groups"].values():
            if patterns := group.pop("file_regex", None):
                group["file_regex"] = " and ".join(patterns)
        edit = details["tool_groups"]["edit"].get("file_regex")
        return {**details, "file_restrictions": edit}

    def _config(self, mode: ModeConfig) -> dict[str, Any]:
        """What a mode file says, all of it, for a program that wants to write one."""
        groups = None if mode.groups is None else [_group(group) for group in mode.groups]
        return _given(
            {
                "slug": mode.slug,
                "name": mode.name,
                "source": mode.source,
                "groups": groups,
                "description": mode.description,
                "when_to_use": mode.when_to_use,
                "role_definition": mode.role_definition or None,
                "custom_instructions": mode.custom_instructions,
                "mcp_restrictions": _restrictions(mode.mcp_restrictions),
                "extends": mode.extends,
            }
        )

    def _of_mode(self, mode: ModeConfig) -> list[Resource]:
        uri = f"mode://{mode.slug}"
        annotations = _last_modified(mode)
        whole = _json(self._whole(mode))
        config = _json(self._config(mode))
        return [
            Resource(
                uri=uri,
                name=mode.name,
                mime_type=JSON,
                description=f"Full configuration for {mode.slug} mode",
                size=len(whole.encode()),
                annotations=annotations,
            ),
            Resource(
                uri=f"{uri}/config",
                name=f"{mode.name} - Configuration",
                mime_type=JSON,
                description=f"Structured configuration for {mode.slug} mode",
                size=len(config.encode()),
                annotations=annotations,
            ),
            Resource(
                uri=f"{uri}/system_prompt",
                name=f"{mode.name} - System Prompt",
                mime_type=TEXT,
                description=f"System prompt for {mode.slug} mode",
            ),
        ]


def _group(group: Group) -> Any:
    options = _given({"fileRegex": group.file_regex, "description": group.description, **_window(group.window)})
    return [group.name, options] if options else group.name


def _restrictions(restrictions: McpRestrictions | None) -> dict[str, Any] | None:
    if restrictions is None:
        return None
    lists = {
        "allowedServers": restrictions.allowed_servers,
        "disallowedServers": restrictions.disallowed_servers,
        "allowedTools": restrictions.allowed_tools,
        "disallowedTools": restrictions.disallowed_tools,
    }
    named = {key: None if names is None else list(dict.fromkeys(map(str, names))) for key, names in lists.items()}
    return _given({**named, **_window(restrictions.window)})


def _window(window: TimeWindow | None) -> dict[str, Any]:
    if window is None:
        return {}
    hours = "-".join(f"{minute // 60:02}:{minute % 60:02}" for minute in (window.start, window.end))
    return {"activeHours": hours, "days": list(window.days), "timezone": window.timezone}


def _given(members: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in members.items() if value is not None}


def _last_modified(mode: ModeConfig) -> Annotations | None:
    """When the mode's file was last saved; nobody saves a built-in mode."""
    if mode.source == "builtin":
        return None
    try:
        saved = Path(mode.origin.file).stat().st_mtime
    except OSError:
        return None
    return Annotations(last_modified=datetime.fromtimestamp(saved, UTC).isoformat(timespec="seconds"))


def _json(value: Any) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


def _one(uri: str, mime_type: str, text: str) -> ReadResourceResult:
    return ReadResourceResult([ResourceContents(uri=uri, mime_type=mime_type, text=text)])
