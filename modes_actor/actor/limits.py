"""The bounds that keep memory bounded, in one place."""

from msgspec import Struct


class Limits(Struct, frozen=True, kw_only=True):
    """Reaching one of the first four makes the next request wait; reaching one of the next two gets it refused."""

    line_bytes: int = 16 * 1024 * 1024
    """A longer line is dropped as it arrives and answered with an error."""
    queued_bytes: int = 8 * 1024 * 1024
    """Encoded answers that the client has not read yet."""
    queued_batches: int = 4
    """Reads that the processor has not come to yet."""
    in_flight: int = 1024
    """Requests whose handlers are waiting for something."""
    client_requests: int = 64
    """Requests of ours that the client has not answered yet."""
    listeners: int = 64
    """Open `subscriptions/listen` streams."""
    drain_seconds: float = 5.0
    """How long running work, or a client that does not read, may hold up the end."""
