"""`modes-actor health`: starts a server, and says whether and how fast it answers. For people and for supervisors.

With `--status`, it asks about a server that runs already; `modes-actor health supervise` is what keeps one running.
"""

import argparse
import math
import sys
import time
from argparse import ArgumentParser
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Annotated, Final, Literal

import trio
from msgspec import Meta, Struct, structs

from modes_actor.cli.command import Command, CommandFailed, Situation, UsageError
from modes_actor.cli.output import Output, Styled
from modes_actor.cli.printable import printable
from modes_actor.cli.supervise import SIGNALS, supervise
from modes_actor.config import Flags
from modes_actor.health import TIMEOUT, Era, Report, Step, probe
from modes_actor.supervising import Status, StatusUnusable, Timing, read_status

_ERAS: Final[dict[str, tuple[Era, ...]]] = {
    "handshake": ("handshake",),
    "stateless": ("stateless",),
    "both": ("handshake", "stateless"),
}


class HealthArguments(Struct):
    era: Literal["handshake", "stateless", "both"] = "handshake"
    timeout: Annotated[float, Meta(gt=0)] = TIMEOUT
    status: str | None = None
    command: list[str] = []


class SuperviseArguments(Timing, frozen=True, kw_only=True):
    status: str | None = None
    command: Sequence[str] = ()


class Health(Struct, frozen=True):
    """The answer for programs."""

    healthy: bool
    command: list[str]
    probes: list[Report]


class Supervised(Struct, frozen=True):
    """The answer for programs that ask about a server which runs under a supervisor."""

    healthy: bool
    status: Status
    trouble: str | None


class _Interrupted(Struct):
    """By which signal, if one came."""

    number: int | None = None


def _health(arguments: HealthArguments, situation: Situation) -> int:
    if arguments.status is not None:
        if arguments.command:
            raise UsageError("--status asks about a server that is running already: leave the command out")
        return _ask_supervisor(situation.working_directory / arguments.status, situation.output)
    interrupted = _Interrupted()
    command = arguments.command or own_command(situation.flags)
    reports = trio.run(_probe, command, arguments, situation, interrupted)
    if interrupted.number is not None:
        return 128 + interrupted.number
    output = situation.output
    healthy = all(report.healthy for report in reports)
    if output.as_json:
        output.json(Health(healthy, command, reports))
    else:
        for report in reports:
            _show(report, output, with_era=len(reports) > 1)
    return 0 if healthy else 1


def _ask_supervisor(path: Path, output: Output) -> int:
    try:
        status = read_status(path)
    except StatusUnusable as error:
        raise CommandFailed(str(error)) from error
    trouble = status.trouble(time.time())
    if output.as_json:
        output.json(Supervised(trouble is None, status, trouble))
    else:
        server = "no server" if status.pid is None else f"server {status.pid}"
        ping = "no ping yet" if status.last_ping_ms is None else f"last ping {status.last_ping_ms:.1f} ms"
        restarts = "1 restart" if status.restarts == 1 else f"{status.restarts} restarts"
        mark = Styled("✓", "good") if trouble is None else Styled("✗", "bad")
        output.line(mark, f" {status.state}  {server}, {restarts}, {ping}")
        for detail in filter(None, [trouble or status.detail]):
            output.note(detail)
    return 0 if trouble is None else 1


def _supervise(arguments: SuperviseArguments, situation: Situation) -> int:
    if situation.output.as_json:
        raise UsageError("supervise speaks MCP on stdout, so there is no --json; --status writes JSON to a file")
    return supervise(
        arguments.command or own_command(situation.flags),
        arguments,
        None if arguments.status is None else situation.working_directory / arguments.status,
        environment=situation.environment,
        working_directory=situation.working_directory,
    )


def own_command(flags: Flags) -> list[str]:
    """What starts a server of this installation with the same options."""
    # -P: what lies about in the working directory must not be taken for one of our modules.
    words = [sys.executable, "-P", "-m", "modes_actor"]
    for name, value in structs.asdict(flags).items():
        if value is not None:
            words += [f"--{name.replace('_', '-')}", value]
    return words


async def _probe(
    command: Sequence[str], arguments: HealthArguments, situation: Situation, interrupted: _Interrupted
) -> list[Report]:
    reports: list[Report] = []
    with trio.open_signal_receiver(*SIGNALS) as signals:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_cancel_on_signal, signals, nursery.cancel_scope, interrupted)
            for era in _ERAS[arguments.era]:
                report = await probe(
                    command,
                    era=era,
                    step_timeout=arguments.timeout,
                    environment=situation.environment,
                    working_directory=situation.working_directory,
                    falls_back=bool(arguments.command),
                )
                reports.append(report)
            nursery.cancel_scope.cancel()
    return reports


async def _cancel_on_signal(signals: AsyncIterator[int], scope: trio.CancelScope, interrupted: _Interrupted) -> None:
    async for number in signals:
        interrupted.number = number
        scope.cancel()


def _show(report: Report, output: Output, *, with_era: bool) -> None:
    era = f"{report.era} " if with_era else ""
    for step in report.steps:
        mark = Styled("✓", "good") if step.error is None else Styled("✗", "bad")
        line = f" {era}{step.name:<5}  {_duration(step.seconds):>8}  {_details(step, report)}"
        output.line(mark, line.rstrip())
    if report.stderr:
        output.note("The server's last words on stderr:")
        for line in report.stderr:
            output.note(f"  {printable(line)}")


def _details(step: Step, report: Report) -> str:
    if step.error is not None:
        return step.error
    if step.name == "open" and report.server is not None:
        server = report.server
        why = "; it does not know server/discover" if report.fell_back else ""
        return f"{server.name} {server.version}, protocol {server.protocol_version}{why}"
    if step.name == "tools":
        return "1 tool" if report.tools == 1 else f"{report.tools} tools"
    return ""


def _duration(seconds: float) -> str:
    return f"{seconds * 1000:.1f} ms" if seconds < 1 else f"{seconds:.2f} s"


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < math.inf:
        raise argparse.ArgumentTypeError(f"must be a number of seconds above 0, not {text!r}")
    return seconds


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a number of 1 or more, not {text!r}")
    return int(text)


def _add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--timeout",
        type=_seconds,
        default=TIMEOUT,
        metavar="SECONDS",
        help=f"how long each step may take (default: {TIMEOUT:g})",
    )
    parser.add_argument(
        "--era",
        choices=list(_ERAS),
        default="handshake",
        help="how to open the conversation: with `initialize` (handshake, the default), with `server/discover` "
        "(stateless), or once each way",
    )
    parser.add_argument(
        "--status", metavar="FILE", help="start nothing, but ask about the server whose supervisor writes this file"
    )
    _add_command(parser)


def _add_supervise_arguments(parser: ArgumentParser) -> None:
    usual = Timing()
    seconds = (
        ("interval", "from one ping to the next"),
        ("timeout", "how long a ping may take"),
        ("backoff-first", "how long to wait before the first restart; each one that follows waits twice as long"),
        ("backoff-limit", "up to this long"),
        ("grace", "how long a server may take to end politely"),
    )
    for name, text in seconds:
        default = getattr(usual, name.replace("-", "_"))
        parser.add_argument(
            f"--{name}", type=_seconds, default=default, metavar="SECONDS", help=f"{text} (default: {default:g})"
        )
    parser.add_argument(
        "--failures",
        type=_count,
        default=usual.failures,
        metavar="N",
        help=f"how many pings in a row may not be answered before the server is replaced (default: {usual.failures})",
    )
    parser.add_argument("--status", metavar="FILE", help="where to write how it is, for `modes-actor health --status`")
    _add_command(parser)


def _add_command(parser: ArgumentParser) -> None:
    parser.add_argument(
        "command", nargs="*", metavar="COMMAND", help="after `--`: what starts another server (default: this one)"
    )


_SUPERVISE = Command(
    description="Stand between a client and a server: ping the server, put another in its place when it is dead, and\n"
    "bring that one to where the last one was, so that the client notices as little as possible. What was under way\n"
    "is answered with a retryable error and never sent again. The exit code is the server's, once the client ends.",
    examples="""\
  modes-actor health supervise
  modes-actor health supervise --status /run/modes.json -- npx some-other-server --stdio
  in an editor:  {"command": "modes-actor", "args": ["health", "supervise", "--", "/path/to/server"]}""",
    arguments=SuperviseArguments,
    add_arguments=_add_supervise_arguments,
    run=_supervise,
)

COMMAND = Command(
    description="Start a server, open a conversation, ping it and list its tools, and say how long each step took.\n"
    "The exit code is 0 if all was answered, 1 if not, 2 for wrong usage. Nothing that was started runs on.",
    examples="""\
  modes-actor health
  modes-actor health --era both --timeout 2 --project-root ~/project
  modes-actor health -- npx some-other-server --stdio
  modes-actor health --status /run/modes.json
  in a Dockerfile:       HEALTHCHECK CMD ["modes-actor", "health"]
  in a unit of systemd:  ExecStartPre=/usr/local/bin/modes-actor health --project-root /srv/project""",
    arguments=HealthArguments,
    add_arguments=_add_arguments,
    run=_health,
    actions={"supervise": _SUPERVISE},
)
