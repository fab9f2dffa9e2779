"""`modes-actor explain`: may a mode use a tool, and why (not)? Decided as a server decides it, with the same words."""

import json
import os
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from msgspec import Struct

from modes_actor.cli.command import Command, CommandFailed, Situation, UsageError
from modes_actor.cli.commands.modes import tell_of_mistakes
from modes_actor.cli.output import Output, Styled, Words
from modes_actor.cli.sessions_on_file import looking_at_sessions, the_session
from modes_actor.modes.decisions import Decision, DecisionContext, Denied, mcp_targets
from modes_actor.modes.restrictions import SOME_TOOL
from modes_actor.surface.deciding import decide_in, with_files
from modes_actor.wire.errors import ApplicationError


class Target(Struct, frozen=True, omit_defaults=True):
    """What an MCP tool was taken for. Without a tool it is about the server's resources."""

    server: str
    tool: str | None = None


class Explanation(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A decision. The members that `validate_tool_use` has, too, are the same here."""

    allowed: bool
    tool_name: str
    mode: str
    rule: str
    defined_in: str
    error: str | None = None
    why_not: str | None = None
    """The part of `error` that gives the reason."""
    restriction: str | None = None
    allowed_in: list[str] | None = None
    session_id: str | None = None
    files: list[str] = []
    """Those given as PATH, from the project's root."""
    taken_for: list[Target] = []


class ExplainArguments(Struct):
    tool: str
    paths: list[str] = []
    arguments: str | None = None
    mode: str | None = None
    session: str | None = None


class _Use(Struct, frozen=True):
    """What is asked about."""

    tool: str
    files: list[str]
    given: dict[str, Any]


def _explain(arguments: ExplainArguments, situation: Situation) -> int:
    house, output = situation.house, situation.output
    if not arguments.tool.strip():
        raise UsageError("TOOL must be the name of a tool, not empty")
    files = [_from_root(path, situation) for path in arguments.paths]
    use = _Use(arguments.tool, files, with_files(_decoded(arguments.arguments), files))
    mode, session_id = _asked_for(arguments, situation)
    context = DecisionContext(house.catalog, str(house.root), house.loaded.servers).for_batch()
    if mode is None:
        explained = [_explanation(decide_in(each.slug, use.tool, use.given, context), use) for each in house.catalog]
        if output.as_json:
            output.json(explained)
        else:
            _tell_all(explained, output)
            tell_of_mistakes(situation)
        return 0
    one = _explanation(decide_in(mode, use.tool, use.given, context), use, session_id)
    if output.as_json:
        output.json(one)
    else:
        _tell_one(one, output)
        tell_of_mistakes(situation)
    return 0 if one.allowed else 1


def _asked_for(arguments: ExplainArguments, situation: Situation) -> tuple[str | None, str | None]:
    """The mode, and the session if it is one's. Neither: every mode is asked for."""
    if arguments.session is not None:
        with looking_at_sessions(situation) as sessions:
            session = the_session(arguments.session, sessions)
        return session.task.mode, session.session_id
    if arguments.mode is None:
        return None, None
    try:
        return situation.house.mode(arguments.mode, parameter="--mode").slug, None
    except ApplicationError as unknown:
        raise CommandFailed(unknown.message) from unknown


def _decoded(text: str | None) -> dict[str, Any]:
    """A tool's own arguments. Raises `UsageError`."""
    if text is None:
        return {}
    try:
        value = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"--arguments is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise UsageError('--arguments must be a JSON object, like {"path": "README.md"}')
    return value


def _refuse(constant: str) -> None:
    raise ValueError(f"there is no {constant} in JSON")


def _from_root(path: str, situation: Situation) -> str:
    """The same file, named from the project's root: there the server looks, but a person is in some directory."""
    if os.path.isabs(path):
        return path
    root, here = os.path.realpath(situation.project_root), os.path.realpath(situation.working_directory)
    if here == root:
        return path
    spelt = f"{Path(os.path.relpath(here, root)).as_posix()}/{path}"
    whole = os.path.join(root, spelt)
    plain = os.path.normpath(whole)
    # To go up from a link is ambiguous, which is for the decision to say.
    if ".." not in spelt.split("/") or os.path.realpath(whole) != os.path.realpath(plain):
        return spelt
    return Path(os.path.relpath(plain, root)).as_posix()


def _explanation(decision: Decision, use: _Use, session_id: str | None = None) -> Explanation:
    denied = decision if isinstance(decision, Denied) else None
    return Explanation(
        allowed=denied is None,
        tool_name=use.tool,
        mode=decision.mode,
        rule=decision.rule.text,
        defined_in=str(decision.rule.origin),
        error=denied.message if denied else None,
        why_not=denied.why if denied else None,
        restriction=denied.restriction if denied else None,
        allowed_in=list(denied.allowed_in) if denied else None,
        session_id=session_id,
        files=use.files,
        taken_for=[Target(server, tool) for server, tool in mcp_targets(use.tool, use.given)],
    )


def _tell_one(told: Explanation, output: Output) -> None:
    if told.error is None:
        output.line(Styled("✓ Allowed", "good"))
        output.line(f"Tool '{told.tool_name}' may be used like this in '{told.mode}' mode.")
    else:
        output.line(Styled("✗ Not allowed", "bad"))
        output.line(told.error)
    facts: list[tuple[str, Words]] = [("rule", told.rule), ("defined in", told.defined_in)]
    if told.restriction is not None:
        facts.append(("not met", told.restriction))
    if told.allowed_in is not None:
        facts.append(("allowed in", ", ".join(told.allowed_in) or "no mode"))
    if told.session_id is not None:
        facts.append(("session", told.session_id))
    facts += [("file", file) for file in told.files]
    facts += [("taken for", _target(each)) for each in told.taken_for]
    output.line()
    output.facts(facts)


def _tell_all(told: list[Explanation], output: Output) -> None:
    columns = ["mode", "allowed", "rule", "why not"]
    rows: list[list[Words]] = [
        [
            Styled(each.mode, "name"),
            Styled("✓ yes", "good") if each.allowed else Styled("✗ no", "bad"),
            each.rule,
            each.why_not or "",
        ]
        for each in told
    ]
    output.table(columns, rows)
    for target in told[0].taken_for if told else []:
        output.line(Styled(f"Taken for {_target(target)}.", "dim"))


def _target(target: Target) -> str:
    if target.tool is None:
        return f"resources of server '{target.server}'"
    tool = "any tool" if target.tool == SOME_TOOL else f"tool '{target.tool}'"
    return f"{tool} of server '{target.server}'"


def _add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("tool", metavar="TOOL", help="as in write_to_file or mcp__github__create_issue")
    parser.add_argument(
        "paths", metavar="PATH", nargs="*", default=[], help="a file it is used on, from the working directory"
    )
    parser.add_argument(
        "--arguments",
        metavar="JSON",
        help="the tool's own arguments, as a client sends them: paths in them are from the project's root",
    )
    asked = parser.add_mutually_exclusive_group()
    asked.add_argument("--mode", metavar="SLUG", help="in this mode (default: in every mode)")
    asked.add_argument("--session", metavar="ID", help="in the mode of this session")


COMMAND = Command(
    description="May a mode use a tool on these files, and why (not)? With --mode or --session the exit code is 0 if\n"
    "it may and 1 if not; without them the answers of all modes are listed.",
    examples="  modes-actor explain write_to_file src/app.py\n"
    "  modes-actor explain --mode architect write_to_file README.md\n"
    "  modes-actor explain --mode docs mcp__github__create_issue\n"
    """  modes-actor explain use_mcp_tool --arguments '{"server_name": "github", "tool_name": "create_issue"}'""",
    arguments=ExplainArguments,
    add_arguments=_add_arguments,
    is_intermixed=True,
    run=_explain,
)
