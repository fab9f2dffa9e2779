"""A person's shell, for tests of commands: a project, a home, an environment, and what a command said and ended with.

Commands run in this process, so that hundreds of tests take seconds; `test_process_*` start real ones.
"""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from modes_actor.cli import main


class Ran(NamedTuple):
    code: int
    out: str
    err: str

    def json(self) -> Any:
        """What it said, which must be one JSON value; and nothing must be wrong."""
        assert (self.code, self.err) == (0, ""), self
        return json.loads(self.out)

    def lines(self) -> list[str]:
        """What it said; and nothing must be wrong."""
        assert (self.code, self.err) == (0, ""), self
        return self.out.splitlines()


class Shell:
    """`run("modes", "--json")` is `modes-actor modes --json` in `project`."""

    def __init__(self, directory: Path, capture: pytest.CaptureFixture[str]) -> None:
        self.home, self.project = directory / "home", directory / "project"
        self.config_dir = self.home / ".roo-code"
        self.mode_file = self.project / ".roomodes"
        for made in (self.home, self.project, self.config_dir):
            made.mkdir()
        (self.project / ".git").mkdir()
        self.environment = {"HOME": str(self.home), "PATH": os.environ.get("PATH", os.defpath)}
        self._capture = capture

    def run(self, *words: str, cwd: Path | None = None, **environment: str) -> Ran:
        self._capture.readouterr()
        with _surroundings(cwd or self.project, self.environment | environment):
            try:
                code = main(words)
            except SystemExit as left:  # argparse, after --help or wrong usage
                code = left.code if isinstance(left.code, int) else 1
        captured = self._capture.readouterr()
        return Ran(code, captured.out, captured.err)


@contextmanager
def _surroundings(directory: Path, environment: dict[str, str]) -> Iterator[None]:
    before, here = dict(os.environ), Path.cwd()
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(directory)
    try:
        yield
    finally:
        os.chdir(here)
        os.environ.clear()
        os.environ.update(before)


@pytest.fixture
def shell(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Shell:
    """A shell in a project of its own, with a home of its own."""
    return Shell(tmp_path, capfd)
