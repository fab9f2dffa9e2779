"""Where a handshake client works: it is asked when it has opened, and again when it says that this has changed.

Promises: what depends on the answer waits for it, in order, and not longer than `PATIENCE`; no more than `WAITING`
wait, because the answer comes in on the same pipe; a client that does not answer is served as if nobody had asked.
"""

from __future__ import annotations

import logging
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec
import trio

from modes_actor.wire.base import Params
from modes_actor.wire.errors import RequestError, Unavailable
from modes_actor.wire.notifications import INITIALIZED, ROOTS_CHANGED
from modes_actor.wire.versions import Era

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from modes_actor.actor.context import RequestContext, Shared
    from modes_actor.actor.registry import Outcome, Registry
    from modes_actor.wire.base import Result

log = logging.getLogger(__name__)

P = TypeVar("P", bound=Params)

PATIENCE: Final = 5.0
WAITING: Final = 64
_DEPENDENT: Final = frozenset(
    {"tools/call", "resources/list", "resources/read", "prompts/list", "prompts/get", "completion/complete"}
)


class ClientRoots:
    def __init__(self, take: Callable[[Sequence[str]], None]) -> None:
        """`take` is given the URIs of the roots, whenever they are new."""
        self._take = take
        self._waiting: list[_Postponed] | None = None
        """None while nobody is being asked."""
        self._ask_again = False

    def register(self, registry: Registry) -> None:
        registry.add_listener(INITIALIZED, self._ask)
        registry.add_listener(ROOTS_CHANGED, self._ask)

    def after(self, registry: Registry) -> _Dependent:
        """The registry, for handlers that wait for the answer where they depend on it."""
        return _Dependent(registry, self)

    def postponed(
        self, call: Callable[[Any, RequestContext], Outcome], params: Any, context: RequestContext
    ) -> Awaitable[Result] | None:
        """What the call comes to when the client has answered; None if there is nothing to wait for."""
        if self._waiting is None or context.era is Era.STATELESS:
            return None
        if len(self._waiting) >= WAITING:
            raise Unavailable("The server waits to hear from the client which project this is: send it again")
        postponed = _Postponed(call, params, context)
        self._waiting.append(postponed)
        return postponed.outcome()

    def _ask(self, shared: Shared) -> Awaitable[None] | None:
        caller = shared.connection.handshake
        if caller is None or caller.capabilities.roots is None:
            return None
        if self._waiting is not None:
            self._ask_again = True
            return None
        self._waiting = []
        return self._asked(shared)

    async def _asked(self, shared: Shared) -> None:
        try:
            self._ask_again = True
            while self._ask_again:
                self._ask_again = False
                self._take(await _roots(shared))
                self._begin_waiting()  # though it may have moved on: who always moves would make them wait forever
        except RequestError as error:
            log.warning("the client's roots are not known: %s", error)
        finally:
            self._begin_waiting()
            self._waiting = None

    def _begin_waiting(self) -> None:
        """Here and now, so that they are served in their order."""
        waiting, self._waiting = self._waiting or [], []
        for each in waiting:
            each.begin()


class _Postponed:
    """A call whose time has not come."""

    def __init__(self, call: Callable[[Any, RequestContext], Outcome], params: Any, context: RequestContext) -> None:
        self._call, self._params, self._context = call, params, context
        self._begun = trio.Event()
        self._is_wanted = True
        self._outcome: Any = None
        self._error: Exception | None = None

    def begin(self) -> None:
        if self._is_wanted:
            try:
                self._outcome = self._call(self._params, self._context)
            except Exception as error:
                self._error = error
        self._begun.set()

    async def outcome(self) -> Result:
        try:
            await self._begun.wait()
        except trio.Cancelled:
            if not self._begun.is_set():
                self._is_wanted = False
                raise
            # What has begun is cancelled at its own next step, so that it can tidy up.
        if self._error is not None:
            raise self._error
        result: Result = await self._outcome if isawaitable(self._outcome) else self._outcome
        return result


class _Dependent:
    """Adds handlers to a registry."""

    def __init__(self, registry: Registry, roots: ClientRoots) -> None:
        self._registry = registry
        self._roots = roots

    def add(self, method: str, params: type[P], call: Callable[[P, RequestContext], Outcome]) -> None:
        if method not in _DEPENDENT:
            self._registry.add(method, params, call)
            return
        roots = self._roots

        def when_known(params: P, context: RequestContext) -> Outcome:
            return roots.postponed(call, params, context) or call(params, context)

        self._registry.add(method, params, when_known)


async def _roots(shared: Shared) -> list[str]:
    """The URIs. Raises `RequestError`."""
    from modes_actor.wire.client_features import ListRoots, ListRootsResult

    request = ListRoots()
    answer = await shared.peer.request(request.method, request.params, within=PATIENCE)
    if answer.is_error:
        raise Unavailable("it answered with an error")
    try:
        return [root.uri for root in msgspec.json.decode(answer.said, type=ListRootsResult).roots]
    except (ValueError, RecursionError) as error:
        raise Unavailable(f"its answer makes no sense: {error}") from error
