"""How a conversation opens: `initialize` (handshake era), `server/discover` (stateless era), and what both declare."""

from modes_actor.wire.base import (
    CacheableResult,
    ClientCapabilities,
    Implementation,
    JsonObject,
    Params,
    Result,
    WireStruct,
)


class ListCapability(WireStruct):
    """A list of tools or prompts. `list_changed` is always said, because false is news too."""

    list_changed: bool | None = None


class ResourcesCapability(WireStruct):
    subscribe: bool | None = None
    list_changed: bool | None = None


class ServerCapabilities(WireStruct):
    tools: ListCapability | None = None
    resources: ResourcesCapability | None = None
    prompts: ListCapability | None = None
    completions: JsonObject | None = None
    logging: JsonObject | None = None
    experimental: dict[str, JsonObject] | None = None
    extensions: dict[str, JsonObject] | None = None


class InitializeParams(Params):
    protocol_version: str
    capabilities: ClientCapabilities
    client_info: Implementation


class InitializeResult(Result):
    protocol_version: str
    capabilities: ServerCapabilities
    server_info: Implementation
    instructions: str | None = None


class DiscoverParams(Params):
    pass


class DiscoverResult(CacheableResult):
    fresh_for_ms = 3_600_000  # fixed for the life of the process

    supported_versions: list[str]
    capabilities: ServerCapabilities
    instructions: str | None = None


class PingParams(Params):
    pass
