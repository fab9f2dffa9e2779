"""Sessions at one place, in memory or in a file, under a clock that a test sets: the fixture `desk`."""

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from modes_actor.sessions import tables
from modes_actor.sessions.model import Session, SessionEvent
from modes_actor.sessions.sessions import Sessions, Timing
from modes_actor.store.database import Store

START = 1_000_000.0
TIMEOUT = 3600.0
TICK = 300.0
NEVER_SEEN = f"sess_{'0' * 32}"

Change = Callable[[Sessions, str], Awaitable[object]]
CHANGES: dict[str, Change] = {
    "switch": lambda sessions, session_id: sessions.switch(session_id, "ask", None),
    "complete": lambda sessions, session_id: sessions.complete(session_id, "completed", "done"),
    "cancel": lambda sessions, session_id: sessions.complete(session_id, "cancelled", None),
    "create below": lambda sessions, session_id: sessions.create("ask", "below", session_id),
}
each_change = pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)


class Desk:
    """Sessions at one place, under one clock, with what they told."""

    def __init__(self, path: Path | None) -> None:
        self.time = START
        self.told: list[SessionEvent] = []
        timing = Timing(timeout=TIMEOUT, cleanup_interval=TICK)
        self.store = Store(path, tables.MIGRATIONS)
        self.sessions = Sessions(self.store, timing, tell=self.told.append, now=lambda: self.time)

    async def line(self, depth: int) -> list[Session]:
        """A task, one below it, one below that, each a second younger."""
        made: list[Session] = []
        for _ in range(depth):
            self.time += 1
            made.append(await self.sessions.create("code", None, made[-1].session_id if made else None))
        return made

    async def several(self, number: int) -> list[str]:
        """Tasks that have nothing to do with each other, each a second younger."""
        return [(await self.line(1))[0].session_id for _ in range(number)]

    def states(self, *made: Session) -> list[str]:
        return [self.sessions.get(each.session_id).task.state for each in made]


@pytest.fixture(params=["memory", "file"])
async def desk(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Desk]:
    desk = Desk(tmp_path / "sessions.db" if request.param == "file" else None)
    yield desk
    await desk.sessions.close()
