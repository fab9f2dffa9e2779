"""Values for arguments while a person types: slugs, sessions, sources, states, groups."""

from typing import get_args

from modes_actor.actor.context import RequestContext
from modes_actor.modes.model import GROUP_NAMES, Source
from modes_actor.sessions.model import FinalState
from modes_actor.surface.completion import MOST_VALUES
from modes_actor.surface.house import House
from modes_actor.wire.completion import CompleteParams, Completion

_FIXED = {
    "source": (*get_args(Source), "all"),
    "status": get_args(FinalState),
    "group": GROUP_NAMES,
}


class ModeCompletion:
    def __init__(self, house: House) -> None:
        self._house = house

    def complete(self, params: CompleteParams, context: RequestContext) -> Completion:
        """By the argument's name, whatever it is an argument of."""
        name, typed = params.argument.name, params.argument.value
        if name in ("slug", "mode_slug", "new_mode_slug", "to_mode", "mode"):
            return Completion(_matching(list(self._house.catalog.by_slug), typed))
        if name in ("session_id", "parent_session_id"):
            found = [session.session_id for session in self._house.sessions.recent(prefix=typed, limit=MOST_VALUES + 1)]
            return Completion(found[:MOST_VALUES], has_more=len(found) > MOST_VALUES)
        return Completion(_matching(list(_FIXED.get(name, ())), typed))


def _matching(values: list[str], typed: str) -> list[str]:
    """Those that begin so, then those that have it somewhere inside."""
    folded = typed.lower()
    begin = [value for value in values if value.lower().startswith(folded)]
    return begin + [value for value in values if folded in value.lower() and value not in begin]
