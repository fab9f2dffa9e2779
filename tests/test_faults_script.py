"""The fault injection runs and finds nothing; and it does find what is wrong with servers that break their promises."""

import shlex
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

import pytest

from modes_actor.surface.mode_results import (
    TaskCreated,
    TaskDetails,
    ToldMessage,
    ToldModeChange,
    Validation,
)
from tests.interrupted import CLEANLY, TELLING, run_interrupted
from tests.scripts import SCRIPTS, run_script, script

faults, ledgers, servers = script("faults"), script("faults_ledger"), script("faults_server")
clocks, projects, scenes = script("faults_clock"), script("faults_project"), script("faults_scene")

linux_only = pytest.mark.skipif(sys.platform != "linux", reason="the faults are those of Linux")
SERVE = "from modes_actor.cli import main; sys.exit(main(sys.argv[1:]))"
CLOCKWORK = "sys.path.insert(0, 'scripts'); import faults_clockwork; faults_clockwork.main()"


def broken(report: Any) -> list[str]:
    return [verdict["promise"] for verdict in report["verdicts"] if verdict["kept"] is False]


@linux_only
def test_faults_are_injected_and_promises_kept(tmp_path: Path) -> None:
    """Several kinds, each at least once; the report has a row for each, and the chart is drawn."""
    chart = tmp_path / "chart.svg"
    words = ("--only", "kill,full", "--duration", "0.2", "--seed", "7", "--json", "--svg", str(chart))
    ran = run_script("faults.py", *words, home=tmp_path)
    assert ran.code == 0, (ran.out, ran.err)
    report = ran.json()
    rows = {each["fault"]: each for each in report["outcomes"]}
    assert (list(rows), broken(report)) == (["kill", "full"], [])
    assert all(each["injected"] and each["acknowledged"] and each["recoveries"] for each in rows.values())
    assert [(each["lost"], each["twice"], each["skipped"]) for each in rows.values()] == [(0, 0, None)] * 2
    assert "recovery, median (ms)" in chart.read_text(encoding="utf-8")


FORGETFUL = """
from modes_actor.store.database import Store
write = Store.write
async def forgetful(self, change, **more):
    try:
        return await write(self, change, **more)
    except Exception:
        return ()
Store.write = forgetful
"""
"""Whatever becomes of a change, it is said to be done."""
WRONG_SERVERS = {
    "keeps nothing and says everything twice": (
        "kill",
        "from modes_actor.surface.house import House; from modes_actor.actor.outgoing import Outgoing\n"
        "House.session_file = None\n"
        "post = Outgoing.post\n"
        "Outgoing.post = lambda self, message: (post(self, message), post(self, message))[0]\n" + SERVE,
        [
            "kill: what was acknowledged is there, once and in order",
            "kill: every request is answered once, and no server dies of it",
            "kill: the file of the store is whole",
        ],
    ),
    "lets no session expire": (
        "clock",
        "from modes_actor.sessions.sessions import Sessions\nSessions._is_live = lambda self, session: True\n"
        "async def clean_up(self): return 0\nSessions.clean_up = clean_up\n" + CLOCKWORK,
        ["clock: sessions end by the clock, and none because it was set back"],
    ),
    "queues without bounds": (
        "stalled",
        "import modes_actor.cli.serve as serve; from modes_actor.actor.limits import Limits\n"
        "serve.Limits = lambda **more: Limits(**more, queued_bytes=10**12)\n" + SERVE,
        ["stalled: a server grows by less than 48 MB meanwhile"],
    ),
    "takes what cannot be written for written": (
        "locked",
        "import modes_actor.store.backends as backends; backends.WRITING_SECONDS = 0.0\n" + FORGETFUL + SERVE,
        [
            "locked: what was acknowledged is there, once and in order",
            "locked: nothing happens to a server that nobody foresaw",
        ],
    ),
    "takes one session for another": (
        "damaged",
        "from modes_actor.sessions import tables\nsession, first = tables._session, []\n"
        "def confused(row):\n    first.append(session(row))\n    return first[0]\n"
        "tables._session = confused\n" + SERVE,
        [
            "damaged: what was acknowledged is there, once and in order",
            "damaged: no wrong answer comes out of a damaged file",
        ],
    ),
    "goes on with a file that has lost its name": (
        "deleted",
        "from modes_actor.store.connections import Connected\n"
        "Connected.is_in_place = lambda self: self._opened is not None\n" + SERVE,
        ["deleted: what was acknowledged is there, once and in order"],
    ),
    "takes a full disk for the end": (
        "full",
        "import modes_actor.store.trouble as trouble\ntrouble.Unavailable = trouble.InternalError\n" + SERVE,
        [
            "full: what was acknowledged is there, once and in order",
            "full: what cannot be written is refused with -32603, as retryable, within 15 s",
        ],
    ),
}


@linux_only
@pytest.mark.parametrize(("fault", "program", "promises"), WRONG_SERVERS.values(), ids=WRONG_SERVERS)
def test_a_server_that_breaks_a_promise_is_found_out(
    fault: str, program: str, promises: list[str], tmp_path: Path
) -> None:
    """The exit code says so, and the report names the promise."""
    server = shlex.join([sys.executable, "-c", f"import sys\n{program}"])
    words = ("--only", fault, "--duration", "0.5", "--seed", "7", "--json", "--server", server)
    ran = run_script("faults.py", *words, home=tmp_path)
    assert (ran.code, broken(ran.json())) == (1, promises), ran.err


@linux_only
def test_a_server_whose_clock_cannot_be_set_is_not_blamed_for_it(tmp_path: Path) -> None:
    """It expires sessions by the machine's clock, as it should; those whose clock can be set are judged by it."""
    server = shlex.join([sys.executable, "-c", f"import sys\n{SERVE}"])
    words = ("--only", "clock,expiry", "--duration", "0.5", "--seed", "7", "--json", "--server", server)
    ran = run_script("faults.py", *words, home=tmp_path)
    reason = "skipped: this server's clock cannot be set: it does not heed the file that FAULTS_CLOCK names"
    assert (ran.code, [(each["found"], each["kept"]) for each in ran.json()["verdicts"]]) == (0, [(reason, None)] * 2)


@linux_only
@pytest.mark.parametrize("fault", ["kill", "full", "vanishing"])
def test_interrupted_nothing_is_left_behind(fault: str, tmp_path: Path) -> None:
    """No server, no directory, no mount; and nothing was broken, as far as anybody knows."""
    server = shlex.join([sys.executable, "-c", f"import sys\n{TELLING}{SERVE}"])
    words = ("--only", fault, "--duration", "60", "--server", server)
    assert run_interrupted([sys.executable, str(SCRIPTS / "faults.py"), *words], tmp_path) == CLEANLY


def test_faults_are_listed_and_unknown_ones_refused(tmp_path: Path) -> None:
    """With the names that there are."""
    listed = run_script("faults.py", "--list", home=tmp_path)
    names = [line.split()[0] for line in listed.out.splitlines()]
    refused = run_script("faults.py", "--only", "kill,nonsense", home=tmp_path)
    assert (listed.code, names, refused.code) == (0, list(faults.FAULTS), 2)
    assert "there is no fault nonsense" in refused.err


def test_what_is_skipped_is_neither_kept_nor_broken(tmp_path: Path) -> None:
    """The row and the verdict say why."""
    scene = scenes.Scene("full", tmp_path / "full", ["true"], Random(1), 1.0)
    scene.outcome.skipped = "only root may mount"
    outcome = scene.conclude()
    assert (outcome.kept, [verdict.kept for verdict in outcome.verdicts]) == (None, [None])
    assert outcome.verdicts[0].found == "skipped: only root may mount"


def test_a_fault_that_was_never_injected_is_not_kept(tmp_path: Path) -> None:
    """A check that checked nothing says nothing good."""
    assert scenes.Scene("kill", tmp_path / "kill", ["true"], Random(1), 1.0).conclude().kept is False


@pytest.mark.parametrize(
    ("seconds", "ways", "no_time_for", "tried", "untried"),
    [
        (3.0, 12, 0, "3 of 12", ["damaged: all that, in the other ways"]),
        (0.1, 2, 2, "2 of 4", ["damaged: all that, in the other ways"]),
        (100.0, 12, 0, "12 of 12", []),
    ],
    ids=["in a hurry", "in a greater hurry", "with enough time"],
)
def test_a_short_run_says_in_how_many_ways_it_tried(
    seconds: float, ways: int, no_time_for: int, tried: str, untried: list[str], tmp_path: Path
) -> None:
    """It says nothing of the others, neither good nor bad."""
    scene = scenes.Scene("damaged", tmp_path / "damaged", ["true"], Random(1), seconds)
    scene._until = 0.0
    for _ in scene.in_turn(range(ways), no_time_for=no_time_for):
        scene.injected()
    outcome = scene.conclude()
    assert (outcome.tried, [each.promise for each in outcome.verdicts if each.kept is None]) == (tried, untried)
    assert f"{scene.outcome.injected} times injected, in {tried} ways" in str(outcome.verdicts)


@linux_only
def test_a_promise_about_ways_that_were_not_tried_is_not_judged(tmp_path: Path) -> None:
    """In so little time, the file is damaged twice, both times before a server starts."""
    ran = run_script("faults.py", "--only", "damaged", "--duration", "0.1", "--json", home=tmp_path)
    not_judged = {each["promise"]: each["found"] for each in ran.json()["verdicts"] if each["kept"] is None}
    assert (ran.code, not_judged) == (
        0,
        {
            "damaged: once it is taken away, it is replaced": "0 times",
            "damaged: all that, in the other ways": "2 of 11 ways were tried",
        },
    )


def test_a_way_that_could_not_be_tried_was_not(tmp_path: Path) -> None:
    """Only one in which the fault was injected counts, and that once."""
    scene = scenes.Scene("readonly", tmp_path / "readonly", ["true"], Random(1), 4.0)
    scene._until = 0.0
    for way in scene.in_turn(["possible", "not possible"] * 2):
        if way == "possible":
            scene.injected()
            scene.injected()
    assert scene.outcome.tried == "2 of 4"


# The ledger: what it makes of what a server tells.


class Teller:
    """A server that acknowledges everything, and tells of a task what it was told to tell."""

    def __init__(self) -> None:
        self.tells: TaskDetails | None = None
        self.refuses: Any = None

    async def use(self, tool: str, answer: type[Any], /, **arguments: Any) -> Any:
        if self.refuses is not None:
            raise self.refuses
        if tool == "create_task":
            mode = arguments["mode_slug"]
            return TaskCreated(session_id="sess_1234", task_id="task_1", mode_slug=mode, state="active")
        if tool == "get_task_info":
            return self.tells
        return answer(
            session_id="sess_1234",
            **(
                {"old_mode": "code", "new_mode": arguments["new_mode_slug"], "reason": arguments["reason"]}
                if tool == "switch_mode"
                else {"task_id": "task_1", "status": "completed", "cancelled_sessions": [], "open_subtasks": 0}
            ),
            **({"tool_groups": {}} if tool == "switch_mode" else {}),
        )


def details(mode: str, state: str, history: list[tuple[str, str | None]], said: list[str]) -> TaskDetails:
    roles = ["user", *["assistant"] * len(said)]
    return TaskDetails(
        session_id="sess_1234",
        task_id="task_1",
        mode_slug=mode,
        state=state,  # type: ignore[arg-type]  # the table of cases has words
        created_at="",
        last_activity="",
        completed_at="" if state == "completed" else None,
        mode_history=[ToldModeChange(mode=mode, reason=reason, timestamp="") for mode, reason in history],
        messages=[
            ToldMessage(role=role, content=content, timestamp="")  # type: ignore[arg-type]  # the same
            for role, content in zip(roles, said, strict=False)
        ],
    )


CREATED, SWITCHED = ("code", None), ("m2", "t switch 2")
TOLD = {
    "all is there": (details("m3", "active", [CREATED, SWITCHED, ("m3", "t switch 3")], ["t create 1"]), 0, None),
    "a switch is lost": (details("m2", "active", [CREATED, SWITCHED], ["t create 1"]), 1, "does not know of"),
    "a switch was made twice": (
        details("m3", "active", [CREATED, SWITCHED, SWITCHED, ("m3", "t switch 3")], ["t create 1"]),
        0,
        "made twice",
    ),
    "two are in the wrong order": (
        details("m2", "active", [CREATED, ("m3", "t switch 3"), SWITCHED], ["t create 1"]),
        0,
        "before one that was acknowledged earlier",
    ),
    "another mode": (details("ask", "active", [CREATED, SWITCHED, ("m3", "t switch 3")], ["t create 1"]), 0, "in mode"),
    "another state": (
        details("m3", "completed", [CREATED, SWITCHED, ("m3", "t switch 3")], ["t create 1"]),
        0,
        "is completed, not active",
    ),
    "nobody's words": (details("code", "active", [CREATED], ["hello"]), 0, "nobody asked for"),
}


@pytest.mark.parametrize(("told", "lost", "complaint"), TOLD.values(), ids=TOLD)
async def test_the_ledger_finds_what_is_wrong_with_a_session(
    told: TaskDetails, lost: int, complaint: str | None
) -> None:
    """Of a task that was created and switched twice, one after the other, all of it acknowledged."""
    server, ledger = Teller(), ledgers.Ledger("t", Random(1))
    kept = await ledger.create(server, "code")
    for mode in ("m2", "m3"):
        ledger._random.choice = lambda _, mode=mode: mode
        await ledger.switch(server, kept)
    server.tells = told
    await ledger.check(server)
    assert (ledger.acknowledged, ledger.lost) == (3, lost)
    assert (complaint in str(ledger.trouble)) if complaint else not ledger.trouble


async def test_the_ledger_finds_a_session_that_is_gone() -> None:
    """With all that was acknowledged of it."""
    server, ledger = Teller(), ledgers.Ledger("t", Random(1))
    await ledger.switch(server, await ledger.create(server))
    server.refuses = servers.Refused(-32002, "Task not found", retryable=False)
    await ledger.check(server)
    assert ledger.lost == 2


async def test_what_nobody_acknowledged_may_be_there_or_not_but_has_to_stay() -> None:
    """The server had gone before it answered."""
    server, ledger = Teller(), ledgers.Ledger("t", Random(1))
    kept = await ledger.create(server, "code")
    server.refuses = servers.Gone()
    with pytest.raises(servers.Gone):
        await ledger.complete(server, kept)
    server.refuses = None
    active, completed = (details("code", state, [CREATED], ["t create 1"]) for state in ("active", "completed"))
    completed.messages = [
        *(completed.messages or []),
        ToldMessage(role="assistant", content="t complete 2", timestamp=""),
    ]
    found = []
    for server.tells in (active, completed, active):
        await ledger.check(server)
        found.append((ledger.lost, len(ledger.trouble)))
    assert found == [(0, 0), (0, 0), (1, 1)]


async def test_what_was_refused_and_made_all_the_same_is_found() -> None:
    """A refusal is a promise, too."""
    server, ledger = Teller(), ledgers.Ledger("t", Random(1))
    kept = await ledger.create(server, "code")
    server.refuses = servers.Refused(-32004, "Validation error", retryable=False)
    ledger._random.choice = lambda _: "m2"
    await ledger.switch(server, kept)
    server.refuses, server.tells = None, details("m2", "active", [CREATED, SWITCHED], ["t create 1"])
    await ledger.check(server)
    assert "was refused, and made" in str(ledger.trouble)


async def test_a_task_that_was_refused_and_made_all_the_same_is_found(tmp_path: Path) -> None:
    """It has no session that anybody knows, so the file is asked."""
    server, ledger = Teller(), ledgers.Ledger("t", Random(1))
    server.refuses = servers.Refused(-32603, "The store is busy", retryable=True)
    await ledger.create(server)
    write_store(tmp_path / "sessions.db", "t create 1")
    ledger.check_file(tmp_path / "sessions.db")
    assert ledger.trouble == ["1 tasks were refused, and created: t create 1"]


async def test_an_answer_that_makes_no_sense_is_found() -> None:
    """It is wrong, but loses nothing."""
    server, ledger = Teller(), ledgers.Ledger("t", Random(1))
    await ledger.create(server)
    server.refuses = servers.Refused(servers.NONSENSE, "an answer that makes no sense", retryable=False)
    await ledger.check(server)
    assert (ledger.lost, len(ledger.trouble)) == (0, 1)


async def test_a_refusal_that_is_not_for_a_while_is_wrong() -> None:
    """Unless the fault allows it."""
    server, ledger = Teller(), ledgers.Ledger("t", Random(1))
    for retryable in (True, False):
        server.refuses = servers.Refused(-32603, "The store is busy", retryable=retryable)
        await ledger.create(server)
    assert ledger.trouble == ["create was refused: -32603 The store is busy"]


def write_store(file: Path, *first_messages: str | None) -> None:
    """A store's file, as far as it is looked into: a session for each message."""
    with closing(sqlite3.connect(file)) as connection:
        connection.executescript(
            "CREATE TABLE sessions (session_id); CREATE TABLE mode_changes (session_id);"
            "CREATE TABLE messages (session_id, role, content);"
        )
        for number, message in enumerate(first_messages):
            connection.execute("INSERT INTO sessions VALUES (?)", (number,))
            connection.execute("INSERT INTO mode_changes VALUES (?)", (number,))
            if message is not None:
                connection.execute("INSERT INTO messages VALUES (?, 'user', ?)", (number, message))
        connection.commit()


def test_a_file_in_which_a_task_is_twice_is_found(tmp_path: Path) -> None:
    """Or a session without its first message; or one without a file."""
    file, ledger = tmp_path / "sessions.db", ledgers.Ledger("t", Random(1))
    missing = ledger.check_file(file)
    write_store(file, "x", "x", None)
    assert (missing, ledger.check_file(file)) == ("unable to open database file", "ok")
    assert ledger.trouble == [
        "1 tasks were created twice",
        "there are tasks that nobody asked for",
        "1 sessions have no messages",
    ]


async def test_every_line_of_a_server_is_accounted_for(tmp_path: Path) -> None:
    """A second answer, an answer to nothing, no JSON at all, half a line, and an end that nobody asked for."""
    says = r'{"id":0,"result":{}}\n' * 2 + r'{"id":"x","result":{}}\nhello\n{"id'
    program = f"import sys; sys.stdin.readline(); sys.stdout.write('{says}'); sys.stdout.flush(); sys.exit('no')"
    tally = servers.Tally()
    async with servers.running([sys.executable, "-c", program], {"PATH": "/"}, tally, tmp_path / "stderr") as server:
        await server.gone.wait()
        with pytest.raises(servers.Gone):
            await server.is_there()
    assert (tally.twice, len(tally.stray), tally.died) == (1, 3, ["a server ended by itself with code 1 (no)"])
    assert not tally.is_clean


def test_a_traceback_in_the_log_is_noticed(tmp_path: Path) -> None:
    """By its last line, wherever the log has moved on to; what is foreseen is a line without one."""
    ground = servers.Ground(tmp_path / "ground", ["true"])
    before = ground.surprises()
    traceback = 'Traceback (most recent call last):\n  File "x", line 1\n    f()\nValueError: no\nand on\n'
    ground.log.with_name("server.log.1").write_text(f"one line\n{traceback}")
    assert (before, ground.surprises()) == ([], ["ValueError: no"])


# Other oracles.


class Decider:
    """A server that decides as it was told."""

    def __init__(self, **verdicts: tuple[bool, str]) -> None:
        self.verdicts = verdicts

    async def use(self, tool: str, answer: type[Any], /, **arguments: Any) -> Validation:
        folder = arguments["file_path"][0] if arguments["tool_name"] != "read_file" else "read"
        allowed, rule = self.verdicts[folder]
        return Validation(allowed=allowed, tool_name="", mode="swift", rule=rule)


DECISIONS = {
    "a": (True, "group edit, files matching ^a/"),
    "b": (False, "group edit, files matching ^a/"),
    "c": (False, "group edit, files matching ^b/"),
    "read": (True, "group read"),
}
NEVER = {
    "a folder that no version allows": {"c": (True, "group edit, files matching ^b/")},
    "a rule that says otherwise": {"a": (False, "group edit, files matching ^a/")},
    "a rule that no version has": {"b": (True, "group edit")},
    "no reading": {"read": (False, "group read")},
}


@pytest.mark.parametrize("other", [{}, *NEVER.values()], ids=["none", *NEVER])
async def test_a_decision_that_no_version_gives_is_found(other: dict[str, tuple[bool, str]]) -> None:
    """And one that some version gives is not."""
    asked, kept = projects.Asked(), ledgers.Kept("sess_1234", [])
    await asked.about(Decider(**DECISIONS | other), kept)
    assert len(asked.wrong) == len(other)


@pytest.mark.parametrize(
    ("told", "expected"), [("2026-01-01T00:00:09Z", True), ("2026-01-01T08:00:00Z", False), ("soon", False)]
)
def test_whether_a_clock_is_heeded_shows_in_what_a_server_tells(told: str, *, expected: bool) -> None:
    """Within hours, which no two clocks of a machine differ by."""
    assert clocks.is_near(told, 1_767_225_600.0) is expected


def test_a_session_must_live_or_have_expired_by_the_latest_clock_since_its_last_use() -> None:
    """A clock that was ahead for a while may have ended it; one that is set back ends nothing."""
    watched = clocks.Watched(ledgers.Kept("sess_1234", []), 1000.0, 1001.0, 1001.0)
    judged = [(watched.must_live(now), watched.must_have_expired(now)) for now in (500, 1099, 1100.2, 1102)]
    watched.peak = 2000.0
    assert judged == [(True, False), (True, False), (False, False), (False, True)]
    assert (watched.must_live(500), watched.must_have_expired(500)) == (False, False)
