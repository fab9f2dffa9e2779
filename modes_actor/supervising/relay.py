"""What becomes of each line between a client and the servers that follow one another. No I/O: lines in, lines out.

Promises: lines pass unchanged, but for what concerns only the supervisor or a server that has gone; a request is sent
to one server at most and answered once, by it or, when it has gone, with a retryable error, unless the client cancelled
it; the client's answer to a server that has gone does not reach another.
"""

import itertools
import secrets
from collections.abc import Callable
from typing import Final

import msgspec
from msgspec import UNSET, Raw, Struct, structs

from modes_actor.supervising.ledger import Ledger, Owed, Questions
from modes_actor.supervising.standing import Standing
from modes_actor.wire import codec
from modes_actor.wire.errors import ErrorCode, Retryable
from modes_actor.wire.jsonrpc import (
    ErrorObject,
    ErrorResponse,
    Incoming,
    IncomingArray,
    Malformed,
    Notification,
    Request,
    RequestId,
)
from modes_actor.wire.notifications import CANCELLED, INITIALIZED, CancelledParams

Bytes = bytes | bytearray | Raw
Judge = Callable[[Incoming | Malformed, Bytes, int | None], Bytes | None]
"""Given a message, how it is written, and the number of the array it came in: what passes in its place, if anything."""

OWED_BYTES: Final = 8 * 1024 * 1024
"""How much may be kept of requests that are not answered yet, before the client is not read any more."""
ARRAY_LIMIT: Final = 1024
"""Messages of one JSON array that is looked into."""

_items = msgspec.json.Decoder(list[Raw])
_cancelled = msgspec.json.Decoder(CancelledParams)
_members = msgspec.json.Decoder(dict[str, Raw])


class Heard(Struct):
    """What a block of a server's lines comes to."""

    lines: bytes
    """For the client; lines are separated by newlines, and there is none at the end."""
    answered: bool = False
    """There was an answer to a request, be it the client's or the supervisor's."""
    own: list[Incoming] = []
    """Answers to requests of the supervisor's own."""


class Relay:
    def __init__(self) -> None:
        # Nobody else's ids begin like this: a client does not get to see it.
        self._own_ids = f"modes-actor-supervisor-{secrets.token_hex(8)}-"
        self._numbers = itertools.count(1)
        self._arrays = itertools.count(1)
        self._ledger = Ledger(OWED_BYTES)
        self._questions = Questions(f"server-{secrets.token_hex(8)}-")
        self.standing = Standing()

    @property
    def is_full(self) -> bool:
        """Nothing more is to be taken from the client until some of it is answered."""
        return self._ledger.is_full

    def own_request(self, method: str, params: object = UNSET) -> tuple[RequestId, bytes]:
        """A request of the supervisor's, whose answer will be among `Heard.own`, and its id."""
        request_id = f"{self._own_ids}{next(self._numbers)}"
        return request_id, codec.encode(Request(request_id, method, params))

    def ping(self) -> tuple[str, object] | None:
        """What to ask a server that is to show that it is there; None while it need not be."""
        return self.standing.ping(self._ledger.opening())

    def from_client(self, block: Bytes) -> bytes:
        """What a server is to be sent of a block of the client's lines."""
        return self._judged(block, self._for_server)

    def from_server(self, block: Bytes) -> Heard:
        """What the client, and the supervisor, are to know of a block of a server's lines."""
        heard = Heard(b"", own=[])

        def judge(message: Incoming | Malformed, written: Bytes, array: int | None) -> Bytes | None:
            return self._for_client(message, written, heard)

        heard.lines = self._judged(block, judge)
        return heard

    def refuse(self, block: Bytes, why: str) -> bytes:
        """The answers to a block of the client's lines for which there is no server."""
        answers: list[bytes] = []
        for line in bytes(block).split(b"\n"):
            message = codec.decode_line(line)
            if isinstance(message, IncomingArray):
                items = self._read_array(message)
                if items is not None:
                    refusals = [self._refusal(item, why) for item in items]
                    answers += _as_array([answer for answer in refusals if answer is not None])
                    continue
                message = _ARRAY_REFUSED
            if message is not None and (answer := self._refusal(message, why)) is not None:
                answers.append(codec.encode(answer))
        return b"\n".join(answers)

    def refuse_long_line(self, limit: int) -> bytes:
        """The answer to a line that was dropped because it was too long to keep."""
        refused = Malformed(ErrorCode.INVALID_REQUEST, f"Invalid request: longer than {limit:,} bytes")
        return codec.encode(self._refusal(refused, ""))

    def server_gone(self, why: str) -> bytes:
        """What the client is told once the last word of a server was heard: the answers that this one still owed."""
        told: list[bytes] = []
        arrays: dict[int, list[ErrorResponse]] = {}
        for request_id, owed in self._ledger.clear():
            error = _retryable(request_id, why)
            if owed.array is None:
                told.append(codec.encode(error))
            else:
                arrays.setdefault(owed.array, []).append(error)
        for errors in arrays.values():
            told += _as_array(errors)
        for asked in self._questions.next_server():
            told.append(codec.encode(Notification(CANCELLED, CancelledParams(asked, "the server has gone"))))
        return b"\n".join(told)

    # Lines and arrays.

    def _judged(self, block: Bytes, judge: Judge) -> bytes:
        passing: list[Bytes] = []
        for line in bytes(block).split(b"\n"):
            message = codec.decode_line(line)
            if message is None:
                continue
            passed = (
                self._judged_array(message, judge) if isinstance(message, IncomingArray) else judge(message, line, None)
            )
            if passed is not None:
                passing.append(passed)
        return b"\n".join(passing)

    def _judged_array(self, array: IncomingArray, judge: Judge) -> Bytes | None:
        messages = self._read_array(array)
        if messages is None:
            return array.line  # the server will not take it, or takes more than anyone should send
        number = next(self._arrays)
        items = _items.decode(array.line)
        passed = [judge(message, item, number) for message, item in zip(messages, items, strict=True)]
        if all(after is before for after, before in zip(passed, items, strict=True)):
            return array.line
        rest = [bytes(item) for item in passed if item is not None]
        return b"[" + b",".join(rest) + b"]" if rest else None

    def _read_array(self, array: IncomingArray) -> list[Incoming | Malformed] | None:
        """What is in an array; None where arrays mean nothing, or for one that has too much or nothing in it."""
        version = self.standing.version
        if version is None or not version.arrays:
            return None
        return codec.read_array(array, at_most=ARRAY_LIMIT) or None

    # From the client to a server.

    def _for_server(self, message: Incoming | Malformed, written: Bytes, array: int | None) -> Bytes | None:
        request_id = message.id
        if isinstance(message, Malformed):
            self._expect(request_id, Owed("", array=array))  # the server says what is wrong with it
            return written
        if message.method is UNSET:
            if message.result is UNSET and message.error is UNSET:
                self._expect(request_id, Owed("", array=array))  # it is no answer either
                return written
            return self._answer_for_server(message, written)
        if request_id is UNSET:
            return self._notification_for_server(message, written)
        self._expect(request_id, self.standing.asked(message.method, message.params, array))
        return written

    def _expect(self, request_id: object, owed: Owed) -> None:
        if isinstance(request_id, str | int):
            self._ledger.add(request_id, owed)

    def _answer_for_server(self, message: Incoming, written: Bytes) -> Bytes | None:
        original = self._questions.answer(message.id) if isinstance(message.id, str | int) else None
        if original is None:
            return None  # it comes too late: who asked has gone, or does not want to know any more
        return written if original == message.id else codec.encode(structs.replace(message, id=original))

    def _notification_for_server(self, message: Incoming, written: Bytes) -> Bytes | None:
        if message.method == INITIALIZED:
            self.standing.initialized()
        elif message.method == CANCELLED and (cancelled := _read_cancelled(message)) is not None:
            # Of what a server that has gone had, another must not hear.
            return written if self._ledger.cancel(cancelled.request_id) else None
        return written

    # From a server to the client.

    def _for_client(self, message: Incoming | Malformed, written: Bytes, heard: Heard) -> Bytes | None:
        if isinstance(message, Malformed):
            return written
        if message.method is UNSET:
            return self._answer_for_client(message, written, heard)
        if message.id is UNSET:
            return self._withdrawn(message, written) if message.method == CANCELLED else written
        if message.id is None:
            return written
        asked = self._questions.ask(message.id)
        return written if asked == message.id else codec.encode(structs.replace(message, id=asked))

    def _answer_for_client(self, message: Incoming, written: Bytes, heard: Heard) -> Bytes | None:
        heard.answered = True
        if not isinstance(message.id, str | int):
            return written
        if isinstance(message.id, str) and message.id.startswith(self._own_ids):
            heard.own.append(message)
            return None
        owed = self._ledger.settle(message.id, failed=message.error is not UNSET)
        if owed is not None:
            self.standing.answered(owed, message)
        return written

    def _withdrawn(self, message: Incoming, written: Bytes) -> Bytes | None:
        """The server does not want an answer any more; the client knows its request by another id, perhaps."""
        cancelled = _read_cancelled(message)
        if cancelled is None:
            return written
        asked = self._questions.withdraw(cancelled.request_id)
        if asked is None or asked == cancelled.request_id:
            return written
        assert message.params is not UNSET
        members = {**_members.decode(message.params), "requestId": asked}
        return codec.encode(Notification(CANCELLED, members))

    # To a client that has no server.

    def _refusal(self, message: Incoming | Malformed, why: str) -> ErrorResponse | None:
        request_id = message.id
        if isinstance(message, Malformed):
            if not isinstance(request_id, str | int):
                version = self.standing.version
                request_id = None if version is None or version.null_ids else UNSET
            return ErrorResponse(request_id, ErrorObject(message.code, message.message))
        if message.method == INITIALIZED and request_id is UNSET:
            self.standing.initialized()
        is_request = message.method is not UNSET or (message.result is UNSET and message.error is UNSET)
        return _retryable(request_id, why) if is_request and isinstance(request_id, str | int) else None


_ARRAY_REFUSED: Final = Malformed(
    ErrorCode.INVALID_REQUEST, "Invalid request: this version of the protocol takes no arrays, or none of that length"
)


def _retryable(request_id: RequestId, why: str) -> ErrorResponse:
    return ErrorResponse(request_id, ErrorObject(ErrorCode.INTERNAL_ERROR, why, Retryable()))


def _as_array(answers: list[ErrorResponse]) -> list[bytes]:
    return [b"[" + b",".join(map(codec.encode, answers)) + b"]"] if answers else []


def _read_cancelled(message: Incoming) -> CancelledParams | None:
    """None for one that says nothing."""
    try:
        return None if message.params is UNSET else _cancelled.decode(message.params)
    except (ValueError, RecursionError):
        return None
