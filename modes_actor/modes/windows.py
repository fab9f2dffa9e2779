"""Time windows: reading one, and whether a moment is inside."""

import re
from datetime import datetime, timedelta, tzinfo
from typing import Final

from modes_actor.modes.model import DAYS, Day, TimeWindow

_HOURS = re.compile(r"([01]\d|2[0-4]):([0-5]\d)\s*-\s*([01]\d|2[0-4]):([0-5]\d)")
_DAY_NAMES: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_FULL_DAY: Final = 24 * 60


class BadWindow(ValueError):
    """A window that cannot be understood. The message is for the person who wrote it."""


def make_window(hours: str | None, days: list[str] | None, timezone: str | None) -> TimeWindow:
    """Raises `BadWindow`."""
    start, end = _parse_hours(hours) if hours is not None else (0, _FULL_DAY)
    chosen = tuple(map(_parse_day, days)) if days is not None else DAYS
    if not chosen:
        raise BadWindow("`days` names no day")
    if timezone is not None:
        _zone(timezone)
    said = [hours or "", ", ".join(days) if days is not None else "", timezone or ""]
    return TimeWindow(" ".join(filter(None, said)), start, end, chosen, timezone)


def is_open(window: TimeWindow, now: datetime) -> bool:
    """Whether a moment, given with its timezone, is inside."""
    local = now.astimezone(_zone(window.timezone) if window.timezone is not None else None)
    minute = local.hour * 60 + local.minute
    today = DAYS[local.weekday()]
    if window.start < window.end:
        return today in window.days and window.start <= minute < window.end
    yesterday = DAYS[(local - timedelta(days=1)).weekday()]
    return (today in window.days and minute >= window.start) or (yesterday in window.days and minute < window.end)


def _parse_hours(text: str) -> tuple[int, int]:
    match = _HOURS.fullmatch(text.strip())
    if match is None:
        raise BadWindow(f'`activeHours` is {text!r}, but must look like "09:00-18:00"')
    first, second, third, fourth = map(int, match.groups())
    start, end = first * 60 + second, third * 60 + fourth
    if start >= _FULL_DAY or end > _FULL_DAY or start == end:
        raise BadWindow(f"`activeHours` {text!r} is no span of a day")
    return start, end


def _parse_day(text: str) -> Day:
    word = text.strip().lower()
    for day, name in zip(DAYS, _DAY_NAMES, strict=True):
        if len(word) >= 3 and name.startswith(word):
            return day
    raise BadWindow(f"`days` has {text!r}, but takes {', '.join(DAYS)}")


def _zone(name: str) -> tzinfo:
    from zoneinfo import ZoneInfo  # few modes have windows

    try:
        return ZoneInfo(name)
    except (OSError, ValueError, KeyError) as error:
        raise BadWindow(f'`timezone` {name!r} is unknown: name one like "Europe/Berlin" or "UTC"') from error
