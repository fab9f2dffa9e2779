"""One typed result, shaped for the version in force. Handlers never ask which version they serve; this module knows.

- Stateless era: every result says its `resultType` and who the server is; cacheable ones say for how long.
- Handshake era: none of that; content that an older version does not know becomes text that it does.
"""

from typing import Final

import msgspec
from msgspec import Raw

from modes_actor.wire.base import SERVER_INFO_KEY, CacheableResult, Implementation, KeptResult, Result
from modes_actor.wire.codec import encode
from modes_actor.wire.versions import Era, Version

_STATELESS: Final = Era.STATELESS  # a member of an Enum is slow to look up, and every answer comes by here


def shape_result(result: Result, version: Version, server_info: Implementation) -> Result | Raw:
    """The result as that version wants to see it. The one given is never changed: handlers may share it."""
    if type(result) is KeptResult:
        known = result.encoded.get(version.name)
        if known is None:
            known = result.encoded[version.name] = Raw(encode(_shaped(result.result, version, server_info)))
        return known
    return _shaped(result, version, server_info)


def _shaped(result: Result, version: Version, server_info: Implementation) -> Result:
    if version.era is _STATELESS:
        return _stateless(result, server_info)
    if result.has_content and version.unknown_content:
        result = _older_content(result, version)
    if result.cacheable:
        result = msgspec.structs.replace(result, ttl_ms=None, cache_scope=None)
    return result


def _stateless(result: Result, server_info: Implementation) -> Result:
    if result.lists_tools:
        result = _with_errors(result)
    meta = {**(result.meta or {}), SERVER_INFO_KEY: server_info}
    result_type = result.result_type or "complete"
    if isinstance(result, CacheableResult):
        return msgspec.structs.replace(
            result,
            meta=meta,
            result_type=result_type,
            ttl_ms=result.fresh_for_ms if result.ttl_ms is None else result.ttl_ms,
            cache_scope=result.cache_scope or "private",
        )
    return msgspec.structs.replace(result, meta=meta, result_type=result_type)


def _with_errors(result: Result) -> Result:
    """A tool's errors are results in this era, so its output is one or the other."""
    from modes_actor.wire.tools import TOOL_ERROR_SCHEMA, ListToolsResult

    assert isinstance(result, ListToolsResult)
    tools = [
        msgspec.structs.replace(tool, output_schema={"type": "object", "oneOf": [schema, TOOL_ERROR_SCHEMA]})
        if (schema := tool.output_schema) is not None
        else tool
        for tool in result.tools
    ]
    return msgspec.structs.replace(result, tools=tools)


def _older_content(result: Result, version: Version) -> Result:
    # Imported here: only a result with content needs these types, and start-up does not.
    from modes_actor.wire.content import AudioContent, ContentBlock, ResourceLink, TextContent
    from modes_actor.wire.prompts import GetPromptResult, PromptMessage
    from modes_actor.wire.tools import CallToolResult

    unknown = version.unknown_content

    def older(block: ContentBlock) -> ContentBlock:
        if isinstance(block, ResourceLink) and "resource_link" in unknown:
            return TextContent(f"{block.title or block.name}: {block.uri}", block.annotations)
        if isinstance(block, AudioContent) and "audio" in unknown:
            return TextContent(f"(audio, {block.mime_type}, which this version of the protocol cannot carry)")
        return block

    if isinstance(result, GetPromptResult):
        messages = [PromptMessage(message.role, older(message.content)) for message in result.messages]
        return msgspec.structs.replace(result, messages=messages)
    assert isinstance(result, CallToolResult)
    return msgspec.structs.replace(result, content=[older(block) for block in result.content])
