"""Time windows: what can be written, and which moments are inside."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from modes_actor.modes.model import DAYS, TimeWindow
from modes_actor.modes.windows import BadWindow, is_open, make_window

REPEATABLE = settings(derandomize=True, database=None, deadline=None)

MONDAY = datetime(2024, 1, 1, tzinfo=UTC)


def at(day: int, hour: int, minute: int = 0) -> datetime:
    """A moment of the week; day 0 is Monday."""
    return MONDAY + timedelta(days=day, hours=hour, minutes=minute)


@pytest.mark.parametrize(
    ("hours", "days", "moment", "expected"),
    [
        ("09:00-18:00", None, at(0, 9), True),
        ("09:00-18:00", None, at(0, 8, 59), False),
        ("09:00-18:00", None, at(0, 17, 59), True),
        ("09:00-18:00", None, at(0, 18), False),
        ("09:00 - 18:00", None, at(0, 12), True),
        ("00:00-24:00", None, at(6, 23, 59), True),
        (None, ["mon", "Tuesday"], at(0, 0), True),
        (None, ["mon", "Tuesday"], at(1, 23, 59), True),
        (None, ["mon", "Tuesday"], at(2, 0), False),
        ("22:00-06:00", None, at(0, 23), True),
        ("22:00-06:00", None, at(0, 5, 59), True),
        ("22:00-06:00", None, at(0, 6), False),
        ("22:00-06:00", ["fri"], at(4, 23), True),
        ("22:00-06:00", ["fri"], at(5, 3), True),
        ("22:00-06:00", ["fri"], at(4, 3), False),
        ("22:00-06:00", ["fri"], at(5, 23), False),
    ],
)
def test_a_moment_is_inside_or_not(hours: str | None, days: list[str] | None, moment: datetime, expected: bool) -> None:
    """The end is not part of a window; an overnight one belongs to the day on which it begins."""
    assert expected is is_open(make_window(hours, days, "UTC"), moment)


def test_a_window_is_meant_in_its_own_timezone() -> None:
    """Nine in Tokyo is midnight in UTC."""
    window = make_window("09:00-10:00", ["mon"], "Asia/Tokyo")
    assert (is_open(window, at(0, 0, 30)), is_open(window, at(0, 9, 30))) == (True, False)


def test_a_moment_may_be_given_in_any_timezone() -> None:
    """It is the same moment."""
    window = make_window("09:00-10:00", None, "UTC")
    assert is_open(window, at(0, 9, 30).astimezone(timezone(timedelta(hours=5))))


@pytest.mark.parametrize(
    ("hours", "days", "zone"),
    [
        ("9-18", None, None),
        ("09:00", None, None),
        ("24:00-09:00", None, None),
        ("09:00-24:30", None, None),
        ("09:00-09:00", None, None),
        ("", None, None),
        (None, [], None),
        (None, ["someday"], None),
        (None, ["m0n"], None),
        (None, None, "Mars/Olympus"),
        (None, None, "../../etc/passwd"),
        (None, None, ""),
    ],
)
def test_what_makes_no_sense_is_refused(hours: str | None, days: list[str] | None, zone: str | None) -> None:
    """A window nobody understands must not be taken for one that is always open."""
    with pytest.raises(BadWindow):
        make_window(hours, days, zone)


def test_a_window_remembers_how_it_was_written() -> None:
    """That is what a denial shows."""
    expected = TimeWindow("09:00-18:00 mon, Fri UTC", 540, 1080, ("mon", "fri"), "UTC")
    assert expected == make_window("09:00-18:00", ["mon", "Fri"], "UTC")


@REPEATABLE
@given(st.integers(0, 1439), st.integers(1, 1440), st.integers(0, 7 * 1440 - 1))
def test_of_two_windows_that_share_a_day_exactly_one_is_open(start: int, end: int, minute: int) -> None:
    """A span and the rest of the day leave no gap and no overlap."""
    if start == end or start == end % 1440:
        return
    span = TimeWindow("span", start, end, DAYS, "UTC")
    rest = TimeWindow("rest", end % 1440, start or 1440, DAYS, "UTC")
    moment = MONDAY + timedelta(minutes=minute)
    assert is_open(span, moment) is not is_open(rest, moment)
