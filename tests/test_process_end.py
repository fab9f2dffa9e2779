"""How the process ends: by the end of its input, by signals, by a client that goes away. And that it ends at all."""

import os
import select
import signal
import sys

import pytest

from tests.process import COMMAND, NEVER, Process, answer, call, handshake, lines, offering, ping, said

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals and pipes of POSIX")

STOPPING = "asked to stop"
MORE_THAN_IS_EVER_QUEUED = 64 * 1024 * 1024

either_signal = pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=lambda number: number.name)


def stopped(process: Process, first_id: int = 1) -> tuple[int, bytes]:
    """Ping without ever reading, until the server reads no more: the last id used, and what did not fit any more.

    Were a server that is only slow taken for one that has stopped, a test would pass that might have failed; never the
    other way round.
    """
    process.send(ping("is it there?"))
    assert process.receive() == answer("is it there?")
    os.set_blocking(process.stdin, False)
    next_id, pending, written = first_id, b"", 0
    while select.select([], [process.stdin], [], 0.5)[1]:
        if not pending:
            pending = lines(*map(ping, range(next_id, next_id + 1000)))
            next_id += 1000
        taken = os.write(process.stdin, pending)
        pending = pending[taken:]
        written += taken
        assert written < MORE_THAN_IS_EVER_QUEUED, "the server reads on and on"
    return next_id - 1, pending


def test_the_end_of_input_lets_everything_received_be_answered() -> None:
    """Thousands of pipelined requests, and stdin closed behind them: an answer each, in order, and a clean end."""
    with Process() as process:
        assert process.finish_input(*map(ping, range(5000))) == (0, list(map(answer, range(5000))), "")


def test_the_end_of_input_lets_running_work_finish() -> None:
    """A handler that is still waiting when the input ends is waited for."""
    with Process(offering(drain_seconds=NEVER)) as process:
        process.send(handshake(), call(1, "see_out"))
        assert [process.receive().get("id"), process.receive()["method"]] == ["handshake", "roots/list"]
        process.end_input()
        assert process.finish() == (0, [said(1, "saw the input end")], "")


def test_work_that_outlasts_the_drain_is_cancelled_and_its_request_answered() -> None:
    """The client is told that the same request may be sent again."""
    with Process(offering(drain_seconds=0.05)) as process:
        process.send(handshake(), call(1, "stay"))
        assert [process.receive().get("id"), process.receive()["method"]] == ["handshake", "notifications/message"]
        process.end_input()
        code, [refusal], log = process.finish()
        assert (code, log) == (0, "")
        assert (refusal["id"], refusal["error"]["code"], refusal["error"]["data"]) == (1, -32603, {"retryable": True})


@either_signal
def test_a_signal_lets_what_was_received_be_answered(number: signal.Signals) -> None:
    """Both what was answered at once and what is still waiting; stdin stays open all the while."""
    with Process(offering(drain_seconds=NEVER)) as process:
        process.send(handshake(), *map(ping, range(1000)), call("work", "see_out"))
        assert process.receive()["id"] == "handshake"
        assert [process.receive() for _ in range(1000)] == list(map(answer, range(1000)))
        assert process.receive()["method"] == "roots/list"
        process.signal(number)
        code, messages, log = process.finish()
        assert (code, messages) == (0, [said("work", "saw the input end")])
        assert log.count("\n") == log.count(STOPPING) == 1


@either_signal
def test_a_signal_finds_an_idle_server_ready_to_leave(number: signal.Signals) -> None:
    """Nothing received, nothing to wait for."""
    with Process() as process:
        process.send(ping(1))
        assert process.receive() == answer(1)
        process.signal(number)
        code, messages, log = process.finish()
        assert (code, messages) == (0, [])
        assert log.count("\n") == log.count(STOPPING) == 1


@either_signal
def test_a_second_signal_ends_the_process_at_once(number: signal.Signals) -> None:
    """Work that is still running does not hold it up; the code says which signal it was."""
    with Process(offering(drain_seconds=NEVER)) as process:
        process.send(handshake(), call(1, "stay"))
        assert [process.receive().get("id"), process.receive()["method"]] == ["handshake", "notifications/message"]
        process.signal(number)
        process.await_log(STOPPING)
        process.signal(number)
        code, messages, log = process.finish()
        assert (code, messages) == (128 + number, [])
        assert "Traceback" not in log


def test_two_different_signals_count_as_two() -> None:
    """A person presses Ctrl-C, then the editor terminates the process."""
    with Process(offering(drain_seconds=NEVER)) as process:
        process.send(handshake(), call(1, "stay"))
        assert [process.receive().get("id"), process.receive()["method"]] == ["handshake", "notifications/message"]
        process.signal(signal.SIGINT)
        process.await_log(STOPPING)
        process.signal(signal.SIGTERM)
        assert process.finish().code == 128 + signal.SIGTERM


def test_a_signal_is_obeyed_while_the_client_does_not_read() -> None:
    """A client that takes nothing is given up after the drain, signal or not: the process must not stay behind."""
    with Process(offering(drain_seconds=0.05)) as process:
        stopped(process)
        process.signal(signal.SIGTERM)
        process.await_log(STOPPING)
        assert process.wait() == 0


def test_after_a_signal_a_slow_client_still_gets_whole_answers_in_order() -> None:
    """Queues are full when the signal comes: the answers are those to the first requests, without a gap or a tear."""
    with Process(offering(drain_seconds=NEVER)) as process:
        last, _ = stopped(process)
        process.signal(signal.SIGTERM)
        process.await_log(STOPPING)
        code, messages, _ = process.finish()
        assert code == 0
        assert 0 < len(messages) <= last
        assert messages == [answer(request_id) for request_id in range(1, len(messages) + 1)]


def test_a_client_that_closes_stdout_ends_the_process() -> None:
    """The next answer cannot be written, so there is nothing left to do; stdin is still open."""
    with Process() as process:
        process.send(ping(1))
        assert process.receive() == answer(1)
        process.stop_reading()
        process.send(ping(2))
        assert process.finish() == (0, [], "")


def test_a_client_that_closes_stdout_ends_running_work_too() -> None:
    """Nobody is left to finish anything for."""
    with Process(offering(drain_seconds=NEVER)) as process:
        process.send(handshake(), call(1, "stay"))
        assert [process.receive().get("id"), process.receive()["method"]] == ["handshake", "notifications/message"]
        process.stop_reading()
        process.send(ping(2))
        assert process.finish() == (0, [], "")


def test_a_client_that_disappears_ends_the_process() -> None:
    """Both ends closed, requests on the way."""
    with Process() as process:
        process.send(ping(1))
        assert process.receive() == answer(1)
        process.stop_reading()
        assert process.finish_input(*map(ping, range(100))) == (0, [], "")


def test_a_client_that_disappears_ends_running_work_after_the_drain() -> None:
    """Work that does not end is cancelled, and that its answer has no reader is no trouble."""
    with Process(offering(drain_seconds=0.05)) as process:
        process.send(handshake(), call(1, "stay"))
        assert [process.receive().get("id"), process.receive()["method"]] == ["handshake", "notifications/message"]
        process.stop_reading()
        process.end_input()
        assert process.finish() == (0, [], "")


def test_a_client_that_disappears_may_take_stderr_along() -> None:
    """As when an editor crashes: there is nobody to log to either, and the process still ends well."""
    with Process() as process:
        process.send(ping(1))
        assert process.receive() == answer(1)
        process.stop_reading()
        process.stop_reading_log()
        assert process.finish_input(ping(2)).code == 0


@either_signal
def test_a_signal_is_obeyed_where_nobody_reads_the_log(number: signal.Signals) -> None:
    """That the server is asked to stop cannot be logged then, and this changes nothing: not even the exit code."""
    with Process() as process:
        process.send(ping(1))
        assert process.receive() == answer(1)
        process.stop_reading_log()
        process.signal(number)
        assert process.finish() == (0, [], "")


def test_a_client_that_does_not_read_is_not_read_from() -> None:
    """The pipe fills after a bounded amount; once the client reads, each request has its one answer."""
    with Process() as process:
        last, pending = stopped(process)
        while pending:
            readable, writable, _ = select.select([process.stdout], [process.stdin], [])
            if readable:
                process.wire.take_in()
            if writable:
                pending = pending[os.write(process.stdin, pending) :]
        process.end_input()
        code, messages, log = process.finish()
        assert (code, log) == (0, "")
        assert messages == [answer(request_id) for request_id in range(1, last + 1)]


@either_signal
def test_a_log_that_nobody_reads_holds_nothing_up(number: signal.Signals) -> None:
    """Its pipe is full long before the last of these lines: requests are answered, and a signal is obeyed."""
    with Process((*COMMAND, "--log-level", "DEBUG")) as process:
        answers_to_nothing = [{"jsonrpc": "2.0", "id": n, "result": {}} for n in range(10_000)]
        process.send(*answers_to_nothing, ping(1))
        assert process.receive() == answer(1)
        process.signal(number)
        assert process.wait() == 0
