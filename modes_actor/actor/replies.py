"""Where an answer goes: straight out, or into the array that its request came in.

Both keep the promise that a request is answered once or, if it was cancelled, not at all.
"""

import logging
from typing import Protocol

from msgspec import UNSET

from modes_actor.actor.outgoing import Outgoing
from modes_actor.wire.codec import encode
from modes_actor.wire.errors import ErrorCode, Retryable
from modes_actor.wire.jsonrpc import Answer, ErrorObject, ErrorResponse

log = logging.getLogger(__name__)


class Replies(Protocol):
    def post(self, answer: Answer) -> None:
        """Raises what the encoder raises, and then nothing was posted."""

    def skip(self) -> None:
        """The request was cancelled: there will be no answer."""


class DirectReplies:
    """Each answer is a frame of its own."""

    def __init__(self, outgoing: Outgoing) -> None:
        self.post = outgoing.post

    def skip(self) -> None:
        pass


class ArrayReplies:
    """The answers to an array of requests, sent as one array when the last of them is there."""

    def __init__(self, outgoing: Outgoing, expected: int, *, byte_limit: int) -> None:
        self._outgoing = outgoing
        self._missing = expected
        self._byte_limit = byte_limit
        self._answers: list[bytes] = []
        self._bytes = 0

    def post(self, answer: Answer) -> None:
        encoded = encode(answer)
        if self._bytes + len(encoded) > self._byte_limit:
            # An array leaves in one piece, so its size has to be bounded here.
            why = f"The answers to this array are longer than {self._byte_limit:,} bytes: send this request by itself"
            error = ErrorObject(int(ErrorCode.INTERNAL_ERROR), why, Retryable())
            encoded = encode(ErrorResponse(answer.id if answer.id is not UNSET else None, error))
        self._answers.append(encoded)
        self._bytes += len(encoded)
        self.skip()

    def skip(self) -> None:
        self._missing -= 1
        if not self._missing and self._answers:
            self._outgoing.post_encoded(b"[" + b",".join(self._answers) + b"]")
