"""Break what a server stands on, and see whether it keeps its promises.

Every fault is brought upon real server processes, again and again, while clients work; each has its share of the time.
What servers acknowledge is kept in a ledger and asked for again. Faults that this system does not allow are skipped,
with the reason, and count neither as kept nor as broken.

  .venv/bin/python scripts/faults.py
  .venv/bin/python scripts/faults.py --only kill,full --duration 60 --seed 1
"""

import argparse
import math
import shlex
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Final

import faults_clients
import faults_clock
import faults_crash
import faults_damage
import faults_disk
import faults_project
import faults_store
import trio
from charts import Bars, bar_chart
from faults_scene import Fault, NotRecovered, Outcome, Scene, Skipped
from faults_server import Gone, NotAnswered, Refused
from msgspec import Struct
from reporting import (
    WORDS,
    Options,
    Progress,
    Section,
    Verdict,
    common_options,
    emit,
    first_of,
    interruptible,
    options_parser,
)

FAULTS: Final[dict[str, Fault]] = {
    fault.name: fault
    for room in (
        faults_crash,
        faults_store,
        faults_damage,
        faults_disk,
        faults_clients,
        faults_clock,
        faults_project,
    )
    for fault in room.FAULTS
}
SHOWN_EVERY: Final = 0.5
SERVER: Final = f"{shlex.quote(sys.executable)} -m modes_actor"


class Report(Struct):
    seed: int
    duration: float
    outcomes: list[Outcome]
    verdicts: list[Verdict]


def run(faults: Sequence[Fault], options: Options, server: str) -> Report:
    begin = time.monotonic()
    outcomes: list[Outcome] = []
    with tempfile.TemporaryDirectory(prefix="faults-") as directory, Progress("faults", len(faults)) as progress:
        for number, fault in enumerate(faults):
            random = Random(f"{options.seed} {fault.name}")
            scene = Scene(
                fault.name,
                Path(directory) / fault.name,
                shlex.split(server),
                random,
                options.duration / len(faults),
            )
            outcomes.append(trio.run(watched, fault, scene, progress, number))
    verdicts = [verdict for outcome in outcomes for verdict in outcome.verdicts]
    return Report(options.seed, round(time.monotonic() - begin, 1), outcomes, verdicts)


async def watched(fault: Fault, scene: Scene, progress: Progress, number: int) -> Outcome:
    """Bring the fault upon servers, and show how that goes. After a Ctrl-C, raises `KeyboardInterrupt`."""
    outcome: Outcome | None = None

    async def show() -> None:
        while True:
            progress.show(number + scene.share_over, f"{fault.name}, {scene.outcome.injected:,} times")
            await trio.sleep(SHOWN_EVERY)

    # As an exception, a Ctrl-C could come between any two lines, and another one while servers end.
    with trio.open_signal_receiver(signal.SIGINT) as signals:

        async def stop_when_told() -> None:
            async for _ in signals:
                watching.cancel_scope.cancel()

        async with trio.open_nursery() as watching:
            watching.start_soon(show)
            watching.start_soon(stop_when_told)
            outcome = await bring_upon(fault, scene)
            watching.cancel_scope.cancel()
    if outcome is None:
        raise KeyboardInterrupt
    return outcome


async def bring_upon(fault: Fault, scene: Scene) -> Outcome:
    try:
        await fault.inject(scene)
    except* Skipped as why:
        scene.outcome.skipped = said(why)
    except* NotRecovered as why:
        scene.judge("once it is over, changes are taken again", False, said(why))
    except* (Refused, Gone, NotAnswered) as why:
        scene.judge("what the fault does not touch is served", False, said(why))
    return scene.conclude()


def said(why: BaseException) -> str:
    error = first_of(why)
    return str(error) or type(error).__name__


def show(report: Report) -> list[Section]:
    header = (
        "fault",
        "verdict",
        "injected",
        "ways",
        "acknowledged",
        "lost",
        "answered twice",
        "recovery median",
        "max",
    )
    rows = [
        (
            outcome.fault,
            WORDS[outcome.kept],
            f"{outcome.injected:,}",
            outcome.tried,
            f"{outcome.acknowledged:,}",
            f"{outcome.lost:,}",
            f"{outcome.twice:,}",
            *(_seconds(each) for each in (outcome.median_recovery, outcome.longest_recovery)),
        )
        for outcome in report.outcomes
    ]
    return [Section(header, rows, left=2)]


def _seconds(seconds: float) -> str:
    return "-" if math.isnan(seconds) else f"{seconds * 1e3:,.0f} ms"


def chart(report: Report) -> str:
    recovered = [outcome for outcome in report.outcomes if outcome.recoveries]
    parts = {
        "recovery, median (ms)": {each.fault: each.median_recovery * 1e3 for each in recovered},
        "recovery, longest (ms)": {each.fault: each.longest_recovery * 1e3 for each in recovered},
        "acknowledged changes": {each.fault: float(each.acknowledged) for each in recovered},
    }
    return bar_chart("After a fault", [Bars(title, values) for title, values in parts.items() if values])


def chosen(text: str) -> list[Fault]:
    unknown = [name for name in text.split(",") if name not in FAULTS]
    if unknown:
        raise argparse.ArgumentTypeError(f"there is no fault {', '.join(unknown)}; there are {', '.join(FAULTS)}")
    return [FAULTS[name] for name in dict.fromkeys(text.split(","))]


def main() -> int:
    parser = options_parser(
        __doc__ or "",
        duration=240,
        repeats="the damage, the jumps and the changes that are drawn; what they hit, and how often, depends on timing",
    )
    parser.add_argument(
        "--only", type=chosen, default=list(FAULTS.values()), metavar="NAME[,NAME]", help="these faults, not all"
    )
    parser.add_argument("--list", action="store_true", help="say which faults there are")
    parser.add_argument("--server", default=SERVER, metavar="COMMAND", help="the server (default: this package's)")
    parsed = parser.parse_args()
    if parsed.list:
        width = max(map(len, FAULTS))
        print("\n".join(f"{fault.name:<{width}}  {fault.about}" for fault in FAULTS.values()))
        return 0
    options = common_options(parsed)
    if sys.platform != "linux":
        print("faults: works on Linux only, whose processes and file systems it breaks", file=sys.stderr)
        return 2
    faults_disk.why_no_mounts()  # before there is a thread or a process that would not know of our mounts
    try:
        report = run(parsed.only, options, parsed.server)
    except Exception:
        traceback.print_exc()
        print("faults: this script failed, not the server: nothing was found out", file=sys.stderr)
        return 2
    if options.svg is not None:
        options.svg.write_text(chart(report), encoding="utf-8")
    return emit(report, show(report), report.verdicts, as_json=options.json)


if __name__ == "__main__":
    sys.exit(interruptible(main))
