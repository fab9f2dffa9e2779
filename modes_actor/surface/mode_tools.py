"""The seven tools: modes and tasks, as a model uses them."""

from collections.abc import Awaitable, Callable
from typing import Any

from msgspec import Struct, structs

from modes_actor.actor.context import RequestContext
from modes_actor.modes.catalog import ModeCatalog
from modes_actor.modes.decisions import Allowed, Denied
from modes_actor.modes.model import GROUP_NAMES, ModeConfig
from modes_actor.modes.tools import group_of
from modes_actor.sessions.model import TaskRecord, iso_time
from modes_actor.sessions.sessions import check_session_id
from modes_actor.surface import mode_texts
from modes_actor.surface.deciding import decide_in, with_files
from modes_actor.surface.house import House, check_slug
from modes_actor.surface.mode_results import (
    CompleteTask,
    CreatedMetadata,
    CreateTask,
    GetModeInfo,
    GetTaskInfo,
    ListModes,
    ModeDetails,
    ModeList,
    ModeSummary,
    ModeSwitchedResult,
    SwitchedMetadata,
    SwitchMode,
    TaskCompletedResult,
    TaskCreated,
    TaskDetails,
    ToldMessage,
    ToldModeChange,
    ToldNode,
    ToolGroup,
    ValidateToolUse,
    Validation,
    ValidationMetadata,
)
from modes_actor.surface.offer import OfferedTool, Soon
from modes_actor.surface.schemas import schema_of
from modes_actor.wire.base import KeptResult, Result
from modes_actor.wire.content import TextContent
from modes_actor.wire.errors import ErrorCode, FileRestricted, ToolRestricted, ValidationFailed
from modes_actor.wire.tools import CallToolResult, Tool, ToolAnnotations


def _hints(*, read_only: bool = False, destructive: bool = False, idempotent: bool = False) -> ToolAnnotations:
    return ToolAnnotations(
        read_only_hint=read_only, destructive_hint=destructive, idempotent_hint=idempotent, open_world_hint=False
    )


_LOOKS = _hints(read_only=True, idempotent=True)
_ADDS = _hints()
_CHANGES = _hints()
_ENDS = _hints(destructive=True)


class ModeTools:
    def __init__(self, house: House) -> None:
        self._house = house
        self._listed_catalog: ModeCatalog | None = None
        self._lists: dict[str, KeptResult] = {}

    def offered(self) -> list[OfferedTool]:
        return [
            _tool(self.list_modes, ListModes, ModeList, _LOOKS, "List all available modes with their metadata"),
            _tool(
                self.get_mode_info, GetModeInfo, ModeDetails, _LOOKS, "Get detailed information about a specific mode"
            ),
            _tool(self.create_task, CreateTask, TaskCreated, _ADDS, "Create a new task in a specific mode"),
            _tool(self.switch_mode, SwitchMode, ModeSwitchedResult, _CHANGES, "Switch a task to a different mode"),
            _tool(self.get_task_info, GetTaskInfo, TaskDetails, _LOOKS, "Get information about a task/session"),
            _tool(
                self.validate_tool_use,
                ValidateToolUse,
                Validation,
                _LOOKS,
                "Check if a tool can be used in the current mode",
            ),
            _tool(
                self.complete_task,
                CompleteTask,
                TaskCompletedResult,
                _ENDS,
                "Mark a task as completed, failed, or cancelled",
            ),
        ]

    # Modes.

    def list_modes(self, arguments: ListModes, context: RequestContext) -> KeptResult:
        catalog, source = self._house.catalog, arguments.source or "all"
        if self._listed_catalog is not catalog:
            self._listed_catalog, self._lists = catalog, {}
        if source not in self._lists:
            modes = [mode for mode in catalog if source in ("all", mode.source)]
            listed = _result(
                mode_texts.mode_list(modes, catalog), ModeList(modes=[self._summary(mode) for mode in modes])
            )
            self._lists[source] = KeptResult(result=listed)
        return self._lists[source]

    def get_mode_info(self, arguments: GetModeInfo, context: RequestContext) -> CallToolResult:
        house = self._house
        mode = house.mode(arguments.mode_slug)
        prompt = house.system_prompt(mode) if arguments.include_system_prompt else None
        text = mode_texts.mode_info(mode, house.catalog, prompt)
        return _result(text, mode_details(mode, house, prompt))

    # Tasks.

    async def create_task(self, arguments: CreateTask, context: RequestContext) -> CallToolResult:
        check_slug(arguments.mode_slug, parameter="mode_slug")
        if arguments.parent_session_id is not None:
            check_session_id(arguments.parent_session_id)
        mode = self._house.mode(arguments.mode_slug)
        session = await self._house.sessions.create(mode.slug, arguments.initial_message, arguments.parent_session_id)
        task = session.task
        text = (
            "Task created successfully\n\n"
            f"Session ID: {session.session_id}\nTask ID: {task.task_id}\nMode: {mode.slug} ({mode.name})\n"
            f"State: {task.state}\n\nUse this session_id for subsequent operations."
        )
        return _result(
            text,
            TaskCreated(session_id=session.session_id, task_id=task.task_id, mode_slug=mode.slug, state=task.state),
            CreatedMetadata(session_id=session.session_id, task_id=task.task_id, mode_slug=mode.slug),
        )

    def switch_mode(self, arguments: SwitchMode, context: RequestContext) -> Awaitable[CallToolResult]:
        self._house.begin_switch(arguments.session_id)  # now, before the next request is looked at
        return self._switch_mode(arguments)

    async def _switch_mode(self, arguments: SwitchMode) -> CallToolResult:
        try:
            return await self._switch(arguments)
        finally:
            self._house.end_switch(arguments.session_id)

    async def _switch(self, arguments: SwitchMode) -> CallToolResult:
        house = self._house
        check_session_id(arguments.session_id)
        check_slug(arguments.new_mode_slug, parameter="new_mode_slug")
        house.sessions.get(arguments.session_id)  # who is asking comes before what for
        mode = house.mode(arguments.new_mode_slug, parameter="new_mode_slug")
        old_mode, session = await house.sessions.switch(arguments.session_id, mode.slug, arguments.reason)
        lines = [
            "Mode switched successfully",
            "",
            f"Session: {session.session_id}",
            f"Old mode: {old_mode}",
            f"New mode: {mode.slug}",
            *([f"Reason: {arguments.reason}"] if arguments.reason else []),
            "",
            "New tool groups:",
            *mode_texts.group_lines(mode, house.catalog),
            "",
        ]
        groups = tool_groups(mode, house)
        switched = ModeSwitchedResult(
            session_id=session.session_id,
            old_mode=old_mode,
            new_mode=mode.slug,
            reason=arguments.reason,
            tool_groups=groups,
        )
        return _result("\n".join(lines), switched, SwitchedMetadata(old_mode=old_mode, new_mode=mode.slug))

    def get_task_info(self, arguments: GetTaskInfo, context: RequestContext) -> CallToolResult:
        sessions = self._house.sessions
        session = sessions.get(arguments.session_id)
        record = sessions.record(
            session, messages=bool(arguments.include_messages), hierarchy=bool(arguments.include_hierarchy)
        )
        mode = self._house.catalog.get(session.task.mode)
        text = mode_texts.task_info(
            record,
            mode.name if mode else "no longer defined",
            age=sessions.age(session),
            idle=sessions.seconds_idle(session),
        )
        return _result(text, task_details(record))

    def validate_tool_use(self, arguments: ValidateToolUse, context: RequestContext) -> Soon[CallToolResult]:
        if self._house.is_switching(arguments.session_id):
            return self._validate_later(arguments, context)
        return self._validate(arguments, context)

    async def _validate_later(self, arguments: ValidateToolUse, context: RequestContext) -> CallToolResult:
        await self._house.switched(arguments.session_id)
        return self._validate(arguments, context)

    def _validate(self, arguments: ValidateToolUse, context: RequestContext) -> CallToolResult:
        if not arguments.tool_name.strip():
            raise ValidationFailed("`tool_name` must be the name of a tool, not empty")
        session = self._house.session(arguments.session_id, context)
        files = [] if arguments.file_path is None else [arguments.file_path]
        given = with_files(arguments.arguments, files)
        decision = decide_in(session.task.mode, arguments.tool_name, given, self._house.decision_context(context))
        if isinstance(decision, Denied) and arguments.enforce:
            is_file = decision.code is ErrorCode.FILE_RESTRICTION_ERROR
            raise (FileRestricted if is_file else ToolRestricted)(decision.message)
        file = f"File: {arguments.file_path}\n" if arguments.file_path is not None else ""
        head = (
            f"Tool validation result\n\nTool: {arguments.tool_name}\nSession: {session.session_id}\n"
            f"Mode: {session.task.mode}\n{file}\n"
        )
        allows = isinstance(decision, Allowed)
        told = ValidationMetadata(allowed=allows, tool_name=arguments.tool_name, mode=decision.mode)
        if isinstance(decision, Allowed):
            allowed = Validation(allowed=True, tool_name=told.tool_name, mode=told.mode, rule=decision.rule.text)
            return _result(f"{head}Result: ✓ Allowed\n", allowed, told)
        told.restriction, told.error = decision.restriction, decision.message
        denied = Validation(
            allowed=False,
            tool_name=told.tool_name,
            mode=told.mode,
            restriction=decision.restriction,
            error=decision.message,
            rule=decision.rule.text,
            defined_in=str(decision.rule.origin),
            allowed_in=list(decision.allowed_in),
        )
        reason = decision.message
        if decision.code is ErrorCode.FILE_RESTRICTION_ERROR and decision.restriction is not None:
            group = group_of().get(arguments.tool_name)
            reason = f"Tool group '{group}' is restricted to files matching: {decision.restriction}\n{reason}"
        return _result(f"{head}Result: ❌ Not allowed\nReason: {reason}\n", denied, told)

    async def complete_task(self, arguments: CompleteTask, context: RequestContext) -> CallToolResult:
        done = await self._house.sessions.complete(arguments.session_id, arguments.status, arguments.result)
        task = done.session.task
        opening = {
            "completed": "Task completed successfully",
            "failed": "Task marked as failed",
            "cancelled": "Task cancelled",
        }
        lines = [
            opening[arguments.status],
            "",
            f"Session: {done.session.session_id}",
            f"Task: {task.task_id}",
            f"Status: {task.state}",
            *([f"Result: {arguments.result}"] if arguments.result else []),
            *([f"Cancelled with it: {', '.join(done.cancelled)}"] if done.cancelled else []),
            *([f"Subtasks still open: {done.still_open}"] if done.still_open else []),
            "",
            "The session will be cleaned up automatically.",
        ]
        completed = TaskCompletedResult(
            session_id=done.session.session_id,
            task_id=task.task_id,
            status=task.state,
            result=arguments.result,
            cancelled_sessions=list(done.cancelled),
            open_subtasks=done.still_open,
        )
        return _result("\n".join(lines), completed)

    # Inside.

    def _summary(self, mode: ModeConfig) -> ModeSummary:
        lineage = self._house.catalog.lineage(mode)
        return ModeSummary(
            slug=mode.slug,
            name=mode.name,
            source=mode.source,
            description=mode.description,
            groups=[name for name in GROUP_NAMES if mode_texts.group_patterns(name, lineage) is not None],
        )


def tool_groups(mode: ModeConfig, house: House) -> dict[str, ToolGroup]:
    """Every group, and whether the mode may use it."""
    lineage = house.catalog.lineage(mode)
    found = {name: mode_texts.group_patterns(name, lineage) for name in GROUP_NAMES}
    return {
        name: ToolGroup(enabled=patterns is not None, file_regex=patterns or []) for name, patterns in found.items()
    }


def mode_details(mode: ModeConfig, house: House, system_prompt: str | None = None) -> ModeDetails:
    return ModeDetails(
        slug=mode.slug,
        name=mode.name,
        source=mode.source,
        defined_in=str(mode.origin),
        description=mode.description,
        when_to_use=mode.when_to_use,
        role_definition=house.catalog.role_of(mode),
        custom_instructions=mode.custom_instructions,
        tool_groups=tool_groups(mode, house),
        mcp_restrictions=mode_texts.restriction_lines(mode, house.catalog),
        system_prompt=system_prompt,
    )


def task_details(record: TaskRecord) -> TaskDetails:
    session, task = record.session, record.session.task
    told_messages = told_hierarchy = None
    if record.messages is not None:
        told_messages = [
            ToldMessage(role=each.role, content=each.content, timestamp=iso_time(each.timestamp))
            for each in record.messages
        ]
    if record.hierarchy is not None:
        told_hierarchy = [
            ToldNode(
                session_id=node.session_id,
                task_id=node.task_id,
                mode_slug=node.mode,
                state=node.state,
                parent_session_id=node.parent_session_id,
                depth=node.depth,
            )
            for node in record.hierarchy.nodes
        ]
    return TaskDetails(
        session_id=session.session_id,
        task_id=task.task_id,
        mode_slug=task.mode,
        state=task.state,
        created_at=iso_time(task.created),
        last_activity=iso_time(session.last_activity),
        mode_history=[
            ToldModeChange(mode=each.mode, reason=each.reason, timestamp=iso_time(each.timestamp))
            for each in record.history
        ],
        completed_at=iso_time(task.completed) if task.completed is not None else None,
        parent_session_id=task.parent_session_id,
        messages=told_messages,
        hierarchy=told_hierarchy,
        metadata=task.metadata or None,
    )


def _result(text: str, content: Struct, metadata: Struct | None = None) -> CallToolResult:
    return CallToolResult([TextContent(text)], structured_content=content, metadata=metadata)


def _tool(
    call: Callable[[Any, RequestContext], Soon[Result]],
    arguments: type[Struct],
    result: type[Struct],
    hints: ToolAnnotations,
    description: str,
) -> OfferedTool:
    """A tool is called as its method is."""
    name = call.__name__
    title = name.replace("_", " ").capitalize()
    tool = Tool(
        name=name,
        title=title,
        description=description,
        input_schema=schema_of(arguments),
        output_schema=schema_of(result),
        annotations=structs.replace(hints, title=title),
    )
    return OfferedTool(tool, arguments, call)
