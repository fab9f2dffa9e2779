"""Which handler serves which method: params Struct in, result Struct out.

A handler is a plain function of the decoded params and the request's context. What it returns says how it is served:
a `Result` is the answer, at once and in order; an awaitable is work, run beside everything else; None means that the
answer comes later from whoever keeps the request (only `subscriptions/listen` does). What listens to a notification
returns work or None.
"""

from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Protocol, TypeVar

import msgspec
from msgspec import UNSET, Raw, UnsetType

from modes_actor.actor.context import RequestContext, Shared
from modes_actor.wire.base import Params, Result
from modes_actor.wire.codec import decode_params

P = TypeVar("P", bound=Params)
Outcome = Result | Awaitable[Result] | None
Listener = Callable[[Shared], Awaitable[None] | None]


class Handler:
    """One method: its decoder, made once, and the function that serves it."""

    __slots__ = ("_decoder", "_without_params", "call", "takes_input_responses")

    def __init__(self, params: type[P], call: Callable[[P, RequestContext], Outcome]) -> None:
        self._decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder(params)
        self._without_params: Any = None
        self.call: Callable[[Any, RequestContext], Outcome] = call
        self.takes_input_responses = "input_responses" in params.__struct_fields__

    def params(self, raw: Raw | UnsetType) -> Any:
        """The typed params; a request without any has them all at their defaults, made once."""
        if raw is not UNSET:
            return decode_params(self._decoder, raw)
        if self._without_params is None:
            self._without_params = decode_params(self._decoder, b"{}")
        return self._without_params


class Adding(Protocol):
    """Where a family adds its methods."""

    def add(self, method: str, params: type[P], call: Callable[[P, RequestContext], Outcome]) -> None: ...


class Registry:
    """A family of methods is loaded when the first of them is asked for, so that start-up pays for none."""

    def __init__(self) -> None:
        self._handlers: dict[str, Handler] = {}
        self._listeners: dict[str, Listener] = {}
        self._families: dict[str, Callable[[Registry], None]] = {}

    def add(self, method: str, params: type[P], call: Callable[[P, RequestContext], Outcome]) -> None:
        self._handlers[method] = Handler(params, call)

    def add_listener(self, notification: str, listener: Listener) -> None:
        self._listeners[notification] = listener

    def add_family(self, methods: Iterable[str], load: Callable[["Registry"], None]) -> None:
        """`load` will add these methods or notifications."""
        for method in methods:
            self._families[method] = load

    def find(self, method: str) -> Handler | None:
        if method not in self._handlers:
            self._load(method)
        return self._handlers.get(method)

    def listener(self, notification: str) -> Listener | None:
        if notification not in self._listeners:
            self._load(notification)
        return self._listeners.get(notification)

    def _load(self, method: str) -> None:
        """Load the family of a method, once: a client may well send a request's method as a notification, often."""
        load = self._families.get(method)
        if load is not None:
            self._families = {name: other for name, other in self._families.items() if other is not load}
            load(self)
