"""Words for people, on stderr. That nobody reads them is no reason to fail, to wait, or to write them elsewhere."""

import logging
import os
import select
import sys
from typing import Final

from modes_actor.cli.printable import printable

_PIECE: Final = 512
"""What every POSIX pipe that can be written to takes whole, without waiting."""


def tell(line: str) -> bool:
    """Write a line, at once and past every buffer: one left in a buffer would make the interpreter's exit fail.

    False if it could not be written, or not to its end.
    """
    if sys.stderr is None:  # fd 2 was closed at start, and may be anything by now
        return False
    rest = f"{printable(line)}\n".encode(errors="backslashreplace")
    try:
        while rest and _is_writable():
            rest = rest[os.write(2, rest[:_PIECE]) :]
    except OSError:
        pass  # the reader has gone
    return not rest


def _is_writable() -> bool:
    if not hasattr(select, "poll"):  # Windows
        return True
    poll = select.poll()
    poll.register(2, select.POLLOUT)
    return bool(poll.poll(0))


class StderrHandler(logging.Handler):
    """The log, for whoever reads stderr. While nobody does, lines are dropped, and counted when somebody does again."""

    def __init__(self) -> None:
        super().__init__()
        self._dropped = 0

    def emit(self, record: logging.LogRecord) -> None:
        try:
            dropped = f" [{self._dropped} lines before this one were lost]" if self._dropped else ""
            self._dropped = 0 if tell(self.format(record) + dropped) else self._dropped + 1
        except Exception:
            self.handleError(record)
