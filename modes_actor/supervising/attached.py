"""One server that is running: what goes to it, how it does, and how it is brought to its end."""

import logging
import math
import signal
from typing import Final

import trio

from modes_actor.actor.outgoing import Outgoing
from modes_actor.actor.writer import ClientGone, OutputFailed, Writer
from modes_actor.supervising.child import Child
from modes_actor.supervising.pulse import Pulse
from modes_actor.supervising.timing import Timing
from modes_actor.wire.jsonrpc import Incoming, RequestId

log = logging.getLogger(__name__)

QUEUED_BYTES: Final = 256 * 1024
"""For the server: little, so that a ping does not wait behind much."""
LAST_WORDS: Final = 1.0
"""Seconds of silence after which a server that has ended is not listened to any more: others may hold its stdout."""


class Attached:
    def __init__(self, child: Child, timing: Timing, *, first_ping: float) -> None:
        self.child = child
        self.outgoing = Outgoing(QUEUED_BYTES)
        self.pulse = Pulse(timing, first_ping=first_ping)
        self.started = trio.current_time()
        self.last_heard = self.started
        self.has_answered = False
        self.is_leaving = False
        """Nothing more will be sent to it."""
        self.is_suspended = False
        """When its pulse was last felt, that could not be done because the client did not read."""
        self.why_ended: str | None = None
        """If it is known better than by how the process ended."""
        self.opening_id: RequestId | None = None
        self.opening_answer: Incoming | None = None
        self.opened = trio.Event()
        """The `initialize` of the supervisor's own was answered."""
        self.resuming: dict[RequestId, str] = {}
        """The methods of what it is asked to take up again."""
        self.ping_id: RequestId | None = None
        """Of the last ping."""
        self.ping_sent = 0.0
        self._grace = timing.grace
        self._writer = Writer(self.outgoing)
        self._receiving: trio.CancelScope | None = None
        self._nudged = trio.Event()

    # Its stdin.

    async def feed(self) -> None:
        """Write what is there for it, until `outgoing` is closed."""
        async with self.child.send as stream:
            try:
                await self._writer.run(stream)
            except (ClientGone, OutputFailed):
                log.debug("the server does not read any more")
        # Nobody may be left waiting for room. What was lost is answered when it has ended.
        while await self.outgoing.take() is not None:
            pass

    def leave(self) -> None:
        """Send what is there for it, and then the end of its input. It may take its time to read, but not forever."""
        self.is_leaving = True
        self.outgoing.close()
        self._writer.hurry(self._grace)

    # Its stdout.

    async def receive(self, size: int) -> bytes:
        """The next bytes that it says; none at the end."""
        ended = self.child.returncode is not None
        with trio.CancelScope(deadline=trio.current_time() + LAST_WORDS if ended else math.inf) as self._receiving:
            try:
                chunk = bytes(await self.child.receive.receive_some(size))
                self.last_heard = trio.current_time()
                return chunk
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                pass  # as good as an end
        return b""

    async def watch(self) -> None:
        """Return once the process has ended; from then on, reading comes to an end, too."""
        await self.child.wait()
        if self._receiving is not None:
            self._receiving.deadline = trio.current_time() + LAST_WORDS

    # Its pulse.

    async def wait_for_beat(self) -> None:
        """Return when the pulse is to be woken, or may be."""
        with trio.CancelScope(deadline=self.pulse.due):
            await self._nudged.wait()
        self._nudged = trio.Event()

    def unblock(self) -> None:
        self.pulse.unblock(trio.current_time())
        self._nudged.set()

    # Its end.

    async def see_out(self, *, patiently: bool) -> None:
        """Return when it has ended. `patiently`: its input has ended, so that it may be ending by itself."""
        if patiently:
            with trio.move_on_after(self._grace):
                await self.child.wait()
        if self.child.returncode is None:
            self.child.end()
            with trio.move_on_after(self._grace):
                await self.child.wait()
        self.child.kill()  # it, or what it left behind
        await self.child.wait()

    def how_it_ended(self) -> str:
        """Behind "the server"."""
        if self.why_ended is not None:
            return self.why_ended
        code = self.child.returncode
        if code is None:
            return "is ending"
        return f"ended with exit code {code}" if code >= 0 else f"was ended by {signal_name(-code)}"


def signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
