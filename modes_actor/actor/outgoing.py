"""The queue between everything that has something to say and the writer.

Promises: a frame is whole or not there at all; frames leave in the order they were posted; what waits is counted in
encoded bytes, and whoever may wait is made to wait while that count is over the limit.
"""

from collections.abc import Callable

import trio

from modes_actor.wire import jsonrpc
from modes_actor.wire.codec import encode_into


class Outgoing:
    """Frames are encoded as they are posted: only then is their size known, only there can a bad one be blamed."""

    def __init__(self, byte_limit: int) -> None:
        self._limit = byte_limit
        self._frames = bytearray()
        self._being_written = 0
        self._bell_send, self._bell = trio.open_memory_channel[None](1)
        self._waiting_for_room = trio.lowlevel.ParkingLot()
        self._is_held = False
        self.is_full = False
        self.write_whole: Callable[[bytearray], bool] = _cannot
        """The writer's short cut: write all of this now, or nothing."""

    def post(self, message: jsonrpc.Outgoing) -> None:
        """Queue one frame; never waits. Raises what the encoder raises, and then nothing was queued."""
        frames = self._frames
        before = len(frames)
        try:
            encode_into(message, frames, before)
        except BaseException:
            del frames[before:]
            raise
        frames += b"\n"
        self._posted(before)

    def post_encoded(self, frame: bytes) -> None:
        """Queue a frame that is already JSON."""
        before = len(self._frames)
        self._frames += frame
        self._frames += b"\n"
        self._posted(before)

    def hold(self) -> None:
        """More frames are coming, without anything else getting a turn before `release`."""
        self._is_held = True

    def release(self) -> None:
        """What has gathered leaves at once where it can: a lone answer is not to wait until the writer has its turn."""
        self._is_held = False
        if not self._frames:
            return
        if self._being_written or not self.write_whole(self._frames):
            self._ring()
            return
        self._frames.clear()
        self.is_full = False
        self._waiting_for_room.unpark_all()

    async def room(self) -> None:
        """Return once less than the limit is queued."""
        while self.is_full:
            await self._waiting_for_room.park()

    def close(self) -> None:
        """No more frames will come. What is queued is still written."""
        self._bell_send.close()

    async def take(self) -> bytearray | None:
        """For the writer: everything queued since it last asked, or None when there will be no more."""
        self._being_written = 0
        self.is_full = len(self._frames) >= self._limit
        if not self.is_full:
            self._waiting_for_room.unpark_all()
        while not self._frames:
            try:
                await self._bell.receive()
            except trio.EndOfChannel:
                if not self._frames:
                    return None
        taken, self._frames = self._frames, bytearray()
        self._being_written = len(taken)
        return taken

    def _posted(self, before: int) -> None:
        if len(self._frames) + self._being_written >= self._limit:
            self.is_full = True
        if not before and not self._is_held:
            self._ring()

    def _ring(self) -> None:
        try:
            self._bell_send.send_nowait(None)
        except (trio.WouldBlock, trio.BrokenResourceError, trio.ClosedResourceError):
            pass  # it rings already, or the writer has gone and nobody will ever read this


def _cannot(frames: bytearray) -> bool:
    return False
