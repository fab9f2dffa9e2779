"""`resources/*`: lists, templates, reading and the handshake era's subscriptions."""

from msgspec import field

from modes_actor.wire.base import (
    Annotations,
    CacheableResult,
    Icon,
    InputResponseParams,
    Meta,
    PaginatedResult,
    Params,
    WireStruct,
)
from modes_actor.wire.content import ResourceContents


class Resource(WireStruct, kw_only=True):
    uri: str
    name: str
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None
    annotations: Annotations | None = None
    size: int | None = None
    icons: list[Icon] | None = None
    meta: Meta | None = field(default=None, name="_meta")


class ResourceTemplate(WireStruct, kw_only=True):
    uri_template: str
    name: str
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None
    annotations: Annotations | None = None
    icons: list[Icon] | None = None
    meta: Meta | None = field(default=None, name="_meta")


class ListResourcesResult(PaginatedResult):
    resources: list[Resource]


class ListResourceTemplatesResult(PaginatedResult):
    fresh_for_ms = 300_000

    resource_templates: list[ResourceTemplate]


class ReadResourceParams(InputResponseParams):
    uri: str


class ReadResourceResult(CacheableResult):
    contents: list[ResourceContents]


class SubscribeParams(Params):
    uri: str


class UnsubscribeParams(Params):
    uri: str
