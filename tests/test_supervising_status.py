"""`modes-actor health --status FILE`, the file that a supervisor writes, and wrong usage of `health supervise`."""

import os
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import structs

from modes_actor.supervising import Status, StatusFile, StatusUnusable, read_status
from tests.command_line import Shell

STATUS = Status(
    state="healthy",
    supervisor=1,
    pid=42,
    restarts=1,
    failures=0,
    last_ping_ms=1.25,
    since=1000.0,
    updated=2000.0,
    good_until=9e9,
    detail=None,
)


def written(shell: Shell, **changes: Any) -> str:
    path = shell.home / "status.json"
    StatusFile(path).write(structs.replace(STATUS, **changes))
    return str(path)


def test_a_healthy_server_is_healthy(shell: Shell) -> None:
    """The state, the process, and how it has been."""
    ran = shell.run("health", "--status", written(shell))
    assert (ran.code, ran.err, ran.out) == (0, "", "✓ healthy  server 42, 1 restart, last ping 1.2 ms\n")


def test_a_detail_of_a_healthy_server_is_told(shell: Shell) -> None:
    """That nobody pings it at the moment, say."""
    ran = shell.run("health", "--status", written(shell, detail="no pings are sent", last_ping_ms=None))
    assert (ran.code, ran.err) == (0, "no pings are sent\n")
    assert ran.out == "✓ healthy  server 42, 1 restart, no ping yet\n"


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"state": "failing", "failures": 2}, "the server does not answer"),
        ({"state": "starting"}, "the server has not answered anything yet"),
        (
            {"state": "restarting", "pid": None, "detail": "the server ended with exit code 1"},
            "there is no server at the moment: the server ended with exit code 1",
        ),
    ],
)
def test_any_other_state_is_not_healthy(shell: Shell, changes: dict[str, Any], sentence: str) -> None:
    """With the reason on stderr."""
    ran = shell.run("health", "--status", written(shell, **changes))
    assert (ran.code, ran.err) == (1, f"{sentence}\n")


def test_a_status_that_is_too_old_is_not_healthy(shell: Shell) -> None:
    """Its supervisor was killed, and cannot say so."""
    now = time.time()
    ran = shell.run("health", "--status", written(shell, updated=now - 70, good_until=now - 5))
    assert ran.code == 1
    assert "so its supervisor has gone or hangs" in ran.err


def test_programs_get_the_whole_status(shell: Shell) -> None:
    """As one value, also if it is not healthy."""
    assert shell.run("health", "--json", "--status", written(shell)).json() == {
        "healthy": True,
        "status": msgspec.to_builtins(STATUS),
        "trouble": None,
    }
    ran = shell.run("health", "--json", "--status", written(shell, state="failing"))
    assert (ran.code, ran.err) == (1, "")
    assert '"trouble": "the server does not answer"' in ran.out


def test_where_there_is_no_status_nothing_is_supervised(shell: Shell) -> None:
    """One line says so."""
    ran = shell.run("health", "--status", "nowhere.json")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.endswith("nowhere.json is not there: no supervisor that writes its status there is running\n")


def test_another_file_is_no_status(shell: Shell) -> None:
    """Whatever is in it."""
    (shell.home / "other.json").write_text('{"state": "fine"}', encoding="utf-8")
    ran = shell.run("health", "--status", str(shell.home / "other.json"))
    assert ran.code == 1
    assert "is no status of a supervisor" in ran.err


def test_a_status_is_asked_for_without_a_command(shell: Shell) -> None:
    """Nothing is started then."""
    ran = shell.run("health", "--status", written(shell), "--", "server")
    assert (ran.code, ran.out) == (2, "")
    assert "leave the command out" in ran.err


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--json"], "there is no --json"),
        (["--failures", "0"], "must be a number of 1 or more, not '0'"),
        (["--interval", "-1"], "must be a number of seconds above 0, not '-1'"),
        (["--status", "nowhere/file"], "the status cannot be written to"),
    ],
)
def test_wrong_usage_of_supervise_is_told_before_anything_is_started(
    shell: Shell, words: list[str], sentence: str
) -> None:
    """With exit code 2 and nothing on stdout."""
    ran = shell.run("health", "supervise", *words, "--", "server")
    assert (ran.code, ran.out) == (2, "")
    assert sentence in ran.err


def test_a_status_is_replaced_as_a_whole_and_removed_at_the_end(tmp_path: Path) -> None:
    """Nothing else is left beside it."""
    file = StatusFile(tmp_path / "status.json")
    file.write(STATUS)
    file.write(structs.replace(STATUS, restarts=2))
    assert read_status(tmp_path / "status.json").restarts == 2
    assert os.listdir(tmp_path) == ["status.json"]
    file.remove()
    assert os.listdir(tmp_path) == []


def test_a_status_that_cannot_be_written_is_told_before_anything_is_started(tmp_path: Path) -> None:
    """Somebody relies on it."""
    for path in (tmp_path / "nowhere" / "status.json", tmp_path):
        with pytest.raises(StatusUnusable, match="the status cannot be written to"):
            StatusFile(path)


def test_a_status_that_cannot_be_written_any_more_is_told_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The server is more important."""
    (tmp_path / "here").mkdir()
    file = StatusFile(tmp_path / "here" / "status.json")
    (tmp_path / "here").rmdir()
    file.write(STATUS)
    file.write(STATUS)
    file.remove()
    assert len(caplog.messages) == 1
