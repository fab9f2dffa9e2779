"""Migrations: each is applied once, whole, and never to a file that knows more than we do."""

import hashlib
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from modes_actor.store.database import Store
from modes_actor.store.migrations import TABLE, Migration, NewerSchema, check_numbering, migrate
from modes_actor.wire.errors import InternalError
from tests.test_store import NOTES, adding, notes, opened

TAGS = Migration("tags", 1, ("CREATE TABLE tag (id INTEGER PRIMARY KEY)",))
DATED = Migration("notes", 2, ("ALTER TABLE note ADD COLUMN date TEXT", "CREATE INDEX note_date ON note (date)"))


@pytest.fixture
def connection() -> Iterator[sqlite3.Connection]:
    made = sqlite3.connect(":memory:", isolation_level=None)
    yield made
    made.close()


def records(connection: sqlite3.Connection) -> list[tuple[str, int]]:
    return connection.execute(f"SELECT room, number FROM {TABLE} ORDER BY room, number").fetchall()


def tables(connection: sqlite3.Connection) -> set[str]:
    return {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}


def test_each_migration_is_applied_once(connection: sqlite3.Connection) -> None:
    """A second time there is nothing to do; a new one is added to those before."""
    migrate(connection, NOTES)
    migrate(connection, NOTES)
    migrate(connection, [*NOTES, DATED, TAGS])
    assert records(connection) == [("notes", 1), ("notes", 2), ("tags", 1)]
    assert connection.execute("SELECT date FROM note").fetchall() == []


def test_a_migration_and_its_record_are_one_transaction(connection: sqlite3.Connection) -> None:
    """Between the statements of one there is no COMMIT."""
    statements: list[str] = []
    connection.set_trace_callback(statements.append)
    migrate(connection, NOTES)
    changing = [statement.split(" ")[0] for statement in statements if not statement.startswith("SELECT")]
    assert changing == ["BEGIN", "CREATE", "CREATE", "INSERT", "COMMIT"]


def test_a_migration_that_fails_halfway_leaves_nothing(connection: sqlite3.Connection) -> None:
    """Those before it stay; it can be tried again."""
    broken = Migration("notes", 2, ("CREATE TABLE half (id INTEGER)", "CREATE TABLE note (id INTEGER)"))
    with pytest.raises(sqlite3.OperationalError, match="already exists"):
        migrate(connection, [*NOTES, broken])
    assert (records(connection), tables(connection)) == ([("notes", 1)], {"note", TABLE})
    migrate(connection, [*NOTES, DATED])
    assert records(connection) == [("notes", 1), ("notes", 2)]


def test_a_migration_that_somebody_else_applied_meanwhile_is_left_out(tmp_path: Path) -> None:
    """The other process comes in after we looked and before we began."""
    first, second = (sqlite3.connect(tmp_path / "notes.db", isolation_level=None) for _ in range(2))

    def meanwhile(statement: str) -> None:
        if statement == "BEGIN IMMEDIATE":
            first.set_trace_callback(None)
            migrate(second, NOTES)

    first.set_trace_callback(meanwhile)
    migrate(first, NOTES)
    assert records(first) == [("notes", 1)]
    first.close()
    second.close()


@pytest.mark.parametrize("newer", [[*NOTES, DATED], [*NOTES, TAGS]], ids=["a higher number", "an unknown room"])
async def test_a_newer_schema_is_refused(tmp_path: Path, newer: list[Migration]) -> None:
    """Every use says so, nobody is told to send it again, and not a byte of the file is changed."""
    path = tmp_path / "notes.db"
    async with opened(path, tuple(newer)) as store:
        await store.write(adding("kept"))
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA journal_mode = DELETE")  # which we would change, too
    connection.close()
    before = hashlib.sha256(path.read_bytes()).digest()
    async with opened(path) as store:
        for _ in range(2):
            with pytest.raises(
                InternalError, match=r"`notes\.db` was written by a newer version of modes-actor"
            ) as told:
                store.read(notes)
            assert told.type is InternalError
            with pytest.raises(InternalError, match="newer version") as told:
                await store.write(adding("lost"))
            assert told.type is InternalError
    assert hashlib.sha256(path.read_bytes()).digest() == before
    assert os.listdir(tmp_path) == ["notes.db"]


async def test_a_schema_that_becomes_newer_while_it_is_in_use_is_refused(tmp_path: Path) -> None:
    """The other window may run a newer version: from then on this one keeps its hands off."""
    path = tmp_path / "notes.db"
    async with opened(path) as store, opened(path, (*NOTES, DATED)) as newer:
        await store.write(adding("one"))
        assert store.read(notes) == ["one"]
        await newer.write(adding("two"))
        with pytest.raises(InternalError, match="newer version"):
            store.read(notes)
        with pytest.raises(InternalError, match="newer version"):
            await store.write(adding("three"))
        assert newer.read(notes) == ["one", "two"]


async def test_a_schema_changed_by_hand_is_no_newer_one(tmp_path: Path) -> None:
    """An index somebody added is no reason to stop."""
    path = tmp_path / "notes.db"
    async with opened(path) as store:
        await store.write(adding("one"))
        other = sqlite3.connect(path)
        other.execute("CREATE INDEX mine ON note (text)")
        other.close()
        assert store.read(notes) == ["one"]
        assert await store.write(adding("two")) == 2


@pytest.mark.parametrize("where", ["in a file", "in memory"])
async def test_a_migration_that_fails_is_an_error_per_call(tmp_path: Path, where: str) -> None:
    """It is our bug: the client learns that the store failed, and the log has the rest."""
    path = tmp_path / "notes.db" if where == "in a file" else None
    async with opened(path, (Migration("notes", 1, ("CREATE TABEL note",)),)) as store:
        for _ in range(2):
            with pytest.raises(InternalError, match="failed: the server's log has the details"):
                store.read(notes)
            with pytest.raises(InternalError, match="failed: the server's log has the details"):
                await store.write(adding("one"))


@pytest.mark.parametrize("numbers", [[2], [1, 3], [1, 1], [2, 1], [0]])
def test_a_room_that_miscounts_is_told_at_once(numbers: list[int]) -> None:
    """Before any file is touched."""
    with pytest.raises(ValueError, match="Migration"):
        Store(None, [Migration("notes", number, ()) for number in numbers])


def test_what_is_refused_is_named(connection: sqlite3.Connection) -> None:
    """For the log: which room, which number."""
    migrate(connection, [*NOTES, DATED, TAGS])
    with pytest.raises(NewerSchema, match="notes 2, tags 1"):
        migrate(connection, NOTES)


def test_each_room_counts_for_itself() -> None:
    """In whatever order they are brought."""
    check_numbering([Migration("notes", 1, ()), TAGS, Migration("notes", 2, ())])
