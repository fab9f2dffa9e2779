"""How long answers took, in few numbers: logarithmic buckets, so that a microsecond and a minute are equally sharp.

Promises: a value is told to within 1 part in 128; the largest is told exactly; histograms merge without loss, so what
was counted second by second gives the same percentiles as if it had been counted at once.
"""

import math
from collections.abc import Iterable
from typing import Final, Self

from msgspec import Struct

BUCKETS_PER_DOUBLING: Final = 128
_WIDEN: Final = 2 * BUCKETS_PER_DOUBLING


class Histogram(Struct):
    """Durations in seconds. Those below a nanosecond, which only clocks that were set back give, count as one."""

    counts: dict[int, int] = {}
    total: int = 0
    largest: float = 0.0

    def record(self, seconds: float) -> None:
        mantissa, exponent = math.frexp(seconds if seconds > 1e-9 else 1e-9)
        bucket = exponent * BUCKETS_PER_DOUBLING + int((mantissa - 0.5) * _WIDEN)
        counts = self.counts
        counts[bucket] = counts.get(bucket, 0) + 1
        self.total += 1
        if seconds > self.largest:
            self.largest = seconds

    def percentile(self, percent: float) -> float:
        """The duration that this share of all did not exceed; NaN if there are none."""
        if not self.total:
            return math.nan
        wanted, seen = math.ceil(self.total * percent / 100), 0
        for bucket in sorted(self.counts):
            seen += self.counts[bucket]
            if seen >= wanted:
                return min(_upper_edge(bucket), self.largest)
        return self.largest

    def merge(self, other: "Histogram") -> Self:
        for bucket, count in other.counts.items():
            self.counts[bucket] = self.counts.get(bucket, 0) + count
        self.total += other.total
        self.largest = max(self.largest, other.largest)
        return self

    def clear(self) -> None:
        self.counts.clear()
        self.total, self.largest = 0, 0.0


def merged(histograms: Iterable[Histogram]) -> Histogram:
    whole = Histogram()
    for each in histograms:
        whole.merge(each)
    return whole


def _upper_edge(bucket: int) -> float:
    exponent, step = divmod(bucket, BUCKETS_PER_DOUBLING)
    return math.ldexp(0.5 + (step + 1) / _WIDEN, exponent)


class Clocked(Struct):
    """What was answered in an interval: a histogram for each kind of request."""

    by_kind: dict[str, Histogram] = {}

    def record(self, kind: str, seconds: float) -> None:
        found = self.by_kind.get(kind)
        if found is None:
            found = self.by_kind[kind] = Histogram()
        found.record(seconds)

    def merge(self, other: "Clocked") -> None:
        for kind, histogram in other.by_kind.items():
            self.by_kind.setdefault(kind, Histogram()).merge(histogram)
