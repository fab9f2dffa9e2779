"""Which handler serves which method: params Struct in, result Struct out.

A handler is a plain function of the decoded params and the request's context. What it returns says how it is served:
a `Result` is the answer, at once and in order; an awaitable is work, run beside everything else; None means that the
answer comes later from whoever keeps the request (only `subscriptions/listen` does).
"""

from collections.abc import Awaitable, Callable, Iterable
from typing import Any, TypeVar

import msgspec
from msgspec import Raw

from modes_actor.actor.context import RequestContext
from modes_actor.wire.base import Params, Result

P = TypeVar("P", bound=Params)
Outcome = Result | Awaitable[Result] | None


class Handler:
    """One method: its decoder, made once, and the function that serves it."""

    __slots__ = ("call", "decode", "takes_input_responses")

    def __init__(self, params: type[P], call: Callable[[P, RequestContext], Outcome]) -> None:
        self.decode: Callable[[Raw | bytes], Any] = msgspec.json.Decoder(params).decode
        self.call: Callable[[Any, RequestContext], Outcome] = call
        self.takes_input_responses = "input_responses" in params.__struct_fields__


class Registry:
    """A family of methods is loaded when the first of them is asked for, so that start-up pays for none."""

    def __init__(self) -> None:
        self._handlers: dict[str, Handler] = {}
        self._families: dict[str, Callable[[Registry], None]] = {}

    def add(self, method: str, params: type[P], call: Callable[[P, RequestContext], Outcome]) -> None:
        self._handlers[method] = Handler(params, call)

    def add_family(self, methods: Iterable[str], load: Callable[["Registry"], None]) -> None:
        """`load` will `add` these methods."""
        for method in methods:
            self._families[method] = load

    def find(self, method: str) -> Handler | None:
        handler = self._handlers.get(method)
        if handler is None and (load := self._families.get(method)) is not None:
            load(self)
            handler = self._handlers[method]
        return handler
