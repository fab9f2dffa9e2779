"""Sessions and tasks: what may be done to them, what they say of each other, and when they end."""

import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from functools import partial
from pathlib import Path
from sqlite3 import Connection

import pytest
import trio

from modes_actor.sessions import sessions as sessions_module
from modes_actor.sessions import tables
from modes_actor.sessions.model import (
    FinalState,
    Message,
    ModeChange,
    ModeSwitched,
    Node,
    Session,
    SessionCreated,
    SessionEvent,
    SessionsExpired,
    Task,
    TaskCompleted,
)
from modes_actor.sessions.sessions import TOMBSTONE_SECONDS, Sessions, Timing
from modes_actor.store.database import Store
from modes_actor.wire.errors import SessionExpired, TaskNotFound, ValidationFailed
from tests.task_records import history, messages, tree

START = 1_000_000.0
TIMEOUT = 3600.0
TICK = 300.0
NEVER_SEEN = f"sess_{'0' * 32}"
FINAL: tuple[FinalState, ...] = ("completed", "failed", "cancelled")

Change = Callable[[Sessions, str], Awaitable[object]]
CHANGES: dict[str, Change] = {
    "switch": lambda sessions, session_id: sessions.switch(session_id, "ask", None),
    "complete": lambda sessions, session_id: sessions.complete(session_id, "completed", "done"),
    "cancel": lambda sessions, session_id: sessions.complete(session_id, "cancelled", None),
    "create below": lambda sessions, session_id: sessions.create("ask", "below", session_id),
}
each_change = pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)


class Desk:
    """Sessions at one place, under one clock, with what they told."""

    def __init__(self, path: Path | None) -> None:
        self.time = START
        self.told: list[SessionEvent] = []
        timing = Timing(timeout=TIMEOUT, cleanup_interval=TICK)
        self.store = Store(path, tables.MIGRATIONS)
        self.sessions = Sessions(self.store, timing, tell=self.told.append, now=lambda: self.time)

    async def line(self, depth: int) -> list[Session]:
        """A task, one below it, one below that, each a second younger."""
        made: list[Session] = []
        for _ in range(depth):
            self.time += 1
            made.append(await self.sessions.create("code", None, made[-1].session_id if made else None))
        return made

    async def several(self, number: int) -> list[str]:
        """Tasks that have nothing to do with each other, each a second younger."""
        return [(await self.line(1))[0].session_id for _ in range(number)]

    def states(self, *made: Session) -> list[str]:
        return [self.sessions.get(each.session_id).task.state for each in made]


@pytest.fixture(params=["memory", "file"])
async def desk(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Desk]:
    desk = Desk(tmp_path / "sessions.db" if request.param == "file" else None)
    yield desk
    await desk.sessions.close()


def node(session: Session, depth: int) -> Node:
    task = session.task
    return Node(session.session_id, task.task_id, task.mode, task.state, task.parent_session_id, depth)


# Creating and looking up.


async def test_a_new_session_is_found_as_it_was_returned(desk: Desk) -> None:
    """All of it: an active task, the times, no parent; by its id or its task's."""
    session = await desk.sessions.create("architect", None, None)
    task = Task(
        task_id=session.task.task_id,
        mode="architect",
        state="active",
        created=START,
        completed=None,
        parent_session_id=None,
        metadata={},
    )
    expected = Session(session_id=session.session_id, task=task, created=START, last_activity=START)
    assert session == expected
    assert [expected] * 2 == [desk.sessions.get(session.session_id), desk.sessions.get_by_task(task.task_id)]


async def test_ids_have_their_form_and_are_never_the_same(desk: Desk) -> None:
    """`sess_` and 32 hex digits, `task_` and at least 12."""
    made = [await desk.sessions.create("code", None, None) for _ in range(20)]
    hexadecimal = set("0123456789abcdef")
    forms = {
        (sid[:5], len(sid[5:]), tid[:5], len(tid[5:]) >= 12, set(sid[5:] + tid[5:]) <= hexadecimal)
        for sid, tid in ((each.session_id, each.task.task_id) for each in made)
    }
    assert forms == {("sess_", 32, "task_", True, True)}
    assert len({each.session_id for each in made} | {each.task.task_id for each in made}) == 40


async def test_ids_come_from_where_nobody_can_guess_them(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of their digits are random, and by the generator that is made for secrets."""
    monkeypatch.setattr(secrets, "token_hex", lambda size: "ab" * size)
    made = await desk.sessions.create("code", None, None)
    assert (made.session_id, made.task.task_id) == (f"sess_{'ab' * 16}", f"task_{'ab' * 8}")


@pytest.mark.parametrize("text", ["", "a\0b", "🦘 \u2028 'quoted' --", "x" * 1_000_000], ids=["", "nul", "odd", "long"])
async def test_what_was_said_is_kept_to_the_letter(desk: Desk, text: str) -> None:
    """The initial message is the user's, the result the assistant's, the reason is the switch's."""
    session = await desk.sessions.create("code", text, None)
    desk.time += 1
    await desk.sessions.switch(session.session_id, "ask", text)
    desk.time += 1
    await desk.sessions.complete(session.session_id, "completed", text)
    assert messages(desk.sessions, session) == [Message("user", text, START), Message("assistant", text, START + 2)]
    assert history(desk.sessions, session) == [
        ModeChange("code", None, START),
        ModeChange("ask", text, START + 1),
    ]


@pytest.mark.parametrize("session_id", ["", "sess_", "nonsense", "task_0123456789abcdef", "sess_12\n", "sess_é" * 9])
async def test_what_cannot_be_a_session_id_is_a_validation_error(desk: Desk, session_id: str) -> None:
    """It was mistyped, not lost."""
    with pytest.raises(ValidationFailed):
        desk.sessions.get(session_id)


async def test_a_session_nobody_made_is_not_found(desk: Desk) -> None:
    """By its id or its task's."""
    with pytest.raises(TaskNotFound):
        desk.sessions.get(NEVER_SEEN)
    with pytest.raises(TaskNotFound):
        desk.sessions.get_by_task("task_000000000000")


@each_change
async def test_a_session_nobody_made_cannot_be_changed(desk: Desk, change: Change) -> None:
    """Nor become a parent; and nobody is told of anything."""
    with pytest.raises(TaskNotFound):
        await change(desk.sessions, NEVER_SEEN)
    assert (desk.told, desk.sessions.recent()) == ([], [])


# Switching and completing.


async def test_a_switch_returns_the_mode_before_and_the_session_after(desk: Desk) -> None:
    """As it is found from then on, used at the time of the switch."""
    session = await desk.sessions.create("code", None, None)
    desk.time += 10
    old_mode, after = await desk.sessions.switch(session.session_id, "debug", None)
    assert (old_mode, after.task.mode, after.last_activity) == ("code", "debug", START + 10)
    assert desk.sessions.get(session.session_id) == after


@pytest.mark.parametrize("state", FINAL)
async def test_an_ended_task_keeps_its_state_and_the_time_of_its_end(desk: Desk, state: FinalState) -> None:
    """It stays readable until the session expires."""
    session = await desk.sessions.create("code", None, None)
    desk.time += 10
    done = await desk.sessions.complete(session.session_id, state, None)
    desk.time += TIMEOUT
    found = desk.sessions.get(session.session_id)
    assert (done.cancelled, done.still_open, found) == ((), 0, done.session)
    assert (found.task.state, found.task.completed, found.task.created) == (state, START + 10, START)


@pytest.mark.parametrize("state", FINAL)
@each_change
async def test_an_ended_task_refuses_changes_and_says_its_state(desk: Desk, state: FinalState, change: Change) -> None:
    """What ended does not end again, nor begin again, nor get subtasks; nothing is left of the attempt."""
    session = await desk.sessions.create("code", "go", None)
    done = (await desk.sessions.complete(session.session_id, state, "done")).session
    desk.told.clear()
    with pytest.raises(ValidationFailed, match=rf"\b{state}\b"):
        await change(desk.sessions, session.session_id)
    assert (desk.sessions.get(session.session_id), desk.told) == (done, [])
    assert len(messages(desk.sessions, session)) == 2
    assert len(history(desk.sessions, session)) == 1
    assert tree(desk.sessions, done) == [node(done, 0)]


# Tasks below tasks.


async def test_a_hierarchy_of_depth_50_is_the_same_list_from_wherever_it_is_seen(desk: Desk) -> None:
    """Flat nodes, each parent before its children, with their depth."""
    line = await desk.line(50)
    expected = [node(session, depth) for depth, session in enumerate(line)]
    assert [expected] * 3 == [tree(desk.sessions, line[place]) for place in (0, 25, 49)]


async def test_a_hierarchy_has_older_children_first_and_theirs_before_the_next(desk: Desk) -> None:
    """A reader sees the tree as it would be drawn."""
    root, first, below = await desk.line(3)
    desk.time += 1
    second = await desk.sessions.create("ask", None, root.session_id)
    expected = [node(root, 0), node(first, 1), node(below, 2), node(second, 1)]
    assert expected == tree(desk.sessions, second)


async def test_a_task_is_in_its_own_hierarchy_however_many_tasks_there_are(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others may be left out where there are too many, the one that was asked about never."""
    monkeypatch.setattr(tables, "HIERARCHY_LIMIT", 5)
    last = (await desk.line(8))[-1]
    assert last.session_id in [each.session_id for each in tree(desk.sessions, last)]


@pytest.mark.parametrize("use", ["looked at", "changed"])
async def test_a_use_of_a_subtask_keeps_the_tasks_above_it_alive(desk: Desk, use: str) -> None:
    """Who waits for a subtask must still be there when it is done."""
    root, _, last = await desk.line(3)
    for _ in range(3):
        desk.time += TIMEOUT * 0.6
        if use == "looked at":
            desk.sessions.get(last.session_id)
        else:
            await desk.sessions.switch(last.session_id, "ask", None)
    assert desk.sessions.get(root.session_id).session_id == root.session_id


async def test_a_task_whose_parent_is_gone_is_the_top_of_what_is_left(desk: Desk) -> None:
    """It still says whose child it was."""
    root, child, below = await desk.line(3)
    await desk.sessions.destroy(root.session_id)
    assert tree(desk.sessions, below) == [node(child, 0), node(below, 1)]


async def test_cancelling_a_task_cancels_all_that_is_active_below_it_and_says_which(desk: Desk) -> None:
    """However deep, and below what has ended, too; nothing above or beside it."""
    root, task, ended, deep, deeper = await desk.line(5)
    beside = await desk.sessions.create("code", None, root.session_id)
    await desk.sessions.complete(ended.session_id, "completed", None)
    done = await desk.sessions.complete(task.session_id, "cancelled", None)
    assert sorted(done.cancelled) == sorted([deep.session_id, deeper.session_id])
    assert done.still_open == 0
    expected = ["active", "cancelled", "completed", "cancelled", "cancelled", "active"]
    assert expected == desk.states(root, task, ended, deep, deeper, beside)


@pytest.mark.parametrize("state", ["completed", "failed"])
async def test_completing_a_parent_says_how_many_children_are_open_and_leaves_them_so(
    desk: Desk, state: FinalState
) -> None:
    """Only cancelling takes others along."""
    root, first = await desk.line(2)
    others = [await desk.sessions.create("code", None, root.session_id) for _ in range(2)]
    await desk.sessions.complete(first.session_id, "completed", None)
    done = await desk.sessions.complete(root.session_id, state, None)
    assert (done.cancelled, done.still_open) == ((), 2)
    assert desk.states(*others) == ["active", "active"]


async def with_expired_child(desk: Desk) -> tuple[str, str]:
    """A parent that is alive, and its child, which is not, and has not been cleaned up."""
    root, child = [each.session_id for each in await desk.line(2)]
    desk.time += TIMEOUT - 10
    desk.sessions.get(root)
    desk.time += 20
    with pytest.raises(SessionExpired):
        desk.sessions.get(child)
    return root, child


async def test_an_expired_child_does_not_come_back_to_life_when_its_parent_is_cancelled(desk: Desk) -> None:
    """Expired is expired: its client was told so already."""
    root, child = await with_expired_child(desk)
    await desk.sessions.complete(root, "cancelled", None)
    with pytest.raises(SessionExpired):
        desk.sessions.get(child)


async def test_an_expired_child_is_not_open(desk: Desk) -> None:
    """Nobody can end it any more, and the answer must not depend on when the clean-up comes by."""
    root, _ = await with_expired_child(desk)
    assert (await desk.sessions.complete(root, "completed", None)).still_open == 0


# Events.


async def test_every_change_is_told_with_the_sessions_above_it(desk: Desk) -> None:
    """The nearest first: their hierarchies show it."""
    root, child, task = await desk.line(3)
    above = (child.session_id, root.session_id)
    desk.told.clear()
    below = await desk.sessions.create("code", None, task.session_id)
    await desk.sessions.switch(task.session_id, "ask", None)
    await desk.sessions.complete(task.session_id, "cancelled", None)
    await desk.sessions.destroy(task.session_id)
    assert desk.told == [
        SessionCreated(below.session_id, (task.session_id, *above)),
        ModeSwitched(task.session_id, above),
        TaskCompleted(task.session_id, above, (below.session_id,)),
        SessionsExpired((task.session_id,)),
    ]


# Expiry.

USES: dict[str, Change] = {
    **CHANGES,
    "get": lambda sessions, session_id: _done(sessions.get(session_id)),
    "get by task": lambda sessions, session_id: _done(sessions.get_by_task(sessions.get(session_id).task.task_id)),
}


async def _done(_: object) -> None:
    await trio.lowlevel.checkpoint()


def is_expired(sessions: Sessions, session_id: str) -> bool:
    """A use of it, if it is not."""
    try:
        sessions.get(session_id)
    except SessionExpired:
        return True
    return False


@pytest.mark.parametrize("use", USES.values(), ids=USES)
async def test_any_use_keeps_a_session_alive_for_the_whole_timeout(desk: Desk, use: Change) -> None:
    """To the second."""
    session_id = (await desk.sessions.create("code", None, None)).session_id
    desk.time += TIMEOUT
    await use(desk.sessions, session_id)
    desk.time += TIMEOUT
    assert not is_expired(desk.sessions, session_id)


@each_change
@pytest.mark.parametrize("cleaned_up", [False, True])
async def test_an_expired_session_is_told_apart_from_one_that_never_was(
    desk: Desk, change: Change, cleaned_up: bool
) -> None:
    """Whether or not it was cleaned up already; nothing can be done to it."""
    session = await desk.sessions.create("code", None, None)
    desk.time += TIMEOUT + 2 * TICK
    assert (await desk.sessions.clean_up() if cleaned_up else 1) == 1
    desk.told.clear()
    with pytest.raises(SessionExpired):
        await change(desk.sessions, session.session_id)
    assert (is_expired(desk.sessions, session.session_id), desk.told, desk.sessions.recent()) == (True, [], [])


@pytest.mark.parametrize("cleaned_up", [False, True])
async def test_a_task_id_of_an_expired_session_is_told_apart_too(desk: Desk, cleaned_up: bool) -> None:
    """The clean-up must not change what a client is told."""
    session = await desk.sessions.create("code", None, None)
    desk.time += TIMEOUT + 2 * TICK
    assert (await desk.sessions.clean_up() if cleaned_up else 1) == 1
    with pytest.raises(SessionExpired):
        desk.sessions.get_by_task(session.task.task_id)


async def test_a_tombstone_is_kept_for_a_day_and_then_removed(desk: Desk) -> None:
    """Also that of a session which was destroyed."""
    session = await desk.sessions.create("code", None, None)
    await desk.sessions.destroy(session.session_id)
    desk.time += TOMBSTONE_SECONDS
    assert (await desk.sessions.clean_up(), is_expired(desk.sessions, session.session_id)) == (0, True)
    desk.time += 1
    assert await desk.sessions.clean_up() == 0
    with pytest.raises(TaskNotFound):
        desk.sessions.get(session.session_id)


async def test_cleaning_up_goes_in_batches_and_tells_each(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that others get their turn; what is alive stays."""
    monkeypatch.setattr(sessions_module, "EXPIRED_AT_ONCE", 2)
    idle = await desk.several(5)
    desk.time += TIMEOUT + TICK + 1
    alive = await desk.sessions.create("code", None, None)
    desk.told.clear()
    assert await desk.sessions.clean_up() == 5
    assert desk.told == [SessionsExpired(tuple(idle[start : start + 2])) for start in (0, 2, 4)]
    assert desk.sessions.recent() == [alive]


async def test_cleaning_up_can_be_cancelled_between_two_batches(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that ends does not wait until thousands are gone."""
    monkeypatch.setattr(sessions_module, "EXPIRED_AT_ONCE", 2)
    await desk.several(5)
    desk.time += TIMEOUT + TICK + 6
    with trio.CancelScope() as scope:
        timing, now = desk.sessions.timing, desk.time
        await Sessions(desk.store, timing, tell=lambda event: scope.cancel(), now=lambda: now).clean_up()
    assert scope.cancelled_caught
    assert await desk.sessions.clean_up() == 3


async def test_tombstones_are_removed_in_batches_too(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of them, though no session has expired."""
    batches: list[int] = []
    forget = tables.forget_expired

    def noted(connection: Connection, before: float, limit: int) -> None:
        forget(connection, before, limit)
        batches.append(connection.execute("SELECT count(*) FROM expired_sessions").fetchone()[0])

    monkeypatch.setattr(sessions_module, "EXPIRED_AT_ONCE", 2)
    monkeypatch.setattr(tables, "forget_expired", noted)
    for session_id in await desk.several(5):
        await desk.sessions.destroy(session_id)
    desk.time += TOMBSTONE_SECONDS + 1
    assert await desk.sessions.clean_up() == 0
    assert batches == [3, 1, 0]


async def test_a_commit_takes_so_many_uses_along_and_no_more(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is left comes along with the next, and a flush writes all."""
    monkeypatch.setattr(sessions_module, "TOUCHED_AT_ONCE", 3)
    written: list[int] = []
    touch = tables.touch

    def noted(connection: Connection, touched: Iterable[tuple[str, float]]) -> None:
        known = list(touched)
        written.append(len(known))
        touch(connection, known)

    made = await desk.several(8)
    await desk.sessions.flush()
    for session_id in made:
        desk.sessions.get(session_id)
    monkeypatch.setattr(tables, "touch", noted)
    await desk.sessions.destroy(made.pop())
    await desk.sessions.flush()
    assert written == [3, 3, 2]


async def test_cleaning_up_spares_what_was_used_without_a_commit(desk: Desk) -> None:
    """The use is written with it."""
    session = await desk.sessions.create("code", None, None)
    desk.time += TIMEOUT
    desk.sessions.get(session.session_id)
    desk.time += TIMEOUT
    assert (await desk.sessions.clean_up(), is_expired(desk.sessions, session.session_id)) == (0, False)


async def test_very_many_uses_are_to_be_written_soon(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the next change would have to wait for all of them. Writing that fails is not asked for again and again."""
    monkeypatch.setattr(sessions_module, "TOUCHED_AT_ONCE", 3)
    made = await desk.several(4)
    await desk.sessions.flush()
    due = []
    for session_id in (*made[:2], made[0], *made[2:]):
        desk.sessions.get(session_id)
        due.append(desk.sessions.flush_is_due.is_set())
    assert due == [False, False, False, True, True]
    desk.sessions.flush_is_due = trio.Event()  # it was tried, and nothing could be written
    desk.sessions.get(made[0])
    assert not desk.sessions.flush_is_due.is_set()
    await desk.sessions.flush()
    desk.sessions.get(made[0])
    assert not desk.sessions.flush_is_due.is_set()


# The most recent.


async def test_the_last_used_come_first_whether_or_not_it_was_written(desk: Desk) -> None:
    """To look is to use."""
    first, second, third = await desk.several(3)
    desk.time += 1
    desk.sessions.get(first)
    assert [each.session_id for each in desk.sessions.recent()] == [first, third, second]


async def test_a_limit_takes_the_last_used(desk: Desk) -> None:
    """Whether or not the use was written."""
    first, _ = await desk.several(2)
    desk.time += 1
    desk.sessions.get(first)
    assert [each.session_id for each in desk.sessions.recent(limit=1)] == [first]


async def test_a_session_that_is_only_looked_at_stays_among_the_recent(desk: Desk) -> None:
    """It is alive, so it is listed."""
    session = await desk.sessions.create("code", None, None)
    desk.time += TIMEOUT
    desk.sessions.get(session.session_id)
    desk.time += 1
    assert [each.session_id for each in desk.sessions.recent()] == [session.session_id]


async def test_a_session_that_has_expired_is_not_among_the_recent(desk: Desk) -> None:
    """Even if its last use was never written."""
    session_id = (await desk.several(1))[0]
    desk.sessions.get(session_id)
    desk.time += TIMEOUT + 1
    assert (desk.sessions.recent(), is_expired(desk.sessions, session_id)) == ([], True)


async def test_a_prefix_of_recent_ones_is_taken_literally(desk: Desk) -> None:
    """Nothing in it stands for anything else."""
    session = await desk.sessions.create("code", None, None)
    prefixes = ["", "sess_", session.session_id, "%", "sess%", "s_ss_", "SESS_"]
    assert [len(desk.sessions.recent(prefix=prefix)) for prefix in prefixes] == [1, 1, 1, 0, 0, 0, 0]


async def test_any_beginning_finds_all_that_begin_so_and_nothing_else(desk: Desk) -> None:
    """The latest first, however much of an ID has been typed."""
    await desk.several(40)
    everything = [session.session_id for session in desk.sessions.recent()]
    for length in range(len(everything[0]) + 1):
        for typed in {session_id[:length] for session_id in everything}:
            found = [session.session_id for session in desk.sessions.recent(prefix=typed)]
            assert found == [each for each in everything if each.startswith(typed)]


async def test_a_beginning_is_looked_up_and_not_searched_for(desk: Desk) -> None:
    """It takes no more steps among many sessions than among few."""
    steps = [0, 0]

    def look(connection: Connection, among: int, session_id: str) -> list[Session]:
        def count() -> None:
            steps[among] += 1

        connection.set_progress_handler(count, 1)
        try:
            return tables.recent(connection, since=START, limit=100, prefix=session_id)
        finally:
            connection.set_progress_handler(None, 1)

    for among in range(2):
        await desk.several(300)
        session_id = desk.sessions.recent(limit=1)[0].session_id
        assert len(desk.store.read(partial(look, among=among, session_id=session_id))) == 1
    assert steps[0] == steps[1] > 0


# A clock that jumps back.


async def test_a_clock_that_jumps_back_ends_nothing(desk: Desk) -> None:
    """No session is of negative age, expires, or is cleaned up because of it."""
    session = await desk.sessions.create("code", None, None)
    desk.time -= 1_000_000
    found = desk.sessions.get(session.session_id)
    assert (desk.sessions.age(found), desk.sessions.seconds_idle(found), await desk.sessions.clean_up()) == (0, 0, 0)
    assert (await desk.sessions.switch(session.session_id, "ask", None))[1].last_activity == START


async def test_a_use_after_the_clock_jumped_back_takes_no_earlier_use_away(desk: Desk) -> None:
    """Whether or not a commit came between the two."""
    session = await desk.sessions.create("code", None, None)
    desk.time = START + 1000
    desk.sessions.get(session.session_id)
    desk.time = START + 10
    desk.sessions.get(session.session_id)
    assert desk.sessions.get(session.session_id).last_activity == START + 1000


async def test_a_line_of_tasks_that_bites_its_own_tail_has_an_end(desk: Desk) -> None:
    """No task of ours is above itself, but a file can be damaged; looking at it must not take forever."""
    first, second = await desk.line(2)
    statement = "UPDATE sessions SET parent_session_id = ? WHERE session_id = ?"
    ids = (second.session_id, first.session_id)
    await desk.store.write(lambda connection: connection.execute(statement, ids).rowcount)
    found = desk.sessions.get(first.session_id)
    assert {node.session_id for node in tree(desk.sessions, found)} == {first.session_id, second.session_id}
    done = await desk.sessions.complete(first.session_id, "cancelled", None)
    assert done.cancelled == (second.session_id,)
