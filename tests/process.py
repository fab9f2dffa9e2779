"""The server as a process of its own: starts it, talks lines of JSON with it, and never waits for it forever.

The lower half runs in the child: an offer whose tools do what a client must not notice.
"""

import atexit
import functools
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Any, NamedTuple, NoReturn

import msgspec
import trio

from modes_actor.actor.context import RequestContext
from modes_actor.actor.limits import Limits
from modes_actor.surface.offer import Offer, OfferedTool
from modes_actor.wire.base import Implementation
from modes_actor.wire.client_features import ListRoots, ListRootsResult
from modes_actor.wire.errors import Unavailable
from modes_actor.wire.tools import CallToolResult
from tests.conversation import CLIENT_INFO, Json
from tests.sample_offer import NoArguments, text, tool

ROOT = Path(__file__).resolve().parent.parent

COMMAND = (sys.executable, "-m", "modes_actor")

PATIENCE = 30.0
"""Seconds after which a child counts as hung. No test depends on it: a good one is done long before."""

NEVER = PATIENCE * 10
"""For a child's own deadlines, where a test is about something else."""


def program(source: str) -> tuple[str, ...]:
    """The command that runs this text."""
    return (sys.executable, "-c", source)


def offering(**limits: float) -> tuple[str, ...]:
    """The command that serves the offer below, with these limits."""
    return program(f"from tests.process import serve_offer; serve_offer(**{limits!r})")


# What a client says.


def request(request_id: int | str, method: str, params: Json | None = None) -> Json:
    message: Json = {"jsonrpc": "2.0", "id": request_id, "method": method}
    return message if params is None else {**message, "params": params}


def ping(request_id: int | str) -> Json:
    return request(request_id, "ping")


def call(request_id: int | str, name: str) -> Json:
    return request(request_id, "tools/call", {"name": name})


def handshake(request_id: int | str = "handshake") -> Json:
    return request(
        request_id,
        "initialize",
        {"protocolVersion": "2025-11-25", "capabilities": {"roots": {}}, "clientInfo": CLIENT_INFO},
    )


def answer(request_id: int | str, **result: Any) -> Json:
    """What a request is answered with; a ping's result has nothing in it."""
    return {"jsonrpc": "2.0", "id": request_id, "result": result}


def said(request_id: int | str, words: str) -> Json:
    """The answer of a tool below."""
    return answer(request_id, content=[{"type": "text", "text": words}], structuredContent={"said": words})


def lines(*messages: Json) -> bytes:
    return b"".join(msgspec.json.encode(message) + b"\n" for message in messages)


def messages_in(output: bytes) -> list[Any]:
    """The messages of an output that must consist of nothing else, the last one whole."""
    assert output.endswith(b"\n") or not output, f"the output ends in the middle of a line: {output[-80:]!r}"
    return [msgspec.json.decode(line) for line in output.splitlines()]


class Wire:
    """A client's ends of the connection, by file descriptor; a socket or a terminal has the same one for both."""

    def __init__(self, *, reads: int, writes: int) -> None:
        self._reads = reads
        self._writes = writes
        self._received = bytearray()

    def send(self, *messages: Json) -> None:
        self.send_bytes(lines(*messages))

    def send_bytes(self, data: bytes) -> None:
        while data:
            data = data[os.write(self._writes, data) :]

    def line(self) -> bytes:
        """The next line."""
        while b"\n" not in self._received:
            assert self.take_in(), f"the end came instead of a line, after {bytes(self._received)!r}"
        line, _, self._received = self._received.partition(b"\n")
        return bytes(line)

    def receive(self) -> Any:
        """The next message."""
        return msgspec.json.decode(self.line())

    def rest(self) -> bytes:
        """Everything until the end."""
        while self.take_in():
            pass
        return self.taken()

    def taken(self) -> bytes:
        """What was read, but not yet asked for."""
        taken, self._received = self._received, bytearray()
        return bytes(taken)

    def take_in(self) -> bytes:
        """Read once; nothing comes back at the end."""
        chunk = self._read()
        self._received += chunk
        return chunk

    def _read(self) -> bytes:
        try:
            return os.read(self._reads, 65536)
        except OSError:  # a terminal that nobody holds open any more, a socket closed in the middle of things
            return b""


@functools.cache
def _home() -> str:
    """What servers keep in a home (sessions, a log) must not end up in that of whoever runs the tests."""
    home = tempfile.mkdtemp(prefix="modes-actor-tests-")
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    return home


class Ended(NamedTuple):
    """How a process ended, and all it had left to say."""

    code: int
    messages: list[Any]
    stderr: str


class Process:
    """A child. Leaving the `with` block ends it, if it has not ended, and fails if it had to be given up."""

    def __init__(
        self,
        command: tuple[str, ...] = COMMAND,
        *,
        stdin: int = subprocess.PIPE,
        stdout: int = subprocess.PIPE,
        stderr: int = subprocess.PIPE,
        environment: Mapping[str, str] | None = None,
        new_session: bool = False,
    ) -> None:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(("ROO_", "PYTHON"))}
        self._popen = subprocess.Popen(
            command,
            bufsize=0,  # what is read is read here: no buffer knows more than `Wire`
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            cwd=ROOT,
            env={**inherited, "HOME": _home(), **(environment or {})},
            start_new_session=new_session,
        )
        self._stdin, self._popen.stdin = self._popen.stdin, None  # so that `communicate` leaves it open
        self._gave_up = False
        self._watchdog = threading.Timer(PATIENCE, self._give_up)
        self._watchdog.daemon = True
        self._watchdog.start()
        self.wire = Wire(reads=_number(self._popen.stdout), writes=_number(self._stdin))
        self._log = Wire(reads=_number(self._popen.stderr), writes=-1)
        self._logged = b""

    def __enter__(self) -> "Process":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._watchdog.cancel()
        self._watchdog.join()
        self.kill()
        for pipe in (self._stdin, self._popen.stdout, self._popen.stderr):
            if pipe is not None:
                pipe.close()
        assert not self._gave_up, f"the process hung, and was killed after {PATIENCE:g} seconds"

    @property
    def stdin(self) -> int:
        """The descriptor that feeds its stdin."""
        return _number(self._stdin)

    @property
    def stdout(self) -> int:
        """The descriptor that its stdout comes out of."""
        return _number(self._popen.stdout)

    def send(self, *messages: Json) -> None:
        self.wire.send(*messages)

    def send_bytes(self, data: bytes) -> None:
        self.wire.send_bytes(data)

    def receive(self) -> Any:
        return self.wire.receive()

    def await_log(self, words: str) -> None:
        """Return once a line with these words is on stderr."""
        while True:
            line = self._log.line()
            self._logged += line + b"\n"
            if words in line.decode():
                return

    def end_input(self) -> None:
        assert self._stdin is not None
        self._stdin.close()

    def stop_reading(self) -> None:
        """Close the client's end of stdout."""
        assert self._popen.stdout is not None
        self._popen.stdout.close()
        self._popen.stdout = None

    def stop_reading_log(self) -> None:
        """Close the client's end of stderr."""
        assert self._popen.stderr is not None
        self._popen.stderr.close()
        self._popen.stderr = None

    def signal(self, number: int) -> None:
        self._popen.send_signal(number)

    def kill(self) -> None:
        if self._popen.poll() is None:
            self._popen.kill()
        self._popen.wait()

    def wait(self) -> int:
        """Wait until it ends by itself, without reading a word; return the code."""
        code = self._popen.wait()
        assert not self._gave_up, "the process hung"
        return code

    def finish(self) -> Ended:
        """Wait until it ends by itself, and read all it says."""
        output, log = self._popen.communicate()
        output = self.wire.taken() + (output or b"")
        log = self._logged + self._log.taken() + (log or b"")
        assert not self._gave_up, f"the process hung; its log: {log!r}, the end of its output: {output[-200:]!r}"
        return Ended(self._popen.returncode, messages_in(output), log.decode())

    def finish_input(self, *messages: Json) -> Ended:
        """Say this last, close stdin, and wait until the process has ended."""
        self.send(*messages)
        self.end_input()
        return self.finish()

    def _give_up(self) -> None:
        self._gave_up = True
        self._popen.kill()


def _number(pipe: IO[bytes] | None) -> int:
    return -1 if pipe is None else pipe.fileno()


# The child's side.


def serve_offer(**limits: Any) -> NoReturn:
    """Do all that the command does, but serve the tools of this module."""
    import modes_actor.cli.serve as serving
    from modes_actor.cli import main

    replaced: dict[str, Callable[..., Any]] = {
        "modes_offer": lambda config: _offer(Implementation(config.server.name, config.server.version)),
        "Limits": lambda *, line_bytes: Limits(line_bytes=line_bytes, **limits),
    }
    assert replaced.keys() <= vars(serving).keys(), "the command makes its offer elsewhere now"
    vars(serving).update(replaced)
    sys.exit(main([]))


def _offer(info: Implementation) -> Offer:
    return Offer(
        info=info,
        tools=lambda: [
            OfferedTool(tool("stay"), NoArguments, _stay),
            OfferedTool(tool("see_out"), NoArguments, _see_out),
            OfferedTool(tool("chatter"), NoArguments, _chatter),
        ],
    )


async def _stay(arguments: NoArguments, context: RequestContext) -> CallToolResult:
    """Say that it has begun, and never end."""
    await context.log("error", "staying")
    await trio.sleep_forever()
    raise AssertionError("forever is over")


async def _see_out(arguments: NoArguments, context: RequestContext) -> CallToolResult:
    """Work on past the end of the input, which shows in that the client cannot be asked any more."""
    try:
        await context.ask("roots", ListRoots(), ListRootsResult, within=NEVER)
    except Unavailable:
        for _ in range(10):
            await trio.lowlevel.checkpoint()
        return text("saw the input end")
    return text("the client answered")


def _chatter(arguments: NoArguments, context: RequestContext) -> CallToolResult:
    """Write to stdout in every way there is, and try to read the client's words."""
    print("stray print", flush=True)  # noqa: T201
    sys.stdout.write("stray buffer")  # left to be flushed when the process ends
    os.write(1, b"stray write\n")
    subprocess.run(["echo", "stray child"], check=True)
    heard = subprocess.run(["cat"], check=True, capture_output=True).stdout
    read = sys.stdin.read()
    try:
        typed = input()
    except (EOFError, RuntimeError):  # the latter where there is no stderr: `input` insists on one
        typed = "nothing"
    return text(f"heard {heard!r}, read {read!r}, typed {typed}")
