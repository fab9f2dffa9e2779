"""One result, shaped for each version: what is added, what becomes text, and that the original stays as it was."""

from copy import deepcopy
from typing import Any, Literal

import msgspec
import pytest

from modes_actor.wire.base import EMPTY, SERVER_INFO_KEY, Annotations, EmptyResult, Implementation, KeptResult, Result
from modes_actor.wire.client_features import InputRequest, InputRequiredResult
from modes_actor.wire.completion import CompleteResult, Completion
from modes_actor.wire.content import (
    AudioContent,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    ResourceContents,
    ResourceLink,
    TextContent,
)
from modes_actor.wire.lifecycle import DiscoverResult, InitializeResult, ServerCapabilities
from modes_actor.wire.notifications import ListenResult
from modes_actor.wire.prompts import GetPromptResult, ListPromptsResult, Prompt, PromptMessage
from modes_actor.wire.resources import (
    ListResourcesResult,
    ListResourceTemplatesResult,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
)
from modes_actor.wire.shape import shape_result
from modes_actor.wire.tools import CallToolResult, ListToolsResult, Tool
from modes_actor.wire.versions import (
    ALL_VERSIONS,
    HANDSHAKE_VERSIONS,
    V2024_11_05,
    V2025_03_26,
    V2025_06_18,
    V2025_11_25,
    V2026_07_28,
    Version,
)

SERVER = Implementation("a server", "7")
SERVER_SAID = {"name": "a server", "version": "7"}

IMPORTANT = Annotations(audience=["user"], priority=1.0)
TEXT = TextContent("hello", IMPORTANT)
IMAGE = ImageContent("aGVsbG8=", "image/png")
AUDIO = AudioContent("aGVsbG8=", "audio/wav")
LINK = ResourceLink("sample://one", "one", title="The first", annotations=IMPORTANT)
EMBEDDED = EmbeddedResource(ResourceContents(uri="sample://one", text="one"))
EVERY_CONTENT: list[ContentBlock] = [TEXT, IMAGE, AUDIO, LINK, EMBEDDED]

LINK_AS_TEXT = TextContent("The first: sample://one", IMPORTANT)
AUDIO_AS_TEXT = TextContent("(audio, audio/wav, which this version of the protocol cannot carry)")
CONTENT_BY_VERSION: dict[Version, list[ContentBlock]] = {
    V2024_11_05: [TEXT, IMAGE, AUDIO_AS_TEXT, LINK_AS_TEXT, EMBEDDED],
    V2025_03_26: [TEXT, IMAGE, AUDIO, LINK_AS_TEXT, EMBEDDED],
    V2025_06_18: EVERY_CONTENT,
    V2025_11_25: EVERY_CONTENT,
    V2026_07_28: EVERY_CONTENT,
}

PLAIN: list[Result] = [
    EMPTY,
    EmptyResult(meta={"mine": 1}),
    InitializeResult("2025-11-25", ServerCapabilities(), SERVER),
    CallToolResult(EVERY_CONTENT, structured_content={"a": 1}, is_error=False, metadata={"b": 2}),
    GetPromptResult([PromptMessage("user", block) for block in EVERY_CONTENT], "all of them"),
    CompleteResult(Completion(["a"], total=1)),
    ListenResult(meta={"io.modelcontextprotocol/subscriptionId": 1}),
]
CACHEABLE: list[Result] = [
    DiscoverResult(["2026-07-28"], ServerCapabilities()),
    ListToolsResult([Tool(name="t", input_schema={"type": "object"})], next_cursor="next"),
    ListPromptsResult([Prompt(name="p")]),
    ListResourcesResult([Resource(uri="sample://one", name="one")]),
    ListResourceTemplatesResult([ResourceTemplate(uri_template="sample://{x}", name="x")]),
    ReadResourceResult([ResourceContents(uri="sample://one", text="one")]),
    ReadResourceResult([], ttl_ms=5, cache_scope="public", meta={"mine": 1}),
]
FRESH_FOR_MS: dict[type[Result], int] = {
    DiscoverResult: 3_600_000,
    ListToolsResult: 300_000,
    ListPromptsResult: 0,
    ListResourcesResult: 0,
    ListResourceTemplatesResult: 300_000,
    ReadResourceResult: 0,
}


def by_type(value: Any) -> str:
    return value.name if isinstance(value, Version) else type(value).__name__


every_version = pytest.mark.parametrize("version", ALL_VERSIONS, ids=by_type)
every_handshake_version = pytest.mark.parametrize("version", HANDSHAKE_VERSIONS, ids=by_type)
every_result = pytest.mark.parametrize("result", PLAIN + CACHEABLE, ids=by_type)


def on_the_wire(result: Result, version: Version) -> dict[str, Any]:
    """What the client sees."""
    shaped: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(shape_result(result, version, SERVER)))
    return shaped


def as_given(result: Result) -> dict[str, Any]:
    """What the handler said, unshaped."""
    said: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(result))
    return said


@every_version
@every_result
def test_a_result_that_handlers_share_is_never_changed(result: Result, version: Version) -> None:
    """Neither itself nor anything inside it: the next request gets the very same one."""
    before = deepcopy(result)
    shape_result(result, version, SERVER)
    assert before == result


@every_version
@every_result
def test_shaping_twice_gives_the_same(result: Result, version: Version) -> None:
    """Nothing of the first time is left behind."""
    assert shape_result(result, version, SERVER) == shape_result(result, version, SERVER)


@every_version
@every_result
def test_a_result_that_is_kept_is_the_same_on_the_wire(result: Result, version: Version) -> None:
    """Whether it is encoded for the first time or was before, and whatever other versions made of it."""
    kept = KeptResult(result=result)
    expected = msgspec.json.decode(msgspec.json.encode(shape_result(result, version, SERVER)))
    for each in (version, *ALL_VERSIONS, version):
        shaped = shape_result(kept, each, SERVER)
    assert msgspec.json.decode(msgspec.json.encode(shaped)) == expected


def test_a_result_that_is_kept_is_encoded_once() -> None:
    """For each version, that is."""
    kept = KeptResult(result=EmptyResult())
    first = shape_result(kept, V2026_07_28, SERVER)
    assert shape_result(kept, V2026_07_28, SERVER) is first


@pytest.mark.parametrize("meta", [None, {"mine": 1}])
def test_the_metadata_of_a_shared_result_is_not_shared_with_the_shaped_one(meta: dict[str, Any] | None) -> None:
    """What is done to one client's metadata does not reach another's."""
    result = EmptyResult(meta=deepcopy(meta))
    shaped = shape_result(result, V2026_07_28, SERVER)
    assert isinstance(shaped, Result)
    assert shaped.meta is not None
    shaped.meta["late"] = True
    assert result.meta == meta


@every_version
def test_a_tool_result_has_only_content_that_the_version_knows(version: Version) -> None:
    """A link and a sound become text where they came later; all else stays, in its order."""
    shaped = shape_result(CallToolResult(EVERY_CONTENT), version, SERVER)
    assert isinstance(shaped, CallToolResult)
    assert CONTENT_BY_VERSION[version] == shaped.content


@every_version
def test_a_prompt_has_only_content_that_the_version_knows(version: Version) -> None:
    """The same as for tools, and every message keeps its role."""
    roles: tuple[Literal["user", "assistant"], ...] = ("user", "assistant", "user", "assistant", "user")
    messages = [PromptMessage(role, block) for role, block in zip(roles, EVERY_CONTENT, strict=True)]
    shaped = shape_result(GetPromptResult(messages, "all of them"), version, SERVER)
    assert isinstance(shaped, GetPromptResult)
    expected = [PromptMessage(role, block) for role, block in zip(roles, CONTENT_BY_VERSION[version], strict=True)]
    assert (expected, "all of them") == (shaped.messages, shaped.description)


def test_a_link_without_a_title_is_called_by_its_name() -> None:
    """The text still says what it points at and where."""
    shaped = shape_result(CallToolResult([ResourceLink("sample://one", "one")]), V2024_11_05, SERVER)
    assert CallToolResult([TextContent("one: sample://one")]) == shaped


@every_handshake_version
def test_what_else_a_tool_says_stays_when_its_content_is_rewritten(version: Version) -> None:
    """Structured content, the error mark, metadata."""
    result = CallToolResult([LINK, AUDIO], structured_content={"a": 1}, is_error=True, metadata={"b": 2}, meta={"c": 3})
    shaped = on_the_wire(result, version)
    del shaped["content"]
    assert shaped == {"structuredContent": {"a": 1}, "isError": True, "metadata": {"b": 2}, "_meta": {"c": 3}}


@every_handshake_version
@every_result
def test_the_handshake_era_sees_nothing_of_the_stateless_one(result: Result, version: Version) -> None:
    """No result type, no server in the metadata, no cache hints, not even those that a handler set."""
    shaped = on_the_wire(result, version)
    assert not {"resultType", "ttlMs", "cacheScope"} & set(shaped)
    assert shaped.get("_meta") == as_given(result).get("_meta")


@pytest.mark.parametrize("result", PLAIN, ids=by_type)
def test_a_stateless_result_says_its_type_and_its_server_and_adds_no_more(result: Result) -> None:
    """Beside the handler's own metadata, and without cache hints where there is nothing to cache."""
    said = as_given(result)
    meta = {**said.get("_meta", {}), SERVER_INFO_KEY: SERVER_SAID}
    assert {**said, "resultType": "complete", "_meta": meta} == on_the_wire(result, V2026_07_28)


@pytest.mark.parametrize("result", CACHEABLE[:-1], ids=by_type)
def test_a_stateless_result_that_may_be_kept_says_for_how_long(result: Result) -> None:
    """By what kind of result it is, and for this client alone, unless the handler knows better."""
    added = {
        "resultType": "complete",
        "_meta": {SERVER_INFO_KEY: SERVER_SAID},
        "ttlMs": FRESH_FOR_MS[type(result)],
        "cacheScope": "private",
    }
    assert {**as_given(result), **added} == on_the_wire(result, V2026_07_28)


@pytest.mark.parametrize("ttl_ms", [0, 1, 86_400_000])
@pytest.mark.parametrize("scope", ["public", "private"])
def test_a_handler_that_knows_how_long_its_result_is_fresh_is_believed(
    ttl_ms: int, scope: Literal["public", "private"]
) -> None:
    """Also when it says: not at all. (The tool list's own time would be longer.)"""
    shaped = on_the_wire(ListToolsResult([], ttl_ms=ttl_ms, cache_scope=scope), V2026_07_28)
    assert (ttl_ms, scope) == (shaped["ttlMs"], shaped["cacheScope"])


def test_a_result_that_asks_for_input_keeps_its_type() -> None:
    """It is not complete, and must not say so."""
    result = InputRequiredResult(result_type="input_required", input_requests={"roots": InputRequest("roots/list")})
    expected = {
        "resultType": "input_required",
        "inputRequests": {"roots": {"method": "roots/list"}},
        "_meta": {SERVER_INFO_KEY: SERVER_SAID},
    }
    assert expected == on_the_wire(result, V2026_07_28)


def test_the_server_info_is_the_servers_whatever_a_handler_says() -> None:
    """A handler cannot speak as another server."""
    shaped = on_the_wire(EmptyResult(meta={SERVER_INFO_KEY: {"name": "someone else"}}), V2026_07_28)
    assert shaped["_meta"] == {SERVER_INFO_KEY: SERVER_SAID}
