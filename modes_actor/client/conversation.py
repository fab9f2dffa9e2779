"""Requests and their answers over a pair of streams, however many at a time, in either era."""

import itertools
import logging
import math
import signal
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, Literal, TypedDict, TypeVar

import msgspec
import trio
from msgspec import UNSET, Raw, Struct, field

from modes_actor import __version__
from modes_actor.actor.framer import TOO_LONG, Framer
from modes_actor.actor.limits import Limits
from modes_actor.actor.outgoing import Outgoing
from modes_actor.actor.reader import READ_SIZE
from modes_actor.actor.writer import ClientGone, OutputFailed, Writer
from modes_actor.client.failures import BadAnswer, ServerGone, server_error
from modes_actor.wire import base, codec, errors, jsonrpc, notifications, versions
from modes_actor.wire.base import Implementation, WireStruct
from modes_actor.wire.client_features import InputRequiredResult, ListRootsResult, Root
from modes_actor.wire.jsonrpc import ErrorObject, Incoming, Notification, RequestId
from modes_actor.wire.lifecycle import InitializeParams, ServerCapabilities

log = logging.getLogger(__name__)

T = TypeVar("T")
Page = TypeVar("Page", bound=base.PaginatedResult)

LINE_LIMIT: Final = 64 * 1024 * 1024
"""Bytes of the longest line that is taken in: a server may say more than it lets itself be told."""
PATIENCE: Final = Limits().drain_seconds + 1
"""Longer than a server of ours takes to finish what it was asked."""
INPUT_ROUNDS: Final = 8
"""How often a stateless server may ask for something before it answers one request."""
ARRAY_LIMIT: Final = 1024
"""Messages of one JSON array, which a server of 2025-03-26 may send."""


class ServerDescription(Struct, frozen=True, kw_only=True):
    """What the server said of itself when the conversation began."""

    name: str
    version: str
    protocol_version: str
    capabilities: ServerCapabilities
    instructions: str | None = None


class _Introduction(WireStruct):
    """The part of an `Implementation` that is needed: what else a server says of itself may be anything."""

    name: str = ""
    version: str = ""


class _ResultMeta(WireStruct):
    server_info: _Introduction | None = field(default=None, name=base.SERVER_INFO_KEY)


class _Opening(WireStruct, kw_only=True):
    """What `initialize` and `server/discover` have in common, and what only one of them has."""

    capabilities: ServerCapabilities = field(default_factory=ServerCapabilities)
    instructions: str | None = None
    protocol_version: str = versions.STATELESS_VERSIONS[-1].name
    server_info: _Introduction | None = None
    meta: _ResultMeta | None = field(default=None, name="_meta")


Direction = Literal["sent", "received"]


class Options(TypedDict, total=False):
    """What `start_server` and `connect` have in common."""

    era: Literal["handshake", "stateless"]
    roots: Sequence[Root]
    """The directories to tell a server that asks. Without them, the client says that it cannot be asked."""
    client_info: Implementation
    notifications: Callable[[Notification], object]
    """Called with each notification, its `params` still raw. It must not wait; an unbounded channel's `send_nowait`
    will do. An exception of its own ends the conversation."""
    trace: Callable[[Direction, bytes], object]
    """Called with each line that is sent or received."""
    patience: float
    """Seconds that a server gets for each step of leaving: to end by itself, then to end when it is terminated."""
    line_limit: int


class _Call:
    """A request on its way. `scope` ends its waiting: because of the answer, or because none will come."""

    __slots__ = ("answer", "scope", "was_sent")

    def __init__(self) -> None:
        self.answer: Incoming | None = None
        self.scope = trio.CancelScope()
        self.was_sent = False


class Conversation:
    """Requests and their answers, however many at a time, in either era."""

    server: ServerDescription
    pid: int | None = None
    """The server's process, if it is one of our own."""

    def __init__(
        self,
        *,
        era: Literal["handshake", "stateless"] = "handshake",
        roots: Sequence[Root] | None = None,
        client_info: Implementation | None = None,
        notifications: Callable[[Notification], object] | None = None,
        trace: Callable[[Direction, bytes], object] | None = None,
        patience: float = PATIENCE,
        line_limit: int = LINE_LIMIT,
    ) -> None:
        self.is_stateless = versions.Era(era) is versions.Era.STATELESS
        self._roots = roots
        self._info = client_info or Implementation("modes-actor-client", __version__)
        self._capabilities = base.ClientCapabilities(roots=None if roots is None else base.RootsCapability())
        self._notified = notifications or (lambda notification: None)
        self._trace = trace or (lambda direction, line: None)
        self.patience = patience
        self._line_limit = line_limit
        self._ids = itertools.count(1)
        self._calls: dict[RequestId, _Call] = {}
        self._outgoing = Outgoing(Limits().queued_bytes)
        self._writer = Writer(self._outgoing)
        self._reading = trio.CancelScope()
        self._gone: str | None = None
        self.leave_by = math.inf
        """When the server should have ended by itself, once the block is being left."""

    async def request(self, method: str, params: Mapping[str, Any] | Struct | None = None) -> Raw:
        """The raw result of any request. Raises `ServerError`, `ServerGone` or `BadAnswer`.

        What a stateless server needs to know first is answered as a request of its own would be.
        """
        members: base.JsonObject = (
            dict(msgspec.to_builtins(params)) if isinstance(params, Struct) else dict(params or {})
        )
        if not self.is_stateless:
            return await self._ask_once(method, members)
        members["_meta"] = {
            base.PROTOCOL_VERSION_KEY: versions.STATELESS_VERSIONS[-1].name,
            base.CLIENT_CAPABILITIES_KEY: self._capabilities,
            base.CLIENT_INFO_KEY: self._info,
            **members.get("_meta", {}),
        }
        for _ in range(INPUT_ROUNDS):
            result = await self._ask_once(method, members)
            needed = _decode(method, result, InputRequiredResult)
            if needed.result_type != "input_required":
                return result
            asked = {name: each.method for name, each in (needed.input_requests or {}).items()}
            members["inputResponses"] = {name: self._own_answer(wanted) for name, wanted in asked.items()}
            if None in members["inputResponses"].values():
                raise BadAnswer(f"The server wants {', '.join(asked.values())} for {method}: more than was offered")
            members.pop("requestState", None)
            if needed.request_state is not None:
                members["requestState"] = needed.request_state
        raise BadAnswer(f"The server wanted input for {method} {INPUT_ROUNDS} times and still has no answer")

    async def _ask_once(self, method: str, members: base.JsonObject) -> Raw:
        if self._gone is not None:
            raise ServerGone(self._gone)
        request_id, call = next(self._ids), _Call()
        self._calls[request_id] = call
        try:
            with call.scope:
                await self._outgoing.room()
                self._post(jsonrpc.Request(request_id, method, members or UNSET))
                call.was_sent = True
                await trio.sleep_forever()
        finally:
            del self._calls[request_id]
            self._withdraw(request_id, call, method)
        if call.answer is None:
            raise ServerGone(f"{self._gone} before {method} was answered")
        said = call.answer
        if said.error is not UNSET and bytes(said.error) != b"null":
            error = _decode(method, said.error, ErrorObject)
            raise server_error(error.code, error.message, None if error.data is UNSET else error.data)
        if said.result is UNSET:
            raise BadAnswer(f"The server's answer to {method} has neither a result nor an error")
        return said.result

    def _withdraw(self, request_id: RequestId, call: _Call, method: str) -> None:
        """Tell the server that nobody waits any more, if it is still at it. A handshake cannot be withdrawn."""
        if call.was_sent and call.answer is None and self._gone is None and method != "initialize":
            self._post(Notification(notifications.CANCELLED, notifications.CancelledParams(request_id)))

    async def ask(self, method: str, params: Mapping[str, Any] | Struct | None, answer: type[T]) -> T:
        """The typed result of any request. Raises as `request` does."""
        return _decode(method, await self.request(method, params), answer)

    async def pages(self, method: str, page: type[Page]) -> list[Page]:
        """All pages of a list."""
        pages: list[Page] = []
        cursors: set[str | None] = {None}
        cursor: str | None = None
        while not pages or cursor not in cursors:
            cursors.add(cursor)
            pages.append(await self.ask(method, None if cursor is None else {"cursor": cursor}, page))
            cursor = pages[-1].next_cursor
        if cursor is not None:
            raise BadAnswer(f"The pages of {method} lead back to one that was there before")
        return pages

    # Inside.

    @asynccontextmanager
    async def talking(
        self, receive: trio.abc.ReceiveStream, send: trio.abc.SendStream, process: trio.Process | None = None
    ) -> AsyncIterator[None]:
        """Talk over these streams, which are closed at the end. Once in the life of a client."""
        failure: Exception | None = None
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._write, send)
            nursery.start_soon(self._read, receive, process)
            try:
                await self._open()
                yield
            except Exception as error:
                failure = error  # raised below, where the nursery cannot wrap it
            finally:
                self._end("The client was closed")
                self._outgoing.close()
                self._writer.hurry(self.patience)
                self.leave_by = self._reading.deadline = trio.current_time() + self.patience
        if failure is not None:
            raise failure

    async def _open(self) -> None:
        if self.is_stateless:
            said = await self.ask("server/discover", None, _Opening)
        else:
            version = versions.HANDSHAKE_VERSIONS[-1].name
            opening = InitializeParams(
                protocol_version=version, capabilities=self._capabilities, client_info=self._info
            )
            said = await self.ask("initialize", opening, _Opening)
            if said.protocol_version not in [known.name for known in versions.HANDSHAKE_VERSIONS]:
                raise BadAnswer(f"The server speaks version {said.protocol_version} of the protocol, which is unknown")
            self._post(Notification(notifications.INITIALIZED))
        who = said.server_info or (said.meta and said.meta.server_info) or _Introduction()
        self.server = ServerDescription(
            name=who.name,
            version=who.version,
            protocol_version=said.protocol_version,
            capabilities=said.capabilities,
            instructions=said.instructions,
        )

    def _end(self, reason: str) -> None:
        """Nothing will be answered any more. The first reason is the one that is told."""
        if self._gone is None:
            self._gone = reason
            for call in self._calls.values():
                call.scope.cancel()

    def _post(self, message: jsonrpc.Outgoing) -> None:
        line = codec.encode(message)
        self._trace("sent", line)
        self._outgoing.post_encoded(line)

    async def _write(self, stream: trio.abc.SendStream) -> None:
        async with stream:
            try:
                await self._writer.run(stream)
            except (ClientGone, OutputFailed):
                log.debug("the server does not read any more")
                self._read_to_the_end()

    async def _read(self, stream: trio.abc.ReceiveStream, process: trio.Process | None) -> None:
        async with stream, trio.open_nursery() as nursery:
            if process is not None:
                nursery.start_soon(self._watch, process)
            with self._reading:
                await self._read_lines(stream)
            if self._gone is None:
                self._end(await self._how_it_ended(process))
            nursery.cancel_scope.cancel()

    async def _watch(self, process: trio.Process) -> None:
        await process.wait()
        self._read_to_the_end()  # which need not come: a child of its own may hold the pipe open

    def _read_to_the_end(self) -> None:
        """The server has gone, but what it said before is still to be read; not forever, if the end does not come."""
        self._reading.deadline = min(self._reading.deadline, trio.current_time() + self.patience)

    async def _how_it_ended(self, process: trio.Process | None) -> str:
        if process is None:
            return "The server closed the connection"
        with trio.move_on_after(self.patience):
            await process.wait()
        code = process.returncode
        if code is None:
            return "The server closed its end, though it has not ended,"
        if code >= 0:
            return f"The server ended with exit code {code}"
        return f"The server was ended by signal {-code} ({signal.strsignal(-code)})"

    async def _read_lines(self, stream: trio.abc.ReceiveStream) -> None:
        framer, chunk = Framer(self._line_limit), b"more"
        while chunk:
            try:
                chunk = bytes(await stream.receive_some(READ_SIZE))
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                chunk = b""
            for piece in framer.feed(chunk) if chunk else framer.finish():
                if piece is TOO_LONG:  # whose answer it was is lost with it
                    return self._end(f"The server sent a line of more than {self._line_limit:,} bytes")
                for line in piece.split(b"\n"):
                    if (message := codec.decode_line(line)) is not None:
                        self._trace("received", bytes(line))
                        self._take_in(message)

    def _take_in(self, message: codec.Message) -> None:
        if isinstance(message, jsonrpc.IncomingArray):
            for each in codec.read_array(message, at_most=ARRAY_LIMIT) or []:
                self._take_in(each)
        elif isinstance(message, jsonrpc.Malformed):
            log.debug("the server sent what is no message: %s", message.message)
        elif message.method is UNSET:
            if isinstance(message.id, str | int) and (call := self._calls.get(message.id)) is not None:
                call.answer = call.answer or message
                call.scope.cancel()
        elif isinstance(message.id, str | int):
            self._serve(message.id, message.method)
        else:
            self._notified(Notification(message.method, message.params))

    def _serve(self, request_id: RequestId, method: str) -> None:
        if self._outgoing.is_full:
            return  # it asks and does not read: to go on answering would take all memory, to wait would block answers
        result = self._own_answer(method)
        if result is not None:
            return self._post(jsonrpc.Response(request_id, result))
        unknown = ErrorObject(errors.ErrorCode.METHOD_NOT_FOUND, f"Method not found: {method}")
        self._post(jsonrpc.ErrorResponse(request_id, unknown))

    def _own_answer(self, method: str) -> object | None:
        """What this client tells a server that asks for it; None if it cannot."""
        if method == "ping":
            return {}
        if method == "roots/list" and self._roots is not None:
            return ListRootsResult(list(self._roots))
        return None


def _decode(method: str, raw: Raw, answer: type[T]) -> T:
    try:
        return msgspec.json.decode(raw, type=answer)
    except (ValueError, RecursionError) as error:
        raise BadAnswer(f"The server's answer to {method} makes no sense: {error}") from error
