"""The server, with a clock that somebody else sets: the machine's, and as many seconds more as the file says that
`FAULTS_CLOCK` names. Started as the server is; it is what a program does that embeds the server.
"""

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import trio

from modes_actor.actor.stdio import claim_stdio
from modes_actor.cli.arguments import parse
from modes_actor.cli.logs import set_up_logging
from modes_actor.config import load_config
from modes_actor.server import Server
from modes_actor.surface.house import House
from modes_actor.surface.modes_offer import modes_offer

VARIABLE = "FAULTS_CLOCK"


def clock(file: Path) -> Callable[[], float]:
    return lambda: time.time() + float(file.read_text())


def main() -> None:
    config = load_config(parse(sys.argv[1:]).flags, os.environ)
    stdio = claim_stdio()
    set_up_logging(config.logging)
    house = House(config, now=clock(Path(os.environ[VARIABLE])))
    trio.run(Server(modes_offer(config, house)).serve, stdio.receive, stdio.send)


if __name__ == "__main__":
    main()
