"""Standing between a client and a server on the process's own stdin and stdout: `modes-actor health supervise`."""

import logging
import os
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import trio

from modes_actor.actor.stdio import Stdio, StdioUnusable, claim_stdio
from modes_actor.actor.writer import OutputFailed
from modes_actor.cli.command import CommandFailed, UsageError
from modes_actor.supervising import CannotStart, StatusFile, StatusUnusable, Supervisor, Timing, start_process
from modes_actor.supervising.child import Child

SIGNALS: Final = tuple(
    signal.Signals[name] for name in ("SIGINT", "SIGTERM", "SIGHUP") if name in signal.Signals.__members__
)


def supervise(
    command: Sequence[str],
    timing: Timing,
    status: Path | None,
    *,
    environment: Mapping[str, str],
    working_directory: Path,
) -> int:
    """Serve until the client ends it or a signal comes; return the server's exit code."""
    # What happens to the server, whoever started this wants to know, also if nothing else of the log.
    logging.getLogger("modes_actor.supervising").setLevel(min(logging.WARNING, logging.getLogger().level))
    try:
        file = None if status is None else StatusFile(status)
        stdio = claim_stdio()
    except (StatusUnusable, StdioUnusable) as error:
        raise UsageError(str(error)) from error

    async def start() -> Child:
        return await start_process(command, environment=environment, working_directory=working_directory)

    supervisor = Supervisor(start, timing) if file is None else Supervisor(start, timing, tell=file.write)
    try:
        return trio.run(_run, supervisor, stdio, file)
    except (CannotStart, OutputFailed) as error:
        raise CommandFailed(str(error)) from error
    finally:
        if file is not None:
            file.remove()


async def _run(supervisor: Supervisor, stdio: Stdio, status: StatusFile | None) -> int:
    failure: CannotStart | OutputFailed | None = None
    code = 0
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_stop_on_signal, supervisor, status)
        try:
            code = await supervisor.run(stdio.receive, stdio.send)
        except (CannotStart, OutputFailed) as error:
            failure = error  # raised below, where the nursery cannot wrap it
        nursery.cancel_scope.cancel()
    if failure is not None:
        raise failure
    return code


async def _stop_on_signal(supervisor: Supervisor, status: StatusFile | None) -> None:
    """The first signal ends politely, the second at once."""
    with trio.open_signal_receiver(*SIGNALS) as signals:
        async for number in signals:
            supervisor.stop(number)
            break
        async for second in signals:
            supervisor.kill()
            if status is not None:
                status.remove()
            os._exit(128 + second)
