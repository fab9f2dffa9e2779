"""Several processes on one file, processes that are killed, and file systems that refuse: nothing acknowledged is lost.

The lower half runs in the children.
"""

import os
import sqlite3
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import pytest
import trio

from modes_actor.store import backends
from modes_actor.store.database import Store
from modes_actor.store.migrations import TABLE
from modes_actor.wire.errors import RequestError, Retryable, Unavailable
from tests.process import PATIENCE, ROOT, program
from tests.test_store import NOTES, adding, notes, notes_in, opened

posix_only = pytest.mark.skipif(sys.platform == "win32", reason="signals, limits and users as POSIX has them")


@contextmanager
def child(call: str) -> Iterator[subprocess.Popen[str]]:
    """A process that calls a function of this module; ended, if need be, when the body is done."""
    command = program(f"from tests import test_store_processes as here; here.{call}")
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        watchdog = threading.Timer(PATIENCE, process.kill)
        watchdog.start()
        try:
            yield process
        finally:
            watchdog.cancel()
            process.kill()


def said_by(call: str) -> list[str]:
    with child(call) as process:
        output, _ = process.communicate()
        assert process.returncode == 0
        return output.splitlines()


@contextmanager
def locked(path: Path) -> Iterator[sqlite3.Connection]:
    """Another process is in the middle of a transaction."""
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    try:
        yield other
    finally:
        other.close()


@posix_only
def test_no_acknowledged_change_is_lost_by_a_kill(tmp_path: Path) -> None:
    """Killed under load, again and again, on one file."""
    path = tmp_path / "notes.db"
    acknowledged: set[str] = set()
    for life in range(6):
        with child(f"write_forever({str(path)!r}, {life})") as process:
            assert process.stdout is not None
            for _ in range(100 + 150 * life):
                acknowledged.add(process.stdout.readline().rstrip("\n"))
            process.kill()
            # The last line may be cut off; the others were written whole.
            acknowledged.update(line.rstrip("\n") for line in process.stdout if line.endswith("\n"))
        assert len(acknowledged) > 100 * life
        assert acknowledged <= set(notes_in(path))
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    connection.close()


def test_two_processes_open_migrate_and_write_at_once(tmp_path: Path) -> None:
    """Neither loses anything, and neither is told that the other was in the way."""
    path = tmp_path / "new" / "notes.db"
    with child(f"write_many({str(path)!r}, 'a')") as first, child(f"write_many({str(path)!r}, 'b')") as second:
        for process in (first, second):
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        for process in (first, second):
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        assert [process.wait() for process in (first, second)] == [0, 0]
    assert sorted(notes_in(path)) == sorted(f"{name}{number}" for name in "ab" for number in range(500))
    connection = sqlite3.connect(path)
    assert connection.execute(f"SELECT room, number FROM {TABLE}").fetchall() == [("notes", 1)]
    connection.close()


async def test_a_busy_file_is_waited_for(tmp_path: Path) -> None:
    """Longer each time, until the other one is done."""
    path = tmp_path / "notes.db"
    pauses: list[float] = []

    def sleep(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 5:
            other.execute("COMMIT")

    async with opened(path, sleep=sleep, random=lambda: 1.0) as store:
        store.read(notes)
        with locked(path) as other:
            adding("theirs")(other)
            await store.write(adding("ours"))
        assert store.read(notes) == ["theirs", "ours"]
    assert pauses == [0.001, 0.002, 0.004, 0.008, 0.016]


async def test_a_file_that_stays_busy_is_retryable(tmp_path: Path) -> None:
    """After some five seconds everybody in the group is told; nothing has run, and reading was possible meanwhile."""
    path = tmp_path / "notes.db"
    pauses: list[float] = []
    told: list[Unavailable] = []
    ran: list[str] = []

    async def write() -> None:
        with pytest.raises(Unavailable, match=r"`notes\.db` is busy") as error:
            await store.write(lambda connection: ran.append("ran"))
        told.append(error.value)

    async with opened(path, sleep=pauses.append, random=lambda: 0.0) as store:
        store.read(notes)
        with locked(path):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(write)
                nursery.start_soon(write)
            assert store.read(notes) == []
        assert [error.data for error in told] == [Retryable(), Retryable()]
        assert 5 <= sum(pauses) < 5.1
        assert ran == []
        assert await store.write(adding("later")) == 1


async def test_at_the_end_others_are_waited_for_no_longer_than_there_is_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All groups together, but for a moment that each of them gets."""
    path = tmp_path / "notes.db"
    pauses: list[float] = []
    clock = [100.0]
    monkeypatch.setattr(backends, "monotonic", lambda: clock[0])
    async with opened(path, sleep=pauses.append, random=lambda: 0.0) as store:
        await store.write(adding("before"))
        waited = []
        with locked(path):
            store.end_within(3.0)
            for clock[0] in (100.0, 102.0, 104.0):
                pauses.clear()
                with pytest.raises(Unavailable):
                    await store.write(adding("too late"))
                waited.append(sum(pauses))
        assert waited == pytest.approx([3.0, 1.0, 0.2], abs=0.05)
        await store.write(adding("after"))
        assert store.read(notes) == ["before", "after"]


async def test_a_read_that_meets_a_busy_file_tries_again_quickly(tmp_path: Path) -> None:
    """A few times, because nothing else happens meanwhile; then it is the caller's to try."""
    path = tmp_path / "notes.db"
    pauses: list[float] = []
    async with opened(path, sleep=pauses.append, random=lambda: 1.0) as store:
        store.read(notes)
        with locked(path):

            def busy(connection: sqlite3.Connection) -> list[str]:
                if len(pauses) < enough:
                    blocked = sqlite3.connect(path, timeout=0)
                    try:
                        blocked.execute("BEGIN IMMEDIATE")
                    finally:
                        blocked.close()
                return notes(connection)

            enough = 3
            assert store.read(busy) == []
            assert len(pauses) == enough
            enough = 1000
            with pytest.raises(Unavailable, match="busy"):
                store.read(busy)
            assert sum(pauses) < 0.1
        assert store.read(notes) == []


async def test_a_file_that_somebody_has_for_himself_is_retryable(tmp_path: Path) -> None:
    """Not even reading is possible then; afterwards it is."""
    path = tmp_path / "notes.db"
    async with opened(path) as store:
        await store.write(adding("one"))
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("PRAGMA locking_mode = EXCLUSIVE")
    other.execute("BEGIN IMMEDIATE")
    async with opened(path, sleep=lambda seconds: None) as store:
        with pytest.raises(Unavailable, match="busy"):
            store.read(notes)
        with pytest.raises(Unavailable, match="busy"):
            await store.write(adding("two"))
        other.close()
        assert store.read(notes) == ["one"]
        await store.write(adding("two"))


@posix_only
def test_a_limit_on_the_size_of_files_is_retryable(tmp_path: Path) -> None:
    """What was acknowledged before stays, the process lives, and it goes on as soon as there is room."""
    path = tmp_path / "notes.db"
    said = said_by(f"fill_up({str(path)!r})")
    assert said[-2:] == [
        "The store `notes.db` cannot be read or written: the disk is full, over its quota, or failing",
        "after",
    ]
    assert {note[:5].strip() for note in notes_in(path)} == {*said[:-2], "after"}


@posix_only
@pytest.mark.parametrize("read_only", ["the directory", "the file"])
def test_a_process_without_the_right_to_write_is_told_so(read_only: str) -> None:
    """As another user, because root may write anywhere."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "notes.db"
        if read_only == "the file":
            trio.run(_write_once, path)
            path.chmod(0o444)
        Path(directory).chmod(0o555 if read_only == "the directory" else 0o777)
        said = said_by(f"write_as_nobody({str(path)!r})")
        Path(directory).chmod(0o700)
    assert (
        said
        == {
            "the directory": ["The store `notes.db` cannot be opened: Permission denied"] * 2,
            "the file": ["The store `notes.db` cannot be written: it is read-only"] * 2,
        }[read_only]
    )


# The children's side.


def _say(line: str) -> None:
    os.write(1, f"{line}\n".encode())


async def _write_once(path: Path) -> None:
    async with opened(path) as store:
        await store.write(adding("once"))


def write_forever(path: str, life: int) -> None:
    """Say each change as soon as it is acknowledged."""

    async def keep_writing(store: Store, task: int) -> None:
        for number in count():
            text = f"{life}.{task}.{number}"
            await store.write(adding(text))
            _say(text)

    async def main() -> None:
        async with opened(Path(path)) as store, trio.open_nursery() as nursery:
            for task in range(20):
                nursery.start_soon(keep_writing, store, task)

    trio.run(main)


def write_many(path: str, name: str) -> None:
    """500 changes from 50 tasks, all of which must succeed."""

    async def write_some(store: Store, task: int) -> None:
        for number in range(10):
            await store.write(adding(f"{name}{task * 10 + number}"))

    async def main() -> None:
        async with opened(Path(path)) as store, trio.open_nursery() as nursery:
            for task in range(50):
                nursery.start_soon(write_some, store, task)

    _say("ready")
    sys.stdin.readline()
    trio.run(main)


def fill_up(path: str) -> None:
    """Write until there is no room, then make room and write once more."""
    import resource

    async def main() -> None:
        async with opened(Path(path)) as store:
            _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
            resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, most))
            try:
                for number in count():
                    await store.write(adding(f"{number:<5}" + "x" * 10_000))
                    _say(str(number))
            except Unavailable as error:
                _say(error.message)
            resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
            await store.write(adding("after"))
            _say("after")

    trio.run(main)


def write_as_nobody(path: str) -> None:
    """Twice, to see that the process lives on."""

    async def main() -> None:
        async with opened(Path(path), NOTES) as store:
            for number in range(2):
                try:
                    await store.write(adding(str(number)))
                except RequestError as error:
                    _say(error.message)

    import modes_actor.store.backends  # noqa: F401  # while it may still be read

    if os.geteuid() == 0:
        os.setuid(65534)
    trio.run(main)
