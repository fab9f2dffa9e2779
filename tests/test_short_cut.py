"""A lone message is served at once, and its answer leaves at once: past the other tasks, but past nothing before it."""

import os
import select
import sys
from collections.abc import Iterator

import pytest
import trio
import trio.testing

from modes_actor.actor.limits import Limits
from modes_actor.actor.outgoing import Outgoing
from modes_actor.server import Server
from modes_actor.wire.codec import decode_lines
from modes_actor.wire.jsonrpc import Notification
from tests.conversation import PLAIN_OFFER, talking
from tests.sample_offer import Gate, sample_offer

if sys.platform == "win32":
    pytest.skip("non-blocking pipes as POSIX has them", allow_module_level=True)

from modes_actor.actor.fd_streams import PipeSendStream

WAVE = Notification("wave")
FRAME = b'{"jsonrpc":"2.0","method":"wave"}\n'


def pings(*ids: int) -> bytes:
    return b"".join(b'{"jsonrpc":"2.0","id":%d,"method":"ping"}\n' % number for number in ids)


class Chunks(trio.abc.ReceiveStream):
    """One after the other, so that which task has the next turn is left to chance."""

    def __init__(self, chunks: list[bytes]) -> None:
        self._chunks = chunks

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        await trio.lowlevel.checkpoint()
        return self._chunks.pop(0) if self._chunks else b""

    async def aclose(self) -> None:
        await trio.lowlevel.checkpoint()


async def test_a_lone_message_is_served_at_once() -> None:
    """No turn of any task in between: its answer is queued when the call returns."""
    async with talking() as client:
        await trio.testing.wait_all_tasks_blocked()
        assert client.server._processor.serve_at_once(decode_lines(pings(7)))
        assert (await client.receive())["id"] == 7


async def test_several_messages_are_queued_and_so_is_what_comes_before_they_are_served() -> None:
    """Else it would overtake them. Once they are, a lone one is served at once again."""
    async with talking() as client:
        await trio.testing.wait_all_tasks_blocked()
        serve_at_once = client.server._processor.serve_at_once
        assert not serve_at_once(decode_lines(pings(1, 2)))
        assert not serve_at_once(decode_lines(pings(3)))
        await client.send_bytes(pings(4, 5))
        await trio.testing.wait_all_tasks_blocked()
        assert serve_at_once(decode_lines(pings(6)))
        assert [(await client.receive())["id"] for _ in range(3)] == [4, 5, 6]


async def test_no_message_overtakes_another_however_they_come() -> None:
    """Alone and in company, while each task has its turn when chance will have it."""
    chunks = [pings(0)]
    for number in range(1, 900, 3):
        chunks += [pings(number, number + 1), pings(number + 2)]
    sends, receives = trio.testing.memory_stream_one_way_pair()
    await Server(PLAIN_OFFER).serve(Chunks(chunks), sends)
    answers = b""
    while chunk := await receives.receive_some():
        answers += chunk
    assert answers == b"".join(b'{"jsonrpc":"2.0","id":%d,"result":{}}\n' % number for number in range(901))


async def test_a_lone_request_waits_for_a_place_like_any_other() -> None:
    """And what is behind it waits for it."""
    gate = Gate()
    async with talking(sample_offer(gate), limits=Limits(in_flight=1)) as client:
        for number, (method, params) in enumerate([("tools/call", {"name": "wait"})] * 2 + [("ping", {})]):
            await client.send(client.compose(method, params, id=number))
            await trio.testing.wait_all_tasks_blocked()
        entered = gate.entered
        gate.opened.set()
        answers = [(await client.receive())["id"] for _ in range(3)]
        assert (entered, sorted(answers)) == (1, [0, 1, 2])


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
