"""`resources/*`, and hearing of changes: `subscribe` in the handshake era, `subscriptions/listen` in the stateless."""

from modes_actor.actor.context import RequestContext
from modes_actor.actor.registry import Adding
from modes_actor.surface.offer import Offer, Soon
from modes_actor.surface.pagination import page
from modes_actor.wire.base import EMPTY, EmptyResult, PaginatedParams
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

    def list_resources(params: PaginatedParams, context: RequestContext) -> ListResourcesResult:
        listed, next_cursor = page(source.resources() if source else (), params.cursor, of="resources")
        return ListResourcesResult(listed, next_cursor=next_cursor)

    def list_templates(params: PaginatedParams, context: RequestContext) -> ListResourceTemplatesResult:
        listed, next_cursor = page(source.templates() if source else (), params.cursor, of="templates")
        return ListResourceTemplatesResult(listed, next_cursor=next_cursor)

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
