"""Replacing a file of somebody else's: whole or not at all, with a copy of what was there, and never over a change.

The new content is written beside the file, synced, and renamed over it; whatever fails or kills the process before the
rename leaves the file as it was. A link stays a link: what it points to is replaced. Mode bits stay, and the owner
where the system lets us. Of several of us who saw the same, one replaces it, and the others are told that it was
changed. This module knows nothing of what is in the files.
"""

import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from msgspec import UNSET, UnsetType

BACKUP_SUFFIX: Final = ".modes-actor.bak"
LOCK_SECONDS: Final = 10.0
"""Much longer than anybody of us takes to replace a file."""
_LOCK_POLL_SECONDS: Final = 0.01
_BINARY: Final = getattr(os, "O_BINARY", 0)  # Windows would translate line ends


class CannotWrite(Exception):
    """A sentence for people: which file, and why. The file is as it was."""


def write_safely(
    path: Path, content: str | bytes, *, backup: bool, seen: bytes | UnsetType | None = UNSET
) -> Path | None:
    """Make `content` the content of the file, and return where the copy of the old content is, if one was made.

    The copy is `NAME.modes-actor.bak`, or `NAME.modes-actor.bak-2` and so on: an earlier copy is never overwritten. One
    that is the same already is enough.
    `seen` is what the caller read and worked from (None: there was no file); if the file is different now, or becomes
    so meanwhile, it is not touched. Content that is there already is not written again.
    """
    try:
        data = content.encode() if isinstance(content, str) else content
        target = Path(os.path.realpath(path))
        before, status = _read(target)
        if seen is not UNSET and seen != before:
            raise CannotWrite(_changed(path))
        if before == data:
            return None
        if before is not None and not os.access(target, os.W_OK):  # renaming would do it all the same
            raise CannotWrite(f"cannot write {path}: it is read-only")
        target.parent.mkdir(parents=True, exist_ok=True)
        with _alone_in(target.parent, path):
            return _replace(path, target, data, before, status, backup=backup)
    except UnicodeEncodeError:
        raise CannotWrite(f"cannot write {path}: the new text has characters that UTF-8 does not have") from None
    except OSError as error:
        raise CannotWrite(f"cannot write {path}: {error.strerror or error}; it is as it was") from error


@contextmanager
def _alone_in(directory: Path, path: Path) -> Iterator[None]:
    """Nobody else of us replaces a file of the directory meanwhile. Whoever dies lets go; no file is left by it."""
    held = None
    give_up = time.monotonic() + LOCK_SECONDS
    while held is None:
        held = _try_lock(directory)
        if held is None:
            if time.monotonic() > give_up:
                raise CannotWrite(f"cannot write {path}: somebody else is writing beside it for long; try again")
            time.sleep(_LOCK_POLL_SECONDS)
    try:
        yield
    finally:
        os.close(held)


def _try_lock(directory: Path) -> int | None:
    """A descriptor that is the lock as long as it is open; None if somebody else has it."""
    if os.name == "nt":
        # Directories cannot be opened there, but a file can go with its descriptor, however that is closed.
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_TEMPORARY", 0)
        try:
            return os.open(directory / ".modes-actor.lock", flags)
        except (FileExistsError, PermissionError):  # the second while the file is on its way out
            return None
    import fcntl

    descriptor = os.open(directory, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    except OSError:
        pass  # a file system without locks: what is left is the look before the rename
    return descriptor


def remove_safely(path: Path, *, seen: bytes) -> None:
    """Remove the file, if it is still what the caller read and worked from."""
    try:
        with _alone_in(path.parent, path):
            if path.is_symlink() or _read(path)[0] != seen:
                raise CannotWrite(_changed(path))
            if not os.access(path, os.W_OK):
                raise CannotWrite(f"cannot remove {path}: it is read-only")
            path.unlink()
            _sync_directory(path.parent)
    except OSError as error:
        raise CannotWrite(f"cannot remove {path}: {error.strerror or error}; it is as it was") from error


def _replace(
    path: Path, target: Path, data: bytes, before: bytes | None, status: os.stat_result | None, *, backup: bool
) -> Path | None:
    temporary = saved = None
    try:
        temporary = _write_new(_temporary_names(target), data, status)
        copy = None if before is None or not backup else _earlier_copy(target, before)
        if backup and before is not None and copy is None:
            copy = saved = _write_new(_backup_names(target), before, status)
        now, changed_status = _read(target)
        if now != before or _moment(changed_status) != _moment(status):
            raise CannotWrite(_changed(path))
        os.replace(temporary, target)
    except BaseException:
        for left in (temporary, saved):
            if left is not None:
                left.unlink(missing_ok=True)
        raise
    _sync_directory(target.parent)
    return copy


def _earlier_copy(target: Path, content: bytes) -> Path | None:
    """A copy that was made before and is the same; they do not pile up."""
    for path in _backup_names(target):
        try:
            status = path.lstat()
        except FileNotFoundError:
            return None
        if stat.S_ISREG(status.st_mode) and status.st_size == len(content) and path.read_bytes() == content:
            return path
    raise AssertionError("the names do not end")


def _write_new(names: Iterator[Path], data: bytes, status: os.stat_result | None) -> Path:
    """A new file under the first free name, on the disk when this returns; none if anything fails."""
    # What replaces a private file must not be readable by others even for a moment; a file that is new gets the
    # mode that the user's umask gives.
    mode = 0o666 if status is None else 0o600
    for path in names:
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _BINARY, mode)
        except FileExistsError:
            continue
        try:
            with open(descriptor, "wb", closefd=True) as file:
                file.write(data)
                file.flush()
                if status is not None:
                    _copy_owner_and_mode(file.fileno(), status)
                os.fsync(file.fileno())
        except BaseException:
            path.unlink(missing_ok=True)
            raise
        return path
    raise AssertionError("the names do not end")


def _copy_owner_and_mode(descriptor: int, status: os.stat_result) -> None:
    if not hasattr(os, "fchmod"):  # Windows: the directory's access list is inherited
        return
    try:
        os.fchown(descriptor, status.st_uid, status.st_gid)
    except OSError:
        pass  # only root may give files away; ours then
    os.fchmod(descriptor, stat.S_IMODE(status.st_mode))


def _temporary_names(target: Path) -> Iterator[Path]:
    number = os.getpid()
    while True:
        yield target.with_name(f".{target.name}.modes-actor-{number}.tmp")
        number += 1


def _backup_names(target: Path) -> Iterator[Path]:
    yield target.with_name(target.name + BACKUP_SUFFIX)
    number = 2
    while True:
        yield target.with_name(f"{target.name}{BACKUP_SUFFIX}-{number}")
        number += 1


def _read(target: Path) -> tuple[bytes | None, os.stat_result | None]:
    try:
        status = target.stat()
    except FileNotFoundError:
        return None, None
    if not stat.S_ISREG(status.st_mode):  # a pipe would make us wait
        raise CannotWrite(f"cannot write {target}: it is not a regular file")
    return target.read_bytes(), status


def _moment(status: os.stat_result | None) -> tuple[int, int] | None:
    return None if status is None else (status.st_mtime_ns, status.st_ino)


def _changed(path: Path) -> str:
    return f"cannot write {path}: it was changed by somebody else meanwhile; try again"


def _sync_directory(directory: Path) -> None:
    if os.name == "nt":
        return  # directories cannot be opened there
    try:
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError:
        pass  # the file is replaced; some file systems cannot sync a directory
