#!/usr/bin/env python3
"""How fast the server is beside what people use otherwise, how it grows, and whether it meets its targets.

    .venv/bin/python scripts/bench.py [--rounds N | --duration SECONDS] [--quick] [--seed N] [--svg FILE]
                                      [--json | --markdown] [--readme]

Each server is a real process behind real pipes, with a home of its own. A round runs every server once, in an order
that is another each time, so that a busy machine is busy for all of them. Of several rounds, rates, CPU and start-up
are the best, what single pings take is the median, memory the largest. Every answer is decoded and matched with its
request, outside of the time that is measured. Ours lists its modes for real where the others have a tool that says
"ok"; a durable task is one whose answer came after its commit was synced. FastMCP and the TypeScript SDK are installed
for the occasion, where that is possible.

This client reads and writes pipes and does nothing else: were it a Trio program, as the other scripts are, most of
what a single ping takes would be its own, the same for every server, and their differences would be hidden in it.

Processes are not pinned. A single ping to the bare loop is mostly the wake-up of two processes, and what that costs
depends on where the scheduler puts them: on identical code its ratio can differ several times over. Ratios of one run
are what is claimed, never absolute numbers.

`--readme` puts the tables into README.md and the chart into scripts/bench.svg. Exit code: 0 if no target is missed, 1
if one is, 2 if a server failed or it was interrupted. MB are 10^6 bytes.
"""

import itertools
import math
import os
import random
import re
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from bench_contenders import BARE_LOOP, IMPORTS, OURS, PYTHON_SDK, TYPESCRIPT_SDK, Contender, contenders
from bench_floods import FLOODS, Flood, flood
from bench_growth import Growth, measure_growth
from bench_side_by_side import METRICS, Measured, combine, measure
from bench_tools import ROOT, BenchError
from charts import Bars, bar_chart
from msgspec import Struct, structs
from reporting import Progress, Section, Verdict, common_options, emit, interruptible, options_parser, table

SIDE_BY_SIDE_IN_README = "<!-- figures: scripts/bench.py --readme -->"
END_IN_README = "<!-- end of figures -->"
CHART = ROOT / "scripts" / "bench.svg"


class StartUp(Struct, frozen=True):
    """Our server and what it stands on, started in turn and as often; the fastest of each."""

    ours_ms: float
    """From the start of the process to its first answer."""
    imports_ms: float
    """From the start of a process that imports trio and msgspec to what it says once it has them."""


class Report(Struct, frozen=True, kw_only=True):
    seed: int
    measured: dict[str, Measured]
    ping_ratios: list[float]
    """Our p50 over the bare loop's, round by round."""
    start_up: StartUp
    growth: Growth
    floods: list[Flood]
    verdicts: list[Verdict] = []


class Plan(Struct, frozen=True, kw_only=True):
    rounds: int | None
    seconds: float | None
    """How long to go on with rounds, where their number is not given."""
    seed: int
    is_quick: bool

    @property
    def less(self) -> int:
        return 50 if self.is_quick else 1

    def next_rounds(self) -> Iterator[tuple[int, float]]:
        """The number of each round, and which part of the time or of the rounds is over when it begins."""
        began = time.perf_counter()
        for number in itertools.count():
            share = number / self.rounds if self.rounds else (time.perf_counter() - began) / (self.seconds or 1.0)
            if number and share >= 1:
                return
            yield number + 1, share


ROUNDS_SHARE: Final = 0.6
"""Of the time that a run takes, roughly; the rest goes to growth and floods."""


def run(plan: Plan) -> Report:
    less, is_quick = plan.less, plan.is_quick
    measured: dict[str, list[Measured]] = {}
    starts: list[tuple[float, float]] = []
    order = random.Random(plan.seed)
    with tempfile.TemporaryDirectory() as directory, Progress("bench", 1.0) as progress:
        parent = Path(directory)
        progress.show(0.0, "the servers that are here" if is_quick else "installing the peers")
        everyone = list(contenders(parent, less=less, peers=not is_quick))
        for contender in everyone:
            measured[contender.name] = []
        for number, share in plan.next_rounds():
            for contender in order.sample(everyone, len(everyone)):
                progress.show(share * ROUNDS_SHARE, f"round {number}: {contender.name}")
                home = Path(tempfile.mkdtemp(dir=parent))
                found = measure(contender, home, is_ours=contender.name == OURS, less=less)
                measured[contender.name].append(found)
            starts += [_start_up_seconds(everyone[0], parent) for _ in range(1 if is_quick else 3)]
        progress.show(ROUNDS_SHARE, "growth")
        growth = measure_growth(parent, less=less)
        progress.show(0.95, "a client that stops reading")
        floods = [flood(kind, patience=0.5 if is_quick else 2.0) for kind in FLOODS[: 1 if is_quick else None]]
    ratios = [
        ours.p50_microseconds / loop.p50_microseconds
        for ours, loop in zip(measured[OURS], measured[BARE_LOOP], strict=True)
    ]
    combined = {name: combine(each) for name, each in measured.items()}
    start_up = StartUp(*(min(each) * 1e3 for each in zip(*starts, strict=True)))
    report = Report(
        seed=plan.seed, measured=combined, ping_ratios=ratios, start_up=start_up, growth=growth, floods=floods
    )
    return structs.replace(report, verdicts=judge(report))


def judge(report: Report) -> list[Verdict]:
    ours, sdk, loop = (report.measured[name] for name in (OURS, PYTHON_SDK, BARE_LOOP))
    spread = f"rounds: {min(report.ping_ratios):.2f} to {max(report.ping_ratios):.2f}"
    start_up = report.start_up.ours_ms / report.start_up.imports_ms
    pings, lists = ours.pings / sdk.pings, ours.list_modes / sdk.list_modes
    single = ours.p50_microseconds / loop.p50_microseconds
    typescript = report.measured.get(TYPESCRIPT_SDK)
    beside = math.nan if typescript is None else ours.list_modes / typescript.list_modes
    return [
        Verdict("pipelined pings: at least 200 x the Python SDK's", f"{pings:.0f} x", pings >= 200),
        Verdict("pipelined list_modes: at least 100 x the Python SDK's trivial tool", f"{lists:.0f} x", lists >= 100),
        Verdict(
            "pipelined list_modes: at least 5 x the TypeScript SDK's trivial tool",
            "it was not measured" if math.isnan(beside) else f"{beside:.1f} x",
            None if math.isnan(beside) else beside >= 5,
        ),
        Verdict("one ping at a time: within 1.6 x of the bare loop", f"{single:.2f} x ({spread})", single <= 1.6),
        Verdict("start-up: no more than 1.15 x importing trio and msgspec", f"{start_up:.2f} x", start_up <= 1.15),
        _megabytes("memory when idle: no more than 40 MB", ours.idle_mb, 40),
        *_growth_verdicts(report.growth),
        *(verdict for each in report.floods for verdict in each.verdicts()),
    ]


def _growth_verdicts(growth: Growth) -> list[Verdict]:
    few, many = growth.sessions[0], growth.sessions[-1]
    infos, start = many.task_infos / few.task_infos, many.start_up_ms / few.start_up_ms
    checks = growth.modes[-1].validations / growth.modes[0].validations
    return [
        Verdict(
            f"get_task_info among {many.sessions:,} sessions: at least 0.8 x the rate among {few.sessions}",
            f"{infos:.2f} x",
            infos >= 0.8,
        ),
        Verdict(f"start-up with them: at most 1.3 x of {few.sessions}", f"{start:.2f} x", start <= 1.3),
        Verdict(
            f"an allowed edit among {growth.modes[-1].modes:,} modes: at least 0.5 x the rate with one",
            f"{checks:.2f} x",
            checks >= 0.5,
        ),
    ]


def _megabytes(promise: str, found: float, limit: float) -> Verdict:
    if math.isnan(found):
        return Verdict(promise, "there is no /proc here", None)
    return Verdict(promise, f"{found:.1f} MB", found <= limit)


def _start_up_seconds(ours: Contender, parent: Path) -> tuple[float, float]:
    """Ours and the imports, each from its start to its first line: how long it takes to end is not in it."""
    with ours.start(Path(tempfile.mkdtemp(dir=parent))) as child:
        start_up = child.handshake()
        child.finish()
    with IMPORTS.start(Path(tempfile.mkdtemp(dir=parent))) as child:
        imports = child.first_line()
        child.finish()
    return start_up, imports


# What is shown.


def sections(report: Report) -> list[Section]:
    names = list(report.measured)
    rows = [
        [metric.label, *(_cell(getattr(report.measured[name], key), metric.form) for name in names)]
        for key, metric in METRICS.items()
    ]
    growth = report.growth
    return [
        Section(("measured", *names), rows),
        Section(
            (
                "modes",
                "start-up, ms",
                "list_modes/s",
                "allowed edits/s",
                "denied edits/s",
                "create_task/s",
                "memory, MB",
            ),
            [(f"{each.modes:,}", *map(_number, structs.astuple(each)[1:])) for each in growth.modes],
        ),
        Section(
            ("live sessions", "start-up, ms", "get_task_info/s", "allowed edits/s", "create_task/s", "memory, MB"),
            [(f"{each.sessions:,}", *map(_number, structs.astuple(each)[1:])) for each in growth.sessions],
        ),
        Section(
            ("bytes of an answer", "answers/s", "MB/s", "memory, MB"),
            [
                (f"{each.answer_bytes:,}", *map(_number, (each.answers, each.megabytes, each.memory_mb)))
                for each in growth.answers
            ],
        ),
    ]


def _cell(value: float, form: str) -> str:
    return "-" if math.isnan(value) else form.format(value)


def _number(value: float) -> str:
    return _cell(value, "{:,.0f}")


def chart(measured: Mapping[str, Measured]) -> str:
    def bars(title: str, key: str, form: str) -> Bars:
        return Bars(title, {name: getattr(each, key) for name, each in measured.items()}, form)

    return bar_chart(
        "modes-actor and what people use otherwise",
        [
            bars(
                "list_modes per second, pipelined: more is better (the others' tool only says ok)",
                "list_modes",
                "{:,.0f}",
            ),
            bars("ping per second, pipelined: more is better", "pings", "{:,.0f}"),
            bars("one ping at a time, p50 in µs: less is better", "p50_microseconds", "{:,.0f}"),
            bars("process start to first answer in ms: less is better", "start_up_ms", "{:,.0f}"),
            bars("memory when idle in MB: less is better", "idle_mb", "{:,.0f}"),
        ],
    )


def markdown(report: Report) -> str:
    words = {True: "met", False: "missed", None: "not measured"}
    judged = [(each.promise, each.found, words[each.kept]) for each in report.verdicts]
    return "\n\n".join(
        table(each, markdown=True) for each in (Section(("target", "found", ""), judged, left=3), *sections(report))
    )


def write_readme(report: Report) -> None:
    """Replace what stands between the two marks, and the chart."""
    path = ROOT / "README.md"
    text = path.read_text(encoding="utf-8")
    between = re.compile(f"(?<={re.escape(SIDE_BY_SIDE_IN_README)}\n).*(?={re.escape(END_IN_README)})", re.DOTALL)
    tables = f"\n{markdown(report)}\n\n![{', '.join(report.measured)}](scripts/{CHART.name})\n\n"
    path.write_text(between.sub(lambda _: tables, text), encoding="utf-8")
    CHART.write_text(chart(report.measured), encoding="utf-8")


def main(words: Sequence[str] | None = None) -> int:
    parser = options_parser(__doc__ or "", duration=0, repeats="the order in which servers take their turns")
    parser.set_defaults(duration=None)
    parser.add_argument("--rounds", type=int, help="how often every server is measured (default: 5, with --quick: 1)")
    parser.add_argument("--quick", action="store_true", help="some seconds, without peers to install: rough numbers")
    parser.add_argument("--markdown", action="store_true", help="print Markdown tables")
    parser.add_argument("--readme", action="store_true", help="put the tables and the chart into the README")
    parsed = parser.parse_args(words)
    if os.name != "posix":
        parser.error("this needs the pipes of a POSIX system")
    if parsed.rounds is not None and parsed.duration is not None:
        parser.error("--rounds or --duration, not both")
    if parsed.rounds is not None and parsed.rounds < 1:
        parser.error("--rounds must be at least 1")
    if parsed.markdown and parsed.json:
        parser.error("--markdown or --json, not both")
    if parsed.rounds is None and parsed.duration is None:
        parsed.rounds = 1 if parsed.quick else 5
    options = common_options(parsed)
    plan = Plan(rounds=parsed.rounds, seconds=parsed.duration, seed=options.seed, is_quick=parsed.quick)
    try:
        report = run(plan)
    except BenchError as error:
        print(f"bench: {error}", file=sys.stderr)
        return 2
    if options.svg is not None:
        options.svg.write_text(chart(report.measured), encoding="utf-8")
    if parsed.readme:
        write_readme(report)
    if parsed.markdown:
        print(markdown(report))
        return 1 if any(verdict.kept is False for verdict in report.verdicts) else 0
    return emit(report, sections(report), report.verdicts, as_json=options.json)


if __name__ == "__main__":
    sys.exit(interruptible(main))
