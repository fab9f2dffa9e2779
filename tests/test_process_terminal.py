"""A person starts the server by hand: it says what it waits for, answers what is typed, and leaves when asked."""

import os
import sys
from collections.abc import Iterator

import pytest

from tests.process import COMMAND, Process, Wire, answer, lines, messages_in, ping, program

if sys.platform == "win32":
    pytest.skip("terminals of POSIX", allow_module_level=True)
else:
    import pty
    import termios

END_OF_INPUT = b"\x04"  # Ctrl-D
INTERRUPT = b"\x03"  # Ctrl-C

WITH_CONTROLLING_TERMINAL = """
import fcntl, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
from modes_actor.cli import main
raise SystemExit(main([]))
"""


class Terminal:
    """Its far end is the process's; `wire` types into it and reads what it shows."""

    def __init__(self) -> None:
        self._near, self.far = pty.openpty()
        attributes = termios.tcgetattr(self.far)
        attributes[3] &= ~termios.ECHO  # what was typed would be shown between the answers
        termios.tcsetattr(self.far, termios.TCSANOW, attributes)
        self._open = {self._near, self.far}
        self.wire = Wire(reads=self._near, writes=self._near)

    def hand_over(self) -> None:
        """Only the process holds the far end now, so what it shows has an end."""
        self._close(self.far)

    def close(self) -> None:
        for fd in list(self._open):
            self._close(fd)

    def _close(self, fd: int) -> None:
        self._open.remove(fd)
        os.close(fd)


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    terminal = Terminal()
    yield terminal
    terminal.close()


def test_a_person_at_the_keyboard_is_told_what_to_do(terminal: Terminal) -> None:
    """Once, on stderr: that it waits for JSON-RPC, and the command to give to an editor."""
    with Process(stdin=terminal.far) as process:
        terminal.hand_over()
        process.await_log("waiting for JSON-RPC")
        terminal.wire.send_bytes(END_OF_INPUT)
        code, messages, log = process.finish()
        assert (code, messages) == (0, [])
        assert log.count(" ".join(COMMAND)) == 1


def test_only_a_keyboard_is_greeted(terminal: Terminal) -> None:
    """A client on a pipe is no person, wherever the log goes."""
    with Process(stderr=terminal.far) as process:
        terminal.hand_over()
        assert process.finish_input(ping(1)) == (0, [answer(1)], "")
        assert terminal.wire.rest() == b""


def test_a_typed_request_is_answered(terminal: Terminal) -> None:
    """Each when its line is complete, until Ctrl-D ends the input."""
    with Process(stdin=terminal.far) as process:
        terminal.hand_over()
        for request_id in range(3):
            terminal.wire.send(ping(request_id))
            assert process.receive() == answer(request_id)
        terminal.wire.send_bytes(END_OF_INPUT)
        assert process.finish()[:2] == (0, [])


def test_one_terminal_serves_for_everything(terminal: Terminal) -> None:
    """stdin, stdout and stderr alike: the greeting is shown, then the answers to what is typed."""
    with Process(stdin=terminal.far, stdout=terminal.far, stderr=terminal.far) as process:
        terminal.hand_over()
        while b"waiting for JSON-RPC" not in terminal.wire.line():
            pass
        terminal.wire.send(*map(ping, range(3)))
        terminal.wire.send_bytes(END_OF_INPUT)
        shown = terminal.wire.rest()
        assert process.finish() == (0, [], "")
    assert messages_in(shown[shown.index(b"{") :].replace(b"\r\n", b"\n")) == list(map(answer, range(3)))


def test_an_inherited_terminal_is_never_made_non_blocking(terminal: Terminal) -> None:
    """A shell shares it: not while the server runs, not after it was killed."""
    with Process(stdin=terminal.far, stdout=terminal.far, stderr=terminal.far) as process:
        terminal.wire.send(ping(1))
        while terminal.wire.line().strip() != lines(answer(1)).strip():
            pass
        assert os.get_blocking(terminal.far)
        process.kill()
    assert os.get_blocking(terminal.far)


def test_ctrl_c_ends_politely(terminal: Terminal) -> None:
    """A thread is waiting in the terminal just then; it holds up nothing."""
    with Process(program(WITH_CONTROLLING_TERMINAL), stdin=terminal.far, new_session=True) as process:
        terminal.hand_over()
        terminal.wire.send(ping(1))
        assert process.receive() == answer(1)
        terminal.wire.send_bytes(INTERRUPT)
        code, messages, log = process.finish()
        assert (code, messages) == (0, [])
        assert "asked to stop" in log
        assert "Traceback" not in log


def test_a_terminal_that_is_closed_ends_the_process(terminal: Terminal) -> None:
    """The window was closed, and the process, being no child of it, gets no signal."""
    with Process(stdin=terminal.far) as process:
        terminal.hand_over()
        terminal.wire.send(ping(1))
        assert process.receive() == answer(1)
        terminal.close()
        code, messages, log = process.finish()
        assert (code, messages) == (0, [])
        assert "Traceback" not in log


def test_a_terminal_that_somebody_made_non_blocking_is_no_end_of_input(terminal: Terminal) -> None:
    """Other programs on the same terminal may have left it so; there is nothing to read yet, that is all."""
    os.set_blocking(terminal.far, False)
    with Process(stdin=terminal.far) as process:
        terminal.hand_over()
        process.await_log("waiting for JSON-RPC")
        terminal.wire.send(ping(1))
        assert process.receive() == answer(1)
        terminal.wire.send_bytes(END_OF_INPUT)
        assert process.finish().code == 0
