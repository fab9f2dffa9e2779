"""Connections to the one file, which is made, migrated or set aside on the way.

Promises: a connection that is handed out is one to the file which has the name now; its schema is one that is known
here, even if a newer program has changed it since; a damaged file is set aside when it is opened, never later.
"""

import logging
import os
import sqlite3
import sys
from collections.abc import Sequence
from pathlib import Path

from modes_actor.store.files import file_ids, make_file, opening, set_aside, set_aside_companions
from modes_actor.store.migrations import Migration, migrate, refuse_newer
from modes_actor.store.trouble import FileMoved, is_damaged

log = logging.getLogger(__name__)


class _Opened:
    def __init__(self, connection: sqlite3.Connection, path: Path, real: Path) -> None:
        self.connection = connection
        self.real = real
        self.ids = file_ids(path, real)
        self.schema = _schema_version(connection)


class Connected:
    """One connection, for one thread at a time, that is opened when it is first needed and whenever it must be anew."""

    def __init__(self, path: Path, migrations: Sequence[Migration], *, query_only: bool) -> None:
        self._path = path
        self._migrations = migrations
        self._query_only = query_only
        self._opened: _Opened | None = None

    def ensure(self) -> None:
        """Open the file that has the name now, unless that is done."""
        if self.is_in_place():
            return
        before = self._opened
        if before is not None:
            log.warning("%s was deleted or replaced: it is opened again", self._path)
            self.drop()
        self._opened = self._open(before)

    def is_in_place(self) -> bool:
        """Whether a file is open, and still the one that has the name."""
        # Nobody can take over the number of a file that we have open, so the number says it all.
        opened = self._opened
        return opened is not None and file_ids(self._path, opened.real) == opened.ids

    def begin(self, statement: str) -> sqlite3.Connection:
        """Begin a transaction, and make sure that the schema is still one that is known."""
        assert self._opened is not None
        connection = self._opened.connection
        connection.execute(statement)
        try:
            version = _schema_version(connection)  # from here on it is one snapshot
            if version != self._opened.schema:
                refuse_newer(connection, self._migrations)
                self._opened.schema = version
        except BaseException:
            connection.execute("ROLLBACK")
            raise
        return connection

    def check_still_there(self) -> None:
        """Raise `FileMoved` if what was just committed went to a file that has lost its name."""
        if not self.is_in_place():
            raise FileMoved

    def drop(self) -> None:
        """Close it, with whatever it had begun. The next use opens another."""
        opened, self._opened = self._opened, None
        if opened is not None:
            close(opened.connection)

    def _open(self, before: _Opened | None) -> _Opened:
        real = Path(os.path.realpath(self._path))
        with opening(real.parent):
            if before is not None:
                now = file_ids(self._path, before.real)
                if now.main != before.ids.main and now.wal == before.ids.wal is not None:
                    set_aside_companions(before.real)  # they belong to the file that was replaced
            for _ in range(2):
                if (opened := self._connect(real)) is not None:
                    return opened
            raise RuntimeError(f"{real} is damaged as soon as it is made")

    def _connect(self, real: Path) -> _Opened | None:
        """None if it was damaged, and is now out of the way."""
        make_file(real)
        connection = sqlite3.connect(real, timeout=0, isolation_level=None, check_same_thread=False)
        try:
            refuse_newer(connection, self._migrations)  # before anything is changed
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA foreign_keys = ON")
            # Nothing goes to the disk before COMMIT, for which a thread waits: a change that filled the cache would.
            connection.execute("PRAGMA cache_spill = OFF")
            migrate(connection, self._migrations)
            if self._query_only:
                connection.execute("PRAGMA query_only = ON")
            return _Opened(connection, self._path, real)
        except BaseException as error:
            if not is_damaged(error):
                close(connection)
                raise
            if sys.platform == "win32":
                close(connection)  # there an open file cannot be renamed
            aside = set_aside(real)
            # Not before: closing takes over what is in the WAL, and deletes it, unless the file has moved.
            close(connection)
            log.error("%s is no database, or is damaged (%s): it is set aside as %s", real, error, aside)
            return None


def close(connection: sqlite3.Connection) -> None:
    try:
        if connection.in_transaction:
            connection.execute("ROLLBACK")  # a cursor somebody kept would keep the transaction
        connection.close()
    except sqlite3.Error as error:
        log.warning("a connection to the store could not be closed: %s", error)


def _schema_version(connection: sqlite3.Connection) -> int:
    version: int
    (version,) = connection.execute("PRAGMA schema_version").fetchone()
    return version
