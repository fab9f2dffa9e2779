"""`modes-actor sessions`: what is listed, shown, closed and exported, by which names; looking leaves no trace."""

import json
import os
import re
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
import trio

from modes_actor.sessions.model import FinalState, Session, iso_time
from modes_actor.sessions.sessions import Sessions
from modes_actor.sessions.tables import MIGRATIONS
from modes_actor.store import snapshot
from modes_actor.store.database import Store
from modes_actor.store.migrations import Migration, migrate
from tests.command_line import Shell
from tests.process import COMMAND, Process
from tests.test_sessions_process import Place, refusal, told

HOUR = 3600.0
NEVER_SEEN = f"sess_{'0' * 32}"


def storage(shell: Shell) -> Path:
    return shell.config_dir / "mcp_sessions"


def file_of(shell: Shell) -> Path:
    return storage(shell) / "sessions.db"


def keep(
    shell: Shell,
    *,
    mode: str = "code",
    message: str | None = None,
    parent: Session | None = None,
    ended: FinalState | None = None,
    switched: str | None = None,
    seconds_ago: float = 0,
    session_id: str | None = None,
) -> Session:
    """A session in the store of that home, as a server that has ended by now has left it."""
    then = time.time() - seconds_ago

    async def create() -> Session:
        sessions = Sessions(Store(file_of(shell), MIGRATIONS), now=lambda: then)
        session = await sessions.create(mode, message, parent.session_id if parent else None)
        if switched is not None:
            await sessions.switch(session.session_id, switched, "a reason")
        if ended is not None:
            await sessions.complete(session.session_id, ended, "the result")
        await sessions.close()
        return session

    session = trio.run(create)
    if session_id is not None:
        with closing(sqlite3.connect(file_of(shell), isolation_level=None)) as file:
            for table in ("sessions", "messages", "mode_changes"):
                file.execute(
                    f"UPDATE {table} SET session_id = ? WHERE session_id = ?", (session_id, session.session_id)
                )
        session = Session(session_id=session_id, task=session.task, created=then, last_activity=then)
    return session


def files(directory: Path) -> dict[str, bytes]:
    """Everything there is, to the last byte."""
    return {str(path): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def listed(shell: Shell, *words: str) -> list[str]:
    return [each["session_id"] for each in shell.run("sessions", *words, "--json").json()]


def refused(shell: Shell, *words: str) -> str:
    """The sentences with which a command ends that could not be done."""
    ran = shell.run("sessions", *words)
    assert (ran.code, ran.out) == (1, ""), ran
    lines = ran.err.splitlines()
    assert all(line.startswith("modes-actor: ") for line in lines)
    return "\n".join(line.removeprefix("modes-actor: ") for line in lines)


# The list.


def test_sessions_are_listed_the_one_last_used_first(shell: Shell) -> None:
    """In a pipe with whole IDs, and with all columns, for scripts."""
    first = keep(shell, mode="docs", message="Write\n  the   guide", seconds_ago=1000)
    other = keep(shell, mode="ask", ended="completed", seconds_ago=200)
    below = keep(shell, parent=first, seconds_ago=100.5)
    rows = [re.split(r" {2,}", line) for line in shell.run("sessions").lines()]
    assert rows == [
        ["SESSION", "TASK", "MODE", "STATE", "AGE", "IDLE", "SUBTASKS", "PARENT", "FIRST WORDS"],
        [below.session_id, below.task.task_id, "code", "active", "1m", "1m", "-", first.session_id, "-"],
        [first.session_id, first.task.task_id, "docs", "active", "16m", "1m", "1", "-", "Write the guide"],
        [other.session_id, other.task.task_id, "ask", "completed", "3m", "3m", "-", "-", "the result"],
    ]


def test_sessions_are_listed_to_programs(shell: Shell) -> None:
    """Times as the tools tell them, and in seconds."""
    session = keep(shell, message="x" * 1_000_000)
    [row] = shell.run("sessions", "list", "--json").json()
    assert row.pop("age") in range(60)
    assert row.pop("idle") in range(60)
    assert row == {
        "session_id": session.session_id,
        "task_id": session.task.task_id,
        "mode_slug": "code",
        "state": "active",
        "created_at": iso_time(session.created),
        "last_activity": iso_time(session.last_activity),
        "subtasks": 0,
        "parent_session_id": None,
        "first_words": "x" * 60 + "…",
    }


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(20, r"[2-5]\ds"), (90, "1m"), (3600 - 50, "59m"), (3600 + 310, "1h 5m"), (3 * 86400 + 2 * 3600, "3d 2h")],
)
def test_times_are_told_in_two_units_at_most(shell: Shell, seconds: int, shown: str) -> None:
    """Nobody counts the seconds of a day."""
    keep(shell, seconds_ago=seconds)
    [_, row] = shell.run("sessions", ROO_SESSION_TIMEOUT="1000000").lines()
    assert re.fullmatch(shown, re.split(r" {2,}", row)[4])


def test_the_list_can_be_cut_down(shell: Shell) -> None:
    """To a mode, to what is under way, to the latest; and all at once."""
    ask = keep(shell, mode="ask", seconds_ago=40).session_id
    failed = keep(shell, mode="ask", ended="failed", seconds_ago=30).session_id
    code = keep(shell, mode="code", seconds_ago=20).session_id
    latest = keep(shell, mode="ask", seconds_ago=10).session_id
    assert listed(shell) == [latest, code, failed, ask]
    assert listed(shell, "list", "--mode", "ask") == [latest, failed, ask]
    assert listed(shell, "--active") == [latest, code, ask]
    assert listed(shell, "--limit", "2") == [latest, code]
    assert listed(shell, "list", "--active", "--mode", "ask", "--limit", "1") == [latest]
    assert shell.run("sessions", "--mode", "nope").lines() == ["None of 4 live sessions is like that."]


@pytest.mark.parametrize("limit", ["0", "-1", "many"])
def test_a_limit_is_a_number_above_0(shell: Shell, limit: str) -> None:
    """Anything else is wrong usage."""
    ran = shell.run("sessions", f"--limit={limit}")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.endswith(f"argument --limit: must be a number above 0, not '{limit}'\n")


def test_the_expired_are_not_listed(shell: Shell) -> None:
    """Whether somebody has cleaned them up by now or not."""
    keep(shell, seconds_ago=HOUR + 10)
    parent = keep(shell, seconds_ago=HOUR - 600)
    assert listed(shell) == [parent.session_id]
    assert shell.run("sessions", ROO_SESSION_TIMEOUT="1").lines() == ["No live sessions."]


# One session.


def test_a_session_is_shown_whole(shell: Shell) -> None:
    """The task, where it stands, its modes, and what was said."""
    parent = keep(shell, mode="orchestrator", message="Do it", seconds_ago=60.5)
    session = keep(shell, message="Go\non", parent=parent, switched="nope", ended="failed", seconds_ago=30.5)
    then = iso_time(session.created)
    shown = "\n".join(shell.run("sessions", "show", session.session_id).lines())
    shown = re.sub(r"(Session Age|Idle Time): 3\ds", r"\1: 30s", shown)
    assert shown.splitlines() == [
        "Task Information",
        "",
        f"Session ID: {session.session_id}",
        f"Task ID: {session.task.task_id}",
        "Mode: nope (not defined in this project)",
        "State: failed",
        f"Created: {then}",
        f"Completed: {then}",
        "",
        "Session Age: 30s",
        "Idle Time: 30s",
        "",
        "Hierarchy:",
        f"  Parent Task: {parent.task.task_id}",
        "  Child Tasks: none",
        "  All:",
        f"    {parent.task.task_id} (orchestrator, active) {parent.session_id}",
        f"      {session.task.task_id} (nope, failed) {session.session_id}  <- this one",
        "",
        "Modes:",
        f"  [{then}] code",
        f"  [{then}] nope: a reason",
        "",
        "Messages (2):",
        f"  [{then}] user: Go",
        "on",
        f"  [{then}] assistant: the result",
    ]


def test_a_session_is_shown_to_programs_as_the_tool_tells_it(shell: Shell) -> None:
    """All that `get_task_info` can be asked for."""
    session = keep(shell, message="Go", seconds_ago=5)
    then = iso_time(session.created)
    whole = {
        "session_id": session.session_id,
        "task_id": session.task.task_id,
        "mode_slug": "code",
        "state": "active",
        "created_at": then,
        "last_activity": then,
        "mode_history": [{"mode": "code", "timestamp": then}],
        "messages": [{"role": "user", "content": "Go", "timestamp": then}],
        "hierarchy": [
            {
                "session_id": session.session_id,
                "task_id": session.task.task_id,
                "mode_slug": "code",
                "state": "active",
                "depth": 0,
            }
        ],
    }
    assert shell.run("sessions", "show", session.session_id, "--json").json() == whole
    assert shell.run("sessions", "export", session.session_id).json() == [whole]


def test_what_a_message_says_is_not_obeyed(shell: Shell) -> None:
    """It is somebody else's, and a terminal is a person's."""
    session = keep(shell, message="\x1b]0;owned\x07 [red]hello[/red]")
    shown = shell.run("sessions", "show", session.session_id).out + shell.run("sessions").out
    assert "\x1b" not in shown
    assert shown.count("�]0;owned� [red]hello[/red]") == 2


# Names.


@pytest.mark.parametrize(
    "shorten", [str, lambda name: name[:12], lambda name: name[5:12]], ids=["whole", "kind", "bare"]
)
def test_a_session_has_many_names(shell: Shell, shorten: Callable[[str], str]) -> None:
    """Its ID or its task's, whole or its beginning, with or without what all of them begin with."""
    keep(shell)
    session = keep(shell)
    for name in (session.session_id, session.task.task_id):
        assert shell.run("sessions", "show", shorten(name), "--json").json()["session_id"] == session.session_id


def test_a_name_that_several_have_is_none(shell: Shell) -> None:
    """They are named, so that the next try can be right."""
    made = [
        keep(shell, mode=mode, session_id=f"sess_abc{mode}", seconds_ago=at) for at, mode in enumerate(("ask", "code"))
    ]
    candidates = [f"  {each.session_id} {each.task.task_id} ({each.task.mode})" for each in made]
    expected = "\n".join(["'abc' may be any of 2 sessions:", *candidates])
    assert [refused(shell, action, "abc") for action in ("show", "close", "export")] == [expected] * 3
    assert len(listed(shell)) == 2


def test_a_whole_name_means_its_session_alone(shell: Shell) -> None:
    """Even if another begins so."""
    keep(shell, session_id="sess_abcdef")
    short = keep(shell, session_id="sess_abcd")
    assert shell.run("sessions", "show", "sess_abcd", "--json").json()["session_id"] == short.session_id


@pytest.mark.parametrize(
    "name", ["sess_", "task_", "", "s", "sess", "%", "sess_%", "_", "SESS_A", NEVER_SEEN, "é" * 300]
)
def test_a_name_that_nobody_has_means_nobody(shell: Shell, name: str) -> None:
    """Above all not the only one there is."""
    session = keep(shell, session_id="sess_abcdef")
    expected = f"no live session is called '{name if len(name) < 300 else 'é' * 100 + '…'}', or begins so: "
    for action in ("show", "close", "export"):
        assert refused(shell, action, name) == f"{expected}`modes-actor sessions` lists them"
    assert listed(shell) == [session.session_id]


def test_an_expired_session_is_told_apart_from_one_that_never_was(shell: Shell) -> None:
    """By its ID or its task's; whether it has been cleaned up or not."""
    expired, closed = keep(shell, seconds_ago=HOUR + 10), keep(shell)
    assert shell.run("sessions", "close", closed.session_id).code == 0
    for name in (expired.session_id, expired.task.task_id, closed.session_id, closed.task.task_id):
        assert refused(shell, "show", name) == f"the session {name} has expired or was closed: nothing of it is kept"


# Closing.


def test_a_closed_session_is_gone(shell: Shell) -> None:
    """It is said what it was, and what goes on."""
    session = keep(shell, mode="ask", seconds_ago=10)
    below, done = keep(shell, parent=session), keep(shell, parent=session, ended="completed")
    other = keep(shell)
    assert shell.run("sessions", "close", session.session_id[:12]).lines() == [
        f"Closed {session.session_id} ({session.task.task_id}, ask, active)",
        f"  its subtask goes on: {below.session_id}",
    ]
    assert sorted(listed(shell)) == sorted([below.session_id, done.session_id, other.session_id])


def test_several_sessions_are_closed_at_once(shell: Shell) -> None:
    """Each once, however often it is named; programs are told in JSON."""
    session = keep(shell)
    below = keep(shell, mode="ask", parent=session)
    answer = shell.run(
        "sessions", "close", session.session_id, below.task.task_id, "--json", session.task.task_id
    ).json()
    assert answer == [
        {
            "session_id": each.session_id,
            "task_id": each.task.task_id,
            "mode_slug": each.task.mode,
            "state": "active",
            "open_subtasks": [],
        }
        for each in (session, below)
    ]
    assert listed(shell) == []


def test_nothing_is_closed_if_one_of_the_names_is_wrong(shell: Shell) -> None:
    """A slip must not leave half of it done."""
    session = keep(shell)
    assert NEVER_SEEN in refused(shell, "close", session.session_id, NEVER_SEEN)
    assert listed(shell) == [session.session_id]


def test_to_close_needs_a_name(shell: Shell) -> None:
    """There is no closing of everything by a slip."""
    keep(shell)
    assert shell.run("sessions", "close").code == 2
    assert len(listed(shell)) == 1


# Export.


def test_all_sessions_are_exported_unless_some_are_named(shell: Shell) -> None:
    """The one last used first; the named ones in their order, each once; JSON without being asked for."""
    made = [keep(shell, message=str(at), seconds_ago=30 - at).session_id for at in range(3)]

    def exported(*names: str) -> list[str]:
        return [each["session_id"] for each in shell.run("sessions", "export", *names).json()]

    assert exported() == made[::-1]
    assert exported(made[0], made[2], made[0]) == [made[0], made[2]]


# Stores.


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
