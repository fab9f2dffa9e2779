"""What the server declares it can do. One function, because it is both said to clients and held against us."""

from modes_actor.surface.offer import Offer
from modes_actor.wire.lifecycle import ListCapability, ResourcesCapability, ServerCapabilities


def capabilities(offer: Offer) -> ServerCapabilities:
    return ServerCapabilities(
        tools=ListCapability(list_changed=offer.lists_change),
        resources=ResourcesCapability(subscribe=True, list_changed=offer.lists_change),
        prompts=ListCapability(list_changed=offer.lists_change),
        completions={},
        logging={},
    )
