"""Modes and their server inside another Python program."""

import logging
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import trio
from msgspec import structs

from modes_actor.config import Config
from modes_actor.modes.catalog import ModeCatalog
from modes_actor.modes.decisions import Decision, DecisionContext, decide
from modes_actor.modes.model import Problem
from modes_actor.server import Server
from modes_actor.surface.house import House
from modes_actor.surface.modes_offer import modes_offer

logging.getLogger("modes_actor").addHandler(logging.NullHandler())  # the program decides whether it wants to hear


class Modes:
    """The modes in force in a project when they were loaded, and what they allow. Needs no event loop."""

    def __init__(self, house: House) -> None:
        self._house = house
        self._loaded = house.loaded

    @property
    def catalog(self) -> ModeCatalog:
        return self._loaded.catalog

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What is wrong with the files they come from."""
        return self.catalog.problems

    def decide(self, mode: str, tool: str, arguments: Mapping[str, Any] | None = None) -> Decision:
        """Whether the mode may use the tool with these arguments: `Allowed`, or `Denied` with the reason.

        Raises `ModeNotFound` (of `modes_actor.wire.errors`) for a mode that there is not.
        """
        return decide(self._house.mode(mode), tool, arguments, self._context.for_batch())

    def system_prompt(self, mode: str) -> str:
        """The mode's prompt, with the project's rules as they are now. Raises as `decide` does."""
        return self._house.system_prompt(self._house.mode(mode))

    @cached_property
    def _context(self) -> DecisionContext:
        return DecisionContext(self.catalog, str(self._house.root), self._loaded.servers)


def load_modes(project_root: Path | str | None = None, config: Config | None = None) -> Modes:
    """The modes of a project: built-in, a person's own, and the project's. Mistakes in files are `problems`.

    Without a root: the nearest directory upwards that looks like a project.
    """
    return Modes(House(_configured(project_root, config)))


async def serve(
    receive: trio.abc.ReceiveStream,
    send: trio.abc.SendStream,
    *,
    project_root: Path | str | None = None,
    config: Config | None = None,
) -> None:
    """Be the MCP server of one client, over any pair of streams, until the client ends it. Closes both."""
    await Server(modes_offer(_configured(project_root, config))).serve(receive, send)


def _configured(project_root: Path | str | None, config: Config | None) -> Config:
    config = config or Config()
    if project_root is None:
        return config
    return structs.replace(config, paths=structs.replace(config.paths, project_root=str(Path(project_root).resolve())))
