"""The scripts as a person runs them, and as modules whose judgement is tested."""

import importlib
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import msgspec

from tests.process import ROOT

SCRIPTS = ROOT / "scripts"


class ScriptRan(NamedTuple):
    code: int
    out: str
    err: str

    def json(self) -> Any:
        return msgspec.json.decode(self.out)


def run_script(name: str, *words: str, home: Path) -> ScriptRan:
    """Run `scripts/NAME` to its end, with a home of its own."""
    ran = subprocess.run(
        [sys.executable, str(SCRIPTS / name), *words],
        cwd=ROOT,
        env={"HOME": str(home), "PATH": "/usr/local/bin:/usr/bin:/bin", "PYTHONUTF8": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    return ScriptRan(ran.returncode, ran.stdout, ran.stderr)


@contextmanager
def _importable() -> Iterator[None]:
    sys.path.insert(0, str(SCRIPTS))
    try:
        yield
    finally:
        sys.path.remove(str(SCRIPTS))


def script(name: str) -> ModuleType:
    """A module of the scripts, which import one another by bare name."""
    with _importable():
        return importlib.import_module(name)
