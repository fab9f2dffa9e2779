"""The last task, and the only code that touches the output.

Promises: frames are written whole and in order; cancelling the task does not tear one; while serving, a client may take
as long as it likes to read; during shutdown, one that reads nothing for `patience` seconds is given up.
"""

import errno
import logging
import math
from typing import Protocol, runtime_checkable

import trio

from modes_actor.actor.outgoing import Outgoing

PIECE_SIZE = 64 * 1024

_GONE = (errno.EPIPE, errno.ECONNRESET, errno.ENOTCONN, errno.ESHUTDOWN, errno.EIO)
"""How an end that was closed announces itself; EIO is a terminal's way."""

log = logging.getLogger(__name__)


@runtime_checkable
class WritesWhole(Protocol):
    """A stream that can write a little at once, whole or not at all."""

    def write_whole(self, data: bytearray) -> bool: ...


class ClientGone(Exception):
    """The client closed its end, or stopped reading while we were leaving."""


class OutputFailed(Exception):
    """What is said cannot be written, through no doing of the client: the disk is full, say. The message tells why."""


class Writer:
    def __init__(self, outgoing: Outgoing) -> None:
        self._outgoing = outgoing
        self._patience = math.inf
        self._end = math.inf
        self._write_scope: trio.CancelScope | None = None

    def hurry(self, patience: float) -> None:
        """From now on, give the client up when it takes nothing for that many seconds."""
        self._patience = patience
        self._set_deadline()

    def end_by(self, end: float) -> None:
        """Give the client up at that time, whatever it has taken until then."""
        self._end = end
        self._set_deadline()

    def _set_deadline(self) -> None:
        if self._write_scope is not None:
            self._write_scope.deadline = min(trio.current_time() + self._patience, self._end)

    async def run(self, stream: trio.abc.SendStream) -> None:
        """Write until the queue is closed and empty. Raises `ClientGone` when nobody reads any more."""
        if isinstance(stream, WritesWhole):
            self._outgoing.write_whole = stream.write_whole
        while (frames := await self._outgoing.take()) is not None:
            if len(frames) <= PIECE_SIZE:
                await self._write(stream, frames)
                continue
            with memoryview(frames) as view:
                for start in range(0, len(view), PIECE_SIZE):
                    await self._write(stream, view[start : start + PIECE_SIZE])

    async def _write(self, stream: trio.abc.SendStream, piece: bytearray | memoryview) -> None:
        # Shielded: after a torn frame nothing that follows could be read, so a write ends by succeeding or with the
        # stream.
        with trio.CancelScope(shield=True) as scope:
            self._write_scope = scope
            self._set_deadline()
            try:
                await stream.send_all(piece)
            except (trio.BrokenResourceError, trio.ClosedResourceError) as error:
                cause = error.__cause__
                if isinstance(cause, OSError) and cause.errno not in _GONE:
                    raise OutputFailed(f"the answers cannot be written: {cause.strerror}") from error
                raise ClientGone(f"cannot write to the client: {cause or error}") from error
            finally:
                self._write_scope = None
        if scope.cancelled_caught:
            raise ClientGone("the client stopped reading")
