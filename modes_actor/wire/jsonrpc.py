"""The JSON-RPC 2.0 envelope: what every message looks like before anyone knows its method.

Incoming messages are one Struct whose members may be missing, because which members are present is what tells a
request from a notification from a response. Outgoing messages are one Struct each.
"""

from typing import Any, Literal

from msgspec import UNSET, Raw, Struct, UnsetType

RequestId = str | int


class Incoming(Struct, gc=False):
    """A message from the client. `params`, `result` and `error` stay raw until somebody knows their type."""

    jsonrpc: Literal["2.0"]
    id: RequestId | UnsetType | None = UNSET
    method: str | UnsetType = UNSET
    params: Raw | UnsetType = UNSET
    result: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET


class Malformed(Struct, gc=False):
    """What is no JSON-RPC message: the error it is answered with, and its id if there is one that can be used."""

    code: int
    message: str
    id: RequestId | UnsetType | None = UNSET


class IncomingArray(Struct, gc=False):
    """A JSON array, not yet looked into: most versions refuse it, and a long one is expensive to read."""

    line: bytes | bytearray


class ErrorObject(Struct, gc=False):
    code: int
    message: str
    data: Any = UNSET


class Response(Struct, tag_field="jsonrpc", tag="2.0", gc=False):
    id: RequestId
    result: Any


class ErrorResponse(Struct, tag_field="jsonrpc", tag="2.0", gc=False):
    """`id` is null or absent when the request's own could not be read; which of the two depends on the version."""

    id: RequestId | UnsetType | None
    error: ErrorObject


class Request(Struct, tag_field="jsonrpc", tag="2.0", gc=False):
    """A request from this server to the client (handshake era only)."""

    id: RequestId
    method: str
    params: Any = UNSET


class Notification(Struct, tag_field="jsonrpc", tag="2.0", gc=False):
    method: str
    params: Any = UNSET


Answer = Response | ErrorResponse
Outgoing = Response | ErrorResponse | Request | Notification
