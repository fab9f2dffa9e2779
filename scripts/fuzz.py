#!/usr/bin/env python3
"""Send the server whatever there is, and check that it does with each message what it must, and nothing else.

    .venv/bin/python scripts/fuzz.py [--what messages|modes|config|all] [--duration SECONDS | --messages N] [--seed N]
    .venv/bin/python scripts/fuzz.py --replay FILE [--server COMMAND]

Messages are made from the Structs of the protocol in all its versions, mutated as values and as bytes, and sent to one
server a core in pieces that are cut anywhere. What each must be answered with is worked out without the server's code.
Mode files and configurations are damaged and read in process. The first failure ends the run with a case file, made as
small as possible: --replay sends it again.

The same --seed, --messages and --processes do the same again. A run of a minute or more must also send a million
messages a minute (--no-rate: it need not; --require-rate: a shorter one must, too).

Exit code: 0 if every promise was kept, 1 if one was broken, 2 if the script could not do its work, or was interrupted
before anything was found.
"""

import argparse
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final, Literal, get_args

import msgspec
import trio
from charts import Bars, bar_chart
from fuzz_case import Case, bytes_of, played_again, rounds_of
from fuzz_files import replayed
from fuzz_ground import make_ground
from fuzz_report import Report, sections_of, summed
from fuzz_worker import RECURSION, Tally, Task, What, stopped_by_signals
from msgspec import Struct
from reporting import Options, Progress, common_options, emit, first_of, interruptible, options_parser

WORKER: Final = Path(__file__).with_name("fuzz_worker.py")
SEED_HELP: Final = (
    "the same messages and files, in the same order and cut alike; as many of them with the same --messages and "
    "--processes, else as many as there is time for (default: another each time)"
)
RATED_SECONDS: Final = 55.0
FILES_SHARE: Final = 0.15
"""Of the time, for mode files and for configurations, when everything is asked for."""


class FuzzError(Exception):
    """The run could not be made. The message is for a person."""


class Asked(Struct, frozen=True):
    what: Literal["messages", "modes", "config", "all"]
    messages: int | None
    processes: int
    server: tuple[str, ...]
    cases: str
    shrink_trials: int
    patience: float
    rated: bool


async def run_task(
    tasks: list[Task],
    tallies: dict[int, Tally],
    progress: Progress,
    done: float,
    total: float,
    *,
    program: Path = WORKER,
) -> None:
    """Every task in a process of its own, and how far each is. The first failure ends all but the one that has it."""
    began = trio.current_time()
    wanted = sum(task.count or 0 for task in tasks)
    scopes = {task.number: trio.CancelScope() for task in tasks}

    def tell(task: Task, tally: Tally) -> None:
        tallies[task.number] = tally
        count = sum(each.count for each in tallies.values())
        share = count / wanted if task.count is not None else (trio.current_time() - began) / total
        progress.show(done + min(share, 1.0) * total, f"{count:,} {task.what}")
        if tally.broken is not None:
            for number, scope in scopes.items():
                if number != task.number:
                    scope.cancel()

    async def work(task: Task) -> None:
        command = [sys.executable, str(program), msgspec.json.encode(task).decode()]
        # In a session of its own, so that Ctrl-C reaches nobody but us.
        process = await trio.lowlevel.open_process(command, stdout=subprocess.PIPE, start_new_session=True)
        try:
            assert process.stdout is not None
            rest = b""
            async for block in process.stdout:
                *lines, rest = (rest + bytes(block)).split(b"\n")
                for line in lines:
                    tell(task, msgspec.json.decode(line, type=Tally))
            code, last = await process.wait(), tallies.get(task.number, Tally())
            if (code or not last.done) and last.broken is None:
                raise FuzzError(f"a process that should fuzz {task.what} failed with code {code}")
        finally:
            process.terminate()
            with trio.CancelScope(shield=True):
                assert process.stdout is not None
                await process.stdout.aclose()  # it may be about to say more than the pipe takes
                await process.wait()

    async def work_alone(task: Task) -> None:
        with scopes[task.number]:
            await work(task)

    failure: BaseException | None = None
    try:
        async with trio.open_nursery() as nursery:
            for task in tasks:
                nursery.start_soon(work_alone, task)
    except* FuzzError as group:
        failure = first_of(group)
    if failure is not None:
        raise failure


async def run(asked: Asked, options: Options, directory: Path) -> Report:
    kinds: list[What] = list(get_args(What)) if asked.what == "all" else [asked.what]
    tallies: dict[What, dict[int, Tally]] = {}
    with stopped_by_signals() as stopped, Progress("fuzzing", options.duration) as progress:
        done = 0.0
        for what in kinds:
            is_shared = asked.what == "all"
            share = (1 - 2 * FILES_SHARE if what == "messages" else FILES_SHARE) if is_shared else 1.0
            count = asked.messages
            if count is not None and is_shared and what != "messages":
                count = max(1, count // 100)
            each = options.duration * share
            tasks = [
                Task(
                    what=what,
                    number=number,
                    seed=options.seed,
                    seconds=each,
                    count=None if count is None else -(-count // asked.processes),
                    directory=str(directory / f"{what}-{number}"),
                    server=asked.server,
                    cases=asked.cases,
                    shrink_trials=asked.shrink_trials,
                    patience=asked.patience,
                )
                for number in range(asked.processes)
            ]
            tallies[what] = {}
            await run_task(tasks, tallies[what], progress, done, each)
            done += each
            if any(tally.broken is not None for tally in tallies[what].values()):
                break
    found = {what: list(those.values()) for what, those in tallies.items()}
    report = summed(found, seed=options.seed, processes=asked.processes, is_rated=asked.rated)
    if stopped.cancelled_caught and not report.failures:
        raise KeyboardInterrupt
    return report


class Replayed(Struct, frozen=True):
    """What came of a case that was run again. If nothing did: what the case was."""

    fails: bool
    is_same: bool
    """It fails, and with the promise of the case."""
    promise: str
    found: str


async def replay(case: Case, server: tuple[str, ...], patience: float) -> Replayed:
    """Run a case again. `server`: another than the one of the case."""
    if case.what == "messages":
        broken = None
        with stopped_by_signals() as stopped, tempfile.TemporaryDirectory(prefix="fuzz-") as directory:
            ground = await make_ground(Path(directory), server or case.server)
            broken = await played_again(
                ground, rounds_of(case), case.plan, promise=case.expected, name="replay", patience=patience
            )
        if stopped.cancelled_caught:
            raise KeyboardInterrupt
        found = None if broken is None else (broken.promise, broken.found)
    else:
        wrong = replayed(case, bytes_of(case.after).decode(errors="surrogatepass"))
        found = None if wrong is None else (wrong.expected, wrong.found)
    promise, what = found or (case.expected, case.found)
    return Replayed(found is not None, found is not None and promise == case.expected, promise, what)


def told(case: Case, replayed: Replayed, *, as_json: bool) -> int:
    """Print it, and return the exit code."""
    if as_json:
        print(msgspec.json.encode(replayed).decode())
    elif replayed.is_same:
        print(f"It still fails: {replayed.promise}: {replayed.found}")
    elif replayed.fails:
        print(f"It fails in another way: {replayed.promise}: {replayed.found}")
        print(f"It was: {case.expected}: {case.found}")
    else:
        print(f"It does not fail any more. It was: {replayed.promise}: {replayed.found}")
    return 1 if replayed.fails else 0


def main() -> int:
    common = options_parser(__doc__ or "", duration=75)
    parser = argparse.ArgumentParser(
        parents=[common],
        description=common.description,
        formatter_class=common.formatter_class,
        allow_abbrev=False,
        conflict_handler="resolve",  # what a seed repeats is another thing in every script
    )
    parser.add_argument("--seed", type=int, metavar="N", help=SEED_HELP)
    parser.add_argument("--what", choices=("messages", "modes", "config", "all"), default="all")
    parser.add_argument("--messages", type=_some, metavar="N", help="so many, whatever time it takes")
    parser.add_argument("--processes", type=_some, default=os.cpu_count() or 1, metavar="N", help="default: one a core")
    parser.add_argument("--replay", type=Path, metavar="FILE", help="run a case again, with the server that it names")
    parser.add_argument("--cases", default=".", metavar="DIRECTORY", help="where to put the case of a failure")
    parser.add_argument(
        "--server", default="", metavar="COMMAND", help="another server than ours, or than that of the case"
    )
    parser.add_argument("--shrink", type=int, default=200, metavar="N", help="servers at most to make a failure small")
    parser.add_argument("--patience", type=float, default=30.0, metavar="SECONDS", help="that an answer may take")
    rate = parser.add_mutually_exclusive_group()
    rate.add_argument("--require-rate", action="store_true", help="hold a short run to the rate, too")
    rate.add_argument("--no-rate", action="store_true", help="hold no run to it")
    parsed = parser.parse_args()
    sys.setrecursionlimit(RECURSION)
    server = tuple(shlex.split(parsed.server))
    try:
        if parsed.replay is not None:
            case = msgspec.json.decode(parsed.replay.read_bytes(), type=Case)
            return told(case, trio.run(replay, case, server, parsed.patience), as_json=parsed.json)
        return _fuzz(parsed, server)
    except (FuzzError, OSError, msgspec.MsgspecError) as error:
        print(f"fuzz.py: {error}", file=sys.stderr)
        return 2


def _some(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be above 0")
    return number


def _fuzz(parsed: argparse.Namespace, server: tuple[str, ...]) -> int:
    options = common_options(parsed)
    if options.svg is not None and parsed.what not in ("messages", "all"):
        raise FuzzError(f"there is no chart of {parsed.what}: --svg draws messages")
    is_long = parsed.messages is None and options.duration >= RATED_SECONDS
    asked = Asked(
        what=parsed.what,
        messages=parsed.messages,
        processes=parsed.processes,
        server=server,
        cases=parsed.cases,
        shrink_trials=parsed.shrink,
        patience=parsed.patience,
        rated=parsed.require_rate or (is_long and not parsed.no_rate),
    )
    with tempfile.TemporaryDirectory(prefix="fuzz-", ignore_cleanup_errors=True) as directory:
        report = trio.run(run, asked, options, Path(directory))
    if options.svg is not None and not report.kinds:
        print(f"fuzz.py: no chart in {options.svg}: the run ended before there was anything to draw", file=sys.stderr)
    elif options.svg is not None:
        groups = [Bars("messages", report.kinds), Bars("answers", report.answers)]
        options.svg.write_text(bar_chart("What was sent, and what came back", groups), encoding="utf-8")
    return emit(report, sections_of(report), report.verdicts, as_json=options.json)


if __name__ == "__main__":
    sys.exit(interruptible(main))
