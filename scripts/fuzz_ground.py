"""Where a server under test lives: a project, a home, a configuration, and secrets that it must keep."""

import os
import shutil
import sys
from pathlib import Path
from typing import Final

import msgspec
from fuzz_expectation import EXPIRED, anchor
from fuzz_permissions import MODES
from msgspec import Struct

from modes_actor.sessions.sessions import Sessions
from modes_actor.sessions.tables import MIGRATIONS
from modes_actor.store.database import Store
from modes_actor.surface.house import STORE_FILE

ROOT: Final = Path(__file__).resolve().parent.parent
LINE_LIMIT: Final = 8192
SECRET: Final = "kept-8f1c6d27-secret"


class Ground(Struct, frozen=True):
    """Made once; every server gets a store of its own."""

    directory: Path
    command: tuple[str, ...]
    expired: dict[bytes, bytes]
    """What the oracle calls its expired sessions, and their ids in the store."""

    @property
    def project(self) -> Path:
        return self.directory / "project"

    @property
    def forbidden(self) -> tuple[bytes, ...]:
        """What no answer may tell."""
        paths = (self.directory / "home", self.directory / "stores", ROOT, sys.prefix)
        texts = (SECRET, "Traceback", 'File \\"', *map(str, paths))
        return tuple(dict.fromkeys(text.encode() for text in texts))

    def environment(self, store: Path, *, log_level: str) -> dict[str, str]:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(("ROO_", "PYTHON"))}
        return {
            **inherited,
            "HOME": str(self.directory / "home"),
            "PYTHONPATH": str(ROOT),
            "ROO_STORAGE_PATH": str(store),
            "ROO_LOG_LEVEL": log_level,
            "FUZZ_SECRET": SECRET,
            "API_TOKEN": SECRET,
        }

    def new_store(self, name: str) -> Path:
        """A directory for a store in which some sessions have expired."""
        store = self.directory / "stores" / name
        shutil.rmtree(store, ignore_errors=True)
        shutil.copytree(self.directory / "expired", store)
        return store


async def make_ground(directory: Path, server: tuple[str, ...] = ()) -> Ground:
    """Lay everything out below a directory. `server`: the command of another server than ours."""
    for name in ("project/src", "project/.roo/rules", "home", "stores", "expired"):
        (directory / name).mkdir(parents=True)
    (directory / "project" / ".roomodes").write_text(MODES, encoding="utf-8")
    (directory / "project" / ".roo" / "rules" / "style.md").write_text("Be brief.\n", encoding="utf-8")
    (directory / "project" / "src" / "app.py").write_text("pass\n", encoding="utf-8")
    config = {"limits": {"max_line_bytes": LINE_LIMIT}, "logging": {"file": None}}
    (directory / "config.json").write_bytes(msgspec.json.encode(config))
    expired = {}
    sessions = Sessions(Store(directory / "expired" / STORE_FILE, MIGRATIONS))
    for number in range(EXPIRED):
        session = await sessions.create("code", None, None)
        await sessions.destroy(session.session_id)
        expired[anchor(number, expired=True).encode()] = session.session_id.encode()
    await sessions.close()
    command = (*(server or (sys.executable, "-m", "modes_actor")), "--config", str(directory / "config.json"))
    return Ground(directory, command, expired)
