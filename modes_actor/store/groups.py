"""Who waits for a commit, and who makes it.

Promises: changes are taken in the order they were brought; everything that has gathered while one group was being
committed is the next group; a change whose caller is cancelled before it is taken never runs; one that is taken is
carried through, whoever is cancelled. There is no background task: the first who waits leads the next group.

What waits (for other processes, for the disk) does so in a thread. Changes take microseconds each, mostly, and run
here, a few at a time: in a thread they would pass Python's lock to and fro with each statement, which takes longer.
From the first one on that takes its time, the rest of its group runs in the thread, too.
"""

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol

import trio

from modes_actor.wire.errors import Unavailable

if TYPE_CHECKING:
    import sqlite3

APPLIED_AT_ONCE: Final = 32
"""Changes, before everything else gets its turn."""
TURN_SECONDS: Final = 0.01
"""What they may take together. After that the rest of the group is not left to run here."""


class NoThread(Exception):
    """The process can start no thread now, and a commit must not keep everything else waiting."""


class Change:
    """What one caller wants done, and what became of it. `may_last`: longer than everything else should wait."""

    __slots__ = ("apply", "error", "is_committed", "leads", "may_last", "result", "task")

    def __init__(self, apply: "Callable[[sqlite3.Connection], Any]", *, may_last: bool = False) -> None:
        self.apply = apply
        self.may_last = may_last
        self.result: Any = None
        self.error: BaseException | None = None
        self.is_committed = False
        self.leads = False
        self.task: trio.lowlevel.Task | None = None

    def outcome(self) -> Any:
        if self.error is not None:
            raise self.error
        if not self.is_committed:
            raise Unavailable("The change was interrupted before it was certain to be kept")
        return self.result


class Transactions(Protocol):
    """Where changes are made: one transaction at a time, its steps in this order."""

    def begin_at_once(self) -> bool:
        """Begin one if that takes no waiting; else `begin` is called, in a thread."""

    def begin(self) -> None: ...

    def apply(self, changes: Sequence[Change]) -> None:
        """Give each its result or its error, here or in a thread. Raises what spoils all of them."""

    def commit(self) -> None:
        """Return once it is durable. Called in a thread."""

    def give_up(self, group: Sequence[Change], error: BaseException) -> None:
        """Whatever had begun is no more, and every change has an error."""


class Groups:
    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions
        self._pending: dict[Change, None] = {}
        self._busy = False
        self._idle = trio.lowlevel.ParkingLot()
        # Its own, so that no other thread of the process can keep a commit waiting.
        self._limiter = trio.CapacityLimiter(1)

    async def carry_out(self, change: Change) -> None:
        """Return when the group of this change has been committed, or has failed."""
        self._pending[change] = None
        if self._busy:
            await self._follow(change)
        else:
            self._busy = change.leads = True
        if change.leads:
            await self._lead(change)

    async def idle(self) -> None:
        """Return when nothing is pending and nothing is under way."""
        while self._busy:
            await self._idle.park()

    async def _follow(self, change: Change) -> None:
        """Wait until it is done, or its turn to lead."""

        def cancelled(_: object) -> trio.lowlevel.Abort:
            change.task = None
            self._pending.pop(change, None)
            return trio.lowlevel.Abort.SUCCEEDED

        change.task = trio.lowlevel.current_task()
        await trio.lowlevel.wait_task_rescheduled(cancelled)

    async def _lead(self, own: Change) -> None:
        group: list[Change] = []
        try:
            # Whoever can run now, those of the last group above all, may still come along.
            await trio.lowlevel.checkpoint()
            group, self._pending = list(self._pending), {}
            with trio.CancelScope(shield=True):
                await self._carry_through(group)
        except BaseException:
            self._pending.pop(own, None)
            raise
        finally:
            for change in group:
                if change.task is not None:
                    self._wake(change)
            self._hand_over()

    async def _carry_through(self, group: Sequence[Change]) -> None:
        transactions = self._transactions
        try:
            if not transactions.begin_at_once():
                await self._in_thread(transactions.begin)
            rest = await self._apply_what_is_brief(group)
            await self._in_thread(partial(self._finish, rest))
            for change in group:
                change.is_committed = True
        except BaseException as error:
            transactions.give_up(group, error)
            if not isinstance(error, Exception):
                raise

    async def _apply_what_is_brief(self, group: Sequence[Change]) -> Sequence[Change]:
        """Apply changes in their order, until one lasts. Returns the rest, which is not for this thread."""
        began = time.perf_counter()
        for done, change in enumerate(group):
            if change.may_last or time.perf_counter() - began > TURN_SECONDS:
                return group[done:]
            self._transactions.apply([change])
            if (done + 1) % APPLIED_AT_ONCE == 0:
                await trio.lowlevel.checkpoint()
                began = time.perf_counter()
        return []

    def _finish(self, rest: Sequence[Change]) -> None:
        self._transactions.apply(rest)
        self._transactions.commit()

    async def _in_thread(self, work: Callable[[], None]) -> None:
        is_running = False

        def run() -> None:
            nonlocal is_running
            is_running = True
            work()

        try:
            await trio.to_thread.run_sync(run, limiter=self._limiter)
        except RuntimeError as error:
            if is_running:
                raise
            raise NoThread from error

    def _hand_over(self) -> None:
        if self._pending:
            successor = next(iter(self._pending))
            successor.leads = True
            self._wake(successor)
        else:
            self._busy = False
            self._idle.unpark_all()

    @staticmethod
    def _wake(change: Change) -> None:
        task, change.task = change.task, None
        assert task is not None
        trio.lowlevel.reschedule(task)
