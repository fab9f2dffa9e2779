"""`scripts/health.py`: two words for two commands, with their exit codes. What they do is tested where it is done."""

import subprocess
import sys
from pathlib import Path

from tests.process import ROOT, handshake, lines, messages_in, ping, program
from tests.test_health import ANSWERING

SCRIPT = (sys.executable, str(ROOT / "scripts" / "health.py"))
ANSWERS_ALL = program(f"{ANSWERING}answer_all()")


def health(directory: Path, *words: str, said: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    environment = {"HOME": str(directory), "PATH": str(directory)}
    return subprocess.run(
        [*SCRIPT, *words], env=environment, cwd=directory, input=said, capture_output=True, check=False
    )


def test_check_is_a_health_command(tmp_path: Path) -> None:
    """0 for a server that answers, 1 for one that does not."""
    assert health(tmp_path, "check", "--", *ANSWERS_ALL).returncode == 0
    assert health(tmp_path, "check", "--", *program("raise SystemExit(0)")).returncode == 1


def test_supervise_stands_between_a_client_and_a_server(tmp_path: Path) -> None:
    """The client notices nothing."""
    ran = health(tmp_path, "supervise", "--", *ANSWERS_ALL, said=lines(handshake(1), ping(2)))
    assert (ran.returncode, ran.stderr) == (0, b"")
    assert [message["id"] for message in messages_in(ran.stdout)] == [1, 2]


def test_a_server_that_cannot_be_started_is_one_line(tmp_path: Path) -> None:
    """And nothing is tried again."""
    ran = health(tmp_path, "supervise", "--", "./nothing")
    assert (ran.returncode, ran.stdout) == (1, b"")
    assert ran.stderr == b"modes-actor: ./nothing cannot be started: No such file or directory\n"


def test_another_word_is_wrong_usage(tmp_path: Path) -> None:
    """With exit code 2 and nothing on stdout."""
    ran = health(tmp_path, "watch")
    assert (ran.returncode, ran.stdout) == (2, b"")
    assert b"there is no `watch`: say check or supervise" in ran.stderr


def test_its_help_says_what_there_is(tmp_path: Path) -> None:
    """For whoever starts it without a word."""
    ran = health(tmp_path)
    assert ran.returncode == 0
    assert b"supervise [--interval 30]" in ran.stdout
