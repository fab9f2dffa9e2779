"""What servers take of the machine while they are under load, and whether they take more and more.

Memory is judged by its trend over the second half of a run: the Theil–Sen slope (the median of the slopes between all
pairs of samples), which neither warm-up nor single peaks sway.
"""

import math
import os
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from statistics import median
from typing import Final

from load_server import tasks_of
from msgspec import Struct
from reporting import Verdict

HAS_PROC: Final = Path("/proc/self/status").exists()
KB: Final = 1024
LONG_ENOUGH: Final = 600.0
"""Seconds of a second half from which a trend can be told from noise."""
SHORT_ALLOWANCE_KB: Final = 32 * KB
"""What a server may grow by in a shorter one, in which caches still fill, before it counts as leaking."""
SHORT_ALLOWANCE: Final = 32
"""The same for descriptors, threads and tasks: files that are opened late."""
_PAIRS: Final = 400
"""Samples of which all pairs are looked at: more are thinned out."""


class Usage(Struct, frozen=True):
    """Sums over processes; NaN where there is no /proc."""

    rss_kb: float
    cpu_seconds: float
    descriptors: float
    threads: float
    tasks: float
    """Trio's; NaN of servers that do not count them."""


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


def usage(pids: Sequence[int], tasks: Path) -> Usage:
    """`tasks`: the directory in which servers count them."""
    found = [each for pid in pids if (each := _usage_of(pid, tasks)) is not None]
    if not found:
        return Usage(math.nan, math.nan, math.nan, math.nan, math.nan)
    return Usage(
        sum(each.rss_kb for each in found),
        sum(each.cpu_seconds for each in found),
        sum(each.descriptors for each in found),
        sum(each.threads for each in found),
        sum(each.tasks for each in found),
    )


def _usage_of(pid: int, tasks: Path) -> Usage | None:
    """None for a process that is not there any more."""
    if not HAS_PROC:
        return None
    directory = Path(f"/proc/{pid}")
    try:
        status = dict(line.split(":", 1) for line in (directory / "status").read_text().splitlines())
        times = (directory / "stat").read_text().rpartition(")")[2].split()
        descriptors = len(os.listdir(directory / "fd"))
    except OSError:
        return None
    if "VmRSS" not in status:
        return None
    ticks = int(times[11]) + int(times[12])
    cpu_seconds = ticks / os.sysconf("SC_CLK_TCK")
    rss_kb, threads = float(status["VmRSS"].split()[0]), float(status["Threads"])
    return Usage(rss_kb, cpu_seconds, float(descriptors), threads, tasks_of(pid, tasks))


def theil_sen(points: Sequence[tuple[float, float]]) -> float:
    """The slope of the line through these points; NaN if there are too few."""
    points = points[:: math.ceil(len(points) / _PAIRS)] if points else points
    slopes = [(later[1] - earlier[1]) / (later[0] - earlier[0]) for earlier, later in combinations(points, 2)]
    return median(slopes) if len(points) >= 3 else math.nan


def leak_verdicts(samples: Sequence[Sample], servers: int, *, limit_kb_per_hour: float) -> list[Verdict]:
    """Whether a server takes more and more memory, descriptors, threads or tasks, by the second half of the run."""
    half = [sample for sample in samples if sample.at >= samples[-1].at / 2] if samples else []
    half = [sample for sample in half if not math.isnan(sample.rss_mb)]
    seconds = half[-1].at - half[0].at if half else 0.0
    memory = [(sample.at, sample.rss_mb * KB / servers) for sample in half]
    return [
        _memory(theil_sen(memory), seconds, limit_kb_per_hour),
        _count("open file descriptors", [(sample.at, sample.descriptors / servers) for sample in half], seconds),
        _count("threads", [(sample.at, sample.threads / servers) for sample in half], seconds),
        _count("Trio tasks", [(sample.at, sample.tasks / servers) for sample in half], seconds),
    ]


def _memory(slope: float, seconds: float, limit_kb_per_hour: float) -> Verdict:
    promise = f"memory of a server grows by less than {limit_kb_per_hour:,.0f} KB an hour (trend of the second half)"
    if math.isnan(slope):
        return Verdict(promise, "too few samples", None)
    found = f"{slope * 3600:+,.0f} KB an hour, extrapolated from {seconds:,.0f} s"
    if seconds >= LONG_ENOUGH:
        return Verdict(promise, found, slope * 3600 < limit_kb_per_hour)
    if slope * seconds > SHORT_ALLOWANCE_KB:
        return Verdict(promise, f"{slope * seconds:+,.0f} KB in {seconds:,.0f} s already", kept=False)
    return Verdict(promise, f"{found}, which is too short to tell", None)


def _count(what: str, points: Sequence[tuple[float, float]], seconds: float) -> Verdict:
    """Of a number that should stay as it is: its trend must not come to one more for each server."""
    promise = f"a server has no more {what} at the end of the second half than at its beginning"
    slope = theil_sen(points)
    if math.isnan(slope):
        return Verdict(promise, "not counted: too few samples, or a server that does not tell", None)
    grown = slope * seconds
    found = f"trend {grown:+.1f} for each server, {points[-1][1]:.1f} at the end"
    if 1 <= grown < SHORT_ALLOWANCE and seconds < LONG_ENOUGH:
        return Verdict(promise, f"{found}, which is too short to tell", None)
    return Verdict(promise, found, grown < 1)
