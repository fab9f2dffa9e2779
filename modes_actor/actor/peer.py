"""Requests from this server to the client (handshake era), and their answers.

Promises: every request ends in an answer, a timeout, or the end of the input; a late answer is dropped; no more than
`limit` wait at a time, because the answers come in on the same pipe as the requests that are waiting for them.
"""

import itertools
import logging

import trio
from msgspec import UNSET, Raw, Struct

from modes_actor.actor.outgoing import Outgoing
from modes_actor.wire.errors import Unavailable
from modes_actor.wire.jsonrpc import Incoming, Notification, Request, RequestId
from modes_actor.wire.notifications import CANCELLED, CancelledParams

log = logging.getLogger(__name__)


class ClientAnswer(Struct, gc=False):
    """What the client said, still raw: a result, or an error."""

    said: Raw
    is_error: bool


class _Waiting:
    __slots__ = ("answer", "answered")

    def __init__(self) -> None:
        self.answered = trio.Event()
        self.answer: ClientAnswer | None = None


class Peer:
    def __init__(self, outgoing: Outgoing, *, limit: int) -> None:
        self._outgoing = outgoing
        self._limit = limit
        self._ids = itertools.count(1)
        self._waiting: dict[RequestId, _Waiting] = {}
        self._closed = False

    async def request(self, method: str, params: object, *, within: float) -> ClientAnswer:
        """Ask the client and wait. Raises `Unavailable` when too many wait, time runs out, or the input has ended."""
        if self._closed:
            raise Unavailable(f"Cannot ask the client ({method}): it has closed its end")
        if len(self._waiting) >= self._limit:
            raise Unavailable(f"Cannot ask the client ({method}): {self._limit} requests are waiting for it already")
        request_id = next(self._ids)
        waiting = self._waiting[request_id] = _Waiting()
        try:
            self._outgoing.post(Request(request_id, method, params))
            with trio.move_on_after(within):
                await waiting.answered.wait()
            if waiting.answer is not None:
                return waiting.answer
            if self._closed:
                raise Unavailable(f"The client closed its end before it answered {method}")
            raise Unavailable(f"The client did not answer {method} within {within:g} seconds")
        finally:
            del self._waiting[request_id]
            if waiting.answer is None and not self._closed:
                self._outgoing.post(Notification(CANCELLED, CancelledParams(request_id, "no longer needed")))

    def answer(self, message: Incoming) -> None:
        """A response came in."""
        waiting = self._waiting.get(message.id) if isinstance(message.id, str | int) else None
        if waiting is None or waiting.answer is not None:
            log.debug("a response to no request of ours, or a second one")
            return
        if message.error is not UNSET and bytes(message.error) != b"null":
            waiting.answer = ClientAnswer(message.error, is_error=True)
        elif message.result is not UNSET:
            waiting.answer = ClientAnswer(message.result, is_error=False)
        waiting.answered.set()

    def close(self) -> None:
        """No answer will come any more."""
        self._closed = True
        for waiting in self._waiting.values():
            waiting.answered.set()
