"""`tools/list` and `tools/call`."""

from typing import Any, Final

from msgspec import UNSET, Raw, UnsetType, field

from modes_actor.wire.base import Icon, InputResponseParams, JsonObject, Meta, PaginatedResult, Result, WireStruct
from modes_actor.wire.content import ContentBlock, TextContent
from modes_actor.wire.errors import ApplicationError


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
    lists_tools = True
    fresh_for_ms = 300_000  # which tools there are is decided at start

    tools: list[Tool]


class CallToolParams(InputResponseParams):
    """`arguments` stay raw until the tool is known: its own Struct decodes them."""

    name: str
    arguments: Raw | UnsetType = UNSET


class ToolError(WireStruct):
    """What went wrong with a tool call that is answered as a result (stateless era)."""

    code: int
    name: str
    message: str


TOOL_ERROR_SCHEMA: Final[JsonObject] = {
    "type": "object",
    "properties": {
        "error": {
            "type": "object",
            "description": "Why the call was refused",
            "properties": {
                "code": {"type": "integer", "description": "Number of the kind of error"},
                "name": {"type": "string", "description": "Name of the kind of error"},
                "message": {"type": "string", "description": "What is wrong, and what to do instead"},
            },
            "required": ["code", "name", "message"],
        }
    },
    "required": ["error"],
}


def tool_error(error: ApplicationError) -> "CallToolResult":
    """The error as a result that a model can read and act on."""
    told = ToolError(int(error.code), type(error).__name__, error.message)
    return CallToolResult([TextContent(error.message)], structured_content={"error": told}, is_error=True)


class CallToolResult(Result):
    """`metadata` is the seven tools' own member beside `structuredContent`."""

    has_content = True

    content: list[ContentBlock]
    structured_content: Any = None
    is_error: bool | None = None
    metadata: Any = None
