"""What a supervisor tells whoever asks: a small JSON file, always whole, that says until when to believe it."""

import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Final, Literal

import msgspec
from msgspec import Struct

State = Literal["starting", "healthy", "failing", "restarting"]

log = logging.getLogger(__name__)

_MEANING: Final[dict[State, str]] = {
    "starting": "the server has not answered anything yet",
    "healthy": "the server answers",
    "failing": "the server does not answer",
    "restarting": "there is no server at the moment",
}


class Status(Struct, frozen=True, kw_only=True):
    """Times are seconds since 1970, by the clock on the wall: whoever reads it is another process."""

    state: State
    supervisor: int
    """Its process."""
    pid: int | None
    """The server's process, while there is one."""
    restarts: int
    failures: int
    """Pings in a row that were not answered."""
    last_ping_ms: float | None
    """What the last answered ping took."""
    since: float
    """When it came into this state."""
    updated: float
    good_until: float
    """A file that says nothing newer by then was left behind by a supervisor that is no more, or hangs."""
    detail: str | None
    """Why, or what else there is to know."""

    def trouble(self, now: float) -> str | None:
        """Why this does not count as healthy, as a sentence without its full stop; None: it does."""
        if now > self.good_until:
            return f"the status was last written {now - self.updated:.0f} s ago, so its supervisor has gone or hangs"
        if self.state == "healthy":
            return None
        return _MEANING[self.state] if self.detail is None else f"{_MEANING[self.state]}: {self.detail}"


class Bulletin:
    """Puts each status together, and hands it to whoever wants it."""

    def __init__(self, tell: Callable[[Status], object], clock: Callable[[], float], *, valid_for: float) -> None:
        self._tell, self._clock, self._valid_for = tell, clock, valid_for
        self._state: State | None = None
        self._since = 0.0
        self.restarts = 0
        self.last_ping_ms: float | None = None

    def tell(self, state: State, pid: int | None, *, failures: int = 0, detail: str | None = None) -> None:
        now = self._clock()
        if state != self._state:
            self._state, self._since = state, now
        self._tell(
            Status(
                state=state,
                supervisor=os.getpid(),
                pid=pid,
                restarts=self.restarts,
                failures=failures,
                last_ping_ms=self.last_ping_ms,
                since=self._since,
                updated=now,
                good_until=now + self._valid_for,
                detail=detail,
            )
        )


class StatusUnusable(Exception):
    """There is no status, or it cannot be read or written. The message is a sentence for people."""


class StatusFile:
    """Written whole beside its place, and moved there."""

    def __init__(self, path: Path) -> None:
        """Raises `StatusUnusable` where nothing can be written: better now than when somebody relies on it."""
        self._path = path
        self._new = path.with_name(f".{path.name}.{os.getpid()}.new")
        self._must_tell = True
        try:
            self._new.write_bytes(b"")
            self._new.unlink()
            if path.is_dir():
                raise IsADirectoryError(21, "Is a directory")
        except OSError as error:
            raise StatusUnusable(f"the status cannot be written to {path}: {error.strerror or error}") from error

    def write(self, status: Status) -> None:
        """What cannot be written is told once: the server is more important."""
        try:
            self._new.write_bytes(msgspec.json.encode(status) + b"\n")
            os.replace(self._new, self._path)
        except OSError as error:
            if self._must_tell:
                self._must_tell = False
                log.warning("the status cannot be written to %s: %s", self._path, error.strerror or error)

    def remove(self) -> None:
        """Nothing is supervised any more."""
        for path in (self._path, self._new):
            try:
                path.unlink(missing_ok=True)
            except OSError:
                pass  # its `good_until` makes it worthless


def read_status(path: Path) -> Status:
    """Raises `StatusUnusable`."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Status)
    except FileNotFoundError as error:
        raise StatusUnusable(f"{path} is not there: no supervisor that writes its status there is running") from error
    except OSError as error:
        raise StatusUnusable(f"{path} cannot be read: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise StatusUnusable(f"{path} is no status of a supervisor: {error}") from error
