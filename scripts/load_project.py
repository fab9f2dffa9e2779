"""The project in which a load test takes place, and what is right there: written down by hand, not asked of the server.

The servers get a home, a project and a store of their own in one temporary directory, which they share as the windows
of an editor do.
"""

import os
import shlex
import sys
from pathlib import Path
from typing import Final

from msgspec import Struct

ROOT: Final = Path(__file__).resolve().parent.parent
OURS: Final = shlex.join([sys.executable, "-m", "modes_actor"])
COUNTED: Final = str(Path(__file__).with_name("load_server.py"))

ROOMODES: Final = r"""
customModes:
  - slug: docs
    name: Docs
    description: Write documentation
    roleDefinition: You write guides.
    groups: [read, [edit, {fileRegex: '^docs/', description: guides}], mcp]
    mcpRestrictions: {allowedServers: [github], disallowedTools: [mcp__github__delete_repo]}
"""
LOG_KEPT: Final = 4_000
MODES: Final = ("code", "architect", "ask", "debug", "orchestrator", "docs")
TOOLS: Final = (
    "list_modes",
    "get_mode_info",
    "create_task",
    "switch_mode",
    "get_task_info",
    "validate_tool_use",
    "complete_task",
)
MODE_URIS: Final = tuple(f"mode://{slug}{part}" for slug in MODES for part in ("", "/config", "/system_prompt"))
PROMPTS: Final = (*MODES, "handoff")


class Case(Struct, frozen=True):
    """A use of a tool, the modes that allow it, and those in which only the file is wrong."""

    tool: str
    path: str | None
    allowed: frozenset[str]
    wrong_file: frozenset[str] = frozenset()


def _case(tool: str, path: str | None, allowed: str, wrong_file: str = "") -> Case:
    return Case(tool, path, frozenset(allowed.split()), frozenset(wrong_file.split()))


CASES: Final = (
    _case("read_file", "src/app.py", "code architect ask debug docs"),
    _case("write_to_file", "src/app.py", "code debug", "architect docs"),
    _case("write_to_file", "docs/plan.md", "code architect debug docs"),
    _case("apply_diff", "README.md", "code architect debug", "docs"),
    _case("execute_command", None, "code debug"),
    _case("browser_action", None, "code architect ask debug"),
    _case("mcp__github__create_issue", None, "code architect ask debug docs"),
    _case("mcp__github__delete_repo", None, "code architect ask debug"),
    _case("mcp__gitlab__list", None, "code architect ask debug"),
    _case("new_task", None, "code architect ask debug orchestrator docs"),
    _case("no_such_tool", None, ""),
)


class Typed(Struct, frozen=True):
    """What a person has typed for an argument, and what completes it."""

    argument: str
    value: str
    completed: list[str]


TYPED: Final = (
    Typed("slug", "arch", ["architect"]),
    Typed("mode_slug", "d", ["debug", "docs", "code"]),
    Typed("status", "c", ["completed", "cancelled"]),
    Typed("source", "pro", ["project"]),
    Typed("slug", "zzz", []),
)


class Place(Struct, frozen=True):
    """Where the servers of a run live, how they are started, and how long their sessions last."""

    directory: Path
    command: str | None
    """None: ours, with its tasks counted, and perhaps profiled."""
    session_timeout: float
    is_profiled: bool = False

    def prepare(self) -> None:
        (self.directory / "project" / "docs").mkdir(parents=True)
        self.tasks.mkdir()
        (self.directory / "project" / ".roomodes").write_text(ROOMODES, encoding="utf-8")

    @property
    def arguments(self) -> list[str]:
        if self.command is None:
            return [sys.executable, COUNTED, str(self.tasks), *(["--profile"] if self.is_profiled else [])]
        return shlex.split(self.command)

    @property
    def tasks(self) -> Path:
        """The directory in which servers count their Trio tasks."""
        return self.directory / "tasks"

    @property
    def log_file(self) -> Path:
        """What the servers say on stderr, which is nothing while all is well."""
        return self.directory / "stderr.log"

    def log(self) -> str:
        """The end of it."""
        text = self.log_file.read_text(encoding="utf-8", errors="replace") if self.log_file.exists() else ""
        return text[-LOG_KEPT:]

    def environment(self) -> dict[str, str]:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(("ROO_", "PYTHON"))}
        return {
            **inherited,
            "HOME": str(self.directory),
            "ROO_CONFIG_DIR": str(self.directory / "config"),
            "ROO_PROJECT_ROOT": str(self.directory / "project"),
            "ROO_STORAGE_PATH": str(self.directory / "store"),
            "ROO_LOG_FILE": str(self.directory / "server.log"),
            "ROO_LOG_LEVEL": "ERROR",
            "ROO_SESSION_TIMEOUT": f"{self.session_timeout:g}",
            "ROO_CLEANUP_INTERVAL": f"{max(1.0, self.session_timeout / 10):g}",
        }
