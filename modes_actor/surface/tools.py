"""`tools/list` and `tools/call`."""

import difflib

import msgspec
from msgspec import UNSET, Raw

from modes_actor.actor.context import RequestContext
from modes_actor.actor.registry import Registry
from modes_actor.surface.offer import Offer, Soon
from modes_actor.surface.pagination import page
from modes_actor.wire.base import PaginatedParams
from modes_actor.wire.choices import choices_at
from modes_actor.wire.codec import decode_params
from modes_actor.wire.errors import InvalidParams, ParamsProblem, ValidationFailed, shortened
from modes_actor.wire.tools import CallToolParams, CallToolResult, ListToolsResult


def register(registry: Registry, offer: Offer) -> None:
    offered_tools = offer.tools()
    tools = [offered.tool for offered in offered_tools]
    by_name = {offered.tool.name: (msgspec.json.Decoder(offered.arguments), offered.call) for offered in offered_tools}

    def list_tools(params: PaginatedParams, context: RequestContext) -> ListToolsResult:
        listed, next_cursor = page(tools, params.cursor, of="tools")
        return ListToolsResult(listed, next_cursor=next_cursor)

    def call_tool(params: CallToolParams, context: RequestContext) -> Soon[CallToolResult]:
        found = by_name.get(params.name)
        if found is None:
            available, got = ", ".join(by_name) or "none", shortened(params.name)
            raise InvalidParams(
                f"Unknown tool: {got}. Available: {available}",
                data=ParamsProblem("name", "unknown tool", expected=available, got=got),
            )
        decoder, call = found
        raw = params.arguments
        if raw is UNSET or bytes(raw) == b"null":
            raw = Raw(b"{}")
        try:
            arguments = decode_params(decoder, raw, root="arguments")
        except InvalidParams as wrong:
            raise ValidationFailed(f"{params.name}: {_explained(wrong, decoder.type)}") from wrong
        return call(arguments, context)

    registry.add("tools/list", PaginatedParams, list_tools)
    registry.add("tools/call", CallToolParams, call_tool)


def _explained(wrong: InvalidParams, arguments: object) -> str:
    """The sentence without the protocol's words; with the choices there are, and the one that was probably meant."""
    sentence = wrong.message.removeprefix("Invalid params: ")
    problem = wrong.data
    if isinstance(problem, ParamsProblem) and problem.problem == "missing":
        choices = [str(choice) for choice in choices_at(arguments, problem.field)]
        return f"{sentence}: it must be one of {', '.join(choices)}" if choices else sentence
    if isinstance(problem, ParamsProblem) and problem.problem == "unknown value":
        choices = (problem.expected or "").removeprefix("one of ").split(", ")
        near = difflib.get_close_matches((problem.got or "").strip("'\"").lower(), choices, n=1)
        return f"{sentence} (did you mean {near[0]}?)" if near else sentence
    return sentence
