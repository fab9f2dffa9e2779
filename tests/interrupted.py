"""Scripts that are told to stop, by a Ctrl-C, while a server of theirs runs: what they say, and what they leave."""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import msgspec

from tests.process import ROOT

TELLING = "import os, signal; os.kill(os.getppid(), signal.SIGINT)\n"
"""The first lines of a server: whoever started it is told to stop, now that there is something to leave behind."""


class Interrupted(msgspec.Struct):
    code: int
    err: str
    processes: list[str]
    files: list[str]


CLEANLY = Interrupted(2, "Interrupted.\n", [], [])


def run_interrupted(command: Sequence[str], home: Path) -> Interrupted:
    """Run it to its end, with a directory of its own for what is temporary."""
    temporary = home / "temporary"
    temporary.mkdir()
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        env={"HOME": str(home), "PATH": "/usr/local/bin:/usr/bin:/bin", "PYTHONUTF8": "1", "TMPDIR": str(temporary)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        start_new_session=True,
    )
    _, err = process.communicate()
    return Interrupted(process.returncode, err, _in_session(process.pid), [str(each) for each in temporary.iterdir()])


def _in_session(session: int) -> list[str]:
    """The processes of a session, which whoever is started belongs to, and whoever that one starts."""
    stats = (Path(f"/proc/{name}/stat") for name in os.listdir("/proc") if name.isdecimal())
    return [told for stat in stats if (told := _read(stat)) and int(told.rpartition(")")[2].split()[3]) == session]


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (FileNotFoundError, ProcessLookupError):
        return ""  # it has just ended
