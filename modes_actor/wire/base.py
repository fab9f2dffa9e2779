"""The base Structs of every protocol type: what a params object, a result and its `_meta` have in common.

Policy in one place: members are camelCase on the wire, members that are not set are left out, members we do not know
are ignored, and `null` means "not set".
"""

from typing import Any, ClassVar, Literal

from msgspec import UNSET, Raw, Struct, UnsetType, field

from modes_actor.wire.jsonrpc import RequestId

ProgressToken = str | int
Cursor = str
Meta = dict[str, Any]
JsonObject = dict[str, Any]
Role = Literal["user", "assistant"]
LogLevel = Literal["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]

PROTOCOL_VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
CLIENT_INFO_KEY = "io.modelcontextprotocol/clientInfo"
CLIENT_CAPABILITIES_KEY = "io.modelcontextprotocol/clientCapabilities"
LOG_LEVEL_KEY = "io.modelcontextprotocol/logLevel"
SERVER_INFO_KEY = "io.modelcontextprotocol/serverInfo"
SUBSCRIPTION_ID_KEY = "io.modelcontextprotocol/subscriptionId"


class WireStruct(Struct, rename="camel", omit_defaults=True, gc=False):
    """A JSON object of the protocol. `gc=False` is safe: protocol values are trees."""


class Icon(WireStruct):
    """A picture that a client may show next to a name."""

    src: str
    mime_type: str | None = None
    sizes: list[str] | None = None
    theme: Literal["light", "dark"] | None = None


class Implementation(WireStruct):
    """Who a client or a server says it is. Self-reported: good for display and logs, never for a decision."""

    name: str
    version: str
    title: str | None = None
    description: str | None = None
    website_url: str | None = None
    icons: list[Icon] | None = None


class Annotations(WireStruct):
    """Hints about who content is for and how much it matters."""

    audience: list[Role] | None = None
    priority: float | None = None
    last_modified: str | None = None


class RootsCapability(WireStruct):
    list_changed: bool | None = None


class SamplingCapability(WireStruct):
    context: JsonObject | None = None
    tools: JsonObject | None = None


class ElicitationCapability(WireStruct):
    form: JsonObject | None = None
    url: JsonObject | None = None


class ClientCapabilities(WireStruct):
    """What the client can do for the server."""

    experimental: dict[str, JsonObject] | None = None
    roots: RootsCapability | None = None
    sampling: SamplingCapability | None = None
    elicitation: ElicitationCapability | None = None
    extensions: dict[str, JsonObject] | None = None


class RequestMeta(WireStruct):
    """The part of a request's `_meta` that the protocol itself reads.

    `protocol_version` is what makes a request stateless. It stays raw because a version that is not even a string is an
    unsupported version, not a malformed request.
    """

    progress_token: ProgressToken | None = None
    protocol_version: Raw | UnsetType = field(default=UNSET, name=PROTOCOL_VERSION_KEY)
    client_info: Implementation | None = field(default=None, name=CLIENT_INFO_KEY)
    client_capabilities: ClientCapabilities | None = field(default=None, name=CLIENT_CAPABILITIES_KEY)
    log_level: LogLevel | None = field(default=None, name=LOG_LEVEL_KEY)


class Params(WireStruct, kw_only=True):
    """The params of a request or notification. `_meta` is read separately, before the method's own members."""


class PaginatedParams(Params):
    cursor: Cursor | None = None


class InputResponseParams(Params, kw_only=True):
    """Params of a request that may be sent again with the client's answers to what the server asked."""

    input_responses: dict[str, Raw] | None = None
    request_state: str | None = None


class NotificationMeta(WireStruct):
    subscription_id: RequestId | None = field(default=None, name=SUBSCRIPTION_ID_KEY)


class NotificationParams(WireStruct, kw_only=True):
    meta: NotificationMeta | None = field(default=None, name="_meta")


class Result(WireStruct, kw_only=True):
    """What a handler returns. `result_type` and the server's part of `_meta` are filled in by `shape` for the era."""

    cacheable: ClassVar[bool] = False
    lists_tools: ClassVar[bool] = False
    has_content: ClassVar[bool] = False

    meta: Meta | None = field(default=None, name="_meta")
    result_type: str | None = None


class KeptResult(Result):
    """A result that is given again and again. It is shaped and encoded once for each version, so it must not change."""

    result: Result
    encoded: dict[str, Raw] = field(default_factory=dict)


class EmptyResult(Result):
    """The request was done and there is nothing to say."""


class CacheableResult(Result, kw_only=True):
    """A result that a stateless client may keep: `fresh_for_ms` is what `ttlMs` becomes unless the handler sets it."""

    cacheable: ClassVar[bool] = True
    fresh_for_ms: ClassVar[int] = 0

    ttl_ms: int | None = None
    cache_scope: Literal["public", "private"] | None = None


class PaginatedResult(CacheableResult, kw_only=True):
    next_cursor: Cursor | None = None


EMPTY = EmptyResult()
