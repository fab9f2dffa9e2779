"""The command that starts this installation of the server: what goes into an entry."""

import os
from pathlib import Path

from msgspec import Struct

from modes_actor.cli.editors.clients import Place, Scope

PROGRAM = "modes-actor"


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
    return next((script for directory in places if (script := directory / name).is_file()), None)


def _is_on_path(place: Place, script: Path) -> bool:
    found = place.which(PROGRAM)
    if found is None or os.path.realpath(found) != os.path.realpath(script):
        return False
    # An activated environment is on this shell's PATH, and hardly on that of an editor.
    active = place.environment.get("VIRTUAL_ENV")
    return not (active and Path(found).is_relative_to(active))
