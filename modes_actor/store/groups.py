"""Who waits for a commit, and who makes it.

Promises: changes are taken in the order they were brought; everything that has gathered while one group was being
committed is the next group; a change whose caller is cancelled before it is taken never runs; one that is taken is
carried through, whoever is cancelled. There is no background task: the first who waits leads the next group.
"""

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import trio

from modes_actor.wire.errors import Unavailable

if TYPE_CHECKING:
    import sqlite3

log = logging.getLogger(__name__)


class Change:
    """What one caller wants done, and what became of it."""

    __slots__ = ("apply", "error", "leads", "result", "task")

    def __init__(self, apply: "Callable[[sqlite3.Connection], Any]") -> None:
        self.apply = apply
        self.result: Any = None
        self.error: BaseException | None = None
        self.leads = False
        self.task: trio.lowlevel.Task | None = None

    def outcome(self) -> Any:
        if self.error is not None:
            raise self.error
        return self.result


class Groups:
    def __init__(self, commit: Callable[[Sequence[Change]], None]) -> None:
        """`commit` runs in a thread, never twice at once, and gives every change a result or an error."""
        self._commit = commit
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
                await trio.to_thread.run_sync(self._commit, group, limiter=self._limiter)
        except BaseException as error:
            self._pending.pop(own, None)
            for change in group:
                change.error = Unavailable("The store cannot be written now: send it again")
            if not group or not isinstance(error, Exception):
                raise
            log.exception("no thread for the store")
        finally:
            for change in group:
                if change.task is not None:
                    self._wake(change)
            self._hand_over()

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
