"""The clients that a server can be added to: where each keeps its MCP servers, and in which words.

A table and the few functions that read it. Everything it depends on is in a `Place`, so that it can be asked about any
system from any other; nothing here reads or writes what is in the files. What may not be looked at counts as not there:
whoever reads the file says why it cannot be read.
"""

import os
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final, Literal, get_args

from msgspec import Struct

Scope = Literal["project", "user"]
SCOPES: Final[tuple[Scope, ...]] = get_args(Scope)


class Place(Struct, frozen=True, kw_only=True):
    """A system, a user on it, and the project they are in."""

    platform: str
    """As `sys.platform` says it; what is neither `darwin` nor `win32` is taken for Linux."""
    home: Path
    environment: Mapping[str, str]
    project: Path
    which: Callable[[str], str | None] = shutil.which
    """Where an executable is, if it is on the PATH."""

    @classmethod
    def here(cls, *, home: Path, environment: Mapping[str, str], project: Path) -> "Place":
        """This system, with the executables that are on the PATH of that environment."""
        path = environment.get("PATH", os.defpath)
        which = partial(shutil.which, path=path)
        return cls(platform=sys.platform, home=home, environment=environment, project=project, which=which)

    def directory(self, variable: str, default: Path) -> Path:
        """What the variable says, if it says anything."""
        value = self.environment.get(variable)
        return Path(value) if value else default

    @property
    def xdg_config(self) -> Path:
        return self.directory("XDG_CONFIG_HOME", self.home / ".config")

    @property
    def roaming(self) -> Path:
        """Windows only."""
        return self.directory("APPDATA", self.home / "AppData" / "Roaming")

    @property
    def application_data(self) -> Path:
        """Where desktop applications keep their configuration."""
        if self.platform == "win32":
            return self.roaming
        if self.platform == "darwin":
            return self.home / "Library" / "Application Support"
        return self.xdg_config


class Client(Struct, frozen=True, kw_only=True):
    """How one client is told about MCP servers."""

    name: str
    display_name: str
    file_format: Literal["json", "toml"] = "json"
    key_path: tuple[str, ...]
    """Leads to the object that has one member for each server."""
    shape: Literal["typed", "plain", "local"]
    """Of an entry: `type`, `command`, `args`; the same without `type`; or one list with `type: local`."""
    project_files: tuple[str, ...]
    """Relative to the project: the first that is there, else the first. None: there is no project scope."""
    user_files: Callable[[Place], tuple[Path, ...]]
    """The first that is there, else the first whose directory is, else the first."""
    project_arguments: Mapping[Scope, str] = {}
    """What the client expands to the project's directory, where it has to be told; else it starts servers there."""
    executables: tuple[str, ...] = ()
    traces: Callable[[Place], tuple[Path, ...]] | None = None
    """What is there if the client is; None: the directories of its user files."""
    hint: str = ""
    """What people have to do so that the client takes the entry."""

    @property
    def scopes(self) -> tuple[Scope, ...]:
        return SCOPES if self.project_files else ("user",)


class NoSuchScope(Exception):
    """The client has no configuration for a project. A sentence for people."""

    def __init__(self, client: Client) -> None:
        super().__init__(f"{client.display_name} has no configuration for a project; use --user")


def configuration_files(client: Client, scope: Scope, place: Place) -> tuple[Path, ...]:
    """Every file that the client may read its servers from, the one to edit first."""
    if scope == "project":
        if not client.project_files:
            raise NoSuchScope(client)
        files = tuple(place.project / file for file in client.project_files)
        return tuple(sorted(files, key=lambda file: not os.path.exists(file)))
    files = client.user_files(place)
    return tuple(sorted(files, key=lambda file: (not os.path.exists(file), not os.path.exists(file.parent))))


def is_found(client: Client, place: Place) -> bool:
    """Whether there are traces of the client on the system."""
    traces = client.traces(place) if client.traces else {file.parent for file in client.user_files(place)}
    return any(map(os.path.exists, traces)) or any(place.which(name) for name in client.executables)


def entry(client: Client, words: Sequence[str]) -> dict[str, object]:
    """What the client wants to be told about a server that is started with a command of these words."""
    if client.shape == "local":
        return {"type": "local", "command": [*words], "enabled": True}
    head: dict[str, object] = {"type": "stdio"} if client.shape == "typed" else {}
    # `args` even if it is empty: Zed refuses an entry without it.
    return head | {"command": words[0], "args": [*words[1:]]}


def _in_home(*names: str) -> Callable[[Place], tuple[Path, ...]]:
    return lambda place: (place.home.joinpath(*names),)


def _vscode_user(place: Place, *names: str) -> tuple[Path, ...]:
    flavours = ("Code", "Code - Insiders", "VSCodium")
    return tuple(place.application_data.joinpath(flavour, "User", *names) for flavour in flavours)


def _claude_code_file(place: Place) -> tuple[Path, ...]:
    # The variable moves the file into the directory that it names; by default it is beside `.claude`.
    return (place.directory("CLAUDE_CONFIG_DIR", place.home) / ".claude.json",)


def _claude_desktop_files(place: Place) -> tuple[Path, ...]:
    name = "claude_desktop_config.json"
    directories = [place.application_data / "Claude"]
    if place.platform == "win32":
        # The packaged application has a directory of its own, and does not read the file in %APPDATA% that its own
        # "Edit Config" may open.
        local = place.directory("LOCALAPPDATA", place.home / "AppData" / "Local")
        directories[:0] = sorted((local / "Packages").glob("Claude_*/LocalCache/Roaming/Claude"))
    return tuple(directory / name for directory in directories)


def _zed_file(place: Place) -> tuple[Path, ...]:
    if place.platform == "win32":
        return (place.roaming / "Zed" / "settings.json",)
    if place.platform == "darwin":  # not in Application Support, and whatever XDG says
        return (place.home / ".config" / "zed" / "settings.json",)
    return (place.directory("FLATPAK_XDG_CONFIG_HOME", place.xdg_config) / "zed" / "settings.json",)


def _windsurf_files(place: Place) -> tuple[Path, ...]:
    # Windsurf is Devin Desktop now, with a file of a new name; older ones read the old.
    directory = place.roaming if place.platform == "win32" else place.home / ".config"
    return (
        directory / "devin" / "mcp_config.json",
        place.home / ".codeium" / "windsurf" / "mcp_config.json",
    )


def _xdg_json(name: str) -> Callable[[Place], tuple[Path, ...]]:
    # `.jsonc` goes before `.json` where both are there, as its members override the other's. XDG on every system.
    return lambda place: (
        place.xdg_config / name / f"{name}.jsonc",
        place.xdg_config / name / f"{name}.json",
    )


CLIENTS: Final[Mapping[str, Client]] = {
    client.name: client
    for client in (
        Client(
            name="vscode",
            display_name="VS Code",
            key_path=("servers",),
            shape="typed",
            project_files=(".vscode/mcp.json",),
            user_files=lambda place: _vscode_user(place, "mcp.json"),
            # In the user's file the variable does not resolve, and a server that has it there does not start. It finds
            # the project by asking for roots.
            project_arguments={"project": "${workspaceFolder}"},
            executables=("code", "code-insiders", "codium"),
            hint="VS Code asks whether to trust the server when it is first started.",
        ),
        Client(
            name="cursor",
            display_name="Cursor",
            key_path=("mcpServers",),
            shape="typed",
            project_files=(".cursor/mcp.json",),
            user_files=_in_home(".cursor", "mcp.json"),
            # Servers of the user's file are started in the home directory, but the variable resolves there, too.
            project_arguments={"project": "${workspaceFolder}", "user": "${workspaceFolder}"},
            executables=("cursor",),
            hint="Switch the server on in Cursor's settings, under MCP.",
        ),
        Client(
            name="claude-code",
            display_name="Claude Code",
            key_path=("mcpServers",),
            shape="typed",
            project_files=(".mcp.json",),
            user_files=_claude_code_file,
            executables=("claude",),
            traces=lambda place: (place.directory("CLAUDE_CONFIG_DIR", place.home / ".claude"),),
            hint="Claude Code asks whether to use a project's servers when it is next started there.",
        ),
        Client(
            name="claude-desktop",
            display_name="Claude Desktop",
            key_path=("mcpServers",),
            shape="plain",
            project_files=(),
            user_files=_claude_desktop_files,
            hint="Quit Claude Desktop and start it again. It knows no projects: --project-root DIR gives it one.",
        ),
        Client(
            name="zed",
            display_name="Zed",
            key_path=("context_servers",),
            shape="plain",
            project_files=(".zed/settings.json",),
            user_files=_zed_file,
            executables=("zed", "zeditor"),
            hint="Zed starts the server at once; one of a project, when you trust the project.",
        ),
        Client(
            name="windsurf",
            display_name="Windsurf (Devin Desktop)",
            key_path=("mcpServers",),
            shape="plain",
            project_files=(".devin/mcp_config.json",),
            user_files=_windsurf_files,
            executables=("windsurf", "devin"),
            hint="Refresh the list of MCP servers in its settings, or start it again.",
        ),
        Client(
            name="codex",
            display_name="Codex",
            file_format="toml",
            key_path=("mcp_servers",),
            shape="plain",
            project_files=(".codex/config.toml",),
            user_files=lambda place: (place.directory("CODEX_HOME", place.home / ".codex") / "config.toml",),
            executables=("codex",),
            hint="Start a new session; Codex reads a project's configuration once you trust the project.",
        ),
        Client(
            name="gemini",
            display_name="Gemini CLI",
            key_path=("mcpServers",),
            shape="plain",
            project_files=(".gemini/settings.json",),
            # The variable stands for the home directory, not for `.gemini` in it.
            user_files=lambda place: (place.directory("GEMINI_CLI_HOME", place.home) / ".gemini" / "settings.json",),
            executables=("gemini",),
            hint="Start a new session; `/mcp` lists the servers.",
        ),
        Client(
            name="opencode",
            display_name="opencode",
            key_path=("mcp",),
            shape="local",
            project_files=(
                "opencode.jsonc",
                "opencode.json",
                ".opencode/opencode.jsonc",
                ".opencode/opencode.json",
            ),
            user_files=_xdg_json("opencode"),
            executables=("opencode",),
            hint="Start opencode again.",
        ),
        Client(
            name="roo",
            display_name="Roo Code",
            key_path=("mcpServers",),
            shape="plain",
            project_files=(".roo/mcp.json",),
            user_files=lambda place: _vscode_user(
                place, "globalStorage", "rooveterinaryinc.roo-cline", "settings", "mcp_settings.json"
            ),
            traces=lambda place: _vscode_user(place, "globalStorage", "rooveterinaryinc.roo-cline"),
            hint="Roo Code takes it when the file is saved; its MCP view shows the server.",
        ),
        Client(
            name="kilo",
            display_name="Kilo Code",
            key_path=("mcp",),
            shape="local",
            project_files=(".kilo/kilo.jsonc", ".kilo/kilo.json", "kilo.jsonc", "kilo.json"),
            user_files=_xdg_json("kilo"),
            executables=("kilo",),
            traces=lambda place: (
                place.xdg_config / "kilo",
                *_vscode_user(place, "globalStorage", "kilocode.kilo-code"),
            ),
            hint="Start Kilo Code again, or reload the window.",
        ),
    )
}
