"""The requests whose handlers are waiting for something.

Promises: an id is here once or not at all; there are never more than `limit`; each can be cancelled, by its client or
by the end of the process, and the two can be told apart.
"""

import math

import trio

from modes_actor.wire.jsonrpc import RequestId


class Entry:
    """One request in flight. `scope` surrounds its handler."""

    __slots__ = ("cancelled_by_client", "scope")

    def __init__(self, deadline: float) -> None:
        self.scope = trio.CancelScope(deadline=deadline)
        self.cancelled_by_client = False


class InFlight:
    def __init__(self, limit: int) -> None:
        self._limit = limit
        self.entries: dict[RequestId, Entry] = {}
        self._deadline = math.inf
        self._waiting_for_place = trio.lowlevel.ParkingLot()

    @property
    def is_full(self) -> bool:
        return len(self.entries) >= self._limit

    async def place(self) -> None:
        """Return once there is a place for another request."""
        while self.is_full:
            await self._waiting_for_place.park()

    def enter(self, request_id: RequestId) -> Entry:
        """Take a place. The id must not be here already."""
        assert not self.is_full
        assert request_id not in self.entries
        entry = self.entries[request_id] = Entry(self._deadline)
        return entry

    def leave(self, request_id: RequestId) -> None:
        del self.entries[request_id]
        self._waiting_for_place.unpark()

    def cancel(self, request_id: RequestId) -> None:
        """The client no longer wants it. Unknown ids are nobody's fault: the answer may be on its way."""
        if entry := self.entries.get(request_id):
            entry.cancelled_by_client = True
            entry.scope.cancel()

    def end_by(self, deadline: float) -> None:
        """Whatever is in flight at that time, now or entered later, is cancelled then."""
        self._deadline = deadline
        for entry in self.entries.values():
            entry.scope.deadline = deadline
