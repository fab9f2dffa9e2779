"""`tools/list` and `tools/call`."""

import msgspec
from msgspec import UNSET, Raw

from modes_actor.actor.context import RequestContext
from modes_actor.actor.registry import Registry
from modes_actor.surface.offer import Offer, Soon
from modes_actor.surface.pagination import page
from modes_actor.wire.base import PaginatedParams
from modes_actor.wire.codec import decode_params
from modes_actor.wire.errors import InvalidParams, ParamsProblem, shortened
from modes_actor.wire.tools import CallToolParams, CallToolResult, ListToolsResult


def register(registry: Registry, offer: Offer) -> None:
    tools = [offered.tool for offered in offer.tools]
    by_name = {offered.tool.name: (msgspec.json.Decoder(offered.arguments), offered.call) for offered in offer.tools}

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
        return call(decode_params(decoder, raw, root="arguments"), context)

    registry.add("tools/list", PaginatedParams, list_tools)
    registry.add("tools/call", CallToolParams, call_tool)
