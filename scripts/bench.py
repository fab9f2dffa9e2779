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
import math
import os
import select
import sys
import threading
from collections.abc import Callable, Sequence
from statistics import median
from typing import Annotated, Final, get_type_hints

import msgspec
from bench_tools import PING, TOOLS_LIST, BenchError, Child, Kind, Verdict, decode_answers, table, trouble_with
from msgspec import UNSET, Struct

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

FLOODS: Final = (
    PING,
    Kind("lists of tools and resources", (b"tools/list", b"resources/list")),
    Kind("pings with ids of 100 KB", (b"ping",), id_padding=100_000),
)


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
