"""What a right answer looks like: the types of all results in both eras, the refusals, and the promises to hold.

Whatever is not right raises: `Wrong` if no server may answer so, `Refused` if it is an error that the client may have
asked for.
"""

import re
from collections.abc import Mapping
from functools import cache
from typing import Final, Generic, Literal, TypeVar, get_args, get_origin

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from modes_actor.wire.base import SERVER_INFO_KEY, CacheableResult, Result
from modes_actor.wire.content import ContentBlock, TextContent
from modes_actor.wire.jsonrpc import RequestId
from modes_actor.wire.tools import ToolError

T = TypeVar("T")
E = TypeVar("E")
R = TypeVar("R", bound=Result)

ONCE: Final = "every request is answered exactly once, a cancelled one at most once"
TYPED: Final = "every answer is of the type that its method, tool and era promise"
OWN: Final = "every answer is about the client's own sessions, as that client left them"
REFUSALS: Final = "errors come only where they were provoked, with the right code"
NEWS: Final = "changes are told to those who subscribed, and to nobody else"
ALIVE: Final = "servers say nothing but JSON-RPC, go on until they are left, and end with exit code 0"
PROMISES: Final = (ONCE, TYPED, OWN, REFUSALS, NEWS, ALIVE)

_SESSION_ID: Final = re.compile(rb"sess_[0-9a-f]{32}")


class Wrong(Exception):
    """An answer that breaks a promise."""

    def __init__(self, promise: str, what: str) -> None:
        super().__init__(what)
        self.promise, self.what = promise, what


class ErrorObject(Struct, gc=False):
    code: int
    message: str
    data: Raw | UnsetType = UNSET


class Message(Struct, gc=False):
    """Anything that a server says. `result` is decoded once its type is known."""

    jsonrpc: Literal["2.0"]
    id: RequestId | UnsetType | None = UNSET
    method: str | UnsetType = UNSET
    params: Raw | UnsetType = UNSET
    result: Raw | UnsetType = UNSET
    error: ErrorObject | UnsetType = UNSET


class ToolAnswer(Result, Generic[T], kw_only=True):
    """A tool's result; `structured_content` is what that tool tells."""

    content: list[ContentBlock]
    structured_content: T
    is_error: bool = False
    metadata: Raw | UnsetType = UNSET

    @property
    def text(self) -> str:
        return "".join(block.text for block in self.content if isinstance(block, TextContent))


class FailedTool(Struct):
    error: ToolError


class Refusal(Struct, frozen=True):
    """A kind of error. `name`: as the stateless era calls it inside a tool's result; the protocol's own have none."""

    name: str
    code: int
    phrase: str


MODE_NOT_FOUND: Final = Refusal("ModeNotFound", -32001, "Mode not found")
TASK_NOT_FOUND: Final = Refusal("TaskNotFound", -32002, "Task not found")
SESSION_EXPIRED: Final = Refusal("SessionExpired", -32003, "Session expired")
VALIDATION_ERROR: Final = Refusal("ValidationFailed", -32004, "Validation error")
TOOL_RESTRICTED: Final = Refusal("ToolRestricted", -32005, "Tool restriction error")
FILE_RESTRICTED: Final = Refusal("FileRestricted", -32006, "File restriction error")
METHOD_NOT_FOUND: Final = Refusal("", -32601, "Method not found")
INVALID_PARAMS: Final = Refusal("", -32602, "Invalid params")
UNKNOWN_TOOL: Final = Refusal("", -32602, "Unknown tool")
UNKNOWN_PROMPT: Final = Refusal("", -32602, "Unknown prompt")
BUSY: Final = Refusal("", -32603, "")
"""The store is busy or full, or so many are waiting: the same request may be sent again."""


class Refused(Exception):
    """A request was answered with an error."""

    def __init__(self, refusal: Refusal, message: str) -> None:
        super().__init__(f"{refusal.code} {message}")
        self.refusal = refusal


class Reading(Struct, frozen=True):
    """Reads answers of one era."""

    is_stateless: bool

    def result(self, message: Message, wanted: type[R]) -> R:
        """The result, if it is one. Raises `Refused` for an error."""
        if message.error is not UNSET:
            raise self._refused(message.error)
        assert message.result is not UNSET
        try:
            result: R = _decoder(wanted).decode(message.result)
        except msgspec.ValidationError as error:
            if get_origin(wanted) is ToolAnswer and (failed := self._failed_tool(message.result)) is not None:
                raise failed from None
            raise Wrong(TYPED, f"it is no {_name(wanted)}: {error}") from error
        self._check_era(result)
        if isinstance(result, ToolAnswer) and result.is_error:
            raise Wrong(TYPED, "it says isError, but has a result")
        return result

    def refusal(self, message: Message) -> Refused | None:
        """The error that a request was answered with; None if it was none."""
        if message.error is not UNSET:
            return self._refused(message.error)
        assert message.result is not UNSET
        return self._failed_tool(message.result)

    def expect(self, message: Message, refusal: Refusal) -> None:
        refused = self.refusal(message)
        if refused is None:
            raise Wrong(REFUSALS, f"an error was due: {refusal.code} {refusal.phrase}")
        if refused.refusal == refusal:
            return
        if refused.refusal in (BUSY, SESSION_EXPIRED):
            raise refused  # whether it may be, only the client knows
        raise Wrong(REFUSALS, f"another error was due: {refusal.code} {refusal.phrase}")

    def _check_era(self, result: Result) -> None:
        kept = (result.ttl_ms, result.cache_scope) if isinstance(result, CacheableResult) else None
        if self.is_stateless:
            if result.result_type != "complete" or SERVER_INFO_KEY not in (result.meta or {}):
                raise Wrong(TYPED, "a stateless result says its resultType, `complete`, and who the server is")
            if kept is not None and None in kept:
                raise Wrong(TYPED, "a stateless result of this kind says its ttlMs and cacheScope")
        elif result.result_type is not None or kept not in (None, (None, None)):
            raise Wrong(TYPED, "a result of the handshake era has no resultType, ttlMs or cacheScope")

    def _refused(self, error: ErrorObject) -> Refused:
        if error.code == BUSY.code and error.data is not UNSET and b"retryable" in bytes(error.data):
            return Refused(BUSY, error.message)
        for known in _KNOWN:
            code = -32602 if self.is_stateless and known.name else known.code
            if error.code == code and error.message.startswith(known.phrase):
                return Refused(known, error.message)
        return Refused(Refusal("", error.code, "unknown"), error.message)

    def _failed_tool(self, raw: Raw) -> Refused | None:
        try:
            result = _decoder(ToolAnswer[FailedTool]).decode(raw)
        except msgspec.ValidationError:
            return None
        if not self.is_stateless or not result.is_error:
            raise Wrong(TYPED, "a failure inside a result says isError, and is for the stateless era")
        self._check_era(result)
        error = result.structured_content.error
        for known in _KNOWN:
            if known.name == error.name and known.code == error.code and error.message.startswith(known.phrase):
                return Refused(known, error.message)
        return Refused(Refusal(error.name, error.code, "unknown"), error.message)


_KNOWN: Final = (
    MODE_NOT_FOUND,
    TASK_NOT_FOUND,
    SESSION_EXPIRED,
    VALIDATION_ERROR,
    TOOL_RESTRICTED,
    FILE_RESTRICTED,
    METHOD_NOT_FOUND,
    INVALID_PARAMS,
    UNKNOWN_TOOL,
    UNKNOWN_PROMPT,
)


class Repeated:
    """Answers that were found right before. One that is the same to the byte need not be read again."""

    def __init__(self) -> None:
        self._right: dict[str, bytes] = {}

    def is_known(self, question: str, answer: bytes) -> bool:
        return self._right.get(question) == answer

    def learn(self, question: str, answer: bytes) -> None:
        self._right[question] = answer


def same(promise: str, what: str, found: object, due: object) -> None:
    if found != due:
        raise Wrong(promise, f"{what} is {found!r}, due was {due!r}")


def only(items: list[E]) -> E:
    if len(items) != 1:
        raise Wrong(TYPED, f"there are {len(items)} of what there must be one")
    return items[0]


def session_ids_in(text: bytes) -> set[str]:
    return {found.decode() for found in _SESSION_ID.findall(text)}


def metadata_of(answer: ToolAnswer[T]) -> Mapping[str, object]:
    """The member `metadata`, which three of the tools have in both eras."""
    try:
        return {} if answer.metadata is UNSET else _metadata.decode(answer.metadata)
    except msgspec.ValidationError as error:
        raise Wrong(TYPED, f"`metadata` is no object: {error}") from error


_metadata: Final = msgspec.json.Decoder(dict[str, object])


def _name(wanted: type[R]) -> str:
    told = "".join(each.__name__ for each in get_args(wanted))
    return f"result that tells {told}" if told else wanted.__name__


@cache
def _decoder(wanted: type[T]) -> msgspec.json.Decoder[T]:
    return msgspec.json.Decoder(wanted)
