"""What the Structs of the protocol say: which methods there are, what fits their params, and examples of it.

Nothing here decodes with the server's decoders: `fits` reads the types, and is an opinion of its own.
"""

from collections.abc import Callable
from functools import cache
from random import Random
from typing import Any, Final

from msgspec import Struct, inspect

from modes_actor.config import Config
from modes_actor.surface.modes_offer import modes_offer
from modes_actor.wire.base import PaginatedParams, Params
from modes_actor.wire.completion import CompleteParams
from modes_actor.wire.lifecycle import DiscoverParams, InitializeParams, PingParams
from modes_actor.wire.notifications import (
    CANCELLED,
    INITIALIZED,
    PROGRESS,
    ROOTS_CHANGED,
    CancelledParams,
    ListenParams,
    ProgressParams,
    SetLevelParams,
)
from modes_actor.wire.prompts import GetPromptParams
from modes_actor.wire.resources import ReadResourceParams, SubscribeParams, UnsubscribeParams
from modes_actor.wire.tools import CallToolParams

METHODS: Final[dict[str, type[Params]]] = {
    "initialize": InitializeParams,
    "ping": PingParams,
    "server/discover": DiscoverParams,
    "logging/setLevel": SetLevelParams,
    "tools/list": PaginatedParams,
    "tools/call": CallToolParams,
    "resources/list": PaginatedParams,
    "resources/templates/list": PaginatedParams,
    "resources/read": ReadResourceParams,
    "resources/subscribe": SubscribeParams,
    "resources/unsubscribe": UnsubscribeParams,
    "subscriptions/listen": ListenParams,
    "prompts/list": PaginatedParams,
    "prompts/get": GetPromptParams,
    "completion/complete": CompleteParams,
}
TO_CLIENT: Final = frozenset({"roots/list", "sampling/createMessage", "elicitation/create"})
"""Known to versions, but never asked of a server."""
NOTIFICATIONS: Final[dict[str, type[Struct] | None]] = {
    INITIALIZED: None,
    ROOTS_CHANGED: None,
    PROGRESS: ProgressParams,
    CANCELLED: CancelledParams,
}


@cache
def tools() -> dict[str, type[Struct]]:
    """The tools on offer and the Structs of their arguments."""
    return {each.tool.name: each.arguments for each in modes_offer(Config()).tools()}


@cache
def type_of(struct: type[Struct]) -> inspect.Type:
    return inspect.type_info(struct)


class Absurd:
    """Stands for a number that no type can hold."""


class Repeated(dict[str, Any]):
    """An object with members that are there twice: the last ones are its own, `earlier` has the others."""

    earlier: list[tuple[str, Any]]


def fits_struct(value: object, struct: type[Struct]) -> bool:
    return fits(value, type_of(struct))


def fits(value: Any, type_: inspect.Type) -> bool:
    """Whether a JSON value, as the standard library reads it, is one of the type."""
    match type_:
        case inspect.StructType():
            return isinstance(value, dict) and _fits_members(value, type_)
        case inspect.UnionType(types=types):
            return any(fits(value, each) for each in types)
        case inspect.Metadata(type=inner):
            return fits(value, inner)
        case inspect.StrType():
            return isinstance(value, str)
        case inspect.BoolType():
            return isinstance(value, bool)
        case inspect.IntType():
            return isinstance(value, int) and not isinstance(value, bool)
        case inspect.FloatType():
            return isinstance(value, int | float) and not isinstance(value, bool)
        case inspect.NoneType():
            return value is None
        case inspect.LiteralType(values=values):
            return any(value == each and type(value) is type(each) for each in values)
        case inspect.ListType(item_type=item):
            return isinstance(value, list) and all(fits(each, item) for each in value)
        case inspect.DictType(value_type=inner):
            return isinstance(value, dict) and all(fits(each, inner) for _, each in _members(value))
        case inspect.AnyType():
            return not _has_absurd(value)
        case inspect.RawType():
            return True
        case _:
            raise AssertionError(f"the protocol has a type that is not known here: {type_}")


def _fits_members(value: dict[str, Any], struct: inspect.StructType) -> bool:
    tags = [member for name, member in _members(value) if name == struct.tag_field]
    if struct.tag_field is not None and (not tags or any(tag != struct.tag for tag in tags)):
        return False
    fields = _fields_of(struct)
    if any(field.required and name not in value for name, field in fields.items()):
        return False
    return all(fits(member, fields[name].type) for name, member in _members(value) if name in fields)


_FIELDS: Final[dict[type, dict[str, inspect.Field]]] = {}


def _fields_of(struct: inspect.StructType) -> dict[str, inspect.Field]:
    if struct.cls not in _FIELDS:
        _FIELDS[struct.cls] = {field.encode_name: field for field in struct.fields}
    return _FIELDS[struct.cls]


def _members(value: dict[str, Any]) -> list[tuple[str, Any]]:
    earlier = value.earlier if isinstance(value, Repeated) else []
    return [*value.items(), *earlier]


def _has_absurd(value: object) -> bool:
    """Without recursion: whatever is looked at may be nested deeply."""
    rest = [value]
    while rest:
        match rest.pop():
            case Absurd():
                return True
            case list() as items:
                rest += items
            case dict() as members:
                rest += members.values()
    return False


def example(type_: inspect.Type, rng: Random, text: Callable[[str], str], name: str = "", depth: int = 0) -> Any:
    """A value that fits. `text` gives the strings, for the name of the member that they are for."""
    match type_:
        case inspect.StructType():
            made: dict[str, Any] = {} if type_.tag_field is None else {type_.tag_field: type_.tag}
            wanted = 0.55 if depth < 3 else 0.1
            for field in type_.fields:
                if field.required or rng.random() < wanted:
                    made[field.encode_name] = example(field.type, rng, text, field.encode_name, depth + 1)
            return made
        case inspect.UnionType(types=types):
            said = [each for each in types if not isinstance(each, inspect.NoneType)]
            return example(rng.choice(said if rng.random() < 0.9 else list(types)), rng, text, name, depth)
        case inspect.Metadata(type=inner):
            return example(inner, rng, text, name, depth)
        case inspect.StrType():
            return text(name)
        case inspect.BoolType():
            return rng.random() < 0.5
        case inspect.IntType():
            return rng.choice((0, 1, -1, 7, 2**31, 2**53, -(2**63)))
        case inspect.FloatType():
            return rng.choice((0, 0.5, 1, 1e-9, -2.5, 1e300))
        case inspect.NoneType():
            return None
        case inspect.LiteralType(values=values):
            return rng.choice(values)
        case inspect.ListType(item_type=item):
            return [example(item, rng, text, name, depth + 1) for _ in range(rng.randrange(3))]
        case inspect.DictType(value_type=inner):
            return {text("key"): example(inner, rng, text, "", depth + 1) for _ in range(rng.randrange(3))}
        case inspect.AnyType() | inspect.RawType():
            return rng.choice((None, True, 1, "x", [], {}, {"path": text("file_path")}, [text("file_path")]))
        case _:
            raise AssertionError(f"the protocol has a type that is not known here: {type_}")
