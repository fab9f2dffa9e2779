"""The files of a database: made for their owner alone, recognised again, and set aside when they cannot be used.

Promises: nothing is ever deleted or overwritten; nothing is opened that SQLite may have open, because closing it would
drop SQLite's locks with it (POSIX locks belong to the process, not to the descriptor).
"""

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import NamedTuple

log = logging.getLogger(__name__)

WAL = "-wal"
"""Where commits are until a checkpoint takes them over into the file itself."""

_COMPANIONS = (WAL, "-shm")

FileId = tuple[int, int]


class NoDirectory(OSError):
    """There is none for the file, and none can be made."""


class FileIds(NamedTuple):
    """Which files these are, whatever their names: what is committed is in the one or the other."""

    main: FileId | None
    wal: FileId | None


def file_ids(path: Path, real: Path) -> FileIds:
    """What the names stand for now. `real` is where the links of `path` led when it was opened."""
    return FileIds(_file_id(path), _file_id(f"{real}{WAL}"))


def _file_id(path: Path | str) -> FileId | None:
    try:
        status = os.stat(path)
    except OSError:
        return None  # then it is no longer there for us, and opening it says why
    return status.st_dev, status.st_ino


@contextmanager
def opening(directory: Path) -> Iterator[None]:
    """Make the directory, and keep out everybody else who makes, opens or sets aside files there.

    Raises BlockingIOError if somebody else is in. It is the directory that is locked: no file of ours is needed for it.
    """
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise NoDirectory(error.errno, error.strerror) from error
    if sys.platform == "win32":
        yield  # there an open file cannot be renamed, which is what the lock is for
        return
    import fcntl

    descriptor = os.open(directory, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise
        except OSError as error:
            log.debug("%s cannot be locked: %s", directory, error)  # some network drives; SQLite's own locks remain
        yield
    finally:
        os.close(descriptor)


def make_file(path: Path) -> None:
    """Make sure that there is a file, readable by its owner only; SQLite gives its companions the same rights."""
    if not os.path.lexists(path):
        # Without their database they mean nothing, but would be taken for the new one's.
        set_aside_companions(path)
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    except FileExistsError:
        pass


def set_aside(path: Path) -> Path:
    """Rename a file that is no good as a database, with its companions, so that it could still be looked into."""
    return _rename_all(path, "corrupt", ("", *_COMPANIONS))


def set_aside_companions(path: Path) -> None:
    """Rename what is left of a database that is itself no longer there."""
    if any(os.path.lexists(f"{path}{suffix}") for suffix in _COMPANIONS):
        aside = _rename_all(path, "orphan", _COMPANIONS)
        log.warning("%s was deleted or replaced while it was in use: what it left is now %s%s", path, aside, WAL)


def _rename_all(path: Path, why: str, suffixes: tuple[str, ...]) -> Path:
    for number in count(1):
        aside = path.with_name(f"{path.name}.{why}-{number}")
        if any(os.path.lexists(f"{aside}{suffix}") for suffix in ("", *_COMPANIONS)):
            continue
        for suffix in suffixes:
            if os.path.lexists(f"{path}{suffix}"):
                os.rename(f"{path}{suffix}", f"{aside}{suffix}")
        return aside
    raise AssertionError("there is always a next number")
