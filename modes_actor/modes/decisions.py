"""May this mode use this tool in this way? One function, and the words that explain its answer.

Promises: never raises; whatever cannot be decided is denied; a mode allows what its own rules *and* those of every mode
it extends allow; a denial names the rule, where it is written, and the modes that would allow it.
"""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Final

from msgspec import Struct, field

from modes_actor.modes.catalog import CompiledGroup, ModeCatalog, Rules
from modes_actor.modes.model import ModeConfig, Origin
from modes_actor.modes.paths import PathMemory, UnusablePath, files_named
from modes_actor.modes.qualified import name_readings
from modes_actor.modes.restrictions import SOME_TOOL, why_not
from modes_actor.modes.servers import McpServers
from modes_actor.modes.tools import FILE_GROUPS, group_of, tool_table
from modes_actor.modes.windows import is_open
from modes_actor.spelling import LONGEST, did_you_mean
from modes_actor.wire.errors import ErrorCode

log = logging.getLogger(__name__)

# Both are time of our own on the processor: a machine that is busy with something else must not turn a yes into a no.
SUGGESTION_SECONDS: Final = 0.05
"""How long a denial may look for modes that would allow: their patterns may be slow, too."""

PATTERN_SECONDS: Final = 0.05
"""What a pattern may take, for one file and for all the files of one use."""


class Rule(Struct, frozen=True):
    """What decided, in words, and where it is written."""

    text: str
    origin: Origin


class Allowed(Struct, frozen=True):
    mode: str
    tool: str
    rule: Rule


class Denied(Struct, frozen=True):
    """`message` is for a person or a model; `restriction` is the pattern or list that was not met, if there was one."""

    mode: str
    tool: str
    rule: Rule
    code: ErrorCode
    message: str
    why: str
    """The part of the message that gives the reason."""
    allowed_in: tuple[str, ...] = ()
    restriction: str | None = None


Decision = Allowed | Denied


def utc_now() -> datetime:
    return datetime.now(UTC)


class DecisionContext(Struct):
    """What a decision depends on besides the mode. `paths` is for one batch: see `for_batch`."""

    catalog: ModeCatalog
    project_root: str
    servers: McpServers = field(default_factory=McpServers)
    now: Callable[[], datetime] = utc_now
    paths: PathMemory | None = None

    def for_batch(self) -> "DecisionContext":
        """The same, remembering resolved paths until the batch is done."""
        return DecisionContext(self.catalog, self.project_root, self.servers, self.now, PathMemory(self.project_root))


class ToolUse(Struct, frozen=True):
    tool: str
    arguments: Mapping[str, Any] | None = None


def decide(mode: ModeConfig, tool: str, arguments: Mapping[str, Any] | None, context: DecisionContext) -> Decision:
    """Whether the mode may use the tool with these arguments. Without arguments: whether it may use it at all."""
    try:
        question = _question(tool, arguments, context)
        if isinstance(question, _Refusal):
            return _denied(mode, tool, question)
        known = context.catalog.memory(mode, question.group) if question.group is not None else None
        if known is not None and tool in known:
            remembered: Decision = known[tool]
            return remembered
        verdict = _judge(mode, question)
        if isinstance(verdict, Rule):
            decision: Decision = Allowed(mode.slug, tool, verdict)
        else:
            decision = _denied(mode, tool, verdict, _allowed_in(mode, question))
        if known is not None:
            known[tool] = decision
        return decision
    except Exception:
        # The last resort: whatever went wrong, the answer is no.
        log.exception("a decision in mode %s failed", mode.slug)
        return _denied(mode, f"{tool}", _UNDECIDED)


def decide_many(mode: ModeConfig, uses: Sequence[ToolUse], context: DecisionContext) -> list[Decision]:
    """The decisions of one batch. Paths are resolved once for all of it."""
    batch = context.for_batch()
    return [decide(mode, use.tool, use.arguments, batch) for use in uses]


def mcp_targets(tool: str, arguments: Mapping[str, Any]) -> list[tuple[str, str | None]]:
    """The servers and tools that a use of an MCP tool may reach, as it is decided; nothing if it is none.

    The tool is None where it is about a server's resources, and `SOME_TOOL` where it may be any.
    """
    if tool in _ALWAYS:
        return []
    if _GROUP_OF.get(tool) != "mcp":
        return [*(name_readings(tool) or ())]
    try:
        return _targets(tool, arguments)
    except _NoName:
        return []


_HOUSE: Final = Origin("built-in rule")


class _Refusal(Struct, frozen=True):
    why: str
    rule: Rule
    code: ErrorCode = ErrorCode.TOOL_RESTRICTION_ERROR
    restriction: str | None = None
    file: str | None = None


class _Question(Struct):
    """A tool use, taken apart once, to be held against one or many modes."""

    tool: str
    group: str | None
    """None: always allowed."""
    arguments: Mapping[str, Any]
    context: DecisionContext
    targets: list[tuple[str, str | None]] = []
    """Servers and tools that an MCP tool's name or arguments can mean."""
    files: list[str] | _Refusal | None = None
    moment: datetime | None = None

    def resolved_files(self) -> list[str] | _Refusal:
        """The project's files that the arguments name, or why they are refused whatever the mode."""
        if self.files is None:
            self.files = self._resolve()
        return self.files

    def now(self) -> datetime:
        if self.moment is None:
            self.moment = self.context.now()
        return self.moment

    def _resolve(self) -> list[str] | _Refusal:
        spelt = "what is named"
        try:
            memory = self.context.paths or PathMemory(self.context.project_root)
            resolved = []
            for spelt in files_named(self.tool, self.arguments):
                resolved.append(memory.resolve(spelt))
        except UnusablePath as unusable:
            rule = Rule("only files of the project may be edited", _HOUSE)
            return _Refusal(f"'{_short(spelt)}' {unusable}.", rule, ErrorCode.FILE_RESTRICTION_ERROR, file=spelt)
        return resolved


_TABLE = tool_table()
_GROUP_OF: Final = group_of()
_ALWAYS: Final = _TABLE.always | _TABLE.own
_ALWAYS_RULE: Final = Rule("allowed in every mode", _HOUSE)
_UNDECIDED: Final = _Refusal("What cannot be decided is denied; the log has the reason.", Rule("fail closed", _HOUSE))


def _question(tool: str, arguments: Mapping[str, Any] | None, context: DecisionContext) -> "_Question | _Refusal":
    if tool in _ALWAYS:
        return _Question(tool, None, {}, context)
    group = _GROUP_OF.get(tool)
    arguments = arguments if isinstance(arguments, Mapping) else {}
    if group == "mcp":
        try:
            return _Question(tool, group, arguments, context, _targets(tool, arguments))
        except _NoName:
            why = "A server or tool is named by something that is no plain name."
            return _Refusal(why, Rule("a name is text without blanks around it", _HOUSE))
    if group is not None:
        return _Question(_TABLE.aliases.get(tool, tool), group, arguments, context)
    readings = name_readings(tool)
    if readings:
        return _Question(tool, "mcp", arguments, context, list(readings))
    hint = _meant(tool[:LONGEST]) if readings is None else "a qualified name is `mcp__server__tool`"
    return _Refusal("The tool is unknown" + (f": {hint}" if hint else "."), Rule("no group has this tool", _HOUSE))


@lru_cache(maxsize=128)
def _meant(tool: str) -> str | None:
    """Comparing with every tool takes longer than a decision, and an agent asks for its own tools again and again."""
    return did_you_mean(tool, _GROUP_OF)


def _judge(mode: ModeConfig, question: _Question) -> Rule | _Refusal:
    """The rule that allows, or the refusal."""
    if question.group is None:
        return _ALWAYS_RULE
    lineage = question.context.catalog.lineage(mode)
    if lineage is None:
        rule = Rule(f"extends: {mode.extends}", mode.origin)
        return _Refusal(f"The mode extends '{mode.extends}', which cannot be followed.", rule)
    for rules in lineage:
        refusal = _judge_one(rules, question)
        if refusal is not None:
            return refusal
    group = lineage[0].groups[question.group].group
    return Rule(_group_text(group.name, group.file_regex), group.origin)


def _judge_one(rules: Rules, question: _Question) -> _Refusal | None:
    found = rules.groups.get(question.group or "")
    if found is None:
        enabled = ", ".join(rules.groups) or "none"
        return _Refusal(f"Tool group '{question.group}' is not enabled.", Rule(f"groups: {enabled}", rules.mode.origin))
    group = found.group
    if group.window is not None and not is_open(group.window, question.now()):
        rule = Rule(f"{group.name} only {group.window.text}", group.origin)
        return _Refusal(
            f"Tool group '{group.name}' is enabled only {group.window.text}.", rule, restriction=group.window.text
        )
    if found.pattern is not None and group.name not in FILE_GROUPS:
        rule = Rule(_group_text(group.name, found.pattern.text), group.origin)
        why = f"Tool group '{group.name}' is limited to some files, and its tools do not tell which they touch."
        return _Refusal(why, rule, restriction=found.pattern.text)
    if group.name == "mcp":
        return _judge_mcp(rules.mode, question)
    if group.name == "edit" or found.pattern is not None:
        return _judge_files(found, question)
    return None


def _judge_files(found: CompiledGroup, question: _Question) -> _Refusal | None:
    group, pattern = found.group, found.pattern
    files = question.resolved_files()
    if isinstance(files, _Refusal):
        return files
    if pattern is None:
        return None
    rule = Rule(_group_text(group.name, pattern.text), group.origin)

    def refusal(why: str, file: str | None = None) -> _Refusal:
        return _Refusal(why, rule, ErrorCode.FILE_RESTRICTION_ERROR, pattern.text, file)

    if not files:
        return refusal(f"It names no file, and only files matching '{pattern.text}' are allowed.")
    deadline = time.thread_time() + PATTERN_SECONDS
    for file in files:
        if not pattern.matches(file, within=PATTERN_SECONDS):
            described = f" ({group.description})" if group.description else ""
            if pattern.exhausted:
                return refusal(f"The pattern '{pattern.text}' takes too long to match, and so matches nothing.", file)
            return refusal(f"Only files matching '{pattern.text}' are allowed.{described}", file)
        if time.thread_time() > deadline:
            return refusal(f"Matching '{pattern.text}' against all its files takes too long.")
    return None


def _judge_mcp(mode: ModeConfig, question: _Question) -> _Refusal | None:
    restrictions, servers = mode.mcp_restrictions, question.context.servers
    origin = restrictions.origin if restrictions is not None else mode.origin
    if (
        restrictions is not None
        and restrictions.window is not None
        and not is_open(restrictions.window, question.now())
    ):
        text = restrictions.window.text
        return _Refusal(f"MCP servers may be used only {text}.", Rule(f"MCP only {text}", origin), restriction=text)
    if not question.targets and (restrictions is not None or not servers.all_enabled_by_default()):
        why = "It names no server, and not every server is allowed."
        return _Refusal(why, Rule("MCP restrictions", origin))
    for server, tool in question.targets:
        against = why_not(restrictions, server, tool, servers)
        if against is not None:
            what = (
                f"'{_short(tool)}' of server '{_short(server)}'" if tool is not None else f"server '{_short(server)}'"
            )
            return _Refusal(f"{what} may not be used: {against}.", Rule(against, origin), restriction=against)
    return None


class _NoName(Exception):
    """What stands in the place of a name is none, or one that others may read differently."""


def _targets(tool: str, arguments: Mapping[str, Any]) -> list[tuple[str, str | None]]:
    """Every server and tool the arguments name, however they spell it: each must be allowed."""
    servers = _names(arguments, ("server_name", "serverName", "server"))
    if tool == "access_mcp_resource":
        return [(server, None) for server in servers]
    tools = _names(arguments, ("tool_name", "toolName", "tool"))
    return [(server, name) for server in servers for name in (tools or [SOME_TOOL])]


def _names(arguments: Mapping[str, Any], keys: tuple[str, ...]) -> list[str]:
    found = [arguments[key] for key in keys if arguments.get(key) is not None]
    if any(not isinstance(name, str) or not name or name != name.strip() or not name.isprintable() for name in found):
        raise _NoName
    return found


def _allowed_in(mode: ModeConfig, question: _Question) -> tuple[str, ...]:
    """The other modes that would allow it, as far as they can be asked in the time there is."""
    catalog = question.context.catalog
    others = [other for other in catalog if other.slug != mode.slug]
    for other in others:
        catalog.lineage(other)  # compiled before the clock starts
    deadline = time.thread_time() + SUGGESTION_SECONDS
    allowing: list[str] = []
    for other in others:
        if time.thread_time() > deadline:
            break
        try:
            if isinstance(_judge(other, question), Rule):
                allowing.append(other.slug)
        except Exception:
            log.exception("whether mode %s would allow it cannot be decided", other.slug)
    return tuple(allowing)


def _denied(mode: ModeConfig, tool: str, refusal: _Refusal, allowed_in: tuple[str, ...] = ()) -> Denied:
    if refusal.file is not None:
        verb = "edit" if _GROUP_OF.get(tool) == "edit" else "use"
        opening = f"Cannot {verb} '{_short(refusal.file)}' in '{mode.slug}' mode."
    else:
        opening = f"Tool '{_short(tool)}' cannot be used in '{mode.slug}' mode."
    others = f" Modes that allow it: {', '.join(allowed_in[:10])}." if allowed_in else ""
    message = f"{opening} {refusal.why} [{refusal.rule.origin}]{others}"
    return Denied(mode.slug, tool, refusal.rule, refusal.code, message, refusal.why, allowed_in, refusal.restriction)


def _group_text(name: str, pattern: str | None) -> str:
    return f"group {name}" if pattern is None else f"group {name}, files matching {pattern}"


def _short(text: str) -> str:
    """A client's own words, as far as they fit into a sentence."""
    printable = "".join(char if char.isprintable() else "\ufffd" for char in text[:200])
    return printable if len(text) <= 200 else f"{printable}…"
