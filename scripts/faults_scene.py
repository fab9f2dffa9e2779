"""What every fault is given, and what it leaves: rounds until its time is up, a ledger, a table row, verdicts."""

import statistics
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Final, TypeVar

import trio
from faults_ledger import Kept, Ledger, examples
from faults_server import Gone, Ground, NotAnswered, Server
from msgspec import Struct, field
from reporting import Verdict

T = TypeVar("T")

RECOVERY_SECONDS: Final = 20.0
"""A server that does not take a change by then, though nothing is in its way any more, has not recovered."""
AT_ONCE: Final = 200


class Outcome(Struct, kw_only=True):
    """What became of one fault. `recoveries`: seconds from the end of the fault to the next acknowledged change."""

    fault: str
    injected: int = 0
    ways: int = 0
    """In which it can be injected, where there are several."""
    ways_tried: int = 0
    acknowledged: int = 0
    lost: int = 0
    twice: int = 0
    recoveries: list[float] = field(default_factory=list)
    refusals: dict[str, int] = field(default_factory=dict)
    verdicts: list[Verdict] = field(default_factory=list)
    skipped: str | None = None

    @property
    def kept(self) -> bool | None:
        found = {verdict.kept for verdict in self.verdicts}
        return False if False in found else True if True in found else None

    @property
    def tried(self) -> str:
        return f"{self.ways_tried} of {self.ways}" if self.ways else "-"

    @property
    def median_recovery(self) -> float:
        return statistics.median(self.recoveries) if self.recoveries else float("nan")

    @property
    def longest_recovery(self) -> float:
        return max(self.recoveries, default=float("nan"))


class Skipped(Exception):
    """This system does not allow the fault. The message says why."""


class NotRecovered(Exception):
    """The fault is over, and its server still takes no change."""


class Scene:
    def __init__(self, name: str, directory: Path, command: list[str], random: Random, seconds: float) -> None:
        self.ground = Ground(directory, command)
        self.random = random
        self.seconds = seconds
        self.ledger = Ledger(name, random)
        self.outcome = Outcome(fault=name)
        self._until = time.monotonic() + seconds
        self._way: int | None = None
        self._ways_tried: set[int] = set()

    @property
    def share_over(self) -> float:
        """How much of the time has passed, from 0 to 1."""
        return min(1.0, max(0.0, 1 - (self._until - time.monotonic()) / self.seconds))

    @property
    def is_over(self) -> bool:
        return time.monotonic() >= self._until

    def rounds(self, at_least: int = 1) -> Iterator[int]:
        """Numbers until the time is up."""
        number = 0
        while number < at_least or not self.is_over:
            yield number
            number += 1

    def in_turn(self, ways: Sequence[T], *, no_time_for: int = 0) -> Iterator[T]:
        """Ways to inject the fault, until the time is up: each at least once, unless somebody is in a hurry.

        `no_time_for`: so many more there are, in which nobody in such a hurry can try it.
        """
        self.outcome.ways = len(ways) + no_time_for
        for number in self.rounds(at_least=min(len(ways), max(2, int(self.seconds)))):
            self._way = number % len(ways)
            yield ways[self._way]

    def injected(self) -> None:
        self.outcome.injected += 1
        if self._way is not None:
            self._ways_tried.add(self._way)
            self.outcome.ways_tried = len(self._ways_tried)

    def judge(self, promise: str, kept: bool | None, found: str) -> None:
        self.outcome.verdicts.append(Verdict(f"{self.outcome.fault}: {promise}", found, kept))

    async def recover(self, server: Server, since: float | None = None) -> Kept:
        """Ask for a change until it is acknowledged, and note how long that took. Raises `NotRecovered`."""
        begin = time.monotonic() if since is None else since
        reason = "no answer"
        while time.monotonic() < begin + RECOVERY_SECONDS:
            try:
                if (kept := await self.ledger.create(server)) is not None:
                    self.outcome.recoveries.append(round(time.monotonic() - begin, 4))
                    return kept
                reason = "refused"
            except (Gone, NotAnswered):
                raise NotRecovered("the server has gone, or says nothing") from None
            await trio.sleep(0.02)
        raise NotRecovered(f"still {reason} after {RECOVERY_SECONDS:g} s")

    def judge_file(self, where: str = "") -> None:
        """What the file of the store says of itself, once all servers have ended."""
        integrity = self.ledger.check_file(self.ground.store_file)
        self.judge(f"the file of the store is whole{where}", integrity == "ok", f"integrity_check: {integrity}")

    def conclude(self) -> Outcome:
        """The verdicts that every fault has, before its own."""
        outcome, ledger, tally = self.outcome, self.ledger, self.ground.tally
        outcome.acknowledged, outcome.lost, outcome.twice = ledger.acknowledged, ledger.lost, tally.twice
        outcome.refusals = dict(ledger.refusals)
        own, outcome.verdicts = outcome.verdicts, []
        if outcome.skipped is not None:
            self.judge("what this fault checks", None, f"skipped: {outcome.skipped}")
            return outcome
        was_tried = outcome.injected > 0 and ledger.acknowledged > 0
        self.judge(
            "what was acknowledged is there, once and in order",
            was_tried and not ledger.lost and not ledger.trouble,
            f"{ledger.acknowledged:,} acknowledged, {ledger.lost:,} lost"
            + (f"; {examples(ledger.trouble)}" if ledger.trouble else ""),
        )
        self.judge(
            "every request is answered once, and no server dies of it",
            was_tried and tally.is_clean,
            str(tally)
            if not tally.is_clean
            else f"{outcome.injected:,} times injected" + (f", in {outcome.tried} ways" if outcome.ways else ""),
        )
        surprises = self.ground.surprises()
        self.judge(
            "nothing happens to a server that nobody foresaw",
            not surprises,
            f"{len(surprises)} tracebacks in the log" + (f": {surprises[-1]}" if surprises else ""),
        )
        outcome.verdicts += own
        if outcome.ways_tried < outcome.ways:
            self.judge("all that, in the other ways", None, f"{outcome.tried} ways were tried")
        return outcome


class Fault(Struct, frozen=True):
    name: str
    about: str
    inject: Callable[[Scene], Awaitable[None]]


async def at_once(works: Iterable[Awaitable[object]]) -> None:
    """All of them at the same time, or nearly so."""

    async def carry_out(waiting: Iterator[Awaitable[object]]) -> None:
        for work in waiting:
            await work

    waiting = iter(works)
    async with trio.open_nursery() as nursery:
        for _ in range(AT_ONCE):
            nursery.start_soon(carry_out, waiting)


async def pause(scene: Scene, shortest: float, longest: float) -> None:
    await trio.sleep(scene.random.uniform(shortest, longest))
