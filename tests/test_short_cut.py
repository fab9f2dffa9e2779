"""A lone answer leaves at once: past the writer, whole or not at all, and never past what was there before."""

import os
import select
import sys
from collections.abc import Iterator

import pytest
import trio
import trio.testing

from modes_actor.actor.outgoing import Outgoing
from modes_actor.wire.jsonrpc import Notification

if sys.platform == "win32":
    pytest.skip("non-blocking pipes as POSIX has them", allow_module_level=True)

from modes_actor.actor.fd_streams import PipeSendStream

WAVE = Notification("wave")
FRAME = b'{"jsonrpc":"2.0","method":"wave"}\n'


class Wall:
    """The writer's short cut, played by a test."""

    def __init__(self, *, open: bool = True) -> None:
        self.open = open
        self.written = bytearray()

    def write_whole(self, frames: bytearray) -> bool:
        if self.open:
            self.written += frames
        return self.open


def outgoing(wall: Wall, limit: int = 1000) -> Outgoing:
    outgoing = Outgoing(limit)
    outgoing.write_whole = wall.write_whole
    return outgoing


async def test_what_gathered_leaves_at_once_and_in_one_piece() -> None:
    """No turn of the writer in between, and nothing is left for it."""
    wall = Wall()
    queue = outgoing(wall)
    queue.hold()
    queue.post(WAVE)
    queue.post(WAVE)
    assert wall.written == b""
    queue.release()
    assert wall.written == FRAME * 2
    queue.close()
    assert await queue.take() is None


async def test_what_cannot_leave_at_once_is_the_writers() -> None:
    """It is woken then, and gets everything in its order."""
    wall = Wall(open=False)
    queue = outgoing(wall)
    taken: list[bytes] = []

    async def write() -> None:
        taken.append(bytes(await queue.take() or b""))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(write)
        await trio.testing.wait_all_tasks_blocked()
        queue.hold()
        queue.post(WAVE)
        queue.release()
    assert taken == [FRAME]


async def test_nothing_overtakes_what_is_being_written() -> None:
    """The short cut is closed until the writer has come back."""
    wall = Wall()
    queue = outgoing(wall)
    queue.post(WAVE)
    assert bytes(await queue.take() or b"") == FRAME  # and it is at it now
    queue.hold()
    queue.post(WAVE)
    queue.release()
    assert wall.written == b""
    assert bytes(await queue.take() or b"") == FRAME


async def test_what_left_at_once_makes_room() -> None:
    """Whoever waited for it goes on."""
    queue = outgoing(Wall(), limit=1)
    queue.hold()
    queue.post(WAVE)
    assert queue.is_full
    async with trio.open_nursery() as nursery:
        nursery.start_soon(queue.room)
        await trio.testing.wait_all_tasks_blocked()
        queue.release()
    assert not queue.is_full


@pytest.fixture
def pipe() -> Iterator[tuple[PipeSendStream, int]]:
    reads, writes = os.pipe()
    os.set_blocking(writes, False)
    yield PipeSendStream(writes), reads
    for fd in (reads, writes):
        try:
            os.close(fd)
        except OSError:
            pass


async def test_a_pipe_takes_a_short_write_whole(pipe: tuple[PipeSendStream, int]) -> None:
    """As POSIX promises."""
    stream, reads = pipe
    assert stream.write_whole(b"x" * select.PIPE_BUF)
    assert os.read(reads, 1_000_000) == b"x" * select.PIPE_BUF


async def test_a_pipe_takes_nothing_of_a_long_write(pipe: tuple[PipeSendStream, int]) -> None:
    """It could be torn."""
    assert not pipe[0].write_whole(b"x" * (select.PIPE_BUF + 1))


async def test_a_full_pipe_takes_nothing(pipe: tuple[PipeSendStream, int]) -> None:
    """Not even a part."""
    stream, reads = pipe
    taken = 0
    while stream.write_whole(b"x" * 4000):
        taken += 4000
    assert taken
    left = taken
    while left:
        left -= len(os.read(reads, left))
    os.set_blocking(reads, False)
    with pytest.raises(BlockingIOError):
        os.read(reads, 1)


async def test_a_stream_that_is_busy_closed_or_broken_takes_nothing(pipe: tuple[PipeSendStream, int]) -> None:
    """And never raises: the writer's own attempt will tell."""
    stream, reads = pipe
    with stream._writing:
        assert not stream.write_whole(b"x")
    os.close(reads)
    assert not stream.write_whole(b"x")
    await stream.aclose()
    assert not stream.write_whole(b"x")
