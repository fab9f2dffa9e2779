"""The log: where it goes, what an entry looks like, that it does not grow without end, and what is never in it."""

import itertools
import json
import logging
import os
import re
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from modes_actor.actor import processor
from modes_actor.cli import log_file
from modes_actor.cli.log_file import KEPT, LogFile
from modes_actor.cli.logs import JsonLines, OneLine
from modes_actor.config import LoggingSection
from tests.conversation import Json
from tests.process import COMMAND, Process, answer, handshake, ping, program, request

LOG = ".roo-code/mcp_modes_server.log"


def entry(message: str, *arguments: object, level: int = logging.INFO) -> logging.LogRecord:
    return logging.LogRecord("modes_actor.test", level, "file.py", 1, message, arguments, None)


# Entries.


@pytest.mark.parametrize("nasty", ["a\nb", "a\rb", "\x1b[31mred", "a\x00b", "a\u2028b", "\x9b2J"])
def test_an_entry_is_one_line_that_commands_no_terminal(nasty: str) -> None:
    """Whatever a client or a mode file made us say."""
    written = OneLine("%(levelname)s: %(message)s").format(entry("it says %s", nasty))
    assert written.isprintable()
    assert written.startswith("INFO: it says ")


def test_a_bug_is_told_with_where_it_came_from() -> None:
    """The traceback keeps its lines."""
    try:
        raise KeyError("lost")
    except KeyError as error:
        record = entry("it failed", level=logging.ERROR)
        record.exc_info = (KeyError, error, error.__traceback__)
    first, *traceback = OneLine("%(message)s").format(record).splitlines()
    assert (first, traceback[0], traceback[-1]) == (
        "it failed",
        "Traceback (most recent call last):",
        "KeyError: 'lost'",
    )
    told = json.loads(JsonLines().format(record))
    assert (told["message"], told["exception"].splitlines()[-1]) == ("it failed", "KeyError: 'lost'")


def test_a_json_entry_is_one_object_on_one_line() -> None:
    """Half surrogates, which a client can send, are written out."""
    line = JsonLines().format(entry("two\nlines and \ud800"))
    assert "\n" not in line
    told = json.loads(line)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00", told.pop("time"))
    assert told == {
        "level": "INFO",
        "logger": "modes_actor.test",
        "message": "two\nlines and \\ud800",
        "pid": os.getpid(),
    }


# The file.


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_file, "LIMIT", 100)


def log_to(path: Path, *lines: str, configured: bool = True) -> None:
    handler = LogFile(path, is_configured=configured)
    for line in lines:
        handler.emit(entry(line))


def test_the_file_is_made_with_the_first_entry_and_for_its_owner_only(tmp_path: Path) -> None:
    """With the directories on the way."""
    path = tmp_path / "new" / "dir" / "log"
    handler = LogFile(path, is_configured=True)
    assert not path.parent.exists()
    handler.emit(entry("first"))
    assert (path.read_text(encoding="utf-8"), path.stat().st_mode & 0o777) == ("first\n", 0o600)


def test_a_full_file_is_moved_on_and_the_oldest_goes(tmp_path: Path, small: None) -> None:
    """No file is larger than the limit and a line, and no entry that is kept is torn."""
    log_to(tmp_path / "log", *(f"{number:050}" for number in range(30)))
    files = sorted(tmp_path.iterdir())
    assert [path.name for path in files] == ["log.1", "log.2", "log.3"][:KEPT]
    kept = [line for path in reversed(files) for line in path.read_text(encoding="utf-8").splitlines()]
    assert kept == [f"{number:050}" for number in range(30 - len(kept), 30)]
    assert max(path.stat().st_size for path in files) <= 100 + 51


def test_processes_share_a_file_and_lose_no_entry(tmp_path: Path) -> None:
    """Also when it is full again and again: what one writes, another's moving does not lose."""
    writes = (
        "import sys, logging; from pathlib import Path; from modes_actor.cli import log_file\n"
        "log_file.LIMIT, log_file.KEPT = 2000, 1000\n"
        "handler = log_file.LogFile(Path(sys.argv[1]), is_configured=True)\n"
        "for n in range(300): handler.emit(logging.LogRecord('x', 20, 'f', 1, f'{sys.argv[2]}-{n}', (), None))\n"
    )
    children = [subprocess.Popen([*program(writes), str(tmp_path / "log"), str(number)]) for number in range(4)]
    assert [child.wait() for child in children] == [0] * 4
    lines = [line for path in tmp_path.iterdir() for line in path.read_text(encoding="utf-8").splitlines()]
    assert sorted(lines) == sorted(f"{number}-{n}" for number in range(4) for n in range(300))


@pytest.mark.parametrize(("configured", "sentences"), [(True, 1), (False, 0)])
def test_a_file_that_cannot_be_written_costs_one_sentence(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], configured: bool, sentences: int
) -> None:
    """And none if nobody asked for the file."""
    (tmp_path / "file").touch()
    log_to(tmp_path / "file" / "log", "a", "b", "c", configured=configured)
    said = capfd.readouterr().err
    assert said.count("\n") == said.count("cannot be written: ") == sentences


# A server's.


def test_what_is_logged_is_in_the_file_and_on_stderr(tmp_path: Path) -> None:
    """Briefly on stderr, with time and origin in the file."""
    with Process(environment={"HOME": str(tmp_path)}) as process:
        process.send(ping(1))
        assert process.receive() == answer(1)
        process.signal(15)
        assert process.finish().stderr == "modes-actor: INFO: asked to stop: finishing what was received\n"
    [line] = (tmp_path / LOG).read_text(encoding="utf-8").splitlines()
    assert line.endswith(" - modes_actor.cli.serve - INFO - asked to stop: finishing what was received")


def test_a_server_with_nothing_to_say_makes_no_file(tmp_path: Path) -> None:
    """Not even the directory."""
    with Process(environment={"HOME": str(tmp_path)}) as process:
        assert process.finish_input(handshake(), ping(1)).code == 0
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("by", ["flag", "variable", "file"])
def test_a_format_that_is_configured_counts_everywhere(tmp_path: Path, by: str) -> None:
    """JSON lines, on stderr and in the file."""
    config = tmp_path / "config.json"
    config.write_text('{"logging": {"format": "json"}}' if by == "file" else "{}", encoding="utf-8")
    environment = {"HOME": str(tmp_path), "ROO_LOG_FILE": str(tmp_path / "log")}
    if by == "variable":
        environment["ROO_LOG_FORMAT"] = "json"
    flags = ["--log-format", "json"] if by == "flag" else []
    command = (*COMMAND, "--config", str(config), *flags)
    with Process(command, environment=environment) as process:
        process.send(ping(1))
        assert process.receive() == answer(1)
        process.signal(15)
        on_stderr = process.finish().stderr
    in_file = (tmp_path / "log").read_text(encoding="utf-8")
    assert [json.loads(text)["message"] for text in (on_stderr, in_file)] == [
        "asked to stop: finishing what was received"
    ] * 2


def test_a_file_that_is_configured_away_is_not_written(tmp_path: Path) -> None:
    """An empty name means none."""
    with Process((*COMMAND, "--log-file", "", "--log-level", "DEBUG"), environment={"HOME": str(tmp_path)}) as process:
        assert process.finish_input(ping(1)).code == 0
    assert list(tmp_path.iterdir()) == []


def test_a_duration_is_in_milliseconds(caplog: pytest.LogCaptureFixture) -> None:
    """As it says."""
    with caplog.at_level(logging.DEBUG):
        processor._trace(1, "ping", time.perf_counter() - 2000)
    assert re.search(r"request 1: ping, 200\d{4}\.\d{3} ms", caplog.text)


def test_requests_are_told_at_debug_with_id_method_and_duration() -> None:
    """Those that are answered at once, and those that take their time."""
    create = request("c", "tools/call", {"name": "create_task", "arguments": {"mode_slug": "code"}})
    with Process((*COMMAND, "--log-level", "DEBUG")) as process:
        log = process.finish_input(handshake("h"), ping(7), create, request("n", "nope")).stderr
    told = re.findall(r"request (\S+): (\S+), [0-9.]+ ms", log)
    assert sorted(told) == [("'c'", "tools/call"), ("'h'", "initialize"), ("'n'", "nope"), ("7", "ping")]


SECRET = "hunter2"


def call(request_id: int | str, name: str, **arguments: Any) -> Json:
    return request(request_id, "tools/call", {"name": name, "arguments": arguments})


def conversation_with_secrets(validated: str, switched: str, completed: str) -> list[Json]:
    """Every place where a client or its model could put something that is nobody's business.

    Of three sessions, each is asked for once: nobody says in which order a server does what it gets at once.
    """
    unknown = f"sess_{SECRET}{SECRET}"
    uses = itertools.product((validated, unknown), (SECRET, "write_to_file"))
    return [
        call(2, "create_task", mode_slug=f"no-{SECRET}"),
        *(
            call(30 + number, "validate_tool_use", session_id=each, tool_name=tool, arguments={"content": SECRET})
            for number, (each, tool) in enumerate(uses)
        ),
        call(40, "switch_mode", session_id=switched, new_mode_slug="ask", reason=SECRET),
        call(41, "switch_mode", session_id=unknown, new_mode_slug="ask", reason=SECRET),
        call(50, "complete_task", session_id=completed, status="failed", result=SECRET),
        call(51, "complete_task", session_id=unknown, status="failed", result=SECRET),
        call(6, SECRET),
        request("p", "prompts/get", {"name": "code", "arguments": {"task": SECRET}}),
        request(7, "resources/read", {"uri": f"mode://{SECRET}"}),
        request(8, "prompts/get", {"name": SECRET}),
        request(9, f"method/{SECRET}"),
        request(10, "logging/setLevel", {"level": SECRET}),
        {"jsonrpc": "2.0", "method": f"notifications/{SECRET}", "params": {"x": SECRET}},
    ]


@pytest.mark.parametrize("level", ["INFO", "DEBUG"])
def test_the_log_tells_no_words_of_the_conversation_or_the_environment(tmp_path: Path, level: str) -> None:
    """At DEBUG only the names of methods."""
    environment = {"HOME": str(tmp_path), "API_TOKEN": SECRET}
    with Process((*COMMAND, "--log-level", level), environment=environment) as process:
        process.send(handshake())
        process.receive()
        create = {"mode_slug": "code", "initial_message": f"my password is {SECRET}"}
        process.send(*(call(number, "create_task", **create) for number in range(3)))
        created = [process.receive()["result"]["structuredContent"]["session_id"] for _ in range(3)]
        for message in conversation_with_secrets(*created):
            process.send(message)
        process.send_bytes(f'{{"broken": "{SECRET}\n'.encode())
        ended = process.finish_input(ping("last"))
    done = {message.get("id") for message in ended.messages if "result" in message}
    assert done >= {30, 31, 40, 50, "p", "last"}
    path = tmp_path / LOG
    logged = ended.stderr + (path.read_text(encoding="utf-8") if path.exists() else "")
    assert SECRET not in logged.replace(f"method/{SECRET}", "")
    if level == "INFO":
        assert logged == ""


def test_the_default_format_is_the_documented_one() -> None:
    """Tools that read the log depend on it."""
    assert LoggingSection().format == "%(asctime)s - %(name)s - %(levelname)s - %(message)s"
