"""Whether a server is well, and keeping it so: `check` looks once, `supervise` stays between a client and a server.

    .venv/bin/python scripts/health.py check [-- COMMAND]
    .venv/bin/python scripts/health.py supervise [--interval 30] [--timeout 5] [--failures 5] [--status FILE] -- COMMAND

These are `modes-actor health` and `modes-actor health supervise`, for a clone in which nothing is installed on a PATH;
each has a `--help`.
"""

import sys
from collections.abc import Sequence
from typing import Final

from modes_actor.cli import main

COMMANDS: Final = {"check": ("health",), "supervise": ("health", "supervise")}


def run(words: Sequence[str]) -> int:
    name, *rest = words or ["--help"]
    if name in ("-h", "--help"):
        print(__doc__)
        return 0
    if name not in COMMANDS:
        print(f"health.py: there is no `{name}`: say check or supervise", file=sys.stderr)
        return 2
    return main([*COMMANDS[name], *rest])


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
