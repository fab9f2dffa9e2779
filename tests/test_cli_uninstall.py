"""`modes-actor uninstall`: the entry goes, wherever it is, and all else stays."""

import json
import sys
from pathlib import Path

import pytest

from tests.command_line import Shell
from tests.test_cli_install import COMMAND, Terminal, files

THEIRS = '{\n  // mine\n  "context_servers": {\n    "other": {"command": "x", "args": []}, // why\n  },\n}\n'


@pytest.fixture
def installed(shell: Shell, tmp_path: Path) -> Shell:
    """A shell of a person who has the server in Zed, in the project and their own file, and in Codex."""
    shell.environment["PATH"] = str(tmp_path / "bin")
    (shell.home / ".config/zed").mkdir(parents=True)
    own_file(shell).write_text(THEIRS)
    for words in (("zed", "--user"), ("zed", "--project"), ("codex", "--user")):
        assert shell.run("install", "--client", *words, *COMMAND).code == 0
    return shell


def own_file(shell: Shell) -> Path:
    return shell.home / ".config/zed/settings.json"


def test_a_file_is_as_it_was_before(installed: Shell) -> None:
    """To the character."""
    installed.run("uninstall", "--client", "zed")
    assert own_file(installed).read_text() == THEIRS


def test_it_is_shown_and_said(installed: Shell) -> None:
    """The diff, the file, where the old one is, and what to do next."""
    path = own_file(installed)
    assert installed.run("uninstall", "--client", "zed", "--user").lines() == [
        f"Zed (user): {path}",
        f"--- {path}",
        f"+++ {path}",
        "@@ -2,9 +2,5 @@",
        "   // mine",
        '   "context_servers": {',
        '     "other": {"command": "x", "args": []}, // why',
        '-    "roo-modes": {',
        '-      "command": "/opt/modes-actor",',
        '-      "args": []',
        "-    },",
        "   },",
        " }",
        f"Zed: `roo-modes` is out of {path}; what it was is in {path}.modes-actor.bak-2",
        "  Zed stops the server when it is next started.",
    ]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("--client", "all"), [("zed", "project"), ("zed", "user"), ("codex", "user")]),
        (("--client", "all", "--project"), [("zed", "project")]),
        (("--client", "zed"), [("zed", "project"), ("zed", "user")]),
        (("--client", "codex", "--user"), [("codex", "user")]),
    ],
)
def test_it_goes_from_where_it_is(installed: Shell, words: tuple[str, ...], expected: list[tuple[str, str]]) -> None:
    """Unless one place is named."""
    outcomes = installed.run("uninstall", *words, "--json").json()
    changed = [(each["client"], each["scope"]) for each in outcomes if each["changed"]]
    assert changed == expected


def test_a_second_time_there_is_nothing_to_do(installed: Shell) -> None:
    """Which is no failure."""
    installed.run("uninstall", "--client", "all")
    before = files(installed.home)
    expected = [f"Codex (project): there is no `roo-modes` in {installed.project / '.codex/config.toml'}"]
    assert installed.run("uninstall", "--client", "codex").lines() == expected
    ran = installed.run("uninstall", "--client", "all")
    assert ran == (0, "", "There is nothing to take out: nobody has `roo-modes`.\n")
    assert files(installed.home) == before


def test_nothing_to_take_out_is_an_empty_list_to_programs(shell: Shell) -> None:
    """And not a word on stdout beside it."""
    ran = shell.run("uninstall", "--client", "all", "--name", "never-was", "--json")
    assert (ran.code, json.loads(ran.out)) == (0, [])


def test_who_has_it_is_said_if_nobody_is_named(installed: Shell) -> None:
    """As wrong usage."""
    said = "modes-actor: which client? `--client NAME` or `--client all` (`roo-modes` is in the files of zed, codex)\n"
    assert installed.run("uninstall") == (2, "", said)


def test_an_entry_under_another_name_is_pointed_out(installed: Shell) -> None:
    """It is not taken out without being named."""
    [outcome] = installed.run("uninstall", "--client", "codex", "--name", "mine", "--json").json()
    path = installed.home / ".codex/config.toml"
    assert outcome["notes"] == [f"{path} starts the server as `roo-modes`: --name roo-modes takes it out"]
    assert not outcome["changed"]


def test_an_entry_of_somebody_else_takes_force(installed: Shell) -> None:
    """Else it is left alone."""
    words = ("uninstall", "--client", "zed", "--user", "--name", "other")
    refused = installed.run(*words)
    assert (refused.code, "--force removes it all the same" in refused.err) == (1, True)
    assert installed.run(*words, "--force").code == 0
    assert "other" not in own_file(installed).read_text()


def test_a_name_that_install_would_not_give_is_taken_out_too(installed: Shell) -> None:
    """Somebody wrote it by hand."""
    path = installed.home / ".config/zed/settings.json"
    path.write_text('{"context_servers": {"my modes": {"command": "modes-actor"}}}')
    assert installed.run("uninstall", "--client", "zed", "--user", "--name", "my modes").code == 0
    assert path.read_text() == '{"context_servers": {}}'


def test_one_that_fails_keeps_nobody_from_the_others(installed: Shell) -> None:
    """Exit code 1, with the file and the line."""
    own_file(installed).write_text("{\n]")
    ran = installed.run("uninstall", "--client", "zed", "--client", "codex")
    assert (ran.code, ran.err.startswith(f"modes-actor: Zed: {own_file(installed)}:2: this is not JSON")) == (1, True)
    assert "roo-modes" not in (installed.home / ".codex/config.toml").read_text()
    assert "roo-modes" not in (installed.project / ".zed/settings.json").read_text()


def test_a_dry_run_takes_nothing_out(installed: Shell) -> None:
    """But shows it."""
    before = own_file(installed).read_text()
    assert installed.run("uninstall", "--client", "zed", "--dry-run").lines()[-1] == "Nothing was written."
    assert own_file(installed).read_text() == before


def test_somebody_at_a_terminal_is_asked_once(installed: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """For all of it."""
    monkeypatch.setattr(sys, "stdin", Terminal("y\n"))
    ran = installed.run("uninstall", "--client", "all")
    assert (ran.code, ran.err) == (0, "Shall this be written? [y/N] ")
    assert own_file(installed).read_text() == THEIRS
