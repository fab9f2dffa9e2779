"""JSON Schemas of tools, from the Structs of their arguments and results. Written for a model to read."""

from typing import Any

import msgspec

from modes_actor.wire.base import JsonObject

_NULL = {"type": "null"}


def schema_of(struct: type[msgspec.Struct]) -> JsonObject:
    """The schema of a Struct: whole, without `$ref`; a member that may be null is shown as what it is otherwise."""
    (reference,), definitions = msgspec.json.schema_components([struct], ref_template="{name}")
    return _object(reference, definitions)


def _object(schema: JsonObject, definitions: dict[str, JsonObject]) -> JsonObject:
    if "$ref" in schema:
        rest = {key: value for key, value in schema.items() if key != "$ref"}
        return {**_object(definitions[schema["$ref"]], definitions), **rest}
    alternatives = [each for each in schema.get("anyOf", ()) if each != _NULL]
    if len(alternatives) == 1:
        rest = {key: value for key, value in schema.items() if key not in ("anyOf", "default")}
        return {**_object(alternatives[0], definitions), **rest}
    plain = {key: _value(value, definitions) for key, value in schema.items() if key not in ("title", "default")}
    if "enum" in plain:
        plain["enum"] = [value for value in plain["enum"] if value is not None]
        plain = {"type": "string", **plain}
    if plain.get("required") == []:
        del plain["required"]
    if "properties" in schema:
        plain["properties"] = {key: _object(value, definitions) for key, value in schema["properties"].items()}
    return plain


def _value(value: Any, definitions: dict[str, JsonObject]) -> Any:
    if isinstance(value, dict):
        return _object(value, definitions)
    return [_value(item, definitions) for item in value] if isinstance(value, list) else value
