"""How long everything takes, and how long to wait before the next start."""

from msgspec import Struct


class Timing(Struct, frozen=True, kw_only=True):
    """All in seconds, but for `failures`."""

    interval: float = 30.0
    """From one ping to the next."""
    timeout: float = 5.0
    """What a ping may take."""
    failures: int = 5
    """So many in a row, and the server is replaced."""
    backoff_first: float = 0.1
    """Before the first restart; each one that follows waits twice as long."""
    backoff_limit: float = 10.0
    grace: float = 6.0
    """What a server gets to end politely: a little more than one of ours takes at most to finish its work."""
    hold: float = 5.0
    """How long what the client says is kept for the next server, before it is told that there is none."""

    @property
    def opening(self) -> float:
        """What a new server may take to answer the `initialize` that its predecessor had."""
        return self.timeout * self.failures


class Backoff:
    """Waits that double up to a limit, and begin again once all is well."""

    def __init__(self, first: float, limit: float) -> None:
        self._first, self._limit = first, limit
        self._next = min(first, limit)

    def next(self) -> float:
        wait, self._next = self._next, min(self._next * 2, self._limit)
        return wait

    def reset(self) -> None:
        self._next = min(self._first, self._limit)
