"""One of the processes that fuzz: does its share, says on stdout how far it is, and ends with a tally or a case.

It is started by fuzz.py, with its task as JSON in its only argument.
"""

import itertools
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Literal

import msgspec
import trio
from fuzz_case import Blob, Case, CaseRound, save, shrunk, written
from fuzz_ground import make_ground
from fuzz_judge import Broken
from fuzz_messages import Template
from fuzz_play import PATIENCE, Line, Round, play
from fuzz_rounds import Generator
from fuzz_schemas import schema_check
from msgspec import Struct

What = Literal["messages", "modes", "config"]
EPISODE_ROUNDS: Final = 25
RECURSION: Final = 20_000
"""So that whatever fits into a line can be read here, however deeply it is nested."""


class Task(Struct, frozen=True, kw_only=True):
    what: What
    number: int
    seed: int
    seconds: float
    count: int | None
    """Messages or files, whatever time that takes."""
    directory: str
    """For whatever it needs; whoever gave the task clears it away."""
    server: tuple[str, ...] = ()
    cases: str = "."
    shrink_trials: int = 200
    patience: float = PATIENCE


class Tally(Struct, kw_only=True):
    """How far it is; with `done`, what came of it."""

    done: bool = False
    count: int = 0
    distinct: int = 0
    episodes: int = 0
    seconds: float = 0.0
    kinds: dict[str, int] = {}
    outcomes: list[tuple[str, str, int, int]] = []
    """Methods, versions, what came of them, and how often."""
    held: dict[str, int] = {}
    """How much was held against each promise."""
    slowest: float = 0.0
    """Seconds that a file took."""
    broken: Case | None = None
    saved: str | None = None


class Clock:
    """When it is enough."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._began = self._told = time.perf_counter()

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self._began

    def left(self, count: int) -> int:
        """How many more; 0 when it is time."""
        if self._task.count is not None:
            return max(0, self._task.count - count)
        return 0 if self.seconds >= self._task.seconds else sys.maxsize

    def tell(self, tally: Tally) -> None:
        """How far it is, now and then."""
        if time.perf_counter() - self._told > 0.3:
            self._told = time.perf_counter()
            say(Tally(count=tally.count))

    def tell_of(self, case: Case, tally: Tally) -> None:
        """Of a failure, as it is, in a file already: nobody may wait for the end of what makes it smaller."""
        say(Tally(count=tally.count, broken=case, saved=str(save(case, Path(self._task.cases)))))


def say(tally: Tally) -> None:
    try:
        sys.stdout.buffer.write(msgspec.json.encode(tally) + b"\n")
        sys.stdout.buffer.flush()
    except BrokenPipeError:  # nobody waits for it any more: that is as good as being told to stop
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        signal.raise_signal(signal.SIGTERM)


@contextmanager
def stopped_by_signals() -> Iterator[trio.CancelScope]:
    """What is inside is cancelled by Ctrl-C and by SIGTERM, and so it clears away what it made."""
    token = trio.lowlevel.current_trio_token()
    with trio.CancelScope() as scope:

        def stop(*_: object) -> None:
            token.run_sync_soon(scope.cancel, idempotent=True)

        before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield scope
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


async def stoppable_messages(task: Task, clock: Clock, tally: Tally) -> None:
    with stopped_by_signals() as stopped:
        await fuzz_messages(task, clock, tally)
    if stopped.cancelled_caught:
        sys.exit(1)


async def fuzz_messages(task: Task, clock: Clock, tally: Tally) -> None:
    ground = await make_ground(Path(task.directory), task.server)
    pool: list[Template] = []
    outcomes: Counter[tuple[str, str, int]] = Counter()
    kinds: Counter[str] = Counter()
    held: Counter[str] = Counter()
    sample = schema_check()
    while left := clock.left(tally.count):
        seed = f"{task.seed}:{task.number}:{tally.episodes}"
        made = Generator(seed, pool, round_size=min(1000, left))
        kept: list[Round] = []

        def rounds(made: Generator = made, kept: list[Round] = kept) -> Iterator[Round]:
            for each in itertools.islice(made.rounds(), EPISODE_ROUNDS):
                left = clock.left(tally.count)
                if not left:
                    return
                del each.lines[left:]
                kept.append(each)
                tally.count += len(each.lines)
                clock.tell(tally)
                yield each

        name = f"episode-{task.number}"
        try:
            played = await play(ground, rounds(), made.plan, name=name, sample=sample, patience=task.patience)
        except Broken as broken:
            case = Case(
                what="messages",
                seed=seed,
                expected=broken.promise,
                found=broken.found,
                server=task.server,
                plan=made.plan,
                rounds=[CaseRound(list(map(_text, each.lines)), each.cuts) for each in kept],
            )
            clock.tell_of(case, tally)
            tally.broken = await shrunk(case, ground, broken, trials=task.shrink_trials, name=name)
            break
        outcomes += played.outcomes
        kinds += made.kinds
        held += played.held
        tally.distinct += made.distinct
        tally.episodes += 1
    tally.kinds, tally.held = dict(kinds), dict(held)
    tally.outcomes = [(*each, count) for each, count in outcomes.items()]


def _text(line: Line) -> str | Blob:
    return written(line.data)


def main() -> None:
    sys.setrecursionlimit(RECURSION)
    task = msgspec.json.decode(sys.argv[1], type=Task)
    clock, tally = Clock(task), Tally()
    if task.what == "messages":
        trio.run(stoppable_messages, task, clock, tally)
    else:
        from fuzz_files import fuzz_files

        fuzz_files(task, clock, tally)
    if tally.broken is not None:
        tally.saved = str(save(tally.broken, Path(task.cases)))
    tally.done, tally.seconds = True, clock.seconds
    say(tally)


if __name__ == "__main__":
    main()
