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

PATIENCE_WITH_CLIENTS = 60.0
"""Seconds a client gets for an answer, which may have to come from a person."""


class Shared(Struct):
    """What all requests of a process have in common."""

    connection: Connection
    outgoing: Outgoing
    peer: Peer
    subscriptions: Subscriptions
    batch: int = 0
    """Counts the batches that were taken. What is read again and again may be remembered for one, and no longer."""


class InputRequired(Exception):
    """Ends a stateless request: the client must answer something first. Not an error; it carries the result to send."""

    def __init__(self, result: Result) -> None:
        super().__init__("input required")
        self.result = result


class RequestContext(Struct):
    """One request, as its handler sees it. Once it is answered or cancelled, nothing more is sent in its name."""

    request_id: RequestId
    caller: Caller
    shared: Shared
    progress_token: ProgressToken | None = None
    input_responses: dict[str, Raw] | None = None
    """The client's answers so far (stateless era); None where the method cannot be asked again."""
    reported: float = -math.inf
    """The progress last reported."""
    finished: bool = False

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
        if self.progress_token is None or progress <= self.reported:
            return
        self.reported = progress
        await self._notify(PROGRESS, ProgressParams(self.progress_token, progress, total, message))

    async def log(self, level: LogLevel, data: Any, *, logger: str | None = None) -> None:
        """Send a log message to the client, if it wants messages of this level."""
        wanted = self.shared.connection.log_level(self.caller)
        if wanted is None or LOG_LEVELS.index(level) < LOG_LEVELS.index(wanted):
            return
        await self._notify(MESSAGE, LogMessageParams(level, data, logger))

    async def ask(
        self, name: str, request: ClientRequest, answer: type[A], *, within: float = PATIENCE_WITH_CLIENTS
    ) -> A:
        """Ask the client for roots, a sampling or a person's answer, and wait for it.

        In the stateless era there is no waiting: the request ends as `input_required`, the client sends it again with
        the answer under `name`, and the handler runs anew from its beginning. So ask before you act.
        """
        from modes_actor.actor.asking import ask_client  # few handlers ask; those that serve do not pay for it

        return await ask_client(self, name, request, answer, within=within)

    async def _notify(self, method: str, params: Struct) -> None:
        await self.shared.outgoing.room()
        if not self.finished:
            self.shared.outgoing.post(Notification(method, params))
