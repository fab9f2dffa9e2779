"""A server's process and the pipe to it, which one or many virtual clients share.

Promises: each answer is matched with its request, and judged, exactly once; whatever else a server says is judged, too;
nothing that goes wrong with a server is passed over.
"""

import subprocess
from collections import Counter
from typing import Final, Protocol

import msgspec
import trio
from load_answers import ALIVE, NEWS, ONCE, TYPED, Message, Refused, Wrong
from load_client import Sent, VirtualClient
from load_histogram import Clocked, Histogram
from load_pace import Pace
from load_project import ROOT, Place
from load_tasks import Subscription
from msgspec import UNSET, Struct

from modes_actor.wire.base import NotificationMeta, Result
from modes_actor.wire.jsonrpc import RequestId
from modes_actor.wire.notifications import INITIALIZED, LISTEN_ACKNOWLEDGED, RESOURCE_UPDATED, SubscriptionFilter

READ_SIZE: Final = 256 * 1024
DETAILS: Final = 20
ENOUGH: Final = 200
"""Broken promises after which there is no point in going on."""
SHOWN: Final = 2_000

_decode_message: Final = msgspec.json.Decoder(Message).decode
_decode_messages: Final = msgspec.json.Decoder(Message).decode_lines


class Broken(Struct, frozen=True):
    """A promise that was not kept: what was asked, and what came."""

    promise: str
    what: str
    client: int | None
    request: str
    answer: str


class Findings(Struct):
    """What all pipes of a run have found out."""

    counts: Counter[str] = msgspec.field(default_factory=Counter)
    details: list[Broken] = []
    enough: trio.Event = msgspec.field(default_factory=trio.Event)

    def add(self, promise: str, what: str, sent: Sent | None = None, answer: bytes = b"") -> None:
        self.counts[promise] += 1
        if len(self.details) < DETAILS:
            number = None if sent is None else sent.client.number
            request = b"" if sent is None else sent.line
            self.details.append(Broken(promise, what, number, _shown(request), _shown(answer)))
        if self.counts.total() >= ENOUGH:
            self.enough.set()


class Measured(Struct):
    """What was measured since the last time somebody looked."""

    answers: Clocked = msgspec.field(default_factory=Clocked)
    lateness: Histogram = msgspec.field(default_factory=Histogram)
    """How long after its time each request was sent."""
    received_bytes: int = 0
    news: int = 0
    """Changes that were told."""


class _Heard(Struct):
    uri: str | None = None
    notifications: SubscriptionFilter | None = None
    meta: NotificationMeta | None = msgspec.field(default=None, name="_meta")


class _Ended(Result):
    """What a stream of changes is answered with when the server leaves."""


class Opening(Protocol):
    def __call__(self, client: VirtualClient) -> object: ...


_decode_heard: Final = msgspec.json.Decoder(_Heard).decode


class Pipe:
    def __init__(self, place: Place, measured: Measured, findings: Findings, *, patience: float) -> None:
        self.pending: dict[RequestId, Sent] = {}
        self.listens: dict[RequestId, Subscription] = {}
        self.subscribed: dict[str, Subscription] = {}
        self.sent = 0
        self.process: trio.Process | None = None
        self._place, self._measured, self._findings, self._patience = place, measured, findings, patience
        self._outbox = bytearray()
        self._pace: Pace | None = None
        self._waiting = trio.CancelScope()
        self._is_stopping = self._is_leaving = False
        self._settled = trio.Event()

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    def post(self, line: bytes) -> None:
        self._outbox += line
        self._outbox += b"\n"

    # The life of a server.

    async def open(self, nursery: trio.Nursery, client: VirtualClient, opening: Opening) -> None:
        """Start the server, and return once it has answered its first request."""
        with self._place.log_file.open("ab") as log:
            self.process = await trio.lowlevel.open_process(
                self._place.arguments,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                cwd=ROOT,
                env=self._place.environment(),
                start_new_session=True,  # Ctrl-C is for the generator, which then leaves them as it should
            )
        nursery.start_soon(self._read)
        client.intended = client.now = trio.current_time()
        opening(client)
        await self._flush()
        await self.settle()
        if not client.is_stateless:
            self.post(b'{"jsonrpc":"2.0","method":"%b"}' % INITIALIZED.encode())
            await self._flush()

    async def drive(self, pace: Pace, *, until: float) -> None:
        """Let the clients ask at that pace, then wait for what is on its way.

        What was due before the end is asked even if a server that was stuck let it come late, within the patience
        there is: else a run would look the better the longer a server was stuck.
        """
        self._pace = pace
        lateness = self._measured.lateness
        try:
            while not self._is_stopping:
                now = trio.current_time()
                if now >= until and (pace.is_done(until) or now >= until + self._patience):
                    break
                for intended, client in pace.due(min(now, until)):
                    client.turn(intended, now)
                    if intended < now:
                        lateness.record(now - intended)
                if self._outbox:
                    await self._flush()
                else:
                    with trio.CancelScope(deadline=min(pace.next_due(), until)) as self._waiting:
                        await trio.sleep_forever()
        finally:
            self._pace = None
        await self.settle()

    def stop(self) -> None:
        """Ask no more."""
        self._is_stopping = True
        self._waiting.deadline = 0.0

    async def leave(self) -> None:
        """Close the pipe; the server must finish what is open and end well."""
        assert self.process is not None
        assert self.process.stdin is not None
        self._is_leaving = True
        await self.process.stdin.aclose()
        with trio.move_on_after(self._patience) as waiting:
            code = await self.process.wait()
            if code:
                self._findings.add(ALIVE, f"a server ended with exit code {code}")
        if waiting.cancelled_caught:
            self._findings.add(ALIVE, f"a server did not end within {self._patience:g} seconds")

    def judge_overdue(self, now: float) -> None:
        """What has waited longer than anybody would is not answered any more."""
        for sent in self.pending.values():
            if sent.sent_at > now - self._patience:
                return
            if not sent.is_cancelled and sent.id not in self.listens:
                self._findings.add(ONCE, f"{sent.kind} was not answered within {self._patience:g} seconds", sent)
                sent.is_cancelled = True

    def judge_rest(self) -> None:
        """What is still open when the server is gone will stay so."""
        for sent in self.pending.values():
            if not sent.is_cancelled:
                self._findings.add(ONCE, f"{sent.kind} was never answered", sent)
        self.pending.clear()

    def kill(self) -> None:
        if self.process is not None and self.process.returncode is None:
            self.process.kill()

    # Sending.

    async def _flush(self) -> None:
        assert self.process is not None
        assert self.process.stdin is not None
        outbox, self._outbox = self._outbox, bytearray()
        self.sent += outbox.count(b"\n")
        try:
            await self.process.stdin.send_all(outbox)
        except trio.BrokenResourceError:
            self._is_stopping = self._is_leaving = True  # the reader says why

    async def settle(self) -> None:
        """Wait until everything is answered and every change is told."""
        self._settled = trio.Event()
        self._look_whether_settled()
        with trio.move_on_after(self._patience) as waiting:
            await self._settled.wait()
        if waiting.cancelled_caught:
            for subscription in (*self.subscribed.values(), *self.listens.values()):
                if subscription.is_awaited:
                    self._findings.add(NEWS, f"{subscription.uri} has changed, which its subscriber was not told")

    def _look_whether_settled(self) -> None:
        if self._is_leaving or not (
            any(not sent.is_cancelled for sent in self.pending.values() if sent.id not in self.listens)
            or any(each.is_awaited for each in self.subscribed.values())
            or any(each.is_awaited or not each.is_acknowledged for each in self.listens.values())
        ):
            self._settled.set()

    # Receiving.

    async def _read(self) -> None:
        assert self.process is not None
        assert self.process.stdout is not None
        rest = b""
        while chunk := await self.process.stdout.receive_some(READ_SIZE):
            self._measured.received_bytes += len(chunk)
            block = rest + chunk
            end = block.rfind(b"\n") + 1
            rest = block[end:]
            if end:
                self.take_block(block[:end], trio.current_time())
                if self._pace is None:
                    self._look_whether_settled()
                else:
                    self._waiting.deadline = min(self._waiting.deadline, self._pace.next_due())
        if rest:
            self._findings.add(ALIVE, "a server ended in the middle of a line", None, rest)
        if not self._is_leaving:
            self._findings.add(ALIVE, f"a server went away with {len(self.pending)} requests unanswered")
        self._is_leaving = True
        self.stop()
        self._settled.set()

    def take_block(self, block: bytes, now: float) -> None:
        """Judge whole lines that a server said."""
        try:
            messages = _decode_messages(block)
        except msgspec.MsgspecError:
            for line in block.splitlines():
                try:
                    self._take(_decode_message(line), now)
                except msgspec.MsgspecError as error:
                    self._findings.add(ALIVE, f"a line is no message: {error}", None, line)
            return
        for message in messages:
            self._take(message, now)

    def _take(self, message: Message, now: float) -> None:
        sent: Sent | None = None
        try:
            if message.method is not UNSET:
                self._take_news(message, now)
                return
            sent = None if message.id is UNSET or message.id is None else self.pending.pop(message.id, None)
            if sent is None:
                raise Wrong(ONCE, "an answer to no request that is open: a second one, one too late, or a wrong id")
            if (message.result is UNSET) == (message.error is UNSET):
                raise Wrong(TYPED, "an answer has either a result or an error")
            if sent.id in self.listens:
                self._take_end_of_stream(sent, message)
                return
            if not sent.is_cancelled:
                self._measured.answers.record(sent.kind, now - sent.intended)
            if sent.retires is not None:
                self.pending.pop(sent.retires, None)
                self.listens.pop(sent.retires, None)
            if sent.is_turn and self._pace is not None:
                self._pace.answered(sent.client, now)
            sent.client.take(sent, message, now)
        except Wrong as wrong:
            self._findings.add(wrong.promise, wrong.what, sent, msgspec.json.encode(message))

    def _take_end_of_stream(self, sent: Sent, message: Message) -> None:
        if not self._is_leaving and not sent.is_cancelled:
            raise Wrong(NEWS, "a stream of changes ended by itself")
        if sent.is_cancelled:
            raise Wrong(NEWS, "a stream of changes that was cancelled is answered")
        try:
            sent.client.reading.result(message, _Ended)
        except Refused as refused:
            raise Wrong(NEWS, f"a stream of changes ends with a result, not with an error: {refused}") from refused
        del self.listens[sent.id]

    def _take_news(self, message: Message, now: float) -> None:
        if message.id is not UNSET or message.method not in (LISTEN_ACKNOWLEDGED, RESOURCE_UPDATED):
            raise Wrong(NEWS, f"nobody asked for {message.method}")
        try:
            heard = _decode_heard(b"{}" if message.params is UNSET else message.params)
        except msgspec.ValidationError as error:
            raise Wrong(TYPED, f"the notification is not of its type: {error}") from error
        stream = None if heard.meta is None else heard.meta.subscription_id
        subscription = self.subscribed.get(heard.uri or "") if stream is None else self.listens.get(stream)
        if subscription is None:
            raise Wrong(NEWS, "nobody subscribed to this")
        self._measured.news += 1
        if message.method == RESOURCE_UPDATED:
            if not subscription.is_acknowledged:
                raise Wrong(NEWS, "the acknowledgement comes first")
            if heard.uri != subscription.uri:
                raise Wrong(NEWS, f"this stream was opened for {subscription.uri}")
            subscription.is_awaited = False
        elif stream is not None:
            self._take_acknowledgement(self.pending[stream], subscription, heard, now)

    def _take_acknowledgement(self, sent: Sent, subscription: Subscription, heard: _Heard, now: float) -> None:
        granted = heard.notifications
        if subscription.is_acknowledged or granted is None or granted.resource_subscriptions != [subscription.uri]:
            raise Wrong(NEWS, f"a stream for {subscription.uri} is acknowledged once, for what was asked")
        subscription.is_acknowledged = True
        self._measured.answers.record(sent.kind, now - sent.intended)
        if self._pace is not None:
            self._pace.answered(sent.client, now)


def _shown(line: bytes) -> str:
    text = line.decode(errors="replace")
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}… ({len(text):,} characters)"
