#!/usr/bin/env python3
"""How fast the server is beside the official Python SDK's and a bare loop, and whether it meets its targets.

    .venv/bin/python scripts/bench.py [--rounds N] [--quick] [--json | --markdown]

Each server is a real process behind real pipes. A round runs every server once, so that a busy machine is busy for all
of them. Throughput, pipelined CPU and start-up are the best of all rounds, what single pings take is the median, memory
the largest. Every answer is decoded and matched with its request, outside of the time that is measured.

Processes are not pinned. A single ping to the bare loop is mostly the wake-up of two processes, and what that costs
depends on where the scheduler puts them and on how the machine idles: on identical code its ratio can differ several
times over, from run to run even more than from round to round. One run does not settle that target, met or missed.

Exit code: 0 if no target is missed, 1 if one is, 2 if a server failed. MB are 10^6 bytes.
"""

import argparse
import functools
import math
import os
import select
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median
from subprocess import PIPE, Popen
from typing import Annotated, Final, Self, get_type_hints

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

ROOT: Final = Path(__file__).resolve().parent.parent
HAS_PROC: Final = Path("/proc/self/status").exists()
WATCHDOG_SECONDS: Final = 60.0
READ_SIZE: Final = 1024 * 1024
FLOOD_BYTES: Final = 256 * 1024 * 1024

SDK_PROGRAM: Final = """
import sys, anyio, mcp_types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
tools = mcp_types.ListToolsResult.model_validate_json(sys.argv[1])
async def list_tools(context, params):
    return tools
async def main():
    server = Server("sdk", on_list_tools=list_tools)
    async with stdio_server() as (receive, send):
        await server.run(receive, send, server.create_initialization_options())
anyio.run(main)
"""

LOOP_PROGRAM: Final = """
import sys, msgspec
class Request(msgspec.Struct):
    method: str
    id: int | str | None = None
class Response(msgspec.Struct, tag_field="jsonrpc", tag="2.0"):
    id: int | str
    result: dict[str, str]
decode, encode = msgspec.json.Decoder(Request).decode, msgspec.json.Encoder().encode
write, flush = sys.stdout.buffer.write, sys.stdout.buffer.flush
for line in sys.stdin.buffer:
    request = decode(line)
    if request.id is not None:
        write(encode(Response(request.id, {})) + b"\\n")
        flush()
"""

OURS: Final = ["-m", "modes_actor"]
SDK: Final = ["-c", SDK_PROGRAM]
LOOP: Final = ["-c", LOOP_PROGRAM]

INITIALIZE: Final = (
    b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},'
    b'"clientInfo":{"name":"bench","version":"1"}}}\n'
)
INITIALIZED: Final = b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n'


class BenchError(Exception):
    """Something could not be measured. The message is for a person."""


class Contender(Struct, frozen=True):
    """A server to measure, and with how many requests: the SDK would take minutes for what the others get."""

    name: str
    arguments: list[str]
    pings: int
    single_pings: int
    lists: int = 0


class Metric(Struct, frozen=True):
    """How a measurement is called, and which of several rounds counts."""

    label: str
    choose: Callable[[list[float]], float]
    form: str = ",.0f"


class Measured(Struct, frozen=True):
    """One contender, in one round or in all of them. NaN (in JSON: null) where there was nothing to measure."""

    pings_per_second: Annotated[float, Metric("pings per second, pipelined", max)]
    ping_cpu_microseconds: Annotated[float, Metric("CPU per ping, pipelined, µs", min, ".1f")]
    lists_per_second: Annotated[float, Metric("tools/list per second, pipelined", max)]
    p50_microseconds: Annotated[float, Metric("one ping at a time, p50, µs", median)]
    p99_microseconds: Annotated[float, Metric("one ping at a time, p99, µs", median)]
    single_cpu_microseconds: Annotated[float, Metric("one ping at a time, CPU, µs", median)]
    start_up_ms: Annotated[float, Metric("process start to first answer, ms", min)]
    memory_mb: Annotated[float, Metric("memory after the pings, MB", max, ".1f")]


METRICS: Final[list[Metric]] = [hint.__metadata__[0] for hint in get_type_hints(Measured, include_extras=True).values()]


class Flood(Struct, frozen=True):
    """What came of writing one kind of request without reading. `trouble`: what was wrong with the answers, later."""

    requests: str
    taken_mb: float
    memory_growth_mb: float
    answers: int
    trouble: str | None


class Verdict(Struct, frozen=True):
    """Whether a target is met; None where that cannot be measured."""

    target: str
    found: str
    met: bool | None


class Report(Struct, frozen=True):
    ours: Measured
    sdk: Measured
    loop: Measured
    p50_ratios: list[float]
    """The bare loop's p50 over ours, round by round."""
    imports_ms: float
    """`python -c "import trio, msgspec"`, from its start to its exit."""
    floods: list[Flood]
    verdicts: list[Verdict]


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

    def request_id(self, number: int) -> int | str:
        return f"{number}-{'x' * self.id_padding}" if self.id_padding else number

    def lines(self, numbers: range) -> bytes:
        encode = msgspec.json.Encoder().encode
        named = ((encode(self.request_id(n)), self.methods[n % len(self.methods)]) for n in numbers)
        return b"".join(b'{"jsonrpc":"2.0","id":%b,"method":"%b"}\n' % each for each in named)


PING: Final = Kind("pings", (b"ping",))
TOOLS_LIST: Final = Kind("tools/list", (b"tools/list",))
FLOODS: Final = (
    PING,
    Kind("lists of tools and resources", (b"tools/list", b"resources/list")),
    Kind("pings with ids of 100 KB", (b"ping",), id_padding=100_000),
)

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
    expected = {kind.request_id(n) for n in numbers}
    if {answer.id for answer in decoded} != expected or len(decoded) != len(expected):
        return f"{len(decoded):,} answers to {len(expected):,} requests, not one for each"
    return None


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
            env={**os.environ, **(environment or {})},
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self.stdin, self._output = self._process.stdin, self._process.stdout.fileno()
        self._watchdog = threading.Timer(WATCHDOG_SECONDS, self._expire)
        self._watchdog.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._watchdog.cancel()
        self._process.kill()
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
        answer = self.read_lines(1)
        took = time.perf_counter() - self._begin
        self.check(answer, PING, range(1))
        self.write(INITIALIZED)
        return took

    def exchange(self, kind: Kind, numbers: range) -> float:
        """Write all requests while reading the answers. Returns the seconds until the last was there."""
        writer = threading.Thread(target=self.write, args=[lines_of(kind, numbers)], daemon=True)
        begin = time.perf_counter()
        writer.start()
        answers = self.read_lines(len(numbers))
        took = time.perf_counter() - begin
        writer.join()
        self.check(answers, kind, numbers)
        return took

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

    def read_lines(self, count: int) -> bytes:
        chunks: list[bytes] = []
        while count > 0:
            chunk = os.read(self._output, READ_SIZE)
            if not chunk:
                raise self.failure(f"ended with {count:,} answers missing")
            count -= chunk.count(b"\n")
            chunks.append(chunk)
        return b"".join(chunks)

    def read_to_end(self) -> bytes:
        return b"".join(iter(lambda: os.read(self._output, READ_SIZE), b""))

    def finish(self) -> float:
        """Close the input and wait for a good end. Returns the seconds from start to end."""
        self.stdin.close()
        if code := self._process.wait():
            raise self.failure(f"ended with exit code {code}")
        return time.perf_counter() - self._begin

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


def measure(contender: Contender) -> Measured:
    """One session: handshake, warm-up, single pings, pipelined pings, lists."""
    with Child(contender.name, contender.arguments) as child:
        start_up = child.handshake()
        child.exchange(PING, range(1, 201))
        cpu = [child.cpu_seconds()]
        times = child.exchange_singly(PING, range(1_000, 1_000 + contender.single_pings))
        cpu.append(child.cpu_seconds())
        took = child.exchange(PING, range(1_000_000, 1_000_000 + contender.pings))
        cpu.append(child.cpu_seconds())
        memory = child.memory_mb()
        lists = range(2_000_000, 2_000_000 + contender.lists)
        list_seconds = child.exchange(TOOLS_LIST, lists) if lists else math.nan
        child.finish()
    return Measured(
        pings_per_second=contender.pings / took,
        ping_cpu_microseconds=(cpu[2] - cpu[1]) / contender.pings * 1e6,
        lists_per_second=contender.lists / list_seconds,
        p50_microseconds=times[len(times) // 2] * 1e6,
        p99_microseconds=times[len(times) * 99 // 100] * 1e6,
        single_cpu_microseconds=(cpu[1] - cpu[0]) / contender.single_pings * 1e6,
        start_up_ms=start_up * 1e3,
        memory_mb=memory,
    )


def combine(rounds: Sequence[Measured]) -> Measured:
    columns = zip(*map(msgspec.structs.astuple, rounds), strict=True)
    return Measured(*(metric.choose(list(column)) for metric, column in zip(METRICS, columns, strict=True)))


def start_up_seconds() -> float:
    with Child("modes-actor", OURS) as child:
        took = child.handshake()
        child.finish()
    return took


def import_seconds() -> float:
    with Child("the import of trio and msgspec", ["-c", "import trio, msgspec"]) as child:
        return child.finish()


def our_tools() -> str:
    """What our `tools/list` gives, so that the SDK's server can list the same tools."""
    with Child("modes-actor", OURS) as child:
        child.handshake()
        child.write(TOOLS_LIST.lines(range(1, 2)))
        (answer,) = decode_answers(child.read_lines(1))
        child.finish()
    if answer.result is UNSET:
        raise BenchError("modes-actor does not list its tools")
    return bytes(answer.result).decode()


def flood(kind: Kind, patience: float) -> Flood:
    """Write until nothing is taken for `patience` seconds, then read. Memory growth is the largest before that."""
    block = max(1, 100_000 // (100 + kind.id_padding))
    taken = made = 0
    rest = memoryview(b"")
    with Child("modes-actor", OURS) as child:
        child.handshake()
        memory = [child.memory_mb()]
        os.set_blocking(child.stdin.fileno(), False)
        while not rest and taken < FLOOD_BYTES:
            requests = kind.lines(range(made, made := made + block))
            rest = _write_what_is_taken(child, memoryview(requests), patience)
            taken += len(requests) - len(rest)
            memory.append(child.memory_mb())
        os.set_blocking(child.stdin.fileno(), True)
        # The last line may be half written: complete it, so that every request has an answer.
        writer = threading.Thread(target=child.write, args=[rest], kwargs={"last": True}, daemon=True)
        writer.start()
        answers = child.read_to_end()
        writer.join()
        child.finish()
    growth = max(memory[1:]) - memory[0]
    return Flood(kind.name, taken / 1e6, growth, answers.count(b"\n"), trouble_with(answers, kind, range(made)))


def _write_what_is_taken(child: Child, rest: memoryview, patience: float) -> memoryview:
    """Returns what the pipe did not take."""
    while rest and select.select([], [child.stdin], [], patience)[1]:
        try:
            rest = rest[os.write(child.stdin.fileno(), rest) :]
        except BlockingIOError:
            continue
        except BrokenPipeError:
            raise child.failure("ended while its client did not read") from None
    return rest


def run(rounds: int, *, quick: bool) -> Report:
    """All rounds, then the floods."""
    less = 5 if quick else 1
    contenders = [
        Contender("modes-actor", OURS, 400_000 // less, single_pings=5_000 // less, lists=10_000 // less),
        Contender("the SDK", [*SDK, our_tools()], 3_000 // less, single_pings=500 // less, lists=500 // less),
        Contender("the bare loop", LOOP, 400_000 // less, single_pings=5_000 // less),
    ]
    measured: list[list[Measured]] = []
    starts: list[float] = []
    imports: list[float] = []
    for number in range(1, rounds + 1):
        print(f"round {number} of {rounds} …", file=sys.stderr)
        measured.append([measure(contender) for contender in contenders])
        for _ in range(5):
            starts.append(start_up_seconds())
            imports.append(import_seconds())
    print("a client that stops reading …", file=sys.stderr)
    floods = [flood(kind, patience=0.5 if quick else 2.0) for kind in FLOODS]
    ours, sdk, loop = map(combine, zip(*measured, strict=True))
    ours = msgspec.structs.replace(ours, start_up_ms=min(ours.start_up_ms, min(starts) * 1e3))
    ratios = [of_loop.p50_microseconds / of_ours.p50_microseconds for of_ours, _, of_loop in measured]
    report = Report(ours, sdk, loop, ratios, min(imports) * 1e3, floods, [])
    return msgspec.structs.replace(report, verdicts=judge(report))


def judge(report: Report) -> list[Verdict]:
    ours, sdk, loop = report.ours, report.sdk, report.loop
    throughput = ours.pings_per_second / sdk.pings_per_second
    rate = loop.p50_microseconds / ours.p50_microseconds
    spread = f"rounds: {min(report.p50_ratios):.2f} to {max(report.p50_ratios):.2f}"
    slowest = ours.p99_microseconds / sdk.p99_microseconds
    start_up = ours.start_up_ms / report.imports_ms
    verdicts = [
        Verdict("pipelined pings: at least 200 x the SDK's", f"{throughput:.0f} x", throughput >= 200),
        Verdict(
            "rate of single pings, by p50: at least 0.5 x the bare loop's", f"{rate:.2f} x ({spread})", rate >= 0.5
        ),
        Verdict("p99 of single pings: at most 0.5 x the SDK's", f"{slowest:.2f} x", slowest <= 0.5),
        Verdict("start-up: at most 1.25 x importing trio and msgspec", f"{start_up:.2f} x", start_up <= 1.25),
        _below(45, "memory after the pings", ours.memory_mb),
    ]
    for each in report.floods:
        verdicts.append(_below(32, f"memory growth, unread {each.requests}", each.memory_growth_mb))
        found = each.trouble or f"{each.answers:,} of {each.answers:,}"
        verdicts.append(Verdict(f"unread {each.requests}: all answered later, once each", found, each.trouble is None))
    return verdicts


def _below(limit: int, what: str, megabytes: float) -> Verdict:
    if math.isnan(megabytes):
        return Verdict(f"{what}: below {limit} MB", "there is no /proc here", None)
    return Verdict(f"{what}: below {limit} MB", f"{megabytes:.1f} MB", megabytes < limit)


def table(header: Sequence[str], rows: Sequence[Sequence[str]], *, markdown: bool, left: int = 1) -> str:
    """Aligned columns: the first `left` of them to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    last = ":" if markdown else "-"
    rule = ["-" * (width - 1) + ("-" if index < left else last) for index, width in enumerate(widths)]
    lines = [
        [cell.ljust(width) if index < left else cell.rjust(width) for index, (cell, width) in enumerate(cells)]
        for cells in (list(zip(row, widths, strict=True)) for row in (header, rule, *rows))
    ]
    return "\n".join(f"| {' | '.join(line)} |" if markdown else "   ".join(line).rstrip() for line in lines)


def show(report: Report, *, markdown: bool) -> str:
    contenders = (report.ours, report.sdk, report.loop)
    columns = zip(METRICS, *map(msgspec.structs.astuple, contenders), strict=True)
    measured = [
        [metric.label, *("-" if math.isnan(value) else format(value, metric.form) for value in values)]
        for metric, *values in columns
    ]
    words = {True: "met", False: "MISSED", None: "skipped"}
    judged = [(words[each.met], each.target, each.found) for each in report.verdicts]
    taken = ", ".join(f"{each.taken_mb:.1f} MB of {each.requests}" for each in report.floods)
    return "\n\n".join(
        [
            table(("measured", "modes-actor", "official SDK", "bare loop"), measured, markdown=markdown),
            f"Importing trio and msgspec takes {report.imports_ms:.0f} ms, process start to exit.\n"
            f"From a client that does not read, modes-actor took {taken}.",
            table(("verdict", "target", "found"), judged, markdown=markdown, left=2),
        ]
    )


def main() -> int:
    parser = argparse.ArgumentParser(description="Measure modes-actor beside the official SDK and a bare loop.")
    parser.add_argument("--rounds", type=int, help="how often every server is measured (default: 5, with --quick: 1)")
    parser.add_argument("--quick", action="store_true", help="a smoke test of a few seconds: its numbers are rough")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print JSON")
    form.add_argument("--markdown", action="store_true", help="print Markdown tables")
    options = parser.parse_args()
    rounds = options.rounds if options.rounds is not None else 1 if options.quick else 5
    if os.name != "posix":
        parser.error("this needs the pipes of a POSIX system")
    if rounds < 1:
        parser.error("--rounds must be at least 1")
    try:
        report = run(rounds, quick=options.quick)
    except BenchError as error:
        print(f"bench: {error}", file=sys.stderr)
        return 2
    if options.json:
        print(msgspec.json.format(msgspec.json.encode(report)).decode())
    else:
        print(show(report, markdown=options.markdown))
    return 1 if any(verdict.met is False for verdict in report.verdicts) else 0


if __name__ == "__main__":
    sys.exit(main())
