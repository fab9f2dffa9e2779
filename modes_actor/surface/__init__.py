"""What a client sees: one module per family of methods, each loaded when it is first asked for."""

from modes_actor.actor.registry import Registry
from modes_actor.surface.offer import Offer


def register(registry: Registry, offer: Offer) -> None:
    """Make the registry serve every method of the protocol from this offer."""

    def lifecycle(registry: Registry) -> None:
        from modes_actor.surface import lifecycle

        lifecycle.register(registry, offer)

    def logging(registry: Registry) -> None:
        from modes_actor.surface import logging

        logging.register(registry)

    def tools(registry: Registry) -> None:
        from modes_actor.surface import tools

        tools.register(registry, offer)

    def resources(registry: Registry) -> None:
        from modes_actor.surface import resources

        resources.register(registry, offer)

    def prompts(registry: Registry) -> None:
        from modes_actor.surface import prompts

        prompts.register(registry, offer)

    def completion(registry: Registry) -> None:
        from modes_actor.surface import completion

        completion.register(registry, offer)

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
