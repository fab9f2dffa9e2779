"""`modes-actor health`: starts a server, and says whether and how fast it answers. For people and for supervisors."""

import argparse
import math
import signal
import sys
from argparse import ArgumentParser
from collections.abc import AsyncIterator, Sequence
from typing import Annotated, Final, Literal

import trio
from msgspec import Meta, Struct, structs

from modes_actor.cli.command import Command, Situation
from modes_actor.cli.output import Output, Styled
from modes_actor.cli.printable import printable
from modes_actor.config import Flags
from modes_actor.health import TIMEOUT, Era, Report, Step, probe

_ERAS: Final[dict[str, tuple[Era, ...]]] = {
    "handshake": ("handshake",),
    "stateless": ("stateless",),
    "both": ("handshake", "stateless"),
}
_SIGNALS: Final = tuple(
    signal.Signals[name] for name in ("SIGINT", "SIGTERM", "SIGHUP") if name in signal.Signals.__members__
)


class HealthArguments(Struct):
    era: Literal["handshake", "stateless", "both"] = "handshake"
    timeout: Annotated[float, Meta(gt=0)] = TIMEOUT
    command: list[str] = []


class Health(Struct, frozen=True):
    """The answer for programs."""

    healthy: bool
    command: list[str]
    probes: list[Report]


class _Interrupted(Struct):
    """By which signal, if one came."""

    number: int | None = None


def _health(arguments: HealthArguments, situation: Situation) -> int:
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
    with trio.open_signal_receiver(*_SIGNALS) as signals:
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
        "command", nargs="*", metavar="COMMAND", help="after `--`: what starts another server (default: this one)"
    )


COMMAND = Command(
    description="Start a server, open a conversation, ping it and list its tools, and say how long each step took.\n"
    "The exit code is 0 if all was answered, 1 if not, 2 for wrong usage. Nothing that was started runs on.",
    examples="""\
  modes-actor health
  modes-actor health --era both --timeout 2 --project-root ~/project
  modes-actor health -- npx some-other-server --stdio
  in a Dockerfile:       HEALTHCHECK CMD ["modes-actor", "health"]
  in a unit of systemd:  ExecStartPre=/usr/local/bin/modes-actor health --project-root /srv/project""",
    arguments=HealthArguments,
    add_arguments=_add_arguments,
    run=_health,
)
