"""`prompts/list` and `prompts/get`."""

from modes_actor.actor.context import RequestContext
from modes_actor.actor.registry import Adding
from modes_actor.surface.offer import Offer, Soon
from modes_actor.surface.pagination import Pages
from modes_actor.wire.base import PaginatedParams, Result
from modes_actor.wire.errors import InvalidParams, ParamsProblem, shortened
from modes_actor.wire.prompts import GetPromptParams, GetPromptResult, ListPromptsResult


def register(registry: Adding, offer: Offer) -> None:
    source = offer.prompts

    pages = Pages(lambda listed, cursor: ListPromptsResult(listed, next_cursor=cursor), of="prompts")

    def list_prompts(params: PaginatedParams, context: RequestContext) -> Result:
        return pages.page(source.prompts() if source else (), params.cursor)

    def get(params: GetPromptParams, context: RequestContext) -> Soon[GetPromptResult]:
        prompts = {prompt.name: prompt for prompt in source.prompts()} if source else {}
        prompt = prompts.get(params.name)
        if source is None or prompt is None:
            available, got = ", ".join(prompts) or "none", shortened(params.name)
            raise InvalidParams(
                f"Unknown prompt: {got}. Available: {available}",
                data=ParamsProblem("name", "unknown prompt", expected=available, got=got),
            )
        arguments = params.arguments or {}
        for argument in prompt.arguments or ():
            if argument.required and argument.name not in arguments:
                field = f"arguments.{argument.name}"
                raise InvalidParams(
                    f"Invalid params: `{field}` is missing: {argument.description or argument.name}",
                    data=ParamsProblem(field, "missing", expected="str"),
                )
        return source.get(prompt, arguments, context)

    registry.add("prompts/list", PaginatedParams, list_prompts)
    registry.add("prompts/get", GetPromptParams, get)
