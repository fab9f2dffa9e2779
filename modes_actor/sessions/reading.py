"""Sessions for who only looks: at those of a running server, or at a file in which others keep theirs.

Promises: nothing here counts as a use of a session, or writes anything.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Protocol, TypeVar

from modes_actor.sessions import tables
from modes_actor.sessions.model import Hierarchy, TaskRecord

if TYPE_CHECKING:
    from collections.abc import Callable
    from sqlite3 import Connection

    from modes_actor.sessions.model import Message, Session

T = TypeVar("T")


class Readable(Protocol):
    """The part of a store that looking needs."""

    def read(self, query: Callable[[Connection], T]) -> T: ...


class SessionReader:
    """What there is to say about a session that one has already."""

    def __init__(self, store: Readable, *, now: Callable[[], float] = time.time) -> None:
        self._readable = store
        self._now = now

    def record(self, session: Session, *, messages: bool = True, hierarchy: bool = True) -> TaskRecord:
        """Read at once: its parts are of one moment, whoever writes meanwhile."""

        def read(file: Connection) -> TaskRecord:
            session_id = session.session_id
            return TaskRecord(
                session,
                tables.mode_changes(file, session_id),
                tables.messages(file, session_id) if messages else None,
                _hierarchy(file, session) if hierarchy else None,
            )

        return self._readable.read(read)

    def children(self, session: Session) -> list[Session]:
        return self._readable.read(lambda file: tables.children(file, session.session_id))

    def seconds_idle(self, session: Session) -> float:
        """Before this use of it."""
        return max(0.0, self._now() - session.last_activity)

    def age(self, session: Session) -> float:
        return max(0.0, self._now() - session.created)


def _hierarchy(file: Connection, session: Session) -> Hierarchy:
    parent_id = session.task.parent_session_id
    parent = None if parent_id is None else tables.find(file, parent_id)
    return Hierarchy(parent, tables.children(file, session.session_id), tables.hierarchy(file, session))


class SessionsOnFile(SessionReader):
    """The sessions that a store has. What servers have not written yet of their latest uses is not known here."""

    def __init__(self, store: Readable, timeout: float, *, now: Callable[[], float] = time.time) -> None:
        super().__init__(store, now=now)
        self._timeout = timeout

    def live(self) -> list[Session]:
        """Those that have not expired, the one last used first."""
        since = self._now() - self._timeout
        return self._readable.read(lambda file: tables.recent(file, since=since, limit=-1))

    def named(self, name: str) -> list[Session]:
        """The live sessions that may be meant by an ID, a task's ID, or the beginning of one, with or without `sess_`.

        A whole ID means its own session alone.
        """
        _, has_kind, own = name.rpartition("_")
        if not own:
            return []  # the beginning of every ID
        session_id, task_id = (name, name) if has_kind else (f"sess_{name}", f"task_{name}")
        since = self._now() - self._timeout
        found = self._readable.read(
            lambda file: tables.beginning_with(file, session_id=session_id, task_id=task_id, since=since)
        )
        whole = [each for each in found if name in (each.session_id, each.task.task_id)]
        return whole or found

    def has_expired(self, name: str) -> bool:
        """Whether there was a session of this ID, or of a task of this ID, that is no longer live."""

        def has_expired(file: Connection) -> bool:
            session_id = tables.session_of_task(file, name) or name
            return tables.has_expired(file, session_id) or tables.find(file, session_id) is not None

        return self._readable.read(has_expired) and not self.named(name)

    def first_message(self, session: Session) -> Message | None:
        return self._readable.read(lambda file: tables.first_message(file, session.session_id))
