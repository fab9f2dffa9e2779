"""The store: what is read is current, what is written is durable, and one commit serves all who wait for it."""

import itertools
import math
import os
import sqlite3
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from modes_actor.store import groups
from modes_actor.store.backends import FileBackend
from modes_actor.store.database import Store
from modes_actor.store.groups import APPLIED_AT_ONCE
from modes_actor.store.migrations import Migration
from modes_actor.wire.errors import InvalidParams, Unavailable

NOTES = (Migration("notes", 1, ("CREATE TABLE note (id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE)",)),)


@asynccontextmanager
async def opened(path: Path | None, migrations: tuple[Migration, ...] = NOTES, **knobs: Any) -> AsyncIterator[Store]:
    store = Store(path, migrations, **knobs)
    try:
        yield store
    finally:
        await store.aclose()


def adding(text: str) -> Callable[[sqlite3.Connection], int | None]:
    return lambda connection: connection.execute("INSERT INTO note (text) VALUES (?)", (text,)).lastrowid


def notes(connection: sqlite3.Connection) -> list[str]:
    return [text for (text,) in connection.execute("SELECT text FROM note ORDER BY id")]


def notes_in(path: Path) -> list[str]:
    """What somebody else finds in the file."""
    connection = sqlite3.connect(path)
    try:
        return notes(connection)
    finally:
        connection.close()


class Gate:
    """A change that is made, and whose commit does not end until it is let go."""

    def __init__(self) -> None:
        self._entered = trio.Event()
        self._opened = threading.Event()

    def change(self, connection: sqlite3.Connection) -> None:
        adding("gate")(connection)
        connection.set_authorizer(self._wait_at_commit)

    def _wait_at_commit(self, action: int, operation: str | None, *_: object) -> int:
        if (action, operation) == (sqlite3.SQLITE_TRANSACTION, "COMMIT"):
            trio.from_thread.run_sync(self._entered.set)
            self._opened.wait()
        return sqlite3.SQLITE_OK

    @asynccontextmanager
    async def closed(self, store: Store) -> AsyncIterator[trio.Nursery]:
        """While the body runs, a commit is under way and cannot end."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(store.write, self.change)
            await self._entered.wait()
            try:
                yield nursery
            finally:
                self._opened.set()


@pytest.fixture(params=["in a file", "in memory"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Path | None:
    return tmp_path / "notes.db" if request.param == "in a file" else None


async def test_what_was_written_is_read_at_once(place: Path | None) -> None:
    """`write` returns what the change returned, and a read right after it sees it."""
    async with opened(place) as store:
        assert store.read(notes) == []
        assert await store.write(adding("one")) == 1
        assert store.read(notes) == ["one"]


async def test_what_another_process_committed_is_read_at_once(tmp_path: Path) -> None:
    """Every read has a snapshot of its own: nothing is remembered from the last."""
    path = tmp_path / "notes.db"
    async with opened(path) as store:
        assert store.read(notes) == []
        insert = "INSERT INTO note (text) VALUES ('from elsewhere')"
        source = f"import sqlite3; sqlite3.connect({str(path)!r}).executescript({insert!r})"
        await trio.run_process([sys.executable, "-c", source])
        assert store.read(notes) == ["from elsewhere"]


async def test_a_read_is_one_snapshot(tmp_path: Path) -> None:
    """Two queries of one read agree, whatever is committed between them."""
    async with opened(tmp_path / "notes.db") as store:
        await store.write(adding("one"))

        def twice(connection: sqlite3.Connection) -> list[list[str]]:
            before = notes(connection)
            other = sqlite3.connect(tmp_path / "notes.db")
            adding("two")(other)
            other.commit()
            other.close()
            return [before, notes(connection)]

        assert store.read(twice) == [["one"], ["one"]]
        assert store.read(notes) == ["one", "two"]


async def test_a_read_cannot_write(place: Path | None) -> None:
    """It is the reader's mistake, and nothing comes of it."""
    async with opened(place) as store:
        with pytest.raises(sqlite3.OperationalError, match="readonly"):
            store.read(adding("one"))
        assert store.read(notes) == []
        assert await store.write(adding("two")) == 1


async def test_what_gathers_during_a_commit_is_one_commit(tmp_path: Path) -> None:
    """A hundred who wait cost one transaction, not a hundred."""
    statements: list[str] = []
    gate = Gate()
    async with opened(tmp_path / "notes.db") as store:
        await store.write(lambda connection: connection.set_trace_callback(statements.append))
        statements.clear()
        async with gate.closed(store) as nursery:
            for number in range(100):
                nursery.start_soon(store.write, adding(str(number)))
            await trio.testing.wait_all_tasks_blocked()
        assert [statement for statement in statements if statement in {"BEGIN IMMEDIATE", "COMMIT"}] == [
            "BEGIN IMMEDIATE",
            "COMMIT",
        ] * 2
        assert len(store.read(notes)) == 101
        await store.write(lambda connection: connection.set_trace_callback(None))


async def test_changes_run_where_they_were_asked_for_and_only_the_disk_is_waited_for_elsewhere(
    place: Path | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two threads that share an interpreter would wait for each other longer than the changes take."""
    monkeypatch.setattr(groups, "TURN_SECONDS", math.inf)
    ran: list[int] = []

    async with opened(place) as store, trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(store.write, lambda connection: ran.append(threading.get_ident()))
    assert ran == [threading.get_ident()] * 3


@pytest.mark.parametrize("is_slow", [False, True])
async def test_from_the_first_change_that_lasts_on_a_group_runs_elsewhere(
    is_slow: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Be it known beforehand or found out. The order stays, and it is still one commit."""
    monkeypatch.setattr(groups, "TURN_SECONDS", math.inf)
    statements: list[str] = []
    ran: list[bool] = []
    here = threading.get_ident()

    def note(connection: sqlite3.Connection) -> None:
        ran.append(threading.get_ident() == here)
        if is_slow and len(ran) == 2:
            monkeypatch.setattr(groups, "TURN_SECONDS", -1.0)

    async with opened(tmp_path / "notes.db") as store:
        await store.write(lambda connection: connection.set_trace_callback(statements.append))
        statements.clear()
        async with Gate().closed(store) as nursery:
            for number in range(4):
                nursery.start_soon(partial(store.write, note, may_last=number == 2 and not is_slow))
                await trio.testing.wait_all_tasks_blocked()
    assert ran == [True, True, False, False]
    assert statements.count("COMMIT") == 2


async def test_nothing_goes_to_the_disk_before_the_commit(tmp_path: Path) -> None:
    """However much a change writes: the disk is waited for in a thread."""
    path = tmp_path / "notes.db"
    log = path.with_name(f"{path.name}-wal")

    def change(connection: sqlite3.Connection) -> int:
        adding("x" * 10_000_000)(connection)
        return log.stat().st_size

    async with opened(path) as store:
        await store.write(adding("small"))
        before = log.stat().st_size
        assert await store.write(change) == before
        assert log.stat().st_size > before + 10_000_000


async def test_what_could_not_even_be_given_up_is_not_acknowledged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C in an embedding program may come at any moment; nobody knows then what was kept."""

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    outcomes: list[str] = []

    async def write(store: Store, text: str) -> None:
        try:
            await store.write(adding(text))
            outcomes.append("acknowledged")
        except Unavailable:
            outcomes.append("unavailable")
        except KeyboardInterrupt:
            outcomes.append("interrupted")

    async with opened(tmp_path / "notes.db") as store:
        await store.write(adding("before"))
        monkeypatch.setattr(FileBackend, "commit", interrupted)
        monkeypatch.setattr(FileBackend, "give_up", interrupted)
        async with trio.open_nursery() as nursery:
            for text in ("one", "two", "three"):
                nursery.start_soon(write, store, text)
    assert sorted(outcomes) == ["interrupted", "unavailable", "unavailable"]


async def test_the_changes_of_a_large_group_let_others_have_their_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many have gathered, nothing else waits for more than a few of them."""
    monkeypatch.setattr(groups, "TURN_SECONDS", math.inf)
    happened: list[str] = []
    gate = Gate()

    async def go_on() -> None:
        while True:
            happened.append("other")
            await trio.lowlevel.checkpoint()

    async with opened(tmp_path / "notes.db") as store, trio.open_nursery() as others:
        async with gate.closed(store) as nursery:
            for _ in range(10 * APPLIED_AT_ONCE):
                nursery.start_soon(store.write, lambda connection: happened.append("change"))
            await trio.testing.wait_all_tasks_blocked()
            others.start_soon(go_on)
        others.cancel_scope.cancel()
    runs = [len(list(same)) for what, same in itertools.groupby(happened) if what == "change"]
    assert sum(runs) == 10 * APPLIED_AT_ONCE
    assert max(runs) <= 2 * APPLIED_AT_ONCE  # whose turn is first is different each time


async def test_those_who_come_together_share_the_first_commit(tmp_path: Path) -> None:
    """The first one does not run off alone: whoever is ready in the same moment comes along."""
    statements: list[str] = []
    async with opened(tmp_path / "notes.db") as store:
        await store.write(lambda connection: connection.set_trace_callback(statements.append))
        statements.clear()
        async with trio.open_nursery() as nursery:
            for number in range(10):
                nursery.start_soon(store.write, adding(str(number)))
        assert statements.count("COMMIT") == 1
        await store.write(lambda connection: connection.set_trace_callback(None))


async def test_changes_run_in_the_order_they_were_brought(place: Path | None) -> None:
    """Across groups too."""
    called: list[str] = []

    async def write_some(task: int) -> None:
        for number in range(5):
            called.append(f"{task}.{number}")
            await store.write(adding(called[-1]))

    async with opened(place) as store:
        async with trio.open_nursery() as nursery:
            for task in range(20):
                nursery.start_soon(write_some, task)
        assert store.read(notes) == called


class Stop(BaseException):
    """Not even an Exception."""


@pytest.mark.parametrize("error", [ValueError("no"), Stop(), InvalidParams("no"), OSError(28, "not the store's disk")])
async def test_a_change_that_raises_leaves_the_others_alone(place: Path | None, error: BaseException) -> None:
    """Its caller gets what it raised; nothing of it is done; all else is."""
    raised: list[BaseException] = []

    def half(connection: sqlite3.Connection) -> None:
        adding("half")(connection)
        raise error

    async def fail() -> None:
        try:
            await store.write(half)
        except BaseException as caught:
            raised.append(caught)

    async with opened(place) as store:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(store.write, adding("one"))
            nursery.start_soon(fail)
            nursery.start_soon(store.write, adding("two"))
        assert raised == [error]
        assert sorted(store.read(notes)) == ["one", "two"]


async def test_a_statement_that_fails_is_its_authors_own(place: Path | None) -> None:
    """A violated constraint or a slip in the SQL comes back as SQLite says it, from both sides."""
    async with opened(place) as store:
        await store.write(adding("one"))
        with pytest.raises(sqlite3.IntegrityError):
            await store.write(adding("one"))
        with pytest.raises(sqlite3.OperationalError, match="syntax"):
            await store.write(lambda connection: connection.execute("INSRT"))
        with pytest.raises(sqlite3.OperationalError, match="no such table"):
            store.read(lambda connection: connection.execute("SELECT * FROM nowhere"))
        with pytest.raises(KeyError):
            store.read(lambda connection: dict(connection.execute("SELECT 1, 2"))["nothing"])
        assert store.read(notes) == ["one"]


async def test_a_change_that_ends_the_transaction_is_told_so(
    place: Path | None, caplog: pytest.LogCaptureFixture
) -> None:
    """Whoever commits inside a group has broken it: nobody in it is told that all is well, and the log names him."""
    async with opened(place) as store:
        with pytest.raises(Exception, match="failed: the server's log has the details"):
            await store.write(sqlite3.Connection.commit)
        assert "TransactionEnded: by <method 'commit'" in caplog.text
        assert await store.write(adding("one")) == 1


async def test_a_change_cancelled_before_its_turn_never_runs(tmp_path: Path) -> None:
    """The others behind it do."""
    gate = Gate()
    scope = trio.CancelScope()

    async def first() -> None:
        with scope:
            await store.write(adding("cancelled"))

    async with opened(tmp_path / "notes.db") as store:
        async with gate.closed(store) as nursery:
            nursery.start_soon(first)
            await trio.testing.wait_all_tasks_blocked()
            nursery.start_soon(store.write, adding("behind"))
            await trio.testing.wait_all_tasks_blocked()
            scope.cancel()
            await trio.testing.wait_all_tasks_blocked()
        assert scope.cancelled_caught
        assert store.read(notes) == ["gate", "behind"]


async def test_a_change_of_a_cancelled_caller_never_runs(place: Path | None) -> None:
    """The lead goes on to the next."""
    async with opened(place) as store:
        with trio.CancelScope() as scope:
            scope.cancel()
            await store.write(adding("cancelled"))
        assert scope.cancelled_caught
        await store.write(adding("next"))
        assert store.read(notes) == ["next"]


async def test_whoever_is_cancelled_as_the_lead_falls_to_it_hands_it_on(tmp_path: Path) -> None:
    """Any of them may be cancelled at any moment: whoever is not gets its answer, and what is answered is there."""
    path = tmp_path / "notes.db"
    answered: list[str] = []

    async def write(text: str, scope: trio.CancelScope) -> None:
        with scope:
            await store.write(adding(text))
            answered.append(text)

    async with opened(path) as store:
        for turns in range(30):
            scopes = [trio.CancelScope() for _ in range(4)]
            async with trio.open_nursery() as nursery:
                for number, scope in enumerate(scopes):
                    nursery.start_soon(write, f"{turns}.{number}", scope)
                for _ in range(turns % 6):
                    await trio.lowlevel.checkpoint()
                for scope in scopes[:3]:
                    scope.cancel()
            assert f"{turns}.3" in answered
        assert set(answered) <= set(store.read(notes))


async def test_a_change_under_way_is_carried_through(tmp_path: Path) -> None:
    """The one that leads stays until its commit is there, cancelled or not."""
    gate = Gate()
    async with opened(tmp_path / "notes.db") as store:
        async with gate.closed(store) as nursery:
            nursery.cancel_scope.cancel()
        assert store.read(notes) == ["gate"]


async def test_a_process_that_can_start_no_thread_is_retryable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All who waited are told, and the next one finds the way free."""

    async def no_thread(*_: object, **__: object) -> None:
        await trio.lowlevel.checkpoint()
        raise RuntimeError("can't start new thread")

    async def fail() -> None:
        with pytest.raises(Unavailable, match="cannot be written now"):
            await store.write(adding("lost"))

    async with opened(tmp_path / "notes.db") as store:
        with monkeypatch.context() as patch:
            patch.setattr(trio.to_thread, "run_sync", no_thread)
            async with trio.open_nursery() as nursery:
                for _ in range(3):
                    nursery.start_soon(fail)
        await store.write(adding("kept"))
        assert store.read(notes) == ["kept"]


async def test_closing_finishes_what_was_brought(tmp_path: Path) -> None:
    """After it nothing is taken in any more, and the file is whole by itself."""
    path = tmp_path / "notes.db"
    gate = Gate()
    store = Store(path, NOTES)
    async with gate.closed(store) as nursery:
        nursery.start_soon(store.write, adding("pending"))
        await trio.testing.wait_all_tasks_blocked()
        nursery.start_soon(store.aclose)
        await trio.testing.wait_all_tasks_blocked()
        with pytest.raises(Unavailable):
            await store.write(adding("late"))
    with pytest.raises(Unavailable):
        store.read(notes)
    assert os.listdir(tmp_path) == ["notes.db"]
    assert notes_in(path) == ["gate", "pending"]
    await store.aclose()


async def test_memory_is_not_written_to_a_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a database nor a temporary file; and every store in memory is one of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SQLITE_TMPDIR", str(tmp_path))
    async with opened(None) as store, opened(None) as other:
        for number in range(100):
            await store.write(adding(f"{number}" * 10_000))
        assert store.read(lambda connection: len(notes(connection))) == 100
        assert other.read(notes) == []
        assert os.listdir(tmp_path) == []


def test_nothing_is_imported_or_made_before_the_first_use(tmp_path: Path) -> None:
    """Start-up does not pay for a store that nobody has used yet, nor does closing it."""
    path = tmp_path / "not yet" / "notes.db"
    source = f"""
import sys, trio
from pathlib import Path
from modes_actor.store.database import Store
from modes_actor.store.migrations import Migration
for place in (Path({str(path)!r}), None):
    trio.run(Store(place, [Migration("notes", 1, ("CREATE TABLE note (id)",))]).aclose)
sys.exit("sqlite3" in sys.modules)
"""
    subprocess.run([sys.executable, "-c", source], check=True)
    assert list(tmp_path.iterdir()) == []
