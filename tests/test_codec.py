"""The codec: what any line is taken for, and what a client is told about params that do not fit."""

import json
import re
import sys
from typing import Any

import msgspec
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from msgspec import UNSET, Raw, Struct, UnsetType

from modes_actor.wire.base import Params, RequestMeta
from modes_actor.wire.codec import Message, decode_line, decode_lines, decode_params, encode, read_array
from modes_actor.wire.completion import CompleteParams
from modes_actor.wire.errors import ErrorCode, InvalidParams, ParamsProblem, ParseError
from modes_actor.wire.jsonrpc import (
    ErrorObject,
    ErrorResponse,
    Incoming,
    IncomingArray,
    Malformed,
    Notification,
    Request,
    RequestId,
    Response,
)
from modes_actor.wire.lifecycle import InitializeParams
from modes_actor.wire.notifications import LOG_LEVELS, ProgressParams, SetLevelParams
from modes_actor.wire.prompts import GetPromptParams

REPEATABLE = settings(derandomize=True, database=None, deadline=None, max_examples=300)

MOST_DIGITS = 4300  # Python itself turns no longer text into an integer
EDGES = [0, -1, 2**53, 2**63 - 1, 2**63, 2**64 - 1, 2**64, -(2**63), -(2**63) - 1, 10 ** (MOST_DIGITS - 1)]

ids = st.text() | st.integers() | st.sampled_from(EDGES)
scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3), max_leaves=6
)
KNOWN_MEMBERS = {"jsonrpc", "id", "method", "params", "result", "error"}
unknown_members = st.dictionaries(st.text().filter(lambda name: name not in KNOWN_MEMBERS), values, max_size=3)
known_members = st.fixed_dictionaries(
    {},
    optional={
        "jsonrpc": st.sampled_from(["2.0", "2.0", "2.0", "2", "1.0", 2.0, 2, None]) | values,
        "id": ids | values,
        "method": st.sampled_from(["ping", "tools/call", ""]) | values,
        "params": values,
        "result": values,
        "error": values,
    },
)
objects = st.builds(lambda known, unknown: {**unknown, **known}, known_members, unknown_members)


def line_of(value: Any, *, ascii_only: bool = False) -> bytes:
    return json.dumps(value, ensure_ascii=ascii_only).encode()


def is_id(value: Any) -> bool:
    return isinstance(value, str | int) and not isinstance(value, bool)


def judged(message: Message | None) -> Any:
    """A message, reduced to what was decided about it."""
    return (message.code, message.id) if isinstance(message, Malformed) else type(message)


def expected_judgement(value: Any) -> Any:
    """What JSON-RPC and the house rules say a JSON value is."""
    if isinstance(value, list):
        return IncomingArray
    if not isinstance(value, dict):
        return (-32600, UNSET)
    id_fits = value.get("id") is None or is_id(value["id"])
    method_fits = "method" not in value or isinstance(value["method"], str)
    if value.get("jsonrpc") == "2.0" and id_fits and method_fits:
        return Incoming
    is_response = "method" not in value and ("result" in value or "error" in value)
    return (-32600, value["id"] if is_id(value.get("id")) and not is_response else UNSET)


def is_json(line: bytes) -> bool:
    """By the standard library, less the constants that it allows itself."""

    def refuse(constant: str) -> None:
        raise ValueError(constant)

    try:
        json.loads(line.decode(), parse_constant=refuse, parse_int=str)
    except ValueError:
        return False
    return True


@REPEATABLE
@given(ids)
def test_an_id_comes_back_exactly_as_it_was_sent(id: RequestId) -> None:
    """Any text and any integer, with a result and with an error."""
    message = decode_line(line_of({"jsonrpc": "2.0", "id": id, "method": "ping"}))
    assert isinstance(message, Incoming)
    assert isinstance(message.id, str | int)
    answers = [Response(message.id, {}), ErrorResponse(message.id, ErrorObject(-32603, "no"))]
    assert [json.loads(encode(answer)) for answer in answers] == [
        {"jsonrpc": "2.0", "id": id, "result": {}},
        {"jsonrpc": "2.0", "id": id, "error": {"code": -32603, "message": "no"}},
    ]
    assert type(message.id) is type(id)


@REPEATABLE
@given(ids)
def test_the_id_of_a_broken_request_comes_back_exactly_too(id: RequestId) -> None:
    """It is what tells the client which of its requests was broken."""
    message = decode_line(line_of({"id": id, "method": 5}))
    assert isinstance(message, Malformed)
    assert (message.id, type(message.id)) == (id, type(id))


def test_an_integer_too_long_for_python_is_no_usable_id() -> None:
    """Refused without an id, which is better than with a wrong one."""
    line = b'{"jsonrpc":"2.0","id":1%s,"method":"ping"}' % (b"0" * MOST_DIGITS)
    assert judged(decode_line(line)) == (-32600, UNSET)


@REPEATABLE
@given(objects | values, st.booleans())
def test_any_json_value_is_taken_for_what_it_is(value: Any, ascii_only: bool) -> None:
    """A message, an array, or invalid: then with its id, if that can be read and is the client's own."""
    assert expected_judgement(value) == judged(decode_line(line_of(value, ascii_only=ascii_only)))


@REPEATABLE
@given(st.lists(objects | values, max_size=4))
def test_every_item_of_an_array_is_judged_as_if_it_came_alone(items: list[Any]) -> None:
    """Except an array inside the array, which is no message."""
    message = decode_line(line_of(items))
    assert isinstance(message, IncomingArray)
    expected = [(-32600, UNSET) if isinstance(item, list) else expected_judgement(item) for item in items]
    assert expected == [judged(item) for item in read_array(message, at_most=len(items)) or ()]


@REPEATABLE
@given(objects, st.data())
def test_a_line_is_a_parse_error_exactly_when_it_is_no_json(value: dict[str, Any], data: st.DataObject) -> None:
    """A message with one character removed, replaced or put in; what is still JSON is judged as that."""
    text = line_of(value).decode()
    place = data.draw(st.integers(min_value=0, max_value=len(text)))
    inserted = data.draw(
        st.sampled_from(["", "{", "}", "[", "]", '"', "\\", ",", ":", "0", "-", ".", "e", "\x00", "é"])
    )
    line = (text[:place] + inserted + text[place + data.draw(st.integers(min_value=0, max_value=1)) :]).encode()
    assume(line.strip() and not re.search(rb"\\u[dD][89a-fA-F]", line))
    is_parse_error = judged(decode_line(line)) == (ErrorCode.PARSE_ERROR, UNSET)
    assert is_parse_error is not is_json(line)


@REPEATABLE
@given(st.binary().map(lambda data: data.replace(b"\n", b"")))
def test_any_bytes_are_one_message_or_blank(line: bytes) -> None:
    """Nothing raises, and nothing but blank is silently dropped."""
    blank = not line.strip(b" \t\r").removeprefix(b"\xef\xbb\xbf").strip(b" \t\r")
    assert isinstance(decode_line(line), Incoming | IncomingArray | Malformed) is not blank


PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
NESTED = b"[" * 200_000 + b"]" * 200_000
STRANGE_LINES = {
    "a request": PING,
    "blank": b" \t ",
    "nothing": b"",
    "a byte order mark": b"\xef\xbb\xbf" + PING,
    "only a byte order mark": b"\xef\xbb\xbf",
    "two byte order marks": b"\xef\xbb\xbf\xef\xbb\xbf" + PING,
    "a carriage return": PING + b"\r",
    "only a carriage return": b"\r",
    "a vertical tab": PING + b"\x0b",
    "invalid UTF-8": b"\xff",
    "invalid UTF-8 in the method": b'{"jsonrpc":"2.0","method":"\xff"}',
    "invalid UTF-8 in the params": b'{"jsonrpc":"2.0","method":"m","params":"\xff"}',
    "NUL": b"\x00",
    "NUL after a request": PING + b"\x00",
    "a lone surrogate": b'{"jsonrpc":"2.0","id":"\\ud800","method":"m"}',
    "a lone surrogate in the params": b'{"jsonrpc":"2.0","method":"m","params":["\\udfff"]}',
    "deep arrays": NESTED,
    "deep arrays without end": b"[" * 200_000,
    "deep params": b'{"jsonrpc":"2.0","method":"m","params":' + NESTED + b"}",
    "a deep id": b'{"jsonrpc":"2.0","id":' + NESTED + b"}",
    "a deep version": b'{"jsonrpc":' + NESTED + b',"id":1}',
    "deep objects without end": b'{"a":' * 200_000,
    "a huge number": b"1e999",
    "a huge id": b'{"jsonrpc":"2.0","id":1e999,"method":"m"}',
    "a huge number in the params": b'{"jsonrpc":"2.0","method":"m","params":[-1e999]}',
    "a huge version": b'{"jsonrpc":1e999,"id":1}',
    "a very long integer": b"9" * 10_000,
    "two values": PING + PING,
    "an array": b"[" + PING + b"]",
    "a scalar": b"true",
}


@REPEATABLE
@given(
    st.lists(st.sampled_from(list(STRANGE_LINES.values())) | objects.map(line_of) | st.binary(max_size=20), max_size=5)
)
@example(list(STRANGE_LINES.values()))
def test_a_block_gives_what_its_lines_give_one_by_one(lines: list[bytes]) -> None:
    """Whatever the neighbours of a line are."""
    lines = [part for line in lines for part in line.split(b"\n")]
    expected = [message for line in lines if (message := decode_line(line)) is not None]
    assert expected == decode_lines(b"\n".join(lines))
    assert expected == decode_lines(bytearray(b"\n".join([*lines, b""])))


@pytest.mark.parametrize("line", STRANGE_LINES.values(), ids=STRANGE_LINES)
def test_a_strange_line_does_not_change_its_neighbours(line: bytes) -> None:
    """The requests before and after it are read as ever."""
    ping = decode_line(PING)
    messages = decode_lines(PING + b"\n" + line + b"\n" + PING)
    assert (ping, ping) == (messages[0], messages[-1])
    assert len(messages) == 2 + (decode_line(line) is not None)


def test_how_deep_a_line_may_nest_does_not_depend_on_its_neighbours() -> None:
    """Also where the nesting is just about too deep."""
    limit = sys.getrecursionlimit()
    lines = {
        depth: b'{"jsonrpc":"2.0","method":"m","params":' + b"[" * depth + b"]" * depth + b"}"
        for depth in range(limit // 2, limit + 100)
    }
    alone = {depth: judged(decode_lines(line)[0]) for depth, line in lines.items()}
    beside_nonsense = {depth: judged(decode_lines(line + b"\nnonsense")[0]) for depth, line in lines.items()}
    assert {depth for depth in lines if alone[depth] != beside_nonsense[depth]} == set()


@pytest.mark.parametrize("name", [name for name in STRANGE_LINES if "deep" in name])
def test_nesting_without_measure_is_a_parse_error(name: str) -> None:
    """Not a crash, and not an invalid request: nobody can say what it is."""
    message = decode_line(STRANGE_LINES[name])
    assert message == Malformed(ErrorCode.PARSE_ERROR, "Parse error: nested too deeply")


def read(line: bytes) -> Incoming:
    message = decode_line(line)
    assert isinstance(message, Incoming)
    return message


@pytest.mark.parametrize(
    ("escaped", "meant"),
    [
        (rb"cut \ud83d", "cut \ufffd"),
        (rb"\ude00 cut", "\ufffd cut"),
        (rb"\ud83d\ud83d\ude00", "\ufffd\U0001f600"),
        (rb"\uD83D x \\ud83d", "\ufffd x \\ud83d"),
    ],
)
def test_half_a_surrogate_pair_costs_one_character_and_not_the_request(escaped: bytes, meant: str) -> None:
    """JavaScript writes one for a text that was cut inside an emoji; the sender waits for its answer all the same."""
    message = read(b'{"jsonrpc":"2.0","id":7,"method":"m","params":{"text":"%b"}}' % escaped)
    assert message.id == 7
    assert isinstance(message.params, Raw)
    assert msgspec.json.decode(message.params) == {"text": meant}


def test_half_a_surrogate_pair_in_an_id_cannot_be_answered() -> None:
    """It could not go back as it came."""
    assert judged(decode_line(rb'{"jsonrpc":"2.0","id":"\ud800","method":"m"}')) == (-32700, UNSET)


@pytest.mark.parametrize("version", [b"1e999", b"-1e999", b"9" * 5_000], ids=["huge", "very negative", "very long"])
def test_a_version_that_is_an_absurd_number_still_leaves_the_id_readable(version: bytes) -> None:
    """It is JSON, and an object; only its `jsonrpc` is wrong."""
    message = decode_line(b'{"jsonrpc":' + version + b',"id":7,"method":"ping"}')
    assert message == Malformed(ErrorCode.INVALID_REQUEST, 'Invalid request: `jsonrpc` must be "2.0"', 7)


@pytest.mark.parametrize("line", [b'"a" b', b"1 2", b"null and void", b"true,", b'""{}'])
def test_a_value_with_more_behind_it_is_a_parse_error(line: bytes) -> None:
    """It begins like JSON and is none, so it is no invalid request either."""
    assert judged(decode_line(line)) == (-32700, UNSET)


WRONG_VERSION = '`jsonrpc` must be "2.0"'


@pytest.mark.parametrize(
    ("line", "why", "id"),
    [
        (b"5", "a message is a JSON object", UNSET),
        (b"{}", WRONG_VERSION, UNSET),
        (b'{"jsonrpc":"1.0","id":7}', WRONG_VERSION, 7),
        (b'{"jsonrpc":"2.0","id":"x","method":5}', "`method` must be a string", "x"),
        (b'{"jsonrpc":"2.0","id":1.5}', "`id` must be a string or an integer", UNSET),
        (b'{"jsonrpc":"1.0","id":7,"result":{}}', WRONG_VERSION, UNSET),
        (b'{"jsonrpc":"1.0","id":7,"method":"m","error":{}}', WRONG_VERSION, 7),
    ],
)
def test_an_invalid_request_is_told_what_is_wrong(line: bytes, why: str, id: RequestId | UnsetType) -> None:
    """One sentence, about the first thing that is."""
    assert Malformed(ErrorCode.INVALID_REQUEST, f"Invalid request: {why}", id) == decode_line(line)


@REPEATABLE
@given(ids, unknown_members)
def test_members_nobody_knows_are_ignored(id: RequestId, unknown: dict[str, Any]) -> None:
    """In the envelope, in params and in what params hold."""
    known = {"jsonrpc": "2.0", "id": id, "method": "ping"}
    assert (
        decode_line(line_of({**unknown, **known}))
        == decode_line(line_of({**known, **unknown}))
        == Incoming("2.0", id, "ping")
    )


@REPEATABLE
@given(unknown_members.filter(lambda members: not {"protocolVersion", "capabilities", "clientInfo"} & set(members)))
def test_members_of_params_that_nobody_knows_are_ignored(unknown: dict[str, Any]) -> None:
    """A later version may have more to say, at any depth."""
    assume(not {"name", "version", "title", "description", "websiteUrl", "icons"} & set(unknown))
    known = {"protocolVersion": "x", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}}
    more = {**unknown, **known, "clientInfo": {**unknown, "name": "a", "version": "1"}}
    decoder = msgspec.json.Decoder(InitializeParams)
    assert decode_params(decoder, line_of(known)) == decode_params(decoder, line_of(more))


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (Response(1, {}), b'{"jsonrpc":"2.0","id":1,"result":{}}'),
        (ErrorResponse(None, ErrorObject(1, "x")), b'{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"x"}}'),
        (ErrorResponse(UNSET, ErrorObject(1, "x", 2)), b'{"jsonrpc":"2.0","error":{"code":1,"message":"x","data":2}}'),
        (Request("a", "m"), b'{"jsonrpc":"2.0","id":"a","method":"m"}'),
        (Request(1, "m", {}), b'{"jsonrpc":"2.0","id":1,"method":"m","params":{}}'),
        (Notification("m"), b'{"jsonrpc":"2.0","method":"m"}'),
    ],
)
def test_a_message_leaves_with_its_version_and_without_what_is_not_set(message: Struct, expected: bytes) -> None:
    """Null and absent are two things; `jsonrpc` is always there."""
    assert expected == encode(message)


class ByNumber(Params):
    """Keys that are no text, as a tool's arguments may have them."""

    by_number: dict[int, str]


def refusal(params: type[Struct], raw: bytes) -> InvalidParams:
    with pytest.raises(InvalidParams) as raised:
        decode_params(msgspec.json.Decoder(params), Raw(raw))
    return raised.value


CLIENT = b'{"protocolVersion":"x","capabilities":{},"clientInfo":'
TYPES = "one of ref/prompt, ref/resource"
THEMES = "one of dark, light"
THEME = b'{"name":"a","version":"1","icons":[{"src":"s","theme":""}]}'
ICONS = b'{"name":"a","version":"1","icons":[{"src":"s"},{"src":1}]}'


@pytest.mark.parametrize(
    ("params", "raw", "field"),
    [
        (SetLevelParams, b"{}", "level"),
        (CompleteParams, b'{"ref":{"type":"ref/prompt"}}', "ref.name"),
        (CompleteParams, b'{"ref":{"name":"x"}}', "ref.type"),
        (InitializeParams, CLIENT + b'{"name":"a"}}', "clientInfo.version"),
    ],
)
def test_a_missing_member_is_named(params: type[Struct], raw: bytes, field: str) -> None:
    """With the way to it, in a sentence for people and again for programs."""
    error = refusal(params, raw)
    assert (f"Invalid params: `{field}` is missing", ParamsProblem(field, "missing", "a value")) == (
        error.message,
        error.data,
    )


@pytest.mark.parametrize(
    ("params", "raw", "field", "expected", "got"),
    [
        (SetLevelParams, b"[]", "params", "object", "array"),
        (SetLevelParams, b"null", "params", "object", "null"),
        (SetLevelParams, b'{"level":5}', "level", "str", "int"),
        (ProgressParams, b'{"progressToken":1.5,"progress":1}', "progressToken", "int | str", "float"),
        (CompleteParams, b'{"ref":5}', "ref", "object", "int"),
        (CompleteParams, b'{"ref":{"type":"ref/prompt","name":[]}}', "ref.name", "str", "array"),
        (GetPromptParams, b'{"name":"x","arguments":{"a":1}}', "arguments[...]", "str", "int"),
        (InitializeParams, CLIENT + ICONS + b"}", "clientInfo.icons[1].src", "str", "int"),
    ],
)
def test_a_member_of_the_wrong_type_is_named_with_the_right_one(
    params: type[Struct], raw: bytes, field: str, expected: str, got: str
) -> None:
    """However deep it is."""
    error = refusal(params, raw)
    assert (error.message, error.data) == (
        f"Invalid params: `{field}` must be {expected}, not {got}",
        ParamsProblem(field, "wrong type", expected, got),
    )


@pytest.mark.parametrize("value", ["loud", "", "DEBUG", "a` - at b", "a - at `$.b`"])
def test_a_wrong_choice_names_the_member_it_was_made_for(value: str) -> None:
    """Whatever the text of the choice: it is the client's, and may look like ours."""
    error = refusal(SetLevelParams, line_of({"level": value}))
    assert (error.data.field, error.message.startswith("Invalid params: `level`")) == ("level", True)


def test_a_wrong_choice_names_the_right_ones() -> None:
    """A client that sees only "invalid" has to guess."""
    error = refusal(SetLevelParams, b'{"level":"loud"}')
    assert [level for level in LOG_LEVELS if level not in (error.data.expected or "")] == []


@pytest.mark.parametrize(
    ("params", "raw", "expected"),
    [
        (
            CompleteParams,
            b'{"ref":{"type":"ref/other"}}',
            ParamsProblem("ref.type", "unknown value", TYPES, "'ref/other'"),
        ),
        (
            InitializeParams,
            CLIENT + THEME + b"}",
            ParamsProblem("clientInfo.icons[0].theme", "unknown value", THEMES, "''"),
        ),
    ],
)
def test_a_wrong_choice_names_the_right_ones_however_deep_it_is(
    params: type[Struct], raw: bytes, expected: ParamsProblem
) -> None:
    """Tags of a union, and choices inside lists and optional members."""
    assert expected == refusal(params, raw).data


def test_a_wrong_key_names_the_member_it_is_in() -> None:
    """And nothing of how the decoder words its complaint gets into the types."""
    problem = refusal(ByNumber, b'{"byNumber":{"x":"y"}}').data
    assert (problem.field.startswith("byNumber"), problem.expected, problem.got) == (True, "int", "str")


@pytest.mark.parametrize(("root", "field"), [("params", "params"), ("arguments", "arguments")])
def test_the_whole_of_what_is_wrong_goes_by_its_name(root: str, field: str) -> None:
    """Where no member is to blame."""
    with pytest.raises(InvalidParams) as raised:
        decode_params(msgspec.json.Decoder(RequestMeta), b"5", root=root)
    assert ParamsProblem(field, "wrong type", "object", "int") == raised.value.data


@pytest.mark.parametrize("raw", [b'{"level":"\xff"}', b'{"level":"debug"', b'{"level":"\\ud800"}'])
def test_params_that_turn_out_to_be_no_json_are_a_parse_error(raw: bytes) -> None:
    """The envelope's decoder looks at them only as far as it must."""
    with pytest.raises(ParseError, match="in `params`"):
        decode_params(msgspec.json.Decoder(SetLevelParams), raw)
