"""Clocks that jump, and thousands of sessions that expire at once. The servers' clock is set by a file."""

import sqlite3
import sys
import time
from contextlib import AbstractAsyncContextManager, closing
from datetime import datetime
from itertools import cycle, islice
from pathlib import Path
from typing import Final

from faults_clockwork import VARIABLE
from faults_ledger import Kept, examples
from faults_scene import Fault, Scene, Skipped, at_once, pause
from faults_server import Refused, Server
from msgspec import Struct, field

from modes_actor.surface.mode_results import TaskCreated, TaskDetails

TIMEOUT: Final = 100.0
"""Seconds of the servers' clock."""
CLEAN_UP: Final = 0.2
MARGIN: Final = 0.5
JUMPS: Final = (10.0, 40.0, 70.0, 150.0, 3_000.0, -10.0, -70.0, -150.0, -3_000.0)
JUMPS_OF_A_LIFE: Final = 6
FARTHEST: Final = 20_000.0
"""Well below a day, after which a server may forget that there was a session."""
EXPIRED: Final = -32003
MANY: Final = 4_000
LIVE: Final = 100
QUICK_SECONDS: Final = 5.0
CLEAN_UP_SECONDS: Final = 60.0
DEFAULT_COMMAND: Final = (sys.executable, "-m", "modes_actor")


class Clock:
    """The time as the servers know it."""

    def __init__(self, directory: Path) -> None:
        self.file = directory / "clock"
        self.offset = 0.0
        self.jump(0.0)

    def now(self) -> float:
        return time.time() + self.offset

    def jump(self, seconds: float) -> None:
        self.offset += seconds
        fresh = self.file.with_name("clock.new")
        fresh.write_text(repr(self.offset))
        fresh.replace(self.file)


def is_ours(scene: Scene) -> bool:
    return tuple(scene.ground.command) == DEFAULT_COMMAND


def server_of(scene: Scene, clock: Clock) -> AbstractAsyncContextManager[Server]:
    """Another server than ours has to heed the file by itself."""
    clockwork = (sys.executable, str(Path(__file__).with_name("faults_clockwork.py")))
    return scene.ground.server(
        clockwork if is_ours(scene) else None,
        **{
            VARIABLE: str(clock.file),
            "ROO_SESSION_TIMEOUT": str(TIMEOUT),
            "ROO_CLEANUP_INTERVAL": str(CLEAN_UP),
        },
    )


async def heeded_clock(scene: Scene) -> Clock:
    """A clock that the servers go by. Raises `Skipped` if another server than ours does not."""
    time_of = Clock(scene.ground.directory)
    if is_ours(scene):
        return time_of
    time_of.jump(FARTHEST)
    async with server_of(scene, time_of) as server:
        task = await server.use("create_task", TaskCreated, mode_slug="code")
        told = await server.use("get_task_info", TaskDetails, session_id=task.session_id)
    if not is_near(told.created_at, time_of.now()):
        raise Skipped(f"this server's clock cannot be set: it does not heed the file that {VARIABLE} names")
    time_of.jump(-FARTHEST)
    scene.ground.new_store()
    return time_of


def is_near(told: str, now: float) -> bool:
    try:
        return abs(datetime.fromisoformat(told).timestamp() - now) < FARTHEST / 2
    except ValueError:
        return False


class Watched(Struct, eq=False):
    """A session, the earliest and the latest time of its last use, and how late it has ever been since."""

    kept: Kept
    earliest: float
    latest: float
    peak: float

    def used(self, earliest: float, latest: float) -> None:
        self.earliest, self.latest = max(self.earliest, earliest), max(self.latest, latest)
        self.peak = max(latest, self.latest)

    def must_live(self, now: float) -> bool:
        return max(self.peak, now) <= self.earliest + TIMEOUT - MARGIN

    def must_have_expired(self, now: float) -> bool:
        return now > self.latest + TIMEOUT + MARGIN


class Sessions(Struct):
    """Sessions that are watched, by their ids, and what came of asking for them."""

    of: dict[str, Watched] = field(default_factory=dict)
    lived: int = 0
    ended: int = 0
    wrong: list[str] = field(default_factory=list)

    async def create(self, scene: Scene, server: Server, clock: Clock) -> None:
        begin = clock.now()
        kept = await scene.recover(server)
        now = clock.now()
        self.of[kept.session_id] = Watched(kept, begin, now, now)

    def jumped(self, before: float, after: float) -> None:
        for each in self.of.values():
            each.peak = max(each.peak, before, after)

    async def use(self, scene: Scene, server: Server, each: Watched, clock: Clock) -> None:
        begin = clock.now()
        try:
            await server.use("get_task_info", TaskDetails, session_id=each.kept.session_id)
        except Refused as error:
            if error.code != EXPIRED or each.must_live(clock.now()):
                self.wrong.append(f"a session idle for {clock.now() - each.earliest:.0f} s: {error}")
            del self.of[each.kept.session_id], scene.ledger.sessions[each.kept.session_id]
            self.ended += 1
        else:
            if each.must_have_expired(begin):
                self.wrong.append(f"a session lives that was idle for {begin - each.latest:.0f} s")
            each.used(begin, clock.now())
            self.lived += 1


async def clock(scene: Scene) -> None:
    """Sessions are used, the clock jumps, and some of them are asked for. The others stay as they are."""
    time_of, sessions = await heeded_clock(scene), Sessions()
    jumps = cycle(scene.random.sample(JUMPS, len(JUMPS)))
    for _ in scene.rounds():
        async with server_of(scene, time_of) as server:
            for seconds in islice(jumps, JUMPS_OF_A_LIFE):
                await _jump(scene, server, time_of, sessions, seconds)
        # The next server knows all that the last one knew: it ended politely.
    async with server_of(scene, time_of) as server:
        for each in list(sessions.of.values()):
            await sessions.use(scene, server, each, time_of)
        await scene.ledger.check(server)
    scene.judge_file()
    scene.judge(
        "sessions end by the clock, and none because it was set back",
        bool(sessions.lived) and not sessions.wrong,
        examples(sessions.wrong) or f"asked {sessions.lived + sessions.ended} times, {sessions.ended} had ended",
    )


async def _jump(scene: Scene, server: Server, time_of: Clock, sessions: Sessions, seconds: float) -> None:
    for _ in range(3):
        await sessions.create(scene, server, time_of)
    if abs(time_of.offset + seconds) > FARTHEST:
        seconds = -time_of.offset
    before = time_of.now()
    time_of.jump(seconds)
    scene.injected()
    sessions.jumped(before, time_of.now())
    await sessions.create(scene, server, time_of)
    await pause(scene, 0.0, 2 * CLEAN_UP)  # so that a clean-up runs, or does not
    watched = list(sessions.of.values())
    for each in scene.random.sample(watched, min(8, len(watched))):
        await sessions.use(scene, server, each, time_of)


class Looks(Struct):
    """What came of looking at sessions of which it is known whether they live."""

    slowest: float = 0.0
    wrong: list[str] = field(default_factory=list)

    async def at(self, server: Server, kept: Kept, *, lives: bool) -> None:
        begin = time.monotonic()
        try:
            await server.use("get_task_info", TaskDetails, session_id=kept.session_id)
        except Refused as error:
            if lives or error.code != EXPIRED:
                self.wrong.append(f"a {'live' if lives else 'expired'} session: {error}")
        else:
            if not lives:
                self.wrong.append("an expired session answers as if it lived")
        self.slowest = max(self.slowest, time.monotonic() - begin)


async def expiry(scene: Scene) -> None:
    """Most of some thousand sessions expire at the same time; a few were used meanwhile."""
    await heeded_clock(scene)
    looks = Looks()
    cleaned = [await _expire_many(scene, looks) for _ in scene.rounds()]
    scene.judge_file()
    scene.judge(
        "the expired ones answer so, before and after they are cleaned up; the others live",
        not looks.wrong,
        examples(looks.wrong) or f"{MANY - LIVE:,} expired at once, cleaned up within {max(cleaned):.1f} s",
    )
    scene.judge(
        f"answers come within {QUICK_SECONDS:g} s meanwhile",
        looks.slowest < QUICK_SECONDS,
        f"slowest {looks.slowest * 1e3:.0f} ms",
    )


async def _expire_many(scene: Scene, looks: Looks) -> float:
    """Returns the seconds until they were cleaned up."""
    ledger, time_of = scene.ledger, Clock(scene.ground.directory)
    scene.ground.new_store()
    ledger.forget()
    async with server_of(scene, time_of) as server:
        await at_once([ledger.create(server) for _ in range(MANY)])
        time_of.jump(0.6 * TIMEOUT)
        kept = list(ledger.sessions.values())
        live, idle = kept[:LIVE], kept[LIVE:]
        await at_once([ledger.switch(server, each) for each in live])
        for each in idle:
            del ledger.sessions[each.session_id]
        time_of.jump(0.6 * TIMEOUT)
        scene.injected()
        since = time.monotonic()
        await scene.recover(server)
        while (left := _sessions_in(scene.ground.store_file)) > len(ledger.sessions):
            if time.monotonic() > since + CLEAN_UP_SECONDS:
                looks.wrong.append(f"{left:,} sessions are still kept after {CLEAN_UP_SECONDS:g} s")
                break
            await looks.at(server, scene.random.choice(live), lives=True)
            await looks.at(server, scene.random.choice(idle), lives=False)
            await ledger.create(server)
        cleaned = time.monotonic() - since
        await at_once([looks.at(server, each, lives=False) for each in idle])
        await ledger.check(server)
    return cleaned


def _sessions_in(file: Path) -> int:
    with closing(sqlite3.connect(file, timeout=10)) as connection:
        found: int = connection.execute("SELECT count(*) FROM sessions").fetchone()[0]
        return found


FAULTS = (
    Fault("clock", "the clock jumps forward and back while sessions are used or idle", clock),
    Fault("expiry", f"{MANY - LIVE:,} of {MANY:,} sessions expire at once", expiry),
)
