"""Charts are drawn of any numbers, and where a scale is logarithmic they say so, with marks to read it by."""

from math import nan
from typing import Any
from xml.etree import ElementTree

import pytest

from tests.scripts import script

charts = script("charts")
SVG = "{http://www.w3.org/2000/svg}"


def drawn(chart: str) -> Any:
    return ElementTree.fromstring(chart)


def said(chart: str) -> list[str]:
    return [text.text or "" for text in drawn(chart).iter(f"{SVG}text")]


def bars(**values: float) -> str:
    return str(charts.bar_chart("t", [charts.Bars("g", values)]))


def lengths(chart: str) -> list[float]:
    """Of the bars; the first rectangle is the background."""
    return [float(each.attrib["width"]) for each in drawn(chart).iter(f"{SVG}rect")][1:]


def panel(*values: float, is_log: bool) -> str:
    line = charts.Line("l", list(enumerate(values)))
    return str(charts.line_chart("t", [charts.Panel("p", [line], is_log=is_log)], across="seconds"))


def levels(chart: str) -> list[float]:
    """Of the points of a panel, from above."""
    (line,) = drawn(chart).iter(f"{SVG}polyline")
    return [float(point.split(",")[1]) for point in line.attrib["points"].split()]


@pytest.mark.parametrize("values", [{}, {"x": nan}, {"x": 0.0}, {"x": 1.0, "y": 1e6, "z": nan}, {"<": 1e-6, "&": 1e12}])
def test_bars_are_drawn_of_any_numbers(values: dict[str, float]) -> None:
    """Also where some are missing, zero, or very far apart; a bar for each that is known."""
    assert len(lengths(bars(**values))) == sum(value == value for value in values.values())


@pytest.mark.parametrize("is_log", [False, True])
@pytest.mark.parametrize("values", [(), (0.0,), (1.0, 1.0), (0.0, 1e-3, 1e9)])
def test_lines_are_drawn_of_any_numbers(values: tuple[float, ...], *, is_log: bool) -> None:
    """On a logarithmic scale without those that have no place there."""
    assert len(levels(panel(*values, is_log=is_log))) == sum(value > 0 or not is_log for value in values)


def test_a_group_of_which_nothing_is_known_says_so() -> None:
    """And the groups beside it are drawn."""
    chart = charts.bar_chart("t", [charts.Bars("a", {"x": nan}), charts.Bars("b", {"x": 2.0})])
    assert "nothing was measured" in said(chart)
    assert len(lengths(chart)) == 1


def test_bars_that_lie_far_apart_have_an_axis_of_powers_of_ten() -> None:
    """Which says that it is logarithmic; of those that are near, one is twice as long as its half."""
    far, near = bars(x=20.0, y=200.0, z=20_000.0), bars(x=20.0, y=40.0)
    assert said(far)[2:8] == ["log scale", "10", "100", "1,000", "10,000", "100,000"]
    short, middle, long = lengths(far)
    assert long - middle == pytest.approx(2 * (middle - short), abs=0.2)
    assert "log scale" not in said(near)
    assert lengths(near)[1] == pytest.approx(2 * lengths(near)[0], abs=0.2)


def test_a_panel_may_be_logarithmic() -> None:
    """From one power of ten to the next it is as far as to the one after, and each has its mark."""
    chart = panel(0.2, 2.0, 20.0, is_log=True)
    low, middle, high = levels(chart)
    assert low - middle == pytest.approx(middle - high, abs=0.2)
    assert said(chart)[1:6] == ["p (log scale)", "0.1", "1", "10", "100"]


def test_marks_are_never_so_many_that_they_cannot_be_read() -> None:
    """Over many powers of ten, some have none."""
    assert charts.logarithmic([1e-8, 1e12]).ticks() == pytest.approx([1e-9, 1e-5, 1e-1, 1e3, 1e7, 1e11])
