"""`resources/*`, and hearing of changes: `subscribe` in the handshake era, `subscriptions/listen` in the stateless."""

from modes_actor.actor.context import RequestContext
from modes_actor.actor.registry import Adding
from modes_actor.surface.offer import Offer, Soon
from modes_actor.surface.pagination import Pages
from modes_actor.wire.base import EMPTY, EmptyResult, PaginatedParams, Result
from modes_actor.wire.errors import ResourceNotFound
from modes_actor.wire.notifications import ListenParams
from modes_actor.wire.resources import (
    ListResourcesResult,
    ListResourceTemplatesResult,
    ReadResourceParams,
    ReadResourceResult,
    SubscribeParams,
    UnsubscribeParams,
)


def register(registry: Adding, offer: Offer) -> None:
    source = offer.resources

    resources = Pages(lambda listed, cursor: ListResourcesResult(listed, next_cursor=cursor), of="resources")
    templates = Pages(lambda listed, cursor: ListResourceTemplatesResult(listed, next_cursor=cursor), of="templates")

    def list_resources(params: PaginatedParams, context: RequestContext) -> Result:
        return resources.page(source.resources() if source else (), params.cursor)

    def list_templates(params: PaginatedParams, context: RequestContext) -> Result:
        return templates.page(source.templates() if source else (), params.cursor)

    def read(params: ReadResourceParams, context: RequestContext) -> Soon[ReadResourceResult]:
        if source is None:
            raise ResourceNotFound(params.uri)
        return source.read(params.uri, context)

    def subscribe(params: SubscribeParams, context: RequestContext) -> EmptyResult:
        """Also to what does not exist yet: a task or a mode that comes later is news, too."""
        offer.subscribing()
        context.shared.subscriptions.subscribe(params.uri)
        return EMPTY

    def listen(params: ListenParams, context: RequestContext) -> None:
        offer.subscribing()
        context.shared.subscriptions.listen(context.request_id, params.notifications)

    registry.add("resources/list", PaginatedParams, list_resources)
    registry.add("resources/templates/list", PaginatedParams, list_templates)
    registry.add("resources/read", ReadResourceParams, read)
    registry.add("resources/subscribe", SubscribeParams, subscribe)
    registry.add("resources/unsubscribe", UnsubscribeParams, unsubscribe)
    registry.add("subscriptions/listen", ListenParams, listen)


def unsubscribe(params: UnsubscribeParams, context: RequestContext) -> EmptyResult:
    context.shared.subscriptions.unsubscribe(params.uri)
    return EMPTY
