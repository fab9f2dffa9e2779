"""For tests of the client: a server in this process, and one that says whatever a test wants it to say."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Literal, Unpack

import msgspec
import pytest
import trio
import trio.testing

from modes_actor.client import (
    Client,
    Options,
    connect,
)
from modes_actor.server import Server
from modes_actor.surface.offer import Offer
from modes_actor.wire.versions import V2025_11_25
from tests.conversation import Json

EraName = Literal["handshake", "stateless"]

in_both_eras = pytest.mark.parametrize("era", ["handshake", "stateless"])

INTRODUCTION: Json = {
    "protocolVersion": V2025_11_25.name,
    "capabilities": {},
    "serverInfo": {"name": "scripted", "version": "1"},
}


@asynccontextmanager
async def serving(offer: Offer, **options: Unpack[Options]) -> AsyncIterator[Client]:
    """A client of a server of that offer."""
    to_server, server_receives = trio.testing.memory_stream_one_way_pair()
    server_sends, from_server = trio.testing.memory_stream_one_way_pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(Server(offer).serve, server_receives, server_sends)
        async with connect(from_server, to_server, **options) as client:
            yield client


class Scripted:
    """A server's side, played by a test."""

    def __init__(self, *, unread_is_full: bool = False) -> None:
        """`unread_is_full`: the client's writes wait until the server reads, as on a pipe that is full."""
        self.client_sends: trio.abc.SendStream
        self.receives: trio.abc.ReceiveStream
        if unread_is_full:
            self.client_sends, self.receives = trio.testing.lockstep_stream_one_way_pair()
        else:
            self.client_sends, self.receives = trio.testing.memory_stream_one_way_pair()
        self.sends, self.client_receives = trio.testing.memory_stream_one_way_pair()
        self._received = bytearray()

    def client(self, **options: Unpack[Options]) -> Any:
        return connect(self.client_receives, self.client_sends, **options)

    async def say(self, *messages: Any) -> None:
        await self.sends.send_all(b"".join(msgspec.json.encode(message) + b"\n" for message in messages))

    async def answer(self, request: Json, result: Any) -> None:
        await self.say(answer_to(request, result))

    async def hear(self) -> Json:
        """The next message."""
        while b"\n" not in self._received:
            chunk = await self.receives.receive_some()
            assert chunk, f"the client closed its end after {bytes(self._received)!r}"
            self._received += chunk
        line, _, self._received = self._received.partition(b"\n")
        message: Json = msgspec.json.decode(line)
        return message

    async def shake_hands(self, introduction: Json = INTRODUCTION) -> Json:
        """Answer the handshake; return its params."""
        request = await self.hear()
        assert request["method"] == "initialize"
        await self.answer(request, introduction)
        params: Json = request["params"]
        return params

    async def end_when_left(self) -> None:
        """Close the server's end when the client has closed its own."""
        try:
            while await self.receives.receive_some():
                pass
        except trio.ClosedResourceError:
            pass  # the server had stopped reading before
        await self.sends.aclose()


def answer_to(request: Json, result: Any) -> Json:
    return {"jsonrpc": "2.0", "id": request["id"], "result": result}


@asynccontextmanager
async def scripted(
    script: Scripted | None = None, **options: Unpack[Options]
) -> AsyncIterator[tuple[Client, Scripted, trio.Nursery]]:
    """A conversation, already open, with a server that a test plays; and a nursery for the client's calls."""
    server = script or Scripted()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(server.shake_hands)
        async with server.client(**options) as client:
            assert (await server.hear())["method"] == "notifications/initialized"
            yield client, server, nursery
            nursery.start_soon(server.end_when_left)


class Outcome:
    """What comes of a call in another task."""

    def __init__(self) -> None:
        self.result: Any = None
        self.error: Exception | None = None

    async def of(self, call: Callable[..., Any], *arguments: Any) -> None:
        try:
            self.result = await call(*arguments)
        except Exception as error:
            self.error = error
