"""Serving on the process's own stdin and stdout: what `modes-actor` does without a subcommand."""

import logging
import os
import signal
import sys

import trio

from modes_actor.actor.limits import Limits
from modes_actor.actor.stdio import Stdio, claim_stdio
from modes_actor.actor.writer import OutputFailed
from modes_actor.cli.logs import set_up_logging
from modes_actor.cli.stderr import tell
from modes_actor.config import Config
from modes_actor.server import Server
from modes_actor.surface.modes_offer import modes_offer

log = logging.getLogger(__name__)

WAITING = """\
modes-actor is an MCP server: an editor starts it and talks to it. It is waiting for JSON-RPC on stdin now; Ctrl-D
leaves. What you may have been looking for:

  modes-actor install --list     add it to your editor
  modes-actor modes              which modes there are here
  modes-actor new SLUG           make one
  modes-actor doctor             is everything in order?
  modes-actor --help             all commands

The command to give to an editor by hand: {command}
"""


def serve(config: Config) -> None:
    """Serve until the client ends it or a signal comes.

    Raises `StdioUnusable` where there is nothing to serve on, `OutputFailed` where answers cannot be written.
    """
    stdio = claim_stdio()
    set_up_logging(config.logging)
    if stdio.is_terminal:
        tell(WAITING.format(command=_command()))
    trio.run(_serve, config, stdio)


async def _serve(config: Config, stdio: Stdio) -> None:
    server = Server(modes_offer(config), Limits(line_bytes=config.limits.max_line_bytes))
    failure: OutputFailed | None = None
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_stop_on_signal, server)
        try:
            await server.serve(stdio.receive, stdio.send)
        except OutputFailed as error:
            failure = error  # raised below, where the nursery cannot wrap it
        nursery.cancel_scope.cancel()
    if failure is not None:
        raise failure


async def _stop_on_signal(server: Server) -> None:
    """The first signal ends politely, the second at once."""
    with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async for _ in signals:
            server.stop()
            log.info("asked to stop: finishing what was received")
            break
        async for second in signals:
            os._exit(128 + second)


def _command() -> str:
    return f"{sys.executable} -m modes_actor"
