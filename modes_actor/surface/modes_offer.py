"""The offer of modes: what this server is for. Its parts load when they are first asked for."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from modes_actor.surface.house import House
from modes_actor.surface.offer import Offer
from modes_actor.wire.base import Implementation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from modes_actor.actor.context import RequestContext
    from modes_actor.config import Config
    from modes_actor.surface.mode_completion import ModeCompletion
    from modes_actor.surface.mode_prompts import ModePrompts
    from modes_actor.surface.mode_resources import ModeResources
    from modes_actor.surface.offer import OfferedTool, Soon
    from modes_actor.wire.completion import CompleteParams, Completion
    from modes_actor.wire.prompts import GetPromptResult, Prompt
    from modes_actor.wire.resources import ReadResourceResult, Resource, ResourceTemplate

INSTRUCTIONS = (
    "Work in modes: a mode is a role with the tools and files it may use. Call list_modes to see them, then "
    "create_task with the one that fits, and keep its session_id. Before you edit a file, run a command or use an MCP "
    "tool, ask validate_tool_use with that session_id; if it is not allowed, the answer names the modes that allow it: "
    "call switch_mode (and say why) or create a subtask with parent_session_id. The prompt of a mode is in "
    "mode://{slug}/system_prompt: follow it while you are in that mode. Finish with complete_task."
)


def modes_offer(config: Config, house: House | None = None) -> Offer:
    parts = _Parts(house or House(config))
    server, is_fixed = config.server, config.paths.project_root is not None
    return Offer(
        info=Implementation(server.name, server.version, description=server.description),
        instructions=INSTRUCTIONS,
        tools=parts.tools,
        resources=parts,
        prompts=parts,
        complete=parts.complete,
        lists_change=True,
        take_roots=None if is_fixed else parts.house.work_in,
        subscribing=parts.house.watch,
        run=parts.house.run,
        leaving=parts.house.leave,
    )


class _Parts:
    """The parts of the surface, each made by its first use."""

    def __init__(self, house: House) -> None:
        self.house = house

    def tools(self) -> Sequence[OfferedTool]:
        from modes_actor.surface.mode_tools import ModeTools

        return ModeTools(self.house).offered()

    @cached_property
    def _resources(self) -> ModeResources:
        from modes_actor.surface.mode_resources import ModeResources

        return ModeResources(self.house)

    @cached_property
    def _prompts(self) -> ModePrompts:
        from modes_actor.surface.mode_prompts import ModePrompts

        return ModePrompts(self.house)

    @cached_property
    def _completion(self) -> ModeCompletion:
        from modes_actor.surface.mode_completion import ModeCompletion

        return ModeCompletion(self.house)

    def resources(self) -> Sequence[Resource]:
        return self._resources.resources()

    def templates(self) -> Sequence[ResourceTemplate]:
        return self._resources.templates()

    def read(self, uri: str, context: RequestContext) -> Soon[ReadResourceResult]:
        return self._resources.read(uri, context)

    def prompts(self) -> Sequence[Prompt]:
        return self._prompts.prompts()

    def get(self, prompt: Prompt, arguments: dict[str, str], context: RequestContext) -> Soon[GetPromptResult]:
        return self._prompts.get(prompt, arguments, context)

    def complete(self, params: CompleteParams, context: RequestContext) -> Soon[Completion]:
        return self._completion.complete(params, context)
