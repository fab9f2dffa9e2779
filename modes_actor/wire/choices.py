"""Which values a member may have, for the client that sent another. Loaded when the first one does."""

import re
from collections.abc import Iterable

from msgspec import inspect

_STEP = re.compile(r"\[[^\]]*\]|[^.\[]+")


def choices_at(params: object, path: str) -> list[str | int]:
    """The values that the type allows at a path as msgspec writes it (`clientInfo.icons[1].theme`)."""
    types: list[inspect.Type] = [inspect.type_info(params)]
    for step in _STEP.findall(path):
        types = [inner for outer in _alternatives(types) for inner in _inside(outer, step)]
    return [value for type_ in _alternatives(types) for value in _values(type_)]


def _alternatives(types: Iterable[inspect.Type]) -> list[inspect.Type]:
    return [
        alternative
        for type_ in types
        for alternative in (type_.types if isinstance(type_, inspect.UnionType) else (type_,))
    ]


def _inside(type_: inspect.Type, step: str) -> list[inspect.Type]:
    match type_:
        case inspect.StructType(tag_field=tag_field, tag=str() | int() as tag) if tag_field == step:
            return [inspect.LiteralType((tag,))]
        case inspect.StructType(fields=fields):
            return [field.type for field in fields if field.encode_name == step]
        case inspect.DictType(value_type=inner) | inspect.ListType(item_type=inner):
            return [inner]
    return []


def _values(type_: inspect.Type) -> list[str | int]:
    match type_:
        case inspect.LiteralType(values=values):
            return [value for value in values if isinstance(value, str | int)]
        case inspect.EnumType(cls=cls):
            return [member.value for member in cls]
    return []
