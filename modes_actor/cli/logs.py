"""The log of a server: to stderr and to a file, in the format that is configured.

Promises: an entry is one line, but for the traceback of a bug; what is logged cannot command a terminal or forge an
entry. Requests are told at DEBUG, by their ids, methods and durations; what is in them, never.
"""

import logging
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from modes_actor.cli.log_file import LogFile
from modes_actor.cli.stderr import StderrHandler
from modes_actor.config import LoggingSection
from modes_actor.config.model import JSON_LOG

BRIEF: Final = "modes-actor: %(levelname)s: %(message)s"
"""On stderr, unless a format is configured: clients show it beside other servers' words."""

_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029]")


def set_up_logging(section: LoggingSection) -> None:
    """From here on, what is logged goes where the configuration says."""
    default = LoggingSection()
    on_stderr = StderrHandler()
    on_stderr.setFormatter(_formatter(BRIEF if section.format == default.format else section.format))
    handlers: list[logging.Handler] = [on_stderr]
    if section.file is not None:
        path = Path(section.file)
        in_file = LogFile(path, is_configured=path != Path(default.file or "").expanduser())
        in_file.setFormatter(_formatter(section.format))
        handlers.append(in_file)
    logging.basicConfig(level=section.level, handlers=handlers)


def _formatter(format: str) -> logging.Formatter:
    return JsonLines() if format == JSON_LOG else OneLine(format)


class OneLine(logging.Formatter):
    """Python's own format, with control characters written out."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the name is Python's
        return _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", super().formatMessage(record))


class Entry(Struct, omit_defaults=True):
    """A line of a JSON log. `time` is UTC, ISO 8601."""

    time: str
    level: str
    logger: str
    message: str
    pid: int | None = None
    exception: str | None = None


class JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        entry = Entry(
            time=datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            level=record.levelname,
            logger=record.name,
            message=_encodable(record.getMessage()),
            pid=record.process,
            exception=_encodable(self.formatException(record.exc_info)) if record.exc_info else None,
        )
        return msgspec.json.encode(entry).decode()


def _encodable(text: str) -> str:
    """Half a surrogate pair, which clients can write but JSON cannot carry, is written out."""
    return text.encode(errors="backslashreplace").decode()
