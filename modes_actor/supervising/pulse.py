"""When to ping a server, and when it is dead. Decides by the times it is told; waits for nothing itself.

Promises: a server is dead only after `failures` pings in a row that were followed by no answer at all within the
timeout; whatever it answers, to whomever, takes it back to none; while the client does not read, so that answers cannot
be seen, no ping is sent and none counts as missed.
"""

from enum import Enum

from modes_actor.supervising.timing import Timing


class Beat(Enum):
    """What is to be done now."""

    NOTHING = "nothing"
    PING = "ping"
    MISSED = "missed"
    """A ping was not answered; one more failure."""
    DEAD = "dead"
    """That was one too many."""
    SUSPENDED = "suspended"
    """It was time for something, but the client does not read."""


class Pulse:
    def __init__(self, timing: Timing, *, first_ping: float) -> None:
        self._timing = timing
        self._next_ping = first_ping
        self._deadline: float | None = None
        """When the ping that is under way counts as missed."""
        self._heard = False
        self.is_blocked = False
        """Answers cannot be seen: the client would have to read first."""
        self.failures = 0

    @property
    def due(self) -> float:
        """When to call `wake`; it may become sooner when `unblock` is called."""
        return self._next_ping if self._deadline is None else self._deadline

    def wake(self, now: float, *, can_ask: bool) -> Beat:
        """`can_ask`: there is a conversation, or one is to be opened, so that a server can be asked something."""
        if now < self.due:
            return Beat.NOTHING
        if self._deadline is not None:
            if self.is_blocked:
                self._deadline = now + self._timing.timeout  # it cannot be seen whether the answer is there
                return Beat.SUSPENDED
            return self._conclude()
        self._next_ping = now + self._timing.interval
        if not can_ask:
            return Beat.NOTHING
        if self.is_blocked:
            return Beat.SUSPENDED
        self._deadline = now + self._timing.timeout
        self._heard = False
        return Beat.PING

    def _conclude(self) -> Beat:
        self._deadline = None
        if self._heard:
            return Beat.NOTHING
        self.failures += 1
        return Beat.DEAD if self.failures >= self._timing.failures else Beat.MISSED

    def heard(self) -> None:
        """The server has answered something."""
        self.failures = 0
        self._heard = True

    def block(self) -> None:
        self.is_blocked = True

    def unblock(self, now: float) -> None:
        """The server is read again: a ping that is under way gets its whole time once more."""
        self.is_blocked = False
        if self._deadline is not None:
            self._deadline = now + self._timing.timeout
