"""`modes-actor sessions` and the store: looking leaves no trace, whatever state it is in, and whoever uses it."""

import json
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from modes_actor.sessions.tables import MIGRATIONS
from modes_actor.store import snapshot
from modes_actor.store.migrations import Migration, migrate
from tests.command_line import Shell
from tests.kept_sessions import NEVER_SEEN, file_of, files, keep, refused, storage
from tests.process import COMMAND, Process
from tests.test_sessions_process import Place, refusal, told


@pytest.mark.parametrize("words", [["sessions"], ["sessions", "list"]])
def test_where_there_is_no_store_there_are_no_sessions(shell: Shell, words: list[str]) -> None:
    """And there is no store afterwards, either."""
    before = files(shell.home)
    assert shell.run(*words).lines() == ["No sessions yet."]
    assert shell.run(*words, "--json").json() == []
    assert shell.run("sessions", "export").json() == []
    for action in ("show", "close"):
        assert "no live session" in refused(shell, action, "abc")
    assert (files(shell.home), storage(shell).exists()) == (before, False)


@pytest.mark.parametrize("is_open", [False, True], ids=["closed", "in use"])
def test_looking_changes_nothing(shell: Shell, is_open: bool) -> None:
    """Not a byte of the file, nor of what stands beside it; and it keeps no session alive."""
    session = keep(shell, message="hello", seconds_ago=600)
    with _writer(file_of(shell)) if is_open else closing(sqlite3.connect(":memory:")):
        before = _without_locks(files(shell.home))
        for words in (["list"], ["show", session.session_id], ["export"], ["close", NEVER_SEEN]):
            shell.run("sessions", *words)
        shell.run("explain", "--session", session.session_id, "read_file")
        assert _without_locks(files(shell.home)) == before
    [row] = shell.run("sessions", "--json").json()
    assert row["idle"] >= 600


@contextmanager
def _writer(path: Path) -> Iterator[None]:
    """Somebody who has the store open, has written, and is about to write more."""
    with closing(sqlite3.connect(path, isolation_level=None)) as file:
        file.execute("UPDATE sessions SET mode = mode")
        file.execute("BEGIN IMMEDIATE")
        file.execute("UPDATE sessions SET mode = 'not committed'")
        yield
        file.execute("ROLLBACK")


def _without_locks(found: dict[str, bytes]) -> dict[str, bytes]:
    """SQLite keeps its locks in `-shm`."""
    return {name: content for name, content in found.items() if not name.endswith("-shm")}


def test_sessions_in_memory_are_nobody_elses(shell: Shell) -> None:
    """That is said, instead of that there are none."""
    config = shell.home / "config.json"
    config.write_text(json.dumps({"sessions": {"persistence": {"enabled": False}}}), encoding="utf-8")
    sentence = (
        "sessions are kept in their server's memory, where nobody else sees them, "
        "because `sessions.persistence.enabled` is false"
    )
    for words in (["list"], ["show", "a"], ["close", "a"], ["export"]):
        assert refused(shell, *words, "--config", str(config)) == sentence


def _damage(path: Path) -> None:
    path.write_bytes(b"no database at all " * 1000)


def _make_newer(path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as file:
        migrate(file, [*MIGRATIONS, Migration("sessions", len(MIGRATIONS) + 1, ())])


def _make_a_directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (_damage, "The store `sessions.db` is damaged: the server's log has the details"),
        (
            _make_newer,
            "The store `sessions.db` was written by a newer version of modes-actor: "
            "update modes-actor, or choose another storage path",
        ),
        (
            _make_a_directory,
            "The store `sessions.db` cannot be opened: "
            "it is no file, or may not be read and written, with its directory",
        ),
    ],
    ids=["damaged", "newer", "a directory"],
)
def test_a_store_that_cannot_be_read_is_left_alone(shell: Shell, spoil: Callable[[Path], None], sentence: str) -> None:
    """Its own sentence, and which file it is; nobody sets it aside who only wants to look."""
    keep(shell)
    spoil(file_of(shell))
    before = files(storage(shell)), os.listdir(storage(shell))
    for words in (["list"], ["show", "a"], ["close", "a"], ["export", "--json"]):
        assert refused(shell, *words) == f"{sentence} ({file_of(shell)})"
    assert (files(storage(shell)), os.listdir(storage(shell))) == before


def test_a_busy_store_is_waited_for_and_then_named(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody may be checking it, or have forgotten it."""
    keep(shell)
    monkeypatch.setattr(snapshot, "WRITING_SECONDS", 0)
    with closing(sqlite3.connect(file_of(shell), isolation_level=None)) as file:
        file.execute("PRAGMA locking_mode = EXCLUSIVE")
        file.execute("BEGIN IMMEDIATE")
        sentence = "The store `sessions.db` is busy, another process is writing: send it again"
        assert refused(shell, "list") == f"{sentence} ({file_of(shell)})"


# With a real server.


def test_a_session_of_a_running_server_is_listed_shown_and_closed(tmp_path: Path) -> None:
    """The server answers for it until it is closed, and then says that it has expired."""
    place = Place(tmp_path)

    def command(*words: str) -> str:
        with Process((*COMMAND, "sessions", *words), environment={"HOME": str(place.home)}) as process:
            said = process.wire.rest().decode()
            assert process.finish() == (0, [], "")
        return said

    with place.start() as server:
        session_id = told(server, "create_task", mode_slug="code", initial_message="a real one")["session_id"]
        [row] = json.loads(command("--json"))
        assert (row["session_id"], row["first_words"]) == (session_id, "a real one")
        assert f"Session ID: {session_id}\n" in command("show", session_id[:15])
        assert told(server, "get_task_info", session_id=session_id)["state"] == "active"
        assert command("close", session_id).startswith(f"Closed {session_id} (")
        assert refusal(server, "get_task_info", session_id=session_id)["code"] == -32003
        assert command() == "No live sessions.\n"
        again = told(server, "create_task", mode_slug="ask")["session_id"]
    assert [each["session_id"] for each in json.loads(command("export"))] == [again]
