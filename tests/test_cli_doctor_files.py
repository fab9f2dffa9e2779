"""`modes-actor doctor` and what others keep: the clients' files, and the store of sessions."""

import json
import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from modes_actor.cli.checkup.finding import Finding
from modes_actor.sessions.tables import MIGRATIONS
from modes_actor.store.migrations import TABLE, migrate
from tests.command_line import Shell

posix_only = pytest.mark.skipif(sys.platform == "win32", reason="executables as POSIX has them")


def found(shell: Shell, check: str) -> list[Finding]:
    findings = msgspec.json.decode(shell.run("doctor", "--json").out, type=list[Finding])
    return [finding for finding in findings if finding.check == check]


# Clients.


def add_to_claude_code(shell: Shell, **entries: object) -> Path:
    path = shell.project / ".mcp.json"
    path.write_text(json.dumps({"mcpServers": entries}), encoding="utf-8")
    return path


def test_no_client_that_knows_the_server_is_worth_a_note(shell: Shell) -> None:
    """It is the usual next step."""
    message = "no client has this server in its configuration"
    assert found(shell, "clients") == [
        Finding("clients", "note", message, "`modes-actor install --client NAME` adds it")
    ]


@pytest.mark.parametrize("words", [[sys.executable, "-m", "modes_actor"], ["${venv}/bin/modes-actor"]])
def test_a_client_that_starts_the_server_is_fine(shell: Shell, words: list[str]) -> None:
    """Also where only the client knows what it starts."""
    path = add_to_claude_code(shell, modes={"command": words[0], "args": words[1:]})
    message = f"Claude Code ({path}) starts `modes`: {' '.join(words)}"
    assert found(shell, "clients") == [Finding("clients", "ok", message)]


@pytest.mark.parametrize("command", ["/no/such/modes-actor", "modes-actor"])
def test_an_entry_whose_command_is_gone_is_an_error(shell: Shell, command: str) -> None:
    """A client would only say that the server does not start."""
    path = add_to_claude_code(shell, modes={"command": command})
    shell.environment["PATH"] = str(shell.home)
    message = f"Claude Code ({path}): the command of `modes` does not exist ({command})"
    fix = "`modes-actor install --client claude-code --project --name modes` mends it"
    assert found(shell, "clients") == [Finding("clients", "error", message, fix)]


@posix_only
def test_a_name_that_only_a_virtual_environment_knows_is_a_warning(shell: Shell, tmp_path: Path) -> None:
    """This shell has it on the PATH; an editor that is started from a menu has not."""
    program = tmp_path / "env" / "bin" / "modes-actor"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\n", encoding="utf-8")
    program.chmod(0o755)
    (tmp_path / "env" / "pyvenv.cfg").write_text("", encoding="utf-8")
    shell.environment["PATH"] = str(program.parent)
    path = add_to_claude_code(shell, modes={"command": "modes-actor"})
    message = (
        f"Claude Code ({path}): the command of `modes` is on the PATH only in a virtual environment, where a client "
        "that is started from a menu does not look (modes-actor)"
    )
    fix = "`modes-actor install --client claude-code --project --name modes` mends it"
    assert found(shell, "clients") == [Finding("clients", "warning", message, fix)]


def test_what_doctor_says_mends_an_entry_whose_command_is_gone(shell: Shell) -> None:
    """To the letter."""
    add_to_claude_code(shell, modes={"command": "/no/such/modes-actor"})
    (gone,) = found(shell, "clients")
    assert gone.fix is not None
    assert shell.run(*gone.fix.split("`")[1].split()[1:], "--yes").code == 0
    assert found(shell, "clients")[0].status == "ok"


def test_an_entry_of_our_name_that_is_not_ours_is_worth_a_note(shell: Shell) -> None:
    """Somebody may wonder why there are no modes."""
    add_to_claude_code(shell, **{"roo-modes": {"command": "something-else"}})
    assert [finding.status for finding in found(shell, "clients")] == ["note", "note"]


def test_a_clients_file_that_cannot_be_understood_is_a_warning(shell: Shell) -> None:
    """The client cannot understand it either."""
    (shell.project / ".mcp.json").write_text("{", encoding="utf-8")
    first, _ = found(shell, "clients")
    assert (first.status, first.fix) == ("warning", "Mend that file")


def test_copies_of_clients_files_are_pointed_out(shell: Shell) -> None:
    """They are of no use for long, and people commit the directories they are in."""
    path = add_to_claude_code(shell, other={"command": "x"})
    assert shell.run("install", "--client", "claude-code", "--project", "--command", "modes-actor", "--yes").code == 0
    message = f"1 copy of clients' files that we changed: {path}.modes-actor.bak"
    expected = Finding("clients", "note", message, "Delete them, once the clients work as they should")
    assert found(shell, "clients")[-1] == expected


# The store.


class Kept:
    """A store of sessions, as a server has it."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir()
        self.directory = directory
        self.path = directory / "sessions.db"
        self.server = sqlite3.connect(self.path, isolation_level=None)
        self.server.execute("PRAGMA journal_mode = WAL")
        migrate(self.server, MIGRATIONS)

    def content(self) -> dict[str, bytes]:
        return {each.name: each.read_bytes() for each in self.directory.iterdir() if not each.name.endswith("-shm")}


@pytest.fixture
def kept(shell: Shell) -> Iterator[Kept]:
    """A store that a server has open."""
    store = Kept(shell.config_dir / "mcp_sessions")
    yield store
    store.server.close()


def test_a_store_in_use_is_looked_into_and_left_alone(shell: Shell, kept: Kept) -> None:
    """While a server is in the middle of writing."""
    kept.server.execute("BEGIN IMMEDIATE")
    before = kept.content()
    (finding,) = found(shell, "store")
    assert (finding.status, finding.message.startswith(f"{kept.path} is sound")) == ("ok", True)
    assert kept.content() == before
    kept.server.execute("COMMIT")


def test_a_store_that_nobody_uses_is_looked_into_without_a_trace(shell: Shell, kept: Kept) -> None:
    """No write-ahead log is made for it."""
    kept.server.close()
    before = kept.content()
    assert [finding.status for finding in found(shell, "store")] == ["ok"]
    assert (kept.content(), list(before)) == (before, ["sessions.db"])


def test_a_store_of_a_newer_version_is_an_error(shell: Shell, kept: Kept) -> None:
    """It will not be used, so no task could be made."""
    kept.server.execute(f"INSERT INTO {TABLE} (room, number) VALUES ('sessions', 1000)")
    sentence = (
        "The store `sessions.db` was written by a newer version of modes-actor: update modes-actor, or choose another "
        f"storage path ({kept.path})"
    )
    assert found(shell, "store") == [Finding("store", "error", sentence)]


def test_a_file_that_is_no_store_is_an_error(shell: Shell, kept: Kept) -> None:
    """With what will become of it."""
    kept.server.close()
    kept.path.write_bytes(b"This was a store once. " * 100)
    message = f"{kept.path} is damaged: file is not a database"
    fix = "Bring back a copy, if you have one: the next server sets it aside and begins with an empty one"
    assert found(shell, "store") == [Finding("store", "error", message, fix)]


def test_a_store_that_is_damaged_inside_is_an_error(shell: Shell, kept: Kept) -> None:
    """Its head is good, so a server might notice only much later."""
    kept.server.execute("CREATE TABLE filler AS SELECT randomblob(100000) AS noise")
    kept.server.close()
    content = bytearray(kept.path.read_bytes())
    content[-60_000:-20_000] = bytes(40_000)
    kept.path.write_bytes(content)
    (finding,) = found(shell, "store")
    assert (finding.status, finding.message.startswith(f"{kept.path} is damaged: ")) == ("error", True)


def test_stores_that_were_set_aside_are_a_warning(shell: Shell, kept: Kept) -> None:
    """Each counts once, whatever belongs to it."""
    for name in ("sessions.db.corrupt-1", "sessions.db.corrupt-1-wal", "sessions.db.corrupt-2"):
        (kept.directory / name).write_bytes(b"")
    (finding,) = found(shell, "leftovers")
    names = "sessions.db.corrupt-1, sessions.db.corrupt-2"
    assert (finding.status, finding.message) == (
        "warning",
        f"2 damaged stores set aside in {kept.directory}: {names}",
    )
