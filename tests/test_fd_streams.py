"""Streams over file descriptors keep Trio's contract; stdin and stdout get the kind of stream that suits them."""

import os
import socket
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from subprocess import DEVNULL

import pytest
import trio
import trio.testing

from modes_actor.actor.fd_streams import (
    PipeReceiveStream,
    PipeSendStream,
    SocketReceiveStream,
    SocketSendStream,
    ThreadReceiveStream,
    ThreadSendStream,
)
from tests.process import Process, program

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="descriptors of POSIX")

MUCH = bytes(range(256)) * 4096 * 2
"""More than any pipe or socket holds at a time."""

Ends = tuple[trio.abc.SendStream, trio.abc.ReceiveStream]


# Pipes and sockets: all of the contract.


async def pipe_ends() -> Ends:
    reads, writes = os.pipe()
    os.set_blocking(reads, False)
    os.set_blocking(writes, False)
    return PipeSendStream(writes), PipeReceiveStream(reads)


async def socket_ends() -> Ends:
    """The sockets stay blocking: their descriptions may be shared, and the streams must not mind."""
    there, here = socket.socketpair()
    return SocketSendStream(there.detach()), SocketReceiveStream(here.detach())


async def clogged(ends: Ends) -> Ends:
    """The same, but already full: sending more has to wait."""
    send, _ = ends
    async with trio.open_nursery() as nursery:
        nursery.start_soon(send.send_all, bytes(16 * 1024 * 1024))
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    return ends


async def clogged_pipe_ends() -> Ends:
    return await clogged(await pipe_ends())


async def clogged_socket_ends() -> Ends:
    return await clogged(await socket_ends())


async def test_pipes_keep_the_contract_of_streams() -> None:
    """Every clause that Trio knows how to check."""
    await trio.testing.check_one_way_stream(pipe_ends, clogged_pipe_ends)


async def test_sockets_keep_the_contract_of_streams() -> None:
    """Every clause that Trio knows how to check."""
    await trio.testing.check_one_way_stream(socket_ends, clogged_socket_ends)


async def test_a_socket_stays_as_blocking_as_it_was() -> None:
    """Others may hold the same description: it is not ours to change."""
    there, here = socket.socketpair()
    with there, here:
        send, receive = SocketSendStream(os.dup(there.fileno())), SocketReceiveStream(os.dup(here.fileno()))
        async with send, receive:
            await clogged((send, receive))
            await receive.receive_some()
            assert [os.get_blocking(there.fileno()), os.get_blocking(here.fileno())] == [True, True]


@pytest.mark.parametrize("make", [pipe_ends, socket_ends], ids=["pipe", "socket"])
async def test_a_finished_write_is_never_reported_as_cancelled(make: Callable[[], Awaitable[Ends]]) -> None:
    """A cancellation that comes once all is written comes too late: the caller would believe that a frame was torn."""
    send, receive = await make()
    finished = False
    async with send, receive, trio.open_nursery() as nursery:
        with trio.CancelScope() as scope:
            nursery.start_soon(cancel, scope)  # runs when `send_all` has written, and yields
            await send.send_all(b"a frame")
            finished = True
        assert finished
        assert await receive.receive_some() == b"a frame"


async def cancel(scope: trio.CancelScope) -> None:
    scope.cancel()


# Threads: the same, but for what a thread cannot do. They never close a descriptor, so the tests do.


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    """The blocking ends of a pipe: to read from, to write to."""
    ends = os.pipe()
    yield ends
    for end in ends:
        close(end)


def close(fd: int) -> None:
    """Close it unless that was done already."""
    try:
        os.close(fd)
    except OSError:
        pass


async def abandoned_threads_end() -> None:
    """Return once no thread is left in a call that was abandoned: each keeps its token until it is out of it."""
    limiter = trio.to_thread.current_default_thread_limiter()
    limiter.total_tokens = 1
    async with limiter:
        pass


async def test_threads_carry_much_data_whole(pipe: tuple[int, int]) -> None:
    """Through a pipe that holds a fraction of it, to the end."""
    receive, send = ThreadReceiveStream(pipe[0]), ThreadSendStream(pipe[1])
    received = bytearray()

    async def write() -> None:
        await send.send_all(memoryview(MUCH))
        os.close(pipe[1])

    async with trio.open_nursery() as nursery:
        nursery.start_soon(write)
        async for chunk in receive:
            received += chunk
    assert received == MUCH
    assert await receive.receive_some() == b""


async def test_a_thread_reads_no_more_than_asked(pipe: tuple[int, int]) -> None:
    """And refuses to read nothing, which would look like the end."""
    receive = ThreadReceiveStream(pipe[0])
    os.write(pipe[1], b"abcdef")
    assert [await receive.receive_some(2), await receive.receive_some(3)] == [b"ab", b"cde"]
    with pytest.raises(ValueError, match="max_bytes"):
        await receive.receive_some(0)
    with pytest.raises(TypeError):
        await receive.receive_some(1.5)  # type: ignore[arg-type]
    assert await receive.receive_some() == b"f"


async def test_writing_where_nobody_reads_is_broken(pipe: tuple[int, int]) -> None:
    """Theirs is the fault, and so the error says."""
    os.close(pipe[0])
    with pytest.raises(trio.BrokenResourceError):
        await ThreadSendStream(pipe[1]).send_all(b"x")


async def test_reading_what_cannot_be_read_is_broken(pipe: tuple[int, int]) -> None:
    """Any error of the system counts as that."""
    with pytest.raises(trio.BrokenResourceError):
        await ThreadReceiveStream(pipe[1]).receive_some()


async def test_closed_thread_streams_say_so(pipe: tuple[int, int]) -> None:
    """Ours is the fault; closing again is none."""
    receive, send = ThreadReceiveStream(pipe[0]), ThreadSendStream(pipe[1])
    for _ in range(2):
        await receive.aclose()
        await send.aclose()
    with pytest.raises(trio.ClosedResourceError):
        await receive.receive_some()
    with pytest.raises(trio.ClosedResourceError):
        await send.send_all(b"x")
    with pytest.raises(trio.ClosedResourceError):
        await send.send_all(b"")
    with pytest.raises(trio.ClosedResourceError):
        await send.wait_send_all_might_not_block()


async def test_a_closed_thread_stream_keeps_its_descriptor(pipe: tuple[int, int]) -> None:
    """A thread may still be in a read of it, which would go on in whatever gets the number next."""
    await ThreadReceiveStream(pipe[0]).aclose()
    await ThreadSendStream(pipe[1]).aclose()
    os.write(pipe[1], b"x")
    assert os.read(pipe[0], 1) == b"x"


async def test_two_tasks_cannot_read_at_once_through_threads(pipe: tuple[int, int]) -> None:
    """The second is refused, the first is not disturbed."""
    receive = ThreadReceiveStream(pipe[0])
    received = []

    async def read() -> None:
        received.append(await receive.receive_some())

    async with trio.open_nursery() as nursery:
        nursery.start_soon(read)
        await trio.testing.wait_all_tasks_blocked()
        with pytest.raises(trio.BusyResourceError):
            await receive.receive_some()
        os.write(pipe[1], b"for the first")
    assert received == [b"for the first"]


async def test_two_tasks_cannot_write_at_once_through_threads(pipe: tuple[int, int]) -> None:
    """The second is refused, the first is not disturbed."""
    receive, send = ThreadReceiveStream(pipe[0]), ThreadSendStream(pipe[1])
    received = bytearray()

    async def write() -> None:
        await send.send_all(MUCH)
        os.close(pipe[1])

    async with trio.open_nursery() as nursery:
        nursery.start_soon(write)
        await trio.testing.wait_all_tasks_blocked()
        with pytest.raises(trio.BusyResourceError):
            await send.send_all(b"x")
        with pytest.raises(trio.BusyResourceError):
            await send.wait_send_all_might_not_block()
        async for chunk in receive:
            received += chunk
    assert received == MUCH


async def test_a_cancelled_read_is_left_to_its_thread(pipe: tuple[int, int]) -> None:
    """The task goes on at once; the thread ends when there is something to read, and nobody minds."""
    receive = ThreadReceiveStream(pipe[0])
    async with trio.open_nursery() as nursery:
        nursery.start_soon(receive.receive_some)
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    assert trio.to_thread.current_default_thread_limiter().borrowed_tokens == 1
    os.close(pipe[1])
    await abandoned_threads_end()


async def test_a_cancelled_write_is_left_to_its_thread(pipe: tuple[int, int]) -> None:
    """The thread has its own copy of the data: the caller's buffer can be changed at once."""
    send = ThreadSendStream(pipe[1])
    data = bytearray(MUCH)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(send.send_all, data)
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    data[:] = bytes(len(data))
    del data[1:]
    received = bytearray()
    while not received.endswith(MUCH[-1:]) or len(received) < len(MUCH):
        received += os.read(pipe[0], len(MUCH) - len(received))
    await abandoned_threads_end()
    assert received == MUCH


@pytest.mark.parametrize("stream", ["receive", "send"])
async def test_a_thread_stream_notices_a_cancellation_that_came_before(pipe: tuple[int, int], stream: str) -> None:
    """Every call is a checkpoint, whether it has to wait or not."""
    os.write(pipe[1], b"x")
    with trio.CancelScope() as scope:
        scope.cancel()
        if stream == "receive":
            await ThreadReceiveStream(pipe[0]).receive_some()
        else:
            await ThreadSendStream(pipe[1]).wait_send_all_might_not_block()
    assert scope.cancelled_caught
    assert os.read(pipe[0], 10) == b"x"


# Which stream stdin and stdout get.

NAMES_ITS_STREAMS = """
import sys
from modes_actor.actor.stdio import claim_stdio
stdio = claim_stdio()
sys.stderr.write(f"{type(stdio.receive).__name__} {type(stdio.send).__name__} {stdio.is_terminal}")
"""

PIPE_STREAMS = "PipeReceiveStream PipeSendStream False"
SOCKET_STREAMS = "SocketReceiveStream SocketSendStream False"
THREAD_STREAMS = "ThreadReceiveStream ThreadSendStream False"


def test_pipes_get_streams_that_wait_for_the_kernel() -> None:
    """Where the system lets us have a description of our own; else threads."""
    with Process(program(NAMES_ITS_STREAMS)) as process:
        expected = PIPE_STREAMS if sys.platform == "linux" else THREAD_STREAMS
        assert process.finish() == (0, [], expected)


def test_sockets_get_streams_that_wait_for_the_kernel() -> None:
    """The same one for both directions, too."""
    here, there = socket.socketpair()
    with here, there, Process(program(NAMES_ITS_STREAMS), stdin=there.fileno(), stdout=there.fileno()) as process:
        assert process.finish() == (0, [], SOCKET_STREAMS)


def test_regular_files_get_streams_with_threads(tmp_path: Path) -> None:
    """The kernel does not say when a file is ready."""
    path = tmp_path / "file"
    path.touch()
    with path.open("rb") as stdin, path.open("wb") as stdout:
        command = program(NAMES_ITS_STREAMS)
        with Process(command, stdin=stdin.fileno(), stdout=stdout.fileno()) as process:
            assert process.finish() == (0, [], THREAD_STREAMS)


def test_null_devices_get_streams_with_threads() -> None:
    """Nor of those."""
    with Process(program(NAMES_ITS_STREAMS), stdin=DEVNULL, stdout=DEVNULL) as process:
        assert process.finish() == (0, [], THREAD_STREAMS)


def test_terminals_get_streams_with_threads() -> None:
    """A shell holds the same description, which must stay as it is."""
    import pty

    near, far = pty.openpty()
    try:
        with Process(program(NAMES_ITS_STREAMS), stdin=far, stdout=far) as process:
            assert process.finish() == (0, [], "ThreadReceiveStream ThreadSendStream True")
    finally:
        os.close(near)
        os.close(far)


def test_each_direction_is_judged_by_itself() -> None:
    """A pipe in and a null device out are served by one stream of each kind."""
    with Process(program(NAMES_ITS_STREAMS), stdout=DEVNULL) as process:
        expected = "PipeReceiveStream" if sys.platform == "linux" else "ThreadReceiveStream"
        assert process.finish() == (0, [], f"{expected} ThreadSendStream False")
