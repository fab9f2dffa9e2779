"""What was asked of the servers of one store, what they acknowledged, and whether the store still knows it.

Every change carries a tag of its own, which the server keeps (as a message, a reason, a result). So each can be found
again: one that was acknowledged must be there exactly once, one that was refused must not, and of two the one that was
acknowledged before the other was sent comes first. What was neither may be there, once; when seen, it has to stay.
"""

import itertools
import sqlite3
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Final, Literal

import trio
from faults_server import NONSENSE, Gone, NotAnswered, Refused, Server
from msgspec import Struct

from modes_actor.surface.mode_results import ModeSwitchedResult, TaskCompletedResult, TaskCreated, TaskDetails

MODES: Final = ("code", "architect", "ask", "debug", "orchestrator")
AT_ONCE: Final = 200
"""Questions that a check has on their way."""
TRIES: Final = 40

Kind = Literal["create", "switch", "complete"]


class Step(Struct, eq=False):
    """One change. `asked` and `told` are places in the order in which the clients of all servers asked and heard."""

    kind: Kind
    tag: str
    mode: str
    asked: int
    told: int | None = None
    acknowledged: bool | None = None
    """None: nobody knows."""


class Kept(Struct, eq=False):
    """A session that a server acknowledged, with all that was tried on it."""

    session_id: str
    steps: list[Step]
    is_reserved: bool = False
    """For a check of its own: traffic leaves it alone."""

    @property
    def is_open(self) -> bool:
        return all(step.kind != "complete" or step.acknowledged is False for step in self.steps)


def only_passing(error: Refused) -> bool:
    """By default a server may refuse only for a while, or what has been completed meanwhile."""
    return error.is_passing or error.code == -32004


class Ledger:
    def __init__(self, name: str, random: Random) -> None:
        self.sessions: dict[str, Kept] = {}
        self.acknowledged = 0
        self.lost = 0
        self.trouble: list[str] = []
        """What is not lost, but wrong."""
        self.refusals: Counter[str] = Counter()
        self.may_refuse: Callable[[Refused], bool] = only_passing
        self._name = name
        self._random = random
        self._order = itertools.count()
        self._tags = itertools.count(1)
        self._created: set[str] = set()
        self._refused: set[str] = set()
        self._since = 0

    # Changing, with a record of it. These return whether it was acknowledged; `Gone` is the caller's to bear.

    async def create(self, server: Server, mode: str | None = None, *, raising: bool = False) -> Kept | None:
        """The new session. `raising`: the caller wants to hear what was said instead of it."""
        step = self._step("create", mode or self._random.choice(MODES))
        self._created.add(step.tag)
        made: list[TaskCreated] = []

        async def ask() -> None:
            made.append(await server.use("create_task", TaskCreated, mode_slug=step.mode, initial_message=step.tag))

        if not await self._carry_out(step, ask, raising=raising) or step.asked < self._since:
            return None
        kept = Kept(made[0].session_id, [step])
        if kept.session_id in self.sessions:
            self.trouble.append(f"two tasks got the session {kept.session_id}")
        self.sessions[kept.session_id] = kept
        return kept

    async def reserve(self, server: Server, mode: str) -> Kept:
        """A session that only who asked for it changes."""
        kept = await self.create(server, mode)
        if kept is None:
            raise Refused(-32603, "the first task of all was not taken", retryable=True)
        kept.is_reserved = True
        return kept

    async def switch(self, server: Server, kept: Kept) -> bool:
        step = self._step("switch", self._random.choice(MODES))
        kept.steps.append(step)

        async def ask() -> None:
            told = await server.use(
                "switch_mode",
                ModeSwitchedResult,
                session_id=kept.session_id,
                new_mode_slug=step.mode,
                reason=step.tag,
            )
            if (told.session_id, told.new_mode, told.reason) != (kept.session_id, step.mode, step.tag):
                self.trouble.append(f"switch_mode of {kept.session_id} was acknowledged as something else")

        return await self._carry_out(step, ask)

    async def complete(self, server: Server, kept: Kept) -> bool:
        step = self._step("complete", "")
        kept.steps.append(step)

        async def ask() -> None:
            await server.use(
                "complete_task",
                TaskCompletedResult,
                session_id=kept.session_id,
                status="completed",
                result=step.tag,
            )

        return await self._carry_out(step, ask)

    async def change_something(self, server: Server) -> bool:
        """Half of all changes are new tasks, some of them begin a life of several changes, a few end one."""
        choice = self._random.random()
        kept = self._any_open() if choice > 0.5 else None
        if kept is None:
            return await self.create(server) is not None
        return await (self.complete(server, kept) if choice > 0.93 else self.switch(server, kept))

    async def change_until_gone(self, server: Server) -> None:
        """Traffic of one client that never pauses: until its server goes, or it is cancelled."""
        try:
            while not server.gone.is_set():
                if not await self.change_something(server):
                    await trio.sleep(0.01)
        except (Gone, NotAnswered):
            pass

    def forget(self) -> None:
        """What there was has been destroyed on purpose: from now on only what is asked from now on counts."""
        self.sessions.clear()
        self._since = next(self._order)

    # Checking.

    async def check(
        self, server: Server, sessions: Iterable[Kept] | None = None, *, may_be_missing: bool = False
    ) -> None:
        """Compare what a server says with the record.

        `may_be_missing`: the store was damaged, so a refusal is right, too; a wrong answer never is.
        """

        async def look(kept: Kept) -> None:
            for attempt in range(TRIES):
                asked = next(self._order)
                try:
                    details = await server.use(
                        "get_task_info", TaskDetails, session_id=kept.session_id, include_messages=True
                    )
                except Refused as error:
                    if error.is_passing and attempt < TRIES - 1 and not may_be_missing:
                        await trio.sleep(0.05)
                        continue
                    if may_be_missing and error.code in (-32603, -32002):
                        return
                    if error.code != NONSENSE:
                        self.lost += sum(step.acknowledged is True for step in kept.steps)
                    self._complain(f"{kept.session_id}: {error}")
                except (Gone, NotAnswered):
                    self._complain(f"{kept.session_id}: no answer")
                else:
                    self._compare(kept, details, asked, may_be_missing=may_be_missing)
                return

        waiting = list(self.sessions.values() if sessions is None else sessions)
        for start in range(0, len(waiting), AT_ONCE):
            async with trio.open_nursery() as nursery:
                for kept in waiting[start : start + AT_ONCE]:
                    nursery.start_soon(look, kept)

    async def check_some(self, server: Server, limit: int = 2_000) -> None:
        """Those that were changed last, and some of the older ones."""
        every = list(self.sessions.values())
        latest = sorted(every, key=lambda kept: kept.steps[-1].asked)[-limit // 2 :]
        older = self._random.sample(every, min(len(every), limit // 2))
        await self.check(server, {kept.session_id: kept for kept in (*latest, *older)}.values())

    def check_file(self, path: Path) -> str:
        """What only the file itself can tell: that nothing was done twice, or half. Returns SQLite's word on it."""
        try:
            with closing(sqlite3.connect(f"{path.as_uri()}?mode=rw", uri=True, timeout=10)) as file:
                integrity: str = file.execute("PRAGMA integrity_check").fetchone()[0]
                self._check_rows(file)
        except sqlite3.Error as error:
            return str(error)
        return integrity

    # Inside.

    def _check_rows(self, file: sqlite3.Connection) -> None:
        words = Counter(row[0] for row in file.execute("SELECT content FROM messages WHERE role = 'user'"))
        if twice := [tag for tag, count in words.items() if count > 1]:
            self._complain(f"{len(twice)} tasks were created twice")
        if words.keys() - self._created:
            self._complain("there are tasks that nobody asked for")
        if made := words.keys() & self._refused:
            self._complain(f"{len(made)} tasks were refused, and created: {min(made)}")
        for table in ("messages", "mode_changes"):
            half = f"SELECT count(*) FROM sessions WHERE session_id NOT IN (SELECT session_id FROM {table})"
            if count := file.execute(half).fetchone()[0]:
                self._complain(f"{count} sessions have no {table}")

    def _any_open(self) -> Kept | None:
        if not self.sessions:
            return None
        ids = list(itertools.islice(reversed(self.sessions), 300))
        kept = self.sessions[self._random.choice(ids)]
        return kept if kept.is_open and not kept.is_reserved and len(kept.steps) < 30 else None

    def _step(self, kind: Kind, mode: str) -> Step:
        return Step(kind, f"{self._name} {kind} {next(self._tags)}", mode, next(self._order))

    async def _carry_out(self, step: Step, ask: Callable[[], Awaitable[None]], *, raising: bool = False) -> bool:
        try:
            await ask()
        except Refused as error:
            if not self.may_refuse(error):
                self._complain(f"{step.kind} was refused: {error}")
            self.refusals[f"{error.code}{' retryable' if error.retryable else ''}"] += 1
            step.acknowledged = False
            self._refused.add(step.tag)
            if raising:
                raise
            return False
        step.acknowledged = True
        step.told = next(self._order)
        self.acknowledged += 1
        return True

    def _compare(self, kept: Kept, found: TaskDetails, asked: int, *, may_be_missing: bool) -> None:
        by_tag = {step.tag: step for step in kept.steps}
        said = [message.content for message in found.messages or []]
        later = found.mode_history[1:]
        ended = [by_tag.get(tag) for tag in said[1:]]
        seen = [kept.steps[0], *(by_tag.get(change.reason or "") for change in later)]
        if not found.mode_history or said[:1] != [kept.steps[0].tag] or None in seen or None in ended:
            return self._complain(f"{kept.session_id} tells what nobody asked for")
        applied = [step for step in (*seen, *ended) if step is not None]
        acknowledged = [step for step in kept.steps if step.told is not None and step.told < asked]
        missing = [step for step in acknowledged if step not in applied]
        if missing and not may_be_missing:
            self.lost += len(missing)
            self._complain(f"{kept.session_id} does not know of {missing[0].tag}, which was acknowledged")
        if len(applied) != len({step.tag for step in applied}):
            self._complain(f"{kept.session_id}: a change was made twice")
        if refused := [step.tag for step in applied if step.acknowledged is False]:
            self._complain(f"{kept.session_id}: {refused[0]} was refused, and made")
        for index, step in enumerate(applied):
            if any(after.told is not None and after.told < step.asked for after in applied[index + 1 :]):
                self._complain(f"{kept.session_id}: {step.tag} was put before one that was acknowledged earlier")
        modes = [step.mode for step in applied if step.kind != "complete"]
        state = "completed" if ended else "active"
        if [change.mode for change in found.mode_history] != modes or found.mode_slug != modes[-1]:
            self._complain(f"{kept.session_id} is in mode {found.mode_slug}, not in {modes[-1]}")
        if (found.state, found.completed_at is not None) != (state, bool(ended)):
            self._complain(f"{kept.session_id} is {found.state}, not {state}")
        for step in applied:
            if step.acknowledged is None:
                step.acknowledged, step.told = True, next(self._order)

    def _complain(self, what: str) -> None:
        self.trouble.append(what)


def examples(trouble: list[str]) -> str:
    """A few of them."""
    more = f" (and {len(trouble) - 1} more)" if len(trouble) > 1 else ""
    return f"{trouble[0]}{more}" if trouble else ""
