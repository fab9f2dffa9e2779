"""A virtual client: one of many that may share a server's pipe, with ids, sessions and subscriptions of its own.

It asks something each time it is its turn, remembers what it was told, and judges what comes back. `load_mix` and
`load_refusals` say what it asks.
"""

import random
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Protocol, TypeVar

import msgspec
from load_answers import (
    BUSY,
    OWN,
    REFUSALS,
    SESSION_EXPIRED,
    Message,
    Reading,
    Refused,
    Repeated,
    Wrong,
    session_ids_in,
)
from load_tasks import Subscription, Task, Work
from msgspec import Raw, Struct

from modes_actor.wire.base import CLIENT_CAPABILITIES_KEY, CLIENT_INFO_KEY, PROTOCOL_VERSION_KEY
from modes_actor.wire.jsonrpc import RequestId
from modes_actor.wire.notifications import CANCELLED
from modes_actor.wire.versions import STATELESS_VERSIONS

T = TypeVar("T")
Params = Mapping[str, object]
Check = Callable[[Message], None]

SURELY_EXPIRED: Final = 2.0
"""Seconds beyond its time after which a session must be refused."""
_DECK: Final = 256

_encode = msgspec.json.Encoder().encode
_META: Final = Raw(
    _encode(
        {
            PROTOCOL_VERSION_KEY: STATELESS_VERSIONS[-1].name,
            CLIENT_CAPABILITIES_KEY: {},
            CLIENT_INFO_KEY: {"name": "load", "version": "1"},
        }
    )
)


class _Request(Struct, tag_field="jsonrpc", tag="2.0", gc=False):
    id: RequestId
    method: str
    params: Params


class _Notification(Struct, tag_field="jsonrpc", tag="2.0", gc=False):
    method: str
    params: Params


class Sent:
    """A request on its way."""

    __slots__ = (
        "check", "client", "id", "intended", "is_cancelled", "is_repeated", "is_turn", "kind", "line", "retires",
        "sent_at", "task", "work",
    )  # fmt: skip

    def __init__(self, client: "VirtualClient", request_id: RequestId, kind: str, line: bytes, check: Check) -> None:
        self.client, self.id, self.kind, self.line, self.check = client, request_id, kind, line, check
        self.intended = client.intended
        """When it should have been sent; what it waited since then counts, too."""
        self.sent_at = client.now
        self.is_turn = True
        """The client's next turn comes when this one is answered."""
        self.is_cancelled = False
        self.is_repeated = False
        """Its answer has no session in it, and is the same for everybody."""
        self.retires: RequestId | None = None
        """A request that was cancelled before this one was sent, and so is never answered after it."""
        self.work: Work | None = None
        self.task: Task | None = None


class Line(Protocol):
    """The pipe as its clients see it."""

    pending: dict[RequestId, Sent]
    listens: dict[RequestId, Subscription]
    subscribed: dict[str, Subscription]

    def post(self, line: bytes) -> None: ...


class Known(Struct):
    """What all clients of a run share."""

    session_timeout: float
    repeated: Repeated
    live: set[str] = set()
    """Sessions that belong to somebody."""
    busy: int = 0
    """Requests that were refused for now."""
    cancelled: int = 0
    cancelled_in_time: int = 0
    """Of those, the ones whose answer was not there before the cancellation was sent."""


Ask = Callable[["VirtualClient"], object]


class Mix(Struct, frozen=True):
    """What a client of an era asks, and how often."""

    asks: list[Ask]
    weights: list[float]


class VirtualClient:
    def __init__(self, number: int, *, is_stateless: bool, seed: int, line: Line, known: Known, mix: Mix) -> None:
        self.number, self.is_stateless, self.line, self.known = number, is_stateless, line, known
        self.reading = Reading(is_stateless)
        self.era = "stateless" if is_stateless else "handshake"
        self.random = random.Random(seed * 1_000_003 + number)
        self.intended = self.now = 0.0
        self.works: list[Work] = []
        self.abandoned: RequestId | None = None
        """A request that nobody waits for, to be cancelled in the next turn."""
        self.listening: RequestId | None = None
        self.given: str | None = None
        """The session of the task that was created last."""
        self.left_alone: deque[tuple[str, float]] = deque(maxlen=16)
        """Sessions that are no longer used, and since when."""
        self._mix = mix
        self._deck: list[Ask] = []
        self._asked = 0

    def turn(self, intended: float, now: float) -> None:
        """Ask something. `intended`: when it was to be asked."""
        self.intended, self.now = intended, now
        for work in self.works:
            if self._may_leave(work):
                self._leave(work)
                break
        if not self._deck:
            self._deck = self.random.choices(self._mix.asks, self._mix.weights, k=_DECK)
        self._deck.pop()(self)

    def next(self, ask: Ask) -> None:
        """Ask this in the next turn."""
        self._deck.append(ask)

    # Asking.

    def ask(
        self, kind: str, method: str, params: Params, check: Check, work: Work | None = None, task: Task | None = None
    ) -> Sent:
        self._asked += 1
        # Half of the clients use numbers, half of them strings; nobody uses somebody else's.
        request_id: RequestId = f"{self.number}-{self._asked}" if self.number & 2 else self.number << 32 | self._asked
        if self.is_stateless:
            params = {**params, "_meta": _META}
        line = _encode(_Request(request_id, method, params))
        sent = Sent(self, request_id, kind, line, check)
        if work is not None:
            work.waiting += 1
            sent.work, sent.task = work, task
        self.line.pending[request_id] = sent
        self.line.post(line)
        return sent

    def call(
        self, name: str, arguments: Params, check: Check, work: Work | None = None, task: Task | None = None
    ) -> Sent:
        return self.ask(name, "tools/call", {"name": name, "arguments": arguments}, check, work, task)

    def cancel(self, request_id: RequestId) -> None:
        self.line.post(_encode(_Notification(CANCELLED, {"requestId": request_id})))

    def ask_again(self, kind: str, method: str, params: Params, question: str, check: Check) -> Sent:
        """Ask what everybody is answered alike: what was right before is right again, and need not be read."""
        question, repeated = self.era + question, self.known.repeated

        def check_once(message: Message) -> None:
            answer = bytes(message.result) if isinstance(message.result, Raw) else b""
            if not answer or not repeated.is_known(question, answer):
                check(message)
                if session_ids_in(answer):
                    raise Wrong(OWN, "it names sessions, which nobody asked about")
                repeated.learn(question, answer)

        sent = self.ask(kind, method, params, check_once)
        sent.is_repeated = True
        return sent

    # Being answered.

    def take(self, sent: Sent, message: Message, now: float) -> None:
        """Judge an answer. Raises `Wrong`."""
        self.now = now
        work, task = sent.work, sent.task
        if work is not None:
            work.waiting -= 1
        try:
            sent.check(message)
            if not sent.is_repeated:
                self._check_sessions(message, sent)
        except Refused as refused:
            if work is not None:
                self.lose(work)
            if refused.refusal == BUSY:
                self.known.busy += 1
            elif refused.refusal != SESSION_EXPIRED or task is None or not self.is_stale(task):
                raise Wrong(REFUSALS, f"nobody provoked this error: {refused}") from refused
        except Wrong:
            if work is not None:
                self.lose(work)
            raise
        else:
            if task is not None:
                task.used = max(task.used, sent.sent_at)

    def _check_sessions(self, message: Message, sent: Sent) -> None:
        if not isinstance(message.result, Raw):
            return
        named = session_ids_in(message.result)
        named.discard(self.given or "")
        if named and sent.work is not None:
            named -= sent.work.session_ids
        if named and (strange := named - session_ids_in(sent.line)):
            raise Wrong(OWN, f"it names sessions that have nothing to do with it: {', '.join(sorted(strange))}")

    def is_stale(self, task: Task) -> bool:
        """Whether it may have expired by now."""
        return self.now - task.used >= self.known.session_timeout

    def all_live(self, work: Work) -> bool:
        return self.now - work.oldest_use() < self.known.session_timeout

    # Works.

    def one_of(self, choices: Sequence[T]) -> T:
        return choices[int(self.random.random() * len(choices))]  # quicker than `choice`, and as even as needed here

    def some_work(self) -> Work | None:
        return self.one_of(self.works) if self.works else None

    def changeable_work(self) -> Work | None:
        """One that no request is changing."""
        quiet = [work for work in self.works if not work.is_changing]
        return self.one_of(quiet) if quiet else None

    def begin(self, task: Task) -> Work:
        work = Work(task, task.used)
        self.works.append(work)
        self.own(task.session_id)
        return work

    def own(self, session_id: str) -> None:
        """Raises `Wrong` if it is somebody's already."""
        if session_id in self.known.live:
            raise Wrong(OWN, f"session {session_id} was given out before")
        self.known.live.add(session_id)

    def lose(self, work: Work) -> None:
        """Something went wrong with it: what a server should say of it now is not known."""
        if work.subscription is not None:
            work.subscription.is_awaited = False
        if work in self.works:
            self.works.remove(work)
            self.known.live -= work.session_ids

    def _may_leave(self, work: Work) -> bool:
        if work.waiting or work.subscription is not None:
            return False
        is_old = self.now - work.begun > self.known.session_timeout * 0.4
        return is_old or (work.is_done and self.random.random() < 0.1)

    def _leave(self, work: Work) -> None:
        self.lose(work)
        if len(work.tasks) == 1:  # what is done in a task keeps those above it alive
            self.left_alone.append((work.tasks[0].session_id, self.now))

    def expired_session(self) -> str | None:
        """A session that has surely expired."""
        if self.left_alone:
            session_id, left = self.left_alone[0]
            if self.now - left > self.known.session_timeout + SURELY_EXPIRED:
                self.left_alone.popleft()
                return session_id
        return None
