"""Sessions for who only looks: which are live, which of them a name means, and which are gone."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from sqlite3 import Connection
from typing import TypeVar

import pytest

from modes_actor.sessions.model import Hierarchy, Message, ModeChange, Node, Session, TaskRecord
from modes_actor.sessions.reading import SessionReader, SessionsOnFile
from modes_actor.sessions.sessions import Sessions, Timing
from modes_actor.sessions.tables import MIGRATIONS
from modes_actor.store.database import Store
from modes_actor.store.snapshot import Snapshot
from tests.task_records import messages, tree

T = TypeVar("T")

START = 1_000_000.0
TIMEOUT = 3600.0


class Desk:
    """A server's sessions, and somebody who looks over its shoulder."""

    def __init__(self, path: Path) -> None:
        self.time = START
        self.store = Store(path, MIGRATIONS)
        self.sessions = Sessions(self.store, Timing(timeout=TIMEOUT), now=lambda: self.time)
        self.reading = SessionsOnFile(self.store, TIMEOUT, now=lambda: self.time)

    async def create(self, message: str | None = None) -> Session:
        """One second younger than the one before."""
        self.time += 1
        return await self.sessions.create("code", message, None)

    def live(self) -> list[str]:
        return [each.session_id for each in self.reading.live()]


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    desk = Desk(tmp_path / "sessions.db")
    yield desk
    await desk.sessions.close()


async def test_the_live_are_those_that_have_not_expired(desk: Desk) -> None:
    """The one last used first; to the second."""
    first, second = await desk.create(), await desk.create()
    assert desk.live() == [second.session_id, first.session_id]
    desk.time = first.created + TIMEOUT
    assert desk.live() == [second.session_id, first.session_id]
    desk.time += 0.5
    assert desk.live() == [second.session_id]


async def test_what_is_looked_at_expires_all_the_same(desk: Desk) -> None:
    """In every way there is to look."""
    session = await desk.create("hello")
    desk.time += TIMEOUT
    reading = desk.reading
    assert [reading.named(session.session_id), reading.first_message(session), len(tree(reading, session))] == [
        [session],
        Message("user", "hello", session.created),
        1,
    ]
    await desk.sessions.flush()
    desk.time += 1
    assert (desk.live(), reading.named(session.session_id)) == ([], [])


async def test_a_name_is_an_id_or_its_beginning(desk: Desk) -> None:
    """A session's or a task's, with or without what all IDs of a kind begin with."""
    await desk.create()
    session = await desk.create()
    ids = session.session_id, session.task.task_id
    names = [*ids, *(each[:14] for each in ids), *(each[5:14] for each in ids)]
    assert [desk.reading.named(name) for name in names] == [[session]] * len(names)


async def test_what_all_ids_begin_with_is_no_name(desk: Desk) -> None:
    """Not even where there is one session only; nor is any wildcard."""
    session = await desk.create()
    names = ["", "_", "s", "sess", "sess_", "task_", "%", "sess_%", "*", "sess_*", session.session_id.upper()]
    assert [desk.reading.named(name) for name in names] == [[]] * len(names)


async def test_who_was_there_is_told_apart_from_who_never_was(desk: Desk) -> None:
    """Closed, cleaned up, or only too old; a live one has not expired."""
    old = await desk.create()
    desk.time += TIMEOUT * 2
    cleaned = await desk.create()
    desk.time += TIMEOUT * 2
    await desk.sessions.clean_up()
    late = await desk.create()
    desk.time += TIMEOUT + 1
    closed, live = await desk.create(), await desk.create()
    await desk.sessions.destroy(closed.session_id)

    def expired(session: Session) -> list[bool]:
        return [desk.reading.has_expired(name) for name in (session.session_id, session.task.task_id)]

    assert [expired(each) for each in (old, cleaned, late, closed)] == [[True, True]] * 4
    assert expired(live) == [False, False]
    assert not desk.reading.has_expired(f"sess_{'0' * 32}")


async def test_a_record_is_of_one_moment(desk: Desk) -> None:
    """Its parts are read at once, so that no commit of others comes in between."""
    session = await desk.create("hello")
    reads: list[object] = []

    class Counting:
        def read(self, query: Callable[[Connection], T]) -> T:
            reads.append(query)
            return desk.store.read(query)

    record = SessionReader(Counting()).record(session)
    assert (len(reads), record) == (
        1,
        TaskRecord(
            session,
            [ModeChange("code", None, session.created)],
            [Message("user", "hello", session.created)],
            Hierarchy(None, [], [Node(session.session_id, session.task.task_id, "code", "active", None, 0)]),
        ),
    )


async def test_a_snapshot_is_as_good_as_a_store(desk: Desk, tmp_path: Path) -> None:
    """It is what a command looks at, from another process."""
    session = await desk.create("hello")
    with Snapshot(tmp_path / "sessions.db", MIGRATIONS) as snapshot:
        await desk.sessions.destroy(session.session_id)
        reading = SessionsOnFile(snapshot, TIMEOUT, now=lambda: desk.time)
        assert (reading.live(), messages(reading, session)) == ([session], [Message("user", "hello", session.created)])
        assert (reading.age(session), reading.seconds_idle(session)) == (0.0, 0.0)
    assert desk.live() == []
