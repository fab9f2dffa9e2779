"""The command line: what it says to a person, with which code it ends, and what it loads before it serves."""

import os
from pathlib import Path
from subprocess import DEVNULL

import pytest

import modes_actor
from tests.process import COMMAND, Process, answer, handshake, ping, program

REPORTS_ITS_MODULES = """
import os, sys
started_with = set(sys.modules)
from modes_actor.cli import main
code = main([])
with open(os.environ["MODULES"], "w") as file:
    file.write("\\n".join(sorted(set(sys.modules) - started_with)))
raise SystemExit(code)
"""

NOT_NEEDED_TO_ANSWER_A_PING = {
    # Families of methods that nobody asked for, and what only they need.
    "modes_actor.actor.asking",
    "modes_actor.surface.completion",
    "modes_actor.surface.logging",
    "modes_actor.surface.mode_prompts",
    "modes_actor.surface.mode_resources",
    "modes_actor.surface.mode_tools",
    "modes_actor.surface.pagination",
    "modes_actor.surface.prompts",
    "modes_actor.surface.resources",
    "modes_actor.surface.tools",
    "modes_actor.wire.client_features",
    "modes_actor.wire.completion",
    "modes_actor.wire.content",
    "modes_actor.wire.prompts",
    "modes_actor.wire.resources",
    "modes_actor.wire.tools",
    # Large parts of the standard library that are easily drawn in.
    "argparse",
    "asyncio",
    "concurrent.futures",
    "email",
    "http",
    "importlib.metadata",
    "json",
    "logging.config",
    "multiprocessing",
    "sqlite3",
    "tomllib",
    "unittest",
    "urllib.request",
    "xml",
    # What only commands, mode files or patterns need.
    "regex",
    "rich",
    "yaml",
    # What only the tests have.
    "hypothesis",
    "jsonschema_rs",
    "mcp",
    "pytest",
    "tests",
    "trio.testing",
}
ROOMS_THAT_SERVE = {"actor", "cli", "config", "server", "surface", "wire"}
CLI_THAT_SERVES = {
    f"modes_actor.cli.{name}" for name in ("command_line", "log_file", "logs", "printable", "serve", "stderr")
}
"""No subcommand, and nothing that only subcommands use."""


def refused(*arguments: str, environment: dict[str, str] | None = None) -> str:
    """Start the command so, and return the one line with which it refuses to serve."""
    with Process((*COMMAND, *arguments), stdin=DEVNULL, environment=environment) as process:
        code, messages, log = process.finish()
    assert (code, messages, log.count("\n")) == (2, [], 1), log
    assert log.startswith("modes-actor: ")
    return log.removeprefix("modes-actor: ").rstrip("\n")


def test_the_version_is_told() -> None:
    """On stdout: whoever asks for it is no client."""
    with Process((*COMMAND, "--version")) as process:
        assert process.wire.rest() == f"modes-actor {modes_actor.__version__}\n".encode()
        assert process.finish() == (0, [], "")


def test_help_names_every_option() -> None:
    """It is a person's first stop."""
    with Process((*COMMAND, "--help")) as process:
        shown = process.wire.rest().decode()
        assert process.finish() == (0, [], "")
    options = ["--project-root", "--config", "--log-level", "--version"]
    assert [option for option in options if option in shown] == options


@pytest.mark.parametrize("argument", ["--no-such-option", "no-such-command"])
def test_an_unknown_argument_is_refused(argument: str) -> None:
    """In one line, with the name of what was not understood."""
    with Process((*COMMAND, argument)) as process:
        code, messages, log = process.finish()
    assert (code, messages) == (2, [])
    assert log.startswith("modes-actor: ")
    assert (log.count("\n"), argument in log) == (1, True)


def test_an_unknown_log_level_is_refused() -> None:
    """The levels there are, are named."""
    assert refused("--log-level", "LOUD") == (
        "--log-level is 'LOUD', but must be one of DEBUG, INFO, WARNING, ERROR, CRITICAL"
    )


def test_an_unknown_log_level_in_the_environment_is_refused() -> None:
    """The variable is named: a person would look for it among the arguments."""
    assert refused(environment={"ROO_LOG_LEVEL": "LOUD"}).startswith("ROO_LOG_LEVEL is 'LOUD'")


@pytest.mark.parametrize("level", ["DEBUG", "warning"])
def test_a_log_level_of_either_case_is_taken(level: str) -> None:
    """Served as ever; at `DEBUG` the log may say more."""
    with Process((*COMMAND, "--log-level", level)) as process:
        assert process.finish_input(ping(1))[:2] == (0, [answer(1)])


def test_a_missing_configuration_file_is_refused(tmp_path: Path) -> None:
    """A file that was asked for and is not there is a mistake, not a default."""
    path = tmp_path / "missing.json"
    expected = f"{path}: the configuration file cannot be read: No such file or directory"
    assert [refused("--config", os.fspath(path)), refused(environment={"ROO_CONFIG": os.fspath(path)})] == [
        expected
    ] * 2


def test_each_mistake_of_a_configuration_file_is_a_line_of_its_own(tmp_path: Path) -> None:
    """A person mends them in one go."""
    path = tmp_path / "config.json"
    path.write_text('{\n"sesions": {},\n"limits": {"max_line_bytes": "many"}\n}', encoding="utf-8")
    with Process((*COMMAND, "--config", os.fspath(path)), stdin=DEVNULL) as process:
        code, messages, log = process.finish()
    assert (code, messages, log.splitlines()) == (
        2,
        [],
        [
            f"modes-actor: {path}:2: sesions is not a setting; did you mean sessions?",
            f"modes-actor: {path}:3: limits.max_line_bytes is 'many', but must be a whole number, at least 1",
        ],
    )


@pytest.mark.parametrize(
    ("given", "why"), [("missing", "there is no such directory"), ("file", "that is not a directory")]
)
def test_a_project_root_that_is_no_directory_is_refused(tmp_path: Path, given: str, why: str) -> None:
    """By the flag or by the environment, which is named."""
    (tmp_path / "file").touch()
    path = os.fspath(tmp_path / given)
    found = [refused("--project-root", path), refused(environment={"ROO_PROJECT_ROOT": path})]
    assert found == [f"{name} is '{path}', but {why}" for name in ("--project-root", "ROO_PROJECT_ROOT")]


def test_a_project_root_that_is_a_directory_is_served(tmp_path: Path) -> None:
    """The flag wins over the environment."""
    environment = {"ROO_PROJECT_ROOT": os.fspath(tmp_path / "missing")}
    with Process((*COMMAND, "--project-root", os.fspath(tmp_path)), environment=environment) as process:
        assert process.finish_input(ping(1)) == (0, [answer(1)], "")


def test_serving_loads_only_what_the_first_answers_need(tmp_path: Path) -> None:
    """Every editor window pays for what is loaded before the first answer."""
    report = tmp_path / "modules"
    with Process(program(REPORTS_ITS_MODULES), environment={"MODULES": os.fspath(report)}) as process:
        code, messages, log = process.finish_input(handshake(), ping(1))
    assert (code, messages[1:], log) == (0, [answer(1)], "")
    loaded = set(report.read_text(encoding="utf-8").splitlines())
    assert loaded >= {"modes_actor.server", "modes_actor.surface.lifecycle", "msgspec", "trio"}
    assert loaded & NOT_NEEDED_TO_ANSWER_A_PING == set()
    assert {name.split(".")[1] for name in loaded if name.startswith("modes_actor.")} == ROOMS_THAT_SERVE
    assert {name for name in loaded if name.startswith("modes_actor.cli.")} - CLI_THAT_SERVES == set()


def test_nothing_is_collected_while_modules_load() -> None:
    """They stay, so looking for garbage among them takes time for nothing; afterwards garbage is collected again."""
    source = """
import gc, sys
from modes_actor.cli import main
early = []
gc.callbacks.append(lambda *_: early.append("trio" in sys.modules and "modes_actor.cli.serve" not in sys.modules))
code = main([])
gc.collect()
print(any(early), len(early) > 0, gc.isenabled(), gc.get_freeze_count() > 1000, file=sys.stderr)
raise SystemExit(code)
"""
    with Process(program(source), stdin=DEVNULL) as process:
        assert process.finish() == (0, [], "False True True True\n")


def test_the_version_is_told_without_loading_a_server(tmp_path: Path) -> None:
    """Neither Trio nor the protocol has a part in it."""
    report = tmp_path / "modules"
    source = REPORTS_ITS_MODULES.replace(
        "code = main([])", 'try: main(["--version"])\nexcept SystemExit as e: code = e.code'
    )
    with Process(program(source), environment={"MODULES": os.fspath(report)}) as process:
        process.wire.rest()
        assert process.finish() == (0, [], "")
    loaded = set(report.read_text(encoding="utf-8").splitlines())
    assert loaded & {"trio", "modes_actor.server", "modes_actor.wire"} == set()
