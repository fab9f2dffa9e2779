"""The client's end: its lines come in as pieces, and what it is told goes out, as fast as it reads.

Promises: what was read is passed on, also if reading ends just then; frames are written whole; once the client has
ended, it cannot hold up anything for longer than the grace it has.
"""

import logging

import trio

from modes_actor.actor.framer import Framer, Piece
from modes_actor.actor.limits import Limits
from modes_actor.actor.outgoing import Outgoing
from modes_actor.actor.reader import READ_SIZE
from modes_actor.actor.writer import ClientGone, OutputFailed, Writer

log = logging.getLogger(__name__)


class ClientSide:
    def __init__(self, grace: float, line_limit: int) -> None:
        self._grace = grace
        self._line_limit = line_limit
        self.outgoing = Outgoing(Limits().queued_bytes)
        self._writer = Writer(self.outgoing)
        self._reading = trio.CancelScope()
        self.ended = trio.Event()
        """No more is read: it has ended its output, reads no more, or is not to be served any longer."""
        self.failure: OutputFailed | None = None

    async def read(self, stream: trio.abc.ReceiveStream, pieces: trio.MemorySendChannel[Piece]) -> None:
        framer, chunk = Framer(self._line_limit), b"more"
        async with pieces:
            with self._reading:
                while chunk:
                    try:
                        chunk = bytes(await stream.receive_some(READ_SIZE))
                    except (trio.BrokenResourceError, trio.ClosedResourceError):
                        chunk = b""
                    for piece in framer.feed(chunk) if chunk else framer.finish():
                        with trio.CancelScope(shield=True):
                            try:
                                await pieces.send(piece)
                            except trio.BrokenResourceError:
                                return  # whoever served it has been cancelled
        self.end()

    async def write(self, stream: trio.abc.SendStream) -> None:
        """Write until `outgoing` is closed, or nobody reads any more."""
        try:
            await self._writer.run(stream)
        except ClientGone as gone:
            log.debug("%s", gone)
        except OutputFailed as failure:
            self.failure = failure
        self.end()
        while await self.outgoing.take() is not None:
            pass  # a server that is still ending must not wait for room

    def say(self, lines: bytes) -> None:
        if lines:
            self.outgoing.post_encoded(lines)

    def end(self) -> None:
        if not self.ended.is_set():
            self.ended.set()
            self._reading.cancel()
            self._writer.hurry(self._grace)
