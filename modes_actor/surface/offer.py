"""What one server process has to offer, as data: the rest of this package serves it without knowing what it means."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar, Union

from msgspec import Struct

from modes_actor.wire.base import Implementation, Result

if TYPE_CHECKING:
    import trio

    from modes_actor.actor.context import RequestContext
    from modes_actor.actor.subscriptions import Event
    from modes_actor.wire.completion import CompleteParams, Completion
    from modes_actor.wire.prompts import GetPromptResult, Prompt
    from modes_actor.wire.resources import ReadResourceResult, Resource, ResourceTemplate
    from modes_actor.wire.tools import Tool

T = TypeVar("T")
Soon: TypeAlias = Union[T, Awaitable[T]]
"""The value itself from what never waits; an awaitable from what may."""


class OfferedTool(Struct, frozen=True):
    """A tool as clients see it, the Struct of its arguments, and the function that does its work."""

    tool: Tool
    arguments: type[Struct]
    call: Callable[[Any, RequestContext], Soon[Result]]
    """Gives a `CallToolResult`; or a `KeptResult` of one, if it will give the same again."""


class Resources(Protocol):
    """Where resources come from. The lists may differ from call to call; their order must not."""

    def resources(self) -> Sequence[Resource]: ...

    def templates(self) -> Sequence[ResourceTemplate]: ...

    def read(self, uri: str, context: RequestContext) -> Soon[ReadResourceResult]:
        """Raises `ResourceNotFound` for a URI that nobody has."""


class Prompts(Protocol):
    """Where prompts come from. The list may differ from call to call; its order must not."""

    def prompts(self) -> Sequence[Prompt]: ...

    def get(self, prompt: Prompt, arguments: dict[str, str], context: RequestContext) -> Soon[GetPromptResult]:
        """`prompt` is one of the list, and its required arguments are there."""


class Offer(Struct, kw_only=True, frozen=True):
    """Everything a client can be shown. `lists_change` promises a notification when a list does."""

    info: Implementation
    instructions: str | None = None
    tools: Callable[[], Sequence[OfferedTool]] = tuple
    """Asked once, when the first client wants to know of tools."""
    resources: Resources | None = None
    prompts: Prompts | None = None
    complete: Callable[[CompleteParams, RequestContext], Soon[Completion]] | None = None
    lists_change: bool = False
    take_roots: Callable[[Sequence[str]], None] | None = None
    """Told the URIs of the directories in which a handshake client works; None: nobody asks it."""
    subscribing: Callable[[], None] = lambda: None
    """Called before somebody is promised to hear of changes."""
    run: Callable[[trio.MemorySendChannel[Event]], Awaitable[None]] | None = None
    """Runs beside the server until it is cancelled; what changes meanwhile, it sends."""
    leaving: Callable[[float], None] = lambda seconds: None
    """Told once that the end has begun, and in how many seconds everything is to be done."""
