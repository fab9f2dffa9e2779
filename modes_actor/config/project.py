"""Which directory is the project, as far as it can be told without asking a client."""

import os
from pathlib import Path
from typing import Final

from msgspec import Struct

from modes_actor.config.model import Config, ConfigError

_MARKS: Final = (".roomodes", ".roo", ".git")


class FoundProject(Struct, frozen=True):
    root: Path
    mark: str | None = None
    """What in it says that it is a project; None if it was configured, or nothing says so."""


def home_directory() -> Path:
    """Where the person's own files are; a path that leads nowhere if nobody knows."""
    return Path(os.path.expanduser("~"))  # `Path.home` would raise


def current_directory() -> Path:
    """Where we are. Raises `ConfigError` if that is no more."""
    try:
        return Path.cwd()
    except OSError as error:
        raise ConfigError(
            f"the working directory is no more ({error.strerror}): start in another, or name the project with "
            "--project-root"
        ) from None


def find_project(config: Config, working_directory: Path | None = None) -> FoundProject:
    """The configured root, else the nearest directory upwards that looks like a project, else where we are.

    Raises `ConfigError` if that is nowhere.
    """
    if config.paths.project_root is not None:
        return FoundProject(Path(config.paths.project_root))
    working_directory = working_directory or current_directory()
    for directory in (working_directory, *working_directory.parents):
        marks = [mark for mark in _MARKS if os.path.exists(directory / mark)]  # False also where we may not look
        if marks and not (marks == [".roo"] and directory == home_directory()):  # that one holds a person's own rules
            return FoundProject(directory, marks[0])
    return FoundProject(working_directory)


def project_root(config: Config, working_directory: Path | None = None) -> Path:
    return find_project(config, working_directory).root
