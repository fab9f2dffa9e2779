"""The store of sessions: whether it is sound, whether it is known, and what is left of earlier ones.

Nothing is made or changed for it, and nobody who uses the store is kept waiting.
"""

import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from modes_actor.cli.checkup.finding import Finding, counted
from modes_actor.cli.command import Situation
from modes_actor.sessions.tables import MIGRATIONS
from modes_actor.store.files import WAL
from modes_actor.store.migrations import refuse_newer
from modes_actor.store.trouble import is_busy, is_damaged, trouble_with
from modes_actor.surface.house import STORE_FILE

BUSY_SECONDS: Final = 1.0
_LEFTOVERS: Final = ("corrupt", "orphan")


def store(situation: Situation) -> Iterator[Finding]:
    path = _path(situation)
    if path is None:
        return
    if not path.exists():
        yield Finding("store", "ok", "no sessions have been kept yet")
        return
    real = Path(os.path.realpath(path))
    finding = _examined(path, real, in_use=_is_in_use(real))
    if finding.status == "error" and _is_in_use(real):
        finding = _examined(path, real, in_use=True)  # somebody has begun to write into what was taken for idle
    yield finding


def leftovers(situation: Situation) -> Iterator[Finding]:
    path = _path(situation)
    if path is None or not path.parent.is_dir():
        return
    left = sorted(
        each.name
        for why in _LEFTOVERS
        for each in path.parent.glob(f"{STORE_FILE}.{why}-*")
        if not each.name.endswith((WAL, "-shm"))
    )
    if left:
        message = f"{counted(len(left), 'damaged store')} set aside in {path.parent}: {', '.join(left)}"
        yield Finding(
            "leftovers", "warning", message, "Look into what you miss, then delete them with what belongs to them"
        )


def _examined(path: Path, real: Path, *, in_use: bool) -> Finding:
    # A store that nobody uses has no write-ahead log; to read it as immutable makes none either.
    how = "mode=ro" if in_use else "mode=ro&immutable=1"
    try:
        connection = sqlite3.connect(f"{real.as_uri()}?{how}", uri=True, timeout=BUSY_SECONDS, isolation_level=None)
        try:
            refuse_newer(connection, MIGRATIONS)
            problems = [str(row[0]) for row in connection.execute("PRAGMA quick_check(3)")]
        finally:
            connection.close()
    except Exception as error:
        return _trouble(path, error)
    if problems != ["ok"]:
        return _damaged(path, "; ".join(problems))
    return Finding("store", "ok", f"{path} is sound ({real.stat().st_size / 1024:,.0f} KiB)")


def _trouble(path: Path, error: Exception) -> Finding:
    if is_damaged(error):
        return _damaged(path, str(error))
    if is_busy(error):
        return Finding("store", "note", f"{path} is busy, and was not looked into", "Try again")
    trouble = trouble_with(path.name, error)
    if trouble.is_unexpected:
        raise error
    return Finding("store", "error", f"{trouble.sentence} ({path})")


def _damaged(path: Path, why: str) -> Finding:
    message = f"{path} is damaged: {' '.join(why.split())}"
    fix = "Bring back a copy, if you have one: the next server sets it aside and begins with an empty one"
    return Finding("store", "error", message, fix)


def _is_in_use(real: Path) -> bool:
    return os.path.lexists(f"{real}{WAL}")


def _path(situation: Situation) -> Path | None:
    persistence = situation.config.sessions.persistence
    return Path(persistence.storage_path) / STORE_FILE if persistence.enabled else None
