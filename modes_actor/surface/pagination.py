"""Long lists in pages, with cursors that mean nothing to anyone else.

Promises: the pages of an unchanged list, put together, are the list; a cursor that was not given out for this list is
refused, never misread.
"""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

from modes_actor.wire.base import Cursor, KeptResult, PaginatedResult
from modes_actor.wire.errors import InvalidParams, ParamsProblem

T = TypeVar("T")

PAGE_SIZE: Final = 500


def page(items: Sequence[T], cursor: Cursor | None, *, of: str, size: int = PAGE_SIZE) -> tuple[list[T], Cursor | None]:
    """The page that the cursor points at (the first without one), and the cursor of the next if there is one."""
    start = 0 if cursor is None else _position(cursor, of)
    if start and (start % size or start >= len(items)):
        raise _bad_cursor()
    end = start + size
    return list(items[start:end]), _cursor(end, of) if end < len(items) else None


class Pages:
    """The pages of one list. The first is kept for as long as the list is the very same object."""

    def __init__(self, result: Callable[[list[Any], Cursor | None], PaginatedResult], *, of: str) -> None:
        self._result = result
        self._of = of
        self._first: tuple[Sequence[Any], KeptResult] | None = None

    def page(self, items: Sequence[Any], cursor: Cursor | None) -> PaginatedResult | KeptResult:
        if cursor is not None:
            return self._result(*page(items, cursor, of=self._of))
        if self._first is None or self._first[0] is not items:
            self._first = items, KeptResult(result=self._result(*page(items, None, of=self._of)))
        return self._first[1]


def _cursor(position: int, of: str) -> Cursor:
    return urlsafe_b64encode(f"{of}:{position}".encode()).decode()


def _position(cursor: Cursor, of: str) -> int:
    try:
        kind, _, position = urlsafe_b64decode(cursor.encode()).decode().partition(":")
        start = int(position)
    except ValueError as error:
        raise _bad_cursor() from error
    if start < 1 or cursor != _cursor(start, of) or kind != of:
        raise _bad_cursor()
    return start


def _bad_cursor() -> InvalidParams:
    return InvalidParams(
        "Invalid params: `cursor` is not one this list gave out, or the list has changed since: start again without it",
        data=ParamsProblem("cursor", "unknown", expected="the `nextCursor` of the page before"),
    )
