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
        is_log = min(known.values()) > 0 and max(known.values()) / min(known.values()) > 50
        body.append(_text(10, y, group.title + (" (logarithmic)" if is_log else ""), weight="600"))
        y += 8
        for name, value in known.items():
            share = _share(value, list(known.values()), is_log=is_log)
            length = max(2.0, share * (WIDTH - _LABELS - 120))
            colour = COLOURS[names.index(name) % len(COLOURS)]
            body.append(_text(_LABELS - 8, y + 15, name, anchor="end"))
            body.append(
                f'<rect x="{_LABELS}" y="{y}" width="{length:.1f}" height="{_BAR - 4}" rx="3" fill="{colour}"/>'
            )
            body.append(_text(_LABELS + length + 6, y + 14, group.form.format(value)))
            y += _BAR
        y += 26
    return _svg(title, y - 10, body)


class Line(Struct, frozen=True):
    """A series of points. Lines of a chart share the horizontal axis; each panel has a vertical axis of its own."""

    name: str
    points: Sequence[tuple[float, float]]


class Panel(Struct, frozen=True):
    title: str
    lines: Sequence[Line]
    form: str = "{:,.0f}"


def line_chart(title: str, panels: Sequence[Panel], *, across: str) -> str:
    """Panels below one another. `across` says what the horizontal axis is."""
    body: list[str] = []
    left, right, height = 80, WIDTH - 20, 130
    xs = [x for panel in panels for line in panel.lines for x, _ in line.points] or [0.0]
    first, last = min(xs), max(xs)
    y = 44
    for panel in panels:
        ys = [value for line in panel.lines for _, value in line.points] or [0.0]
        top = max(max(ys), 1e-9)
        body.append(_text(10, y, panel.title, weight="600"))
        y += 12
        for part in (0.0, 0.5, 1.0):
            level = y + height * (1 - part)
            body.append(f'<line x1="{left}" y1="{level:.1f}" x2="{right}" y2="{level:.1f}" stroke="#e2e8f0"/>')
            body.append(_text(left - 8, level + 4, panel.form.format(top * part), anchor="end"))
        scale = (right - left) / ((last - first) or 1)
        for index, line in enumerate(panel.lines):
            colour = COLOURS[index % len(COLOURS)]
            places = ((left + (x - first) * scale, y + height * (1 - value / top)) for x, value in line.points)
            points = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
            body.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>')
            body.append(_text(left + 10 + index * 130, y + height + 18, line.name, fill=colour))
        y += height + 46
    body.append(_text(right, y - 18, f"{across}: {first:,.0f} to {last:,.0f}", anchor="end"))
    return _svg(title, y, body)


def _share(value: float, values: Sequence[float], *, is_log: bool) -> float:
    if not is_log:
        return value / max(values) if max(values) > 0 else 0.0
    low = math.log10(min(values)) - 0.3
    return (math.log10(value) - low) / (math.log10(max(values)) - low)


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
