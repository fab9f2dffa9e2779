"""Bytes to messages and back.

Promises: no bytes make it raise; every line gives exactly one message, or none if it is blank; what a line gives does
not depend on the lines around it.
"""

import re
from functools import cache
from typing import Literal, TypeVar

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from modes_actor.wire.errors import ErrorCode, ParseError, invalid_params
from modes_actor.wire.jsonrpc import Incoming, IncomingArray, Malformed, RequestId

T = TypeVar("T")

Message = Incoming | IncomingArray | Malformed

_WHITESPACE = b" \t\r\n"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"

_decode_incoming = msgspec.json.Decoder(Incoming).decode
_check_json = msgspec.json.Decoder(Raw).decode
_encoder = msgspec.json.Encoder()

encode_into = _encoder.encode_into
encode = _encoder.encode


class _AnyObject(Struct):
    """The members of a broken request that are worth reading, whatever they are."""

    id: Raw | UnsetType = UNSET
    method: Raw | UnsetType = UNSET
    jsonrpc: Raw | UnsetType = UNSET
    result: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET


_decode_any_object = msgspec.json.Decoder(_AnyObject).decode
_decode_id = msgspec.json.Decoder(RequestId).decode
_decode_version = msgspec.json.Decoder(Literal["2.0"]).decode


def decode_lines(block: bytes | bytearray) -> list[Message]:
    """The messages of a block of whole lines, in order."""
    lines = block.split(b"\n")
    try:
        # Nearly always every line is a well-formed message; then one comprehension is all there is to do.
        return [_decode_incoming(line) for line in lines if line]
    except (ValueError, RecursionError):
        pass
    messages: list[Message] = []
    for line in lines:
        # Decoded here first, no deeper in the stack than above: how far a line may nest is what is left of the stack.
        try:
            messages.append(_decode_incoming(line))
        except (ValueError, RecursionError):
            if (message := decode_line(line)) is not None:
                messages.append(message)
    return messages


def decode_line(line: bytes | bytearray) -> Message | None:
    """The message of one line, or None for a blank one."""
    line = line.strip(_WHITESPACE)
    if line.startswith(_BYTE_ORDER_MARK):
        line = line.removeprefix(_BYTE_ORDER_MARK).strip(_WHITESPACE)
    if not line:
        return None
    if line.startswith(b"["):
        return _note_array(line)
    return _read_message(line)


def decode_params(decoder: msgspec.json.Decoder[T], raw: Raw | bytes, *, root: str = "params") -> T:
    """Decode what was left raw, or raise the error that tells the client what is wrong with it."""
    try:
        return decoder.decode(raw)
    except msgspec.ValidationError as error:
        raise invalid_params(error, decoder.type, root=root) from error
    except (ValueError, RecursionError) as error:
        # Only what the envelope's decoder skips over can still be broken: text that is no UTF-8, absurd numbers.
        raise ParseError(f"Parse error: in `{root}`: {error}") from error


def read_array(array: IncomingArray, *, at_most: int) -> list[Incoming | Malformed] | None:
    """The messages inside an array, each judged by itself; None if there are more than that."""
    *items, excess = msgspec.structs.astuple(_array_decoder(at_most).decode(array.line))
    return None if excess is not UNSET else [_read_message(item) for item in items if item is not UNSET]


@cache
def _array_decoder(at_most: int) -> msgspec.json.Decoder[Struct]:
    """Reads that many items and one more; those beyond are passed over, which takes no memory however many they are."""
    fields = [(f"item{number}", Raw | UnsetType, UNSET) for number in range(at_most + 1)]
    return msgspec.json.Decoder(msgspec.defstruct("FirstItems", fields, array_like=True))


def _read_message(line: bytes | bytearray | Raw) -> Incoming | Malformed:
    try:
        return _decode_incoming(line)
    except msgspec.ValidationError:
        return _explain(line)
    except (ValueError, RecursionError) as error:
        return _with_whole_characters(bytes(line)) or _not_json(error)


_ESCAPE = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})|\\.", re.DOTALL
)
_REPLACEMENT = "\ufffd"


def _with_whole_characters(line: bytes) -> Incoming | None:
    """The message of a line in which halves of surrogate pairs were all that was wrong; None if there was more.

    JavaScript writes them for a text that was cut inside an emoji. Each becomes a replacement character, except in an
    id: that has to go back as it came, and cannot.
    """
    whole = _ESCAPE.sub(lambda found: rb"\ufffd" if found[1] else found[0], line)
    if whole == line:
        return None
    try:
        message = _decode_incoming(whole)
    except (ValueError, RecursionError):
        return None
    return None if isinstance(message.id, str) and _REPLACEMENT in message.id else message


def _note_array(line: bytes | bytearray) -> IncomingArray | Malformed:
    try:
        _check_json(line)
    except (ValueError, RecursionError) as error:
        return _not_json(error)
    return IncomingArray(line)


def _not_json(error: ValueError | RecursionError) -> Malformed:
    why = "nested too deeply" if isinstance(error, RecursionError) else str(error)
    return Malformed(ErrorCode.PARSE_ERROR, f"Parse error: {why}")


def _explain(line: bytes | bytearray | Raw) -> Malformed:
    """Why a line that is JSON is no JSON-RPC message, with its id if that can be read."""

    def invalid(why: str, request_id: RequestId | UnsetType = UNSET) -> Malformed:
        return Malformed(ErrorCode.INVALID_REQUEST, f"Invalid request: {why}", request_id)

    try:
        _check_json(line)  # a decoder stops at the first wrong type, and never sees what comes behind it
        found = _decode_any_object(line)
    except msgspec.ValidationError:
        return invalid("a message is a JSON object")
    except (ValueError, RecursionError) as error:
        return _not_json(error)
    request_id: RequestId | UnsetType = UNSET
    # A broken response is answered without its id: that id is ours, and the client may have a request of the same one.
    is_response = found.method is UNSET and (found.result is not UNSET or found.error is not UNSET)
    if found.id is not UNSET and not is_response:
        try:
            request_id = _decode_id(found.id)
        except ValueError:
            return invalid("`id` must be a string or an integer")
    try:
        _decode_version(found.jsonrpc or b"")
    except (ValueError, RecursionError):
        return invalid('`jsonrpc` must be "2.0"', request_id)
    return invalid("`method` must be a string", request_id)
