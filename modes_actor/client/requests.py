"""What can be asked: the methods that every server may have, and the seven tools of this one."""

from collections.abc import Mapping
from typing import Any, Literal, TypeVar

import msgspec
from msgspec import Struct, structs

from modes_actor.client.conversation import Conversation
from modes_actor.client.failures import BadAnswer, ToolFailed, ToolResult, server_error
from modes_actor.sessions.model import FinalState
from modes_actor.surface import mode_results
from modes_actor.wire import completion, prompts, resources, tools

T = TypeVar("T")


class _Refusal(Struct):
    error: tools.ToolError


class Client(Conversation):
    """One conversation with one server. `start_server` and `connect` make it; it lasts as long as their block."""

    # What every server may have.

    async def ping(self) -> None:
        """Return once the server has answered. The stateless era has no ping, so it is asked who it is."""
        await self.request("server/discover" if self.is_stateless else "ping")

    async def list_tools(self) -> list[tools.Tool]:
        return [tool for page in await self.pages("tools/list", tools.ListToolsResult) for tool in page.tools]

    async def call_tool(self, name: str, arguments: Mapping[str, Any] | None = None) -> ToolResult:
        """The result of a tool that did its work. Raises what the tool answered if it did not."""
        result = await self.ask("tools/call", {"name": name, "arguments": arguments or {}}, ToolResult)
        if not result.is_error:
            return result
        try:
            refusal = msgspec.convert(result.structured, _Refusal).error
        except msgspec.ValidationError:
            raise ToolFailed(name, result) from None
        raise server_error(refusal.code, refusal.message, result.structured)

    async def list_resources(self) -> list[resources.Resource]:
        return [
            each
            for page in await self.pages("resources/list", resources.ListResourcesResult)
            for each in page.resources
        ]

    async def read_resource(self, uri: str) -> str:
        """The text of a resource; of its parts, one after the other, if it has several."""
        contents = (await self.ask("resources/read", {"uri": uri}, resources.ReadResourceResult)).contents
        texts = [part.text for part in contents if part.text is not None]
        if not texts:
            raise BadAnswer(f"The resource {uri} has no text")
        return "\n".join(texts)

    async def list_prompts(self) -> list[prompts.Prompt]:
        return [
            prompt for page in await self.pages("prompts/list", prompts.ListPromptsResult) for prompt in page.prompts
        ]

    async def get_prompt(self, name: str, arguments: Mapping[str, str] | None = None) -> prompts.GetPromptResult:
        return await self.ask("prompts/get", {"name": name, "arguments": arguments or {}}, prompts.GetPromptResult)

    async def complete(
        self,
        ref: completion.PromptReference | completion.ResourceTemplateReference,
        argument: str,
        value: str,
        *,
        chosen: dict[str, str] | None = None,
    ) -> completion.Completion:
        """Values for an argument of a prompt or a template that begins so; `chosen` are its other arguments."""
        context = None if chosen is None else completion.CompletionContext(chosen)
        params = completion.CompleteParams(
            ref=ref, argument=completion.CompletionArgument(argument, value), context=context
        )
        return (await self.ask("completion/complete", params, completion.CompleteResult)).completion

    # The seven tools.

    async def list_modes(
        self, source: Literal["builtin", "global", "project", "all"] | None = None
    ) -> mode_results.ModeList:
        return await self._use(mode_results.ListModes(source), "list_modes", mode_results.ModeList)

    async def get_mode_info(self, slug: str, *, include_system_prompt: bool = False) -> mode_results.ModeDetails:
        arguments = mode_results.GetModeInfo(slug, include_system_prompt or None)
        return await self._use(arguments, "get_mode_info", mode_results.ModeDetails)

    async def create_task(
        self, mode: str, initial_message: str | None = None, parent_session_id: str | None = None
    ) -> mode_results.TaskCreated:
        arguments = mode_results.CreateTask(mode, initial_message, parent_session_id)
        return await self._use(arguments, "create_task", mode_results.TaskCreated)

    async def switch_mode(
        self, session_id: str, new_mode: str, reason: str | None = None
    ) -> mode_results.ModeSwitchedResult:
        arguments = mode_results.SwitchMode(session_id, new_mode, reason)
        return await self._use(arguments, "switch_mode", mode_results.ModeSwitchedResult)

    async def get_task_info(
        self, session_id: str, *, include_messages: bool = False, include_hierarchy: bool = False
    ) -> mode_results.TaskDetails:
        arguments = mode_results.GetTaskInfo(session_id, include_messages or None, include_hierarchy or None)
        return await self._use(arguments, "get_task_info", mode_results.TaskDetails)

    async def validate_tool_use(
        self,
        session_id: str,
        tool: str,
        file_path: str | None = None,
        arguments: dict[str, Any] | None = None,
        *,
        enforce: bool = False,
    ) -> mode_results.Validation:
        """Whether the session's mode may use the tool so. `enforce` makes a no an exception."""
        asked = mode_results.ValidateToolUse(session_id, tool, file_path, arguments, enforce or None)
        return await self._use(asked, "validate_tool_use", mode_results.Validation)

    async def complete_task(
        self, session_id: str, status: FinalState, result: str | None = None
    ) -> mode_results.TaskCompletedResult:
        arguments = mode_results.CompleteTask(session_id, status, result)
        return await self._use(arguments, "complete_task", mode_results.TaskCompletedResult)

    async def _use(self, arguments: Struct, name: str, answer: type[T]) -> T:
        given = {key: value for key, value in structs.asdict(arguments).items() if value is not None}
        result = await self.call_tool(name, given)
        try:
            return msgspec.convert(result.structured, answer)
        except msgspec.ValidationError as error:
            raise BadAnswer(f"The result of {name} makes no sense: {error}") from error
