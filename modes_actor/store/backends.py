"""Reading and committing, in a file or in memory: the part of the store that knows SQLite.

Promises: a change that raises leaves the others of its group as they are; no group is reported as committed unless it
is on the disk, in the file that has the name; whatever fails, the next use begins afresh.
"""

import logging
import math
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from time import monotonic
from typing import Final, TypeVar

from msgspec import structs

from modes_actor.store.connections import Connected, close
from modes_actor.store.groups import Change
from modes_actor.store.migrations import Migration, migrate
from modes_actor.store.patience import Patience, Pauses
from modes_actor.store.trouble import (
    TransactionEnded,
    Trouble,
    is_busy,
    is_damaged,
    is_refusal_to_write,
    is_storage_trouble,
    trouble_with,
)

log = logging.getLogger(__name__)

T = TypeVar("T")
Query = Callable[[sqlite3.Connection], T]

WRITING_SECONDS: Final = 5.0
"""How long a group waits for other processes, in a thread where nobody else waits."""
LAST_SECONDS: Final = 0.2
"""And at the end, when there is no time left."""
READING_SECONDS: Final = 0.03
"""How long a read does, during which nothing else happens in this process."""
OPENING_SECONDS: Final = 1.0
"""And when it has to open the file first, which another process may be making just now."""
_BEGIN: Final = "BEGIN IMMEDIATE"


class _Own(Exception):
    """Carries what the caller's function raised past everything that is about our own errors."""

    def __init__(self, error: BaseException) -> None:
        self.error = error


class FileBackend:
    """Two connections, so that reading never waits for a commit, which is made on another thread."""

    def __init__(self, path: Path, migrations: Sequence[Migration], pauses: Pauses) -> None:
        self._path = path
        self._patience = Patience(WRITING_SECONDS, pauses)
        self._end = math.inf
        self._reading_patience = Patience(READING_SECONDS, pauses)
        self._opening_patience = Patience(OPENING_SECONDS, pauses)
        self._writing = Connected(path, migrations, query_only=False)
        self._transaction: sqlite3.Connection
        self._reading = Connected(path, migrations, query_only=True)

    def read(self, query: Query[T]) -> T:
        error: BaseException
        try:
            self._opening_patience.call(self._reading.ensure)
            return self._reading_patience.call(self._read, query)
        except _Own as own:
            error = own.error
        except Exception as ours:
            self._reading.drop()
            error = self._explained(ours).error()
        raise error  # out here, so that it has no context but its own

    # A transaction. BEGIN and COMMIT wait for their turn, each alone: no change ever runs twice.

    def begin_at_once(self) -> bool:
        """Begin one, unless it would have to wait: for a file that must be opened, or for somebody who is writing."""
        if not self._writing.is_in_place():
            return False
        try:
            self._transaction = self._writing.begin(_BEGIN)
        except sqlite3.Error as error:
            if is_busy(error):
                return False
            raise
        return True

    def begin(self) -> None:
        left = max(LAST_SECONDS, self._end - monotonic())
        patience = structs.replace(self._patience, seconds=min(WRITING_SECONDS, left))
        self._transaction = patience.call(self._begin_writing)

    def apply(self, changes: Sequence[Change]) -> None:
        apply_each(self._transaction, changes, self._path.name)

    def commit(self) -> None:
        self._patience.call(self._transaction.execute, "COMMIT")
        self._writing.check_still_there()

    def give_up(self, group: Sequence[Change], error: BaseException) -> None:
        """Nothing of it is done: every change that has no error of its own gets this one, as a sentence."""
        self._writing.drop()
        trouble = self._explained(error)
        for change in group:
            if change.error is None:
                change.error = trouble.error()

    def end_within(self, seconds: float) -> None:
        """However many groups are to come: together they wait no longer for others, but for a moment each."""
        self._end = monotonic() + seconds

    def close(self) -> None:
        self._reading.drop()
        self._writing.drop()

    def _begin_writing(self) -> sqlite3.Connection:
        self._writing.ensure()
        return self._writing.begin(_BEGIN)

    def _read(self, query: Query[T]) -> T:
        connection = self._reading.begin("BEGIN")
        try:
            return query(connection)
        except BaseException as error:
            # What refuses to write here is `query_only`: the query tried to, which is its own mistake.
            if is_storage_trouble(error) and not is_refusal_to_write(error):
                raise
            raise _Own(error) from None
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")

    def _explained(self, error: BaseException) -> Trouble:
        trouble = trouble_with(self._path.name, error)
        log.log(
            logging.WARNING if is_busy(error) else logging.ERROR,
            "%s: %s",
            self._path,
            trouble.sentence,
            exc_info=error if trouble.is_unexpected else None,
        )
        return trouble


class MemoryBackend:
    """One connection to no file at all."""

    def __init__(self, migrations: Sequence[Migration]) -> None:
        self._connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        try:
            self._connection.execute("PRAGMA temp_store = MEMORY")
            self._connection.execute("PRAGMA foreign_keys = ON")
            migrate(self._connection, migrations)
        except sqlite3.Error as error:
            log.exception("the store in memory cannot be made")
            close(self._connection)
            raise trouble_with("memory", error).error() from error

    def read(self, query: Query[T]) -> T:
        connection = self._connection
        connection.execute("PRAGMA query_only = ON")
        connection.execute("BEGIN")
        try:
            return query(connection)
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            connection.execute("PRAGMA query_only = OFF")

    def commit(self, change: Change) -> None:
        connection = self._connection
        connection.execute("BEGIN")
        try:
            apply_each(connection, [change], "memory")
            connection.execute("COMMIT")
            change.is_committed = True
        except Exception as error:
            log.error("the store in memory: a change failed", exc_info=error)
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            if change.error is None:
                change.error = trouble_with("memory", error).error()

    def close(self) -> None:
        close(self._connection)


def apply_each(connection: sqlite3.Connection, group: Sequence[Change], name: str) -> None:
    """Run the changes of one transaction, each in its savepoint. Raises what spoils all of them."""
    for change in group:
        connection.execute("SAVEPOINT change")
        failed = False
        try:
            change.result = change.apply(connection)
        except BaseException as error:
            failed = True
            if is_storage_trouble(error) and not (is_damaged(error) or is_busy(error)):
                raise  # full or failing: it is not about this change
            change.error = trouble_with(name, error).error() if is_storage_trouble(error) else error
        if not connection.in_transaction:
            raise TransactionEnded(f"by {change.apply!r}")
        if failed:
            connection.execute("ROLLBACK TO change")
        connection.execute("RELEASE change")
