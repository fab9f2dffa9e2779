"""Whatever stdin, stdout and stderr are: messages get through, nothing else does, and nobody's files are changed."""

import os
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from subprocess import DEVNULL, PIPE, STDOUT

import pytest

from tests.process import (
    COMMAND,
    Process,
    Wire,
    answer,
    call,
    handshake,
    lines,
    messages_in,
    offering,
    ping,
    program,
    said,
)

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="descriptors of POSIX")

STRAY = ["stray print", "stray write", "stray child", "stray buffer"]
NOTHING_HEARD = said(1, "heard b'', read '', typed nothing")


@contextmanager
def pipe() -> Iterator[tuple[int, int]]:
    """The two ends of a pipe: to read from, to write to."""
    with ExitStack() as stack:
        reads, writes = os.pipe()
        for end in (reads, writes):
            stack.callback(close, end)
        yield reads, writes


def close(fd: int) -> None:
    """Close it unless that was done already."""
    try:
        os.close(fd)
    except OSError:
        pass


def without(fds: str, *arguments: str) -> tuple[str, ...]:
    """The command, started with these descriptors closed: `<&-`, `>&-`, `2>&-`."""
    return ("/bin/sh", "-c", f'exec "$@" {fds}', "sh", *COMMAND, *arguments)


# Claimed: fds 0 and 1 belong to the client.


def test_nothing_that_a_handler_prints_reaches_the_client() -> None:
    """`print`, fd 1 itself and a child's stdout all end up on stderr; whoever reads stdin reads nothing."""
    with Process(offering()) as process:
        code, messages, log = process.finish_input(handshake(), call(1, "chatter"), ping(2))
        assert code == 0
        assert messages[1:] == [NOTHING_HEARD, answer(2)]
        assert [stray for stray in STRAY if log.count(stray) == 1] == STRAY


def test_nothing_that_a_handler_prints_reaches_the_client_where_stderr_is_stdout() -> None:
    """`2>&1`: stderr is no place for it then, nor for the log."""
    with Process(offering(), stderr=STDOUT) as process:
        process.send(handshake(), call(1, "chatter"), ping(2))
        assert [process.receive()["id"], process.receive(), process.receive()] == [
            "handshake",
            NOTHING_HEARD,
            answer(2),
        ]
        process.signal(signal.SIGTERM)
        assert process.finish() == (0, [], "")


def test_nothing_that_a_handler_prints_reaches_the_client_where_stderr_is_closed() -> None:
    """Closed descriptors are handed out again: fd 2 must not become one that carries messages."""
    command = ("/bin/sh", "-c", 'exec "$@" 2>&-', "sh", *offering())
    with Process(command) as process:
        code, messages, log = process.finish_input(handshake(), call(1, "chatter"), ping(2))
        assert (code, messages[1:], log) == (0, [NOTHING_HEARD, answer(2)], "")


# Shared: a description of a file is common to all who inherited it, its flags too.


@pytest.mark.parametrize("end", ["the end of input", "SIGKILL"])
def test_inherited_pipes_are_never_made_non_blocking(end: str) -> None:
    """Neither while the server runs, nor after it ended, nor after it was killed and could restore nothing."""
    with pipe() as (stdin, to_server), pipe() as (from_server, stdout), pipe() as (_, stderr):
        inherited = stdin, stdout, stderr
        with Process(stdin=stdin, stdout=stdout, stderr=stderr) as process:
            wire = Wire(reads=from_server, writes=to_server)
            wire.send(ping(1))
            assert wire.receive() == answer(1)
            assert list(map(os.get_blocking, inherited)) == [True, True, True]
            if end == "SIGKILL":
                process.kill()
            else:
                os.close(to_server)
                assert process.wait() == 0
        assert list(map(os.get_blocking, inherited)) == [True, True, True]


def test_an_inherited_socket_is_never_made_non_blocking() -> None:
    """Not while a server runs on it, not after it was killed."""
    here, there = socket.socketpair()
    with here, there:
        with Process(stdin=there.fileno(), stdout=there.fileno(), stderr=there.fileno()) as process:
            wire = Wire(reads=here.fileno(), writes=here.fileno())
            wire.send(ping(1))
            assert wire.receive() == answer(1)
            assert os.get_blocking(there.fileno())
            process.kill()
        assert os.get_blocking(there.fileno())


# Closed.


@pytest.mark.parametrize(("closed", "name"), [("<&-", "stdin"), (">&-", "stdout")])
def test_a_closed_stdin_or_stdout_is_one_clear_line(closed: str, name: str) -> None:
    """There is nobody to talk to, and the person who started it is told so."""
    with Process(without(closed)) as process:
        code, messages, log = process.finish()
        assert (code, messages) == (2, [])
        assert log.startswith(f"modes-actor: {name} is closed")
        assert log.count("\n") == 1


def test_a_closed_stdin_and_stdout_is_one_clear_line() -> None:
    """The first of the two is named."""
    with Process(without("<&- >&-")) as process:
        code, messages, log = process.finish()
        assert (code, messages, log.count("\n")) == (2, [], 1)


def test_a_closed_stderr_is_no_hindrance() -> None:
    """There is no log then, and everything else is as ever."""
    with Process(without("2>&-")) as process:
        assert process.finish_input(ping(1)) == (0, [answer(1)], "")


def test_a_closed_stderr_makes_no_error_appear_on_stdout(tmp_path: Path) -> None:
    """A message that cannot be shown where it belongs is not shown to the client instead."""
    with Process(without("2>&-", "--config", os.fspath(tmp_path / "missing.json"))) as process:
        assert process.finish() == (2, [], "")


def test_everything_closed_still_gives_the_exit_code() -> None:
    """No file is left to say anything in."""
    with Process(without("<&- >&- 2>&-")) as process:
        assert process.finish() == (2, [], "")


# Files.


@pytest.mark.parametrize("ending", [b"\n", b""], ids=["with a newline", "without a newline"])
def test_regular_files_can_be_served_from_and_to(tmp_path: Path, ending: bytes) -> None:
    """`modes-actor < requests.jsonl > answers.jsonl`; the last line may lack its newline."""
    requests, answers = tmp_path / "requests.jsonl", tmp_path / "answers.jsonl"
    requests.write_bytes(lines(*map(ping, range(3000))).rstrip(b"\n") + ending)
    with (
        requests.open("rb") as stdin,
        answers.open("wb") as stdout,
        Process(stdin=stdin.fileno(), stdout=stdout.fileno()) as process,
    ):
        assert process.finish() == (0, [], "")
    assert messages_in(answers.read_bytes()) == list(map(answer, range(3000)))


def test_a_file_is_appended_to_where_it_was_opened_so(tmp_path: Path) -> None:
    """`>> answers.jsonl` keeps what is there."""
    answers = tmp_path / "answers.jsonl"
    answers.write_bytes(lines(answer(0)))
    with answers.open("ab") as stdout, Process(stdout=stdout.fileno()) as process:
        process.send(ping(1))
        process.end_input()
        assert process.finish() == (0, [], "")
    assert messages_in(answers.read_bytes()) == [answer(0), answer(1)]


def test_without_any_input_there_is_no_output() -> None:
    """`< /dev/null` ends at once."""
    with Process(stdin=DEVNULL) as process:
        assert process.finish() == (0, [], "")


def test_answers_may_go_nowhere() -> None:
    """`> /dev/null` is served like any other client."""
    with Process(stdout=DEVNULL) as process:
        assert process.finish_input(*map(ping, range(100))) == (0, [], "")


# Sockets.


def test_a_socket_for_each_direction_works() -> None:
    """As Node's hosts do it; the end of input is the client's end shut for writing."""
    with ExitStack() as stack:
        (to_server, stdin), (from_server, stdout) = socket.socketpair(), socket.socketpair()
        for end in (to_server, stdin, from_server, stdout):
            stack.enter_context(end)
        process = stack.enter_context(Process(stdin=stdin.fileno(), stdout=stdout.fileno()))
        stdin.close()
        stdout.close()
        wire = Wire(reads=from_server.fileno(), writes=to_server.fileno())
        wire.send(*map(ping, range(3000)))
        to_server.shutdown(socket.SHUT_WR)
        assert messages_in(wire.rest()) == list(map(answer, range(3000)))
        assert process.finish() == (0, [], "")


@pytest.mark.parametrize("stderr", ["apart", "the same"])
def test_one_socket_for_both_directions_works(stderr: str) -> None:
    """With stderr on it as well, nothing but messages comes through, either."""
    here, there = socket.socketpair()
    log_to = there.fileno() if stderr == "the same" else PIPE
    with here, there, Process(offering(), stdin=there.fileno(), stdout=there.fileno(), stderr=log_to) as process:
        there.close()
        wire = Wire(reads=here.fileno(), writes=here.fileno())
        wire.send(handshake(), call(1, "chatter"), *map(ping, range(2, 3000)))
        here.shutdown(socket.SHUT_WR)
        assert messages_in(wire.rest())[1:] == [NOTHING_HEARD, *map(answer, range(2, 3000))]
        code, _, log = process.finish()
        assert (code, [stray for stray in STRAY if stray in log]) == (0, STRAY if stderr == "apart" else [])


def test_a_client_that_closes_its_socket_ends_the_process() -> None:
    """Answers lie unread in the socket, which makes it a reset and not an end."""
    here, there = socket.socketpair()
    with here, there, Process(stdin=there.fileno(), stdout=there.fileno()) as process:
        there.close()
        wire = Wire(reads=here.fileno(), writes=here.fileno())
        wire.send(ping(1))
        assert wire.receive() == answer(1)
        wire.send(*map(ping, range(2, 100)))
        here.close()
        assert process.finish() == (0, [], "")


# Pipes that cannot be opened a second time.

CANNOT_REOPEN = """
import os
from modes_actor.actor import stdio
from modes_actor.cli import main

reopen = stdio._own_description

def without_permission(fd, flags):
    os.fchmod(fd, 0)
    if (user := os.geteuid()) == 0:
        os.seteuid(65534)  # to root, permissions are no obstacle
    try:
        own = reopen(fd, flags)
    finally:
        os.seteuid(user)
    assert own is None
    return own

stdio._own_description = without_permission
raise SystemExit(main([]))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has pipes that can be opened a second time")
def test_a_pipe_of_another_user_is_served_all_the_same() -> None:
    """It cannot be opened again under a description of our own, so threads read and write it."""
    with Process(program(CANNOT_REOPEN)) as process:
        process.send(ping("first"))
        assert process.receive() == answer("first")
        assert process.finish_input(*map(ping, range(3000))) == (0, list(map(answer, range(3000))), "")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has pipes that can be opened a second time")
def test_a_signal_ends_the_process_while_a_thread_waits_for_input() -> None:
    """The thread is left behind in its read, and the interpreter still ends as it should."""
    with Process(program(CANNOT_REOPEN)) as process:
        process.send(ping(1))
        assert process.receive() == answer(1)
        process.signal(signal.SIGTERM)
        code, messages, log = process.finish()
        assert (code, messages, log.count("\n")) == (0, [], 1)


def test_what_was_printed_before_the_server_began_does_not_reach_the_client(tmp_path: Path) -> None:
    """A library's greeting, still in a buffer when fd 1 is claimed, goes where all stray words go."""
    (tmp_path / "sitecustomize.py").write_text("print('stray greeting')")
    with Process(environment={"PYTHONPATH": os.fspath(tmp_path)}) as process:
        code, messages, log = process.finish_input(ping(1))
        assert (code, messages, log) == (0, [answer(1)], "stray greeting\n")


@pytest.mark.parametrize(("wrong", "name"), [("0>", "stdin"), ("1<", "stdout")])
def test_a_stdin_or_stdout_open_the_wrong_way_round_is_one_clear_line(tmp_path: Path, wrong: str, name: str) -> None:
    """Else it would look as if the client had gone at once."""
    (tmp_path / "file").touch()
    with Process(without(f"{wrong} {tmp_path / 'file'}")) as process:
        code, messages, log = process.finish()
        assert (code, messages, log.count("\n")) == (2, [], 1)
        assert f"{name} is open the wrong way round" in log


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_answers_that_cannot_be_written_are_an_error() -> None:
    """A full disk is not a client that has gone: somebody should know that answers are missing."""
    with Process(without("> /dev/full")) as process:
        assert process.finish_input(ping(1)) == (
            1,
            [],
            "modes-actor: the answers cannot be written: No space left on device\n",
        )


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has pipes that can be opened a second time")
def test_a_named_pipe_that_is_held_open_by_its_reader_works(tmp_path: Path) -> None:
    """`0<>fifo`: clients may come and go, and the input does not end with the first of them."""
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    with Process(without(f"0<> {fifo}")) as process:
        for request_id in (1, 2):
            with fifo.open("wb") as client:
                client.write(lines(ping(request_id)))
            assert process.receive() == answer(request_id)
        process.signal(signal.SIGTERM)
        assert process.finish().code == 0
