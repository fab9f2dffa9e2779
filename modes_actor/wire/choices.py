"""Which values a member may have, for the client that sent another. Loaded when the first one does."""

import re
from collections.abc import Iterator
from functools import cache

from msgspec import inspect

_INDEX = re.compile(r"\[[^\]]*\]")


def choices_at(params: object, path: str) -> list[str | int]:
    """The values that the type allows at a path as msgspec writes it (`clientInfo.icons[1].theme`)."""
    return list(_choices(_type_info(params), path))


_type_info = cache(inspect.type_info)  # it takes longer than all else about a request


def _choices(type_: inspect.Type, path: str) -> Iterator[str | int]:
    if isinstance(type_, inspect.Metadata):
        yield from _choices(type_.type, path)
    elif isinstance(type_, inspect.UnionType):
        for alternative in type_.types:
            yield from _choices(alternative, path)
    elif not path:
        yield from _values(type_)
    elif index := _INDEX.match(path):
        if isinstance(type_, inspect.DictType | inspect.ListType):
            inner = type_.value_type if isinstance(type_, inspect.DictType) else type_.item_type
            yield from _choices(inner, path[index.end() :].removeprefix("."))
    elif isinstance(type_, inspect.StructType):
        if path == type_.tag_field and isinstance(type_.tag, str | int):
            yield type_.tag
        for field in type_.fields:  # a name may have dots in it, so the path cannot simply be split
            name = field.encode_name
            if path == name or path.startswith((f"{name}.", f"{name}[")):
                yield from _choices(field.type, path.removeprefix(name).removeprefix("."))


def _values(type_: inspect.Type) -> Iterator[str | int]:
    match type_:
        case inspect.LiteralType(values=values):
            yield from (value for value in values if isinstance(value, str | int))
        case inspect.EnumType(cls=cls):
            yield from (member.value for member in cls)
