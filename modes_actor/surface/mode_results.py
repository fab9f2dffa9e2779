"""What the seven tools take and give: one Struct each, from which decoder, schema and `structuredContent` are made."""

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from modes_actor.modes.model import GroupName, Source
from modes_actor.sessions.model import FinalState, TaskState


def _says(description: str) -> Meta:
    return Meta(description=description)


SessionId = Annotated[str, _says("Session ID, as create_task returned it")]
ModeSlug = Annotated[str, _says("Slug of a mode, as list_modes shows it")]


class ListModes(Struct):
    source: Annotated[
        Literal["builtin", "global", "project", "all"] | None, _says("Filter modes by source (default: all)")
    ] = None


class GetModeInfo(Struct):
    mode_slug: Annotated[str, _says("Slug of the mode to get info for")]
    include_system_prompt: Annotated[bool | None, _says("Include the full system prompt (default: false)")] = None


class CreateTask(Struct):
    mode_slug: Annotated[str, _says("Mode to use for this task")]
    initial_message: Annotated[str | None, _says("Initial user message for the task")] = None
    parent_session_id: Annotated[str | None, _says("Parent session ID if this is a subtask")] = None


class SwitchMode(Struct):
    session_id: Annotated[str, _says("Session ID of the task")]
    new_mode_slug: Annotated[str, _says("Slug of the mode to switch to")]
    reason: Annotated[str | None, _says("Reason for switching modes; kept in the task's history")] = None


class GetTaskInfo(Struct):
    session_id: SessionId
    include_messages: Annotated[bool | None, _says("Include conversation history (default: false)")] = None
    include_hierarchy: Annotated[bool | None, _says("Include parent and child tasks (default: false)")] = None


class ValidateToolUse(Struct):
    session_id: SessionId
    tool_name: Annotated[str, _says("Name of the tool to validate, e.g. write_to_file or mcp__github__create_issue")]
    file_path: Annotated[str | None, _says("File path (for edit operations), relative to the project")] = None
    arguments: Annotated[
        dict[str, Any] | None, _says("The tool's own arguments, where they decide: server, patch, several files")
    ] = None
    enforce: Annotated[bool | None, _says("Answer a denial as an error instead of a result (default: false)")] = None


class CompleteTask(Struct):
    session_id: SessionId
    status: Annotated[FinalState, _says("Final status of the task")]
    result: Annotated[str | None, _says("Completion result or error message")] = None


class _Told(Struct, omit_defaults=True):
    """What a tool tells. What is None is left out, so that its schema need not speak of null."""


class ToolGroup(_Told, kw_only=True):
    enabled: Annotated[bool, _says("Whether the mode may use these tools")]
    file_regex: Annotated[list[str], _says("Patterns that a file must match, all of them")] = []


class ModeSummary(_Told, kw_only=True):
    slug: ModeSlug
    name: Annotated[str, _says("Display name")]
    source: Annotated[Source, _says("Where the mode comes from")]
    description: Annotated[str | None, _says("One line about it")] = None
    groups: Annotated[list[GroupName], _says("Tool groups it may use")]


class ModeList(_Told, kw_only=True):
    modes: Annotated[list[ModeSummary], _says("The modes in force, in order")]


class ModeDetails(_Told, kw_only=True):
    slug: ModeSlug
    name: Annotated[str, _says("Display name")]
    source: Annotated[Source, _says("Where the mode comes from")]
    defined_in: Annotated[str, _says("File and line, or built-in")]
    description: Annotated[str | None, _says("One line about it")] = None
    when_to_use: Annotated[str | None, _says("When to choose it")] = None
    role_definition: Annotated[str, _says("Who the model is in this mode")]
    custom_instructions: Annotated[str | None, _says("How to work in it")] = None
    tool_groups: Annotated[dict[str, ToolGroup], _says("Every tool group, and whether the mode may use it")]
    mcp_restrictions: Annotated[list[str], _says("Rules about MCP servers and tools")]
    system_prompt: Annotated[str | None, _says("The whole prompt, if it was asked for")] = None


class TaskCreated(_Told, kw_only=True):
    session_id: SessionId
    task_id: Annotated[str, _says("Task ID")]
    mode_slug: ModeSlug
    state: Annotated[TaskState, _says("State of the task")]


class CreatedMetadata(_Told, kw_only=True):
    session_id: str
    task_id: str
    mode_slug: str


class SwitchedMetadata(_Told, kw_only=True):
    old_mode: str
    new_mode: str


class ModeSwitchedResult(_Told, kw_only=True):
    session_id: SessionId
    old_mode: Annotated[str, _says("Mode before")]
    new_mode: Annotated[str, _says("Mode from now on")]
    reason: Annotated[str | None, _says("Why, if that was said")] = None
    tool_groups: Annotated[dict[str, ToolGroup], _says("What the new mode may use")]


class ToldMessage(_Told, kw_only=True):
    role: Annotated[Literal["user", "assistant"], _says("Who said it")]
    content: Annotated[str, _says("What was said")]
    timestamp: Annotated[str, _says("When, ISO 8601")]


class ToldModeChange(_Told, kw_only=True):
    mode: ModeSlug
    reason: Annotated[str | None, _says("Why the task came into it")] = None
    timestamp: Annotated[str, _says("When, ISO 8601")]


class ToldNode(_Told, kw_only=True):
    session_id: SessionId
    task_id: Annotated[str, _says("Task ID")]
    mode_slug: ModeSlug
    state: Annotated[TaskState, _says("State of the task")]
    parent_session_id: Annotated[str | None, _says("Session of the parent task")] = None
    depth: Annotated[int, _says("Steps below the topmost task")]


class TaskDetails(_Told, kw_only=True):
    session_id: SessionId
    task_id: Annotated[str, _says("Task ID")]
    mode_slug: ModeSlug
    state: Annotated[TaskState, _says("State of the task")]
    created_at: Annotated[str, _says("When it was created, ISO 8601")]
    last_activity: Annotated[str, _says("When the session was last used before, ISO 8601")]
    mode_history: Annotated[list[ToldModeChange], _says("The modes it was in, the first one first")]
    completed_at: Annotated[str | None, _says("When it ended, ISO 8601")] = None
    parent_session_id: Annotated[str | None, _says("Session of the parent task")] = None
    messages: Annotated[list[ToldMessage] | None, _says("What was said")] = None
    hierarchy: Annotated[list[ToldNode] | None, _says("All tasks of its tree, parents before children")] = None
    metadata: Annotated[dict[str, Any] | None, _says("Other facts about the task")] = None


class Validation(_Told, kw_only=True):
    allowed: Annotated[bool, _says("Whether the tool may be used so")]
    tool_name: Annotated[str, _says("The tool that was asked about")]
    mode: ModeSlug
    restriction: Annotated[str | None, _says("The pattern or list that was not met")] = None
    error: Annotated[str | None, _says("Why not, in a sentence")] = None
    rule: Annotated[str | None, _says("The rule that decided")] = None
    defined_in: Annotated[str | None, _says("Where that rule is written")] = None
    allowed_in: Annotated[list[str] | None, _says("Modes that would allow it")] = None


class ValidationMetadata(_Told, kw_only=True):
    allowed: bool
    tool_name: str
    mode: str
    restriction: str | None = None
    error: str | None = None


class TaskCompletedResult(_Told, kw_only=True):
    session_id: SessionId
    task_id: Annotated[str, _says("Task ID")]
    status: Annotated[TaskState, _says("Final status of the task")]
    result: Annotated[str | None, _says("What came of it")] = None
    cancelled_sessions: Annotated[list[str], _says("Sessions of subtasks that were cancelled with it")]
    open_subtasks: Annotated[int, _says("Subtasks that are still active")]
