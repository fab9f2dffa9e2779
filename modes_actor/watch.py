"""The modes in force, kept in step with their files.

Promises: a change is in force within two seconds; a file is read only once it has stopped changing; `loaded` is always
whole, one version or the next; every reload is told, with what it changed.
"""

import logging
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Final

import trio
from msgspec import Struct

from modes_actor.modes.catalog import ModesChanged
from modes_actor.modes.loader import Loaded, ModeLoader
from modes_actor.modes.model import Problem

log = logging.getLogger(__name__)

LOOK_EVERY_SECONDS: Final = 0.5
"""A change is seen at the next look and in force after the one that finds it settled."""

Signature = tuple[int, int, int, int] | str
"""What tells a file's versions apart; a word if there is none to look at."""


RULES: Final = Path("rules")
"""Stands for all rule files among the paths that are looked at."""


class ModesReloaded(Struct, frozen=True):
    """Files changed and were read again. `changed` may be empty: then only servers, rules or problems differ."""

    changed: ModesChanged
    problems: tuple[Problem, ...]
    servers_changed: bool = False
    rules_changed: bool = False


class ModeWatch:
    """Looks at a handful of files, twice a second. Events of the operating system would be quicker, but differ by
    platform, miss network drives, and wake us in the middle of a save."""

    def __init__(self, loader: ModeLoader, look_at_rules: Callable[[], object] = lambda: None) -> None:
        """`look_at_rules` gives something that differs when rule files do."""
        self._loader = loader
        self._look_at_rules = look_at_rules
        self._seen = self._look()
        self.loaded: Loaded = loader.load()

    async def run(self, events: trio.MemorySendChannel[ModesReloaded]) -> None:
        """Watch until cancelled."""
        settled = dict(self._seen)
        while True:
            await trio.sleep(LOOK_EVERY_SECONDS)
            before, self._seen = self._seen, self._look()
            changed = {path for path, signature in self._seen.items() if signature != settled[path]}
            moving = {path for path in changed if self._seen[path] != before[path]}
            if still := changed - moving:  # one that never settles does not hold up the others
                settled |= {path: self._seen[path] for path in still}
                await events.send(self._reload(unsettled=moving - {RULES}, rules_changed=RULES in still))

    def _reload(self, *, unsettled: Collection[Path], rules_changed: bool) -> ModesReloaded:
        before = self.loaded
        self.loaded = self._loader.load(unsettled=unsettled)  # a few milliseconds, once per save
        changed = self.loaded.catalog.changes_since(before.catalog)
        log.info(
            "mode files changed: %d modes, %d added, %d changed, %d removed, %d problems",
            len(self.loaded.catalog),
            len(changed.added),
            len(changed.changed),
            len(changed.removed),
            len(self.loaded.catalog.problems),
        )
        servers_changed = before.servers.servers != self.loaded.servers.servers
        return ModesReloaded(changed, self.loaded.catalog.problems, servers_changed, rules_changed)

    def _look(self) -> dict[Path, object]:
        return {RULES: self._look_at_rules(), **{path: _signature(path) for path in self._loader.files()}}


def _signature(path: Path) -> Signature:
    try:
        status = path.stat()
    except OSError as error:
        return type(error).__name__
    return (status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino)
