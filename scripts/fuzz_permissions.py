"""What the modes of the fuzzer's project allow, read off their files: an opinion of its own, without the server's code.

It knows groups, and the pattern of the edit group. On whatever else restricts (hours, MCP servers, paths that are not
plain) it has no opinion, and then both a yes and a no are good.
"""

import json
import re
import tomllib
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import msgspec
import yaml
from fuzz_expectation import FILE_RESTRICTED, RESULT, TOOL_ERROR, TOOL_RESTRICTED, Outcomes, Use
from msgspec import Struct

import modes_actor

MODES: Final = r"""
customModes:
  - slug: docs
    name: 📝 Docs
    roleDefinition: You write documentation.
    groups: [read, [edit, {fileRegex: '\.mdx?$', description: Markdown}], mcp]
    mcpRestrictions:
      allowedServers: [github, "docs-*"]
      disallowedTools: [mcp__github__delete_*]
  - slug: review
    name: Review
    extends: docs
    customInstructions: Write no code.
  - slug: night-shift
    name: 夜勤
    roleDefinition: You work at night.
    groups: [[read, {activeHours: "22:00-06:00", timezone: Europe/Berlin}], command]
"""

_HOUSE: Final = Path(modes_actor.__file__).parent / "modes"
_BUILTIN: Final = [
    tomllib.loads(path.read_text(encoding="utf-8")) for path in sorted((_HOUSE / "builtin").glob("*.toml"))
]
_MODES: Final = {mode["slug"]: mode for mode in (*_BUILTIN, *yaml.safe_load(MODES)["customModes"])}
_TOOLS: Final = json.loads((_HOUSE / "tools.json").read_bytes())
SLUGS: Final[frozenset[str]] = frozenset(_MODES)

_ALWAYS: Final = frozenset({*_TOOLS["always"], *_TOOLS["own"]})
_GROUP_OF: Final[dict[str, str]] = {tool: group for group, tools in _TOOLS["groups"].items() for tool in tools}
_GROUP_OF.update({alias: _GROUP_OF[tool] for alias, tool in _TOOLS["aliases"].items()})
_PLAIN_PATH = re.compile(r"(?:[a-z]{1,20}/){0,3}[a-z]{1,20}(?:\.[a-z]{1,5})?")
"""Whatever the machine, it leads to where it says, in the project."""

YES: Final = frozenset({RESULT})
NO_TOOL: Final = frozenset({TOOL_RESTRICTED})
NO_FILE: Final = frozenset({FILE_RESTRICTED})
EITHER: Final = YES | NO_TOOL | NO_FILE


class _Allowed(Struct):
    allowed: bool


class _Validated(Struct, rename="camel"):
    structured_content: _Allowed


_decode = msgspec.json.Decoder(_Validated).decode


def is_known(use: Use, outcome: int) -> bool:
    """Whether the outcome is a yes or a no, and only one of them can be right."""
    expected = _permitted(use)
    return _code(outcome) in EITHER and (expected == YES or RESULT not in expected)


def objection(use: Use, outcome: int, result: bytes) -> str | None:
    """Why an answer to `validate_tool_use` is wrong, if it is: an error, or a result."""
    expected = _permitted(use)
    if outcome == RESULT:
        try:
            allows = _decode(result).structured_content.allowed
        except msgspec.MsgspecError as error:
            return f"a result that says neither yes nor no: {error}"
        is_right = RESULT in expected if allows else expected != YES
    else:
        allows, code = False, _code(outcome)
        is_right = code not in EITHER or code in expected
    if is_right:
        return None
    what = f"{use.tool!r} with {use.path!r} {'allowed' if allows else 'denied'} in {' or '.join(sorted(use.modes))}"
    return f"{what}, not {' or '.join(sorted(_WORDS[code] for code in expected))}"


def _code(outcome: int) -> int:
    return outcome - TOOL_ERROR if outcome < TOOL_ERROR // 2 else outcome


def _permitted(use: Use) -> Outcomes:
    return frozenset[int]().union(*(verdicts(mode, use.tool, use.path, use.names_more) for mode in use.modes))


_WORDS: Final = {RESULT: "allowed", TOOL_RESTRICTED: "denied for its group", FILE_RESTRICTED: "denied for its path"}


@lru_cache(maxsize=20_000)
def verdicts(mode: str, tool: str, path: str | None, names_more: bool) -> Outcomes:
    """What may be said of a use. `names_more`: its arguments may name other files."""
    if tool in _ALWAYS:
        return YES
    groups = _groups(_MODES[mode])
    group = _GROUP_OF.get(tool, "mcp" if tool.startswith("mcp") else "")
    if group not in groups:
        return NO_TOOL
    if group == "mcp" or "activeHours" in groups[group]:
        return EITHER
    if group != "edit":
        return YES
    if path is not None and _PLAIN_PATH.fullmatch(path) is None:
        return EITHER
    pattern = groups[group].get("fileRegex")
    if pattern is not None and path is not None and re.search(pattern, path) is None:
        return NO_FILE
    if names_more:
        return EITHER
    return YES if pattern is None or path is not None else NO_FILE


def _groups(mode: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The names of a mode's groups, and their options. Who lists none has those of the mode that it extends."""
    if "groups" not in mode:
        return _groups(_MODES[mode["extends"]])
    return dict((each, {}) if isinstance(each, str) else each for each in mode["groups"])
