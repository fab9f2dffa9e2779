"""Where servers spend their time: the profiles that they leave behind, as one table.

A profile makes calls of Python dearer than they are, and those into C cheaper; it tells where to look, not how long it
takes. Waiting for requests is left out.
"""

import pstats
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from load_project import ROOT
from msgspec import Struct
from reporting import Section

SUFFIX: Final = ".profile"
SHOWN: Final = 30
_WAITING: Final = ("select.epoll", "select.kqueue", "lock")


class Spent(Struct, frozen=True):
    """What one function took, of all servers."""

    function: str
    calls: int
    own_ms: float
    """Without what it called."""
    whole_ms: float


def spent_by(profiles: Iterable[Path]) -> list[Spent]:
    """The functions that took most themselves, the first one most."""
    paths = [str(path) for path in profiles]
    if not paths:
        return []
    stats: dict[tuple[str, int, str], Any] = pstats.Stats(*paths).stats  # type: ignore[attr-defined]  # typeshed omits it
    found = [
        Spent(_name(*where), calls, own * 1e3, whole * 1e3)
        for where, (_, calls, own, whole, _) in stats.items()
        if not any(waiting in where[2] for waiting in _WAITING)
    ]
    return sorted(found, key=lambda each: -each.own_ms)


def spent_section(spent: list[Spent]) -> Section:
    own = sum(each.own_ms for each in spent) or 1.0
    rows = [
        (each.function, f"{each.own_ms / own:.1%}", f"{each.whole_ms / own:.1%}", f"{each.calls:,}")
        for each in spent[:SHOWN]
    ]
    return Section(("where servers spent their time", "itself", "with what it called", "calls"), rows)


def _name(file: str, line: int, function: str) -> str:
    if file == "~":
        return function
    path = Path(file)
    parts = path.relative_to(ROOT).parts if path.is_relative_to(ROOT) else path.parts
    if "site-packages" in parts:
        parts = parts[parts.index("site-packages") + 1 :]
    return f"{'/'.join(parts[-3:])}:{line} {function}"
