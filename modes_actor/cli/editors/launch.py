"""The command that starts this installation of the server: what goes into an entry."""

import os
import shutil
from pathlib import Path
from typing import Final

from msgspec import Struct

from modes_actor.cli.editors.clients import Place, Scope

PROGRAM: Final = "modes-actor"
_MARKS_OF_ENVIRONMENTS: Final = ("pyvenv.cfg", "conda-meta")


class Launch(Struct, frozen=True):
    words: tuple[str, ...]
    is_of_this_machine: bool
    """Whether the words mean nothing on another one."""


def launch(place: Place, scope: Scope, python: Path) -> Launch:
    """The program beside the interpreter that is running, else the module.

    People commit the files of a project: there, the name alone is better, if it is known wherever a client is started.
    """
    script = _script(place, python)
    if script is None:
        return Launch((str(python), "-m", "modes_actor"), True)
    if scope == "project" and _is_on_path(place, script):
        return Launch((PROGRAM,), False)
    return Launch((str(script),), True)


def _script(place: Place, python: Path) -> Path | None:
    name = f"{PROGRAM}.exe" if place.platform == "win32" else PROGRAM
    # On Windows, only a virtual environment has both in one directory.
    places = (python.parent, python.parent / "Scripts")
    return next((script for directory in places if os.path.isfile(script := directory / name)), None)


def found_by_clients(place: Place, program: str) -> str | None:
    """Where the PATH leads without the directories of virtual environments.

    Those are on the PATH of a shell, and hardly on that of an editor which is started from a menu. A link to a program
    in one, from a directory outside, is as good as the program.
    """
    found = place.which(program)
    if found is None or not _is_in_environment(found):
        return found
    directories = place.environment.get("PATH", os.defpath).split(os.pathsep)
    others = [each for each in directories if each and not _is_in_environment(os.path.join(each, program))]
    return shutil.which(program, path=os.pathsep.join(others))


def _is_on_path(place: Place, script: Path) -> bool:
    found = found_by_clients(place, PROGRAM)
    return found is not None and os.path.realpath(found) == os.path.realpath(script)


def _is_in_environment(program: str) -> bool:
    """As its path says: links are not followed."""
    directory = Path(os.path.abspath(program)).parent
    return any(
        os.path.exists(above / mark) for above in (directory, directory.parent) for mark in _MARKS_OF_ENVIRONMENTS
    )
