"""Words for people, on stderr. That nobody can read them is never a reason to fail, nor to write them elsewhere."""

import logging
import os
import sys


def tell(line: str) -> None:
    """Write a line, at once and past every buffer: one left in a buffer would make the interpreter's exit fail."""
    if sys.stderr is None:  # fd 2 was closed at start, and may be anything by now
        return
    rest = f"{line}\n".encode(errors="backslashreplace")
    try:
        while rest:
            rest = rest[os.write(2, rest) :]
    except OSError:
        pass  # the reader has gone


class StderrHandler(logging.Handler):
    """The log, for whoever reads stderr."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            tell(self.format(record))
        except Exception:
            self.handleError(record)
