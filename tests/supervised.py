"""A supervisor between a client in a few lines and servers that are no processes, on a clock that jumps."""

import itertools
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import trio
import trio.testing

from modes_actor.supervising import CannotStart, Status, Supervisor, Timing
from modes_actor.supervising.child import Child
from tests.conversation import CLIENT_INFO, Json
from tests.process import answer, lines, request

TIMING = Timing(interval=30, timeout=5, failures=3, grace=6)
CAPABILITIES: Json = {"tools": {"listChanged": True}}
CHANGED: Json = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
STATELESS: Json = {
    "_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
}


class FakeServer:
    """Answers everything with an empty result, but for what a test has it do otherwise."""

    def __init__(self, number: int, place: "Place") -> None:
        self.pid = 1000 + number
        self.number = number
        self.returncode: int | None = None
        self._place = place
        self._ended = trio.Event()
        self.send: trio.abc.SendStream
        self.receive: trio.abc.ReceiveStream
        self.send, self._receives = trio.testing.memory_stream_one_way_pair()
        self._sends, self.receive = trio.testing.memory_stream_one_way_pair()
        self.received: list[Any] = []
        self.signals: list[int] = []
        self.started = trio.current_time()

    # As the supervisor sees it.

    async def wait(self) -> int:
        await self._ended.wait()
        assert self.returncode is not None
        return self.returncode

    def tell(self, number: int) -> None:
        self.signals.append(number)

    def end(self) -> None:
        self.signals.append(signal.SIGTERM)
        if not self._place.is_stubborn:
            self.exit(-signal.SIGTERM)

    def kill(self) -> None:
        if self.returncode is None:
            self.signals.append(signal.SIGKILL)
            self.exit(-signal.SIGKILL)

    # As a test does.

    def exit(self, code: int, last_words: bytes = b"") -> None:
        if self.returncode is None:
            self.returncode = code
            self._place.log.append((trio.current_time(), f"server {self.number} ended"))
            self._ended.set()
            self._last_words = last_words
            self._place.nursery.start_soon(self._close)

    async def _close(self) -> None:
        if self._last_words:
            await self._sends.send_all(self._last_words)
        await self._sends.aclose()
        await self._receives.aclose()

    async def say(self, *messages: Json) -> None:
        await self._sends.send_all(lines(*messages))

    async def run(self) -> None:
        received = bytearray()
        try:
            async for chunk in self._receives:
                received += chunk
                *whole, received = received.split(b"\n")
                for line in whole:
                    message = msgspec.json.decode(line)
                    self.received.append(message)
                    await self._place.serve(self, message)
        except (trio.ClosedResourceError, trio.BrokenResourceError):
            return
        if not self._place.is_stubborn:
            self.exit(0)

    def methods(self) -> list[str]:
        return [message.get("method", "an answer") for message in self.received]


class Place:
    """Where servers are started; `servers` has all of them, the last one last."""

    def __init__(self, nursery: trio.Nursery) -> None:
        self.nursery = nursery
        self.servers: list[FakeServer] = []
        self.log: list[tuple[float, str]] = []
        self.is_stubborn = False
        """Servers end when they are killed, and no sooner."""
        self.cannot_start = False
        self.serving: Callable[[FakeServer, Json], Any] | None = None
        """Returns what is said to a message in place of the usual answer: a message, None for nothing."""

    async def start(self) -> Child:
        self.log.append((trio.current_time(), f"server {len(self.servers) + 1} started"))
        if self.cannot_start:
            raise CannotStart("nothing cannot be started: No such file or directory")
        server = FakeServer(len(self.servers) + 1, self)
        self.servers.append(server)
        self.nursery.start_soon(server.run)
        return server

    async def serve(self, server: FakeServer, message: Json) -> None:
        said = usual_answer(message) if self.serving is None else self.serving(server, message)
        if said is not None and server.returncode is None:
            await server.say(said)

    @property
    def server(self) -> FakeServer:
        return self.servers[-1]


def usual_answer(message: Json) -> Json | None:
    if "id" not in message or "method" not in message:
        return None
    if message["method"] == "initialize":
        version = message["params"]["protocolVersion"]
        return answer(message["id"], protocolVersion=version, capabilities=CAPABILITIES, serverInfo=CLIENT_INFO)
    return answer(message["id"])


class Scene:
    """The client's side, the servers, and what the supervisor tells."""

    def __init__(self, nursery: trio.Nursery, timing: Timing, to_client: Any = None) -> None:
        self.place = Place(nursery)
        self.statuses: list[Status] = []
        self.supervisor = Supervisor(self.place.start, timing, tell=self.statuses.append, clock=trio.current_time)
        self.to_supervisor, self.supervisor_receives = trio.testing.memory_stream_one_way_pair()
        self.supervisor_sends: trio.abc.SendStream
        self.from_supervisor: trio.abc.ReceiveStream
        self.supervisor_sends, self.from_supervisor = to_client or trio.testing.memory_stream_one_way_pair()
        self._received = bytearray()
        self.code: int | None = None
        self.ended = trio.Event()

    async def run(self) -> None:
        self.code = await self.supervisor.run(self.supervisor_receives, self.supervisor_sends)
        self.ended.set()

    async def send(self, *messages: Any) -> None:
        await self.to_supervisor.send_all(lines(*messages))

    async def receive(self) -> Any:
        while b"\n" not in self._received:
            chunk = await self.from_supervisor.receive_some()
            assert chunk, "the supervisor ended the conversation"
            self._received += chunk
        line, _, self._received = self._received.partition(b"\n")
        return msgspec.json.decode(line)

    async def rest(self) -> list[Any]:
        """End the input, and take what still comes."""
        await self.to_supervisor.aclose()
        async for chunk in self.from_supervisor:
            self._received += chunk
        await self.ended.wait()
        return [msgspec.json.decode(line) for line in self._received.splitlines()]

    async def ask(self, request_id: int | str, method: str, params: Json | None = None) -> Any:
        await self.send(request(request_id, method, params))
        return await self.receive()

    async def open(self, version: str = "2025-11-25") -> None:
        params = {"protocolVersion": version, "capabilities": {}, "clientInfo": CLIENT_INFO}
        assert "result" in await self.ask("open", "initialize", params)
        await self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        await trio.testing.wait_all_tasks_blocked()

    def told(self) -> list[tuple[str, int]]:
        """The states, with the number of failures, as they followed one another."""
        return [each for each, _ in itertools.groupby((status.state, status.failures) for status in self.statuses)]


@asynccontextmanager
async def scene(timing: Timing = TIMING, to_client: Any = None) -> AsyncIterator[Scene]:
    async with trio.open_nursery() as nursery:
        made = Scene(nursery, timing, to_client)
        nursery.start_soon(made.run)
        yield made
        nursery.cancel_scope.cancel()


def silent(server: FakeServer, message: Json) -> None:
    """It reads and says nothing."""


def silent_to(*methods: str) -> Any:
    return lambda server, message: None if message.get("method") in methods else usual_answer(message)


def error_of(message: Json) -> tuple[Any, int, bool]:
    return message["id"], message["error"]["code"], message["error"]["data"]["retryable"]
