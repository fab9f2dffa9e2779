"""The log in a file that several servers share and that does not grow without end.

Promises: a line is written whole, at once, and behind whatever others wrote; no file grows past `LIMIT` and a line, and
only `KEPT` old ones stay; a file that cannot be written costs one sentence on stderr and nothing else.
"""

import logging
import os
from contextlib import suppress
from pathlib import Path
from typing import Final

from modes_actor.cli.stderr import tell

LIMIT: Final = 1024 * 1024
KEPT: Final = 3
_FLAGS: Final = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)


class LogFile(logging.Handler):
    """Opened for each line: lines are rare, and so nobody writes into a file that another has moved away."""

    def __init__(self, path: Path, *, is_configured: bool) -> None:
        """`is_configured`: somebody asked for it, and wants to know if it cannot be had."""
        super().__init__()
        self._path = path
        self._must_tell = is_configured

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._append(f"{self.format(record)}\n".encode(errors="backslashreplace"))
        except OSError as error:
            if self._must_tell:
                self._must_tell = False
                tell(f"modes-actor: the log file {self._path} cannot be written: {error.strerror}")
        except Exception:
            self.handleError(record)

    def _append(self, line: bytes) -> None:
        try:
            log = os.open(self._path, _FLAGS, 0o600)
        except FileNotFoundError:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            log = os.open(self._path, _FLAGS, 0o600)
        try:
            os.write(log, line)
            if os.fstat(log).st_size > LIMIT:
                self._rotate(log)
        finally:
            os.close(log)

    def _rotate(self, log: int) -> None:
        """Move each file one number on. Of several processes one does it; on Windows, none while another writes."""
        with suppress(OSError):
            if os.name != "nt":
                import fcntl

                fcntl.flock(log, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not os.path.samestat(os.fstat(log), os.stat(self._path)):
                return  # somebody else was quicker
            for number in range(KEPT - 1, 0, -1):
                with suppress(FileNotFoundError):
                    os.replace(self._numbered(number), self._numbered(number + 1))
            os.replace(self._path, self._numbered(1))

    def _numbered(self, number: int) -> Path:
        return self._path.with_name(f"{self._path.name}.{number}")
