"""One look at a store's file, for who must leave no trace: nothing is made, migrated, set aside, or written.

Promises: all that is read is of one moment; others write meanwhile; what is not there yet is empty, not an error; what
is raised is a `RequestError`, or what the caller's own function raised.
"""

import os
import sqlite3
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import TypeVar

from modes_actor.store.backends import WRITING_SECONDS
from modes_actor.store.files import WAL
from modes_actor.store.migrations import Migration, OlderSchema, migrate, refuse_newer
from modes_actor.store.patience import Patience, Pauses
from modes_actor.store.trouble import is_storage_trouble, trouble_with

T = TypeVar("T")


class Snapshot:
    def __init__(
        self, path: Path, migrations: Sequence[Migration], *, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self._path = path
        self._migrations = migrations
        try:
            self._connection = Patience(WRITING_SECONDS, Pauses(sleep)).call(self._open)
        except Exception as error:
            trouble = trouble_with(path.name, error)
        else:
            return
        raise trouble.error()

    def read(self, query: Callable[[sqlite3.Connection], T]) -> T:
        try:
            return query(self._connection)
        except sqlite3.Error as error:
            if not is_storage_trouble(error):
                raise
            trouble = trouble_with(self._path.name, error)
        raise trouble.error()

    def close(self) -> None:
        self._connection.close()

    def __enter__(self) -> "Snapshot":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _open(self) -> sqlite3.Connection:
        real = Path(os.path.realpath(self._path))
        try:
            os.stat(real)
        except FileNotFoundError:
            return self._empty()
        # With a write-ahead log, somebody writes, or was stopped while writing: read-only leaves even that as it is.
        # Without one, SQLite makes one in either way, but takes it away again only if it may write.
        how = "ro" if os.path.lexists(f"{real}{WAL}") else "rw"
        connection = sqlite3.connect(f"{real.as_uri()}?mode={how}", uri=True, timeout=0, isolation_level=None)
        try:
            connection.execute("PRAGMA query_only = ON")
            connection.execute("BEGIN")
            applied = refuse_newer(connection, self._migrations)
            missing = {(each.room, each.number) for each in self._migrations} - applied
            if applied and missing:
                raise OlderSchema
        except BaseException:
            connection.close()
            raise
        if missing:  # somebody is making it just now
            connection.close()
            return self._empty()
        return connection

    def _empty(self) -> sqlite3.Connection:
        connection = sqlite3.connect(":memory:", isolation_level=None)
        migrate(connection, self._migrations)
        return connection
