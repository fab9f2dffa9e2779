"""`modes-actor doctor`: what it finds wrong with an installation and its surroundings, and what it says about it."""

import importlib.metadata
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest

from modes_actor.cli.checkup import installation
from modes_actor.cli.checkup.finding import Finding, why_not_writable
from modes_actor.cli.command import Situation
from modes_actor.cli.commands.doctor import CHECKS, look
from modes_actor.cli.output import Output
from modes_actor.config import Flags
from tests.command_line import Shell
from tests.modes_house import GLOBAL_MODES, ROOMODES

posix_only = pytest.mark.skipif(sys.platform == "win32", reason="permissions as POSIX has them")

FoundBy = Callable[..., list[Finding]]


@pytest.fixture
def found_by(shell: Shell) -> FoundBy:
    """What one check finds."""

    def found(check: str, *words: str, **environment: str) -> list[Finding]:
        ran = shell.run("doctor", "--json", *words, cwd=None, **environment)
        findings = msgspec.json.decode(ran.out, type=list[Finding])
        assert (ran.code, ran.err) == (int(any(each.status == "error" for each in findings)), "")
        return [finding for finding in findings if finding.check == check]

    return found


def paths_below(directory: Path) -> set[Path]:
    return set(directory.rglob("*"))


# As a whole.


def test_a_good_installation_has_nothing_wrong(shell: Shell) -> None:
    """One line for each check, and a last one."""
    *lines, last = shell.run("doctor", PATH=str(installation.own_script().parent)).lines()
    assert [line.split()[1] for line in lines] == [name for name in CHECKS if name != "leftovers"]
    assert {line[0] for line in lines} == {"✓", "–"}
    assert last == "Nothing is wrong."


def test_looking_makes_nothing(shell: Shell) -> None:
    """Neither the store nor the log nor a directory for them."""
    before = paths_below(shell.home.parent)
    shell.run("doctor")
    assert paths_below(shell.home.parent) == before


def test_what_is_wrong_is_said_with_what_to_do_about_it(shell: Shell) -> None:
    """In the same line; the exit code is 1."""
    (shell.config_dir / "mcp_sessions").write_text("", encoding="utf-8")
    ran = shell.run("doctor")
    assert (ran.code, ran.err) == (1, "")
    assert ran.out.splitlines()[-1] == "1 error found."
    (line,) = [line for line in ran.out.splitlines() if line.startswith("✗")]
    assert line == (
        f"✗ storage        Sessions cannot be kept: {shell.config_dir}/mcp_sessions is a file, where a directory is "
        "needed. Mend that, or set sessions.persistence.storage_path (ROO_STORAGE_PATH) to another directory."
    )


def test_a_check_that_fails_does_not_stop_the_others(tmp_path: Path) -> None:
    """It is itself something to report."""

    def broken(situation: Situation) -> Iterator[Finding]:
        raise RuntimeError("bad\nday")

    def fine(situation: Situation) -> Iterator[Finding]:
        yield Finding("second", "ok", "all is well")

    situation = Situation(Flags(), Output(sys.stdout), environment={}, working_directory=tmp_path, home=tmp_path)
    assert look(situation, {"first": broken, "second": fine}) == [
        Finding("first", "error", "This could not be looked at (RuntimeError: bad day)", "Please report it"),
        Finding("second", "ok", "all is well"),
    ]


# The installation.


def test_packages_that_are_missing_or_too_old_are_errors(found_by: FoundBy, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those for other systems and for developers are nobody's business."""
    needed = ["no-such-package>=1", "trio>=999", "msgspec>=0.1", "winnt>=3; sys_platform == 'win32'", "x; extra == 'y'"]
    monkeypatch.setattr(importlib.metadata, "requires", lambda name: needed)
    version = importlib.metadata.version("trio")
    missing, old, rest = found_by("packages")
    install = f"{sys.executable} -m pip install"
    assert missing == Finding(
        "packages", "error", "no-such-package is not installed", f"{install} 'no-such-package>=1'"
    )
    assert old == Finding("packages", "error", f"trio {version} is too old: 999 is needed", f"{install} 'trio>=999'")
    assert rest.status == "ok"
    assert "msgspec" in rest.message


def test_a_sqlite_that_is_too_old_is_an_error(found_by: FoundBy, monkeypatch: pytest.MonkeyPatch) -> None:
    """The store would fail later, and less clearly."""
    monkeypatch.setattr("sqlite3.sqlite_version_info", (3, 7, 15))
    monkeypatch.setattr("sqlite3.sqlite_version", "3.7.15")
    fix = "Use a Python that was built with a newer one"
    assert found_by("sqlite") == [Finding("sqlite", "error", "SQLite 3.7.15 is too old: 3.22.0 is needed", fix)]


@posix_only
def test_the_command_on_the_path_may_be_a_link_to_this_installation(
    found_by: FoundBy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As pipx and uv make them."""
    own, link = tmp_path / "own", tmp_path / "bin" / "modes-actor"
    _make_executable(own)
    monkeypatch.setattr(installation, "own_script", lambda: own)
    link.parent.mkdir()
    link.symlink_to(own)
    message = f"`modes-actor` on the PATH is this installation ({link})"
    assert found_by("command", PATH=str(link.parent)) == [Finding("command", "ok", message)]


@posix_only
def test_another_command_on_the_path_is_a_warning(found_by: FoundBy, tmp_path: Path) -> None:
    """What works here may not work there."""
    other = tmp_path / "bin" / "modes-actor"
    other.parent.mkdir()
    _make_executable(other)
    (finding,) = found_by("command", PATH=str(other.parent))
    assert (finding.status, str(other) in finding.message) == ("warning", True)


def test_a_command_that_is_not_on_the_path_is_worth_a_note(found_by: FoundBy, tmp_path: Path) -> None:
    """Clients can do with the whole path."""
    (finding,) = found_by("command", PATH=str(tmp_path))
    assert (finding.status, finding.message) == (
        "note",
        "`modes-actor` is not on the PATH, so clients need its whole path",
    )


# The surroundings.


def test_a_configuration_that_cannot_be_used_is_one_error(shell: Shell, found_by: FoundBy) -> None:
    """What depends on it is named, and what does not is looked at all the same."""
    config = shell.home / "config.json"
    config.write_text('{\n"logging": {"level": "LOUD"},\n"sessions": {"timeout": -1}\n}', encoding="utf-8")
    error, left_out = found_by("configuration", "--config", str(config))
    assert (error.status, error.fix) == ("error", "Until this is mended, no server starts here")
    assert f"{config}:2: logging.level is 'LOUD'" in error.message
    assert f"; {config}:3: sessions.timeout is -1" in error.message
    names = "project, global, storage, log, disk, modes, servers, clients, store, leftovers"
    message = f"Not looked at, because the configuration cannot be used: {names}"
    assert left_out == Finding("configuration", "note", message)
    assert found_by("sqlite", "--config", str(config))[0].status == "ok"


def test_the_configuration_is_told_with_whoever_has_a_say(shell: Shell, found_by: FoundBy) -> None:
    """The file, and what goes before it."""
    config = shell.home / "config.json"
    config.write_text('{"sessions": {"timeout": 60}}', encoding="utf-8")
    found = found_by("configuration", "--config", str(config), ROO_CLEANUP_INTERVAL="5")
    assert found == [Finding("configuration", "ok", f"{config}, ROO_CLEANUP_INTERVAL")]


def test_without_a_configuration_there_are_the_defaults(found_by: FoundBy) -> None:
    """Most people have none."""
    assert found_by("configuration") == [Finding("configuration", "ok", "no file, defaults")]


def test_the_project_is_told_with_how_it_was_found(shell: Shell, found_by: FoundBy) -> None:
    """An option, a variable, or a mark."""
    project, home = shell.project, shell.home
    assert [
        found_by("project"),
        found_by("project", "--project-root", str(home)),
        found_by("project", ROO_PROJECT_ROOT=str(home)),
    ] == [
        [Finding("project", "ok", f"{project} (it has .git)")],
        [Finding("project", "ok", f"{home} (by --project-root)")],
        [Finding("project", "ok", f"{home} (by ROO_PROJECT_ROOT)")],
    ]


def test_a_directory_that_is_no_project_is_worth_a_note(tmp_path: Path) -> None:
    """The modes of a project would not be found there."""
    situation = Situation(Flags(), Output(sys.stdout), environment={}, working_directory=tmp_path, home=tmp_path)
    (finding,) = look(situation, {"project": CHECKS["project"]})
    assert (finding.status, finding.fix) == ("note", "Start clients in a project, or give --project-root")


def test_a_global_directory_that_is_a_file_is_an_error(shell: Shell, found_by: FoundBy) -> None:
    """Nothing could be read from it."""
    path = shell.config_dir
    path.rmdir()
    path.write_text("", encoding="utf-8")
    assert found_by("global") == [
        Finding("global", "error", f"{path} is no directory", "Move it away, or give --config-dir")
    ]


def test_sessions_in_memory_need_no_storage(shell: Shell, found_by: FoundBy) -> None:
    """Even where there could be none."""
    (shell.config_dir / "mcp_sessions").write_text("", encoding="utf-8")
    expected = [Finding("storage", "ok", "sessions are kept in memory only, as configured")]
    assert (found_by("storage", ROO_PERSISTENCE="false"), found_by("store", ROO_PERSISTENCE="false")) == (expected, [])


def test_a_log_that_cannot_be_written_is_a_warning(shell: Shell, found_by: FoundBy) -> None:
    """The server serves without it."""
    (finding,) = found_by("log", ROO_LOG_FILE=str(shell.home))
    assert (finding.status, finding.message) == (
        "warning",
        f"The log file cannot be written: {shell.home} is no file",
    )


def test_a_disk_that_is_nearly_full_is_a_warning(found_by: FoundBy, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before it is full."""

    class Usage(NamedTuple):
        free: int

    monkeypatch.setattr(shutil, "disk_usage", lambda path: Usage(5 * 1024 * 1024))
    (finding,) = found_by("disk")
    assert (finding.status, finding.message.startswith("only 5 MiB are free where ")) == ("warning", True)


@pytest.mark.parametrize(
    ("directory", "reason"),
    [
        ("there", None),
        ("there/not/yet", None),
        ("file", "{}/file is a file, where a directory is needed"),
        ("file/below/it", "{}/file is a file, where a directory is needed"),
        ("link/below", "{}/link is a link that leads nowhere, where a directory is needed"),
    ],
)
@posix_only
def test_what_stands_in_the_way_of_a_directory_is_named(tmp_path: Path, directory: str, reason: str | None) -> None:
    """Without trying to make it."""
    (tmp_path / "there").mkdir()
    (tmp_path / "file").write_text("", encoding="utf-8")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    before = paths_below(tmp_path)
    assert why_not_writable(tmp_path / directory) == (reason and reason.format(tmp_path))
    assert paths_below(tmp_path) == before


@posix_only
def test_a_directory_of_somebody_else_is_in_the_way() -> None:
    """As root may do everything, this is asked as somebody who may not."""
    root = Path("/")
    user = os.geteuid()
    if user == 0:
        try:
            os.seteuid(65534)
        except OSError:
            pytest.skip("there is nobody but root here, as in some containers")
    try:
        assert why_not_writable(root / "modes-actor" / "x") == "/ may not be written, so /modes-actor/x cannot be made"
        assert why_not_writable(root) == "/ may not be written"
    finally:
        os.seteuid(user)


# Modes and servers.


def test_modes_are_counted_by_where_they_come_from(shell: Shell, found_by: FoundBy) -> None:
    """The files that count are the ones a server would read."""
    shell.mode_file.write_text(ROOMODES, encoding="utf-8")
    (shell.config_dir / "modes.yaml").write_text(GLOBAL_MODES, encoding="utf-8")
    assert found_by("modes") == [Finding("modes", "ok", "9 modes (5 builtin, 1 global, 3 project)")]


def test_mistakes_in_mode_files_are_counted(shell: Shell, found_by: FoundBy) -> None:
    """`check` tells them one by one."""
    shell.mode_file.write_text("customModes:\n  - slug: broken\n", encoding="utf-8")
    (finding,) = found_by("modes")
    assert finding == Finding("modes", "error", "5 modes (5 builtin), with 1 error", "`modes-actor check` shows where")


def test_servers_are_counted_and_their_mistakes_too(shell: Shell, found_by: FoundBy) -> None:
    """Those are not counted a second time as mistakes in modes."""
    path = shell.project / ".roo" / "mcp.json"
    path.parent.mkdir()
    path.write_text('{"mcpServers": {"github": {"command": "x"}}}', encoding="utf-8")
    assert found_by("servers") == [Finding("servers", "ok", f"1 MCP server in {path}")]
    path.write_text("{", encoding="utf-8")
    assert [each.status for each in (*found_by("servers"), *found_by("modes"))] == ["error", "ok"]


def _make_executable(path: Path) -> None:
    path.write_text("#!/bin/sh\n", encoding="utf-8")
    path.chmod(0o755)
