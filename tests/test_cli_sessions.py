"""`modes-actor sessions`: what is listed, shown, closed and exported, and by which names."""

import io
import re
from collections.abc import Callable

import pytest

from modes_actor.sessions.model import iso_time
from tests.command_line import Shell
from tests.kept_sessions import NEVER_SEEN, keep, listed, refused

HOUR = 3600.0


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
    assert f"argument --limit: must be a number above 0, not '{limit}' (" in ran.err


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


# A terminal.


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("family", [False, True])
def test_a_person_gets_short_names_that_commands_understand(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, family: bool
) -> None:
    """And no column in which there is nothing."""
    parent = keep(shell, message="hello", seconds_ago=100)
    below = keep(shell, parent=parent, seconds_ago=70) if family else None
    terminal = Terminal()
    monkeypatch.setattr("sys.stdout", terminal)
    shell.run("sessions", TERM="xterm", NO_COLOR="1", COLUMNS="100")
    heading, _, *rows = re.sub(r"\x1b\[\d*m", "", terminal.getvalue()).splitlines()
    columns = ["session", "task", "mode", "state", "age", "idle"]
    columns += ["subtasks", "parent", "first words"] if below else ["first words"]
    assert re.split(r" {2,}", heading.strip()) == columns
    short = parent.session_id[5:13]
    assert rows[-1].split()[:4] == [short, parent.task.task_id[5:13], "code", "active"]
    if below:
        assert rows[0].split() == [
            below.session_id[5:13],
            below.task.task_id[5:13],
            *["code", "active", "1m", "1m"],
            short,
        ]
    monkeypatch.undo()
    assert shell.run("sessions", "show", short, "--json").json()["session_id"] == parent.session_id
