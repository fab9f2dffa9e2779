"""What a client sees: one module per family of methods, each loaded when it is first asked for."""

from functools import cache
from typing import TYPE_CHECKING

from modes_actor.actor.registry import Adding, Registry
from modes_actor.surface.offer import Offer
from modes_actor.wire.notifications import INITIALIZED, ROOTS_CHANGED

if TYPE_CHECKING:
    from modes_actor.surface.roots import ClientRoots


def register(registry: Registry, offer: Offer) -> None:
    """Make the registry serve every method of the protocol from this offer."""

    @cache
    def client_roots() -> "ClientRoots":
        from modes_actor.surface.roots import ClientRoots

        assert offer.take_roots is not None
        return ClientRoots(offer.take_roots)

    def dependent(registry: Registry) -> "Adding":
        return registry if offer.take_roots is None else client_roots().after(registry)

    def lifecycle(registry: Registry) -> None:
        from modes_actor.surface import lifecycle

        lifecycle.register(registry, offer)

    def logging(registry: Registry) -> None:
        from modes_actor.surface import logging

        logging.register(registry)

    def tools(registry: Registry) -> None:
        from modes_actor.surface import tools

        tools.register(dependent(registry), offer)

    def resources(registry: Registry) -> None:
        from modes_actor.surface import resources

        resources.register(dependent(registry), offer)

    def prompts(registry: Registry) -> None:
        from modes_actor.surface import prompts

        prompts.register(dependent(registry), offer)

    def completion(registry: Registry) -> None:
        from modes_actor.surface import completion

        completion.register(dependent(registry), offer)

    registry.add_family(["initialize", "ping", "server/discover"], lifecycle)
    registry.add_family(["logging/setLevel"], logging)
    registry.add_family(["tools/list", "tools/call"], tools)
    registry.add_family(
        [
            "resources/list",
            "resources/templates/list",
            "resources/read",
            "resources/subscribe",
            "resources/unsubscribe",
            "subscriptions/listen",
        ],
        resources,
    )
    registry.add_family(["prompts/list", "prompts/get"], prompts)
    registry.add_family(["completion/complete"], completion)
    if offer.take_roots is not None:
        registry.add_family([INITIALIZED, ROOTS_CHANGED], lambda registry: client_roots().register(registry))
