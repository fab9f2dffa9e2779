"""The first task: bytes from the client to batches of typed messages.

Everything one read brought goes down the channel as one batch. When the input ends, or reading is cancelled, the
channel is closed; that is what begins an orderly shutdown.
"""

import logging
from collections.abc import Callable

import trio

from modes_actor.actor.framer import TOO_LONG, Framer, Piece
from modes_actor.wire.codec import Message, decode_lines
from modes_actor.wire.errors import ErrorCode
from modes_actor.wire.jsonrpc import Malformed

READ_SIZE = 64 * 1024

log = logging.getLogger(__name__)


async def read_messages(
    stream: trio.abc.ReceiveStream,
    batches: trio.MemorySendChannel[list[Message]],
    serve_at_once: Callable[[list[Message]], bool],
    *,
    line_limit: int,
) -> None:
    """Read until the end of the input. A batch that was read is always delivered, even when reading is cancelled.

    Each is offered to `serve_at_once` first; what that does not take is queued.
    """
    framer = Framer(line_limit)
    async with batches:
        while True:
            try:
                chunk = await stream.receive_some(READ_SIZE)
            except trio.BrokenResourceError:
                log.debug("the input broke off")
                chunk = b""
            batch = _decode(framer.feed(chunk) if chunk else framer.finish(), line_limit)
            if batch and not serve_at_once(batch):
                try:
                    batches.send_nowait(batch)  # no detour through the scheduler while there is room
                except trio.WouldBlock:
                    try:
                        with trio.CancelScope(shield=True):
                            await batches.send(batch)
                    except trio.BrokenResourceError:
                        return  # the client is gone, and the processor with it
            if not chunk:
                return


def _decode(pieces: list[Piece], line_limit: int) -> list[Message]:
    if len(pieces) == 1 and pieces[0] is not TOO_LONG:
        return decode_lines(pieces[0])
    batch: list[Message] = []
    for piece in pieces:
        if piece is TOO_LONG:
            batch.append(Malformed(ErrorCode.INVALID_REQUEST, f"Invalid request: longer than {line_limit:,} bytes"))
        else:
            batch.extend(decode_lines(piece))
    return batch
