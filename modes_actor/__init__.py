"""Modes for any MCP client: a role, the tools it may use, the files it may edit, the servers it may reach.

To embed them: `load_modes` gives a project's modes and decides what they allow; `serve` is the whole server over any
pair of Trio streams; `start_server` is a server of its own with a typed client. Names load when they are first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from modes_actor.client import Client, connect, start_server
    from modes_actor.config import Config
    from modes_actor.embedding import Modes, load_modes, serve
    from modes_actor.modes.catalog import ModeCatalog
    from modes_actor.modes.decisions import Allowed, Denied
    from modes_actor.modes.model import ModeConfig, Problem
    from modes_actor.server import Server
    from modes_actor.surface.offer import Offer, OfferedTool

__version__ = "0.1.0"

__all__ = [
    "Allowed",
    "Client",
    "Config",
    "Denied",
    "ModeCatalog",
    "ModeConfig",
    "Modes",
    "Offer",
    "OfferedTool",
    "Problem",
    "Server",
    "connect",
    "load_modes",
    "serve",
    "start_server",
]

_HOMES = {
    "modes_actor.client": ("Client", "connect", "start_server"),
    "modes_actor.config": ("Config",),
    "modes_actor.embedding": ("Modes", "load_modes", "serve"),
    "modes_actor.modes.catalog": ("ModeCatalog",),
    "modes_actor.modes.decisions": ("Allowed", "Denied"),
    "modes_actor.modes.model": ("ModeConfig", "Problem"),
    "modes_actor.server": ("Server",),
    "modes_actor.surface.offer": ("Offer", "OfferedTool"),
}


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(home), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
