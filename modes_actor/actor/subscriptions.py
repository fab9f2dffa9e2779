"""Who hears of a change: events in, notifications out.

Promises: a handshake client hears of lists it was promised (`listChanged`) and of resources it subscribed to; a
stateless client hears only on a stream it opened, only of the kinds it asked for, and the acknowledgement first.
"""

from collections.abc import Collection
from typing import Final

from msgspec import UNSET, Struct

from modes_actor.actor.connection import Connection
from modes_actor.actor.outgoing import Outgoing
from modes_actor.wire.base import SUBSCRIPTION_ID_KEY, NotificationMeta, NotificationParams, Result
from modes_actor.wire.errors import Unavailable
from modes_actor.wire.jsonrpc import Notification, RequestId
from modes_actor.wire.lifecycle import ServerCapabilities
from modes_actor.wire.notifications import (
    LISTEN_ACKNOWLEDGED,
    PROMPTS_CHANGED,
    RESOURCE_UPDATED,
    RESOURCES_CHANGED,
    TOOLS_CHANGED,
    ListenAcknowledgedParams,
    ListenResult,
    ResourceUpdatedParams,
    SubscriptionFilter,
)

KEPT_LIMIT: Final = 1024 * 1024
"""Characters that all subscriptions together may make us keep: a client chooses their number and their length."""
KEPT_PER_ENTRY: Final = 64
"""What even an empty one costs."""

HANDSHAKE_CLIENT: Final = None
"""Stands for the one client of the handshake era among the ids of listeners."""


class ToolsChanged(Struct, frozen=True):
    pass


class PromptsChanged(Struct, frozen=True):
    pass


class ResourcesChanged(Struct, frozen=True):
    pass


class ResourceUpdated(Struct, frozen=True):
    uri: str


Event = ToolsChanged | PromptsChanged | ResourcesChanged | ResourceUpdated


class Subscriptions:
    def __init__(
        self, connection: Connection, outgoing: Outgoing, capabilities: ServerCapabilities, *, listener_limit: int
    ) -> None:
        self._connection = connection
        self._outgoing = outgoing
        self._promised = _promised(capabilities)
        self._listener_limit = listener_limit
        self.listeners: dict[RequestId, SubscriptionFilter] = {}
        self._subscribed: set[str] = set()
        self._kept = 0

    def subscribe(self, uri: str) -> None:
        if uri not in self._subscribed:
            self._keep(_cost([uri]))
            self._subscribed.add(uri)

    def unsubscribe(self, uri: str) -> None:
        if uri in self._subscribed:
            self._subscribed.remove(uri)
            self._kept -= _cost([uri])

    def forget_handshake(self) -> None:
        """A new `initialize` starts with no subscriptions."""
        self._kept -= _cost(self._subscribed)
        self._subscribed.clear()

    def listen(self, request_id: RequestId, wanted: SubscriptionFilter) -> None:
        """Open a stream and acknowledge it; its request is answered only when the server ends it."""
        if len(self.listeners) >= self._listener_limit:
            raise Unavailable(f"Too many subscriptions: {self._listener_limit} are open already")
        promised = self._promised
        granted = SubscriptionFilter(
            tools_list_changed=(wanted.tools_list_changed and promised.tools_list_changed) or None,
            prompts_list_changed=(wanted.prompts_list_changed and promised.prompts_list_changed) or None,
            resources_list_changed=(wanted.resources_list_changed and promised.resources_list_changed) or None,
            resource_subscriptions=wanted.resource_subscriptions
            if promised.resource_subscriptions is not None
            else None,
        )
        self._keep(_listener_cost(request_id, granted))
        self.listeners[request_id] = granted
        meta = NotificationMeta(request_id)
        self._outgoing.post(Notification(LISTEN_ACKNOWLEDGED, ListenAcknowledgedParams(granted, meta=meta)))

    def cancel(self, request_id: RequestId) -> None:
        """The client ended its stream; there is nothing more to say on it."""
        if granted := self.listeners.pop(request_id, None):
            self._kept -= _listener_cost(request_id, granted)

    def end_all(self) -> list[tuple[RequestId, Result]]:
        """The server is going: what to answer each open `subscriptions/listen` with."""
        ended: list[tuple[RequestId, Result]] = [
            (listener, ListenResult(meta={SUBSCRIPTION_ID_KEY: listener})) for listener in self.listeners
        ]
        for listener, _ in ended:
            self.cancel(listener)
        return ended

    def hearing(self, event: Event) -> list[RequestId | None]:
        """Who hears of the event: `HANDSHAKE_CLIENT`, or ids of listeners."""
        return [listener for listener in (HANDSHAKE_CLIENT, *self.listeners) if self._hears(listener, event)]

    def notification(self, event: Event, listener: RequestId | None) -> Notification | None:
        """The event as it is told to one of them; None if that one no longer listens."""
        if not self._hears(listener, event):
            return None
        return _notification(event, None if listener is HANDSHAKE_CLIENT else NotificationMeta(listener))

    def _hears(self, listener: RequestId | None, event: Event) -> bool:
        if listener is not HANDSHAKE_CLIENT:
            granted = self.listeners.get(listener)
            return granted is not None and _covers(granted, event)
        if self._connection.handshake is None:
            return False
        if isinstance(event, ResourceUpdated):
            return event.uri in self._subscribed
        return _covers(self._promised, event)

    def _keep(self, cost: int) -> None:
        if self._kept + cost > KEPT_LIMIT:
            raise Unavailable("Too many subscriptions: their URIs are too long to keep")
        self._kept += cost


def _cost(uris: Collection[str]) -> int:
    return sum(map(len, uris)) + KEPT_PER_ENTRY * len(uris)


def _listener_cost(request_id: RequestId, granted: SubscriptionFilter) -> int:
    return _cost(granted.resource_subscriptions or ()) + _cost([str(request_id)])


def _promised(capabilities: ServerCapabilities) -> SubscriptionFilter:
    """The most that anyone can be granted, by what the server declares."""
    resources = capabilities.resources
    return SubscriptionFilter(
        tools_list_changed=capabilities.tools is not None and capabilities.tools.list_changed,
        prompts_list_changed=capabilities.prompts is not None and capabilities.prompts.list_changed,
        resources_list_changed=resources is not None and resources.list_changed,
        resource_subscriptions=[] if resources is not None and resources.subscribe else None,
    )


def _covers(granted: SubscriptionFilter, event: Event) -> bool:
    match event:
        case ToolsChanged():
            return bool(granted.tools_list_changed)
        case PromptsChanged():
            return bool(granted.prompts_list_changed)
        case ResourcesChanged():
            return bool(granted.resources_list_changed)
        case ResourceUpdated(uri=uri):
            return uri in (granted.resource_subscriptions or ())


def _notification(event: Event, meta: NotificationMeta | None) -> Notification:
    match event:
        case ToolsChanged():
            method = TOOLS_CHANGED
        case PromptsChanged():
            method = PROMPTS_CHANGED
        case ResourcesChanged():
            method = RESOURCES_CHANGED
        case ResourceUpdated(uri=uri):
            return Notification(RESOURCE_UPDATED, ResourceUpdatedParams(uri, meta=meta))
    return Notification(method, UNSET if meta is None else NotificationParams(meta=meta))
