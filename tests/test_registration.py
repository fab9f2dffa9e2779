"""This server in a client's file: planned, shown, written, found again; and whatever else is in there stays."""

import json
import os
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from modes_actor.cli.editors.clients import CLIENTS
from modes_actor.cli.editors.registration import (
    SIZE_LIMIT,
    CannotChange,
    Change,
    Registration,
    apply,
    diff,
    is_ours,
    plan_install,
    plan_uninstall,
    registered,
    registrations,
)
from modes_actor.cli.safe_files import CannotWrite
from tests.test_editors import place_at, written

WORDS = ["/opt/modes-actor"]
ZED = CLIENTS["zed"]


def planned(tmp_path: Path, client: str, text: str | None, **options: Any) -> Change:
    """Of an installation for a person, in a file with this text."""
    place = place_at(tmp_path)
    if text is not None:
        path = CLIENTS[client].user_files(place)[0]
        written(path).write_bytes(text.encode())
    return plan_install(CLIENTS[client], "user", place, WORDS, **options)


@pytest.mark.parametrize("name", CLIENTS)
def test_the_first_server_of_a_client_makes_its_file(tmp_path: Path, name: str) -> None:
    """With nothing else in it; and planned is not written."""
    change = planned(tmp_path, name, None)
    read = tomllib.loads if CLIENTS[name].file_format == "toml" else json.loads
    assert change.before is None
    assert not change.path.exists()
    apply(change)
    document = read(change.path.read_text())
    assert [*document] == [*CLIENTS[name].key_path]
    [(entry_name, entry)] = document[CLIENTS[name].key_path[0]].items()
    assert entry_name == "roo-modes"
    assert is_ours(entry)


@pytest.mark.parametrize("name", CLIENTS)
def test_what_is_there_already_is_no_change(tmp_path: Path, name: str) -> None:
    """Once is enough."""
    apply(planned(tmp_path, name, None))
    again = planned(tmp_path, name, None)
    assert (again.is_noop, diff(again), apply(again)) == (True, "", None)


@pytest.mark.parametrize("name", CLIENTS)
def test_what_was_added_is_taken_out(tmp_path: Path, name: str) -> None:
    """Whoever else is there stays."""
    apply(planned(tmp_path, name, None))
    apply(planned(tmp_path, name, None, name="second"))
    path = planned(tmp_path, name, None).path
    before = path.read_text()
    apply(planned(tmp_path, name, None, name="third"))
    apply(plan_uninstall(CLIENTS[name], path, name="third"))
    assert path.read_text() == before


@pytest.mark.parametrize(
    ("name", "scope", "root"),
    [
        ("vscode", "project", "${workspaceFolder}"),
        ("vscode", "user", None),
        ("cursor", "project", "${workspaceFolder}"),
        ("cursor", "user", "${workspaceFolder}"),
        ("zed", "project", None),
        ("codex", "user", None),
    ],
)
def test_a_client_that_starts_servers_elsewhere_names_the_project(
    tmp_path: Path, name: str, scope: Any, root: str | None
) -> None:
    """In the way it expands, and only where it does."""
    words = str(plan_install(CLIENTS[name], scope, place_at(tmp_path), WORDS).after)
    assert ("--project-root" in words, str(root) in words) == (root is not None, root is not None)


def test_a_project_that_was_named_stays_the_one(tmp_path: Path) -> None:
    """A person knows better."""
    words = [*WORDS, "--project-root", "/p"]
    text = str(plan_install(CLIENTS["cursor"], "user", place_at(tmp_path), words).after)
    assert json.loads(text)["mcpServers"]["roo-modes"]["args"] == ["--project-root", "/p"]


OLD_ENTRY = """{
  "context_servers": {
    "roo-modes": {
      "enabled": false, // for now
      "command": "/gone/modes-actor",
      "args": ["--log-level", "DEBUG"],
      "env": {"A": "b"}
    }
  }
}
"""


def test_an_entry_of_ours_is_brought_up_to_date(tmp_path: Path) -> None:
    """What its person added to it stays."""
    expected = OLD_ENTRY.replace("/gone/", "/opt/").replace('["--log-level", "DEBUG"]', "[]")
    assert planned(tmp_path, "zed", OLD_ENTRY).after == expected


def test_a_server_that_is_switched_off_stays_off(tmp_path: Path) -> None:
    """Where the entry has to say whether it is on."""
    text = '{"mcp": {"roo-modes": {"type": "local", "command": ["modes-actor"], "enabled": false}}}'
    expected = text.replace('"modes-actor"', '"/opt/modes-actor"')
    assert planned(tmp_path, "kilo", text).after == expected


THEIRS = '{"context_servers": {\n"roo-modes": {"command": "theirs", "args": []}}}'


def test_an_entry_of_somebody_else_is_not_touched(tmp_path: Path) -> None:
    """Neither replaced nor removed."""
    path = ZED.user_files(place_at(tmp_path))[0]
    with pytest.raises(CannotChange) as caught:
        planned(tmp_path, "zed", THEIRS)
    expected = f"{path}: there is a server `roo-modes` here already that is not this one; --name or --force helps"
    assert str(caught.value) == expected
    with pytest.raises(CannotChange, match=r"the server `roo-modes` here is not this one; --force removes it"):
        plan_uninstall(ZED, path)


def test_force_is_force(tmp_path: Path) -> None:
    """In both directions."""
    change = planned(tmp_path, "zed", THEIRS, force=True)
    assert json.loads(str(change.after))["context_servers"] == {"roo-modes": {"command": WORDS[0], "args": []}}
    assert json.loads(str(plan_uninstall(ZED, change.path, force=True).after)) == {"context_servers": {}}


def test_an_entry_that_says_what_we_would_say_is_no_obstacle(tmp_path: Path) -> None:
    """Though no word of its command is known to be ours."""
    text = '{"context_servers": {"roo-modes": {"command": "wrapper", "args": [], "env": {}}}}'
    path = written(ZED.user_files(place_at(tmp_path))[0])
    path.write_text(text)
    assert plan_install(ZED, "user", place_at(tmp_path), ["wrapper"]).is_noop


def test_the_file_that_has_the_entry_is_the_one_to_edit(tmp_path: Path) -> None:
    """Though the client reads another one first."""
    place = place_at(tmp_path)
    first, second = (written(place.home / ".config/opencode" / f"opencode.{end}") for end in ("jsonc", "json"))
    second.write_text('{"mcp": {"roo-modes": {"type": "local", "command": ["old/modes-actor"]}}}')
    assert planned(tmp_path, "opencode", None).path == second
    assert planned(tmp_path, "opencode", None, name="new").path == first


def test_a_byte_order_mark_and_line_ends_stay(tmp_path: Path) -> None:
    """As Windows leaves them."""
    change = planned(tmp_path, "zed", '\ufeff{\r\n  "a": 1\r\n}\r\n')
    apply(change)
    assert change.path.read_bytes().startswith(b'\xef\xbb\xbf{\r\n  "a": 1,\r\n  "context_servers": {\r\n')


@pytest.mark.parametrize(
    ("name", "content", "line", "reason"),
    [
        ("zed", b'{\n"a": }', 2, "this is not JSON: Expecting value; mend it and try again"),
        ("zed", b'{"a": \n"\xff"}', 2, "this is not UTF-8; save the file as UTF-8 and try again"),
        ("codex", b"a = \n", 1, "this is not TOML: Invalid value; mend it and try again"),
        ("zed", b'{\n"context_servers": []}', 2, '"context_servers" should be an object, but it is an array'),
    ],
)
def test_a_file_that_cannot_be_understood_is_left_alone(
    tmp_path: Path, name: str, content: bytes, line: int, reason: str
) -> None:
    """With its line, and the reason."""
    path = written(CLIENTS[name].user_files(place_at(tmp_path))[0])
    path.write_bytes(content)
    with pytest.raises(CannotChange) as caught:
        plan_install(CLIENTS[name], "user", place_at(tmp_path), WORDS)
    assert str(caught.value) == f"{path}:{line}: {reason}"


@pytest.mark.skipif(sys.platform == "win32", reason="pipes with names are POSIX")
def test_nobody_waits_for_a_pipe(tmp_path: Path) -> None:
    """It would be forever."""
    path = ZED.user_files(place_at(tmp_path))[0]
    path.parent.mkdir(parents=True)
    os.mkfifo(path)
    with pytest.raises(CannotChange, match=r"settings\.json: this is not a regular file$"):
        plan_install(ZED, "user", place_at(tmp_path), WORDS)


def test_a_file_that_is_far_too_large_is_left_alone(tmp_path: Path) -> None:
    """Nobody waits minutes for it, and a list says why."""
    place = place_at(tmp_path)
    path = written(ZED.user_files(place)[0])
    os.truncate(path, SIZE_LIMIT + 1)
    reason = "this is larger than 64 MiB, and is left alone; make it smaller first"
    with pytest.raises(CannotChange) as caught:
        plan_install(ZED, "user", place, WORDS)
    assert str(caught.value) == f"{path}: {reason}"
    assert [each.problem for each in registered(ZED, "user", place)] == [reason]


def test_a_change_is_shown_as_a_diff(tmp_path: Path) -> None:
    """Unified, of the file, without what ends lines on Windows."""
    change = planned(tmp_path, "zed", "{\r\n}")
    assert (
        diff(change)
        == f"""\
--- {change.path}
+++ {change.path}
@@ -1,2 +1,8 @@
 {{
+  "context_servers": {{
+    "roo-modes": {{
+      "command": "/opt/modes-actor",
+      "args": []
+    }}
+  }}
 }}
\\ No newline at end of file
"""
    )


def test_a_new_file_is_shown_as_one(tmp_path: Path) -> None:
    """There was nothing before it."""
    assert diff(planned(tmp_path, "zed", None)).startswith("--- /dev/null\n+++ ")


def test_the_old_file_is_kept(tmp_path: Path) -> None:
    """Beside the new one."""
    backup = apply(planned(tmp_path, "zed", OLD_ENTRY))
    assert backup is not None
    assert (backup.name, backup.read_text()) == ("settings.json.modes-actor.bak", OLD_ENTRY)


def test_a_file_that_changed_after_it_was_shown_is_not_written(tmp_path: Path) -> None:
    """Nobody agreed to that."""
    change = planned(tmp_path, "zed", OLD_ENTRY)
    change.path.write_text("{}")
    with pytest.raises(CannotWrite, match="changed by somebody else"):
        apply(change)
    assert change.path.read_text() == "{}"


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ({"command": "modes-actor"}, True),
        ({"command": "/opt/bin/modes-actor", "args": ["--config", "x"]}, True),
        ({"command": r"C:\env\Scripts\modes-actor.exe"}, True),
        ({"command": "/usr/bin/python3", "args": ["-m", "modes_actor"]}, True),
        ({"command": "uvx", "args": ["modes-actor@latest"]}, True),
        ({"command": "uvx", "args": ["--from", "git+https://host/x/modes-actor.git", "modes-actor[extra]==1.2"]}, True),
        ({"command": ["modes-actor"], "type": "local"}, True),
        ({"command": "my-modes-actor"}, False),
        ({"command": "node", "args": ["modes-actor-viewer"]}, False),
        ({"command": 5, "args": {"modes-actor": 1}}, False),
        ({"url": "https://host/modes-actor"}, False),
        ("modes-actor", False),
        (None, False),
    ],
)
def test_an_entry_is_known_by_what_it_starts(entry: object, expected: bool) -> None:
    """In any of the ways there are."""
    assert is_ours(entry) is expected


def test_all_entries_are_found_wherever_they_are(tmp_path: Path) -> None:
    """By name or by command; a file that cannot be understood is part of the answer."""
    place = place_at(tmp_path)
    zed = written(place.home / ".config/zed/settings.json")
    zed.write_text('{"context_servers": {"mine": {"command": "modes-actor", "args": ["-x"]}, "b": {"command": "b"}}}')
    cursor = written(place.project / ".cursor/mcp.json")
    cursor.write_text('{"mcpServers": {"roo-modes": {"url": "u"}}}')
    gemini = written(place.home / ".gemini/settings.json")
    gemini.write_text("{")
    reason = "this is not JSON: Expecting property name enclosed in double quotes; mend it and try again"
    assert registrations(place) == [
        Registration(client="cursor", scope="project", path=cursor, name="roo-modes"),
        Registration(client="zed", scope="user", path=zed, name="mine", command=("modes-actor", "-x"), is_ours=True),
        Registration(client="gemini", scope="user", path=gemini, problem=f"line 1: {reason}"),
    ]
    assert [each.name for each in registered(ZED, "user", place, "b")] == ["mine", "b"]
