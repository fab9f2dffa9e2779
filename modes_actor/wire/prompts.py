"""`prompts/list` and `prompts/get`."""

from msgspec import field

from modes_actor.wire.base import Icon, InputResponseParams, Meta, PaginatedResult, Result, Role, WireStruct
from modes_actor.wire.content import ContentBlock


class PromptArgument(WireStruct):
    name: str
    title: str | None = None
    description: str | None = None
    required: bool | None = None


class Prompt(WireStruct, kw_only=True):
    name: str
    title: str | None = None
    description: str | None = None
    arguments: list[PromptArgument] | None = None
    icons: list[Icon] | None = None
    meta: Meta | None = field(default=None, name="_meta")


class PromptMessage(WireStruct):
    role: Role
    content: ContentBlock


class ListPromptsResult(PaginatedResult):
    prompts: list[Prompt]


class GetPromptParams(InputResponseParams):
    name: str
    arguments: dict[str, str] | None = None


class GetPromptResult(Result):
    has_content = True

    messages: list[PromptMessage]
    description: str | None = None
