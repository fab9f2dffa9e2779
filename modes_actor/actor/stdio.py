"""The process's own stdin and stdout as a pair of Trio streams that nobody else can touch.

Promises: after `claim_stdio`, whatever prints or reads through fds 0 and 1 (a library, a child process) reaches stderr
or nothing, never the client; no file description that another process shares is ever made non-blocking; pipes,
sockets, regular files, terminals and null devices all work.

The claim lasts until the process ends: giving fd 1 back would let a late print reach the client after all.
"""

import os
import stat
import sys
from typing import NamedTuple

import trio

from modes_actor.actor.fd_streams import (
    PipeReceiveStream,
    PipeSendStream,
    SocketReceiveStream,
    SocketSendStream,
    ThreadReceiveStream,
    ThreadSendStream,
)


class StdioUnusable(Exception):
    """stdin or stdout is closed: there is nobody to talk to. The message is for a person."""


class Stdio(NamedTuple):
    receive: trio.abc.ReceiveStream
    send: trio.abc.SendStream
    is_terminal: bool


def claim_stdio() -> Stdio:
    """Take fds 0 and 1 for the client's messages alone."""
    stdin, stdout = _status(0, "stdin"), _status(1, "stdout")
    is_terminal = os.isatty(0)
    receive = _receive_stream(stdin)
    send = _send_stream(stdout)
    _divert(stdout)
    return Stdio(receive, send, is_terminal)


def _status(fd: int, name: str) -> os.stat_result:
    why = "modes-actor talks to an MCP client through stdin and stdout, so both must be open"
    try:
        status = os.fstat(fd)
    except OSError as error:
        raise StdioUnusable(f"{name} is closed: {why}") from error
    if _access(fd) == (os.O_WRONLY if fd == 0 else os.O_RDONLY):
        raise StdioUnusable(f"{name} is open the wrong way round: {why}, one for reading and one for writing")
    return status


def _access(fd: int) -> int | None:
    """Whether it was opened for reading, writing or both; None where nobody can tell."""
    if sys.platform == "win32":
        return None
    import fcntl

    return fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_ACCMODE


def _divert(stdout: os.stat_result) -> None:
    """Point fd 0 at nothing and fd 1 at stderr; where stderr is the very file of stdout, at nothing, too."""
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    try:
        stderr = os.fstat(2)
    except OSError:
        os.dup2(null, 1)
    else:
        shared = (stderr.st_dev, stderr.st_ino) == (stdout.st_dev, stdout.st_ino)
        os.dup2(null if shared else 2, 1)
        if shared and not os.isatty(2):
            # `2>&1`: log lines would end up between the messages. On a terminal a person reads both, and may.
            os.dup2(null, 2)
    if null > 2:
        os.close(null)
    if sys.stdout is not None:
        sys.stdout.flush()  # only now: what was printed before must not reach the client either


def _receive_stream(status: os.stat_result) -> trio.abc.ReceiveStream:
    if stat.S_ISFIFO(status.st_mode) and (fd := _own_description(0, os.O_RDONLY)) is not None:
        return PipeReceiveStream(fd)
    fd = _duplicate(0)
    if stat.S_ISSOCK(status.st_mode) and sys.platform != "win32":
        return SocketReceiveStream(fd)
    return ThreadReceiveStream(fd)


def _send_stream(status: os.stat_result) -> trio.abc.SendStream:
    if stat.S_ISFIFO(status.st_mode) and (fd := _own_description(1, os.O_WRONLY)) is not None:
        return PipeSendStream(fd)
    fd = _duplicate(1)
    if stat.S_ISSOCK(status.st_mode) and sys.platform != "win32":
        return SocketSendStream(fd)
    return ThreadSendStream(fd)


def _own_description(fd: int, flags: int) -> int | None:
    """A non-blocking description of the same pipe that is ours alone, or None where that cannot be had.

    O_NONBLOCK on the inherited description would change it for everyone who holds it: a parent, a sibling, stderr.
    """
    if sys.platform != "linux":
        return None
    try:
        own = os.open(f"/proc/self/fd/{fd}", flags | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:  # another user's pipe, no /proc, or the other end is gone
        return None
    if _access(fd) == os.O_RDWR:
        _duplicate(fd)  # `0<>fifo`: this description is its own other end, and must stay open as long as we do
    return _above_standard(own)


def _duplicate(fd: int) -> int:
    if sys.platform == "win32":
        return os.dup(fd)
    import fcntl

    return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 3)


def _above_standard(fd: int) -> int:
    """The same description under a number that `dup2` onto the standard fds cannot hit."""
    if fd > 2:
        return fd
    moved = _duplicate(fd)
    os.close(fd)
    return moved
