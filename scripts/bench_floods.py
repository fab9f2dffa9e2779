"""A client that writes and does not read: what the server takes in, what that costs, and whether it answers later."""

import math
import os
import select
from typing import Final

from bench_tools import PING, Child, Kind, trouble_with
from msgspec import Struct
from reporting import Verdict

FLOOD_BYTES: Final = 256 * 1024 * 1024
GROWTH_MB: Final = 32

FLOODS: Final = (
    PING,
    Kind("lists of tools and resources", (b"tools/list", b"resources/list")),
    Kind("pings with ids of 100 KB", (b"ping",), id_padding=100_000),
)


class Flood(Struct, frozen=True):
    """What came of writing one kind of request without reading. `trouble`: what was wrong with the answers, later."""

    requests: str
    taken_mb: float
    memory_growth_mb: float
    answers: int
    trouble: str | None

    def verdicts(self) -> list[Verdict]:
        promise = f"memory growth, unread {self.requests}: below {GROWTH_MB} MB"
        growth = self.memory_growth_mb
        found = "there is no /proc here" if math.isnan(growth) else f"{growth:.1f} MB, {self.taken_mb:.1f} MB taken in"
        return [
            Verdict(promise, found, None if math.isnan(growth) else growth < GROWTH_MB),
            Verdict(
                f"unread {self.requests}: all answered later, once each",
                self.trouble or f"{self.answers:,} of {self.answers:,}",
                self.trouble is None,
            ),
        ]


def flood(kind: Kind, patience: float) -> Flood:
    """Write until nothing is taken for `patience` seconds, then read. Memory growth is the largest before that."""
    block = max(1, 100_000 // (100 + kind.id_padding))
    taken = made = 0
    rest = memoryview(b"")
    with Child("modes-actor", ["-m", "modes_actor"]) as child:
        child.handshake()
        memory = [child.memory_mb()]
        os.set_blocking(child.stdin.fileno(), False)
        while not rest and taken < FLOOD_BYTES:
            requests = kind.lines(range(made, made := made + block))
            rest = _write_what_is_taken(child, memoryview(requests), patience)
            taken += len(requests) - len(rest)
            memory.append(child.memory_mb())
        os.set_blocking(child.stdin.fileno(), True)
        # The last line may be half written: complete it, so that every request has an answer.
        writer = child.start_writing(rest, last=True)
        answers = child.read_to_end()
        writer.join()
        child.finish()
    growth = max(memory[1:]) - memory[0]
    return Flood(kind.name, taken / 1e6, growth, answers.count(b"\n"), trouble_with(answers, kind, range(made)))


def _write_what_is_taken(child: Child, rest: memoryview, patience: float) -> memoryview:
    """Returns what the pipe did not take."""
    while rest and select.select([], [child.stdin], [], patience)[1]:
        try:
            rest = rest[os.write(child.stdin.fileno(), rest) :]
        except BlockingIOError:
            continue
        except BrokenPipeError:
            raise child.failure("ended while its client did not read") from None
    return rest
