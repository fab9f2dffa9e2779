"""A client in a few lines: talks to a server in this process, over memory streams, and checks nothing by itself."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import trio
import trio.testing

from modes_actor.actor.limits import Limits
from modes_actor.server import Server
from modes_actor.surface.offer import Offer
from modes_actor.wire.base import CLIENT_CAPABILITIES_KEY, CLIENT_INFO_KEY, PROTOCOL_VERSION_KEY, Implementation
from modes_actor.wire.versions import V2025_11_25, V2026_07_28, Era, Version

Json = dict[str, Any]

PLAIN_OFFER = Offer(info=Implementation("roo-modes-server", "1.0.0"))
CLIENT_INFO = {"name": "a test", "version": "1"}


class CountingStream(trio.abc.ReceiveStream):
    """Counts what the server takes in."""

    def __init__(self, stream: trio.abc.ReceiveStream) -> None:
        self._stream = stream
        self.taken = 0

    async def receive_some(self, max_bytes: int | None = None) -> bytes | bytearray:
        chunk = await self._stream.receive_some(max_bytes)
        self.taken += len(chunk)
        return chunk

    async def aclose(self) -> None:
        await self._stream.aclose()


class Conversation:
    """One client's side. `request` numbers its requests itself; `receive` takes whatever comes next."""

    def __init__(
        self,
        server: Server,
        to_server: trio.abc.SendStream,
        server_receives: CountingStream,
        from_server: trio.abc.ReceiveStream,
    ) -> None:
        self.server = server
        self._server_receives = server_receives
        self._sent = 0
        self.ended = trio.Event()
        """Set when the server has returned."""
        self._to_server = to_server
        self._from_server = from_server
        self._received = bytearray()
        self._next_id = 1
        self.version: Version | None = None
        self.capabilities: Json = {}

    async def send_bytes(self, data: bytes) -> None:
        await self._to_server.send_all(data)
        self._sent += len(data)

    def bytes_not_taken_in(self) -> int:
        """How much of what was sent the server has not read yet."""
        return self._sent - self._server_receives.taken

    async def send(self, *messages: Any) -> None:
        """Send JSON values, a line each, in one write."""
        await self.send_bytes(b"".join(msgspec.json.encode(message) + b"\n" for message in messages))

    async def receive_line(self) -> bytes | None:
        """The next line, or None at the end."""
        while b"\n" not in self._received:
            chunk = await self._from_server.receive_some()
            if not chunk:
                assert not self._received, "the server ended in the middle of a line"
                return None
            self._received += chunk
        line, _, self._received = self._received.partition(b"\n")
        return bytes(line)

    async def receive(self) -> Any:
        """The next message."""
        line = await self.receive_line()
        assert line is not None, "the server ended the conversation"
        return msgspec.json.decode(line)

    async def remaining(self) -> list[Any]:
        """Everything until the server ends the conversation."""
        messages = []
        while (line := await self.receive_line()) is not None:
            messages.append(msgspec.json.decode(line))
        return messages

    async def end_input(self) -> None:
        await self._to_server.aclose()

    async def stop_reading(self) -> None:
        await self._from_server.aclose()

    def compose(self, method: str, params: Json | None = None, *, id: Any = None) -> Json:
        """A request in the conversation's version: with its metadata if that is the stateless one."""
        if id is None:
            id, self._next_id = self._next_id, self._next_id + 1
        message: Json = {"jsonrpc": "2.0", "id": id, "method": method}
        if self.version is not None and self.version.era is Era.STATELESS:
            params = {**(params or {})}
            params["_meta"] = {**stateless_meta(self.capabilities), **params.get("_meta", {})}
        if params is not None:
            message["params"] = params
        return message

    async def request(self, method: str, params: Json | None = None, *, id: Any = None) -> Json:
        """Send a request and return the next message, whatever it is."""
        await self.send(self.compose(method, params, id=id))
        answer = await self.receive()
        assert isinstance(answer, dict)
        return answer

    async def result(self, method: str, params: Json | None = None) -> Json:
        """Send a request and return its result."""
        answer = await self.request(method, params)
        assert "result" in answer, answer
        result = answer["result"]
        assert isinstance(result, dict)
        return result

    async def error(self, method: str, params: Json | None = None) -> Json:
        """Send a request and return its error."""
        answer = await self.request(method, params)
        assert "error" in answer, answer
        error = answer["error"]
        assert isinstance(error, dict)
        return error

    async def open(self, version: Version, capabilities: Json | None = None) -> None:
        """Begin in that version: with a handshake, or by only remembering what every request will carry."""
        self.capabilities = capabilities or {}
        if version.era is Era.HANDSHAKE:
            params = {"protocolVersion": version.name, "capabilities": self.capabilities, "clientInfo": CLIENT_INFO}
            result = await self.result("initialize", params)
            assert result["protocolVersion"] == version.name
            await self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        self.version = version


def stateless_meta(capabilities: Json | None = None) -> Json:
    return {
        PROTOCOL_VERSION_KEY: V2026_07_28.name,
        CLIENT_CAPABILITIES_KEY: capabilities or {},
        CLIENT_INFO_KEY: CLIENT_INFO,
    }


@asynccontextmanager
async def talking(
    offer: Offer = PLAIN_OFFER,
    *,
    version: Version | None = V2025_11_25,
    capabilities: Json | None = None,
    limits: Limits | None = None,
    client_must_read: bool = False,
) -> AsyncIterator[Conversation]:
    """A conversation with a server of that offer, already open in that version (None: not a word said yet).

    `client_must_read`: the server's writes wait until the client reads, as on a pipe that is full.
    """
    to_server, received = trio.testing.memory_stream_one_way_pair()
    server_receives = CountingStream(received)
    server_sends: trio.abc.SendStream
    from_server: trio.abc.ReceiveStream
    if client_must_read:
        server_sends, from_server = trio.testing.lockstep_stream_one_way_pair()
    else:
        server_sends, from_server = trio.testing.memory_stream_one_way_pair()
    server = Server(offer, limits)
    conversation = Conversation(server, to_server, server_receives, from_server)

    async def serve() -> None:
        await server.serve(server_receives, server_sends)
        conversation.ended.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve)
        if version is not None:
            await conversation.open(version, capabilities)
        try:
            yield conversation
        except BaseException:
            # Else a test that fails would wait forever, for a server that waits for its client.
            await trio.aclose_forcefully(from_server)
            raise
        nursery.cancel_scope.cancel()
