"""What a load test has found, as a Struct, as tables and verdicts, and as a chart."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from charts import Line, Panel, line_chart
from load_answers import PROMISES
from load_histogram import Clocked, Histogram, merged
from load_pipe import Broken
from load_profile import Spent, spent_section
from load_resources import Sample
from msgspec import Struct
from reporting import Section, Verdict

GENERATOR_FULL: Final = 0.9
"""Of a core: from here on it is the generator that is measured."""
MOST_UNSENT: Final = 0.01
"""Of all requests: more that could not even be sent are more than an unlucky moment."""
MOST_BUSY: Final = 0.001
"""Requests that may be refused for now, of all."""
BROKEN_SHOWN: Final = 5
LINE_SHOWN: Final = 600
"""In tables; the JSON has more of both."""


class MethodRow(Struct, frozen=True):
    """Latencies in milliseconds; in the open loop, from the time at which the request should have been sent."""

    method: str
    answers: int
    p50_ms: float
    p90_ms: float
    p99_ms: float
    p999_ms: float
    max_ms: float


class Report(Struct, frozen=True, kw_only=True):
    seed: int
    clients: int
    servers: int
    loop: str
    era: str
    seconds: float
    sent: int
    answers: int
    answers_per_second: float
    received_mb_per_second: float
    cancelled: int
    cancelled_in_time: int
    refused_as_busy: int
    not_sent: int
    """Open loop: requests whose time came, but whose turn did not."""
    late_p50_ms: float
    late_p99_ms: float
    """How long after its time a request was sent."""
    own_cpu: float
    servers_cpu: float
    """Shares of one core, over the whole run."""
    own_microseconds_per_answer: float
    """What the generator takes to ask and to judge; its inverse is the most that it can drive."""
    load_average: float
    """Of the machine: above its cores, others want them, too."""
    peak_rss_mb: float
    methods: list[MethodRow]
    limit: str
    """What kept the throughput from being higher."""
    samples: list[Sample]
    verdicts: list[Verdict]
    broken: list[Broken]
    servers_said: str
    """On stderr, the end of it."""
    spent: list[Spent]
    """By which function, if that was asked for."""


def method_rows(opening: Histogram, answers: Clocked) -> list[MethodRow]:
    """The first row is the way to each server's first answer, the last one all that came after it."""
    rows = [_row(kind, histogram) for kind, histogram in sorted(answers.by_kind.items())]
    return [_row("(start-up)", opening), *rows, _row("all", merged(answers.by_kind.values()))]


def _row(method: str, histogram: Histogram) -> MethodRow:
    p50, p90, p99, p999 = (histogram.percentile(percent) * 1000 for percent in (50, 90, 99, 99.9))
    return MethodRow(method, histogram.total, p50, p90, p99, p999, histogram.largest * 1000)


class Examined(Struct, frozen=True):
    """How often a promise could have been broken."""

    count: int
    what: str


def promise_verdicts(counts: Mapping[str, int], examined: Mapping[str, Examined]) -> list[Verdict]:
    return [_promise_verdict(promise, counts.get(promise, 0), examined[promise]) for promise in PROMISES]


def _promise_verdict(promise: str, broken: int, examined: Examined) -> Verdict:
    if broken:
        return Verdict(promise, f"broken {broken:,} times", kept=False)
    return Verdict(promise, f"{examined.count:,} {examined.what}", True if examined.count else None)


def busy_verdict(busy: int, sent: int) -> Verdict:
    promise = f"fewer than 1 of {1 / MOST_BUSY:,.0f} requests is refused because the store is busy"
    return Verdict(promise, f"{busy:,} of {sent:,}", busy <= sent * MOST_BUSY)


def sent_verdict(not_sent: int, sent: int, own_cpu: float) -> Verdict:
    """In the open loop: requests that could not be sent are missing in the latencies, and they waited longest."""
    promise = f"a server takes what is sent at that rate: fewer than 1 of {1 / MOST_UNSENT:,.0f} requests is left over"
    kept = not_sent <= sent * MOST_UNSENT
    found = f"{not_sent:,} of {sent + not_sent:,}"
    if not kept and own_cpu >= GENERATOR_FULL:
        return Verdict(promise, f"{found}, but the generator was at its limit", None)
    return Verdict(promise, found, kept)


def limit_of(*, own_cpu: float, servers_cpu: float, cores: int, behind: bool, is_open: bool, thinks: bool) -> str:
    """What was measured: the servers, the generator, or only the pace."""
    if own_cpu >= GENERATOR_FULL:
        return f"the generator: it took {own_cpu:.0%} of a core, the servers could do more"
    if own_cpu + servers_cpu >= GENERATOR_FULL * cores:
        return f"the machine: generator and servers together took {own_cpu + servers_cpu:.1f} of {cores} cores"
    if is_open:
        return "the servers: they did not keep up" if behind else "the rate that was asked for"
    return "the clients, which think" if thinks else "the servers, and the way to them"


def sections(report: Report) -> list[Section]:
    latencies = [
        (row.method, f"{row.answers:,}", *map(_number, (row.p50_ms, row.p90_ms, row.p99_ms, row.p999_ms, row.max_ms)))
        for row in report.methods
    ]
    late = f"{_number(report.late_p50_ms)}, {_number(report.late_p99_ms)}"
    facts = [
        ("clients, servers, seed", f"{report.clients:,}, {report.servers:,}, {report.seed}"),
        ("loop, era", f"{report.loop}, {report.era}"),
        ("answers per second", f"{report.answers_per_second:,.0f}"),
        ("received, MB/s", _number(report.received_mb_per_second)),
        ("cancelled, before the answer came", f"{report.cancelled:,}, {report.cancelled_in_time:,}"),
        ("refused as busy", f"{report.refused_as_busy:,}"),
        ("sent after its time, ms: p50, p99", late),
        ("not sent in time for the end", f"{report.not_sent:,}"),
        ("CPU of servers, cores", _number(report.servers_cpu)),
        ("CPU of this generator, cores", _number(report.own_cpu)),
        (
            "which could drive, as here, requests/s",
            f"{1e6 / report.own_microseconds_per_answer:,.0f}" if report.answers else "-",
        ),
        ("load average of the machine", _number(report.load_average)),
        ("memory of servers at most, MB", _number(report.peak_rss_mb)),
        (
            "descriptors, threads, Trio tasks at the end",
            ", ".join(_last(report.samples, what) for what in ("descriptors", "threads", "tasks")),
        ),
        ("what limited the throughput", report.limit),
    ]
    header = ("method or tool", "answers", "p50 ms", "p90", "p99", "p99.9", "max")
    found = [Section(header, latencies), Section(("the run", ""), facts, left=2)]
    if report.spent:
        found.append(spent_section(report.spent))
    for each in report.broken[:BROKEN_SHOWN]:
        told = [("how", each.what), ("request", each.request[:LINE_SHOWN]), ("answer", each.answer[:LINE_SHOWN])]
        client = "" if each.client is None else f" (client {each.client})"
        found.append(Section((f"broken{client}", each.promise), told, left=2))
    if report.servers_said:
        found.append(Section(("what servers said on stderr",), [(line,) for line in report.servers_said.splitlines()]))
    return found


def _last(samples: Sequence[Sample], what: str) -> str:
    return _number(getattr(samples[-1], what)) if samples else "-"


def _number(value: float) -> str:
    if math.isnan(value):
        return "-"
    return f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:,.2f}"


def chart(report: Report) -> str:
    samples = report.samples

    def line(name: str, value: Callable[[Sample], float]) -> Line:
        points = [(sample.at, value(sample)) for sample in samples]
        return Line(name, [point for point in points if not math.isnan(point[1])])

    panels = [
        Panel("Answers per second", [line("answers", lambda each: each.answers_per_second)]),
        Panel(
            "Latency, ms",
            [line("p50", lambda each: each.p50_ms), line("p99", lambda each: each.p99_ms)],
            is_log=True,  # they lie orders of magnitude apart
        ),
        Panel("Memory of all servers, MB", [line("RSS", lambda each: each.rss_mb)], "{:,.1f}"),
        Panel(
            "CPU, cores",
            [line("servers", lambda each: each.servers_cpu), line("generator", lambda each: each.own_cpu)],
            "{:,.2f}",
        ),
    ]
    title = f"{report.clients:,} clients, {report.servers:,} servers, {report.loop}"
    return line_chart(title, panels, across="seconds")
