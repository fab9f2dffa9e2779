"""What the benchmarks share: a server process that never hangs them, answers that are checked."""

import functools
import math
import os
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from io import FileIO
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Any, Final, Self

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

ROOT: Final = Path(__file__).resolve().parent.parent
HAS_PROC: Final = Path("/proc/self/status").exists()
WATCHDOG_SECONDS: Final = 60.0
READ_SIZE: Final = 256 * 1024

INITIALIZE: Final = (
    b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},'
    b'"clientInfo":{"name":"bench","version":"1"}}}\n'
)
INITIALIZED: Final = b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n'


class BenchError(Exception):
    """Something could not be measured. The message is for a person."""


class Answer(Struct, gc=False):
    id: int | str | None = None
    result: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET


decode_answers = msgspec.json.Decoder(Answer).decode_lines


class Kind(Struct, frozen=True):
    """Requests that differ only in their number: methods taken in turn, ids as long as wanted."""

    name: str
    methods: tuple[bytes, ...]
    id_padding: int = 0
    params: Callable[[int], bytes] | None = None

    def request_id(self, number: int) -> int | str:
        return f"{number}-{'x' * self.id_padding}" if self.id_padding else number

    def lines(self, numbers: range) -> bytes:
        encode = msgspec.json.Encoder().encode
        methods, params = self.methods, self.params
        named = ((encode(self.request_id(n)), methods[n % len(methods)], _member(params, n)) for n in numbers)
        return b"".join(b'{"jsonrpc":"2.0","id":%b,"method":"%b"%b}\n' % each for each in named)


def _member(params: Callable[[int], bytes] | None, number: int) -> bytes:
    return b"" if params is None else b',"params":%b' % params(number)


def call(name: str, arguments: Callable[[int], Mapping[str, Any]] = lambda number: {}) -> Kind:
    """Calls of a tool, whose arguments may depend on their number."""

    def params(number: int) -> bytes:
        return msgspec.json.encode({"name": name, "arguments": arguments(number)})

    return Kind(name, (b"tools/call",), params=params)


PING: Final = Kind("pings", (b"ping",))
TOOLS_LIST: Final = Kind("tools/list", (b"tools/list",))
lines_of = functools.cache(Kind.lines)


def trouble_with(answers: bytes, kind: Kind, numbers: range) -> str | None:
    """None if there is exactly one answer to each request and none is an error; else what is wrong."""
    try:
        decoded = decode_answers(answers)
    except msgspec.MsgspecError as error:
        return f"an answer is no JSON-RPC: {error}"
    for answer in decoded:
        if answer.error is not UNSET:
            return f"an answer is an error: {bytes(answer.error).decode()[:200]}"
        if answer.result is UNSET:
            return "an answer has no result"
        if b'"isError":true' in bytes(answer.result):
            return f"a tool refused: {bytes(answer.result).decode()[:200]}"
    expected = {kind.request_id(n) for n in numbers}
    if {answer.id for answer in decoded} != expected or len(decoded) != len(expected):
        return f"{len(decoded):,} answers to {len(expected):,} requests, not one for each"
    return None


class Exchanged(Struct, frozen=True):
    seconds: float
    """Until the last answer was there."""
    answer_bytes: float
    """On average."""


class _Room:
    """Where answers are read to, again and again. What is made before the clock starts costs no time of the reader:
    touching fresh memory can take longer than the server takes to answer."""

    def __init__(self) -> None:
        self._bytes = bytearray()
        self._end = 0

    def make(self, size: int) -> None:
        if size > len(self._bytes):
            self._bytes = bytearray(b"-") * size

    def fill(self, stream: FileIO, lines: int) -> bool:
        """Read so many lines; False if the stream ends before."""
        self._end = 0
        while lines > 0:
            if len(self._bytes) - self._end < READ_SIZE:
                self._bytes += bytes(len(self._bytes) + READ_SIZE)
            with memoryview(self._bytes) as view, view[self._end : self._end + READ_SIZE] as free:
                size = stream.readinto(free)
            if not size:
                return False
            lines -= self._bytes.count(b"\n", self._end, self._end + size)
            self._end += size
        return True

    def read(self) -> bytes:
        """What it was last filled with."""
        return bytes(memoryview(self._bytes)[: self._end])


_room: Final = _Room()


def _inherited() -> dict[str, str]:
    """Installed packages come compiled; a server of this tree must be allowed to keep what it compiled, as they did."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


class Child:
    """A process with pipes, killed after `WATCHDOG_SECONDS`: nothing that waits for it waits forever."""

    def __init__(
        self,
        name: str,
        arguments: Sequence[str],
        *,
        program: str = sys.executable,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._name = name
        self._expired = False
        self._begin = time.perf_counter()
        self._process = Popen(
            [program, *arguments],
            bufsize=0,
            stdin=PIPE,
            stdout=PIPE,
            cwd=ROOT,
            env={**_inherited(), **(environment or {})},
            process_group=0,  # a Ctrl-C is for this script, which ends what it started
        )
        assert self._process.stdin is not None
        assert isinstance(self._process.stdout, FileIO)  # without a buffer
        self.stdin, self._output = self._process.stdin, self._process.stdout
        self._writer: threading.Thread | None = None
        self._watchdog = threading.Timer(WATCHDOG_SECONDS, self._expire)
        self._watchdog.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._watchdog.cancel()
        if self._writer is not None:
            self._writer.join()  # nobody reads any more what it writes; and only then may its pipe be closed
        self._process.__exit__(None, None, None)

    def _expire(self) -> None:
        self._expired = True
        self._process.kill()

    def failure(self, what: str) -> BenchError:
        if self._expired:
            what = f"was not done after {WATCHDOG_SECONDS:.0f} s and was killed"
        return BenchError(f"{self._name} {what}")

    def handshake(self) -> float:
        """Initialize the session. Returns the seconds from the start of the process to its answer."""
        self.write(INITIALIZE)
        took = self.first_line()
        self.check(_room.read(), PING, range(1))
        self.write(INITIALIZED)
        return took

    def first_line(self) -> float:
        """Wait for it. Returns the seconds from the start of the process until it was there."""
        self._wait_for(1)
        return time.perf_counter() - self._begin

    def exchange(self, kind: Kind, numbers: range, *, answer_bytes: float = 0.0) -> Exchanged:
        """Write all requests while reading the answers, which are expected to be so long on average."""
        requests = lines_of(kind, numbers)
        _room.make(int(len(numbers) * answer_bytes * 1.1) + READ_SIZE)
        begin = time.perf_counter()
        writer = self.start_writing(requests)
        self._wait_for(len(numbers))
        took = time.perf_counter() - begin
        writer.join()
        answers = _room.read()
        self.check(answers, kind, numbers)
        return Exchanged(took, len(answers) / len(numbers))

    def exchange_singly(self, kind: Kind, numbers: range) -> list[float]:
        """Write each request once the one before is answered. Returns the seconds that each took, sorted."""
        answers: list[bytes] = []
        times: list[float] = []
        for request in lines_of(kind, numbers).splitlines(keepends=True):
            begin = time.perf_counter()
            self.write(request)
            answer = self.read_lines(1)
            times.append(time.perf_counter() - begin)
            answers.append(answer)
        self.check(b"".join(answers), kind, numbers)
        return sorted(times)

    def check(self, answers: bytes, kind: Kind, numbers: range) -> None:
        if trouble := trouble_with(answers, kind, numbers):
            raise self.failure(f"answered wrongly ({kind.name}): {trouble}")

    def write(self, requests: bytes | memoryview, *, last: bool = False) -> None:
        """Write all of it, and if it is the last, close the pipe. If the process has gone, the reader will notice."""
        rest = memoryview(requests)
        try:
            while rest:
                rest = rest[os.write(self.stdin.fileno(), rest) :]
        except BrokenPipeError:
            pass
        if last:
            self.stdin.close()

    def start_writing(self, requests: bytes | memoryview, *, last: bool = False) -> threading.Thread:
        """Write while this thread reads."""
        self._writer = threading.Thread(target=self.write, args=[requests], kwargs={"last": last}, daemon=True)
        self._writer.start()
        return self._writer

    def read_lines(self, count: int) -> bytes:
        self._wait_for(count)
        return _room.read()

    def _wait_for(self, answers: int) -> None:
        if not _room.fill(self._output, answers):
            raise self.failure(f"ended with some of {answers:,} answers missing")

    def read_to_end(self) -> bytes:
        return self._output.readall()

    def finish(self) -> None:
        """Close the input and wait for a good end."""
        self.stdin.close()
        if code := self._process.wait():
            raise self.failure(f"ended with exit code {code}")

    def memory_mb(self) -> float:
        """Resident memory; NaN where there is no /proc to tell it."""
        if not HAS_PROC:
            return math.nan
        found = Path(f"/proc/{self._process.pid}/status").read_text().partition("VmRSS:")[2].split()
        if not found:
            raise self.failure("ended early")
        return int(found[0]) * 1024 / 1e6

    def cpu_seconds(self) -> float:
        """User and system time so far; NaN where there is no /proc to tell it."""
        if not HAS_PROC:
            return math.nan
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
