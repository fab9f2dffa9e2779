"""The installation itself: Python, the packages, SQLite, and which `modes-actor` a shell would find."""

import importlib.metadata
import os
import platform
import re
import shutil
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from modes_actor import __version__
from modes_actor.cli.checkup.finding import Finding
from modes_actor.cli.command import Situation

DISTRIBUTION: Final = "modes-actor"
SQLITE_NEEDED: Final = (3, 22, 0)
"""Older ones cannot read a write-ahead log that they may not write."""


def python(situation: Situation) -> Iterator[Finding]:
    yield Finding("python", "ok", f"Python {platform.python_version()} ({sys.executable})")


def packages(situation: Situation) -> Iterator[Finding]:
    try:
        requirements = importlib.metadata.requires(DISTRIBUTION) or []
    except importlib.metadata.PackageNotFoundError:
        yield Finding(
            "packages",
            "note",
            f"modes-actor {__version__} runs from its sources, so nobody knows which packages it needs",
            "Install it with pip, pipx or uv",
        )
        return
    found = [f"modes-actor {__version__}"]
    for requirement in requirements:
        if ";" in requirement:
            continue  # for other systems, or for those who work on it
        name = re.split(r"[^\w.-]", requirement, maxsplit=1)[0]
        try:
            version = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            yield Finding("packages", "error", f"{name} is not installed", _install(requirement))
            continue
        found.append(f"{name} {version}")
        least = re.search(r">=\s*([\d.]+)", requirement)
        if least is not None and _numbers(version) < _numbers(least[1]):
            message = f"{name} {version} is too old: {least[1]} is needed"
            yield Finding("packages", "error", message, _install(requirement))
    yield Finding("packages", "ok", ", ".join(found))


def sqlite(situation: Situation) -> Iterator[Finding]:
    try:
        import sqlite3
    except ImportError:
        message = "This Python was built without SQLite, so sessions cannot be kept"
        yield Finding("sqlite", "error", message, "Use a Python that has its sqlite3 module")
        return
    needed = ".".join(map(str, SQLITE_NEEDED))
    if sqlite3.sqlite_version_info < SQLITE_NEEDED:
        message = f"SQLite {sqlite3.sqlite_version} is too old: {needed} is needed"
        yield Finding("sqlite", "error", message, "Use a Python that was built with a newer one")
    else:
        yield Finding("sqlite", "ok", f"SQLite {sqlite3.sqlite_version}")


def command(situation: Situation) -> Iterator[Finding]:
    found = shutil.which("modes-actor", path=situation.environment.get("PATH", os.defpath))
    own = own_script()
    if found is not None and os.path.realpath(found) == os.path.realpath(own):
        yield Finding("command", "ok", f"`modes-actor` on the PATH is this installation ({found})")
    elif found is not None:
        message = f"`modes-actor` on the PATH is another installation ({found}), not this one ({own})"
        yield Finding("command", "warning", message, f"Remove one of them, or put {own.parent} first in the PATH")
    else:
        fix = f"Add {own.parent} to the PATH" if own.exists() else f"Start it as `{sys.executable} -m modes_actor`"
        yield Finding("command", "note", "`modes-actor` is not on the PATH, so clients need its whole path", fix)


def own_script() -> Path:
    """Where the `modes-actor` of this installation is, if it has one."""
    return Path(sysconfig.get_path("scripts")) / ("modes-actor.exe" if os.name == "nt" else "modes-actor")


def _install(requirement: str) -> str:
    return f"{sys.executable} -m pip install '{requirement}'"


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version)[:3])
