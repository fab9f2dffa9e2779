"""Reading a person's text file: bounded, and never surprised."""

import os
import stat
from pathlib import Path
from typing import Final

from msgspec import Struct

SIZE_LIMIT: Final = 8 * 1024 * 1024
"""Several times the largest mode file seen in the wild."""


class FileUnreadable(Exception):
    """The file is there and cannot be read. The message is for a person."""


class TextFile(Struct, frozen=True):
    text: str
    is_utf8: bool
    """False: what was no UTF-8 is replacement characters in `text`."""


def read_text(path: Path, *, limit: int = SIZE_LIMIT) -> TextFile | None:
    """The whole text, or None if there is no such file."""
    try:
        # Not blocking: a pipe in the place of a file must not hold us up.
        fd = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise FileUnreadable(f"The file cannot be opened: {error.strerror or error}") from error
    except ValueError as error:  # a path that no system knows
        raise FileUnreadable(f"The file cannot be opened: {error}") from error
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise FileUnreadable("This is not a regular file")
        with open(fd, "rb", closefd=False) as file:
            data = file.read(limit + 1)
    except OSError as error:
        raise FileUnreadable(f"The file cannot be read: {error.strerror}") from error
    finally:
        os.close(fd)
    if len(data) > limit:
        raise FileUnreadable(f"The file is larger than {limit:,} bytes")
    try:
        return TextFile(data.decode(), is_utf8=True)
    except UnicodeDecodeError:
        return TextFile(data.decode(errors="replace"), is_utf8=False)
