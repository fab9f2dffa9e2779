"""A look at a store's file: of one moment, beside who writes, and without a trace, whatever state the file is in."""

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from modes_actor.store.files import WAL
from modes_actor.store.migrations import Migration, migrate
from modes_actor.store.snapshot import Snapshot
from modes_actor.wire.errors import InternalError, Unavailable

ONE = Migration("numbers", 1, ("CREATE TABLE numbers (number INTEGER NOT NULL)",))
TWO = Migration("numbers", 2, ("CREATE TABLE more_numbers (number INTEGER NOT NULL)",))


def numbers(connection: sqlite3.Connection) -> list[int]:
    return [row[0] for row in connection.execute("SELECT number FROM numbers ORDER BY number")]


def add(number: int) -> Callable[[sqlite3.Connection], object]:
    return lambda connection: connection.execute("INSERT INTO numbers VALUES (?)", (number,))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a # strange?%20name" / "store.db"


@pytest.fixture
def writer(path: Path) -> Iterator[sqlite3.Connection]:
    """A process that has the file open, and has written 1 to it."""
    path.parent.mkdir()
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        migrate(connection, [ONE])
        add(1)(connection)
        yield connection


def files(path: Path) -> dict[str, bytes]:
    """All but SQLite's locks."""
    return {each.name: each.read_bytes() for each in path.parent.iterdir() if not each.name.endswith("-shm")}


def test_what_is_not_there_is_empty_and_is_not_made(path: Path) -> None:
    """Neither the file nor its directory."""
    with Snapshot(path, [ONE]) as snapshot:
        assert snapshot.read(numbers) == []
    assert not path.parent.exists()


@pytest.mark.parametrize("content", [b"", None], ids=["no byte", "no table"])
def test_a_file_that_is_just_being_made_is_empty(path: Path, content: bytes | None) -> None:
    """Somebody has opened it and is about to make the tables."""
    path.parent.mkdir()
    if content is None:
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute("PRAGMA journal_mode = WAL")
    else:
        path.write_bytes(content)
    before = files(path)
    with Snapshot(path, [ONE]) as snapshot:
        assert snapshot.read(numbers) == []
    assert files(path) == before


def test_it_shows_one_moment_while_others_write(path: Path, writer: sqlite3.Connection) -> None:
    """What is committed in between is for the next look; and nobody is kept from committing it."""
    with Snapshot(path, [ONE]) as snapshot:
        add(2)(writer)
        writer.execute("BEGIN IMMEDIATE")
        add(3)(writer)
        with Snapshot(path, [ONE]) as next_one:
            assert (snapshot.read(numbers), next_one.read(numbers)) == ([1], [1, 2])
        writer.execute("COMMIT")
        assert snapshot.read(numbers) == [1]
        assert numbers(writer) == [1, 2, 3]


def test_it_leaves_a_closed_file_as_it_is(path: Path, writer: sqlite3.Connection) -> None:
    """With nothing beside it."""
    writer.close()
    before = files(path), os.listdir(path.parent)
    with Snapshot(path, [ONE]) as snapshot:
        assert snapshot.read(numbers) == [1]
    assert (files(path), os.listdir(path.parent)) == before


def test_it_leaves_a_log_where_a_crash_left_it(path: Path, writer: sqlite3.Connection, tmp_path: Path) -> None:
    """To take it over is for the next who writes; but what is in it counts."""
    add(2)(writer)
    crashed = tmp_path / "crashed" / "store.db"
    crashed.parent.mkdir()
    for suffix in ("", WAL):
        Path(f"{crashed}{suffix}").write_bytes(Path(f"{path}{suffix}").read_bytes())
    before = files(crashed)
    with Snapshot(crashed, [ONE]) as snapshot:
        assert snapshot.read(numbers) == [1, 2]
    assert files(crashed) == before
    assert len(before) == 2


def test_it_cannot_write(path: Path, writer: sqlite3.Connection) -> None:
    """A slip in a query is an error, not a change."""
    writer.close()
    before = files(path)
    with Snapshot(path, [ONE]) as snapshot, pytest.raises(InternalError, match="read-only"):
        snapshot.read(add(2))
    assert files(path) == before


def test_what_a_query_raises_is_raised(path: Path) -> None:
    """It is the caller's own."""
    with Snapshot(path, [ONE]) as snapshot, pytest.raises(ZeroDivisionError):
        snapshot.read(lambda connection: 1 / 0)


@pytest.mark.parametrize(
    ("known", "sentence"),
    [
        ([ONE, TWO], "was written by an older version of modes-actor: the next server brings it up to date"),
        ([], "was written by a newer version of modes-actor: update modes-actor, or choose another storage path"),
    ],
    ids=["older", "newer"],
)
def test_a_file_of_another_version_is_not_read(
    path: Path, writer: sqlite3.Connection, known: list[Migration], sentence: str
) -> None:
    """Nor migrated."""
    before = files(path)
    with pytest.raises(InternalError) as caught:
        Snapshot(path, known)
    assert (caught.value.message, files(path)) == (f"The store `store.db` {sentence}", before)


def test_damage_is_named_when_it_is_met(path: Path, writer: sqlite3.Connection) -> None:
    """Also when the beginning of the file is still good."""
    writer.execute(
        "WITH RECURSIVE n(x) AS (SELECT 1 UNION SELECT x + 1 FROM n LIMIT 5000) INSERT INTO numbers SELECT x FROM n"
    )
    writer.close()
    content = path.read_bytes()
    page = 4096
    path.write_bytes(content[: 3 * page] + b"\xff" * (len(content) - 3 * page))
    with pytest.raises(InternalError) as caught, Snapshot(path, [ONE]) as snapshot:
        snapshot.read(numbers)
    assert caught.value.message == "The store `store.db` is damaged: the server's log has the details"


def test_a_busy_file_is_waited_for(path: Path, writer: sqlite3.Connection) -> None:
    """Until it is free, or for as long as anybody waits who writes."""
    writer.execute("PRAGMA locking_mode = EXCLUSIVE")
    add(2)(writer)
    waits: list[float] = []
    with pytest.raises(Unavailable, match="is busy"):
        Snapshot(path, [ONE], sleep=waits.append)
    assert sum(waits) >= 5

    def wait(_: float) -> None:
        writer.close()

    with Snapshot(path, [ONE], sleep=wait) as snapshot:
        assert snapshot.read(numbers) == [1, 2]
