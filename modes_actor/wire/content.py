"""Content blocks: what tools return, prompts say and samplings carry."""

from typing import Any

from msgspec import field

from modes_actor.wire.base import Annotations, Icon, JsonObject, Meta, WireStruct


class ResourceContents(WireStruct, kw_only=True):
    """What a resource holds: `text`, or `blob` in base64. One Struct, because only the member tells them apart."""

    uri: str
    mime_type: str | None = None
    text: str | None = None
    blob: str | None = None
    meta: Meta | None = field(default=None, name="_meta")


class TextContent(WireStruct, tag_field="type", tag="text"):
    text: str
    annotations: Annotations | None = None
    meta: Meta | None = field(default=None, name="_meta")


class ImageContent(WireStruct, tag_field="type", tag="image"):
    """`data` is base64."""

    data: str
    mime_type: str
    annotations: Annotations | None = None
    meta: Meta | None = field(default=None, name="_meta")


class AudioContent(WireStruct, tag_field="type", tag="audio"):
    """`data` is base64. Since 2025-03-26."""

    data: str
    mime_type: str
    annotations: Annotations | None = None
    meta: Meta | None = field(default=None, name="_meta")


class ResourceLink(WireStruct, tag_field="type", tag="resource_link"):
    """Points at a resource that the client may read. Since 2025-06-18."""

    uri: str
    name: str
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None
    size: int | None = None
    annotations: Annotations | None = None
    icons: list[Icon] | None = None
    meta: Meta | None = field(default=None, name="_meta")


class EmbeddedResource(WireStruct, tag_field="type", tag="resource"):
    resource: ResourceContents
    annotations: Annotations | None = None
    meta: Meta | None = field(default=None, name="_meta")


ContentBlock = TextContent | ImageContent | AudioContent | ResourceLink | EmbeddedResource


class ToolUseContent(WireStruct, tag_field="type", tag="tool_use"):
    """A model asks for a tool during sampling. Since 2025-11-25."""

    id: str
    name: str
    input: JsonObject
    meta: Meta | None = field(default=None, name="_meta")


class ToolResultContent(WireStruct, tag_field="type", tag="tool_result"):
    """What that tool said. Since 2025-11-25."""

    tool_use_id: str
    content: list[ContentBlock]
    structured_content: Any = None
    is_error: bool | None = None
    meta: Meta | None = field(default=None, name="_meta")


SamplingContent = TextContent | ImageContent | AudioContent | ToolUseContent | ToolResultContent
