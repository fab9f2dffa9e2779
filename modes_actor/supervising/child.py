"""A server as the supervisor sees it: two streams, an end, and ways to bring that about."""

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

import trio

from modes_actor.health import end_group


class CannotStart(Exception):
    """There is no such command, or it may not be run. The message is a sentence for people."""


class Child(Protocol):
    """A server that was started. Its streams are its stdin and stdout."""

    @property
    def pid(self) -> int: ...

    @property
    def returncode(self) -> int | None: ...

    @property
    def send(self) -> trio.abc.SendStream: ...

    @property
    def receive(self) -> trio.abc.ReceiveStream: ...

    async def wait(self) -> int:
        """Return once it has ended, with its exit code, or minus the number of the signal that ended it."""

    def tell(self, number: int) -> None:
        """Pass a signal on."""

    def end(self) -> None:
        """Ask it to end, also if it is stopped."""

    def kill(self) -> None:
        """End it, and whatever it has started, at once."""


class ProcessChild:
    """A process that leads a session of its own, so that what a wrapper (`npx`, `uvx`, a shell) starts ends with it."""

    def __init__(self, process: trio.Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._process = process
        self.pid = process.pid
        self.send: trio.abc.SendStream = process.stdin
        self.receive: trio.abc.ReceiveStream = process.stdout

    @property
    def returncode(self) -> int | None:
        return self._process.returncode

    async def wait(self) -> int:
        return await self._process.wait()

    def tell(self, number: int) -> None:
        if sys.platform == "win32":
            self._process.terminate()
            return
        try:
            os.killpg(self.pid, number)
        except (ProcessLookupError, PermissionError):
            pass  # nobody is left, or nobody that is ours

    def end(self) -> None:
        end_group(self._process, politely=True)
        if sys.platform != "win32":
            self.tell(signal.SIGCONT)  # one that is stopped does not notice otherwise

    def kill(self) -> None:
        end_group(self._process, politely=False)


async def start_process(
    command: Sequence[str], *, environment: Mapping[str, str] | None = None, working_directory: Path | None = None
) -> Child:
    """Start a server, whose stderr is ours. Raises `CannotStart`."""
    try:
        process = await trio.lowlevel.open_process(
            list(command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            cwd=working_directory,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:  # the latter for a null character in a word
        why = (isinstance(error, OSError) and error.strerror) or error
        raise CannotStart(f"{command[0]} cannot be started: {why}") from error
    return ProcessChild(process)
