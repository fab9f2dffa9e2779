"""Who owes whom an answer: the server to the client, and, in the handshake era, the client to the server."""

import itertools
from typing import Final

from msgspec import Raw, Struct

from modes_actor.wire.jsonrpc import RequestId

ENTRY_COST: Final = 64
"""Bytes that even a request with a short id and nothing to keep is counted as."""
OWED_LIMIT: Final = 4096
"""Requests of a server that a client may leave unanswered, before the oldest is given up."""


class Owed(Struct, frozen=True, gc=False):
    """A request that the server has and has not answered."""

    method: str
    params: Raw | None = None
    """Kept where a successor must be told of them, if the server agrees."""
    is_stateless: bool = False
    """It names its version itself."""
    array: int | None = None
    """Of a number of requests that came in one JSON array, which are answered in one."""

    @property
    def opens(self) -> bool:
        """A conversation: it is a handshake, or a request of the stateless era."""
        return self.method == "initialize" or self.is_stateless


class Ledger:
    """The client's requests. An id that is used twice is owed two answers: it is the server that refuses the second."""

    def __init__(self, byte_limit: int) -> None:
        self._limit = byte_limit
        self._kept = 0
        self._owed: dict[RequestId, list[Owed]] = {}
        self._given_up: Owed | None = None
        """What should have opened a conversation, until the client gave it up; there was no answer since."""

    @property
    def is_full(self) -> bool:
        return self._kept >= self._limit

    def add(self, request_id: RequestId, owed: Owed) -> None:
        self._owed.setdefault(request_id, []).append(owed)
        self._kept += _cost(request_id, owed)

    def settle(self, request_id: RequestId, *, failed: bool = False) -> Owed | None:
        """An answer came. Of two requests with one id, it is the later one that is refused."""
        self._given_up = None
        return self._remove(request_id, -1 if failed else 0)

    def _remove(self, request_id: RequestId, index: int) -> Owed | None:
        entries = self._owed.get(request_id)
        if entries is None:
            return None
        owed = entries.pop(index)
        if not entries:
            del self._owed[request_id]
        self._kept -= _cost(request_id, owed)
        return owed

    def opening(self) -> Owed | None:
        """What opens a conversation, and may show that the server is dead: a handshake before anything else."""
        found = [each for entries in self._owed.values() for each in entries if each.opens]
        if self._given_up is not None:
            found.append(self._given_up)
        return min(found, key=lambda owed: owed.is_stateless, default=None)

    def cancel(self, request_id: RequestId) -> bool:
        """The client does not want to know any more. Returns whether the server has to be told."""
        entries = self._owed.get(request_id)
        if entries is None:
            return False
        if entries[0].method != "initialize":  # which cannot be cancelled, so it will be answered
            given_up = self._remove(request_id, 0)
            if given_up is not None and given_up.opens:
                self._given_up = given_up
        return True

    def clear(self) -> list[tuple[RequestId, Owed]]:
        """All that is owed, and from now on is not."""
        owed = [(request_id, each) for request_id, entries in self._owed.items() for each in entries]
        self._owed.clear()
        self._given_up = None
        self._kept = 0
        return owed


class Questions:
    """What servers ask the client. Two servers may use the same ids, and the client may answer late.

    So the ids of the first server are passed on as they are, and those of its successors are replaced by others.
    """

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._numbers = itertools.count(1)
        self._is_first = True
        self._originals: dict[RequestId, RequestId] = {}
        """By the ids that the client knows."""
        self._replaced: dict[RequestId, RequestId] = {}
        """The other way round."""

    def ask(self, original: RequestId) -> RequestId:
        """The id under which the client is asked."""
        if len(self._originals) >= OWED_LIMIT:
            self.answer(next(iter(self._originals)))
        asked = original if self._is_first else f"{self._prefix}{next(self._numbers)}"
        self._originals[asked] = original
        self._replaced[original] = asked
        return asked

    def answer(self, asked: RequestId) -> RequestId | None:
        """The id that the server knows; None if it is not waiting for this answer."""
        original = self._originals.pop(asked, None)
        if original is not None:
            self._replaced.pop(original, None)
        return original

    def withdraw(self, original: RequestId) -> RequestId | None:
        """The server does not want to know any more."""
        asked = self._replaced.pop(original, None)
        if asked is not None:
            self._originals.pop(asked, None)
        return asked

    def next_server(self) -> list[RequestId]:
        """The server has gone. Returns what it was waiting for, which nobody wants to know any more."""
        waiting = list(self._originals)
        self._originals.clear()
        self._replaced.clear()
        self._is_first = False
        return waiting


def _cost(request_id: RequestId, owed: Owed) -> int:
    id_size = len(request_id) if isinstance(request_id, str) else 0
    return ENTRY_COST + id_size + (0 if owed.params is None else len(bytes(owed.params)))
