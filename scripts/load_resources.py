"""What servers take of the machine while they are under load, and whether they take more and more.

Memory is judged by its trend over the second half of a run: the Theil–Sen slope (the median of the slopes between all
pairs of samples), which neither warm-up nor single peaks sway.
"""

import math
import os
from collections.abc import Callable, Sequence
from itertools import combinations
from pathlib import Path
from statistics import median
from typing import Final

from load_server import tasks_of
from msgspec import Struct, structs
from reporting import Verdict

HAS_PROC: Final = Path("/proc/self/status").exists()
KB: Final = 1024
LONG_ENOUGH: Final = 600.0
"""Seconds of a second half from which a trend can be told from noise."""
SHORT_ALLOWANCE_KB: Final = 32 * KB
"""What a server may grow by in a shorter one, in which caches still fill, before it counts as leaking."""
SHORT_ALLOWANCE: Final = 32
"""The same for descriptors, threads and tasks: files that are opened late."""
FEWEST: Final = 3
"""Samples that make a trend."""
_PAIRS: Final = 400
"""Samples of which all pairs are looked at: more are thinned out."""


class Usage(Struct, frozen=True):
    """Of one process, or the sums over several; NaN where there is no /proc."""

    rss_kb: float
    cpu_seconds: float
    descriptors: float
    threads: float
    tasks: float
    """Trio's; NaN of servers that do not count them."""


UNKNOWN: Final = Usage(*[math.nan] * 5)


class Sample(Struct, frozen=True):
    """A second of a run. `at`: seconds since its beginning; CPU in shares of one core, latencies in milliseconds."""

    at: float
    answers_per_second: float
    p50_ms: float
    p99_ms: float
    rss_mb: float
    servers_cpu: float
    own_cpu: float
    descriptors: float
    threads: float
    tasks: float
    servers: list[Usage]
    """The same of each, in the same order every time: the sums hide one that leaks among many."""


def summed(usages: Sequence[Usage]) -> Usage:
    """Of the processes that are there; NaN if none is."""
    found = [structs.astuple(each) for each in usages if not math.isnan(each.rss_kb)]
    return Usage(*map(sum, zip(*found, strict=True))) if found else UNKNOWN


def usage_of(pid: int, tasks: Path) -> Usage:
    """`tasks`: the directory in which servers count them. Nothing is known of a process that is not there any more."""
    if not HAS_PROC:
        return UNKNOWN
    directory = Path(f"/proc/{pid}")
    try:
        status = dict(line.split(":", 1) for line in (directory / "status").read_text().splitlines())
        times = (directory / "stat").read_text().rpartition(")")[2].split()
        descriptors = len(os.listdir(directory / "fd"))
    except OSError:
        return UNKNOWN
    if "VmRSS" not in status:
        return UNKNOWN
    ticks = int(times[11]) + int(times[12])
    cpu_seconds = ticks / os.sysconf("SC_CLK_TCK")
    rss_kb, threads = float(status["VmRSS"].split()[0]), float(status["Threads"])
    return Usage(rss_kb, cpu_seconds, float(descriptors), threads, tasks_of(pid, tasks))


class Trend(Struct, frozen=True):
    """Of a number in the course of time: by how much it changes in a second, and where it ended."""

    slope: float
    last: float


def theil_sen(points: Sequence[tuple[float, float]]) -> float:
    """The slope of the line through these points; NaN if there are too few."""
    points = points[:: math.ceil(len(points) / _PAIRS)] if points else points
    slopes = [(later[1] - earlier[1]) / (later[0] - earlier[0]) for earlier, later in combinations(points, 2)]
    return median(slopes) if len(points) >= FEWEST else math.nan


def leak_verdicts(samples: Sequence[Sample], *, limit_kb_per_hour: float) -> list[Verdict]:
    """Whether any server takes more and more memory, descriptors, threads or tasks, by the second half of the run."""
    half = [sample for sample in samples if sample.at >= samples[-1].at / 2] if samples else []
    seconds = half[-1].at - half[0].at if half else 0.0

    def steepest(number: Callable[[Usage], float]) -> Trend:
        """Of the server that grows most."""
        servers = range(len(half[0].servers)) if half else range(0)
        series = [[(sample.at, number(sample.servers[index])) for sample in half] for index in servers]
        known = [[point for point in points if not math.isnan(point[1])] for points in series]
        trends = [Trend(theil_sen(points), points[-1][1]) for points in known if len(points) >= FEWEST]
        return max(trends, key=lambda trend: trend.slope, default=Trend(math.nan, math.nan))

    return [
        _memory(steepest(lambda usage: usage.rss_kb), seconds, limit_kb_per_hour),
        _count("open file descriptors", steepest(lambda usage: usage.descriptors), seconds),
        _count("threads", steepest(lambda usage: usage.threads), seconds),
        _count("Trio tasks", steepest(lambda usage: usage.tasks), seconds),
    ]


def _memory(trend: Trend, seconds: float, limit_kb_per_hour: float) -> Verdict:
    promise = f"memory of each server grows by less than {limit_kb_per_hour:,.0f} KB an hour (trend of the second half)"
    slope = trend.slope
    if math.isnan(slope):
        return Verdict(promise, "too few samples", None)
    found = f"{slope * 3600:+,.0f} KB an hour at the most, extrapolated from {seconds:,.0f} s"
    if seconds >= LONG_ENOUGH:
        return Verdict(promise, found, slope * 3600 < limit_kb_per_hour)
    if slope * seconds > SHORT_ALLOWANCE_KB:
        return Verdict(promise, f"{slope * seconds:+,.0f} KB in {seconds:,.0f} s already", kept=False)
    return Verdict(promise, f"{found}, which is too short to tell", None)


def _count(what: str, trend: Trend, seconds: float) -> Verdict:
    """Of a number that should stay as it is: its trend must not come to one more."""
    promise = f"no server has more {what} at the end of the second half than at its beginning"
    if math.isnan(trend.slope):
        return Verdict(promise, "not counted: too few samples, or a server that does not tell", None)
    grown = trend.slope * seconds
    found = f"trend {grown:+.1f} at the most, {trend.last:.0f} at the end"
    if 1 <= grown < SHORT_ALLOWANCE and seconds < LONG_ENOUGH:
        return Verdict(promise, f"{found}, which is too short to tell", None)
    return Verdict(promise, found, grown < 1)
