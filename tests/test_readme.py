"""The README is true: its commands give the output it shows, its examples work, the files it names exist."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from modes_actor.modes.catalog import ModeCatalog, builtin_modes
from modes_actor.modes.decisions import DecisionContext, Denied, decide
from modes_actor.modes.reading import read_modes

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)

NOT_RUN = ("./scripts/test", ".venv/bin/python scripts/bench")
"""The commands that would run this test again, or take minutes."""


def blocks(language: str) -> list[str]:
    return [text for found, text in BLOCKS if found == language]


def test_a_command_gives_the_output_that_is_shown_below_it(tmp_path: Path) -> None:
    """Each block of commands that can be run here is followed by what it prints."""
    commands = [
        (text, BLOCKS[place + 1][1])
        for place, (language, text) in enumerate(BLOCKS)
        if language == "sh" and not text.startswith(NOT_RUN)
    ]
    assert commands
    for command, shown in commands:
        here = command.replace(".venv/bin/modes-actor", f"{sys.executable} -m modes_actor")
        run = subprocess.run(
            ["bash", "-c", here], cwd=ROOT, env={"HOME": str(tmp_path)}, capture_output=True, check=True
        )
        assert shown == run.stdout.decode()


def test_the_mode_file_that_is_shown_loads_without_a_problem() -> None:
    """All it says is understood."""
    [example] = blocks("yaml")
    found = read_modes(example, file=".roomodes", source="project")
    assert ([mode.slug for mode in found.modes], found.problems) == (["docs"], [])


def test_the_denial_that_is_shown_is_the_one_that_is_given(tmp_path: Path) -> None:
    """Word for word, but for where the line is broken."""
    catalog = ModeCatalog(builtin_modes())
    context = DecisionContext(catalog, str(tmp_path))
    denied = decide(catalog.by_slug["architect"], "write_to_file", {"path": "src/app.py"}, context)
    assert isinstance(denied, Denied)
    assert denied.message in [" ".join(text.split()) for text in blocks("")]


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`((?:tests|scripts)/[\w.]+)`", README))))
def test_a_file_that_is_named_exists(name: str) -> None:
    """A proof that is not there proves nothing."""
    assert (ROOT / name).is_file()


@pytest.mark.parametrize("room", re.findall(r"^\| \d \| `([\w.]+)/?` \|", README, re.MULTILINE))
def test_a_room_that_is_named_exists(room: str) -> None:
    """The layout shows the architecture."""
    assert (ROOT / "modes_actor" / room).exists()
