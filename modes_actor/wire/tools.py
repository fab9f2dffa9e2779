"""`tools/list` and `tools/call`."""

from typing import Any

from msgspec import UNSET, Raw, UnsetType, field

from modes_actor.wire.base import Icon, InputResponseParams, JsonObject, Meta, PaginatedResult, Result, WireStruct
from modes_actor.wire.content import ContentBlock


class ToolAnnotations(WireStruct):
    title: str | None = None
    read_only_hint: bool | None = None
    destructive_hint: bool | None = None
    idempotent_hint: bool | None = None
    open_world_hint: bool | None = None


class Tool(WireStruct, kw_only=True):
    name: str
    input_schema: JsonObject
    title: str | None = None
    description: str | None = None
    output_schema: JsonObject | None = None
    annotations: ToolAnnotations | None = None
    icons: list[Icon] | None = None
    meta: Meta | None = field(default=None, name="_meta")


class ListToolsResult(PaginatedResult):
    fresh_for_ms = 300_000  # which tools there are is decided at start

    tools: list[Tool]


class CallToolParams(InputResponseParams):
    """`arguments` stay raw until the tool is known: its own Struct decodes them."""

    name: str
    arguments: Raw | UnsetType = UNSET


class CallToolResult(Result):
    """`metadata` is the seven tools' own member beside `structuredContent`."""

    content: list[ContentBlock]
    structured_content: Any = None
    is_error: bool | None = None
    metadata: Any = None
