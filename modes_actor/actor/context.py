"""What a handler may know of its request, and do besides answering it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import Raw, Struct

from modes_actor.wire.jsonrpc import Notification, RequestId
from modes_actor.wire.notifications import LOG_LEVELS, MESSAGE, PROGRESS, LogMessageParams, ProgressParams

if TYPE_CHECKING:
    from modes_actor.actor.connection import Caller, Connection
    from modes_actor.actor.outgoing import Outgoing
    from modes_actor.actor.peer import Peer
    from modes_actor.actor.subscriptions import Subscriptions
    from modes_actor.wire.base import ClientCapabilities, Implementation, LogLevel, ProgressToken, Result
    from modes_actor.wire.client_features import ClientRequest
    from modes_actor.wire.versions import Era, Version

A = TypeVar("A", bound=Struct)

DEFAULT_ASK_TIMEOUT = 60.0


class Shared(Struct, frozen=True):
    """What all requests of a process have in common."""

    connection: Connection
    outgoing: Outgoing
    peer: Peer
    subscriptions: Subscriptions


class InputRequired(Exception):
    """Ends a stateless request: the client must answer something first. Not an error; it carries the result to send."""

    def __init__(self, result: Result) -> None:
        super().__init__("input required")
        self.result = result


class RequestContext:
    """One request, as its handler sees it. Once it is answered or cancelled, nothing more is sent in its name."""

    __slots__ = ("_progress", "caller", "finished", "input_responses", "progress_token", "request_id", "shared")

    def __init__(
        self,
        request_id: RequestId,
        caller: Caller,
        shared: Shared,
        progress_token: ProgressToken | None = None,
        input_responses: dict[str, Raw] | None = None,
    ) -> None:
        self.request_id = request_id
        self.caller = caller
        self.shared = shared
        self.progress_token = progress_token
        self.input_responses = input_responses
        """The client's answers so far (stateless era); None where the method cannot be asked again."""
        self.finished = False
        self._progress = -math.inf

    @property
    def version(self) -> Version:
        return self.caller.version

    @property
    def era(self) -> Era:
        return self.caller.version.era

    @property
    def client_info(self) -> Implementation | None:
        return self.caller.client_info

    @property
    def client_capabilities(self) -> ClientCapabilities:
        return self.caller.capabilities

    async def report_progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Tell the client how far the work is, if it asked to be told. Progress that does not grow is not reported."""
        if self.progress_token is None or progress <= self._progress:
            return
        self._progress = progress
        await self._notify(PROGRESS, ProgressParams(self.progress_token, progress, total, message))

    async def log(self, level: LogLevel, data: Any, *, logger: str | None = None) -> None:
        """Send a log message to the client, if it wants messages of this level."""
        wanted = self.caller.log_level
        if wanted is None or LOG_LEVELS.index(level) < LOG_LEVELS.index(wanted):
            return
        await self._notify(MESSAGE, LogMessageParams(level, data, logger))

    async def ask(
        self, name: str, request: ClientRequest, answer: type[A], *, timeout: float = DEFAULT_ASK_TIMEOUT
    ) -> A:
        """Ask the client for roots, a sampling or a person's answer, and wait for it.

        In the stateless era there is no waiting: the request ends as `input_required`, the client sends it again with
        the answer under `name`, and the handler runs anew from its beginning. So ask before you act.
        """
        from modes_actor.actor.asking import ask_client  # few handlers ask; those that serve do not pay for it

        return await ask_client(self, name, request, answer, timeout=timeout)

    async def _notify(self, method: str, params: Struct) -> None:
        await self.shared.outgoing.room()
        if not self.finished:
            self.shared.outgoing.post(Notification(method, params))
