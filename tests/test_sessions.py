"""Sessions and tasks: what may be done to them, and what they say of each other."""

import secrets

import pytest

from modes_actor.sessions import tables
from modes_actor.sessions.model import (
    FinalState,
    Message,
    ModeChange,
    ModeSwitched,
    Node,
    Session,
    SessionCreated,
    SessionsExpired,
    Task,
    TaskCompleted,
)
from modes_actor.wire.errors import SessionExpired, TaskNotFound, ValidationFailed
from tests.sessions_desk import NEVER_SEEN, START, TIMEOUT, Change, Desk, each_change
from tests.task_records import history, messages, tree

FINAL: tuple[FinalState, ...] = ("completed", "failed", "cancelled")


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
