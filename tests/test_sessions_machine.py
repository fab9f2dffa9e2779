"""Sessions against a plain model: two processes' worth of them on one file, which end, begin again, and age.

The model knows, for every session, what was written and what each of the two has seen but not written yet. After
every step a third one, which has seen nothing, must find in the file exactly what the model says was written.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import trio
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from modes_actor.sessions.model import (
    FinalState,
    ModeSwitched,
    Session,
    SessionCreated,
    SessionEvent,
    SessionsExpired,
    TaskCompleted,
)
from modes_actor.sessions.sessions import TOMBSTONE_SECONDS, Sessions, Timing
from modes_actor.sessions.tables import MIGRATIONS
from modes_actor.store.database import Store
from modes_actor.wire.errors import RequestError, SessionExpired, TaskNotFound, ValidationFailed
from tests.task_records import history, messages, tree

TIMEOUT = 100.0
TICK = 10.0
NEVER_SEEN = f"sess_{'0' * 32}"
MODES = ("code", "ask", "architect")
Said = tuple[str, str, float]


@dataclass
class Known:
    """What must be in the file about one session."""

    mode: str
    parent: str | None
    created: float
    used: float
    state: str = "active"
    completed: float | None = None
    messages: list[Said] = field(default_factory=list)
    modes: list[tuple[str, str | None, float]] = field(default_factory=list)


class Model:
    def __init__(self) -> None:
        self.now = 1_000_000.0
        self.known: dict[str, Known] = {}
        self.tombstones: dict[str, float] = {}
        self.forgotten: set[str] = {NEVER_SEEN}
        self.unwritten: list[dict[str, float]] = [{}, {}]

    def chosen(self, which: int) -> str:
        """One of them, mostly one that is alive."""
        alive = [each for each in self.known if any(self.trouble(who, each) is None for who in (0, 1))]
        others = [NEVER_SEEN, *(each for each in (*self.known, *self.tombstones) if each not in alive)]
        return alive[which % len(alive)] if alive and which < 8 else others[which % len(others)]

    def trouble(self, who: int | None, session_id: str, *, to_change: bool = False) -> type[RequestError] | None:
        """What one of the two, or somebody who has seen nothing, must say instead of serving it."""
        task = self.known.get(session_id)
        if task is None:
            return SessionExpired if session_id in self.tombstones else TaskNotFound
        if self.used(who, session_id) < self.now - TIMEOUT:
            return SessionExpired
        return ValidationFailed if to_change and task.state != "active" else None

    def used(self, who: int | None, session_id: str) -> float:
        used = self.known[session_id].used
        return used if who is None else max(used, self.unwritten[who].get(session_id, 0.0))

    def written(self, who: int) -> None:
        """A commit takes along every use that one has seen."""
        for session_id, when in self.unwritten[who].items():
            if session_id in self.known:
                self.known[session_id].used = max(self.known[session_id].used, when)
        self.unwritten[who].clear()

    def above(self, session_id: str) -> tuple[str, ...]:
        line: list[str] = []
        parent = self.known[session_id].parent
        while parent is not None and parent in self.known:
            line.append(parent)
            parent = self.known[parent].parent
        return tuple(line)

    def use_above(self, who: int, session_id: str) -> None:
        """A change in a subtask is a use of the tasks that wait for it, unless they have expired."""
        for each in self.above(session_id):
            if self.trouble(who, each) is None:
                self.known[each].used = max(self.known[each].used, self.now)

    def children(self, session_id: str) -> list[str]:
        return [each for each, task in self.known.items() if task.parent == session_id]

    def below(self, session_id: str) -> list[str]:
        return [each for child in self.children(session_id) for each in (child, *self.below(child))]

    def depths(self, session_id: str) -> dict[str, int]:
        """The tree that a session is in."""
        top = (session_id, *self.above(session_id))[-1]
        return {each: self._depth(each, top) for each in (top, *self.below(top))}

    def _depth(self, session_id: str, top: str) -> int:
        return 0 if session_id == top else 1 + self.above(session_id).index(top)

    def bury(self, *session_ids: str) -> None:
        for each in session_ids:
            del self.known[each]
            self.tombstones[each] = self.now


who = st.integers(0, 1)
which = st.integers(0, 9)
texts = st.none() | st.sampled_from(["", "go on", "e\u0301 \0 '"])


class SessionsMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.model = Model()
        self.told: list[SessionEvent] = []
        self.directory = TemporaryDirectory()
        self.path = Path(self.directory.name) / "store" / "sessions.db"
        self.two = [self.opened(), self.opened()]
        self.store_of_a_third = Store(self.path, MIGRATIONS)

    def opened(self, store: Store | None = None) -> Sessions:
        timing = Timing(timeout=TIMEOUT, cleanup_interval=TICK)
        store = store or Store(self.path, MIGRATIONS)
        return Sessions(store, timing, tell=self.told.append, now=lambda: self.model.now)

    def teardown(self) -> None:
        for each in (*self.two, self.opened(self.store_of_a_third)):
            trio.run(each.close)
        self.directory.cleanup()

    def refuses(self, trouble: type[RequestError] | None, change: Callable[[], Awaitable[object]]) -> bool:
        """Whether the model expects trouble; then there must be that trouble, and nothing may be told."""
        if trouble is None:
            return False
        with pytest.raises(trouble):
            trio.run(change)
        assert self.told == []
        return True

    def expect_told(self, *events: SessionEvent) -> None:
        told, self.told[:] = list(self.told), []
        assert told == list(events)

    # What a client does.

    @initialize()
    def begin_with_a_task_and_one_below(self) -> None:
        """So that there is something to do to something."""
        self.created(0, "code", None, self.created(0, "code", None, None))

    @rule(who=who, mode=st.sampled_from(MODES), text=texts)
    @precondition(lambda self: len(self.model.known) < 8)
    def create(self, who: int, mode: str, text: str | None) -> None:
        self.created(who, mode, text, None)

    @rule(who=who, mode=st.sampled_from(MODES), text=texts, which=which)
    @precondition(lambda self: len(self.model.known) < 8)
    def create_below(self, who: int, mode: str, text: str | None, which: int) -> None:
        model, parent = self.model, self.model.chosen(which)
        trouble = model.trouble(who, parent, to_change=True)
        if self.refuses(trouble, lambda: self.two[who].create(mode, text, parent)):
            return
        self.created(who, mode, text, parent)

    def created(self, who: int, mode: str, text: str | None, parent: str | None) -> str:
        model, now = self.model, self.model.now
        session_id = trio.run(self.two[who].create, mode, text, parent).session_id
        messages = [] if text is None else [("user", text, now)]
        model.known[session_id] = Known(mode, parent, now, now, messages=messages, modes=[(mode, None, now)])
        model.written(who)
        model.use_above(who, session_id)
        self.expect_told(SessionCreated(session_id, model.above(session_id)))
        return session_id

    @rule(who=who, which=which)
    def look(self, who: int, which: int) -> None:
        self.looked(who, self.model.chosen(which))

    def looked(self, who: int, session_id: str) -> None:
        trouble = self.model.trouble(who, session_id)
        if trouble is not None:
            with pytest.raises(trouble):
                self.two[who].get(session_id)
            return
        self.two[who].get(session_id)
        unwritten = self.model.unwritten[who]
        above = [each for each in self.model.above(session_id) if self.model.trouble(who, each) is None]
        for each in (session_id, *above):
            unwritten[each] = max(self.model.used(who, each), self.model.now)

    @rule(who=who, which=which, mode=st.sampled_from(MODES), reason=texts)
    def switch(self, who: int, which: int, mode: str, reason: str | None) -> None:
        model, session_id = self.model, self.model.chosen(which)
        trouble = model.trouble(who, session_id, to_change=True)
        if self.refuses(trouble, lambda: self.two[who].switch(session_id, mode, reason)):
            return
        task = model.known[session_id]
        old_mode, task.mode, task.used = task.mode, mode, max(task.used, model.now)
        task.modes.append((mode, reason, model.now))
        assert trio.run(self.two[who].switch, session_id, mode, reason)[0] == old_mode
        model.written(who)
        model.use_above(who, session_id)
        self.expect_told(ModeSwitched(session_id, model.above(session_id)))

    @rule(who=who, which=which, state=st.sampled_from(["completed", "failed", "cancelled"]), result=texts)
    def complete(self, who: int, which: int, state: FinalState, result: str | None) -> None:
        model, now, session_id = self.model, self.model.now, self.model.chosen(which)
        trouble = model.trouble(who, session_id, to_change=True)
        if self.refuses(trouble, lambda: self.two[who].complete(session_id, state, result)):
            return
        model.written(who)
        below = model.below(session_id) if state == "cancelled" else []
        cancelled = [each for each in below if model.trouble(who, each, to_change=True) is None]
        for each in (session_id, *cancelled):
            task = model.known[each]
            task.state, task.completed, task.used = state, now, max(task.used, now)
        if result is not None:
            model.known[session_id].messages.append(("assistant", result, now))
        still_open = [each for each in model.children(session_id) if not model.trouble(who, each, to_change=True)]
        done = trio.run(self.two[who].complete, session_id, state, result)
        assert (sorted(done.cancelled), done.still_open) == (sorted(cancelled), len(still_open))
        model.use_above(who, session_id)
        self.expect_told(TaskCompleted(session_id, model.above(session_id), done.cancelled))

    @rule(who=who, which=which)
    def destroy(self, who: int, which: int) -> None:
        model, session_id = self.model, self.model.chosen(which)
        if self.refuses(model.trouble(who, session_id), lambda: self.two[who].destroy(session_id)):
            return
        trio.run(self.two[who].destroy, session_id)
        model.written(who)
        model.bury(session_id)
        self.expect_told(SessionsExpired((session_id,)))

    # What time does, and an editor.

    @rule(seconds=st.sampled_from([TICK, TIMEOUT * 0.4, -5.0]))
    def time_passes(self, seconds: float) -> None:
        self.model.now += seconds

    @rule()
    @precondition(lambda self: self.model.tombstones)
    def a_day_passes(self) -> None:
        self.model.now += TOMBSTONE_SECONDS

    @rule(who=who, which=which)
    def time_passes_in_one_session(self, who: int, which: int) -> None:
        """It stays in use, while others may age beyond their time."""
        session_id = self.model.chosen(which)
        for _ in range(3):
            self.looked(who, session_id)
            self.model.now += TIMEOUT * 0.4

    @rule(who=who)
    def clean_up(self, who: int) -> None:
        model = self.model
        idle = {each for each, task in model.known.items() if task.used < model.now - TIMEOUT - TICK}
        old = [each for each, when in model.tombstones.items() if when < model.now - TOMBSTONE_SECONDS]
        if idle or old:
            model.written(who)
        idle = {each for each in idle if model.known[each].used < model.now - TIMEOUT - TICK}
        for each in old:
            del model.tombstones[each]
        model.forgotten.update(old)
        model.bury(*idle)
        assert trio.run(self.two[who].clean_up) == len(idle)
        told, self.told[:] = list(self.told), []
        assert sorted(each for event in told if isinstance(event, SessionsExpired) for each in event.session_ids) == (
            sorted(idle)
        )

    @rule(who=who)
    def flush(self, who: int) -> None:
        trio.run(self.two[who].flush)
        self.model.written(who)

    @rule(who=who, politely=st.booleans())
    def restart(self, who: int, politely: bool) -> None:
        """Without a chance to write the last uses, if it is not polite."""
        if politely:
            self.flush(who)
        trio.run(self.two[who].close)
        self.two[who] = self.opened()
        self.model.unwritten[who].clear()

    # What must be in the file, whatever happened.

    @invariant()
    def the_file_has_what_was_written_and_nothing_else(self) -> None:
        for session_id in (*self.model.known, *self.model.tombstones, *sorted(self.model.forgotten)):
            third = self.opened(self.store_of_a_third)
            trouble = self.model.trouble(None, session_id)
            if trouble is None:
                self.check(third, third.get(session_id))
            else:
                with pytest.raises(trouble):
                    third.get(session_id)

    @invariant()
    def the_recent_ones_are_those_that_are_alive(self) -> None:
        """As far as each of them knows."""
        for who, sessions in ((0, self.two[0]), (1, self.two[1]), (None, self.opened(self.store_of_a_third))):
            recent = [each.session_id for each in sessions.recent(limit=1000)]
            alive = [each for each in self.model.known if self.model.trouble(who, each) is None]
            assert sorted(recent) == sorted(alive)
            used = [self.model.used(who, each) for each in recent]
            assert used == sorted(used, reverse=True)

    def check(self, third: Sessions, found: Session) -> None:
        task = found.task
        kept = Known(
            task.mode,
            task.parent_session_id,
            found.created,
            found.last_activity,
            task.state,
            task.completed,
            [(each.role, each.content, each.timestamp) for each in messages(third, found)],
            [(each.mode, each.reason, each.timestamp) for each in history(third, found)],
        )
        assert kept == self.model.known[found.session_id]
        nodes = tree(third, found)
        assert {each.session_id: each.depth for each in nodes} == self.model.depths(found.session_id)
        places = {each.session_id: place for place, each in enumerate(nodes)}
        assert all(places.get(each.parent_session_id or "", -1) < places[each.session_id] for each in nodes)


TestSessionsAgainstAModel = SessionsMachine.TestCase
TestSessionsAgainstAModel.settings = settings(
    derandomize=True, database=None, deadline=None, max_examples=200, stateful_step_count=40
)
