"""The door of the store: read at once, write durably.

Promises: nothing is imported, made or opened before the first use; what `write` has returned from is on the disk;
reading sees every commit, of this process and of others, that was there when it began; what leaves here as an
exception is a `RequestError`, or what the caller's own function raised.
"""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from random import random
from typing import TYPE_CHECKING, TypeVar

import trio

from modes_actor.store.groups import Change, Groups
from modes_actor.store.migrations import Migration, check_numbering
from modes_actor.wire.errors import Unavailable

if TYPE_CHECKING:
    import sqlite3

    from modes_actor.store.backends import FileBackend, MemoryBackend

T = TypeVar("T")


class Store:
    """One file, or none: with `path` None everything is in memory, and nothing is ever written to a disk."""

    def __init__(
        self,
        path: Path | None,
        migrations: Sequence[Migration],
        *,
        sleep: Callable[[float], None] = time.sleep,
        random: Callable[[], float] = random,
    ) -> None:
        check_numbering(migrations)
        self._path = path
        self._migrations = tuple(migrations)
        self._sleep = sleep
        self._random = random
        self._closed = False
        self._file: FileBackend | None = None
        self._memory: MemoryBackend | None = None
        self._groups: Groups | None = None

    def read(self, query: "Callable[[sqlite3.Connection], T]") -> T:
        """Run `query` on one consistent snapshot, on this thread.

        For look-ups of microseconds; it must fetch all it wants, and may be run again if the file was busy.
        """
        self._check_open()
        return self._in_memory().read(query) if self._path is None else self._in_file(self._path).read(query)

    async def write(self, change: "Callable[[sqlite3.Connection], T]", *, may_last: bool = False) -> T:
        """Run `change` in a transaction, and return what it returned, once that is durable.

        Changes of microseconds run on this thread; `may_last` is for those that may take longer, and run in another, as
        does what waits, for the disk or for other processes. It shares the transaction with whatever else has gathered,
        so it must not begin, commit or roll back one, nor call `executescript` (which commits). If it raises, nothing
        of it is done. If the caller is cancelled before it was its turn, it never runs; afterwards it is carried
        through.
        """
        self._check_open()
        work = Change(change, may_last=may_last)
        if self._path is None:
            await trio.lowlevel.checkpoint_if_cancelled()
            self._in_memory().commit(work)
        else:
            if self._groups is None:
                self._groups = Groups(self._in_file(self._path))
            await self._groups.carry_out(work)
        result: T = work.outcome()
        return result

    def end_within(self, seconds: float) -> None:
        """From now on, `write` waits for other processes no longer than that, all in all; but each for a moment."""
        if self._file is not None:
            self._file.end_within(seconds)

    async def aclose(self) -> None:
        """Finish what was brought before, then close. It is seen through even if it is cancelled."""
        self._closed = True
        with trio.CancelScope(shield=True):
            if self._groups is not None:
                await self._groups.idle()
            file, self._file = self._file, None
            if file is not None:
                await trio.to_thread.run_sync(file.close)  # the last one who closes takes over what is in the WAL
        if self._memory is not None:
            self._memory.close()
            self._memory = None
        await trio.lowlevel.checkpoint()

    def _check_open(self) -> None:
        if self._closed:
            raise Unavailable("The store is closed: the server is shutting down")

    def _in_file(self, path: Path) -> "FileBackend":
        if self._file is None:
            from modes_actor.store.backends import FileBackend
            from modes_actor.store.patience import Pauses

            self._file = FileBackend(path, self._migrations, Pauses(self._sleep, self._random))
        return self._file

    def _in_memory(self) -> "MemoryBackend":
        if self._memory is None:
            from modes_actor.store.backends import MemoryBackend

            self._memory = MemoryBackend(self._migrations)
        return self._memory
