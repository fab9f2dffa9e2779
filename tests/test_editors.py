"""The clients: where their files are on each system, how they are found, and what starts the server for them."""

import os
from pathlib import Path

import pytest

from modes_actor.cli.editors.clients import CLIENTS, NoSuchScope, Place, Scope, configuration_files, entry, is_found
from modes_actor.cli.editors.launch import Launch, found_by_clients, launch

PROJECT_FILES = {
    "vscode": ".vscode/mcp.json",
    "cursor": ".cursor/mcp.json",
    "claude-code": ".mcp.json",
    "zed": ".zed/settings.json",
    "windsurf": ".devin/mcp_config.json",
    "codex": ".codex/config.toml",
    "gemini": ".gemini/settings.json",
    "opencode": "opencode.jsonc",
    "roo": ".roo/mcp.json",
    "kilo": ".kilo/kilo.jsonc",
}
_SAME_EVERYWHERE = {
    "cursor": ".cursor/mcp.json",
    "claude-code": ".claude.json",
    "codex": ".codex/config.toml",
    "gemini": ".gemini/settings.json",
    "opencode": ".config/opencode/opencode.jsonc",
    "kilo": ".config/kilo/kilo.jsonc",
}
_ROO = "User/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json"
USER_FILES = {
    "linux": _SAME_EVERYWHERE
    | {
        "vscode": ".config/Code/User/mcp.json",
        "claude-desktop": ".config/Claude/claude_desktop_config.json",
        "zed": ".config/zed/settings.json",
        "windsurf": ".config/devin/mcp_config.json",
        "roo": f".config/Code/{_ROO}",
    },
    "darwin": _SAME_EVERYWHERE
    | {
        "vscode": "Library/Application Support/Code/User/mcp.json",
        "claude-desktop": "Library/Application Support/Claude/claude_desktop_config.json",
        "zed": ".config/zed/settings.json",
        "windsurf": ".config/devin/mcp_config.json",
        "roo": f"Library/Application Support/Code/{_ROO}",
    },
    "win32": _SAME_EVERYWHERE
    | {
        "vscode": "AppData/Roaming/Code/User/mcp.json",
        "claude-desktop": "AppData/Roaming/Claude/claude_desktop_config.json",
        "zed": "AppData/Roaming/Zed/settings.json",
        "windsurf": "AppData/Roaming/devin/mcp_config.json",
        "roo": f"AppData/Roaming/Code/{_ROO}",
    },
}


def place_at(
    directory: Path,
    platform: str = "linux",
    *,
    on_path: dict[str, Path] | None = None,
    environment: dict[str, str] | None = None,
) -> Place:
    """A system on which nothing is installed but what is said."""
    executables = {name: str(path) for name, path in (on_path or {}).items()}
    return Place(
        platform=platform,
        home=directory / "home",
        environment=environment or {},
        project=directory / "project",
        which=executables.get,
    )


def written(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("{}")
    return path


@pytest.mark.parametrize("platform", ["linux", "darwin", "win32"])
def test_each_client_has_its_file_on_each_system(tmp_path: Path, platform: str) -> None:
    """Of a person who has none of them yet."""
    place = place_at(tmp_path, platform)
    actual = {name: configuration_files(client, "user", place)[0] for name, client in CLIENTS.items()}
    assert actual == {name: place.home / file for name, file in USER_FILES[platform].items()}


def test_each_client_but_one_has_its_file_in_a_project(tmp_path: Path) -> None:
    """The same on every system."""
    place = place_at(tmp_path)
    actual = {
        name: configuration_files(client, "project", place)[0]
        for name, client in CLIENTS.items()
        if "project" in client.scopes
    }
    assert actual == {name: place.project / file for name, file in PROJECT_FILES.items()}
    with pytest.raises(NoSuchScope, match=r"^Claude Desktop has no configuration for a project; use --user$"):
        configuration_files(CLIENTS["claude-desktop"], "project", place)


@pytest.mark.parametrize(
    ("client", "platform", "variable", "file"),
    [
        ("vscode", "linux", "XDG_CONFIG_HOME", "Code/User/mcp.json"),
        ("vscode", "win32", "APPDATA", "Code/User/mcp.json"),
        ("claude-code", "linux", "CLAUDE_CONFIG_DIR", ".claude.json"),
        ("codex", "darwin", "CODEX_HOME", "config.toml"),
        ("gemini", "linux", "GEMINI_CLI_HOME", ".gemini/settings.json"),
        ("opencode", "win32", "XDG_CONFIG_HOME", "opencode/opencode.jsonc"),
        ("zed", "linux", "FLATPAK_XDG_CONFIG_HOME", "zed/settings.json"),
    ],
)
def test_variables_move_files(tmp_path: Path, client: str, platform: str, variable: str, file: str) -> None:
    """Each its own."""
    place = place_at(tmp_path, platform, environment={variable: str(tmp_path / "moved")})
    assert configuration_files(CLIENTS[client], "user", place)[0] == tmp_path / "moved" / file


@pytest.mark.parametrize(
    ("client", "scope", "file"),
    [
        ("opencode", "project", "project/opencode.json"),
        ("kilo", "project", "project/kilo.json"),
        ("windsurf", "user", "home/.codeium/windsurf/mcp_config.json"),
        ("vscode", "user", "home/.config/VSCodium/User/mcp.json"),
        ("opencode", "user", "home/.config/opencode/opencode.json"),
    ],
)
def test_of_several_files_the_one_that_is_there_counts(tmp_path: Path, client: str, scope: Scope, file: str) -> None:
    """Whichever would be first otherwise."""
    there = written(tmp_path / file)
    assert configuration_files(CLIENTS[client], scope, place_at(tmp_path))[0] == there


def test_of_several_files_that_are_not_there_the_one_with_a_directory_counts(tmp_path: Path) -> None:
    """There, the client has been."""
    (tmp_path / "home/.codeium/windsurf").mkdir(parents=True)
    expected = tmp_path / "home/.codeium/windsurf/mcp_config.json"
    assert configuration_files(CLIENTS["windsurf"], "user", place_at(tmp_path))[0] == expected


def test_the_packaged_claude_desktop_has_a_directory_of_its_own(tmp_path: Path) -> None:
    """It does not read the one that everybody writes of."""
    place = place_at(tmp_path, "win32")
    packaged = place.home / "AppData/Local/Packages/Claude_abc/LocalCache/Roaming/Claude"
    packaged.mkdir(parents=True)
    files = configuration_files(CLIENTS["claude-desktop"], "user", place)
    assert files[0] == packaged / "claude_desktop_config.json"


@pytest.mark.parametrize("name", CLIENTS)
def test_a_client_that_was_never_here_is_not_found(tmp_path: Path, name: str) -> None:
    """An empty home has none."""
    (tmp_path / "home" / ".config").mkdir(parents=True)
    assert not is_found(CLIENTS[name], place_at(tmp_path))


@pytest.mark.parametrize(
    ("name", "trace"),
    [
        ("vscode", ".config/Code/User"),
        ("cursor", ".cursor"),
        ("claude-code", ".claude"),
        ("claude-desktop", ".config/Claude"),
        ("zed", ".config/zed"),
        ("windsurf", ".codeium/windsurf"),
        ("codex", ".codex"),
        ("gemini", ".gemini"),
        ("opencode", ".config/opencode"),
        ("roo", ".config/Code/User/globalStorage/rooveterinaryinc.roo-cline"),
        ("kilo", ".config/Code/User/globalStorage/kilocode.kilo-code"),
    ],
)
def test_a_client_is_found_by_its_traces(tmp_path: Path, name: str, trace: str) -> None:
    """The directories it makes."""
    (tmp_path / "home" / trace).mkdir(parents=True)
    assert is_found(CLIENTS[name], place_at(tmp_path))


def test_a_client_is_found_on_the_path(tmp_path: Path) -> None:
    """Though it never ran."""
    assert is_found(CLIENTS["zed"], place_at(tmp_path, on_path={"zeditor": Path("/usr/bin/zeditor")}))


TYPED = {"type": "stdio", "command": "x", "args": ["-y"]}
PLAIN = {"command": "x", "args": ["-y"]}
LOCAL = {"type": "local", "command": ["x", "-y"], "enabled": True}


@pytest.mark.parametrize(
    ("name", "key", "expected"),
    [
        ("vscode", "servers", TYPED),
        ("cursor", "mcpServers", TYPED),
        ("claude-code", "mcpServers", TYPED),
        ("claude-desktop", "mcpServers", PLAIN),
        ("zed", "context_servers", PLAIN),
        ("windsurf", "mcpServers", PLAIN),
        ("codex", "mcp_servers", PLAIN),
        ("gemini", "mcpServers", PLAIN),
        ("opencode", "mcp", LOCAL),
        ("roo", "mcpServers", PLAIN),
        ("kilo", "mcp", LOCAL),
    ],
)
def test_each_client_is_told_in_its_own_words(name: str, key: str, expected: dict[str, object]) -> None:
    """Under its own key."""
    client = CLIENTS[name]
    assert (client.key_path, entry(client, ["x", "-y"])) == ((key,), expected)


def test_every_client_says_what_to_do_next() -> None:
    """Writing the file is half of it."""
    assert [name for name, client in CLIENTS.items() if not client.hint] == []


def test_this_place_has_the_executables_of_its_environment(tmp_path: Path) -> None:
    """Not those of the process that asks."""
    program = written(tmp_path / "bin" / "a-program")
    program.chmod(0o755)
    place = Place.here(home=tmp_path, environment={"PATH": str(program.parent)}, project=tmp_path)
    assert (place.which("a-program"), place.which("sh")) == (str(program), None)


@pytest.fixture
def script(tmp_path: Path) -> Path:
    return written(tmp_path / "env" / "bin" / "modes-actor")


def test_the_program_beside_the_interpreter_is_started(tmp_path: Path, script: Path) -> None:
    """By its whole path: nobody knows from where."""
    assert launch(place_at(tmp_path), "user", script.with_name("python")) == Launch((str(script),), True)


@pytest.mark.parametrize("directory", ["env/Scripts", "Python312/Scripts"])
def test_windows_has_its_programs_in_scripts(tmp_path: Path, directory: str) -> None:
    """Where the interpreter is as well, or below it."""
    program = written(tmp_path / directory / "modes-actor.exe")
    python = tmp_path / ("env/Scripts/python.exe" if "env" in directory else "Python312/python.exe")
    assert launch(place_at(tmp_path, "win32"), "user", python) == Launch((str(program),), True)


def test_without_a_program_the_module_is_started(tmp_path: Path) -> None:
    """By the interpreter that is running."""
    python = tmp_path / "bin" / "python"
    assert launch(place_at(tmp_path), "project", python) == Launch((str(python), "-m", "modes_actor"), True)


def test_in_a_project_the_name_is_enough_if_it_leads_here(tmp_path: Path, script: Path) -> None:
    """Over a link, too: so it is of use to others."""
    link = tmp_path / "bin" / "modes-actor"
    link.parent.mkdir()
    os.symlink(script, link)
    place = place_at(tmp_path, on_path={"modes-actor": link})
    assert launch(place, "project", script.with_name("python")) == Launch(("modes-actor",), False)
    assert launch(place, "user", script.with_name("python")) == Launch((str(script),), True)


def test_another_installation_on_the_path_is_not_this_one(tmp_path: Path, script: Path) -> None:
    """So the name would start something else."""
    place = place_at(tmp_path, on_path={"modes-actor": written(tmp_path / "bin" / "modes-actor")})
    assert launch(place, "project", script.with_name("python")) == Launch((str(script),), True)


@pytest.mark.parametrize("mark", ["pyvenv.cfg", "conda-meta"])
def test_a_virtual_environment_is_on_the_path_of_nobody_else(tmp_path: Path, script: Path, mark: str) -> None:
    """An editor would not find the name, whether or not a shell calls the environment active."""
    written(tmp_path / "env" / mark)
    place = place_at(tmp_path, on_path={"modes-actor": script})
    assert launch(place, "project", script.with_name("python")) == Launch((str(script),), True)


def test_a_link_from_outside_into_an_environment_is_for_everybody(tmp_path: Path, script: Path) -> None:
    """As pipx and uv make them: the name is enough, though the environment goes first in this shell's PATH."""
    written(tmp_path / "env" / "pyvenv.cfg")
    script.chmod(0o755)
    link = tmp_path / "bin" / "modes-actor"
    link.parent.mkdir()
    os.symlink(script, link)
    path = os.pathsep.join([str(script.parent), str(link.parent)])
    place = Place.here(home=tmp_path, environment={"PATH": path}, project=tmp_path)
    assert launch(place, "project", script.with_name("python")) == Launch(("modes-actor",), False)
    assert found_by_clients(place, "modes-actor") == str(link)
