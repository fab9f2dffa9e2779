"""`modes-actor completion`: what is suggested for which words; and the scripts, in the shells that they are for."""

import json
import os
import shutil
import stat
import subprocess
import sys

import pytest

from modes_actor.cli.arguments import SUMMARIES
from modes_actor.cli.commands.completion import SCRIPTS, lines
from modes_actor.cli.suggestions import Suggestion, Suggestions
from tests.command_line import Shell
from tests.modes_house import ALL_MODES, BUILTIN, GLOBAL_MODES, ROOMODES
from tests.process import PATIENCE

OF_EVERY_COMMAND = ["--help", "--project-root", "--config", "--config-dir", "--log-level", "--json"]


def suggested(shell: Shell, *words: str, to: str = "bash") -> list[str]:
    return shell.run("completion", "suggest", to, "--", *words).lines()


@pytest.fixture
def with_modes(shell: Shell) -> Shell:
    """A project and a person that have modes."""
    shell.mode_file.write_text(ROOMODES, encoding="utf-8")
    (shell.config_dir / "modes.yaml").write_text(GLOBAL_MODES, encoding="utf-8")
    return shell


# What is suggested.


def test_all_commands_are_suggested_first(shell: Shell) -> None:
    """Before anything is typed."""
    assert suggested(shell, "") == list(SUMMARIES)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["mod"], ["modes"]),
        (["nothing-like-it"], []),
        (["nothing-like-it", ""], []),
        (["--json", "mod"], ["modes"]),
        (["--project-root", ".", "mod"], ["modes"]),
        (["--log-level", "D"], ["DEBUG"]),
        (["serve", ""], []),
        (["modes", "s"], ["show"]),
        (["config", ""], ["show", "generate"]),
        (["health", "--era", ""], ["handshake", "stateless", "both"]),
        (["health", "--timeout", ""], []),
        (["health", "--e"], ["--era"]),
        (["health", "--era", "both", "--e"], []),
        (["completion", ""], ["bash", "zsh", "fish"]),
        (["completion", "fish", ""], []),
    ],
)
def test_words_are_suggested_by_what_stands_before_them(shell: Shell, words: list[str], expected: list[str]) -> None:
    """Commands, actions, options and choices, as the parsers know them."""
    assert suggested(shell, *words) == expected


def test_options_are_suggested_once_a_dash_is_typed(shell: Shell) -> None:
    """The command's own, then those of every command."""
    assert sorted(suggested(shell, "modes", "show", "-")) == sorted([*OF_EVERY_COMMAND, "--prompt"])


def test_an_option_is_suggested_again_only_where_that_means_something(shell: Shell) -> None:
    """`--client` may be there several times."""
    words = ["install", "--client", "zed", "--force", "--"]
    assert ("--client" in suggested(shell, *words), "--force" in suggested(shell, *words)) == (True, False)


@pytest.mark.parametrize(
    "words", [["modes", "show", ""], ["explain", "--mode", ""], ["new", "--extends", ""], ["sessions", "--mode", ""]]
)
def test_modes_in_force_are_suggested_where_one_is_wanted(with_modes: Shell, words: list[str]) -> None:
    """The project's and the person's, too."""
    assert suggested(with_modes, *words) == ALL_MODES


def test_a_new_mode_is_not_one_that_is_there(with_modes: Shell) -> None:
    """Whatever was suggested would be wrong."""
    assert suggested(with_modes, "new", "") == []


@pytest.mark.parametrize("option", [["--project-root", "{}"], ["--project-root={}"], ["--project-root", "=", "'{}'"]])
@pytest.mark.parametrize("before", [True, False])
def test_options_that_are_typed_already_count(with_modes: Shell, option: list[str], before: bool) -> None:
    """On either side of the command, and in all the ways in which bash hands them over."""
    typed = [word.format(with_modes.home) for word in option]
    words = [*typed, "modes", "show", ""] if before else ["modes", "show", *typed, ""]
    assert suggested(with_modes, *words) == [*BUILTIN, "mine"]


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        (["--config", ""], ":files"),
        (["check", "some"], ":files"),
        (["--project-root="], ":directories"),
        (["health", "--", ""], ":commands"),
        (["health", "--", "npx", ""], ":files"),
    ],
)
def test_files_directories_and_commands_are_left_to_the_shell(shell: Shell, words: list[str], kind: str) -> None:
    """It knows how to."""
    assert suggested(shell, *words) == [kind]


def test_sessions_are_suggested_where_one_is_wanted(shell: Shell) -> None:
    """And the store is left alone."""
    (session_id,) = make_session(shell)
    before = sorted(shell.home.rglob("*"))
    for action in ("show", "close", "export"):
        assert suggested(shell, "sessions", action, "") == [session_id]
    assert suggested(shell, "sessions", "show", "", to="fish") == [f"{session_id}\tcode, active"]
    assert sorted(shell.home.rglob("*")) == before


def make_session(shell: Shell) -> list[str]:
    """The IDs of the sessions there are, after one was made."""
    meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
    params = {"name": "create_task", "arguments": {"mode_slug": "code"}, "_meta": meta}
    request = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
    subprocess.run(
        [sys.executable, "-m", "modes_actor"],
        input=request.encode() + b"\n",
        env=shell.environment,
        cwd=shell.project,
        capture_output=True,
        timeout=PATIENCE,
        check=True,
    )
    return [row["session_id"] for row in shell.run("sessions", "--json").json()]


def test_suggesting_makes_nothing(shell: Shell) -> None:
    """Not even where sessions would be looked for."""
    before = sorted(shell.home.rglob("*"))
    assert suggested(shell, "sessions", "show", "") == []
    assert sorted(shell.home.rglob("*")) == before


@pytest.mark.parametrize(
    "words",
    [
        ["suggest"],
        ["suggest", "bash"],
        ["suggest", "bash", "--", "--config", "/no/such/file", "modes", "show", ""],
        ["suggest", "bash", "--", "--log-level", "LOUD", "modes", "show", ""],
        ["suggest", "bash", "--", "modes", "show", "'un"],
    ],
)
def test_what_is_wrong_is_kept_from_who_presses_tab(shell: Shell, words: list[str]) -> None:
    """Nothing is said, and the exit code is 0."""
    ran = shell.run("completion", *words)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == "" or words == ["suggest", "bash"]


def test_broken_mode_files_are_no_reason_to_complain(shell: Shell) -> None:
    """Nor to suggest nothing."""
    shell.mode_file.write_text("customModes: [", encoding="utf-8")
    assert suggested(shell, "modes", "show", "") == BUILTIN


def test_a_store_that_cannot_be_read_is_no_reason_to_complain(shell: Shell) -> None:
    """It is merely not known which sessions there are."""
    store = shell.config_dir / "mcp_sessions" / "sessions.db"
    store.parent.mkdir()
    store.write_bytes(b"This is no database. " * 100)
    assert suggested(shell, "sessions", "show", "") == []
    assert [each.name for each in store.parent.iterdir()] == ["sessions.db"]


def test_zsh_is_told_where_a_value_ends() -> None:
    """At the first colon that no backslash is before."""
    found = Suggestions([Suggestion("a:b\\c", "what: it is"), Suggestion("d")])
    assert lines(found, "zsh", "") == ["a\\:b\\\\c:what: it is", "d"]


def test_every_command_can_be_completed(shell: Shell) -> None:
    """Each has a parser that can be asked, and so has each of its actions."""
    for name in SUMMARIES.keys() - {"serve"}:
        for words in ([name], *([name, action] for action in suggested(shell, name, "") if action[0] != ":")):
            assert set(OF_EVERY_COMMAND) <= set(suggested(shell, *words, "--")), words


def test_suggestions_are_told_to_programs(shell: Shell) -> None:
    """As one JSON value."""
    assert shell.run("completion", "--json", "suggest", "bash", "--", "mod").json() == {
        "found": [{"value": "modes", "description": SUMMARIES["modes"]}],
        "kind": None,
        "prefix": "",
    }


# The command itself.


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_is_printed_as_it_is(shell: Shell, name: str) -> None:
    """Or told to programs."""
    assert shell.run("completion", name).out == SCRIPTS[name]
    assert shell.run("completion", name, "--json").json() == {"shell": name, "script": SCRIPTS[name]}


@pytest.mark.parametrize("words", [["tcsh"], [], ["bash", "zsh"]])
def test_there_is_one_script_for_each_of_three_shells(shell: Shell, words: list[str]) -> None:
    """Everything else is wrong usage."""
    ran = shell.run("completion", *words)
    assert (ran.code, ran.out) == (2, "")


def test_the_help_tells_how_to_install_and_hides_what_is_for_scripts(shell: Shell) -> None:
    """One line for each shell."""
    told = shell.run("completion", "--help").out
    assert [f"modes-actor completion {name}" in told for name in SCRIPTS] == [True, True, True]
    assert ("suggest" in told, "words" in told) == (False, False)


# In the shells.


@pytest.fixture
def on_path(with_modes: Shell) -> Shell:
    """A shell whose PATH has the command, and a project with a file and a directory of its own."""
    program = with_modes.home / "bin" / "modes-actor"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m modes_actor "$@"\n', encoding="utf-8")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    with_modes.environment["PATH"] = f"{program.parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    (with_modes.project / "settings.json").write_text("{}", encoding="utf-8")
    (with_modes.project / "sources").mkdir()
    return with_modes


def run_in(name: str, script: str, shell: Shell, options: tuple[str, ...]) -> list[str]:
    """What a script, which finds the completions in `$completions`, says in a shell of that name."""
    program = shutil.which(name)
    if program is None:
        pytest.skip(f"{name} is not installed here")
    completions = shell.home / f"completions.{name}"
    completions.write_text(SCRIPTS[name], encoding="utf-8")
    ran = subprocess.run(
        [program, *options, "-c", script],
        env={**shell.environment, "completions": str(completions)},
        cwd=shell.project,
        capture_output=True,
        timeout=PATIENCE,
        check=False,
    )
    assert (ran.returncode, ran.stderr.decode()) == (0, "")
    return ran.stdout.decode().splitlines()


BASH = """
source "$completions"
compopt() { echo "compopt $*"; }
COMP_WORDS=(modes-actor %s)
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
_modes_actor modes-actor
((${#COMPREPLY[@]})) && printf '%%s\\n' "${COMPREPLY[@]}"
complete -p modes-actor
"""
"""As bash calls the function. Its `compopt`, which works only while completing, is replaced by one that tells."""


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("mod", ["modes"]),
        ("modes show d", ["debug", "docs"]),
        ("explain --mode = doc", ["docs"]),
        ("explain --mode =", ALL_MODES),
        ("--config ''", ["compopt -o default"]),
        ("--project-root ''", ["compopt -o dirnames"]),
        (r"--project-root '\"../home\"' modes show m", ["mine"]),
        ("health -- modes-acto", ["modes-actor"]),
    ],
)
def test_bash_completes(on_path: Shell, words: str, expected: list[str]) -> None:
    """With the words as it cuts them, quotes and all."""
    registered = "complete -F _modes_actor modes-actor"
    words = words.replace('\\"', '"')
    assert run_in("bash", BASH % words, on_path, ("--norc", "--noprofile")) == [*expected, registered]


ZSH = """
compdef() { print -- "compdef $*"; }
_describe() { print -l -- ${(P)4}; }
_files() { print -- "_files $*"; }
_command_names() { print -- _command_names; }
compset() { [[ $PREFIX == ${~2}* ]] && PREFIX=${PREFIX#${~2}}; }
source "$completions"
words=(modes-actor %s)
CURRENT=$#words
PREFIX=$words[-1]
_modes-actor
"""
"""As zsh's completion calls the function. What works only while completing is replaced by what tells."""


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("mod", [f"modes:{SUMMARIES['modes']}"]),
        ("modes show d", ["debug:🪲 Debug", "docs:📝 Docs"]),
        ("explain --mode=doc", ["docs:📝 Docs"]),
        ("--config=se", ["_files "]),
        ("--project-root ''", ["_files -/"]),
        ("--project-root '\"../home\"' modes show m", ["mine:Mine"]),
        ("health -- ''", ["_command_names"]),
        ("new ''", []),
    ],
)
def test_zsh_completes(on_path: Shell, words: str, expected: list[str]) -> None:
    """With descriptions."""
    assert run_in("zsh", ZSH % words, on_path, ("-f",)) == ["compdef _modes-actor modes-actor", *expected]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("modes-actor mod", [f"modes\t{SUMMARIES['modes']}"]),
        ("modes-actor modes show d", ["debug\t🪲 Debug", "docs\t📝 Docs"]),
        ("modes-actor explain --mode=doc", ["--mode=docs\t📝 Docs"]),
        ("modes-actor --config se", ["settings.json"]),
        ("modes-actor --config=se", ["--config=settings.json"]),
        ("modes-actor --project-root s", ["sources/"]),
        ('modes-actor --project-root "../home" modes show m', ["mine\tMine"]),
        ("modes-actor new ", []),
        ("bin/modes-actor mod", []),
    ],
)
def test_fish_completes(on_path: Shell, line: str, expected: list[str]) -> None:
    """With descriptions, and the paths that it finds itself."""
    script = f"source $completions; complete -C '{line}'"
    assert run_in("fish", script, on_path, ("--no-config",)) == expected
