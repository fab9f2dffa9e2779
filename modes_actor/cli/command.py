"""What a subcommand is, and what it may know of its surroundings."""

import os
import sys
from argparse import ArgumentParser
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from modes_actor.cli.arguments import load_command
from modes_actor.cli.command_line import CommandLine
from modes_actor.cli.output import Output
from modes_actor.config import Config, Flags, current_directory, home_directory, load_config, project_root

if TYPE_CHECKING:
    from modes_actor.surface.house import House


class UsageError(Exception):
    """The words make no sense together. The message says which, and what would. Exit code 2."""


class CommandFailed(Exception):
    """It could not be done. The message says what, where, and how to mend it. Exit code 1."""


class Situation:
    """Where a command runs: the configuration, the project, and where to write. Each is found out on first use."""

    def __init__(
        self,
        flags: Flags,
        output: Output,
        *,
        environment: Mapping[str, str] | None = None,
        working_directory: Path | None = None,
        home: Path | None = None,
    ) -> None:
        self.flags = flags
        self.output = output
        self.environment = os.environ if environment is None else environment
        self._working_directory = working_directory
        self.home = home or home_directory()

    @cached_property
    def config(self) -> Config:
        """Raises `ConfigError`."""
        return load_config(self.flags, self.environment)

    @cached_property
    def working_directory(self) -> Path:
        """Raises `ConfigError` if it is no more."""
        return self._working_directory or current_directory()

    @cached_property
    def project_root(self) -> Path:
        return project_root(self.config, self._working_directory)

    @cached_property
    def house(self) -> "House":
        """The modes in force here, and the sessions, as a server that is started here has them."""
        from modes_actor.surface.house import House

        return House(self.config, working_directory=self._working_directory, home=self.home)


class NoArguments(Struct):
    pass


class Command(Struct, frozen=True, kw_only=True):
    """A subcommand: what its module puts into `COMMAND`."""

    description: str
    examples: str = ""
    """Lines for its help."""
    arguments: type[Struct] = NoArguments
    """What `add_arguments` defines, as `run` gets it: fields are named as argparse names its destinations."""
    add_arguments: Callable[[ArgumentParser], object] = lambda parser: None
    is_intermixed: bool = False
    """Whether options may stand between several words of one argument."""
    run: Callable[[Any, Situation], int] | None = None
    """Returns the exit code. Raises `UsageError`, `CommandFailed` or `ConfigError`. None: only its actions run."""
    actions: Mapping[str, "Command"] = {}
    """What may stand behind its name, as `show` in `modes show`."""


def run(line: CommandLine) -> int:
    """Run the command that a command line names."""
    import logging

    from modes_actor.cli.stderr import StderrHandler

    # What the server logs about, commands say themselves: a person at a terminal wants it once.
    level = line.flags.log_level.upper() if line.flags.log_level else "ERROR"
    if level in logging.getLevelNamesMapping():
        logging.basicConfig(level=level, format="modes-actor: %(levelname)s: %(message)s", handlers=[StderrHandler()])
    command = load_command(line.command)
    assert command.run is not None  # `parse` lets nothing else through
    if sys.stdout is None:
        raise CommandFailed("stdout is closed, so there is nowhere to answer")
    situation = Situation(line.flags, Output(sys.stdout, as_json=line.as_json))
    return command.run(msgspec.convert(line.arguments, command.arguments), situation)
