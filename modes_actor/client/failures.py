"""What can go wrong with a call. The exceptions are the same in both eras, whichever way the wire tells them."""

from typing import Any, ClassVar

from msgspec import field

from modes_actor.wire import errors
from modes_actor.wire.base import WireStruct
from modes_actor.wire.content import ContentBlock, TextContent


class CallFailed(Exception):
    """A call that gave no result. The message is a whole sentence."""


class ServerGone(CallFailed):
    """There is no server to answer: it could not be started, has ended, has closed its end, or was left."""


class BadAnswer(CallFailed):
    """The server's answer is not what the protocol, or the tool, promises."""


class ServerError(CallFailed):
    """The server said no. The subclasses are the same in both eras, whichever way the wire tells them."""

    told_as: ClassVar[type[errors.ApplicationError]]

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


class ModeNotFound(ServerError):
    told_as = errors.ModeNotFound


class TaskNotFound(ServerError):
    told_as = errors.TaskNotFound


class SessionExpired(ServerError):
    told_as = errors.SessionExpired


class ValidationFailed(ServerError):
    told_as = errors.ValidationFailed


class ToolRestricted(ServerError):
    told_as = errors.ToolRestricted


class FileRestricted(ServerError):
    told_as = errors.FileRestricted


class ToolFailed(CallFailed):
    """A tool that ran and says that it failed, in no words that we have an exception for."""

    def __init__(self, name: str, result: "ToolResult") -> None:
        super().__init__(result.text or f"The tool {name} failed and does not say why")
        self.result = result


class ToolResult(WireStruct, kw_only=True):
    """What a tool said: to people and models (`content`), and to programs (`structured`)."""

    content: list[ContentBlock] = field(default_factory=list)
    structured: Any = field(default=None, name="structuredContent")
    metadata: Any = None
    is_error: bool = False

    @property
    def text(self) -> str:
        return "\n".join(block.text for block in self.content if isinstance(block, TextContent))


def server_error(code: int, message: str, data: Any) -> ServerError:
    """Chosen by the opening phrase too: to other servers the same numbers mean other things."""
    for kind in (ModeNotFound, TaskNotFound, SessionExpired, ValidationFailed, ToolRestricted, FileRestricted):
        codes = (kind.told_as.code, errors.ErrorCode.INVALID_PARAMS)
        if code in codes and message.startswith(kind.told_as.phrase):
            return kind(code, message, data)
    return ServerError(code, message, data)
