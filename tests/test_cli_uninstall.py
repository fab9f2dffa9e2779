"""`modes-actor uninstall`: the entry goes, wherever it is, and all else stays."""

import json
import sys
from pathlib import Path

import pytest

from modes_actor.cli.editors.clients import CLIENTS
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
    assert not (installed.home / ".codex/config.toml").exists()
    assert not (installed.project / ".zed/settings.json").exists()


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


def test_a_file_that_install_made_is_gone_without_a_trace(shell: Shell) -> None:
    """Also if it was made to hold something else of ours meanwhile; and that is said."""
    path = shell.project / ".vscode/mcp.json"
    for command in COMMAND, ("--command", "/elsewhere/modes-actor -v"), COMMAND:
        assert shell.run("install", "--client", "vscode", "--project", *command).code == 0
    *_, minus, said, hint = shell.run("uninstall", "--client", "vscode", "--project").lines()
    assert (minus, said, hint) == (
        "-}",
        f"VS Code: `roo-modes` is out of {path}; nothing else was in it, so the file is removed",
        "  VS Code stops the server when it is next started.",
    )
    assert files(shell.project / ".vscode") == []


@pytest.mark.parametrize("name", CLIENTS)
def test_programs_learn_that_a_file_is_gone(shell: Shell, name: str) -> None:
    """Of every client."""
    [made] = shell.run("install", "--client", name, "--user", "--json", *COMMAND).json()
    [gone] = shell.run("uninstall", "--client", name, "--user", "--json").json()
    assert gone["diff"].splitlines()[:2] == [f"--- {made['file']}", "+++ /dev/null"]
    assert (gone["changed"], gone["removed"], gone["backup"], Path(made["file"]).exists()) == (True, True, None, False)


@pytest.mark.parametrize(
    "text",
    [
        '{\n  // mine\n  "context_servers": {\n    "roo-modes": {"command": "modes-actor"}\n  }\n}\n',
        '{\n  "context_servers": {\n    "roo-modes": {\n      "command": "modes-actor",\n      "x": 1\n    }\n  }\n}\n',
        '{"context_servers": {"roo-modes": {"command": "modes-actor", "args": []}}}',
    ],
)
def test_a_file_that_somebody_had_a_part_in_stays(installed: Shell, text: str) -> None:
    """With a copy of what it was."""
    own_file(installed).write_text(text)
    [outcome] = installed.run("uninstall", "--client", "zed", "--user", "--json").json()
    assert (outcome["removed"], Path(outcome["backup"]).read_text()) == (False, text)
    assert "context_servers" in own_file(installed).read_text()


def test_a_file_that_was_there_before_stays(shell: Shell) -> None:
    """Even if it was as good as empty: the copy beside it says so."""
    path = shell.project / ".mcp.json"
    path.write_text("{}\n")
    shell.run("install", "--client", "claude-code", "--project", *COMMAND)
    shell.run("uninstall", "--client", "claude-code", "--project")
    assert {name: (shell.project / name).read_text() for name in files(shell.project)} == {
        ".mcp.json": '{\n  "mcpServers": {}\n}\n',
        ".mcp.json.modes-actor.bak": "{}\n",
    }


@pytest.mark.skipif(sys.platform == "win32", reason="links as POSIX has them")
def test_a_link_stays_a_link(shell: Shell) -> None:
    """What it points to is not removed, as somebody put it there."""
    real = shell.home / "real.json"
    shell.run("install", "--client", "claude-code", "--project", *COMMAND)
    path = shell.project / ".mcp.json"
    path.rename(real)
    path.symlink_to(real)
    shell.run("uninstall", "--client", "claude-code", "--project")
    assert (path.is_symlink(), real.read_text()) == (True, '{\n  "mcpServers": {}\n}\n')
