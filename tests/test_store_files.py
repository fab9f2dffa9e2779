"""The files of the store: for their owner only; whatever becomes of them, nothing acknowledged is in the wrong one."""

import errno
import logging
import os
import sqlite3
import stat
import sys
from pathlib import Path

import pytest
import trio.testing

from modes_actor.store.files import opening
from modes_actor.store.trouble import trouble_with
from modes_actor.wire.errors import InternalError, RequestError, Retryable, Unavailable
from tests.test_store import Gate, adding, notes, notes_in, opened

GARBAGE = b"This is a shopping list: bread, milk, and nothing that SQLite would like. " * 100


def bits(path: Path) -> int:
    return stat.S_IMODE(os.stat(path).st_mode)


def files(path: Path) -> set[str]:
    return set(os.listdir(path.parent))


def fill(connection: sqlite3.Connection) -> None:
    """SQLite's own limit stands for the disk's: the error is the same."""
    connection.execute("PRAGMA max_page_count = 5")
    adding("x" * 100_000)(connection)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has other rights")
async def test_only_the_owner_may_read_what_is_made(tmp_path: Path) -> None:
    """The directory, the file and its companions, even where everything else is open to all."""
    path = tmp_path / "above" / "kept" / "notes.db"
    before = os.umask(0)
    try:
        async with opened(path) as store:
            await store.write(adding("one"))
            assert files(path) == {"notes.db", "notes.db-wal", "notes.db-shm"}
            assert {bits(path.with_name(name)) for name in files(path)} == {0o600}
            assert bits(path.parent) == 0o700
    finally:
        os.umask(before)


async def test_a_link_leads_to_the_file(tmp_path: Path) -> None:
    """Even to one that is not there yet; the companions are beside the file, where every process looks for them."""
    link, real = tmp_path / "link.db", tmp_path / "elsewhere" / "real.db"
    os.symlink(real, link)
    async with opened(link) as store:
        await store.write(adding("one"))
        assert files(real) == {"real.db", "real.db-wal", "real.db-shm"}
        assert files(link) == {"link.db", "elsewhere"}
        assert store.read(notes) == ["one"]


async def test_durability_is_asked_for(tmp_path: Path) -> None:
    """WAL, and a sync with every commit."""
    async with opened(tmp_path / "notes.db") as store:

        def settings(connection: sqlite3.Connection) -> list[object]:
            return [connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("journal_mode", "synchronous")]

        assert await store.write(settings) == ["wal", 2]


@pytest.mark.parametrize("first", ["read", "write"])
async def test_what_is_no_database_is_set_aside(tmp_path: Path, first: str, caplog: pytest.LogCaptureFixture) -> None:
    """Renamed with its companions, told in the log; a new one takes its place, and older ones keep theirs."""
    path = tmp_path / "notes.db"
    for name, content in {"": GARBAGE, "-wal": b"its log", ".corrupt-1": b"an older one"}.items():
        path.with_name(f"notes.db{name}").write_bytes(content)
    async with opened(path) as store:
        if first == "read":
            assert store.read(notes) == []
        await store.write(adding("one"))
        assert store.read(notes) == ["one"]
    assert [record.levelno for record in caplog.records] == [logging.ERROR]
    assert str(path.with_name("notes.db.corrupt-2")) in caplog.text
    assert path.with_name("notes.db.corrupt-1").read_bytes() == b"an older one"
    assert path.with_name("notes.db.corrupt-2").read_bytes() == GARBAGE
    assert path.with_name("notes.db.corrupt-2-wal").read_bytes() == b"its log"


async def test_a_truncated_database_is_set_aside(tmp_path: Path) -> None:
    """Malformed is as bad as foreign."""
    path = tmp_path / "notes.db"
    async with opened(path) as store:
        await store.write(adding("one" * 10_000))
    os.truncate(path, os.stat(path).st_size // 2)
    async with opened(path) as store:
        assert store.read(notes) == []
    assert {"notes.db", "notes.db.corrupt-1"} <= files(path)


async def test_an_empty_file_is_an_empty_database(tmp_path: Path) -> None:
    """Somebody made it beforehand: that is no damage."""
    path = tmp_path / "notes.db"
    path.touch()
    async with opened(path) as store:
        await store.write(adding("one"))
    assert files(path) == {"notes.db"}


async def test_damage_met_later_is_an_error_per_call(tmp_path: Path) -> None:
    """Only for those who touch it; others of the same group go on, and the file stays where it is."""
    path = tmp_path / "notes.db"
    async with opened(path) as store:
        await store.write(adding("one"))
        await store.write(lambda connection: connection.execute("CREATE TABLE sound (id)"))
    connection = sqlite3.connect(path)
    (root,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'note'").fetchone()
    (page,) = connection.execute("PRAGMA page_size").fetchone()
    connection.close()
    content = bytearray(path.read_bytes())
    content[(root - 1) * page : root * page] = b"\xff" * page
    path.write_bytes(content)
    async with opened(path) as store:
        with pytest.raises(InternalError, match=r"`notes\.db` is damaged"):
            store.read(notes)
        with pytest.raises(InternalError, match="damaged"):
            await store.write(adding("two"))
        await store.write(lambda connection: connection.execute("INSERT INTO sound VALUES (1)"))
        assert store.read(lambda connection: connection.execute("SELECT * FROM sound").fetchall()) == [(1,)]
    assert files(path) == {"notes.db"}


@pytest.mark.skipif(sys.platform == "win32", reason="there an open file cannot be deleted")
@pytest.mark.parametrize("deleted", [["notes.db"], ["notes.db", "notes.db-wal", "notes.db-shm"]], ids=["alone", "all"])
async def test_a_deleted_file_is_begun_anew(tmp_path: Path, deleted: list[str]) -> None:
    """What is written after it was deleted is in the file that has the name, and reading agrees."""
    path = tmp_path / "notes.db"
    async with opened(path) as store:
        await store.write(adding("gone"))
        assert store.read(notes) == ["gone"]
        for name in deleted:
            os.unlink(tmp_path / name)
        await store.write(adding("kept"))
        assert store.read(notes) == ["kept"]
        assert notes_in(path) == ["kept"]


async def test_what_a_lost_database_left_is_kept_apart(tmp_path: Path) -> None:
    """SQLite would delete it as soon as a new database has the name."""
    path = tmp_path / "notes.db"
    path.with_name("notes.db-wal").write_bytes(b"its log")
    async with opened(path) as store:
        assert store.read(notes) == []
    assert path.with_name("notes.db.orphan-1-wal").read_bytes() == b"its log"


@pytest.mark.skipif(sys.platform == "win32", reason="there an open file cannot be replaced")
async def test_a_replaced_file_is_taken_as_it_is(tmp_path: Path) -> None:
    """What its predecessor left in the write-ahead log is not mixed into it."""
    path, backup = tmp_path / "notes.db", tmp_path / "backup.db"
    async with opened(backup) as store:
        await store.write(adding("from the backup"))
    async with opened(path) as store, opened(path) as other_window:
        await store.write(adding("before"))
        assert other_window.read(notes) == store.read(notes) == ["before"]
        os.replace(backup, path)
        assert store.read(notes) == ["from the backup"]
        await other_window.write(adding("after"))
        await store.write(adding("later"))
        assert other_window.read(notes) == ["from the backup", "after", "later"]
    assert notes_in(path) == ["from the backup", "after", "later"]


@pytest.mark.skipif(sys.platform == "win32", reason="there an open file cannot be deleted")
@pytest.mark.parametrize("suffix", ["", "-wal"])
async def test_a_change_is_not_acknowledged_in_a_file_deleted_under_it(tmp_path: Path, suffix: str) -> None:
    """Between the first look and the commit, too."""
    path = tmp_path / "notes.db"

    def delete(connection: sqlite3.Connection) -> None:
        adding("one")(connection)
        os.unlink(f"{path}{suffix}")

    async with opened(path) as store:
        with pytest.raises(Unavailable, match="deleted or replaced while this was being saved"):
            await store.write(delete)
        await store.write(adding("two"))
        assert "two" in store.read(notes)
        assert "two" in notes_in(path)


async def test_a_directory_that_cannot_be_made_is_an_error_per_call(tmp_path: Path) -> None:
    """The sentence names the file, not where it is; once the way is free, it works."""
    path = tmp_path / "taken" / "notes.db"
    path.parent.write_text("a file where a directory should be")
    async with opened(path) as store:
        for _ in range(2):
            with pytest.raises(
                RequestError, match=r"`notes\.db` cannot be opened: its directory cannot be made"
            ) as read:
                store.read(notes)
            with pytest.raises(RequestError, match="its directory cannot be made") as written:
                await store.write(adding("one"))
            assert str(tmp_path) not in f"{read.value} {written.value}"
        os.unlink(path.parent)
        await store.write(adding("one"))
        assert store.read(notes) == ["one"]


async def test_a_file_that_cannot_be_opened_is_an_error_per_call(tmp_path: Path) -> None:
    """A directory where the file should be; once it is gone, it works."""
    path = tmp_path / "notes.db"
    path.mkdir()
    async with opened(path) as store:
        with pytest.raises(InternalError, match=r"`notes\.db` cannot be opened"):
            store.read(notes)
        with pytest.raises(InternalError, match=r"`notes\.db` cannot be opened"):
            await store.write(adding("one"))
        os.rmdir(path)
        await store.write(adding("one"))
        assert store.read(notes) == ["one"]


async def test_a_full_database_is_retryable_and_spoils_nothing(tmp_path: Path) -> None:
    """It is said, the process lives on, and so does what was there."""
    async with opened(tmp_path / "notes.db") as store:
        await store.write(adding("one"))
        with pytest.raises(Unavailable, match=r"`notes\.db` cannot be written: the disk is full") as told:
            await store.write(fill)
        assert told.value.data == Retryable()
        await store.write(adding("two"))
        assert store.read(notes) == ["one", "two"]


async def test_whoever_failed_by_himself_hears_of_his_own_mistake(tmp_path: Path) -> None:
    """Not of the full disk that the rest of his group met later."""
    gate = Gate()

    async def mistaken() -> None:
        with pytest.raises(sqlite3.OperationalError, match="syntax"):
            await store.write(lambda connection: connection.execute("INSRT"))

    async def unlucky() -> None:
        with pytest.raises(Unavailable, match="full"):
            await store.write(fill)

    async with opened(tmp_path / "notes.db") as store:
        async with gate.closed(store) as nursery:
            for task in (mistaken, unlucky):
                nursery.start_soon(task)
                await trio.testing.wait_all_tasks_blocked()
        assert store.read(notes) == ["gate"]


async def test_a_read_only_database_is_an_error_per_call(tmp_path: Path) -> None:
    """Reading goes on."""
    async with opened(tmp_path / "notes.db") as store:
        await store.write(adding("one"))

        def refuse(connection: sqlite3.Connection) -> None:
            connection.execute("PRAGMA query_only = ON")
            adding("two")(connection)

        with pytest.raises(InternalError, match=r"`notes\.db` cannot be written: it is read-only"):
            await store.write(refuse)
        assert store.read(notes) == ["one"]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows needs no such lock")
async def test_opening_waits_for_whoever_is_opening(tmp_path: Path) -> None:
    """Making, migrating and setting aside is for one process at a time; who waits too long is told to come again."""
    pauses: list[float] = []
    path = tmp_path / "notes.db"
    async with opened(path, sleep=pauses.append, random=lambda: 1.0) as store:
        with opening(tmp_path):
            with pytest.raises(Unavailable, match="busy"):
                store.read(notes)
            assert 1 <= sum(pauses) < 1.1
            with pytest.raises(Unavailable, match="busy"):
                await store.write(adding("one"))
        assert files(path) == set()
        await store.write(adding("two"))
        assert store.read(notes) == ["two"]


def test_a_disk_that_fails_may_work_again_later() -> None:
    """It may be a quota, or a cable."""
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode = sqlite3.SQLITE_IOERR
    assert trouble_with("notes.db", error).retryable


def test_no_sentence_tells_a_path() -> None:
    """The name of the store is enough for a client; the log has the rest."""
    error = PermissionError(errno.EACCES, "Permission denied", "/secret/notes.db")
    assert "secret" not in trouble_with("notes.db", error).sentence
    assert "secret" not in trouble_with("notes.db", RuntimeError("/secret/notes.db")).sentence
