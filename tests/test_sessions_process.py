"""Sessions that outlive a process, and that two of them share. The first half starts real ones, and kills them."""

import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import closing
from pathlib import Path
from threading import Event as ThreadEvent
from typing import Any, NamedTuple

import msgspec
import pytest
import trio

from modes_actor.sessions.model import ModeSwitched, Session, SessionEvent
from modes_actor.sessions.sessions import Sessions, Timing
from modes_actor.sessions.tables import MIGRATIONS
from modes_actor.store.database import Store
from modes_actor.wire.errors import SessionExpired, TaskNotFound, ValidationFailed
from tests.conversation import Json
from tests.process import COMMAND, Process, handshake, ping, request

NEVER_SEEN = f"sess_{'0' * 32}"


def tool(request_id: int | str, name: str, **arguments: Any) -> Json:
    return request(request_id, "tools/call", {"name": name, "arguments": arguments})


class Place:
    """A home and a project, in which servers are started."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.home, self.project = directory / "home", directory / "project"
        self.home.mkdir()
        self.project.mkdir()
        self.storage = self.home / ".roo-code" / "mcp_sessions"
        self._arguments = ["--project-root", str(self.project)]

    def configure(self, **persistence: Any) -> None:
        file = self.directory / "config.json"
        file.write_bytes(msgspec.json.encode({"sessions": {"persistence": persistence}}))
        self._arguments += ["--config", str(file)]

    def start(self, **environment: str) -> Process:
        """A server that has shaken hands."""
        process = Process((*COMMAND, *self._arguments), environment={"HOME": str(self.home), **environment})
        process.send(handshake())
        assert process.receive()["id"] == "handshake"
        return process

    def files(self) -> dict[str, bytes]:
        found = (path for path in self.directory.rglob("*") if path.is_file())
        return {str(path.relative_to(self.directory)): path.read_bytes() for path in found}


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def told(process: Process, name: str, **arguments: Any) -> Any:
    """What a tool returns, as structured content."""
    process.send(tool("told", name, **arguments))
    answer = process.receive()
    assert "result" in answer, answer
    return answer["result"]["structuredContent"]


def refusal(process: Process, name: str, **arguments: Any) -> Any:
    process.send(tool("refusal", name, **arguments))
    return process.receive()["error"]


class Kept(NamedTuple):
    """What a task must look like after any crash."""

    mode: str
    state: str
    modes: tuple[tuple[str, str | None], ...]
    messages: tuple[tuple[str, str], ...]

    def switched(self, mode: str, reason: str) -> "Kept":
        return self._replace(mode=mode, modes=(*self.modes, (mode, reason)))

    def completed(self, result: str) -> "Kept":
        return self._replace(state="completed", messages=(*self.messages, ("assistant", result)))


def all_kept(process: Process, session_ids: list[str]) -> dict[str, Kept]:
    """What a process knows of each of them."""
    found: dict[str, Kept] = {}
    for start in range(0, len(session_ids), 200):
        some = session_ids[start : start + 200]
        process.send(*(tool(each, "get_task_info", session_id=each, include_messages=True) for each in some))
        for answer in [process.receive() for _ in some]:
            assert "result" in answer, answer
            task = answer["result"]["structuredContent"]
            assert (task["state"] == "completed") == ("completed_at" in task)
            modes = tuple((each["mode"], each.get("reason")) for each in task["mode_history"])
            messages = tuple((each["role"], each["content"]) for each in task["messages"])
            found[answer["id"]] = Kept(task["mode_slug"], task["state"], modes, messages)
    return found


def kill_after(process: Process, answers: int) -> dict[str, Any]:
    """Kill it when so many have come. Returns what was answered in whole lines, by id."""
    received = [process.wire.line() for _ in range(answers)]
    process.kill()
    received += process.wire.rest().split(b"\n")[:-1]  # what follows the last line end was never said
    decoded = [msgspec.json.decode(line) for line in received]
    assert [answer for answer in decoded if "result" not in answer] == []
    return {answer["id"]: answer["result"]["structuredContent"] for answer in decoded}


def test_a_kill_at_any_moment_loses_nothing_acknowledged_and_leaves_nothing_half_done(place: Place) -> None:
    """Under load, again and again: what was answered is there, what was not is there as a whole or not at all."""
    known: dict[str, Kept] = {}
    for number, answers in enumerate((100, 0, 1, 200, 300, 30)):
        before = dict(known)
        after: dict[str, tuple[str, Kept]] = {}
        load = [tool(f"create {n}", "create_task", mode_slug="code", initial_message="go") for n in range(300)]
        active = [each for each, task in before.items() if task.state == "active"]
        for place_in_line, session_id in enumerate(active[:150]):
            now = before[session_id]
            if place_in_line % 3:
                after[f"switch {session_id}"] = session_id, now.switched("ask", f"round {number}")
                arguments = {"new_mode_slug": "ask", "reason": f"round {number}"}
                load.append(tool(f"switch {session_id}", "switch_mode", session_id=session_id, **arguments))
            else:
                after[f"complete {session_id}"] = session_id, now.completed("done")
                arguments = {"status": "completed", "result": "done"}
                load.append(tool(f"complete {session_id}", "complete_task", session_id=session_id, **arguments))
        with place.start() as process:
            process.send(*load[::2], *load[1::2])
            acknowledged = kill_after(process, answers)
        created = [result["session_id"] for each, result in acknowledged.items() if each.startswith("create")]
        known |= dict.fromkeys(created, Kept("code", "active", (("code", None),), (("user", "go"),)))
        with place.start() as process:
            found = all_kept(process, list(known))
        for request_id, (session_id, changed) in after.items():
            may_be = {changed} if request_id in acknowledged else {changed, before[session_id]}
            assert found[session_id] in may_be
            known[session_id] = found[session_id]
        assert found == known
    with closing(sqlite3.connect(place.storage / "sessions.db")) as file:
        without_words = "SELECT count(*) FROM sessions WHERE session_id NOT IN (SELECT session_id FROM {})"
        halves = [file.execute(without_words.format(table)).fetchone()[0] for table in ("messages", "mode_changes")]
    assert (halves, len(known) >= 100) == ([0, 0], True)


def test_a_mode_switched_through_one_process_is_enforced_by_the_other_at_once(place: Place) -> None:
    """Two windows, one task: there is no moment in which the second one allows what is forbidden."""
    write = {"tool_name": "write_to_file", "file_path": "a.py"}
    with place.start() as first, place.start() as second:
        session_id = told(first, "create_task", mode_slug="code")["session_id"]
        allowed = []
        for mode in ("ask", "code", "ask"):
            allowed.append(told(second, "validate_tool_use", session_id=session_id, **write)["allowed"])
            told(first, "switch_mode", session_id=session_id, new_mode_slug=mode)
        enforced = refusal(second, "validate_tool_use", session_id=session_id, enforce=True, **write)
    assert (allowed, enforced["code"]) == ([True, False, True], -32005)


def test_a_polite_restart_loses_nothing(place: Place) -> None:
    """The next process tells the same of a task, its words, its modes and its hierarchy."""
    with place.start() as first:
        parent = told(first, "create_task", mode_slug="code", initial_message="go")["session_id"]
        told(first, "create_task", mode_slug="ask", parent_session_id=parent)
        told(first, "switch_mode", session_id=parent, new_mode_slug="debug", reason="a bug")
        everything = {"session_id": parent, "include_messages": True, "include_hierarchy": True}
        before = told(first, "get_task_info", **everything)
        assert first.finish_input().code == 0
    with place.start() as second:
        after = told(second, "get_task_info", **everything)
    assert after.pop("last_activity") >= before.pop("last_activity")
    assert after == before


def test_without_persistence_nothing_is_written_to_disk(place: Place) -> None:
    """Whatever is done."""
    place.configure(enabled=False)
    before = place.files()
    with place.start() as process:
        session_id = told(process, "create_task", mode_slug="code", initial_message="go")["session_id"]
        told(process, "switch_mode", session_id=session_id, new_mode_slug="ask")
        told(process, "complete_task", session_id=session_id, status="completed", result="done")
        assert told(process, "get_task_info", session_id=session_id)["state"] == "completed"
        during = place.files()
        assert process.finish_input().code == 0
    assert [during, place.files()] == [before, before]
    assert list(place.home.iterdir()) == []


@pytest.mark.parametrize("said", [[ping(1)], [tool(1, "list_modes")]], ids=["ping", "list_modes"])
def test_a_client_that_uses_no_session_gets_no_file(place: Place, said: list[Json]) -> None:
    """Nor a directory."""
    with place.start() as process:
        ended = process.finish_input(*said)
    assert ([answer["id"] for answer in ended.messages], list(place.home.iterdir())) == ([1], [])


def test_a_storage_path_that_is_a_file_is_an_error_per_call(place: Place) -> None:
    """It is told in a sentence that names no directory; all that needs no store works, before and after."""
    in_the_way = place.directory / "in the way"
    in_the_way.write_text("mine")
    place.configure(enabled=True, storage_path=str(in_the_way))
    with place.start() as process:
        error = refusal(process, "create_task", mode_slug="code")
        looked = refusal(process, "get_task_info", session_id=NEVER_SEEN)
        modes = told(process, "list_modes")["modes"]
        assert process.finish_input().code == 0
    assert (error["code"], looked["code"], len(modes) >= 5, in_the_way.read_text()) == (-32603, -32603, True, "mine")
    assert "sessions.db" in error["message"]
    assert str(place.directory) not in str((error, looked))


def test_a_file_that_is_no_database_is_set_aside_and_the_call_works(place: Place) -> None:
    """It is kept to the byte, under another name, and the log says which."""
    place.storage.mkdir(parents=True)
    (place.storage / "sessions.db").write_bytes(b"no database " * 1000)
    with place.start() as process:
        session_id = told(process, "create_task", mode_slug="code")["session_id"]
        log = process.finish_input().stderr
    aside = [path.name for path in place.storage.iterdir() if path.read_bytes() == b"no database " * 1000]
    assert (len(aside), all(name in log for name in aside)) == (1, True)
    with place.start() as process:
        assert told(process, "get_task_info", session_id=session_id)["state"] == "active"


def test_the_timeout_of_the_environment_is_in_force(place: Place) -> None:
    """A microsecond is over before anybody can ask again."""
    with place.start(ROO_SESSION_TIMEOUT="0.000001") as process:
        session_id = told(process, "create_task", mode_slug="code")["session_id"]
        codes = [refusal(process, "get_task_info", session_id=each)["code"] for each in (session_id, NEVER_SEEN)]
    assert codes == [-32003, -32002]


# The same with a clock in our hands: two `Sessions`, as in two processes, on one file.

START = 1_000_000.0
TIMEOUT = 3600.0
TICK = 300.0


class File:
    """One file, one clock, and what was told."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.time = START
        self.told: list[SessionEvent] = []
        self.opened: list[Sessions] = []

    def open(self, sleep: Callable[[float], None] | None = None) -> Sessions:
        store = Store(self.path, MIGRATIONS, sleep=sleep) if sleep else Store(self.path, MIGRATIONS)
        timing = Timing(timeout=TIMEOUT, cleanup_interval=TICK)
        sessions = Sessions(store, timing, tell=self.told.append, now=lambda: self.time)
        self.opened.append(sessions)
        return sessions


@pytest.fixture
async def file(tmp_path: Path) -> AsyncIterator[File]:
    file = File(tmp_path / "sessions.db")
    yield file
    for sessions in file.opened:
        await sessions.close()


@pytest.fixture
def raw(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    """The file itself, past all of our code."""
    with closing(sqlite3.connect(tmp_path / "sessions.db", isolation_level=None)) as connection:
        yield connection


async def test_what_one_changed_the_other_sees_at_once(file: File) -> None:
    """And judges its own changes by it."""
    one, other = file.open(), file.open()
    session_id = (await one.create("code", None, None)).session_id
    await other.switch(session_id, "ask", None)
    assert one.get(session_id).task.mode == "ask"
    await one.complete(session_id, "cancelled", None)
    with pytest.raises(ValidationFailed, match="cancelled"):
        await other.switch(session_id, "code", None)


async def test_a_tombstone_and_everything_else_survives_a_restart(file: File) -> None:
    """Tasks, words, modes, states, hierarchy."""
    sessions = file.open()
    parent = await sessions.create("code", "go", None)
    child = await sessions.create("code", None, parent.session_id)
    gone = await sessions.create("code", None, child.session_id)
    await sessions.switch(parent.session_id, "ask", "why not")
    await sessions.complete(child.session_id, "failed", "no")
    await sessions.destroy(gone.session_id)

    def all_of(sessions: Sessions) -> list[object]:
        found: list[Session] = [sessions.get(each.session_id) for each in (parent, child)]
        return [found, *(sessions.record(each) for each in found)]

    before = all_of(sessions)
    await sessions.close()
    again = file.open()
    assert before == all_of(again)
    with pytest.raises(SessionExpired):
        again.get(gone.session_id)


async def test_looking_costs_no_transaction(file: File, raw: sqlite3.Connection) -> None:
    """Nor does a clean-up or a flush with nothing to do."""
    sessions = file.open()
    session = await sessions.create("code", None, None)
    before = raw.execute("PRAGMA data_version").fetchone()
    await sessions.flush()
    await sessions.clean_up()
    sessions.get_by_task(session.task.task_id)
    sessions.record(session)
    assert raw.execute("PRAGMA data_version").fetchone() == before
    assert not sessions.flush_is_due.is_set()


Write = Callable[[Sessions], Awaitable[object]]
WRITES: dict[str, Write] = {
    "flush": lambda sessions: sessions.flush(),
    "any change": lambda sessions: sessions.create("code", None, None),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
@pytest.mark.parametrize("refused_first", [False, True])
async def test_uses_are_written_with_the_next_commit(file: File, write: Write, refused_first: bool) -> None:
    """Of whatever it is; a change that is refused in between loses none of them."""
    sessions, other = file.open(), file.open()
    session = await sessions.create("code", None, None)
    file.time += TIMEOUT
    sessions.get(session.session_id)
    if refused_first:
        with pytest.raises(TaskNotFound):
            await sessions.switch(NEVER_SEEN, "ask", None)
    await write(sessions)
    assert other.get(session.session_id).last_activity == START + TIMEOUT


async def test_cleaning_up_leaves_nothing_of_a_session_but_its_tombstone(file: File, raw: sqlite3.Connection) -> None:
    """Not its messages either."""
    sessions = file.open()
    await sessions.create("code", "hello", None)
    file.time += TIMEOUT + TICK + 1
    await sessions.clean_up()
    tables = ("sessions", "messages", "mode_changes", "expired_sessions")
    rows = [raw.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in tables]
    assert rows == [0, 0, 0, 1]


async def test_cleaning_up_spares_what_another_may_have_used_and_not_yet_written(file: File) -> None:
    """It writes its uses at the latest after a tick."""
    one, other = file.open(), file.open()
    session = await one.create("code", None, None)
    file.time += TIMEOUT
    one.get(session.session_id)
    file.time += TICK
    assert await other.clean_up() == 0
    await one.flush()
    assert other.get(session.session_id).last_activity == START + TIMEOUT


class Held:
    """The file is somebody else's for a while: what is being written waits until it is let go."""

    def __init__(self, raw: sqlite3.Connection) -> None:
        self._raw = raw
        self._go_on = ThreadEvent()
        self.waits = trio.Event()

    def take(self) -> None:
        self._raw.execute("BEGIN IMMEDIATE")

    def let_go(self) -> None:
        self._raw.execute("ROLLBACK")
        self._go_on.set()

    def sleep(self, _: float) -> None:
        trio.from_thread.run_sync(self.waits.set)
        self._go_on.wait()


async def test_a_use_counts_while_it_is_being_written(file: File, raw: sqlite3.Connection) -> None:
    """It is neither in the file nor among those that wait for the next commit."""
    held = Held(raw)
    sessions = file.open(held.sleep)
    session_id = (await sessions.create("code", None, None)).session_id
    file.time += TIMEOUT
    sessions.get(session_id)
    file.time += TIMEOUT
    held.take()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(sessions.flush)
        await held.waits.wait()
        try:
            assert sessions.get(session_id).last_activity == START + TIMEOUT
        finally:
            held.let_go()


async def test_a_change_that_was_made_is_told_even_if_its_caller_was_cancelled_meanwhile(
    file: File, raw: sqlite3.Connection
) -> None:
    """It is on the disk, so whoever watches the task must hear of it. (Of two at once, one waits for the other.)"""
    held = Held(raw)
    sessions = file.open(held.sleep)
    made = [(await sessions.create("code", None, None)).session_id for _ in range(2)]
    held.take()
    async with trio.open_nursery() as nursery:
        for session_id in made:
            nursery.start_soon(sessions.switch, session_id, "ask", None)
        await held.waits.wait()
        nursery.cancel_scope.cancel()
        held.let_go()
    switched = [session_id for session_id in made if sessions.get(session_id).task.mode == "ask"]
    told = [event.session_id for event in file.told if isinstance(event, ModeSwitched)]
    assert sorted(switched) == sorted(told)
