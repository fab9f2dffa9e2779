"""How a use of a tool is put to a mode, for all who ask: the tool `validate_tool_use`, and the command line."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import structs

from modes_actor.modes.decisions import Decision, DecisionContext, Denied, decide
from modes_actor.modes.model import ModeConfig, Origin


def with_files(arguments: Mapping[str, Any] | None, files: Sequence[str]) -> dict[str, Any]:
    """A tool's own arguments, and files besides whatever else is named in them."""
    given = dict(arguments or {})
    return {**given, "paths": [given.get("paths"), *files]} if files else given


def decide_in(slug: str, tool: str, arguments: Mapping[str, Any], context: DecisionContext) -> Decision:
    """The decision in the mode of a session, which may be one that nobody defines any more."""
    mode = context.catalog.get(slug)
    decision = decide(mode or _gone(slug), tool, arguments, context)
    if mode is None and isinstance(decision, Denied):
        message = f"The mode '{slug}' of this session is no longer defined: switch to another. {decision.message}"
        return structs.replace(decision, message=message)
    return decision


def _gone(slug: str) -> ModeConfig:
    """What is left of a mode that a session is in and nobody defines any more: no group at all."""
    origin = Origin("a mode that is gone allows nothing")
    return ModeConfig(slug=slug, name=slug, source="project", origin=origin, role_definition="")
