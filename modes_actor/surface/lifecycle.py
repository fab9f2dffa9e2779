"""How a client opens, in either era, and checks that we are alive."""

from modes_actor.actor.context import RequestContext
from modes_actor.actor.registry import Registry
from modes_actor.surface.capabilities import capabilities
from modes_actor.surface.offer import Offer
from modes_actor.wire.base import EMPTY, EmptyResult
from modes_actor.wire.lifecycle import (
    DiscoverParams,
    DiscoverResult,
    InitializeParams,
    InitializeResult,
    PingParams,
)
from modes_actor.wire.versions import STATELESS_VERSIONS, handshake_version


def register(registry: Registry, offer: Offer) -> None:
    declared = capabilities(offer)

    def initialize(params: InitializeParams, context: RequestContext) -> InitializeResult:
        """A second one starts over: some hosts keep the process and reconnect."""
        version = handshake_version(params.protocol_version)
        context.shared.connection.open(version, params.client_info, params.capabilities)
        context.shared.subscriptions.forget_handshake()
        return InitializeResult(version.name, declared, offer.info, offer.instructions)

    def discover(params: DiscoverParams, context: RequestContext) -> DiscoverResult:
        return DiscoverResult([version.name for version in STATELESS_VERSIONS], declared, offer.instructions)

    registry.add("initialize", InitializeParams, initialize)
    registry.add("server/discover", DiscoverParams, discover)
    registry.add("ping", PingParams, ping)


def ping(params: PingParams, context: RequestContext) -> EmptyResult:
    return EMPTY
