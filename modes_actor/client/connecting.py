"""Ways to a server: over streams that are there, or as a process of its own, which is seen out at the end."""

import os
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import IO, Unpack

import trio

from modes_actor.client.conversation import Options
from modes_actor.client.failures import ServerGone
from modes_actor.client.requests import Client


@asynccontextmanager
async def connect(
    receive: trio.abc.ReceiveStream, send: trio.abc.SendStream, **options: Unpack[Options]
) -> AsyncIterator[Client]:
    """A conversation over a pair of streams, which it closes. Leaving waits a bounded time for the server's own end."""
    client = Client(**options)
    async with client.talking(receive, send):
        yield client


@asynccontextmanager
async def start_server(
    command: Sequence[str] | None = None,
    *,
    project_root: Path | str | None = None,
    environment: Mapping[str, str] | None = None,
    working_directory: Path | str | None = None,
    stderr: int | IO[bytes] | None = None,
    **options: Unpack[Options],
) -> AsyncIterator[Client]:
    """A conversation with a server of its own: this package's, or another command's.

    `environment` is added to this process's own. The child's stderr is this process's own unless a file or
    `subprocess.DEVNULL` is given. Leaving closes the child's stdin, and ends the child if that is not enough for it.
    """
    if stderr in (subprocess.PIPE, subprocess.STDOUT):
        raise ValueError("nobody reads a pipe of stderr, and stdout is taken: give a file")
    arguments = [sys.executable, "-m", "modes_actor"] if command is None else list(command)
    if project_root is not None:
        arguments += ["--project-root", str(project_root)]
    client = Client(**options)
    try:
        process = await trio.lowlevel.open_process(
            arguments,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            env={**os.environ, **(environment or {})},
            cwd=working_directory,
        )
    except OSError as error:
        raise ServerGone(f"The server could not be started: {error}") from error
    client.pid = process.pid
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        async with client.talking(process.stdout, process.stdin, process):
            yield client
    finally:
        await _see_out(process, client)


async def _see_out(process: trio.Process, client: Client) -> None:
    with trio.CancelScope(shield=True):
        with trio.CancelScope(deadline=client.leave_by):
            await process.wait()
        if process.returncode is None:
            process.terminate()
            with trio.move_on_after(client.patience):
                await process.wait()
        if process.returncode is None:
            process.kill()
            await process.wait()
