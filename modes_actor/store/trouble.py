"""What SQLite and the file system complain of, in sentences a client may see.

They name the file, never its directory; the log has the rest. Retryable is what time alone may mend.
"""

import errno
import sqlite3
from typing import Final

from msgspec import Struct

from modes_actor.store.files import NoDirectory
from modes_actor.store.groups import NoThread
from modes_actor.store.migrations import NewerSchema, OlderSchema
from modes_actor.wire.errors import InternalError, Unavailable

_BUSY: Final = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL})
_DAMAGED: Final = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
_NO_SPACE: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_PASSING: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EINTR, errno.EIO})


class FileMoved(Exception):
    """The file into which something was committed is no longer the one of that name."""


class TransactionEnded(Exception):
    """A change committed or rolled back what it was only a part of."""


class Trouble(Struct, frozen=True):
    sentence: str
    retryable: bool = False
    is_unexpected: bool = False
    """Nobody foresaw it, so the log needs to know where it came from."""

    def error(self) -> InternalError:
        """A new one for each who is told: an exception that is raised twice grows two tracebacks."""
        return Unavailable(self.sentence) if self.retryable else InternalError(self.sentence)


def is_busy(error: BaseException) -> bool:
    """Somebody else is at it, and will be done soon."""
    return isinstance(error, BlockingIOError) or _code(error) in _BUSY


def is_damaged(error: BaseException) -> bool:
    """What is there is no database, or no longer."""
    return _code(error) in _DAMAGED


def is_refusal_to_write(error: BaseException) -> bool:
    return _code(error) == sqlite3.SQLITE_READONLY


def is_storage_trouble(error: BaseException) -> bool:
    """Whether it is SQLite's or the disk's fault, not that of the statement which met it."""
    return _code(error) in _SENTENCES


def trouble_with(name: str, error: BaseException) -> Trouble:
    """What to tell whoever used the store of this file name."""
    store = f"The store `{name}`"
    match error:
        case NewerSchema():
            return Trouble(
                f"{store} was written by a newer version of modes-actor: "
                "update modes-actor, or choose another storage path"
            )
        case OlderSchema():
            return Trouble(
                f"{store} was written by an older version of modes-actor: the next server brings it up to date"
            )
        case FileMoved():
            return Trouble(f"{store} was deleted or replaced while this was being saved: send it again", retryable=True)
        case NoThread():
            return Trouble(f"{store} cannot be written now: send it again", retryable=True)
        case BlockingIOError():
            return Trouble(f"{store} {_SENTENCES[sqlite3.SQLITE_BUSY]}", retryable=True)
        case OSError(errno=number) if number in _NO_SPACE:
            return Trouble(f"{store} {_SENTENCES[sqlite3.SQLITE_FULL]}", retryable=True)
        case NoDirectory():
            return Trouble(f"{store} cannot be opened: its directory cannot be made ({error.strerror})")
        case OSError():
            return Trouble(f"{store} cannot be opened: {error.strerror}", retryable=error.errno in _PASSING)
        case sqlite3.Error() if (code := _code(error)) in _SENTENCES:
            return Trouble(f"{store} {_SENTENCES[code]}", retryable=code in _RETRYABLE)
        case _:
            return Trouble(f"{store} failed: the server's log has the details", is_unexpected=True)


def _code(error: BaseException) -> int | None:
    """SQLite's primary result code, if it is SQLite that complains."""
    if not isinstance(error, sqlite3.Error):
        return None
    code: int = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)  # the module's own complaints have none
    return code & 0xFF


_SENTENCES: Final = {
    **dict.fromkeys(_BUSY, "is busy, another process is writing: send it again"),
    **dict.fromkeys(_DAMAGED, "is damaged: the server's log has the details"),
    sqlite3.SQLITE_FULL: "cannot be written: the disk is full",
    sqlite3.SQLITE_IOERR: "cannot be read or written: the disk is full, over its quota, or failing",
    sqlite3.SQLITE_READONLY: "cannot be written: it is read-only",
    sqlite3.SQLITE_CANTOPEN: "cannot be opened: it is no file, or may not be read and written, with its directory",
    sqlite3.SQLITE_PERM: "cannot be opened: access to it is denied",
}
_RETRYABLE: Final = _BUSY | {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR}
