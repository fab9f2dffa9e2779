"""The README is true: its commands give the output it shows, its examples work, what it names exists.

Its blocks are run from top to bottom, as a reader would: in a project of their own, with a home of their own.
"""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from modes_actor.cli.arguments import SUMMARIES
from modes_actor.cli.editors.clients import CLIENTS
from modes_actor.config import Config
from modes_actor.config.settings import CONFIG_VARIABLE, FILE_NAME, SETTINGS, value_of
from modes_actor.modes.catalog import ModeCatalog, builtin_modes
from modes_actor.modes.decisions import DecisionContext, Denied, decide
from modes_actor.modes.reading import read_modes
from tests.process import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")

NOT_RUN: Final = ("./scripts/test", ".venv/bin/python scripts/bench")
"""The commands that would run this test again, or take minutes."""
RUNS: Final = {"sh": ("bash", "-c"), "python": (sys.executable, "-c")}
SHOWN_HOME: Final = "/home/you"


class Block(NamedTuple):
    language: str
    text: str
    output: str | None
    """What the README shows below it."""


def blocks() -> list[Block]:
    found = re.findall(r"^```(\w*)\n(.*?)^```$(\n^```text\n(.*?)^```$)?", README, re.DOTALL | re.MULTILINE)
    return [Block(language, text, output if shown else None) for language, text, shown, output in found]


BLOCKS: Final = blocks()


def of(language: str) -> list[str]:
    return [block.text for block in BLOCKS if block.language == language]


class Reader:
    """Who follows the README: a project `shop`, a home, and the command on the PATH."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._project = home / "shop"
        self._bin = home / ".bin"
        for made in (self._project / ".git", self._bin):
            made.mkdir(parents=True)
        command = self._bin / "modes-actor"
        command.write_text(f'#!/bin/sh\nexec {sys.executable} -m modes_actor "$@"\n', encoding="utf-8")
        command.chmod(0o755)

    def run(self, block: Block) -> str:
        """What the block prints, with paths as the README has them."""
        here = ROOT if block.text.startswith("./scripts") else self._project
        environment = {
            "HOME": str(self._home),
            "PATH": f"{self._bin}:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "PYTHONUTF8": "1",
        }
        ran = subprocess.run(
            [*RUNS[block.language], block.text],
            cwd=here,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            check=block.output is None,
        )
        return ran.stdout.replace(str(self._home), SHOWN_HOME)


def test_the_first_two_blocks_are_the_two_commands() -> None:
    """From a clone to a conversation, and to the proof."""
    assert [block.text for block in BLOCKS[:2]] == ["./scripts/demo\n", "./scripts/test\n"]


def test_every_block_gives_the_output_that_is_shown_below_it(tmp_path: Path) -> None:
    """From top to bottom; one that shows no output at least succeeds."""
    reader = Reader(tmp_path)
    runnable = [block for block in BLOCKS if block.language in RUNS and not block.text.startswith(NOT_RUN)]
    assert len(runnable) >= 10
    for block in runnable:
        printed = reader.run(block)
        if block.output is not None:
            assert printed == block.output, block.text


def test_the_mode_file_that_is_shown_loads_without_a_problem() -> None:
    """All it says is understood."""
    [example] = of("yaml")
    found = read_modes(example, file=".roomodes", source="project")
    assert ([mode.slug for mode in found.modes], found.problems) == (["docs"], [])


def test_the_denial_that_is_shown_is_the_one_that_is_given(tmp_path: Path) -> None:
    """Word for word, but for where the line is broken."""
    catalog = ModeCatalog(builtin_modes())
    context = DecisionContext(catalog, str(tmp_path))
    denied = decide(catalog.by_slug["architect"], "write_to_file", {"path": "src/app.py"}, context)
    assert isinstance(denied, Denied)
    assert denied.message in [" ".join(text.split()) for text in of("")]


def test_every_command_is_in_the_table() -> None:
    """And no other."""
    table = README[README.index("## Commands") : README.index("## Configuration")]
    rows = re.findall(r"^\| (.*?) \| ", table, re.MULTILINE)[1:]
    named = {word for row in rows for quoted in re.findall(r"`([^`]+)`", row) for word in quoted.split()[:1]}
    assert named - {"modes-actor", "close", "export", "zsh", "fish"} == set(SUMMARIES)


@pytest.mark.parametrize("client", CLIENTS)
def test_every_client_is_named(client: str) -> None:
    """As `install` wants it."""
    assert f"`{client}`" in README


def test_the_table_of_settings_is_the_one_in_force() -> None:
    """Names, defaults, variables, flags."""
    rows = [
        f"| `{key}` | {_default(key)} | `{setting.variable}` | {f'`{setting.flag}`' if setting.flag else ''} |"
        for key, setting in SETTINGS.items()
    ]
    table = README[README.index("| setting | default |") :].split("\n\n")[0]
    assert [re.sub(r" +", " ", row) for row in rows] == [re.sub(r" +", " ", row) for row in table.splitlines()[2:]]


def _default(key: str) -> str:
    value = value_of(Config(), key)
    return "none" if value is None else f"`{str(value).lower() if isinstance(value, bool) else value}`"


def test_the_places_of_the_configuration_are_the_right_ones() -> None:
    """The variable and the file that name it."""
    assert f"`{CONFIG_VARIABLE}`" in README
    assert f"`~/.roo-code/{FILE_NAME}`" in README


@pytest.mark.parametrize("name", sorted(set(re.findall(r"\b((?:tests|scripts)/[\w.]+)", README))))
def test_a_file_that_is_named_exists(name: str) -> None:
    """A proof that is not there proves nothing."""
    assert (ROOT / name).is_file()


@pytest.mark.parametrize("row", re.findall(r"^\| \d+ \| (`[^|]+`) \|", README, re.MULTILINE))
def test_a_room_that_is_named_exists(row: str) -> None:
    """The layout shows the architecture."""
    for room in re.findall(r"`([\w./]+)`", row):
        assert (ROOT / "modes_actor" / room).exists()


@pytest.mark.parametrize("path", re.findall(r"`((?:actor|wire|surface|modes|cli)/\w+\.py|server\.py)`", README))
def test_a_module_that_is_named_exists(path: str) -> None:
    """Whoever follows the way of a request finds each step."""
    assert (ROOT / "modes_actor" / path).is_file()
