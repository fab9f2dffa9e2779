"""Charts as SVG text: bars beside one another, and lines over time. They need nothing to be looked at but a browser."""

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import Final

from msgspec import Struct

WIDTH: Final = 760
COLOURS: Final = ("#2563eb", "#94a3b8", "#d97706", "#059669", "#dc2626", "#7c3aed")
_FONT: Final = 'font-family="system-ui, sans-serif" font-size="13"'
_BAR: Final = 22
_LABELS: Final = 190
_LONGEST: Final = WIDTH - _LABELS - 120
_GRID: Final = 'stroke="#e2e8f0"'
_FAINT: Final = "#64748b"
_FAR_APART: Final = 50
_MOST_TICKS: Final = 7


class Scale(Struct, frozen=True):
    """Where values lie between the ends of an axis, which are at 0 and 1, and where there is a mark on it."""

    low: float
    high: float
    is_log: bool = False

    def share(self, value: float) -> float:
        if not self.is_log:
            return (value - self.low) / (self.high - self.low)
        return math.log(value / self.low) / math.log(self.high / self.low)

    def ticks(self) -> list[float]:
        if not self.is_log:
            return [self.low, (self.low + self.high) / 2, self.high]
        first, last = round(math.log10(self.low)), round(math.log10(self.high))
        return [10.0**power for power in range(first, last + 1, math.ceil((last - first) / (_MOST_TICKS - 1)))]


def linear(values: Sequence[float]) -> Scale:
    return Scale(0.0, max(*values, 1e-9))


def logarithmic(values: Sequence[float]) -> Scale:
    """From a power of ten below all values, so that the least can be seen, to one that none exceeds."""
    first = math.ceil(math.log10(min(values))) - 1
    return Scale(10.0**first, 10.0 ** math.ceil(math.log10(max(values))), is_log=True)


class Bars(Struct, frozen=True):
    """A group of bars: what they measure, and a value for each contender (NaN: none)."""

    title: str
    values: Mapping[str, float]
    form: str = "{:,.0f}"


def bar_chart(title: str, groups: Sequence[Bars]) -> str:
    """Groups below one another, each on a scale of its own; with values that lie far apart, a logarithmic one."""
    names = list(dict.fromkeys(name for group in groups for name in group.values))
    body: list[str] = []
    y = 44
    for group in groups:
        known = {name: value for name, value in group.values.items() if not math.isnan(value)}
        body.append(_text(10, y, group.title, weight="600"))
        y += 8
        if not known:
            body.append(_text(_LABELS, y + 15, "nothing was measured"))
            y += _BAR + 26
            continue
        values = list(known.values())
        is_far_apart = min(values) > 0 and max(values) / min(values) > _FAR_APART
        scale = (logarithmic if is_far_apart else linear)(values)
        if scale.is_log:
            body += _axis_below(scale, y, y + _BAR * len(known))
        for name, value in known.items():
            length = max(2.0, scale.share(value) * _LONGEST)
            colour = COLOURS[names.index(name) % len(COLOURS)]
            body.append(_text(_LABELS - 8, y + 15, name, anchor="end"))
            body.append(
                f'<rect x="{_LABELS}" y="{y}" width="{length:.1f}" height="{_BAR - 4}" rx="3" fill="{colour}"/>'
            )
            body.append(_text(_LABELS + length + 6, y + 14, group.form.format(value)))
            y += _BAR
        y += 42 if scale.is_log else 26
    return _svg(title, y - 10, body)


def _axis_below(scale: Scale, top: float, bottom: float) -> list[str]:
    """Bars of a logarithmic scale say nothing without it: the length of one is no multiple of another's."""
    parts = [_text(_LABELS - 36, bottom + 12, "log scale", anchor="end", fill=_FAINT)]  # left of the first mark
    for tick in scale.ticks():
        x = _LABELS + scale.share(tick) * _LONGEST
        parts.append(f'<line x1="{x:.1f}" y1="{top:.1f}" x2="{x:.1f}" y2="{bottom:.1f}" {_GRID}/>')
        parts.append(_text(x, bottom + 12, _power_of_ten(tick), anchor="middle", fill=_FAINT))
    return parts


def _power_of_ten(value: float) -> str:
    return f"{value:,.0f}" if value >= 1 else f"{value:g}"


class Line(Struct, frozen=True):
    """A series of points. Lines of a chart share the horizontal axis; each panel has a vertical axis of its own."""

    name: str
    points: Sequence[tuple[float, float]]


class Panel(Struct, frozen=True):
    title: str
    lines: Sequence[Line]
    form: str = "{:,.0f}"
    is_log: bool = False
    """What is not above zero has no place then, and is left out."""


def line_chart(title: str, panels: Sequence[Panel], *, across: str) -> str:
    """Panels below one another. `across` says what the horizontal axis is."""
    body: list[str] = []
    left, right, height = 80, WIDTH - 20, 130
    xs = [x for panel in panels for line in panel.lines for x, _ in line.points] or [0.0]
    first, last = min(xs), max(xs)
    y = 44
    across_scale = (right - left) / ((last - first) or 1)
    for panel in panels:
        lines = [[point for point in line.points if point[1] > 0 or not panel.is_log] for line in panel.lines]
        ys = [value for points in lines for _, value in points] or [1.0]
        scale = (logarithmic if panel.is_log else linear)(ys)
        body.append(_text(10, y, panel.title + (" (log scale)" if panel.is_log else ""), weight="600"))
        y += 12
        for tick in scale.ticks():
            level = y + height * (1 - scale.share(tick))
            body.append(f'<line x1="{left}" y1="{level:.1f}" x2="{right}" y2="{level:.1f}" {_GRID}/>')
            told = _power_of_ten(tick) if scale.is_log else panel.form.format(tick)
            body.append(_text(left - 8, level + 4, told, anchor="end"))
        for index, (line, points) in enumerate(zip(panel.lines, lines, strict=True)):
            colour = COLOURS[index % len(COLOURS)]
            places = ((left + (x - first) * across_scale, y + height * (1 - scale.share(value))) for x, value in points)
            path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
            body.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
            body.append(_text(left + 10 + index * 130, y + height + 18, line.name, fill=colour))
        y += height + 46
    body.append(_text(right, y - 18, f"{across}: {first:,.0f} to {last:,.0f}", anchor="end"))
    return _svg(title, y, body)


def _text(x: float, y: float, text: str, *, anchor: str = "start", weight: str = "400", fill: str = "#334155") -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-weight="{weight}" fill="{fill}">'
        f"{escape(text)}</text>"
    )


def _svg(title: str, height: float, body: Sequence[str]) -> str:
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" {_FONT}>',
            f"<title>{escape(title)}</title>",
            f'<rect width="{WIDTH}" height="{height:.0f}" rx="8" fill="#ffffff"/>',
            _text(10, 22, title, weight="700"),
            *body,
            "</svg>\n",
        ]
    )
