"""`logging/setLevel`: how much of the server's log a handshake client wants to see."""

from modes_actor.actor.context import RequestContext
from modes_actor.actor.registry import Registry
from modes_actor.wire.base import EMPTY, EmptyResult
from modes_actor.wire.notifications import SetLevelParams


def register(registry: Registry) -> None:
    registry.add("logging/setLevel", SetLevelParams, set_level)


def set_level(params: SetLevelParams, context: RequestContext) -> EmptyResult:
    context.shared.connection.set_log_level(params.level)
    return EMPTY
