"""Families of methods load when they are first asked for, and never again."""

from modes_actor.actor.registry import Registry
from modes_actor.wire.base import EMPTY, Params


def counting_registry() -> tuple[Registry, list[str]]:
    """A registry of one family, and what is written down whenever that is loaded."""
    loaded: list[str] = []
    registry = Registry()

    def load(registry: Registry) -> None:
        loaded.append("family")
        registry.add("tools/list", Params, lambda params, context: EMPTY)
        registry.add("tools/call", Params, lambda params, context: EMPTY)

    registry.add_family(["tools/list", "tools/call"], load)
    return registry, loaded


def test_a_family_is_loaded_once_for_all_of_its_methods() -> None:
    """The second method finds what the first one brought."""
    registry, loaded = counting_registry()
    assert registry.find("tools/list") is not registry.find("tools/call")
    assert registry.find("tools/list") is registry.find("tools/list")
    assert loaded == ["family"]


def test_a_notification_with_the_name_of_a_request_loads_nothing_again() -> None:
    """Else a client could keep the server busy with lines that are not even answered."""
    registry, loaded = counting_registry()
    handler = registry.find("tools/list")
    assert [registry.listener("tools/list") for _ in range(3)] == [None, None, None]
    assert registry.find("tools/list") is handler
    assert loaded == ["family"]


def test_what_no_family_has_is_not_found() -> None:
    """Neither as a request nor as a notification."""
    registry, loaded = counting_registry()
    assert (registry.find("nope"), registry.listener("nope"), loaded) == (None, None, [])
