"""`tools/list` and `tools/call`."""

import msgspec
from msgspec import UNSET, Raw

from modes_actor.actor.context import RequestContext
from modes_actor.actor.registry import Adding
from modes_actor.surface.offer import Offer, OfferedTool, Soon
from modes_actor.surface.pagination import Pages
from modes_actor.wire.base import PaginatedParams, Result
from modes_actor.wire.codec import decode_params
from modes_actor.wire.errors import InvalidParams, ParamsProblem, ValidationFailed, shortened
from modes_actor.wire.tools import CallToolParams, ListToolsResult


def register(registry: Adding, offer: Offer) -> None:
    offered_tools = offer.tools()
    tools = [offered.tool for offered in offered_tools]
    pages = Pages(lambda listed, cursor: ListToolsResult(listed, next_cursor=cursor), of="tools")
    by_name = {offered.tool.name: (offered, msgspec.json.Decoder(offered.arguments)) for offered in offered_tools}

    def list_tools(params: PaginatedParams, context: RequestContext) -> Result:
        return pages.page(tools, params.cursor)

    def call_tool(params: CallToolParams, context: RequestContext) -> Soon[Result]:
        found = by_name.get(params.name)
        if found is None:
            available, got = ", ".join(by_name) or "none", shortened(params.name)
            raise InvalidParams(
                f"Unknown tool: {got}. Available: {available}",
                data=ParamsProblem("name", "unknown tool", expected=available, got=got),
            )
        offered, decoder = found
        raw = params.arguments
        if raw is UNSET or bytes(raw) == b"null":
            raw = Raw(b"{}")
        try:
            arguments = decode_params(decoder, raw, root="arguments")
        except InvalidParams as wrong:
            raise ValidationFailed(f"{params.name}: {_explained(wrong, offered)}") from wrong
        return offered.call(arguments, context)

    registry.add("tools/list", PaginatedParams, list_tools)
    registry.add("tools/call", CallToolParams, call_tool)


def _explained(wrong: InvalidParams, offered: OfferedTool) -> str:
    """The sentence without the protocol's words, and what helps to get it right the next time."""
    from modes_actor.spelling import did_you_mean  # these two only where a client made a mistake
    from modes_actor.wire.choices import choices_at

    sentence = wrong.message.removeprefix("Invalid params: ")
    problem = wrong.data
    if not isinstance(problem, ParamsProblem):
        return sentence
    choices = [str(choice) for choice in choices_at(offered.arguments, problem.field)]
    if problem.problem == "missing":
        described = offered.tool.input_schema.get("properties", {}).get(problem.field, {}).get("description")
        helps = f"it must be one of {', '.join(choices)}" if choices else described
        return f"{sentence}: {helps}" if helps else sentence
    hint = did_you_mean((problem.got or "").strip("'\""), choices)
    return f"{sentence} ({hint})" if hint else sentence
