"""A sample of answers against the official schemas, where those and a validator are at hand."""

import json
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import msgspec
from fuzz_expectation import Expectation
from fuzz_judge import SCHEMA, Broken

SCHEMAS: Final = Path(__file__).resolve().parents[2] / "shared" / "mcp-schema"

_RESULTS: Final = {
    "initialize": "InitializeResult",
    "server/discover": "DiscoverResult",
    "tools/list": "ListToolsResult",
    "tools/call": "CallToolResult",
    "resources/list": "ListResourcesResult",
    "resources/templates/list": "ListResourceTemplatesResult",
    "resources/read": "ReadResourceResult",
    "prompts/list": "ListPromptsResult",
    "prompts/get": "GetPromptResult",
    "completion/complete": "CompleteResult",
}


def schema_check() -> Callable[[Expectation, bytes], None] | None:
    """None where there is nothing to check with."""
    return _check if SCHEMAS.is_dir() and find_spec("jsonschema_rs") else None


def _check(expected: Expectation, answer: bytes) -> None:
    message = msgspec.json.decode(answer)
    definitions = ["JSONRPCMessage"]
    if "result" in message and expected.method in _RESULTS:
        definitions.append(_RESULTS[expected.method])
    for definition in definitions:
        value = message if definition == "JSONRPCMessage" else message["result"]
        wrong = next(iter(_validator(expected.version, definition).iter_errors(value)), None)
        if wrong is not None:
            what = f"{expected.method} ({expected.version}): no {definition}: {wrong.message}"
            raise Broken(SCHEMA, what[:600], expected.line)


@cache
def _validator(version: str, definition: str) -> Any:
    import jsonschema_rs

    schema = json.loads((SCHEMAS / f"{version}.json").read_text(encoding="utf-8"))
    key = "$defs" if "$defs" in schema else "definitions"
    return jsonschema_rs.validator_for({**schema, "allOf": [{"$ref": f"#/{key}/{definition}"}]})
