"""`modes-actor install`: what is written, what is asked and said, and that an entry starts a server."""

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from modes_actor.cli.editors.clients import CLIENTS, Place
from modes_actor.cli.editors.launch import launch
from modes_actor.cli.editors.registration import registered
from tests.command_line import Shell
from tests.process import Process, handshake

COMMAND = ("--command", "/opt/modes-actor")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def alone(shell: Shell, tmp_path: Path) -> Shell:
    """A shell of a person who has Cursor, Codex and Zed, and nothing on the PATH."""
    shell.environment["PATH"] = str(tmp_path / "bin")
    for directory in (".cursor", ".codex", ".config/zed"):
        (shell.home / directory).mkdir(parents=True)
    return shell


def zed_file(shell: Shell, text: str | None = None) -> Path:
    path = shell.home / ".config/zed/settings.json"
    if text is not None:
        path.write_text(text)
    return path


def files(directory: Path) -> list[str]:
    return sorted(str(path.relative_to(directory)) for path in directory.rglob("*") if path.is_file())


def place_of(shell: Shell) -> Place:
    return Place.here(home=shell.home, environment=shell.environment, project=shell.project)


def test_a_server_is_added_and_all_of_it_is_said(alone: Shell) -> None:
    """The diff, the file, where the old one is, and what to do next."""
    path = zed_file(alone, '{\n  "theme": "dark" // at night\n}\n')
    said = alone.run("install", "--client", "zed", "--user", *COMMAND).lines()
    assert said == [
        f"Zed (user): {path}",
        f"--- {path}",
        f"+++ {path}",
        "@@ -1,3 +1,9 @@",
        " {",
        '-  "theme": "dark" // at night',
        '+  "theme": "dark", // at night',
        '+  "context_servers": {',
        '+    "roo-modes": {',
        '+      "command": "/opt/modes-actor",',
        '+      "args": []',
        "+    }",
        "+  }",
        " }",
        f"Zed: `roo-modes` is in {path}; what it was is in {path}.modes-actor.bak",
        "  Zed starts the server at once; one of a project, when you trust the project.",
    ]


def test_programs_are_told_the_same(alone: Shell) -> None:
    """One value, with each client; nothing is asked."""
    path = alone.home / ".codex/config.toml"
    path.write_text("")
    [outcome] = alone.run("install", "--client", "codex", "--user", "--json", *COMMAND).json()
    added = '+[mcp_servers.roo-modes]\n+command = "/opt/modes-actor"\n+args = []\n'
    assert outcome == {
        "client": "codex",
        "scope": "user",
        "file": str(path),
        "changed": True,
        "removed": False,
        "diff": f"--- {path}\n+++ {path}\n@@ -0,0 +1,3 @@\n{added}",
        "backup": f"{path}.modes-actor.bak",
        "hint": CLIENTS["codex"].hint,
        "notes": [],
        "problem": None,
    }


def test_a_second_time_there_is_nothing_to_do(alone: Shell) -> None:
    """No file, no copy."""
    words = ("install", "--client", "zed", "--user", *COMMAND)
    alone.run(*words)
    before = files(alone.home)
    assert alone.run(*words).lines() == [f"Zed (user): `roo-modes` is already in {zed_file(alone)}"]
    assert files(alone.home) == before


def test_in_a_project_the_entry_belongs_to_the_project(alone: Shell) -> None:
    """If the client has a file for it; the project is found from below."""
    below = alone.project / "src"
    below.mkdir()
    clients = ("--client", "cursor", "--client", "claude-desktop")
    outcomes = alone.run("install", *clients, "--json", *COMMAND, cwd=below).json()
    assert [(each["scope"], each["file"]) for each in outcomes] == [
        ("project", str(alone.project / ".cursor/mcp.json")),
        ("user", outcomes[1]["file"]),
    ]


@pytest.mark.parametrize("is_git", [True, False])
def test_elsewhere_it_belongs_to_the_person(alone: Shell, tmp_path: Path, is_git: bool) -> None:
    """A home is nobody's project, even if it is under version control."""
    (tmp_path / "nowhere").mkdir()
    if is_git:
        (alone.home / ".git").mkdir()
    where = alone.home if is_git else tmp_path / "nowhere"
    [outcome] = alone.run("install", "--client", "cursor", "--json", *COMMAND, cwd=where).json()
    assert (outcome["scope"], outcome["file"]) == ("user", str(alone.home / ".cursor/mcp.json"))


def test_all_are_those_that_are_found(alone: Shell) -> None:
    """Each once, however it is said."""
    outcomes = alone.run("install", "--client", "all", "--client", "zed", "--user", "--json", *COMMAND).json()
    assert [each["client"] for each in outcomes] == ["cursor", "zed", "codex"]


def test_all_of_nothing_cannot_be_done(shell: Shell, tmp_path: Path) -> None:
    """Somebody thought there was one."""
    shell.environment["PATH"] = str(tmp_path / "bin")
    ran = shell.run("install", "--client", "all", "--user")
    said = "modes-actor: there is nothing to add the server to: none of those it knows was found here\n"
    assert ran == (1, "", said)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "which client? `--client NAME` or `--client all` (found here: cursor, zed, codex)"),
        (("--client", "cursr"), "there is no client `cursr`: did you mean `cursor`?"),
        (("--client", "xyzzy"), f"there is no client `xyzzy`: there are {', '.join(CLIENTS)}, and `all`"),
        (
            ("--client", "claude-desktop", "--project"),
            "Claude Desktop has no configuration for a project; use --user",
        ),
        (("--client", "zed", "--command", "'"), "--command is no command (No closing quotation): '"),
        (("--client", "zed", "--command", " "), "--command must name a program"),
        (
            ("--client", "zed", "--name", "a.b"),
            "--name must be of letters, digits, `-` and `_`, as some clients want it, not 'a.b'",
        ),
    ],
)
def test_wrong_usage_is_said_and_nothing_is_done(alone: Shell, words: tuple[str, ...], said: str) -> None:
    """One line on stderr."""
    before = files(alone.home)
    assert alone.run("install", *words) == (2, "", f"modes-actor: {said}\n")
    assert files(alone.home) == before


def test_both_scopes_at_once_are_wrong_usage(alone: Shell) -> None:
    """An entry is in one file."""
    ran = alone.run("install", "--client", "zed", "--user", "--project")
    assert (ran.code, "not allowed with argument" in ran.err) == (2, True)


def test_a_dry_run_writes_nothing(alone: Shell) -> None:
    """But shows it all."""
    before = files(alone.home)
    ran = alone.run("install", "--client", "zed", "--user", "--dry-run", *COMMAND)
    assert "+++ " in ran.out
    assert ran.lines()[-1] == "Nothing was written."
    assert files(alone.home) == before


def test_a_dry_run_for_programs_says_what_would_change(alone: Shell) -> None:
    """In the diff; nothing was changed."""
    [outcome] = alone.run("install", "--client", "zed", "--user", "--dry-run", "--json", *COMMAND).json()
    assert (outcome["changed"], outcome["backup"], outcome["diff"][:13]) == (False, None, "--- /dev/null")


@pytest.mark.parametrize(("answer", "is_written"), [("y\n", True), ("YES\n", True), ("n\n", False), ("\n", False)])
def test_somebody_at_a_terminal_is_asked(
    alone: Shell, monkeypatch: pytest.MonkeyPatch, answer: str, is_written: bool
) -> None:
    """After the diff; only a yes is a yes."""
    monkeypatch.setattr(sys, "stdin", Terminal(answer))
    ran = alone.run("install", "--client", "zed", "--user", *COMMAND)
    assert (ran.code, ran.err) == (0 if is_written else 1, "Shall this be written? [y/N] ")
    assert zed_file(alone).exists() == is_written
    assert ("Nothing was written." in ran.out) != is_written


@pytest.mark.parametrize("option", ["--yes", "--dry-run", "--json"])
def test_nobody_is_asked_who_has_answered_already(alone: Shell, monkeypatch: pytest.MonkeyPatch, option: str) -> None:
    """Or who is a program."""
    monkeypatch.setattr(sys, "stdin", Terminal(""))
    ran = alone.run("install", "--client", "zed", "--user", option, *COMMAND)
    assert (ran.code, ran.err, zed_file(alone).exists()) == (0, "", option != "--dry-run")


def test_nobody_is_asked_about_nothing(alone: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """When it is there already."""
    words = ("install", "--client", "zed", "--user", *COMMAND)
    alone.run(*words)
    monkeypatch.setattr(sys, "stdin", Terminal(""))
    assert alone.run(*words).code == 0


def test_one_that_fails_keeps_nobody_from_the_others(alone: Shell) -> None:
    """The file that cannot be understood stays as it is."""
    zed = zed_file(alone, "{\n]")
    ran = alone.run("install", "--client", "all", "--user", *COMMAND)
    reason = "this is not JSON: Expecting property name enclosed in double quotes; mend it and try again"
    assert (ran.code, ran.err) == (1, f"modes-actor: Zed: {zed}:2: {reason}\n")
    assert zed.read_text() == "{\n]"
    assert json.loads((alone.home / ".cursor/mcp.json").read_text())["mcpServers"].keys() == {"roo-modes"}
    assert "[mcp_servers.roo-modes]" in (alone.home / ".codex/config.toml").read_text()


def test_programs_learn_what_failed(alone: Shell) -> None:
    """Stdout is one JSON value all the same."""
    zed = zed_file(alone, "[]")
    ran = alone.run("install", "--client", "zed", "--user", "--json")
    [outcome] = json.loads(ran.out)
    assert (ran.code, outcome["changed"], outcome["file"]) == (1, False, str(zed))
    assert outcome["problem"] == f"{zed}:1: expected an object here, found an array"


def test_a_file_that_cannot_be_written_is_as_it_was(alone: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the reason, and exit code 1."""
    path = zed_file(alone, "{}")
    monkeypatch.setattr("modes_actor.cli.safe_files.os.access", lambda path, mode: False)
    ran = alone.run("install", "--client", "zed", "--user", *COMMAND)
    assert (ran.code, ran.err) == (1, f"modes-actor: Zed: cannot write {path}: it is read-only\n")
    assert path.read_text() == "{}"


def test_an_entry_of_somebody_else_takes_force(alone: Shell) -> None:
    """Else it is left alone."""
    path = zed_file(alone, '{"context_servers": {"roo-modes": {"command": "theirs"}}}')
    words = ("install", "--client", "zed", "--user", *COMMAND)
    refused = alone.run(*words)
    assert (refused.code, "is not this one; --name or --force helps" in refused.err) == (1, True)
    assert alone.run(*words, "--force").code == 0
    assert json.loads(path.read_text())["context_servers"]["roo-modes"]["command"] == "/opt/modes-actor"


def test_a_second_entry_under_another_name_is_pointed_out(alone: Shell) -> None:
    """It would start the server twice."""
    alone.run("install", "--client", "zed", "--user", *COMMAND)
    [outcome] = alone.run("install", "--client", "zed", "--user", "--name", "two", "--json", *COMMAND).json()
    assert outcome["notes"] == [
        f"{zed_file(alone)} starts this server as `roo-modes`, too; `modes-actor uninstall --name` takes it out"
    ]


def test_what_is_said_of_the_configuration_is_passed_on(alone: Shell) -> None:
    """As whole paths: nobody knows where the server will be started."""
    (alone.project / "c.json").write_text("{}")
    options = ("--config", "c.json", "--config-dir", "~/mine", "--project-root", ".")
    alone.run("install", "--client", "codex", "--user", "--command", "modes-actor -x", *options)
    [entry] = registered(CLIENTS["codex"], "user", place_of(alone))
    config = ("--config", str(alone.project / "c.json"), "--config-dir", str(alone.home / "mine"))
    assert entry.command == ("modes-actor", "-x", *config, "--project-root", str(alone.project))


def test_a_project_in_a_file_of_the_project_goes_without_saying(alone: Shell, tmp_path: Path) -> None:
    """The option says which project's file it is."""
    other = tmp_path / "other"
    other.mkdir()
    alone.run("install", "--client", "claude-code", "--project-root", str(other), *COMMAND)
    assert json.loads((other / ".mcp.json").read_text())["mcpServers"]["roo-modes"]["args"] == []


def test_a_command_of_this_machine_in_a_file_for_others_is_pointed_out(alone: Shell) -> None:
    """With what would do for everybody; and then there is nothing to say."""
    [outcome] = alone.run("install", "--client", "zed", "--project", "--json").json()
    words = launch(place_of(alone), "project", Path(sys.executable)).words
    assert outcome["notes"] == [
        f"if others share this file: {words[0]} is on this machine only. With `--command modes-actor` the file serves "
        "whoever has that on the PATH"
    ]
    [outcome] = alone.run("install", "--client", "zed", "--project", "--json", "--command", "modes-actor").json()
    assert outcome["notes"] == []


def test_a_configuration_of_this_machine_in_a_file_for_others_is_pointed_out(alone: Shell) -> None:
    """Though the command is for everybody."""
    config = alone.project / "c.json"
    config.write_text("{}")
    words = ("--command", "modes-actor", "--config", str(config))
    note = (
        f"if others share this file: {config} is on this machine only. Without --config the file serves whoever has a "
        "configuration of their own"
    )
    [outcome] = alone.run("install", "--client", "zed", "--project", "--json", *words).json()
    assert outcome["notes"] == [note]
    [outcome] = alone.run("install", "--client", "zed", "--user", "--json", *words).json()
    assert outcome["notes"] == []


@pytest.mark.parametrize("client", ["claude-code", "codex", "opencode"])
def test_an_entry_starts_a_server(alone: Shell, client: str) -> None:
    """Of this installation, in each of the three forms that entries have."""
    alone.run("install", "--client", client, "--user", "--project-root", str(alone.project))
    [entry] = registered(CLIENTS[client], "user", place_of(alone))
    with Process(entry.command) as server:
        server.send(handshake())
        opened = server.receive()
        ended = server.finish_input()
    assert (opened["result"]["serverInfo"]["name"], ended.code) == ("roo-modes-server", 0)


def rows(shell: Shell, *words: str) -> Any:
    return shell.run("install", "--list", "--json", *words).json()


def test_the_clients_and_their_files_are_listed(alone: Shell) -> None:
    """Found or not, for a project and for a person."""
    listed = rows(alone)
    assert [*dict.fromkeys(row["client"] for row in listed if row["found"])] == ["cursor", "zed", "codex"]
    assert {(row["client"], row["scope"]) for row in listed} == {
        (name, scope) for name, client in CLIENTS.items() for scope in client.scopes
    }
    assert not any(row["name"] for row in listed)


def test_the_list_says_what_is_registered(alone: Shell) -> None:
    """Ours, another of the name, and a file that cannot be read."""
    alone.run("install", "--client", "codex", "--user", *COMMAND)
    zed_file(alone, '{"context_servers": {"roo-modes": {"command": "theirs"}}}')
    (alone.home / ".cursor/mcp.json").write_text("{")
    by_client = {row["client"]: row for row in rows(alone, "--user")}
    assert by_client["codex"] == {
        "client": "codex",
        "found": True,
        "scope": "user",
        "file": str(alone.home / ".codex/config.toml"),
        "name": "roo-modes",
        "command": ["/opt/modes-actor"],
        "is_ours": True,
        "problem": None,
    }
    assert (by_client["zed"]["is_ours"], by_client["zed"]["command"]) == (False, ["theirs"])
    assert by_client["cursor"]["problem"].startswith("line 1: this is not JSON")


def test_the_list_is_a_table_for_people(alone: Shell) -> None:
    """One line for each file."""
    alone.run("install", "--client", "zed", "--user", "--name", "mine", *COMMAND)
    heading, first, second = alone.run("install", "--list", "--client", "zed").lines()
    assert heading.split() == ["CLIENT", "FOUND", "SCOPE", "FILE", "REGISTERED"]
    assert first.split() == ["zed", "yes", "project", str(alone.project / ".zed/settings.json"), "no"]
    assert second.split() == ["zed", "yes", "user", str(zed_file(alone)), "`mine`:", "/opt/modes-actor"]
