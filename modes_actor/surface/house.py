"""What the surface of modes stands on: the modes in force, the sessions, the project; and what runs behind them.

Everything is made on first use, so that a client which only opens and pings pays for nothing.
"""

from __future__ import annotations

import logging
import math
import time
from collections import Counter
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import trio

from modes_actor.actor.subscriptions import Event, PromptsChanged, ResourcesChanged, ResourceUpdated
from modes_actor.config import Config, home_directory, project_root
from modes_actor.wire.errors import ModeNotFound, RequestError, ValidationFailed, shortened

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from modes_actor.actor.context import RequestContext
    from modes_actor.modes.catalog import ModeCatalog
    from modes_actor.modes.decisions import DecisionContext
    from modes_actor.modes.loader import Loaded
    from modes_actor.modes.model import ModeConfig, Problem
    from modes_actor.sessions.model import Session, SessionEvent
    from modes_actor.sessions.sessions import Sessions
    from modes_actor.watch import ModesReloaded, ModeWatch

log = logging.getLogger(__name__)

STORE_FILE = "sessions.db"
AFTER_A_FAILURE_SECONDS = 5.0
PROBLEMS_LOGGED = 50


class House:
    def __init__(
        self,
        config: Config,
        *,
        working_directory: Path | None = None,
        home: Path | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        self.config = config
        self.home = home or home_directory()
        self.root = project_root(config, working_directory)
        self._now = now
        self._to_tell: dict[Event, None] = {}
        self._news = trio.Event()
        self._watching = trio.Event()
        self._watch_scope = trio.CancelScope()
        self._sessions_used = trio.Event()
        self._batch = -1
        self._context: DecisionContext | None = None
        self._seen: dict[str, Session] = {}
        self._switching: Counter[str] = Counter()
        self._waiting_for_switch = trio.lowlevel.ParkingLot()

    # The project.

    def work_in(self, roots: Sequence[str]) -> None:
        """The client works in these directories (URIs): from now on, the modes are those of one of them."""
        from modes_actor.surface.client_project import choose_project
        from modes_actor.watch import ModesReloaded

        root = choose_project(roots, self.config)
        if root is None or root == self.root:
            return
        log.info("the project is %s, where the client works", root)
        self.root = root
        self._context = None
        before = self.__dict__.pop("_watch", None)
        if before is not None:
            self._watch_scope.cancel()
            changed = self.catalog.changes_since(before.loaded.catalog)
            self._modes_changed(ModesReloaded(changed, (), servers_changed=True, rules_changed=True))

    # Modes.

    @cached_property
    def _watch(self) -> ModeWatch:
        from modes_actor.modes.loader import ModeLoader
        from modes_actor.modes.rules import rules_signature
        from modes_actor.watch import ModeWatch

        loader = ModeLoader(self.root, Path(self.config.paths.global_config_dir).expanduser())
        watch = ModeWatch(loader, lambda: rules_signature(project_root=self.root, home=self.home))
        _log_problems(watch.loaded.catalog.problems)
        self._watching.set()
        return watch

    @property
    def loaded(self) -> Loaded:
        return self._watch.loaded

    @property
    def catalog(self) -> ModeCatalog:
        return self._watch.loaded.catalog

    def mode(self, slug: str, *, parameter: str = "mode_slug") -> ModeConfig:
        """Raises `ValidationFailed` for what cannot be a slug, `ModeNotFound` for one that nobody has."""
        from modes_actor.spelling import did_you_mean

        check_slug(slug, parameter=parameter)
        found = self.catalog.get(slug)
        if found is not None:
            return found
        hint = did_you_mean(slug, self.catalog.by_slug)
        meant = f"D{hint[1:]} " if hint else ""
        available = ", ".join(self.catalog.by_slug)
        raise ModeNotFound(f"Mode not found: {shortened(slug, length=100)}. {meant}Available: {available}")

    def system_prompt(self, mode: ModeConfig) -> str:
        from modes_actor.modes.prompt import Project, system_prompt
        from modes_actor.modes.rules import load_rules

        rules = load_rules(mode.slug, project_root=self.root, home=self.home)
        for problem in rules.problems:
            log.warning("%s: %s", problem.source, problem.sentence)
        return system_prompt(mode, self.catalog, Project(self.loaded.servers, rules.rules))

    # Sessions.

    @property
    def session_file(self) -> Path | None:
        """Where sessions are kept, with all others of this person; None if that is in memory."""
        persistence = self.config.sessions.persistence
        return Path(persistence.storage_path).expanduser() / STORE_FILE if persistence.enabled else None

    @cached_property
    def sessions(self) -> Sessions:
        from modes_actor.sessions.sessions import Sessions, Timing
        from modes_actor.sessions.tables import MIGRATIONS
        from modes_actor.store.database import Store

        section = self.config.sessions
        timing = Timing(timeout=section.timeout, cleanup_interval=section.cleanup_interval)
        self._sessions_used.set()
        return Sessions(Store(self.session_file, MIGRATIONS), timing, tell=self._session_changed, now=self._now)

    def session(self, session_id: str, context: RequestContext) -> Session:
        """As `Sessions.get`, but the store is asked once per batch: that is when other processes' changes count."""
        self._begin_batch(context.shared.batch)
        found = self._seen.get(session_id)
        if found is None:
            found = self._seen[session_id] = self.sessions.get(session_id)
        return found

    # A switch takes as long as a commit. What is asked after it must not be decided in the mode before it.

    def begin_switch(self, session_id: str) -> None:
        self._switching[session_id] += 1

    def end_switch(self, session_id: str) -> None:
        self._switching[session_id] -= 1
        if not self._switching[session_id]:
            del self._switching[session_id]
        self._waiting_for_switch.unpark_all()

    def is_switching(self, session_id: str) -> bool:
        return session_id in self._switching

    async def switched(self, session_id: str) -> None:
        """Return when no switch of that session is under way."""
        while self.is_switching(session_id):
            await self._waiting_for_switch.park()

    def decision_context(self, context: RequestContext) -> DecisionContext:
        """What decisions depend on, with paths remembered for this batch."""
        self._begin_batch(context.shared.batch)
        if self._context is None or self._context.catalog is not self.catalog:
            from modes_actor.modes.decisions import DecisionContext

            self._context = DecisionContext(self.catalog, str(self.root), self.loaded.servers).for_batch()
        return self._context

    def _begin_batch(self, batch: int) -> None:
        if batch != self._batch:
            self._batch = batch
            self._context = None
            self._seen.clear()

    # Behind the surface.

    async def run(self, events: trio.MemorySendChannel[Event]) -> None:
        """Watch mode files, clean up sessions, and tell of changes, until cancelled; then write what is left."""
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_keep_going, self._run_watch)
                nursery.start_soon(_keep_going, self._run_clean_up)
                nursery.start_soon(self._run_news, events)
        finally:
            await self._close()

    def leave(self, seconds: float) -> None:
        """The end has begun: by then, nothing should be waited for any more."""
        if self._sessions_used.is_set():
            self.sessions.end_within(seconds)

    async def _run_watch(self) -> None:
        await self._watching.wait()
        while True:
            send, receive = trio.open_memory_channel["ModesReloaded"](0)
            with trio.CancelScope() as self._watch_scope:  # cancelled when the project is another
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self._watch.run, send)
                    async for reloaded in receive:
                        _log_problems(reloaded.problems)
                        self._modes_changed(reloaded)

    async def _run_clean_up(self) -> None:
        """From the first use of a session on: what expired while no process ran is gone soon after."""
        await self._sessions_used.wait()
        timing = self.sessions.timing
        cleaned = -math.inf
        while True:
            try:
                await self.sessions.flush()
                if trio.current_time() - cleaned >= timing.cleanup_interval:
                    cleaned = trio.current_time()
                    if removed := await self.sessions.clean_up():
                        log.info("%d sessions expired", removed)
            except RequestError as error:
                log.warning("clean-up failed, and is tried again later: %s", error)
            with trio.move_on_after(timing.tick):
                await self.sessions.flush_is_due.wait()

    async def _run_news(self, events: trio.MemorySendChannel[Event]) -> None:
        while True:
            await self._news.wait()
            self._news = trio.Event()
            news, self._to_tell = self._to_tell, {}
            try:
                for event in news:
                    await events.send(event)
            except trio.BrokenResourceError:
                return  # the server is leaving, and nobody listens any more

    async def _close(self) -> None:
        if not self._sessions_used.is_set():
            return
        with trio.CancelScope(shield=True):
            try:
                await self.sessions.flush()
            except RequestError as error:
                log.warning("the last uses of sessions could not be written: %s", error)
            await self.sessions.close()

    # Events.

    def _tell(self, *events: Event) -> None:
        self._to_tell.update(dict.fromkeys(events))  # the same news twice is one
        self._news.set()

    def _session_changed(self, event: SessionEvent) -> None:
        from modes_actor.sessions.model import SessionsExpired, TaskCompleted

        self._seen.clear()
        changed = event.session_ids if isinstance(event, SessionsExpired) else (event.session_id, *event.ancestors)
        if isinstance(event, TaskCompleted):
            changed += event.cancelled
        self._tell(*(ResourceUpdated(f"task://{session_id}") for session_id in changed))

    def watch(self) -> None:
        """Somebody wants to hear of changes: from now on there must be something to compare with."""
        _ = self._watch

    def _modes_changed(self, reloaded: ModesReloaded) -> None:
        changed = reloaded.changed
        self._context = None
        if changed:
            slugs = {*changed.added, *changed.changed, *changed.removed}
            while below := {mode.slug for mode in self.catalog if mode.extends in slugs} - slugs:
                slugs |= below  # what a mode extends is part of it
            uris = [f"mode://{slug}{part}" for slug in sorted(slugs) for part in ("", "/config")]
            self._tell(ResourcesChanged(), PromptsChanged(), *map(ResourceUpdated, uris))
        if changed or reloaded.servers_changed or reloaded.rules_changed:
            # Every prompt tells of the other modes, of the servers that there are, and of the rules.
            told = dict.fromkeys([*self.catalog.by_slug, *changed.removed])
            self._tell(*(ResourceUpdated(f"mode://{slug}/system_prompt") for slug in told))


def _log_problems(problems: tuple[Problem, ...]) -> None:
    worth_telling = [problem for problem in problems if problem.severity != "info"]
    for problem in worth_telling[:PROBLEMS_LOGGED]:
        log.warning("%s", problem)
    if len(worth_telling) > PROBLEMS_LOGGED:
        log.warning("and %d more problems with mode files", len(worth_telling) - PROBLEMS_LOGGED)


def check_slug(slug: str, *, parameter: str) -> None:
    """Raises `ValidationFailed` for what cannot be one."""
    from modes_actor.modes.names import is_slug

    if not is_slug(slug):
        shown = shortened(slug, length=100)
        raise ValidationFailed(f"`{parameter}` must be a slug of letters, digits and `-`, not '{shown}'")


async def _keep_going(work: Callable[[], Awaitable[None]]) -> None:
    """What runs behind the surface must not take it down: log what went wrong, and begin again a little later."""
    while True:
        try:
            await work()
        except Exception:
            log.exception("background work failed, and begins again")
        await trio.sleep(AFTER_A_FAILURE_SECONDS)
