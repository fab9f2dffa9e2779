"""What a check finds, and what several checks ask the file system."""

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Literal

from msgspec import Struct

from modes_actor.cli.command import Situation

Status = Literal["ok", "note", "warning", "error"]


class Finding(Struct, frozen=True):
    check: str
    status: Status
    message: str
    fix: str | None = None
    """What to do about it. Both are sentences without their full stops."""


Check = Callable[[Situation], Iterable[Finding]]


def may(path: Path, permission: int) -> bool:
    """Whether this process may read, write or search (`os.R_OK`, …), as whoever it acts for."""
    return os.access(path, permission, effective_ids=os.access in os.supports_effective_ids)


def nearest(path: Path) -> Path:
    """The path itself if there is something, a broken link too; else what is nearest above it."""
    path = Path(os.path.abspath(path))
    while not os.path.lexists(path) and path != path.parent:
        path = path.parent
    return path


def why_not_writable(directory: Path) -> str | None:
    """Why files cannot be made in a directory, which need not be there yet; None if they can."""
    there = nearest(directory)
    if not there.is_dir():
        what = "a link that leads nowhere" if not there.exists() else "a file"
        return f"{there} is {what}, where a directory is needed"
    if may(there, os.W_OK | os.X_OK):
        return None
    return f"{there} may not be written" + ("" if there == directory else f", so {directory} cannot be made")


def why_no_good_file(path: Path) -> str | None:
    """Why a file that is there cannot be read and written; None if it can, or is not there."""
    if not os.path.lexists(path):
        return None
    if not path.is_file():
        return f"{path} is no file"
    return None if may(path, os.R_OK | os.W_OK) else f"{path} may not be read and written"


def counted(number: int, what: str, several: str | None = None) -> str:
    """`1 mode`, `2 modes`; `several` where an `s` does not do."""
    return f"{number} {what if number == 1 else several or what + 's'}"
