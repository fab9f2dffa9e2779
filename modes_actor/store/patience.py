"""Trying again while somebody else is at it, a little later each time, and not forever."""

import time
from collections.abc import Callable
from random import random
from typing import Final, ParamSpec, TypeVar

from msgspec import Struct

from modes_actor.store.trouble import is_busy

T = TypeVar("T")
P = ParamSpec("P")

FIRST_PAUSE: Final = 0.001
LONGEST_PAUSE: Final = 0.05
"""Short, because a process that commits without pause leaves only short gaps to get in."""


class Pauses(Struct, frozen=True):
    """How time passes and how chance falls: what a test puts in its own hands."""

    sleep: Callable[[float], None] = time.sleep
    random: Callable[[], float] = random


class Patience(Struct, frozen=True):
    seconds: float
    pauses: Pauses = Pauses()

    def call(self, attempt: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Call until it does not meet a busy file; that error is raised once the patience is at its end."""
        waited = 0.0
        pause = FIRST_PAUSE
        while True:
            try:
                return attempt(*args, **kwargs)
            except Exception as error:
                if not is_busy(error) or waited >= self.seconds:
                    raise
            # Jitter, so that two who met once do not meet again and again.
            jittered = pause * (0.5 + self.pauses.random() / 2)
            self.pauses.sleep(jittered)
            waited += jittered
            pause = min(pause * 2, LONGEST_PAUSE)
