"""Bad input over real pipes: each piece of it has its one answer, and what follows is served as if nothing had been."""

import os
from pathlib import Path

import msgspec
import pytest

from tests.process import COMMAND, Process, answer, lines, ping

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
INVALID_PARAMS = -32602

DEEP = 200_000

UNREADABLE = {
    "not JSON": b"hello?",
    "two messages in a line": lines(ping(1)).strip() * 2,
    "only invalid UTF-8": b"\xff\xfe\xfd",
    "invalid UTF-8 in a method": b'{"jsonrpc":"2.0","id":1,"method":"pi\xffng"}',
    "a surrogate in UTF-8": b'{"jsonrpc":"2.0","id":1,"method":"\xed\xa0\x80"}',
    "a lone surrogate in an id": b'{"jsonrpc":"2.0","id":"\\ud800","method":"ping"}',
    "nothing but opening brackets": b"[" * DEEP,
    "nothing but opening braces": b'{"a":' * DEEP,
    "well-formed nesting": b"[" * DEEP + b"]" * DEEP,
    "well-formed nesting in params": b'{"jsonrpc":"2.0","id":1,"method":"ping","params":%b}'
    % (b"[" * DEEP + b"]" * DEEP),
    "NUL bytes": b"\0" * 100,
    "a NUL byte in a method": b'{"jsonrpc":"2.0","id":1,"method":"pi\0ng"}',
    "a truncated message": b'{"jsonrpc":"2.0","id":1,"method":"pi',
}
NOT_A_REQUEST = {
    "a number": b"1",
    "a number no float can hold": b"1e999999",
    "an id no float can hold": b'{"jsonrpc":"2.0","id":1e400,"method":"ping"}',
    "an id of thousands of digits": b'{"jsonrpc":"2.0","id":%b,"method":"ping"}' % (b"9" * 5000),
    "an array": b"[%b]" % lines(ping(1)).strip(),
}


def cases(*tables: tuple[int, dict[str, bytes]]) -> list[object]:
    return [pytest.param(line, code, id=name) for code, table in tables for name, line in table.items()]


def without_id(code: int, message: object) -> dict[str, object]:
    """Before a handshake, the answer to what has no readable id has a null one."""
    return {"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": message}}


@pytest.mark.parametrize(("line", "code"), cases((PARSE_ERROR, UNREADABLE), (INVALID_REQUEST, NOT_A_REQUEST)))
def test_a_bad_line_is_refused_and_the_next_one_served(line: bytes, code: int) -> None:
    """One error, then the answer to the ping that follows; the log is empty, the end a normal one."""
    with Process() as process:
        process.send_bytes(line + b"\n")
        refusal = process.receive()
        assert refusal == without_id(code, refusal["error"]["message"])
        assert process.finish_input(ping(2)) == (0, [answer(2)], "")


def test_bad_lines_between_good_ones_are_answered_in_their_place() -> None:
    """All of them in one go: as many answers as lines, each where its line was."""
    with Process() as process:
        bad = [*UNREADABLE.values(), *NOT_A_REQUEST.values()]
        sent = b"".join(line + b"\n" + lines(ping(number)) for number, line in enumerate(bad))
        process.send_bytes(sent)
        process.end_input()
        code, messages, log = process.finish()
        assert (code, log) == (0, "")
        codes = [message["error"]["code"] for message in messages[::2]]
        assert codes == [PARSE_ERROR] * len(UNREADABLE) + [INVALID_REQUEST] * len(NOT_A_REQUEST)
        assert messages[1::2] == [answer(number) for number in range(len(bad))]


def test_a_number_that_does_not_fit_is_blamed_on_its_member() -> None:
    """Such a request has an id, so its sender learns what was wrong with it."""
    with Process() as process:
        token = b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":{"progressToken":%b}}}\n' % (b"9" * 5000)
        process.send_bytes(token)
        refusal = process.receive()
        assert (refusal["id"], refusal["error"]["code"]) == (1, INVALID_PARAMS)
        assert refusal["error"]["data"]["field"] == "_meta.progressToken"
        assert process.finish_input(ping(2)) == (0, [answer(2)], "")


def test_a_large_integer_comes_back_as_it_was() -> None:
    """An id is the client's: past 64 bits, too."""
    with Process() as process:
        large = 2**64
        assert process.finish_input(ping(large), ping(-large)) == (0, [answer(large), answer(-large)], "")


@pytest.mark.parametrize("size", [1001, 1_000_000], ids="{:,} bytes".format)
def test_a_line_over_the_limit_is_refused_and_the_next_one_served(tmp_path: Path, size: int) -> None:
    """The limit is the configured one, whether a line is a little or a lot longer."""
    config = tmp_path / "config.json"
    config.write_bytes(msgspec.json.encode({"limits": {"max_line_bytes": 1000}}))
    with Process((*COMMAND, "--config", os.fspath(config))) as process:
        process.send_bytes(lines(ping(1)).strip().ljust(size) + b"\n")
        refusal = without_id(INVALID_REQUEST, "Invalid request: longer than 1,000 bytes")
        assert process.receive() == refusal
        longest = lines(ping(2)).strip().ljust(1000) + b"\n"
        process.send_bytes(longest)
        assert process.finish_input(ping(3)) == (0, [answer(2), answer(3)], "")


def test_a_truncated_last_line_is_refused() -> None:
    """The client died in the middle of a message: what came before is answered, and so is the stump."""
    with Process() as process:
        process.send(ping(1))
        process.send_bytes(lines(ping(2))[:-10])
        process.end_input()
        code, [answered, refusal], log = process.finish()
        assert (code, log) == (0, "")
        assert answered == answer(1)
        assert refusal == without_id(PARSE_ERROR, refusal["error"]["message"])


def test_a_last_line_without_its_newline_is_served() -> None:
    """Whole, but for its end."""
    with Process() as process:
        process.send_bytes(lines(ping(1), ping(2)).rstrip(b"\n"))
        process.end_input()
        assert process.finish() == (0, [answer(1), answer(2)], "")


def test_blank_lines_carriage_returns_and_a_byte_order_mark_are_nothing_to_answer() -> None:
    """As editors on another system leave them."""
    with Process() as process:
        process.send_bytes(b"\xef\xbb\xbf" + lines(ping(1)).replace(b"\n", b"\r\n") + b"\r\n\n  \t\n" + lines(ping(2)))
        process.end_input()
        assert process.finish() == (0, [answer(1), answer(2)], "")


def test_a_message_in_single_bytes_is_a_message() -> None:
    """However the pipe cuts it."""
    with Process() as process:
        for number in range(2):
            for byte in lines(ping(number)):
                process.send_bytes(bytes([byte]))
        process.end_input()
        assert process.finish() == (0, [answer(0), answer(1)], "")
