"""What must come of a request: how that is put, and what the lines call the sessions that they name.

An outcome is a number: `RESULT`, an error's code, `BUSY` for an error that says it is retryable, or a code below
`TOOL_ERROR` for a tool's error that is a result (stateless era).
"""

import re
from collections import Counter
from typing import Final

from fuzz_reading import INVALID_REQUEST, Id
from msgspec import Struct

RESULT: Final = 0
BUSY: Final = 1
TOOL_ERROR: Final = -1_000_000

METHOD_NOT_FOUND, INVALID_PARAMS, UNSUPPORTED_VERSION = -32601, -32602, -32022
MODE_NOT_FOUND, TASK_NOT_FOUND, SESSION_EXPIRED, VALIDATION = -32001, -32002, -32003, -32004
TOOL_RESTRICTED, FILE_RESTRICTED = -32005, -32006

Outcomes = frozenset[int]
ONLY: Final = {
    code: frozenset({code}) for code in (RESULT, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS, UNSUPPORTED_VERSION)
}

ANCHORS: Final = 24
"""Sessions that live from the beginning of an episode to its end. Lines name them by their numbers."""
EXPIRED: Final = 4
"""Sessions that have expired before."""
SETTLED: Final = ANCHORS // 2
"""So many of the anchors are not switched on purpose: what their modes allow stays known."""
ANCHOR_FORM: Final = re.compile(rb"sess_0{20}(0|f)([0-9a-f]{11})")
"""With an `f`, a session that has expired."""


def anchor_mode(number: int, slugs: frozenset[str]) -> str:
    """In which it begins."""
    return sorted(slugs)[number % len(slugs)]


def anchor(number: int, *, expired: bool = False) -> str:
    return f"sess_{'0' * 20}{'f' if expired else '0'}{number:011x}"


class Array(Struct, eq=False):
    """An array of messages, whose answers come as one array."""

    idless: Counter[int]
    silent: bool = False
    """Whether none of its answers has an id."""
    answered: bool = False


class Use(Struct, eq=False, gc=False):
    """A tool in a session, of which was asked whether it is allowed."""

    modes: set[str]
    """All that the session may be in by the time of the answer: grows with every line that switches it."""
    tool: str
    path: str | None
    names_more: bool
    """Besides the path."""


class Expectation(Struct, eq=False):
    """What a request with an id must be answered with."""

    id: Id
    outcomes: Outcomes
    line: int
    method: str
    version: str
    may_wait: bool = False
    """A cancellation may suppress its answer."""
    optional: bool = False
    at_end: bool = False
    loose: bool = False
    """It may be refused without an id instead."""
    array: Array | None = None
    use: Use | None = None
    shared: bool = False
    """Another of this id was under way: nobody can tell which of two answers is whose."""

    @property
    def late(self) -> bool:
        """Whether its answer may come after those to later lines. An array waits for the last of its own."""
        return self.may_wait or self.shared or self.array is not None
