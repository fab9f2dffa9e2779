#!/usr/bin/env python3
"""Our server with its Trio tasks counted, which no look at a process from outside can tell.

    .venv/bin/python scripts/load_server.py DIRECTORY [--profile]

The number of tasks is always in DIRECTORY/PID, as eight bytes: a soak test reads it there. With --profile, where its
time went is in DIRECTORY/PID.profile when it has ended. Nothing else is different.
"""

import math
import mmap
import os
import struct
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

import trio
from load_profile import SUFFIX

NUMBER: Final = struct.Struct("<q")


class TaskCount(trio.abc.Instrument):
    def __init__(self, file: Path) -> None:
        file.write_bytes(NUMBER.pack(0))
        with file.open("r+b") as opened:
            self._shown = mmap.mmap(opened.fileno(), NUMBER.size)
        self._count = 0

    def task_spawned(self, task: trio.lowlevel.Task) -> None:
        self._add(1)

    def task_exited(self, task: trio.lowlevel.Task) -> None:
        self._add(-1)

    def _add(self, change: int) -> None:
        self._count += change
        NUMBER.pack_into(self._shown, 0, self._count)


def tasks_of(pid: int, directory: Path) -> float:
    """The number that a server keeps there; NaN if it keeps none."""
    try:
        number: int
        (number,) = NUMBER.unpack((directory / str(pid)).read_bytes())
    except OSError:
        return math.nan
    return number


def main() -> int:
    from modes_actor.cli import main as serve

    file = Path(sys.argv[1]) / str(os.getpid())
    run: Callable[..., Any] = partial(trio.run, instruments=[TaskCount(file)])
    if sys.argv[2:] == ["--profile"]:
        run = partial(profiled, run, file.with_suffix(SUFFIX))
    with patch.object(trio, "run", run):
        return serve([])


def profiled(run: Callable[..., Any], file: Path, *arguments: Any, **named: Any) -> Any:
    from cProfile import Profile

    profile = Profile()
    try:
        return profile.runcall(run, *arguments, **named)
    finally:
        profile.dump_stats(file)


if __name__ == "__main__":
    sys.exit(main())
