"""Asking the client for something, in either era. Loaded when the first handler asks."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import msgspec
from msgspec import Raw, Struct

from modes_actor.actor.context import InputRequired
from modes_actor.wire.client_features import ClientRequest, InputRequest, InputRequiredResult
from modes_actor.wire.errors import InternalError, MissingCapability, Unavailable
from modes_actor.wire.jsonrpc import ErrorObject
from modes_actor.wire.versions import Era

if TYPE_CHECKING:
    from modes_actor.actor.context import RequestContext
    from modes_actor.wire.base import ClientCapabilities

A = TypeVar("A", bound=Struct)


class ClientRefused(InternalError):
    """The client answered with an error."""


async def ask_client(
    context: RequestContext, name: str, request: ClientRequest, answer: type[A], *, within: float
) -> A:
    required = request.needs()
    if request.method not in context.version.methods or not _declared(required, context.client_capabilities):
        raise MissingCapability(request.method, required)
    if context.era is Era.STATELESS:
        if context.input_responses is None:
            raise InternalError(f"This method cannot ask the client for {request.method}")
        raw = context.input_responses.get(name)
        if raw is None:
            asked = {name: InputRequest(request.method, request.params)}
            raise InputRequired(InputRequiredResult(result_type="input_required", input_requests=asked))
        return _decode(raw, answer, request)
    answered = await context.shared.peer.request(request.method, request.params, within=within)
    if answered.is_error:
        raise ClientRefused(f"The client refused {request.method}: {_reason(answered.said)}")
    return _decode(answered.said, answer, request)


def _decode(raw: Raw, answer: type[A], request: ClientRequest) -> A:
    try:
        return msgspec.json.decode(raw, type=answer)
    except (ValueError, RecursionError) as error:
        raise Unavailable(f"The client's answer to {request.method} makes no sense: {error}") from error


def _reason(error: Raw) -> str:
    try:
        return msgspec.json.decode(error, type=ErrorObject).message
    except (ValueError, RecursionError):
        return "it gave no reason"


def _declared(required: ClientCapabilities, declared: ClientCapabilities) -> bool:
    """Whether every capability that is set in `required` is set in `declared`, members of members too."""
    return _covers(msgspec.to_builtins(required), msgspec.to_builtins(declared))


def _covers(required: dict[str, object], declared: dict[str, object]) -> bool:
    for key, value in required.items():
        found = declared.get(key)
        if found is None or (isinstance(value, dict) and not (isinstance(found, dict) and _covers(value, found))):
            return False
    return True
