"""`modes-actor health`: its lines, its exit codes, and that a signal ends what it started."""

import os
import re
import select
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.command_line import Ran, Shell
from tests.process import COMMAND, PATIENCE, Process, program
from tests.test_health import ANSWERING

posix_only = pytest.mark.skipif(sys.platform == "win32", reason="signals and FIFOs as POSIX has them")

ANSWERS_ALL = program(f"{ANSWERING}answer_all()")
FAILS = program("import sys; sys.exit('\\x1b[31mno luck')")


def lines_without_times(ran: Ran) -> list[str]:
    """With one blank between any two words."""
    return [" ".join(re.sub(r" \d+\.\d+ m?s\b", "", line).split()) for line in ran.out.splitlines()]


def probes_without_times(ran: Ran) -> list[Any]:
    report = ran.json()
    for each in report["probes"]:
        each["steps"] = [step["name"] for step in each["steps"] if step.pop("seconds") >= 0]
    assert report["healthy"]
    probes: list[Any] = report["probes"]
    return probes


def test_without_a_command_it_is_the_packages_own_server(shell: Shell) -> None:
    """One line for each step; the times are left out here."""
    ran = shell.run("health")
    assert (ran.code, ran.err) == (0, "")
    assert lines_without_times(ran) == [
        "✓ start",
        "✓ open roo-modes-server 1.0.0, protocol 2025-11-25",
        "✓ ping",
        "✓ tools 7 tools",
    ]


def test_both_eras_are_probed_one_after_the_other(shell: Shell) -> None:
    """A server for each, and one object for programs."""

    def healthy(era: str, version: str) -> dict[str, Any]:
        return {
            "era": era,
            "healthy": True,
            "fell_back": False,
            "steps": ["start", "open", "ping", "tools"],
            "server": {"name": "roo-modes-server", "version": "1.0.0", "protocol_version": version},
            "tools": 7,
            "stderr": [],
        }

    expected = [healthy("handshake", "2025-11-25"), healthy("stateless", "2026-07-28")]
    assert probes_without_times(shell.run("health", "--era", "both", "--json")) == expected


def test_the_lines_of_two_eras_say_which_they_are_about(shell: Shell) -> None:
    """Otherwise nobody could tell them apart."""
    ran = shell.run("health", "--era", "both", "--", *FAILS)
    error = "the server ended with exit code 1 before initialize was answered"
    assert lines_without_times(ran) == [
        "✓ handshake start",
        f"✗ handshake open {error}",
        "✓ handshake start",
        f"✗ handshake open {error}",
    ]


def test_options_are_passed_on_to_the_packages_own_server(shell: Shell) -> None:
    """It is the configured server that is to be healthy."""
    config = shell.home / "config.json"
    config.write_text('{"server": {"name": "mine", "version": "7"}}', encoding="utf-8")
    (probe,) = probes_without_times(shell.run("health", "--json", "--config", str(config)))
    assert probe["server"] == {"name": "mine", "version": "7", "protocol_version": "2025-11-25"}


def test_a_configuration_that_cannot_be_used_is_not_healthy(shell: Shell) -> None:
    """The server's own words say what is wrong with it."""
    ran = shell.run("health", "--project-root", str(shell.home / "nowhere"))
    assert ran.code == 1
    assert "no such directory" in ran.err or "not a directory" in ran.err
    assert lines_without_times(ran)[1:] == ["✗ open the server ended with exit code 2 before initialize was answered"]


def test_modules_that_lie_in_the_project_are_not_taken_for_ours(shell: Shell) -> None:
    """A project may well have a `trio.py` of its own."""
    (shell.project / "trio.py").write_text("raise SystemExit('the wrong module')", encoding="utf-8")
    assert shell.run("health").code == 0


def test_another_command_is_probed_in_place_of_our_own(shell: Shell) -> None:
    """Its options are its own, also those that we have too."""
    checks = "assert sys.argv[1:] == ['--json', '--era']\nanswer_all()"
    ran = shell.run("health", "--", *program(f"{ANSWERING}{checks}"), "--json", "--era")
    assert (ran.code, lines_without_times(ran)) == (
        0,
        ["✓ start", "✓ open scripted 1, protocol 2025-11-25", "✓ ping", "✓ tools 1 tool"],
    )


def test_another_command_that_knows_only_the_handshake_is_told_of(shell: Shell) -> None:
    """It is healthy all the same."""
    ran = shell.run("health", "--era", "stateless", "--", *ANSWERS_ALL)
    assert (ran.code, lines_without_times(ran)[1]) == (
        0,
        "✓ open scripted 1, protocol 2025-11-25; it does not know server/discover",
    )


def test_a_failure_comes_with_the_last_words_on_stderr(shell: Shell) -> None:
    """With a mark where they would command the terminal."""
    ran = shell.run("health", "--", *FAILS)
    assert (ran.code, ran.err) == (1, "The server's last words on stderr:\n  \ufffd[31mno luck\n")


def test_a_failure_is_one_object_for_programs(shell: Shell) -> None:
    """With nothing on stderr."""
    ran = shell.run("health", "--json", "--", str(shell.home / "nothing"))
    assert (ran.code, ran.err) == (1, "")
    assert '"healthy": false' in ran.out
    assert "cannot be started: No such file or directory" in ran.out


@pytest.mark.parametrize("seconds", ["0", "-1", "nan", "inf", "soon"])
def test_a_time_limit_that_is_none_is_wrong_usage(shell: Shell, seconds: str) -> None:
    """Before anything is started."""
    ran = shell.run("health", f"--timeout={seconds}")
    assert (ran.code, ran.out) == (2, "")
    assert f"must be a number of seconds above 0, not '{seconds}'" in ran.err


@posix_only
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda number: number.name)
def test_a_signal_ends_the_probe_and_the_server(tmp_path: Path, number: signal.Signals) -> None:
    """Ctrl-C, an impatient supervisor, a terminal that is closed."""
    fifo = tmp_path / "alive"
    os.mkfifo(fifo)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    hangs = f"import os, signal\nalive = os.open({str(fifo)!r}, os.O_WRONLY)\nos.write(alive, b'x')\nsignal.pause()"
    with Process((*COMMAND, "health", "--timeout", f"{PATIENCE}", "--", *program(hangs))) as health:
        assert select.select([reader], [], [], PATIENCE)[0]
        assert os.read(reader, 1) == b"x"
        health.signal(number)
        assert health.wait() == 128 + number
    assert select.select([reader], [], [], PATIENCE)[0]
    assert os.read(reader, 1) == b""
    os.close(reader)
