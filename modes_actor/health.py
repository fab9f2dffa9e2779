"""Does a server answer, and how fast? One probe: start it, open a conversation, ping, list its tools, end it.

Promises: a probe ends, whatever the server does, a bounded time after the step that was not answered; what goes wrong
is told in the report, not raised; nothing that the probe started runs on, also if it is cancelled. `examine` is the
same for a server that somebody else started.
"""

import math
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, Literal

import trio
from msgspec import Struct, structs

from modes_actor.client import CallFailed, Client, ServerDescription, ServerError, ServerGone

Era = Literal["handshake", "stateless"]
StepName = Literal["start", "open", "ping", "tools"]

TIMEOUT: Final = 5.0
"""Seconds that each step may take."""
GRACE: Final = 1.0
"""Seconds that a server gets to end once its input has, and then once it was told to."""
KEPT_BYTES: Final = 16 * 1024
"""How much of the end of what a server writes to stderr is kept."""
KEPT_LINES: Final = 20


class Step(Struct, frozen=True):
    name: StepName
    method: str | None
    """What was asked; None for the start."""
    seconds: float
    error: str | None = None
    """Why it failed, as a sentence without its full stop."""


class Identity(Struct, frozen=True):
    """Who answered."""

    name: str
    version: str
    protocol_version: str


class Report(Struct, frozen=True, kw_only=True):
    """What became of a probe: the steps that were taken, of which only the last can have failed."""

    era: Era
    """The one that was spoken, or tried, last."""
    healthy: bool
    fell_back: bool = False
    """The server has no use for `server/discover`, so it was asked to `initialize`."""
    steps: tuple[Step, ...]
    server: Identity | None = None
    tools: int | None = None
    """How many; None if the server offers none, or it did not come to that."""
    stderr: tuple[str, ...] = ()
    """The last lines that a server wrote which failed."""


async def probe(
    command: Sequence[str],
    *,
    era: Era = "handshake",
    step_timeout: float = TIMEOUT,
    grace: float = GRACE,
    environment: Mapping[str, str] | None = None,
    working_directory: Path | None = None,
    falls_back: bool = False,
) -> Report:
    """Start a server and examine it. `environment` is all that the server gets; None: this process's own.

    With `falls_back`, a server that has no use for `server/discover` is started once more and asked to `initialize`.
    """
    examination = _Examination(era, step_timeout, grace)
    report = await _probe_once(command, examination, environment, working_directory)
    if not (examination.refused and era == "stateless" and falls_back):
        return report
    examination = _Examination("handshake", step_timeout, grace)
    report = await _probe_once(command, examination, environment, working_directory)
    return structs.replace(report, fell_back=True)


async def examine(
    receive: trio.abc.ReceiveStream,
    send: trio.abc.SendStream,
    *,
    era: Era = "handshake",
    step_timeout: float = TIMEOUT,
    grace: float = GRACE,
) -> Report:
    """Open a conversation over a pair of streams, which it closes, and see whether all is answered in time."""
    examination = _Examination(era, step_timeout, grace)
    await examination.run(receive, send, None)
    return examination.report()


class _Examination:
    """The steps one after the other, each with its own deadline."""

    def __init__(self, era: Era, timeout: float, grace: float) -> None:
        self._era: Era = era
        self._timeout = timeout
        self.grace = grace
        self._scope = trio.CancelScope()
        self._steps: list[Step] = []
        self._current: tuple[StepName, str | None] | None = None
        self._since = 0.0
        self._server: ServerDescription | None = None
        self._tools: int | None = None
        self.refused = False
        """The server is there, but does not open a conversation of this era."""

    def report(self, stderr: Sequence[str] = ()) -> Report:
        said = self._server
        failed = any(step.error is not None for step in self._steps)
        return Report(
            era=self._era,
            healthy=not failed,
            steps=tuple(self._steps),
            server=None if said is None else Identity(said.name, said.version, said.protocol_version),
            tools=self._tools,
            stderr=tuple(stderr) if failed else (),
        )

    def begin(self, name: StepName, method: str | None = None) -> None:
        """The step before, if there was one, is done."""
        self.end()
        self._current = (name, method)
        self._since = trio.current_time()
        if method is not None:  # the start cannot be hurried: a process is there or not
            self._scope.deadline = self._since + self._timeout

    def end(self, error: str | None = None) -> None:
        if self._current is not None:
            seconds = round(trio.current_time() - self._since, 6)
            self._steps.append(Step(*self._current, seconds, error))
            self._current = None

    async def run(
        self, receive: trio.abc.ReceiveStream, send: trio.abc.SendStream, process: trio.Process | None
    ) -> None:
        opening, ping = ("initialize", "ping") if self._era == "handshake" else ("server/discover",) * 2
        client = Client(era=self._era, patience=self.grace)
        with self._scope:
            try:
                self.begin("open", opening)
                async with client.talking(receive, send, process):
                    self._server = client.server
                    self.begin("ping", ping)
                    await client.ping()
                    if client.server.capabilities.tools is not None:
                        self.begin("tools", "tools/list")
                        self._tools = len(await client.list_tools())
                    self.end()
                    self._scope.deadline = math.inf  # it is only being left, which takes its own bounded time
            except CallFailed as error:
                self.refused = self._server is None and isinstance(error, ServerError | ServerGone)
                self.end(f"the server said no: {error}" if isinstance(error, ServerError) else _sentence(error))
        if self._scope.cancelled_caught:
            method = self._current and self._current[1]
            self.end(f"{method} was not answered within {self._timeout:g} s")


async def _probe_once(
    command: Sequence[str],
    examination: _Examination,
    environment: Mapping[str, str] | None,
    working_directory: Path | None,
) -> Report:
    examination.begin("start")
    try:
        process = await trio.lowlevel.open_process(
            list(command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
            cwd=working_directory,
            # A group of its own, so that what a wrapper (`npx`, `uvx`, a shell) started can be ended with it.
            start_new_session=True,
        )
    except OSError as error:
        examination.end(f"cannot be started: {error.strerror or error}: {error.filename or command[0]}")
        return examination.report()
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    last_words = _LastWords()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(last_words.read, process.stderr)
        try:
            await examination.run(process.stdout, process.stdin, process)
        finally:
            with trio.CancelScope(shield=True):
                await _see_out(process, examination.grace)
                # Not without a limit: what has left the group may hold the pipe open.
                with trio.move_on_after(examination.grace):
                    await last_words.complete.wait()
            nursery.cancel_scope.cancel()
    return examination.report(last_words.lines())


class _LastWords:
    """The end of what a server writes to stderr, which is read all the time, so that it never waits for a reader."""

    def __init__(self) -> None:
        self._kept = bytearray()
        self.complete = trio.Event()

    async def read(self, stream: trio.abc.ReceiveStream) -> None:
        try:
            async with stream:
                async for chunk in stream:
                    self._kept += chunk
                    del self._kept[:-KEPT_BYTES]
        except trio.BrokenResourceError:
            pass  # what it said before is here
        finally:
            self.complete.set()

    def lines(self) -> list[str]:
        lines = self._kept.decode(errors="replace").splitlines()
        return [line.rstrip() for line in lines if line.strip()][-KEPT_LINES:]


async def _see_out(process: trio.Process, grace: float) -> None:
    """Its input has ended. What has not ended after a while is told to, and then made to."""
    for politely in (True, False):
        with trio.move_on_after(grace):
            await process.wait()
            break
        end_group(process, politely=politely)
    await process.wait()
    end_group(process, politely=False)  # what it left behind


def end_group(process: trio.Process, *, politely: bool) -> None:
    """End a process that was started in a session of its own, and all that it has started."""
    if sys.platform == "win32":
        process.terminate()  # there are no groups, and no politeness
        return
    try:
        os.killpg(process.pid, signal.SIGTERM if politely else signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass  # nobody is left, or nobody that is ours


def _sentence(error: CallFailed) -> str:
    text = str(error)
    return text[:1].lower() + text[1:]
