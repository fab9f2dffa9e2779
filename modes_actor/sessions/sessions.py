"""The sessions of all clients of a store: what may be done to them, and when they end.

Promises: what a method that changes something returned is durable; any use of a session keeps it alive, and costs no
transaction; an expired session is told apart from one that never was, for as long as its tombstone is kept.
"""

from __future__ import annotations

import time
from itertools import islice
from typing import TYPE_CHECKING, Final, TypeVar

import trio
from msgspec import Struct, structs

from modes_actor.sessions import tables
from modes_actor.sessions.model import (
    Completed,
    FinalState,
    Message,
    ModeChange,
    ModeSwitched,
    Session,
    SessionCreated,
    SessionEvent,
    SessionsExpired,
    Task,
    TaskCompleted,
    is_session_id,
    new_session_id,
    new_task_id,
)
from modes_actor.sessions.reading import SessionReader
from modes_actor.wire.errors import SessionExpired, TaskNotFound, ValidationFailed, shortened

if TYPE_CHECKING:
    from collections.abc import Callable
    from sqlite3 import Connection

    from modes_actor.store.database import Store

T = TypeVar("T")

TOMBSTONE_SECONDS: Final = 24 * 3600.0
EXPIRED_AT_ONCE: Final = 500
"""Sessions that one transaction cleans up, so that others get their turn at the file, and the end is not put off."""
TOUCHED_AT_ONCE: Final = 1_000
"""Uses that wait for the next commit, before one is made for them, and that one takes along at the most."""


class Timing(Struct, frozen=True, kw_only=True):
    """How long sessions last. A touch is written with the next commit, at the latest after a tenth of the timeout."""

    timeout: float = 3600.0
    cleanup_interval: float = 300.0

    @property
    def tick(self) -> float:
        return max(0.1, min(self.cleanup_interval, self.timeout / 10))


class Sessions(SessionReader):
    def __init__(
        self,
        store: Store,
        timing: Timing | None = None,
        *,
        tell: Callable[[SessionEvent], None] = lambda event: None,
        now: Callable[[], float] = time.time,
    ) -> None:
        self.timing = timing or Timing()
        super().__init__(store, now=now)
        self._store = store
        self._tell = tell
        self._touched: dict[str, float] = {}
        self._being_written: dict[str, float] = {}
        self._told_above: dict[str, float] = {}
        self.flush_is_due = trio.Event()
        """Uses should be written now: of a session that others may soon take for expired, or of very many."""

    # Looking.

    def get(self, session_id: str) -> Session:
        """The session, which counts as a use of it. Raises `ValidationFailed`, `TaskNotFound` or `SessionExpired`."""

        def find(connection: Connection) -> list[Session]:
            session = self._find(connection, session_id)
            # Those above are told once in a while only: a line of tasks can be long, and looking must not be.
            is_told = abs(self._now() - self._told_above.get(session_id, 0.0)) < self.timing.tick / 2
            return [session] if is_told else [session, *self._live_above(connection, session)]

        found = self._store.read(find)
        if found[0].last_activity < self._now() - self.timing.timeout / 2:
            self.flush_is_due.set()
        session = structs.replace(found[0], last_activity=self._last_activity(found[0]))
        if len(found) > 1:
            self._told_above[session_id] = self._now()
        before = len(self._touched)
        for each in found:
            self._touched[each.session_id] = max(self._now(), self._last_activity(each))  # clocks are set back at times
        if before < TOUCHED_AT_ONCE <= len(self._touched):
            self.flush_is_due.set()
        return session

    def get_by_task(self, task_id: str) -> Session:
        """As `get`, for who knows only the task."""
        session_id = self._store.read(lambda connection: tables.session_of_task(connection, task_id))
        if session_id is None:
            raise TaskNotFound(f"Task not found: {shortened(task_id, length=100)}")
        return self.get(session_id)

    def recent(self, *, prefix: str = "", limit: int = 100) -> list[Session]:
        """The live sessions, the one last used first."""
        since = self._now() - self.timing.timeout
        known = {**self._being_written, **self._touched}
        latest = sorted((each for each in known if each.startswith(prefix)), key=lambda each: -known[each])[:limit]

        def recent(connection: Connection) -> list[Session]:
            used = [session for each in latest if (session := tables.find(connection, each)) is not None]
            return used + tables.recent(connection, since=since, limit=limit, prefix=prefix)

        found = {session.session_id: session for session in self._store.read(recent) if self._is_live(session)}
        return sorted(found.values(), key=self._last_activity, reverse=True)[:limit]

    # Changing.

    async def create(self, mode: str, initial_message: str | None, parent_session_id: str | None) -> Session:
        """A new session with an active task, below another's task if one is named."""
        now = self._now()
        task = Task(
            task_id=new_task_id(),
            mode=mode,
            state="active",
            created=now,
            completed=None,
            parent_session_id=parent_session_id,
            metadata={},
        )
        session = Session(session_id=new_session_id(), task=task, created=now, last_activity=now)

        def insert(connection: Connection) -> tuple[str, ...]:
            if parent_session_id is not None:
                self._active(self._find(connection, parent_session_id), "take subtasks")
            tables.insert(connection, session)
            tables.add_mode_change(connection, session.session_id, ModeChange(mode, None, now))
            if initial_message is not None:
                tables.add_message(connection, session.session_id, Message("user", initial_message, now))
            return self._touch_above(connection, session, now)

        self._tell(SessionCreated(session.session_id, await self._write(insert)))
        return session

    async def switch(self, session_id: str, mode: str, reason: str | None) -> tuple[str, Session]:
        """Put a task into another mode. Returns the mode before, and the session after."""
        now = self._now()

        def switch(connection: Connection) -> tuple[str, Session, tuple[str, ...]]:
            before = self._active(self._find(connection, session_id), "switch modes")
            tables.set_mode(connection, session_id, mode, now)
            tables.add_mode_change(connection, session_id, ModeChange(mode, reason, now))
            return before.task.mode, self._find(connection, session_id), self._touch_above(connection, before, now)

        old_mode, session, above = await self._write(switch)
        self._tell(ModeSwitched(session_id, above))
        return old_mode, session

    async def complete(self, session_id: str, state: FinalState, result: str | None) -> Completed:
        """End a task. Its result becomes an assistant's message; cancelling one cancels all that is active below it."""
        now = self._now()

        def complete(connection: Connection) -> tuple[Completed, tuple[str, ...]]:
            before = self._active(self._find(connection, session_id), "be completed again")
            below: list[str] = []
            if state == "cancelled":
                active = tables.active_descendants(connection, session_id)
                below = [each.session_id for each in active if self._is_live(each)]
            for each in (session_id, *below):
                tables.set_state(connection, each, state, now)
            if result is not None:
                tables.add_message(connection, session_id, Message("assistant", result, now))
            children = tables.children(connection, session_id)
            still_open = sum(child.task.state == "active" and self._is_live(child) for child in children)
            completed = Completed(self._find(connection, session_id), tuple(below), still_open)
            return completed, self._touch_above(connection, before, now)

        completed, above = await self._write(complete, may_last=state == "cancelled")  # very many, perhaps
        self._tell(TaskCompleted(session_id, above, completed.cancelled))
        return completed

    async def destroy(self, session_id: str) -> None:
        """End a session before its time. It answers as expired from then on."""

        def destroy(connection: Connection) -> None:
            self._find(connection, session_id)
            tables.expire(connection, [session_id], self._now())

        await self._write(destroy)
        self._tell(SessionsExpired((session_id,)))

    def end_within(self, seconds: float) -> None:
        """From now on, other processes are waited for no longer than that."""
        self._store.end_within(seconds)

    async def close(self) -> None:
        await self._store.aclose()

    async def flush(self) -> None:
        """Write the touches that no commit has taken along yet."""
        self._told_above.clear()
        self.flush_is_due = trio.Event()
        while self._touched:
            await self._write(lambda connection: None)

    async def clean_up(self) -> int:
        """Remove sessions that have expired, and tombstones that have served their time. Returns how many sessions."""
        removed = 0
        while (expired := await self._expire_some()) is not None:
            removed += len(expired)
            if expired:
                self._tell(SessionsExpired(tuple(expired)))
            await trio.lowlevel.checkpoint()  # writing is shielded
        return removed

    async def _expire_some(self) -> list[str] | None:
        """None if there is nothing to clean up."""
        now = self._now()
        # Not at once: another process may know of a later use that it has not written yet.
        before = now - self.timing.timeout - self.timing.tick
        forget = now - TOMBSTONE_SECONDS

        def expire(connection: Connection) -> list[str]:
            found = tables.idle_since(connection, before, EXPIRED_AT_ONCE)
            tables.expire(connection, found, now)
            tables.forget_expired(connection, forget, EXPIRED_AT_ONCE)
            return found

        # Reading costs no transaction, and mostly there is nothing to do.
        is_due = self._store.read(lambda connection: tables.is_clean_up_due(connection, before, forget))
        return await self._write(expire, may_last=True) if is_due else None

    # Inside.

    async def _write(self, change: Callable[[Connection], T], *, may_last: bool = False) -> T:
        """Run a change, and take along the touches since the last one, unless they are too many at once."""
        touched = dict(islice(self._touched.items(), TOUCHED_AT_ONCE))
        for session_id in touched:
            del self._touched[session_id]
        self._being_written |= touched

        def change_and_touch(connection: Connection) -> T:
            tables.touch(connection, touched.items())
            return change(connection)

        try:
            # Shielded, so that whoever makes a change also tells of it.
            with trio.CancelScope(shield=True):
                result = await self._store.write(change_and_touch, may_last=may_last)
        except BaseException:
            self._touched = touched | self._touched  # they were not written, and later ones count more
            raise
        finally:
            for session_id, when in touched.items():
                if self._being_written.get(session_id) == when:
                    del self._being_written[session_id]
        return result

    def _find(self, connection: Connection, session_id: str) -> Session:
        check_session_id(session_id)
        session = tables.find(connection, session_id)
        if session is not None and self._is_live(session):
            return session
        if session is None and not tables.has_expired(connection, session_id):
            raise TaskNotFound(f"Task not found: there is no session {session_id}. Create one with create_task")
        raise SessionExpired(
            f"Session {session_id} has expired (timeout: {self.timing.timeout:g}s). Create a new one with create_task"
        )

    def _active(self, session: Session, what: str) -> Session:
        if session.task.state != "active":
            state = f"The task of session {session.session_id} is {session.task.state}"
            raise ValidationFailed(f"{state} and cannot {what}: create a new task with create_task")
        return session

    def _live_above(self, connection: Connection, session: Session) -> list[Session]:
        """The tasks above that wait for this one: what is done in a subtask is a use of them, too."""
        return [each for each in tables.ancestors(connection, session) if self._is_live(each)]

    def _touch_above(self, connection: Connection, session: Session, now: float) -> tuple[str, ...]:
        """Keep those alive that wait. Returns all above: their hierarchies show what was done."""
        above = tables.ancestors(connection, session)
        tables.touch(connection, [(each.session_id, now) for each in above if self._is_live(each)])
        return tuple(each.session_id for each in above)

    def _is_live(self, session: Session) -> bool:
        return self._last_activity(session) >= self._now() - self.timing.timeout

    def _last_activity(self, session: Session) -> float:
        session_id = session.session_id
        known = self._touched.get(session_id) or self._being_written.get(session_id, 0.0)
        return max(session.last_activity, known)


def check_session_id(text: str) -> None:
    """Raises `ValidationFailed` for what cannot be one."""
    if not is_session_id(text):
        shown = shortened(text, length=100)
        raise ValidationFailed(f"'{shown}' is no session ID: use one that create_task returned")
