"""Keeps a server alive for one client: starts it, relays, pings, and puts another in its place when it is dead.

    client ─► read ─►[pieces]─► pump ─► relay ─►[outgoing]─► feed ─► server
    client ◄─ write ◄─[outgoing]◄────── relay ◄──────────── listen ◄─ server

One server at a time: the next is started when the last has ended and its last word was heard. Between the two, what
the client says waits in the pipe for a few seconds, and is refused after that. The end is begun by the client (its end
of input, or it reads no more), or by `stop`; the exit code is the server's.
"""

import logging
import time
from collections.abc import Awaitable, Callable
from typing import Final

import trio
from msgspec import UNSET

from modes_actor.actor.framer import TOO_LONG, Framer, Piece
from modes_actor.actor.reader import READ_SIZE
from modes_actor.client.conversation import LINE_LIMIT
from modes_actor.supervising.attached import Attached
from modes_actor.supervising.child import CannotStart, Child
from modes_actor.supervising.client_side import ClientSide
from modes_actor.supervising.pulse import Beat
from modes_actor.supervising.relay import Relay
from modes_actor.supervising.status import Bulletin, State, Status
from modes_actor.supervising.timing import Backoff, Timing
from modes_actor.wire import codec
from modes_actor.wire.jsonrpc import Incoming, Malformed

log = logging.getLogger(__name__)

QUEUED_PIECES: Final = 4
"""Reads from the client that no server has taken yet."""
SUSPENDED: Final = "no pings are sent while the client does not read, because their answers would not be seen"


class Supervisor:
    """`start` starts a server and raises `CannotStart`. `tell` is called with each new status."""

    def __init__(
        self,
        start: Callable[[], Awaitable[Child]],
        timing: Timing | None = None,
        *,
        tell: Callable[[Status], object] = lambda status: None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._start = start
        self._timing = timing = timing or Timing()
        self._bulletin = Bulletin(tell, clock, valid_for=2 * timing.interval + timing.timeout)
        self._relay = Relay()
        self._backoff = Backoff(timing.backoff_first, timing.backoff_limit)
        self._client = ClientSide(timing.grace, LINE_LIMIT)
        self._all_passed_on = trio.Event()
        """What the client has said is with a server, or refused."""
        self._running: Attached | None = None
        """The server that was started last, until it has ended."""
        self._attached: Attached | None = None
        """The same, while it takes what the client says."""
        self._attaching = trio.Event()
        self._gone_since = 0.0
        self._why = "has not been started"
        """Why there is no server, behind "the server", if there is none."""
        self._answered = trio.lowlevel.ParkingLot()

    async def run(self, receive: trio.abc.ReceiveStream, send: trio.abc.SendStream) -> int:
        """Serve the client on these streams, which are closed at the end; return the exit code.

        Raises `CannotStart` if that is so the first time, and `OutputFailed` if the client's output cannot be written.
        """
        async with receive, send:
            child = await self._start()
            async with trio.open_nursery() as nursery:
                pieces, received = trio.open_memory_channel[Piece](QUEUED_PIECES)
                nursery.start_soon(self._client.write, send)
                nursery.start_soon(self._client.read, receive, pieces)
                nursery.start_soon(self._pump, received)
                try:
                    code = await self._keep(child)
                    await self._all_passed_on.wait()
                finally:
                    self._client.end()  # if this was cancelled, a client that does not read must not hold it up
                    self._client.outgoing.close()
        if self._client.failure is not None:
            raise self._client.failure
        return code

    def stop(self, number: int) -> None:
        """A signal came: pass it on, and end as if the client had."""
        self._client.end()
        if self._running is not None:
            self._running.child.tell(number)

    def kill(self) -> None:
        """Another one: leave nothing behind."""
        if self._running is not None:
            self._running.child.kill()

    # What the client says.

    async def _pump(self, pieces: trio.MemoryReceiveChannel[Piece]) -> None:
        async with pieces:
            async for piece in pieces:
                attached = await self._destination()
                if piece is TOO_LONG:
                    self._client.say(self._relay.refuse_long_line(LINE_LIMIT))
                elif attached is None:
                    why = f"The server {self._why}: this was not done. Send it again later"
                    self._client.say(self._relay.refuse(piece, why))
                    await self._client.outgoing.room()
                elif passing := self._relay.from_client(piece):
                    attached.outgoing.post_encoded(passing)
        self._all_passed_on.set()
        if self._attached is not None:
            self._detach(self._attached)

    async def _destination(self) -> Attached | None:
        """The server to send something to, when it takes it; None if there is none, and has not been for a while."""
        while True:
            attached = self._attached
            if attached is None:
                if not await self._attached_in_time():
                    return None
            elif attached.outgoing.is_full:
                await attached.outgoing.room()
            elif self._relay.is_full:
                await self._answered.park()
            else:
                return attached

    async def _attached_in_time(self) -> bool:
        async with trio.open_nursery() as nursery:
            nursery.cancel_scope.deadline = self._gone_since + self._timing.hold
            nursery.start_soon(self._cancel_at_end, nursery.cancel_scope)
            await self._attaching.wait()
            nursery.cancel_scope.cancel()
        return self._attached is not None

    async def _cancel_at_end(self, scope: trio.CancelScope) -> None:
        await self._client.ended.wait()
        scope.cancel()  # nobody starts another server for a client that has gone

    # Servers, one after the other.

    async def _keep(self, child: Child) -> int:
        """Run servers until the client has ended; return the exit code of the last."""
        code = await self._live(child)
        while (successor := await self._successor()) is not None:
            code = await self._live(successor)
        return code if code >= 0 else 128 - code

    async def _successor(self) -> Child | None:
        """Another server, after a while; None: the client has ended."""
        while not self._client.ended.is_set():
            wait = self._backoff.next()
            log.warning("the server %s; another is started in %g s", self._why, wait)
            self._update()
            with trio.move_on_after(wait):
                await self._client.ended.wait()
                return None
            try:
                child = await self._start()
            except CannotStart as error:
                log.warning("%s", error)
                self._why = "cannot be started"
            else:
                self._bulletin.restarts += 1
                return child
        return None

    async def _live(self, child: Child) -> int:
        """From the start of a server to its end, and what is to be said then."""
        now, standing = trio.current_time(), self._relay.standing
        # After a restart, an idle client of the stateless era would not show whether the new server is any good.
        asks_at_once = self._bulletin.restarts > 0 and standing.opening is None
        running = Attached(child, self._timing, first_ping=now if asks_at_once else now + self._timing.interval)
        self._running = running
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(running.feed)
                nursery.start_soon(self._watch, running)
                nursery.start_soon(self._judge, running)
                nursery.start_soon(self._leave, running)
                if standing.opening is None:
                    self._attach(running)
                else:
                    nursery.start_soon(self._reopen, running)
                try:
                    await self._listen(running)
                    self._detach(running)
                    await running.see_out(patiently=running.why_ended is None)
                finally:
                    running.leave()
                    if child.returncode is None:  # this was cancelled, and what is being written to it would not be
                        child.kill()
                nursery.cancel_scope.cancel()
        finally:
            with trio.CancelScope(shield=True):
                code = await child.wait()
                await child.receive.aclose()
            self._running = None
        self._why = running.how_it_ended()
        self._client.say(
            self._relay.server_gone(
                f"The server {self._why} before it answered, so nobody knows whether this was done. "
                "It is not sent to another one: look, and send it again if need be"
            )
        )
        return code

    async def _reopen(self, running: Attached) -> None:
        """Bring a new server to where its predecessor was, then let the client talk to it."""
        standing = self._relay.standing
        running.opening_id, line = self._relay.own_request("initialize", standing.opening)
        running.outgoing.post_encoded(line)
        with trio.move_on_after(self._timing.opening):
            await running.opened.wait()
        answer = running.opening_answer
        if answer is None or answer.result is UNSET:
            running.why_ended = f"does not open: initialize is {'refused' if answer else 'not answered'}"
            self._detach(running)
            await running.see_out(patiently=False)
            return
        for difference in standing.differences(answer.result):
            log.warning("the new server is not what the client was told: %s", difference)
        if (initialized := standing.initialized_line()) is not None:
            running.outgoing.post_encoded(initialized)
        for method, params in standing.resumption():
            request_id, line = self._relay.own_request(method, params)
            running.resuming[request_id] = method
            running.outgoing.post_encoded(line)
        if not running.is_leaving:
            for notification in standing.news():
                self._client.say(notification)
            self._attach(running)

    def _attach(self, running: Attached) -> None:
        """From now on, what the client says is for this server."""
        self._attached = running
        self._attaching.set()
        self._update()

    def _detach(self, running: Attached) -> None:
        """From now on, it is for another one."""
        if running.is_leaving:
            return
        running.leave()
        if self._attached is running:
            self._attached = None
            self._attaching = trio.Event()
            self._gone_since = trio.current_time()
            self._why = running.how_it_ended()
            self._answered.unpark_all()
            self._update()

    async def _leave(self, running: Attached) -> None:
        """Once the client has ended, so does the server, by itself or because it has been silent for too long."""
        await self._client.ended.wait()
        if self._attached is not running or self._all_passed_on.is_set():
            self._detach(running)  # nobody came to talk to it
        silent_since = trio.current_time()
        while trio.current_time() < silent_since + self._timing.grace:
            await trio.sleep_until(silent_since + self._timing.grace)
            heard = trio.current_time() if running.pulse.is_blocked else running.last_heard
            silent_since = max(silent_since, heard)
        await running.see_out(patiently=False)

    # What a server says.

    async def _listen(self, running: Attached) -> None:
        """Pass on what a server says, until its last word. While the client does not read, the server is not read."""
        framer, outgoing = Framer(LINE_LIMIT), self._client.outgoing
        while True:
            if outgoing.is_full:
                running.pulse.block()
                await outgoing.room()
                running.unblock()
            chunk = await running.receive(READ_SIZE)
            for piece in framer.feed(chunk) if chunk else framer.finish():
                if piece is TOO_LONG:
                    running.why_ended = f"sent a line of more than {LINE_LIMIT:,} bytes and was ended"
                    return  # whose answer it was is lost with it
                # The end of a line may be missing because the server was killed in the middle of it.
                if chunk or not isinstance(codec.decode_line(piece), Malformed):
                    self._take_in(running, piece)
            if not chunk:
                return

    def _take_in(self, running: Attached, piece: bytes | bytearray) -> None:
        heard = self._relay.from_server(piece)
        self._client.say(heard.lines)
        if not self._relay.is_full:
            self._answered.unpark_all()
        if heard.answered:
            is_news = not running.has_answered or running.pulse.failures > 0
            running.has_answered = True
            running.pulse.heard()
            if is_news:
                self._update()
        for answer in heard.own:
            self._take_own(running, answer)

    def _take_own(self, running: Attached, answer: Incoming) -> None:
        """An answer to what the supervisor itself has asked."""
        if answer.id == running.opening_id:
            running.opening_answer = answer
            running.opened.set()
        elif answer.id == running.ping_id:
            now = trio.current_time()
            self._bulletin.last_ping_ms = round((now - running.ping_sent) * 1000, 3)
            if now - running.started >= self._timing.interval:
                self._backoff.reset()
            self._update()
        elif isinstance(answer.id, str | int):
            method = running.resuming.pop(answer.id, None)
            if method is not None and answer.error is not UNSET:
                log.warning("the new server refuses %s, which its predecessor had granted", method)

    # How it does.

    async def _watch(self, running: Attached) -> None:
        await running.watch()
        self._detach(running)

    async def _judge(self, running: Attached) -> None:
        """Ping it, and end it when it is dead."""
        timing = self._timing
        while True:
            await running.wait_for_beat()
            question = None if running.is_leaving else self._relay.ping()
            beat = running.pulse.wake(trio.current_time(), can_ask=question is not None)
            running.is_suspended = beat is Beat.SUSPENDED
            if beat is Beat.PING and question is not None:
                running.ping_id, line = self._relay.own_request(*question)
                running.ping_sent = trio.current_time()
                running.outgoing.post_encoded(line)
            elif beat is Beat.SUSPENDED:
                log.debug("%s", SUSPENDED)
            elif beat in (Beat.MISSED, Beat.DEAD):
                failures = running.pulse.failures
                log.warning("a ping was not answered within %g s: %d of %d", timing.timeout, failures, timing.failures)
            if beat is Beat.DEAD:
                running.why_ended = f"did not answer {timing.failures} pings in a row and was ended"
                self._detach(running)
                await running.see_out(patiently=False)
                return
            self._update()

    def _update(self) -> None:
        """Tell how it is."""
        if self._client.ended.is_set():
            return
        running = self._running
        pid = None if running is None else running.child.pid
        if running is None or running is not self._attached:
            self._bulletin.tell("restarting", pid, detail=f"the server {self._why}")
            return
        state: State = "failing" if running.pulse.failures else "healthy" if running.has_answered else "starting"
        detail = SUSPENDED if running.is_suspended else None
        self._bulletin.tell(state, pid, failures=running.pulse.failures, detail=detail)
