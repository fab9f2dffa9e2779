"""Setting up: it shows how far it is, happens once, and needs no network afterwards. CI does the real thing first.

Here Python and pip are stand-ins that note each call: what is tested is the script around them.
"""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.process import ROOT

if sys.platform == "win32" or shutil.which("bash") is None:
    pytest.skip("the scripts are bash's", allow_module_level=True)

PYTHON = """#!/bin/bash
case "$*" in
    --version) echo "Python 3.12.0" ;;
    "-m venv"*) mkdir -p .venv/bin; cp "$0" .venv/bin/python; echo "$PWD/.venv" >.venv/bin/activate ;;
    "-m pip"*)
        echo "$*" >>calls
        [ -e offline ] && { echo "no network"; exit 1; }
        printf '%s\\n' "Collecting trio>=1" "Collecting msgspec" "Installing collected packages: both" ;;
esac
"""


class Clone:
    """A project of nothing but the script, in which it is sourced."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        (directory / "scripts").mkdir(parents=True)
        shutil.copy(ROOT / "scripts" / "environment", directory / "scripts")
        (directory / "pyproject.toml").write_text("[project]\n", encoding="utf-8")
        python = directory / "python"
        python.write_text(PYTHON, encoding="utf-8")
        python.chmod(0o755)

    def set_up(self, needs: str = "run", **environment: str) -> tuple[int, list[str]]:
        """The exit code, and what is said, without the time it took."""
        ran = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", f"needs={needs}; . scripts/environment; pwd >here"],
            cwd=self.directory,
            env={"PATH": "/usr/local/bin:/usr/bin:/bin", "PYTHON": str(self.directory / "python"), **environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            check=False,
        )
        lines = ["Done." if line.startswith("Done in ") else line for line in ran.stderr.splitlines()]
        return ran.returncode, lines

    def installs(self) -> int:
        calls = self.directory / "calls"
        return len(calls.read_text(encoding="utf-8").splitlines()) if calls.exists() else 0


@pytest.fixture
def clone(tmp_path: Path) -> Clone:
    return Clone(tmp_path / "clone")


SET_UP = (
    0,
    ["Setting up .venv with Python 3.12.0, once …", "  [1/2] virtual environment", "  [2/2] installed", "Done."],
)


def test_setting_up_shows_how_far_it_is(clone: Clone) -> None:
    """Step by step, on stderr."""
    assert clone.set_up() == SET_UP


def test_what_is_set_up_needs_no_network(clone: Clone) -> None:
    """The second time, nothing is installed and nothing said; a change of what is needed is another matter."""
    clone.set_up()
    (clone.directory / "offline").touch()
    assert (clone.set_up(), clone.installs()) == ((0, []), 1)
    (clone.directory / "pyproject.toml").write_text("[project]\nname = 'x'\n", encoding="utf-8")
    assert clone.set_up()[0] == 1


def test_what_the_tests_need_is_enough_for_the_demo(clone: Clone) -> None:
    """But not the other way round."""
    clone.set_up("all")
    clone.set_up("run")
    assert clone.installs() == 1


def test_an_installation_that_fails_says_why_and_is_tried_again(clone: Clone) -> None:
    """Nothing half-done counts as done."""
    (clone.directory / "offline").touch()
    code, lines = clone.set_up()
    assert (code, lines[-2:]) == (
        1,
        ["no network", "The installation failed (.venv/install.log has all of it). It needs a network this once."],
    )
    (clone.directory / "offline").unlink()
    assert clone.set_up()[0] == 0
    assert clone.installs() == 2


def test_a_clone_that_was_moved_is_set_up_anew(clone: Clone, tmp_path: Path) -> None:
    """Its programs have the old place in them."""
    clone.set_up()
    clone.directory = clone.directory.rename(tmp_path / "moved")
    assert (clone.set_up()[0], clone.installs()) == (0, 2)


def test_other_directories_of_that_name_are_left_alone(clone: Clone, tmp_path: Path) -> None:
    """Whatever CDPATH would find first."""
    (tmp_path / "decoy" / "scripts").mkdir(parents=True)
    clone.set_up(CDPATH=str(tmp_path / "decoy"))
    assert not (tmp_path / "decoy" / ".venv").exists()
    assert (clone.directory / "here").read_text(encoding="utf-8").strip() == str(clone.directory)


def test_a_python_that_does_not_run_is_told(clone: Clone) -> None:
    """With what to do."""
    code, lines = clone.set_up(PYTHON="no-such-python")
    assert code == 2
    assert lines[0] == "modes-actor needs Python 3.11 or newer, but: no-such-python does not run"
    assert lines[1].startswith("Install one, or name one: PYTHON=")
