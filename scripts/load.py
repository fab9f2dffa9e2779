#!/usr/bin/env python3
"""How servers do under load: many clients that use all methods as people do, and judge every answer.

    .venv/bin/python scripts/load.py [--clients N] [--servers each|one|M] [--era handshake|stateless|both]
                                     [--rate R | --think SECONDS] [--duration SECONDS] [--soak] [--profile]
                                     [--svg FILE] [--json]

Each client has sessions, tasks and subscriptions of its own and remembers what it did to them, so it knows what a right
answer is: one for each id, of the right type, about its own sessions in the modes it put them, and an error only where
it asked for one. A wrong answer is a broken promise, and is printed with its request.

Without --rate it is a closed loop: a client waits for its answer, then thinks. With --rate requests arrive at fixed
times, and latencies count from there, so that queueing shows. A request can be sent about a millisecond after its time
(no timer is finer), which is in the latencies; the summary tells how much, and whether it was the generator, not the
servers, that was at its limit. --soak goes on for hours and judges whether servers leak; --profile shows in which
functions they spend their time, which makes them slower. Ctrl-C ends a run early, with its summary.

All servers share one store and one project in a temporary directory, as the windows of an editor do. Sessions last
--session-timeout seconds, so that their end is a part of the test. Exit code: 0 if every promise is kept, 1 if one is
broken, 2 if no server could be started.
"""

import argparse
import gc
import math
import os
import signal
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import trio
from load_answers import ALIVE, NEWS, PROMISES, REFUSALS, Repeated
from load_client import Known, VirtualClient
from load_histogram import Histogram, merged
from load_lists import discover, initialize
from load_mix import mix_of
from load_pace import ClosedLoop, OpenLoop
from load_pipe import Findings, Measured, Pipe
from load_profile import SUFFIX, spent_by
from load_project import OURS, Place
from load_refusals import KIND as REFUSALS_ASKED
from load_report import (
    MOST_UNSENT,
    Examined,
    MethodRow,
    Report,
    busy_verdict,
    chart,
    limit_of,
    method_rows,
    promise_verdicts,
    sections,
    sent_verdict,
)
from load_resources import KB, Sample, Usage, leak_verdicts, summed, usage_of
from msgspec import Struct
from reporting import Options, Progress, common_options, emit, first_of, interruptible, options_parser

SHORT_SECONDS: Final = 20.0
SOAK_SECONDS: Final = 2 * 3600.0
SAMPLES: Final = 3_600
"""Of a run at the most; a longer one is sampled less often than each second."""
GARBAGE: Final = 50_000


class Plan(Struct, frozen=True, kw_only=True):
    options: Options
    clients: int
    servers: int
    era: str
    rate: float | None
    think: float
    is_soak: bool
    is_profiled: bool
    session_timeout: float
    leak_limit: float
    patience: float
    command: str | None

    @property
    def loop(self) -> str:
        return f"closed, {self.think:g} s to think" if self.rate is None else f"open, {self.rate:,.0f} requests/s"


class CouldNotRun(Exception):
    """The message is for a person."""


class Load:
    """One run."""

    def __init__(self, plan: Plan, place: Place) -> None:
        self._plan, self._place = plan, place
        self._findings, self._measured, self._whole = Findings(), Measured(), Measured()
        self._known = Known(place.session_timeout, Repeated())
        self._samples: list[Sample] = []
        self._paces: list[OpenLoop] = []
        self._until = 0.0
        self._pipes = [Pipe(place, self._measured, self._findings, patience=plan.patience) for _ in range(plan.servers)]
        self._clients: list[list[VirtualClient]] = [[] for _ in self._pipes]
        mixes = {is_stateless: mix_of(is_stateless=is_stateless) for is_stateless in (False, True)}
        for number in range(plan.clients):
            index = number % plan.servers
            # Both eras in each process that has several clients.
            alternating = (number // plan.servers + index) % 2 == 1
            is_stateless = alternating if plan.era == "both" else plan.era == "stateless"
            client = VirtualClient(
                number,
                is_stateless=is_stateless,
                seed=plan.options.seed,
                line=self._pipes[index],
                known=self._known,
                mix=mixes[is_stateless],
            )
            self._clients[index].append(client)

    async def run(self) -> Report:
        gc.freeze()
        gc.set_threshold(GARBAGE)  # looking for garbage at every turn would show in the latencies
        with Progress("load", self._plan.options.duration) as progress:
            async with trio.open_nursery() as reading:
                try:
                    await self._open(reading)
                    opening = merged(self._measured.answers.by_kind.values())
                    self._measured.answers.by_kind.clear()
                    begin, cpu = trio.current_time(), self._cpu_seconds()
                    own_cpu = time.process_time()
                    await self._drive(begin, progress)
                    seconds = trio.current_time() - begin
                    own_share = (time.process_time() - own_cpu) / seconds
                    servers_share = (self._cpu_seconds() - cpu) / seconds
                    async with trio.open_nursery() as leaving:
                        for pipe in self._pipes:
                            leaving.start_soon(pipe.leave)
                finally:
                    for pipe in self._pipes:
                        pipe.kill()
        for pipe in self._pipes:
            pipe.judge_rest()
        self._keep()
        return self._report(opening, begin, seconds, own_share, servers_share)

    async def _open(self, reading: trio.Nursery) -> None:
        async def open_one(pipe: Pipe, clients: list[VirtualClient]) -> None:
            # One handshake opens that era for all who share the pipe; the stateless one needs none.
            first = min(clients, key=lambda client: client.is_stateless)
            await pipe.open(reading, first, discover if first.is_stateless else initialize)

        failure: BaseException | None = None
        try:
            async with trio.open_nursery() as opening:
                for pipe, clients in zip(self._pipes, self._clients, strict=True):
                    opening.start_soon(open_one, pipe, clients)
        except* OSError as group:
            failure = first_of(group)
        if failure is not None:
            raise CouldNotRun(f"the server could not be started: {failure}")

    async def _drive(self, begin: float, progress: Progress) -> None:
        plan, self._until = self._plan, begin + self._plan.options.duration
        async with trio.open_nursery() as watching:
            watching.start_soon(self._sample, begin, progress)
            watching.start_soon(self._stop_when_told)
            async with trio.open_nursery() as driving:
                watching.start_soon(self._stop_when_it_is_enough, driving.cancel_scope)
                for index, (pipe, clients) in enumerate(zip(self._pipes, self._clients, strict=True)):
                    if plan.rate is None:
                        closed = ClosedLoop(clients, begin=begin, think=plan.think, seed=plan.options.seed + index)
                        driving.start_soon(self._drive_one, pipe, closed)
                        continue
                    rate = plan.rate * len(clients) / plan.clients
                    opened = OpenLoop(clients, begin=begin + index / plan.rate, rate=rate)
                    self._paces.append(opened)
                    driving.start_soon(self._drive_one, pipe, opened)
            watching.cancel_scope.cancel()

    async def _drive_one(self, pipe: Pipe, pace: ClosedLoop | OpenLoop) -> None:
        await pipe.drive(pace, until=self._until)

    async def _stop_when_it_is_enough(self, scope: trio.CancelScope) -> None:
        await self._findings.enough.wait()
        scope.cancel()

    async def _stop_when_told(self) -> None:
        """Ctrl-C ends a run early, and what was found out is told."""
        with trio.open_signal_receiver(signal.SIGINT) as signals:
            async for _ in signals:
                for pipe in self._pipes:
                    pipe.stop()

    # Sampling.

    async def _sample(self, begin: float, progress: Progress) -> None:
        duration = self._plan.options.duration
        interval = min(max(1.0, duration / SAMPLES), duration / 8)
        before, own_before, last = self._cpu_seconds(), time.process_time(), begin
        while True:
            await trio.sleep_until(last + interval)
            now = trio.current_time()
            usages, own = self._usages(), time.process_time()
            after = summed(usages)
            latencies = merged(self._measured.answers.by_kind.values())
            seconds = now - last
            sample = Sample(
                at=now - begin,
                answers_per_second=latencies.total / seconds,
                p50_ms=latencies.percentile(50) * 1000,
                p99_ms=latencies.percentile(99) * 1000,
                rss_mb=after.rss_kb / KB,
                servers_cpu=(after.cpu_seconds - before) / seconds,
                own_cpu=(own - own_before) / seconds,
                descriptors=after.descriptors,
                threads=after.threads,
                tasks=after.tasks,
                servers=usages,
            )
            if now - begin <= duration + interval:
                self._samples.append(sample)
            self._keep()
            for pipe in self._pipes:
                pipe.judge_overdue(now)
            broken = self._findings.counts.total()
            said = f"{sample.answers_per_second:,.0f}/s, p99 {sample.p99_ms:.1f} ms, {sample.rss_mb:.0f} MB"
            progress.show(now - begin, f"{said}, {broken} BROKEN" if broken else said)
            before, own_before, last = after.cpu_seconds, own, now

    def _usages(self) -> list[Usage]:
        return [usage_of(pipe.pid, self._place.tasks) for pipe in self._pipes]

    def _cpu_seconds(self) -> float:
        return summed(self._usages()).cpu_seconds

    def _keep(self) -> None:
        """Take what was measured since the last time into the whole."""
        measured = self._measured
        self._whole.answers.merge(measured.answers)
        self._whole.lateness.merge(measured.lateness)
        self._whole.received_bytes += measured.received_bytes
        self._whole.news += measured.news
        measured.answers.by_kind.clear()
        measured.lateness.clear()
        measured.received_bytes = measured.news = 0

    # Telling.

    def _examined(self, rows: list[MethodRow]) -> Mapping[str, Examined]:
        """What each promise was held against."""
        answers = Examined(rows[-1].answers, "answers")
        refused = sum(row.answers for row in rows if row.method == REFUSALS_ASKED)
        return {
            **dict.fromkeys(PROMISES, answers),
            REFUSALS: Examined(refused, "errors that were provoked"),
            NEWS: Examined(self._whole.news, "changes told"),
            ALIVE: Examined(self._plan.servers, "servers"),
        }

    def _report(self, opening: Histogram, begin: float, seconds: float, own_cpu: float, servers_cpu: float) -> Report:
        plan, known, whole = self._plan, self._known, self._whole
        rows = method_rows(opening, whole.answers)
        sent, answers = sum(pipe.sent for pipe in self._pipes), rows[-1].answers
        not_sent = sum(pace.overdue(min(self._until, begin + seconds)) for pace in self._paces)
        verdicts = [
            *promise_verdicts(self._findings.counts, self._examined(rows)),
            busy_verdict(known.busy, sent),
            *([sent_verdict(not_sent, sent, own_cpu)] if self._paces else []),
        ]
        if plan.is_soak:
            verdicts += leak_verdicts(self._samples, limit_kb_per_hour=plan.leak_limit)
        known_rss = [sample.rss_mb for sample in self._samples if not math.isnan(sample.rss_mb)]
        limit = limit_of(
            own_cpu=own_cpu,
            servers_cpu=servers_cpu,
            cores=os.cpu_count() or 1,
            behind=not_sent > sent * MOST_UNSENT,
            is_open=plan.rate is not None,
            thinks=plan.think > 0,
        )
        return Report(
            seed=plan.options.seed,
            clients=plan.clients,
            servers=plan.servers,
            loop=plan.loop,
            era=plan.era,
            seconds=seconds,
            sent=sent,
            answers=answers,
            answers_per_second=answers / seconds,
            received_mb_per_second=whole.received_bytes / 1e6 / seconds,
            cancelled=known.cancelled,
            cancelled_in_time=known.cancelled_in_time,
            refused_as_busy=known.busy,
            not_sent=not_sent,
            late_p50_ms=whole.lateness.percentile(50) * 1000,
            late_p99_ms=whole.lateness.percentile(99) * 1000,
            own_cpu=own_cpu,
            own_microseconds_per_answer=own_cpu * seconds / max(answers, 1) * 1e6,
            servers_cpu=servers_cpu,
            load_average=os.getloadavg()[0] if hasattr(os, "getloadavg") else math.nan,
            peak_rss_mb=max(known_rss, default=math.nan),
            methods=rows,
            limit=limit,
            samples=self._samples,
            verdicts=verdicts,
            broken=self._findings.details,
            servers_said=self._place.log(),
            spent=spent_by(self._place.tasks.glob(f"*{SUFFIX}")),
        )


def run(plan: Plan) -> Report:
    with tempfile.TemporaryDirectory(prefix="modes-actor-load-", ignore_cleanup_errors=True) as directory:
        place = Place(Path(directory), plan.command, plan.session_timeout, plan.is_profiled)
        place.prepare()
        failure: BaseException
        try:
            return trio.run(Load(plan, place).run)
        except* CouldNotRun as group:
            failure = first_of(group)
        raise failure


def main() -> int:
    parser = options_parser(
        __doc__ or "",
        duration=SHORT_SECONDS,
        repeats="the mix of requests; how those of several clients interleave depends on timing",
    )
    parser.set_defaults(duration=None)
    parser.add_argument("--clients", type=_count, default=8, metavar="N", help="how many at a time (default: 8)")
    parser.add_argument(
        "--servers", default="each", metavar="M", help="`each` client has its own, `one` for all, or a number"
    )
    parser.add_argument("--era", choices=("handshake", "stateless", "both"), default="both", help="default: both")
    parser.add_argument("--rate", type=_positive, metavar="R", help="open loop: requests a second, of all clients")
    parser.add_argument(
        "--think", type=float, default=0.01, metavar="SECONDS", help="closed loop: from an answer on (default: 0.01)"
    )
    parser.add_argument("--soak", action="store_true", help="judge leaks, too; goes on for 2 hours, by default")
    parser.add_argument("--profile", action="store_true", help="show in which functions servers spend their time")
    parser.add_argument("--session-timeout", type=_positive, default=60.0, metavar="SECONDS", help="default: 60")
    parser.add_argument(
        "--leak-limit", type=_positive, default=4096.0, metavar="KB", help="an hour for each server (default: 4096)"
    )
    parser.add_argument(
        "--patience", type=_positive, default=30.0, metavar="SECONDS", help="to wait for an answer (default: 30)"
    )
    parser.add_argument("--server", metavar="COMMAND", help="another server than the one of this tree")
    parsed = parser.parse_args()
    if parsed.duration is None:
        parsed.duration = SOAK_SECONDS if parsed.soak else SHORT_SECONDS
    if parsed.profile and parsed.server is not None:
        parser.error("--profile looks into the server of this tree, not into the one of --server")
    plan = Plan(
        options=common_options(parsed),
        clients=parsed.clients,
        servers=_servers(parser, parsed.servers, parsed.clients),
        era=parsed.era,
        rate=parsed.rate,
        think=max(0.0, parsed.think),
        is_soak=parsed.soak,
        is_profiled=parsed.profile,
        session_timeout=parsed.session_timeout,
        leak_limit=parsed.leak_limit,
        patience=parsed.patience,
        command=parsed.server or (None if parsed.soak or parsed.profile else OURS),
    )
    try:
        report = run(plan)
    except CouldNotRun as error:
        print(f"load: {error}", file=sys.stderr)
        return 2
    if plan.options.svg is not None:
        plan.options.svg.write_text(chart(report), encoding="utf-8")
    return emit(report, sections(report), report.verdicts, as_json=plan.options.json)


def _servers(parser: argparse.ArgumentParser, text: str, clients: int) -> int:
    if text in ("each", "one"):
        return clients if text == "each" else 1
    if not text.isdecimal() or not 1 <= int(text) <= clients:
        parser.error(f"--servers must be `each`, `one` or a number from 1 to {clients}, not {text!r}")
    return int(text)


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return number


def _positive(text: str) -> float:
    number = float(text)
    if not 0 < number < math.inf:
        raise argparse.ArgumentTypeError("must be above 0")
    return number


if __name__ == "__main__":
    sys.exit(interruptible(main))
