"""`completion/complete`."""

from collections.abc import Awaitable

from modes_actor.actor.context import RequestContext
from modes_actor.actor.registry import Adding
from modes_actor.surface.offer import Offer, Soon
from modes_actor.wire.completion import CompleteParams, CompleteResult, Completion

MOST_VALUES = 100


def register(registry: Adding, offer: Offer) -> None:
    def complete(params: CompleteParams, context: RequestContext) -> Soon[CompleteResult]:
        if offer.complete is None:
            return CompleteResult(Completion([]))
        completion = offer.complete(params, context)
        if isinstance(completion, Completion):
            return _result(completion)
        return _later(completion)

    registry.add("completion/complete", CompleteParams, complete)


async def _later(completion: Awaitable[Completion]) -> CompleteResult:
    return _result(await completion)


def _result(completion: Completion) -> CompleteResult:
    """At most as many values as the protocol allows; the rest is only counted."""
    values = completion.values
    if len(values) <= MOST_VALUES:
        return CompleteResult(completion)
    return CompleteResult(Completion(values[:MOST_VALUES], total=completion.total or len(values), has_more=True))
