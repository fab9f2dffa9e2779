"""When clients ask: as soon as they have thought about the last answer, or at times that no server can put off.

A closed loop is how people and models work. It flatters a slow server, because who waits asks nothing. In the open loop
requests arrive at fixed times; each latency counts from there, whether the request could be sent in time or not.
"""

import heapq
import random
from collections.abc import Iterator, Sequence
from typing import Final, Protocol

from load_client import VirtualClient

AT_ONCE: Final = 256
"""Requests of one write at the most: what they waited for one another must not become large."""

Due = tuple[float, VirtualClient]


class Pace(Protocol):
    def due(self, now: float) -> Iterator[Due]:
        """The turns that have come, and when they had."""

    def next_due(self) -> float: ...

    def answered(self, client: VirtualClient, now: float) -> None: ...

    def is_done(self, until: float) -> bool:
        """Whether everybody has asked who should have by then, whatever the time is now."""


class ClosedLoop:
    """`think`: seconds from an answer to the client's next request, on average."""

    def __init__(self, clients: Sequence[VirtualClient], *, begin: float, think: float, seed: int) -> None:
        self._random = random.Random(seed)
        self._mean = think
        # Clients do not begin all at once, unless they never think.
        self._turns = [(begin + self._random.random() * think, client.number, client) for client in clients]
        heapq.heapify(self._turns)

    def due(self, now: float) -> Iterator[Due]:
        for _ in range(AT_ONCE):
            if not self._turns or self._turns[0][0] > now:
                return
            _, _, client = heapq.heappop(self._turns)
            yield now, client

    def next_due(self) -> float:
        return self._turns[0][0] if self._turns else float("inf")

    def answered(self, client: VirtualClient, now: float) -> None:
        pause = self._random.expovariate(1 / self._mean) if self._mean else 0.0
        heapq.heappush(self._turns, (now + pause, client.number, client))

    def is_done(self, until: float) -> bool:
        return True  # nobody's time comes but by an answer


class OpenLoop:
    """`rate`: requests a second, of these clients in turn, evenly spaced."""

    def __init__(self, clients: Sequence[VirtualClient], *, begin: float, rate: float) -> None:
        self._clients, self._begin, self._rate = clients, begin, rate
        self._arrived = 0

    def due(self, now: float) -> Iterator[Due]:
        for _ in range(AT_ONCE):
            arrival = self.next_due()
            if arrival > now:
                return
            client = self._clients[self._arrived % len(self._clients)]
            self._arrived += 1
            yield arrival, client

    def next_due(self) -> float:
        return self._begin + self._arrived / self._rate

    def answered(self, client: VirtualClient, now: float) -> None:
        """Arrivals do not wait for answers."""

    def is_done(self, until: float) -> bool:
        return self.next_due() > until

    def overdue(self, now: float) -> int:
        """Requests that should have been sent by now and were not."""
        return max(0, int((now - self._begin) * self._rate) + 1 - self._arrived)
