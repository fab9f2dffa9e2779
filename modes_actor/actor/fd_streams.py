"""Trio streams over file descriptors that were handed to us: pipes, sockets, and anything else through threads.

All keep Trio's contract for streams. What they add: reading waits first and reads then, writing writes first and yields
then, so that a lone message is not held up by the scheduler; and no description is made non-blocking that is not ours.
"""

import operator
import os
import select
import socket
from abc import abstractmethod
from types import TracebackType
from typing import Final

import trio

DEFAULT_READ_SIZE: Final = 64 * 1024


class _OneAtATime:
    """Refuses the second of two tasks that use one end of a stream at once."""

    def __init__(self, what: str) -> None:
        self._what = what
        self.is_busy = False

    def __enter__(self) -> None:
        if self.is_busy:
            raise trio.BusyResourceError(f"another task is {self._what} this stream")
        self.is_busy = True

    def __exit__(self, *_: tuple[type[BaseException] | None, BaseException | None, TracebackType | None]) -> None:
        self.is_busy = False


class _Descriptor:
    """A file descriptor that is closed once."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._closed = False

    def _check_open(self) -> None:
        if self._closed:
            raise trio.ClosedResourceError("this stream was closed")

    async def aclose(self) -> None:
        if not self._closed:
            self._closed = True
            self._release()
        await trio.lowlevel.checkpoint()

    def _release(self) -> None:
        trio.lowlevel.notify_closing(self._fd)
        os.close(self._fd)


class _ReadyReceiveStream(_Descriptor, trio.abc.ReceiveStream):
    """Reads when the kernel says that there is something to read."""

    def __init__(self, fd: int) -> None:
        super().__init__(fd)
        self._reading = _OneAtATime("reading from")

    @abstractmethod
    def _read_now(self, max_bytes: int) -> bytes:
        """Read without waiting, or raise BlockingIOError."""

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        with self._reading:
            max_bytes = _read_size(max_bytes)
            self._check_open()
            while True:
                await trio.lowlevel.wait_readable(self._fd)
                try:
                    return self._read_now(max_bytes)
                except BlockingIOError:
                    continue
                except OSError as error:
                    self._check_open()
                    raise trio.BrokenResourceError("the other end broke off") from error


class _ReadySendStream(_Descriptor, trio.abc.SendStream):
    """Writes at once what the kernel takes, and waits for it to take the rest."""

    def __init__(self, fd: int) -> None:
        super().__init__(fd)
        self._writing = _OneAtATime("writing to")

    @abstractmethod
    def _write_now(self, data: memoryview) -> int:
        """Write without waiting, or raise BlockingIOError."""

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        with self._writing, memoryview(data) as view:
            self._check_open()
            await trio.lowlevel.checkpoint_if_cancelled()
            sent = 0
            while sent < len(view):
                try:
                    with view[sent:] as rest:
                        sent += self._write_now(rest)
                except BlockingIOError:
                    await trio.lowlevel.wait_writable(self._fd)
                except OSError as error:
                    self._check_open()
                    raise trio.BrokenResourceError("the other end is closed") from error
            # All is written: yield, but not in a way that makes the caller believe it was not.
            await trio.lowlevel.cancel_shielded_checkpoint()

    async def wait_send_all_might_not_block(self) -> None:
        with self._writing:
            self._check_open()
            await trio.lowlevel.wait_writable(self._fd)


class PipeReceiveStream(_ReadyReceiveStream):
    """Over a non-blocking description of a pipe that nobody else holds."""

    def _read_now(self, max_bytes: int) -> bytes:
        return os.read(self._fd, max_bytes)


class PipeSendStream(_ReadySendStream):
    """Over a non-blocking description of a pipe that nobody else holds."""

    def _write_now(self, data: memoryview) -> int:
        return os.write(self._fd, data)

    def write_whole(self, data: bytes | bytearray) -> bool:
        """Write all of it now, or nothing: POSIX promises that of what is no longer than PIPE_BUF. Never raises."""
        if self._closed or self._writing.is_busy or len(data) > select.PIPE_BUF:
            return False
        try:
            os.write(self._fd, data)
        except OSError:  # full, or broken, which `send_all` will tell
            return False
        return True


class SocketReceiveStream(_ReadyReceiveStream):
    """Over a socket whose description others may share: each call says for itself that it will not wait."""

    def __init__(self, fd: int) -> None:
        super().__init__(fd)
        self._socket = socket.socket(fileno=fd)

    def _read_now(self, max_bytes: int) -> bytes:
        return self._socket.recv(max_bytes, socket.MSG_DONTWAIT)

    def _release(self) -> None:
        trio.lowlevel.notify_closing(self._fd)
        self._socket.close()


class SocketSendStream(_ReadySendStream):
    """Over a socket whose description others may share: each call says for itself that it will not wait."""

    def __init__(self, fd: int) -> None:
        super().__init__(fd)
        self._socket = socket.socket(fileno=fd)

    def _write_now(self, data: memoryview) -> int:
        return self._socket.send(data, socket.MSG_DONTWAIT)

    def _release(self) -> None:
        trio.lowlevel.notify_closing(self._fd)
        self._socket.close()


class _ThreadDescriptor(_Descriptor):
    def _release(self) -> None:
        """Never close it: a thread may still be inside a read, and the number would be reused under it."""


class ThreadReceiveStream(_ThreadDescriptor, trio.abc.ReceiveStream):
    """Reads in a thread: regular files, terminals, null devices, and all of Windows."""

    def __init__(self, fd: int) -> None:
        super().__init__(fd)
        self._reading = _OneAtATime("reading from")

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        with self._reading:
            self._check_open()
            try:
                return await trio.to_thread.run_sync(_read, self._fd, _read_size(max_bytes), abandon_on_cancel=True)
            except OSError as error:
                raise trio.BrokenResourceError("the other end broke off") from error


class ThreadSendStream(_ThreadDescriptor, trio.abc.SendStream):
    """Writes in a thread: regular files, terminals, null devices, and all of Windows."""

    def __init__(self, fd: int) -> None:
        super().__init__(fd)
        self._writing = _OneAtATime("writing to")

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        with self._writing:
            self._check_open()
            # The thread may outlive a cancelled call, and the caller's buffer may not: give it its own.
            rest = bytes(data)
            while True:
                try:
                    sent = await trio.to_thread.run_sync(_write, self._fd, rest, abandon_on_cancel=True)
                except OSError as error:
                    raise trio.BrokenResourceError("the other end is closed") from error
                rest = rest[sent:]
                if not rest:
                    return

    async def wait_send_all_might_not_block(self) -> None:
        with self._writing:
            self._check_open()
            await trio.lowlevel.checkpoint()


# For threads. Somebody else may have made the description non-blocking; then waiting is left to `select`.


def _read(fd: int, max_bytes: int) -> bytes:
    while True:
        try:
            return os.read(fd, max_bytes)
        except BlockingIOError:
            select.select([fd], [], [])


def _write(fd: int, data: bytes) -> int:
    while True:
        try:
            return os.write(fd, data)
        except BlockingIOError:
            select.select([], [fd], [])


def _read_size(max_bytes: int | None) -> int:
    if max_bytes is None:
        return DEFAULT_READ_SIZE
    if operator.index(max_bytes) < 1:  # a TypeError now, for what the kernel would refuse after the wait
        raise ValueError("max_bytes must be at least 1")
    return max_bytes
