"""The middle task: takes batches of messages and events, serves them, and queues what there is to say.

Promises: every request is answered exactly once, unless its client cancelled it; notifications and responses never are;
a handler that never waits runs in order, one that waits runs beside the others and can be cancelled; this is the only
place where an exception becomes an answer.
"""

import logging
import time
from collections.abc import Awaitable, Coroutine

import msgspec
import trio
from msgspec import UNSET, Raw, Struct, UnsetType, field

from modes_actor.actor.connection import Caller
from modes_actor.actor.context import InputRequired, RequestContext, Shared
from modes_actor.actor.in_flight import Entry, InFlight
from modes_actor.actor.limits import Limits
from modes_actor.actor.registry import Registry
from modes_actor.actor.replies import ArrayReplies, DirectReplies, Replies
from modes_actor.actor.subscriptions import Event
from modes_actor.wire.base import Implementation, RequestMeta, Result
from modes_actor.wire.codec import Message, decode_params, read_array
from modes_actor.wire.errors import (
    INTERNAL_ERROR,
    ApplicationError,
    ErrorCode,
    InvalidRequest,
    MethodNotFound,
    RequestError,
    Unavailable,
    error_object,
    shortened,
)
from modes_actor.wire.jsonrpc import (
    ErrorObject,
    ErrorResponse,
    Incoming,
    IncomingArray,
    Malformed,
    RequestId,
    Response,
)
from modes_actor.wire.notifications import CANCELLED, CancelledParams
from modes_actor.wire.shape import shape_result
from modes_actor.wire.versions import STATELESS_VERSIONS, Era, Version

log = logging.getLogger(__name__)


class _WithMeta(Struct, gc=False):
    meta: RequestMeta | None = field(default=None, name="_meta")


_with_meta = msgspec.json.Decoder(_WithMeta)
_decode_cancelled = msgspec.json.Decoder(CancelledParams).decode


class _Work(Struct):
    """A handler's awaitable, to be run beside the others, and where its answer goes."""

    method: str
    context: RequestContext
    awaitable: Awaitable[Result]
    replies: Replies
    accepted: float = 0.0
    """When, if that is traced."""


class Processor:
    def __init__(self, registry: Registry, shared: Shared, server_info: Implementation, limits: Limits) -> None:
        self._registry = registry
        self._shared = shared
        self._outgoing = shared.outgoing
        self._connection = shared.connection
        self._server_info = server_info
        self._limits = limits
        self._in_flight = InFlight(limits.in_flight)
        self._direct = DirectReplies(shared.outgoing)
        self._traces = False
        self._is_idle = False
        """Everything that was received is served or running: what comes next is next."""
        self._working: trio.Nursery

    async def run(
        self, batches: trio.MemoryReceiveChannel[list[Message]], events: trio.MemoryReceiveChannel[Event]
    ) -> None:
        """Serve until the batches end, then finish what is running and close the queue to the writer."""
        relaying = trio.CancelScope()
        async with trio.open_nursery() as nursery, batches, events:
            nursery.start_soon(self._relay, events, relaying)
            async with trio.open_nursery() as self._working:
                await self._serve(batches)
                self._shared.peer.close()
                relaying.cancel()
                for listener, result in self._shared.subscriptions.end_all():
                    self._answer(listener, result, STATELESS_VERSIONS[-1], self._direct)
        self._outgoing.close()

    async def _serve(self, batches: trio.MemoryReceiveChannel[list[Message]]) -> None:
        self._is_idle = True
        try:
            async for batch in batches:
                self._begin_batch()
                for message in batch:
                    if self._outgoing.is_full:
                        self._outgoing.release()
                        await self._outgoing.room()
                        self._outgoing.hold()
                    if type(message) is Incoming:
                        work = self._accept(message, self._direct)
                        if work is not None:
                            await self._start_in_turn(work)
                    elif type(message) is IncomingArray:
                        await self._accept_array(message)
                    elif type(message) is Malformed:
                        self._refuse(message, self._direct)
                self._outgoing.release()
                self._is_idle = not batches.statistics().current_buffer_used
        finally:
            self._is_idle = False

    def serve_at_once(self, batch: list[Message]) -> bool:
        """The reader's short cut: a lone message that nothing is before does not wait until this task has its turn.

        If it returns False, the batch is to be queued.
        """
        message = batch[0]
        is_full = self._outgoing.is_full or self._in_flight.is_full
        if not self._is_idle or is_full or len(batch) > 1 or type(message) is not Incoming:
            self._is_idle = False  # until the queue is empty again
            return False
        self._begin_batch()
        work = self._accept(message, self._direct)
        if work is not None:
            self._start(work)
        self._outgoing.release()
        return True

    def end_by(self, deadline: float) -> None:
        """Work that is still running then is cancelled, and its request answered with an error."""
        self._in_flight.end_by(deadline)

    async def _relay(self, events: trio.MemoryReceiveChannel[Event], scope: trio.CancelScope) -> None:
        subscriptions = self._shared.subscriptions
        with scope:
            async for event in events:
                for listener in subscriptions.hearing(event):
                    await self._outgoing.room()
                    # It may have ended meanwhile, and then it must hear nothing more.
                    if (notification := subscriptions.notification(event, listener)) is not None:
                        self._outgoing.post(notification)

    # Messages.

    def _begin_batch(self) -> None:
        self._shared.batch += 1
        self._traces = log.isEnabledFor(logging.DEBUG)
        self._outgoing.hold()

    def _accept(self, message: Incoming, replies: Replies) -> _Work | Awaitable[None] | None:
        """Serve a message, or return the work that it takes: a request's, which is in flight, or a notification's."""
        method, request_id = message.method, message.id
        if method is UNSET:
            self._accept_response(message, replies)
        elif request_id is UNSET:
            return self._accept_notification(method, message.params)
        elif request_id is None:
            self._refuse(Malformed(ErrorCode.INVALID_REQUEST, "Invalid request: `id` must not be null"), replies)
        elif self._traces:
            return self._accept_traced(request_id, method, message.params, replies)
        else:
            return self._accept_request(request_id, method, message.params, replies)
        return None

    def _accept_traced(
        self, request_id: RequestId, method: str, params: Raw | UnsetType, replies: Replies
    ) -> _Work | None:
        accepted = time.perf_counter()
        work = self._accept_request(request_id, method, params, replies)
        if work is None:
            _trace(request_id, method, accepted)
        else:
            work.accepted = accepted
        return work

    async def _accept_array(self, array: IncomingArray) -> None:
        version = self._connection.version_in_force
        takes_arrays = version is not None and version.arrays
        items = read_array(array, at_most=self._limits.in_flight) if takes_arrays else None
        if not items:
            allowed = f"1 to {self._limits.in_flight} messages" if takes_arrays else "no arrays"
            why = f"Invalid request: this version of the protocol takes {allowed} in a line"
            self._refuse(Malformed(ErrorCode.INVALID_REQUEST, why), self._direct)
            return
        expected = sum(map(_expects_answer, items))
        replies = ArrayReplies(self._outgoing, expected, byte_limit=self._limits.queued_bytes)
        for item in items:
            if isinstance(item, Malformed):
                self._refuse(item, replies)
            elif item.method == "initialize":
                self._refuse(
                    Malformed(ErrorCode.INVALID_REQUEST, "Invalid request: `initialize` inside an array", item.id),
                    replies,
                )
            elif (work := self._accept(item, replies)) is not None:
                await self._start_in_turn(work)

    def _accept_response(self, message: Incoming, replies: Replies) -> None:
        if message.result is not UNSET or message.error is not UNSET:
            self._shared.peer.answer(message)
            return
        self._refuse(Malformed(ErrorCode.INVALID_REQUEST, "Invalid request: `method` is missing", message.id), replies)

    def _accept_notification(self, method: str, params: Raw | UnsetType) -> Awaitable[None] | None:
        if method != CANCELLED:
            listener = self._registry.listener(method)
            return None if listener is None else listener(self._shared)
        if params is not UNSET:
            try:
                request_id = _decode_cancelled(params).request_id
            except (ValueError, RecursionError):
                log.debug("ignored a malformed %s", CANCELLED)
                return None
            self._in_flight.cancel(request_id)
            self._shared.subscriptions.cancel(request_id)
        return None

    def _accept_request(
        self, request_id: RequestId, method: str, params: Raw | UnsetType, replies: Replies
    ) -> _Work | None:
        caller = None
        try:
            if request_id in self._in_flight.entries or request_id in self._shared.subscriptions.listeners:
                raise InvalidRequest("Invalid request: its id is in use by a request not yet answered")
            meta = None if params is UNSET else decode_params(_with_meta, params).meta
            caller = self._connection.caller(method, meta)
            if replies is not self._direct and not caller.version.arrays:
                raise InvalidRequest(f"Invalid request: {caller.version.name} takes no requests inside an array")
            handler = self._registry.find(method) if method in caller.version.methods else None
            if handler is None:
                raise MethodNotFound(f"Method not found: {shortened(method)}")
            typed = handler.params(params)
            context = RequestContext(request_id, caller, self._shared)
            if meta is not None:
                context.progress_token = meta.progress_token
            if handler.takes_input_responses:
                context.input_responses = typed.input_responses or {}
            outcome = handler.call(typed, context)
        except Exception as error:
            self._answer_error(request_id, method, error, caller, replies)
            return None
        if isinstance(outcome, Result):
            self._answer(request_id, outcome, caller.version, replies)
        elif outcome is not None:
            return _Work(method, context, outcome, replies)
        return None

    # Work: handlers that wait.

    async def _start_in_turn(self, work: _Work | Awaitable[None]) -> None:
        """Start it once there is a place for it."""
        if isinstance(work, _Work) and self._in_flight.is_full:
            self._outgoing.release()
            try:
                await self._in_flight.place()
            except trio.Cancelled:
                if isinstance(work.awaitable, Coroutine):
                    work.awaitable.close()  # it will never run, and is not to be complained of
                raise
            self._outgoing.hold()
        self._start(work)

    def _start(self, work: _Work | Awaitable[None]) -> None:
        if isinstance(work, _Work):
            self._working.start_soon(self._run, work, self._in_flight.enter(work.context.request_id))
        else:
            self._working.start_soon(_aside, work)

    async def _run(self, work: _Work, entry: Entry) -> None:
        context = work.context
        outcome: Result | Exception = Unavailable("The server is shutting down: send the request to its successor")
        try:
            with entry.scope:
                outcome = await _outcome(work.awaitable)
                # A client that does not read keeps its finished requests in flight, and so their number bounded.
                await self._outgoing.room()
        except Exception as error:
            outcome = error  # what a handler raised while it was being cancelled
        context.finished = True
        self._in_flight.leave(context.request_id)
        if entry.cancelled_by_client:
            work.replies.skip()
        elif isinstance(outcome, Result):
            self._answer(context.request_id, outcome, context.version, work.replies)
        else:
            self._answer_error(context.request_id, work.method, outcome, context.caller, work.replies)
        if work.accepted:
            _trace(context.request_id, work.method, work.accepted)

    # Answers.

    def _answer(self, request_id: RequestId, result: Result, version: Version, replies: Replies) -> None:
        try:
            replies.post(Response(request_id, shape_result(result, version, self._server_info)))
        except Exception:
            log.exception("the result of request %r cannot be encoded", request_id)
            replies.post(ErrorResponse(request_id, INTERNAL_ERROR))

    def _answer_error(
        self, request_id: RequestId, method: str, error: Exception, caller: Caller | None, replies: Replies
    ) -> None:
        era = Era.HANDSHAKE if caller is None else caller.version.era
        if isinstance(error, ApplicationError) and era is Era.STATELESS and method == "tools/call":
            from modes_actor.wire.tools import tool_error

            self._answer(request_id, tool_error(error), STATELESS_VERSIONS[-1], replies)
            return
        if not isinstance(error, RequestError):
            log.error("%s (request %r) failed", method, request_id, exc_info=error)
        try:
            replies.post(ErrorResponse(request_id, error_object(error, era)))
        except Exception:
            log.exception("the error of request %r cannot be encoded", request_id)
            replies.post(ErrorResponse(request_id, INTERNAL_ERROR))

    def _refuse(self, message: Malformed, replies: Replies) -> None:
        request_id = message.id
        if request_id is None or request_id is UNSET:
            version = self._connection.version_in_force
            request_id = None if version is None or version.null_ids else UNSET
        replies.post(ErrorResponse(request_id, ErrorObject(message.code, message.message)))


def _expects_answer(item: Incoming | Malformed) -> bool:
    if isinstance(item, Malformed):
        return True
    if item.method is UNSET:
        return item.result is UNSET and item.error is UNSET
    return item.id is not UNSET


async def _aside(work: Awaitable[None]) -> None:
    """What a notification led to: nobody is told if it fails."""
    try:
        await work
    except Exception:
        log.exception("what a notification led to failed")


def _trace(request_id: RequestId, method: str, accepted: float) -> None:
    milliseconds = (time.perf_counter() - accepted) * 1000
    log.debug("request %s: %s, %.3f ms", shortened(repr(request_id)), shortened(method), milliseconds)


async def _outcome(work: Awaitable[Result]) -> Result | Exception:
    """What the handler comes to: its result, its error, or what it needs to know first, which is a result, too."""
    try:
        return await work
    except Exception as raised:
        error = raised
    while isinstance(error, ExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]  # a handler with a nursery of its own raises its errors in groups
    return error.result if isinstance(error, InputRequired) else error
