#!/usr/bin/env python3
"""What a permission decision costs, beside a plain look-up in a dict, and whether it meets its targets.

    .venv/bin/python scripts/bench_decisions.py [--modes N] [--rounds N] [--json]

The catalog is warm: every kind of decision was made once before. All kinds are measured in turn, round by round, so
that a busy machine is busy for all of them; each figure is the best of its rounds.

Exit code: 0 if every target is met, 1 if one is missed.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Final

import msgspec
from msgspec import Struct

from modes_actor.modes.catalog import ModeCatalog, builtin_modes, merge
from modes_actor.modes.decisions import Allowed, DecisionContext, Denied, decide
from modes_actor.modes.model import Group, McpRestrictions, ModeConfig, Origin, ToolPattern

CALLS: Final = 2_000
GROUP_TARGET: Final = 5.0
FILE_TARGET: Final = 15.0

HERE: Final = Origin(".roomodes", 1)


class Kind(Struct, frozen=True):
    """A kind of decision, and what it may cost in microseconds; None: it is only shown."""

    name: str
    run: Callable[[], object]
    target: float | None = None


class Measured(Struct, frozen=True):
    name: str
    microseconds: float
    times_a_look_up: float
    target: float | None
    met: bool | None


def custom_modes(count: int) -> list[ModeConfig]:
    """As many as asked for, each with a pattern of its own, as the larger mode files in the wild have them."""
    return [
        ModeConfig(
            slug=f"custom-{number}",
            name=f"Custom {number}",
            source="project",
            origin=HERE,
            role_definition="You help.",
            groups=(Group("read", HERE), Group("edit", HERE, rf"^part-{number}/.*\.md$"), Group("mcp", HERE)),
            mcp_restrictions=McpRestrictions(HERE, disallowed_tools=(ToolPattern("*", "delete_*"),)),
        )
        for number in range(count)
    ]


def kinds(modes: int, root: str) -> list[Kind]:
    catalog = ModeCatalog(merge(builtin_modes(), [], custom_modes(modes)))
    code, architect, ask = (catalog.by_slug[slug] for slug in ("code", "architect", "ask"))
    fresh = DecisionContext(catalog, root)
    batch = fresh.for_batch()
    table = dict(catalog.by_slug)
    edit = {"path": "docs/plan.md", "content": "x"}
    call = {"server_name": "github", "tool_name": "get_issue"}

    def allowed(
        mode: ModeConfig, tool: str, arguments: dict[str, str], context: DecisionContext
    ) -> Callable[[], object]:
        assert isinstance(decide(mode, tool, arguments, context), Allowed)
        return lambda: decide(mode, tool, arguments, context)

    def denied(
        mode: ModeConfig, tool: str, arguments: dict[str, str], context: DecisionContext
    ) -> Callable[[], object]:
        assert isinstance(decide(mode, tool, arguments, context), Denied)
        return lambda: decide(mode, tool, arguments, context)

    return [
        Kind("a look-up in a dict", lambda: table["architect"]),
        Kind("a group, allowed", allowed(code, "execute_command", {"command": "ls"}, fresh), GROUP_TARGET),
        Kind("a tool that is always allowed", allowed(ask, "attempt_completion", {}, fresh), GROUP_TARGET),
        Kind("an MCP tool, allowed", allowed(code, "use_mcp_tool", call, fresh)),
        Kind("a file pattern, path known, allowed", allowed(architect, "write_to_file", edit, batch), FILE_TARGET),
        Kind("a file pattern, path resolved anew, allowed", allowed(architect, "write_to_file", edit, fresh)),
        Kind("a group, denied", denied(ask, "execute_command", {}, fresh), GROUP_TARGET),
        Kind("a file pattern, path known, denied", denied(architect, "write_to_file", {"path": "a.py"}, batch)),
    ]


def microseconds(run: Callable[[], object]) -> float:
    begin = time.perf_counter()
    for _ in range(CALLS):
        run()
    return (time.perf_counter() - begin) / CALLS * 1e6


def measure(modes: int, rounds: int) -> list[Measured]:
    with tempfile.TemporaryDirectory() as root:
        found = kinds(modes, root)
        best = {
            kind.name: min(column)
            for kind, column in zip(found, zip(*_rounds(found, rounds), strict=True), strict=True)
        }
    look_up = best[found[0].name]
    return [
        Measured(
            kind.name,
            best[kind.name],
            best[kind.name] / look_up,
            kind.target,
            None if kind.target is None else best[kind.name] < kind.target,
        )
        for kind in found
    ]


def _rounds(found: list[Kind], rounds: int) -> list[list[float]]:
    return [[microseconds(kind.run) for kind in found] for _ in range(rounds)]


def main() -> int:
    parser = argparse.ArgumentParser(description="Measure permission decisions beside a plain look-up.")
    parser.add_argument("--modes", type=int, default=10, help="custom modes besides the built-in ones (default: 10)")
    parser.add_argument("--rounds", type=int, default=5, help="how often each kind is measured (default: 5)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    if options.rounds < 1 or options.modes < 0:
        parser.error("--rounds must be at least 1, --modes at least 0")
    measured = measure(options.modes, options.rounds)
    if options.json:
        print(msgspec.json.format(msgspec.json.encode(measured)).decode())
    else:
        words = {True: "met", False: "MISSED", None: ""}
        print(f"{'decision':50} {'µs':>8} {'x look-up':>10}  target")
        for each in measured:
            target = "" if each.target is None else f"below {each.target:g} µs: {words[each.met]}"
            print(f"{each.name:50} {each.microseconds:8.2f} {each.times_a_look_up:10.0f}  {target}".rstrip())
    return 1 if any(each.met is False for each in measured) else 0


if __name__ == "__main__":
    sys.exit(main())
