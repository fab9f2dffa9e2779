"""Which of a client's roots is the project."""

import os
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import unquote, urlsplit

from modes_actor.config import Config, find_project


def choose_project(roots: Iterable[str], config: Config) -> Path | None:
    """The project around the first root that has modes, else the first that has anything, else the first root.

    A client that opened a directory below a project works in that project. None if no root is a directory here.
    """
    found = [find_project(config, directory) for uri in roots if (directory := directory_of(uri)) is not None]
    for marks in ((".roomodes",), (".roo",), (".git",), (None,)):
        for project in found:
            if project.mark in marks:
                return project.root
    return None


def directory_of(uri: str) -> Path | None:
    """The directory that a `file:` URI means, if there is one."""
    try:
        parts = urlsplit(uri)
        if parts.scheme.lower() != "file" or parts.netloc not in ("", "localhost"):
            return None
        path = unquote(parts.path, errors="strict")
        if os.name == "nt":
            path = path.removeprefix("/")
        directory = Path(path)
        return directory.resolve() if directory.is_absolute() and directory.is_dir() else None
    except (ValueError, OSError):
        return None
