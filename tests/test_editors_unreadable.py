"""A client's file or directory that may not be read: one row has a problem, and all others are as they would be."""

import json
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from modes_actor.cli.editors.clients import CLIENTS, configuration_files, is_found
from tests.command_line import Ran, Shell
from tests.test_editors import place_at

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="permissions as POSIX has them")

NOBODY = 65534
COMMAND = ("--command", "/opt/modes-actor")


@contextmanager
def as_somebody_who_may_not() -> Iterator[None]:
    """To root, permissions are no obstacle."""
    user = os.geteuid()
    if user == 0:
        try:
            os.seteuid(NOBODY)
        except OSError:
            pytest.skip("there is nobody but root here, as in some containers")
    try:
        yield
    finally:
        os.seteuid(user)


@pytest.fixture
def barred(capfd: pytest.CaptureFixture[str]) -> Iterator[Shell]:
    """A shell of a person who may not look into `.vscode` of the project, and has Cursor and Zed."""
    with tempfile.TemporaryDirectory() as name:  # pytest's directories are their owner's alone
        os.chmod(name, 0o755)
        shell = Shell(Path(name), capfd)
        shell.environment["PATH"] = str(shell.home / "bin")
        (shell.project / ".vscode").mkdir()
        for made in (".cursor", ".config/zed"):
            (shell.home / made).mkdir(parents=True)
        shell.run("install", "--client", "zed", "--user", *COMMAND)
        shell.run("doctor")  # so that everything is imported by who may read it
        if os.geteuid() == 0:
            for path in (shell.home, *shell.home.rglob("*"), shell.project):
                os.chown(path, NOBODY, NOBODY)
        (shell.project / ".vscode").chmod(0)
        yield shell
        (shell.project / ".vscode").chmod(0o755)


def run(shell: Shell, *words: str) -> Ran:
    with as_somebody_who_may_not():
        return shell.run(*words)


def test_a_list_tells_the_problem_in_its_row(barred: Shell) -> None:
    """The other rows are there."""
    ran = run(barred, "install", "--list", "--json")
    by_place = {(row["client"], row["scope"]): row for row in json.loads(ran.out)}
    assert (ran.code, ran.err) == (0, "")
    assert by_place["vscode", "project"]["problem"] == "this cannot be read: Permission denied"
    assert by_place["zed", "user"]["command"] == ["/opt/modes-actor"]
    assert len(by_place) == sum(len(client.scopes) for client in CLIENTS.values())


def test_one_that_cannot_be_read_keeps_nobody_from_the_others(barred: Shell) -> None:
    """Of several that are named."""
    ran = run(barred, "install", "--client", "vscode", "--client", "cursor", "--project", *COMMAND)
    path = barred.project / ".vscode/mcp.json"
    assert (ran.code, ran.err) == (1, f"modes-actor: VS Code: {path}: this cannot be read: Permission denied\n")
    assert (barred.project / ".cursor/mcp.json").is_file()


def test_all_are_taken_out_that_can_be_read(barred: Shell) -> None:
    """And what cannot is pointed out, as the server may be in there, too."""
    ran = run(barred, "uninstall", "--client", "all")
    path = barred.project / ".vscode/mcp.json"
    assert (ran.code, ran.err) == (0, f"VS Code was left out: {path}: this cannot be read: Permission denied\n")
    assert "roo-modes" not in "".join(path.read_text() for path in barred.home.glob(".config/zed/settings.json"))


def test_doctor_warns_of_the_file_alone(barred: Shell) -> None:
    """Nothing is to be reported."""
    ran = run(barred, "doctor", "--json")
    clients = [finding for finding in json.loads(ran.out) if finding["check"] == "clients"]
    path = barred.project / ".vscode/mcp.json"
    assert [each["status"] for each in clients] == ["warning", "error"]
    assert clients[0]["message"] == f"VS Code ({path}) cannot be understood: this cannot be read: Permission denied"


def test_a_place_that_cannot_even_be_named_is_as_good_as_none(tmp_path: Path) -> None:
    """Whatever the system says to it."""
    place = place_at(tmp_path, environment={"XDG_CONFIG_HOME": f"/{'x' * 300}"})
    for client in CLIENTS.values():
        assert configuration_files(client, "user", place)
        assert not is_found(client, place)
