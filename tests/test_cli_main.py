"""What all commands have in common: how they are found, what they say of mistakes, and their exit codes."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from modes_actor.cli import arguments
from modes_actor.cli.arguments import SUMMARIES, load_command
from modes_actor.cli.commands import modes
from tests.command_line import Shell
from tests.kept_sessions import keep
from tests.process import COMMAND, ROOT

EVERY_COMMAND = [
    f"{name} {action}".rstrip() for name in SUMMARIES if name != "serve" for action in ("", *load_command(name).actions)
]


@pytest.mark.parametrize("name", EVERY_COMMAND)
def test_every_command_has_a_help(shell: Shell, name: str) -> None:
    """With the options that all have, or the actions to choose from."""
    command = load_command(name)
    ran = shell.run(*name.split(), "--help")
    if command.run is None:
        assert ran.code == 2
        assert all(f"{name} {action}" in ran.err for action in command.actions)
    else:
        assert (ran.code, ran.err) == (0, "")
        assert ran.out.startswith(f"usage: modes-actor {name}")
        assert " ".join(command.description.split()) in " ".join(ran.out.split())
        options = ("--json ", "--project-root DIR", "--config FILE", "--config-dir DIR", "--log-level LEVEL")
        assert [option for option in options if f"\n  {option}" not in ran.out] == []


def test_the_main_help_names_every_command(shell: Shell) -> None:
    """With a line on each."""
    shown = shell.run("--help").out
    assert all(f"  {name} " in shown and summary in shown for name, summary in SUMMARIES.items())


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("sesions", ": there is no command `sesions`: did you mean `sessions`?"),
        ("frobnicate", f": there is no command `frobnicate`: there are {', '.join(SUMMARIES)}"),
        ("modes sho", ": there is no `modes sho`: did you mean `modes show`?"),
        ("config", ": config does nothing alone: there are config show, config generate"),
        ("serve --log-level", ": serve takes no `--log-level`: options go before it"),
        ("--json", ": --json goes with a command"),
        ("--jsno modes", ": `--jsno` means nothing here: did you mean `--json`?"),
        ("modes --jsno", " modes: `--jsno` means nothing here: did you mean `--json`?"),
        ("modes show", " modes show: the following arguments are required: SLUG"),
        ("completion", " completion: the following arguments are required: SHELL"),
        ("config show extra", " config show: `extra` means nothing here"),
    ],
)
def test_wrong_usage_is_one_line(shell: Shell, words: str, sentence: str) -> None:
    """What is wrong, what was probably meant, and where to read on."""
    ran = shell.run(*words.split())
    command = sentence.partition(":")[0]
    assert ran == (2, "", f"modes-actor{sentence} (`modes-actor{command} --help` tells more)\n")


def test_json_may_be_asked_for_on_either_side(shell: Shell) -> None:
    """As every other option."""
    assert shell.run("--json", "modes", "show", "code").json() == shell.run("modes", "show", "code", "--json").json()


SAMPLES = {
    "install": "--client vscode --dry-run",
    "uninstall": "--client vscode --dry-run",
    "modes show": "code",
    "new": "docs --dry-run",
    "explain": "read_file",
    "sessions show": "{session}",
    "sessions close": "{session}",
    "completion": "bash",
}
"""What commands need to be told that do nothing alone."""


@pytest.mark.parametrize("name", [name for name in EVERY_COMMAND if name not in {"config", "health supervise"}])
def test_the_answer_of_every_command_can_be_one_json_value(shell: Shell, name: str) -> None:
    """`config` alone does nothing; `health supervise` speaks MCP, and refuses the option."""
    session = keep(shell)
    words = SAMPLES.get(name, "").format(session=session.session_id).split()
    ran = shell.run(*name.split(), *words, "--json")
    assert (ran.code, ran.err) in ((0, ""), (1, ""))
    assert isinstance(json.loads(ran.out), dict | list)


def test_an_unusable_configuration_stops_any_command(shell: Shell) -> None:
    """With its mistakes, a line each."""
    (shell.project / "c.json").write_text('{"a": 1, "b": 2}', encoding="utf-8")
    ran = shell.run("modes", "--config", "c.json")
    assert (ran.code, ran.out, [line.split()[1] for line in ran.err.splitlines()]) == (
        2,
        "",
        ["c.json:1:", "c.json:1:"],
    )


def test_a_bug_is_one_line_unless_it_is_asked_for(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """No traceback, but how to get one."""

    def broken(*_: object) -> int:
        raise KeyError("lost")

    command = modes.COMMAND
    monkeypatch.setattr(arguments, "load_command", lambda name: command)
    monkeypatch.setattr("modes_actor.cli.command.load_command", lambda name: _with_run(broken))
    ran = shell.run("modes")
    assert ran == (
        1,
        "",
        "modes-actor: modes failed unexpectedly (KeyError: 'lost'); --log-level DEBUG shows where\n",
    )
    with pytest.raises(KeyError):
        shell.run("modes", "--log-level", "DEBUG")


def _with_run(run: object) -> object:
    from msgspec import structs

    return structs.replace(modes.COMMAND, run=run)


def test_a_working_directory_that_is_no_more_is_one_line(shell: Shell, tmp_path: Path) -> None:
    """And no matter where the project is named."""
    gone = f"cd {tmp_path}; mkdir gone; cd gone; rmdir ../gone; exec {sys.executable} -P -m modes_actor"
    environment = {"HOME": str(tmp_path), "PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)}

    def run(words: str) -> tuple[int, str]:
        ran = subprocess.run(
            ["bash", "-c", f"{gone} {words}"],
            env=environment,
            input="",
            capture_output=True,
            encoding="utf-8",
            check=False,
        )
        return ran.returncode, ran.stderr

    sentence = (
        "modes-actor: the working directory is no more (No such file or directory): start in another, or name the "
        "project with --project-root\n"
    )
    assert [run("serve"), run("modes"), run(f"--project-root {shell.project}")] == [
        (2, sentence),
        (2, sentence),
        (0, ""),
    ]


def in_a_shell(words: str, tmp_path: Path) -> subprocess.CompletedProcess[str]:
    command = f"{sys.executable} -m modes_actor {words}"
    return subprocess.run(
        ["bash", "-c", command],
        cwd=Path(__file__).parent.parent,
        env={"HOME": str(tmp_path), "PATH": os.environ["PATH"]},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )


@pytest.mark.parametrize(
    ("redirection", "sentence"),
    [
        (">&-", "stdout is closed, so there is nowhere to answer"),
        ("> /dev/full", "modes could not be done: No space left on device"),
    ],
)
def test_an_answer_that_cannot_be_written_is_a_failure(tmp_path: Path, redirection: str, sentence: str) -> None:
    """Of one line."""
    ran = in_a_shell(f"modes {redirection}", tmp_path)
    assert (ran.returncode, ran.stderr) == (1, f"modes-actor: {sentence}\n")


def test_a_reader_who_has_seen_enough_is_no_failure(tmp_path: Path) -> None:
    """As `head` has."""
    ran = in_a_shell("config generate | head -1; echo ${PIPESTATUS[0]} >&2", tmp_path)
    assert ran.stdout.startswith("// What can be set")
    assert ran.stderr in ("0\n", "141\n")  # whether the pipe was closed in time is the system's business


def test_a_command_loads_no_server_and_no_table_for_a_pipe(tmp_path: Path) -> None:
    """What only terminals, other commands or serving need stays out."""
    report = (
        "import sys; from modes_actor.cli import main; main(['config', 'show']); print(*sys.modules, file=sys.stderr)"
    )
    ran = subprocess.run(
        [COMMAND[0], "-c", report],
        env={"HOME": str(tmp_path), "PATH": os.environ["PATH"]},
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    loaded = set(ran.stderr.split())
    assert loaded & {"rich", "sqlite3", "modes_actor.server", "modes_actor.cli.commands.install"} == set()
