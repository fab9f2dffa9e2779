"""The whole server on one page: three tasks, the channels between them, and the order in which they end.

    stdin ─► reader ─►[batches]─► processor ─►[outgoing]─► writer ─► stdout
                                     ▲
                                  [events]

The reader's end of its channel closes first (end of input, or `stop`); the processor then finishes what is running and
closes the queue; the writer empties it and is the last to go.
"""

import logging
from typing import Final

import trio

from modes_actor.actor.connection import Connection
from modes_actor.actor.context import Shared
from modes_actor.actor.limits import Limits
from modes_actor.actor.outgoing import Outgoing
from modes_actor.actor.peer import Peer
from modes_actor.actor.processor import Processor
from modes_actor.actor.reader import read_messages
from modes_actor.actor.registry import Registry
from modes_actor.actor.subscriptions import Event, Subscriptions
from modes_actor.actor.writer import ClientGone, OutputFailed, Writer
from modes_actor.surface import register
from modes_actor.surface.capabilities import capabilities
from modes_actor.surface.offer import Offer
from modes_actor.wire.codec import Message

log = logging.getLogger(__name__)

QUEUED_EVENTS: Final = 256


class Server:
    """One client's server. Serves over any pair of Trio streams; stdio is one way to get them."""

    def __init__(self, offer: Offer, limits: Limits | None = None) -> None:
        self._limits = limits = limits or Limits()
        self._outgoing = outgoing = Outgoing(limits.queued_bytes)
        connection = Connection()
        shared = Shared(
            connection,
            outgoing,
            Peer(outgoing, limit=limits.client_requests),
            Subscriptions(connection, outgoing, capabilities(offer), listener_limit=limits.listeners),
        )
        registry = Registry()
        register(registry, offer)
        self._processor = Processor(registry, shared, offer.info, limits)
        self._writer = Writer(outgoing)
        self._run_beside = offer.run
        self._tell_leaving = offer.leaving
        self._leaving = False
        self._reading = trio.CancelScope()
        self.events, self._events = trio.open_memory_channel[Event](QUEUED_EVENTS)
        """Send changes here, and whoever listens is notified."""

    async def serve(self, receive: trio.abc.ReceiveStream, send: trio.abc.SendStream) -> None:
        """Serve until the client closes its end or `stop` is called; answer all that was received. Closes both streams.

        Returns normally whenever the client is the one who ended it, however rudely. Raises `OutputFailed` when what
        there is to say cannot be written for another reason. If it is cancelled, what is being written gets
        `drain_seconds`, so that no frame is torn; all else ends at once.
        """
        limits = self._limits
        batches, batches_received = trio.open_memory_channel[list[Message]](limits.queued_batches)

        failure: OutputFailed | None = None

        async def read() -> None:
            with self._reading:
                await read_messages(receive, batches, self._processor.serve_at_once, line_limit=limits.line_bytes)
            self._leave()

        async def write() -> None:
            nonlocal failure
            try:
                await self._writer.run(send)
            except ClientGone as gone:
                log.debug("%s", gone)
                nursery.cancel_scope.cancel()  # nobody is left to finish anything for
            except OutputFailed as error:
                failure = error
                nursery.cancel_scope.cancel()
            noticing.cancel()

        noticing = trio.CancelScope()

        async def notice_cancellation() -> None:
            """Tell the writer, which is shielded."""
            try:
                with noticing:
                    await trio.sleep_forever()
            finally:
                self._leave()
                self._writer.end_by(trio.current_time() + limits.drain_seconds)

        async with receive, send, trio.open_nursery() as beside:
            if self._run_beside is not None:
                beside.start_soon(self._run_beside, self.events)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(notice_cancellation)
                nursery.start_soon(write)
                nursery.start_soon(self._processor.run, batches_received, self._events)
                nursery.start_soon(read)
            beside.cancel_scope.cancel()
        if failure is not None:
            raise failure

    def stop(self) -> None:
        """Stop reading. What was received is answered, then `serve` returns."""
        self._reading.cancel()
        # Not left to the reader: it may be stuck behind a client that reads nothing, with a batch it must deliver.
        self._leave()

    def _leave(self) -> None:
        """From here on, neither running work nor a client that does not read may hold up the end for long."""
        if not self._leaving:
            self._leaving = True
            self._tell_leaving(self._limits.drain_seconds)
            self._writer.hurry(self._limits.drain_seconds)
            self._processor.end_by(trio.current_time() + self._limits.drain_seconds)
