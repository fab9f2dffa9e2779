"""Everything that can go wrong with a request, as one exception tree, and its one translation to the wire.

A handler raises; the processor alone catches, and asks `error_object` what to send. The `message` is a whole sentence,
because most clients show a model nothing else; `data` is for programs.
"""

import re
from enum import IntEnum
from typing import Any, ClassVar

from msgspec import UNSET, Struct, ValidationError

from modes_actor.wire.base import ClientCapabilities
from modes_actor.wire.jsonrpc import ErrorObject
from modes_actor.wire.versions import STATELESS_VERSIONS, Era


def shortened(text: str, *, length: int = 500) -> str:
    """A client's own words, where an error repeats them: an answer must not grow with what it complains of."""
    return text if len(text) <= length else f"{text[:length]}…"


class ErrorCode(IntEnum):
    PARSE_ERROR = -32700
    INVALID_REQUEST = -32600
    METHOD_NOT_FOUND = -32601
    INVALID_PARAMS = -32602
    INTERNAL_ERROR = -32603
    # Ours, as the handshake era knows them.
    MODE_NOT_FOUND = -32001
    TASK_NOT_FOUND = -32002
    SESSION_EXPIRED = -32003
    VALIDATION_ERROR = -32004
    TOOL_RESTRICTION_ERROR = -32005
    FILE_RESTRICTION_ERROR = -32006
    # The handshake era's own word for a resource nobody has; the number is the protocol's, not ours.
    RESOURCE_NOT_FOUND = -32002
    # The stateless era's.
    MISSING_CLIENT_CAPABILITY = -32021
    UNSUPPORTED_PROTOCOL_VERSION = -32022


class Retryable(Struct):
    """`data` of an error that may succeed if the same request is simply sent again later."""

    retryable: bool = True


class ParamsProblem(Struct, omit_defaults=True):
    """`data` of an invalid-params error: which member is wrong, and what it should have been."""

    field: str
    problem: str
    expected: str | None = None
    got: str | None = None


class VersionsSupported(Struct):
    supported: list[str]
    requested: str


class CapabilitiesRequired(Struct, rename="camel"):
    required_capabilities: ClientCapabilities


class RequestError(Exception):
    """A request that cannot be served, with what to tell its sender."""

    code: ClassVar[ErrorCode]

    def __init__(self, message: str, *, data: Any = UNSET) -> None:
        super().__init__(message)
        self.message = message
        self.data = data

    def code_in(self, era: Era) -> ErrorCode:
        """The code for that era; the same in both unless the eras disagree."""
        return self.code


class ParseError(RequestError):
    code = ErrorCode.PARSE_ERROR


class InvalidRequest(RequestError):
    code = ErrorCode.INVALID_REQUEST


class MethodNotFound(RequestError):
    code = ErrorCode.METHOD_NOT_FOUND


class InvalidParams(RequestError):
    code = ErrorCode.INVALID_PARAMS


class InternalError(RequestError):
    code = ErrorCode.INTERNAL_ERROR


class Unavailable(InternalError):
    """Not now: the same request may work later."""

    def __init__(self, message: str) -> None:
        super().__init__(message, data=Retryable())


class UnsupportedVersion(RequestError):
    code = ErrorCode.UNSUPPORTED_PROTOCOL_VERSION

    def __init__(self, requested: str) -> None:
        supported = [version.name for version in STATELESS_VERSIONS]
        requested = shortened(requested)
        super().__init__(
            f"Unsupported protocol version: {requested}. Supported: {', '.join(supported)}",
            data=VersionsSupported(supported, requested),
        )


class MissingCapability(RequestError):
    """The client would have to do something it did not say it can do."""

    code = ErrorCode.MISSING_CLIENT_CAPABILITY

    def __init__(self, what: str, required: ClientCapabilities) -> None:
        super().__init__(
            f"This request needs {what}, which the client did not declare", data=CapabilitiesRequired(required)
        )

    def code_in(self, era: Era) -> ErrorCode:
        return self.code if era is Era.STATELESS else ErrorCode.INVALID_REQUEST


class ResourceNotFound(RequestError):
    code = ErrorCode.RESOURCE_NOT_FOUND

    def __init__(self, uri: str) -> None:
        uri = shortened(uri)
        super().__init__(f"Resource not found: {uri}", data={"uri": uri})

    def code_in(self, era: Era) -> ErrorCode:
        return self.code if era is Era.HANDSHAKE else ErrorCode.INVALID_PARAMS


class ApplicationError(RequestError):
    """Something about modes, tasks and what they allow. `phrase` opens the message, the sentence is also the data.

    In the stateless era a tool answers these as results (see `wire.tools.tool_error`), and other methods as invalid
    params: the numbers below are the handshake era's.
    """

    phrase: ClassVar[str]

    def __init__(self, sentence: str) -> None:
        message = sentence if sentence.startswith(self.phrase) else f"{self.phrase}: {sentence}"
        super().__init__(message, data=sentence)

    def code_in(self, era: Era) -> ErrorCode:
        return self.code if era is Era.HANDSHAKE else ErrorCode.INVALID_PARAMS


class ModeNotFound(ApplicationError):
    code = ErrorCode.MODE_NOT_FOUND
    phrase = "Mode not found"


class TaskNotFound(ApplicationError):
    code = ErrorCode.TASK_NOT_FOUND
    phrase = "Task not found"


class SessionExpired(ApplicationError):
    code = ErrorCode.SESSION_EXPIRED
    phrase = "Session expired"


class ValidationFailed(ApplicationError):
    code = ErrorCode.VALIDATION_ERROR
    phrase = "Validation error"


class ToolRestricted(ApplicationError):
    code = ErrorCode.TOOL_RESTRICTION_ERROR
    phrase = "Tool restriction error"


class FileRestricted(ApplicationError):
    code = ErrorCode.FILE_RESTRICTION_ERROR
    phrase = "File restriction error"


INTERNAL_ERROR = ErrorObject(int(ErrorCode.INTERNAL_ERROR), "Internal error: the server's log has the details")


def error_object(error: Exception, era: Era) -> ErrorObject:
    """What the client is told. Anything that is not a `RequestError` is a bug of ours: nothing of it is told."""
    if isinstance(error, RequestError):
        return ErrorObject(int(error.code_in(era)), error.message, error.data)
    return INTERNAL_ERROR


_PLACE = re.compile(r"^(?P<problem>.*?)(?: - at (?:`key` in )?`\$\.?(?P<path>[^`]*)`)?$", re.DOTALL)
_MISMATCH = re.compile(r"^Expected `(?P<expected>.+?)`, got `(?P<got>.+)`$")
_CHOICE = re.compile(r"^Invalid (?:enum )?value (?P<got>.*)$", re.DOTALL)
_MISSING = re.compile(r"^Object missing required field `(?P<name>.+)`$")


def invalid_params(error: ValidationError, params: Any, *, root: str = "params") -> InvalidParams:
    """The error for params that do not fit their Struct; `data` names the member and what was expected of it."""
    place = _PLACE.match(str(error))
    assert place is not None  # the pattern matches any text
    problem, path = place["problem"], place["path"] or ""
    if missing := _MISSING.match(problem):
        field = f"{path}.{missing['name']}" if path else missing["name"]
        return InvalidParams(
            f"Invalid params: `{field}` is missing", data=ParamsProblem(field, "missing", expected="a value")
        )
    field = path or root
    if mismatch := _MISMATCH.match(problem):
        expected, got = mismatch["expected"], mismatch["got"]
        return InvalidParams(
            f"Invalid params: `{field}` must be {expected}, not {got}",
            data=ParamsProblem(field, "wrong type", expected=expected, got=got),
        )
    if choice := _CHOICE.match(problem):
        from modes_actor.wire.choices import choices_at  # only a client's mistake pays for it

        expected = "one of " + ", ".join(map(str, choices_at(params, path)))
        got = shortened(choice["got"])
        return InvalidParams(
            f"Invalid params: `{field}` must be {expected}, not {got}",
            data=ParamsProblem(field, "unknown value", expected=expected, got=got),
        )
    problem = shortened(problem)
    return InvalidParams(f"Invalid params: `{field}`: {problem}", data=ParamsProblem(field, problem))
