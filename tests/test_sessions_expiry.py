"""How long sessions last: what keeps one alive, when it ends, and which were used last."""

from collections.abc import Iterable
from functools import partial
from sqlite3 import Connection

import pytest
import trio

from modes_actor.sessions import sessions as sessions_module
from modes_actor.sessions import tables
from modes_actor.sessions.model import Session, SessionsExpired
from modes_actor.sessions.sessions import TOMBSTONE_SECONDS, Sessions
from modes_actor.wire.errors import SessionExpired, TaskNotFound
from tests.sessions_desk import CHANGES, START, TICK, TIMEOUT, Change, Desk, each_change

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
