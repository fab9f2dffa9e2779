"""Which MCP servers are configured, as far as a decision needs to know. They are read here, never started.

Promises: nothing raises; while a file cannot be read, no server is enabled by default.
"""

from collections.abc import Iterable
from pathlib import Path

from msgspec import Struct

from modes_actor.modes.document import Fields, Node, Scalar, Unreadable, read_document
from modes_actor.modes.model import Problem
from modes_actor.modes.text_files import FileUnreadable, read_text

CONFIG_NAMES = ("mcp.json", "mcp_settings.json")


class McpServer(Struct, frozen=True):
    name: str
    default_enabled: bool = True
    """False: only a mode that names it may use it."""
    tools: frozenset[str] | None = None
    """Its tools, where somebody knows them."""


class McpServers(Struct, frozen=True):
    servers: dict[str, McpServer] = {}
    known: bool = False
    """Whether any configuration was found: without one, no server counts as missing from it."""
    complete: bool = True
    """False when a configuration could not be read: it may have said of any server that it needs to be named."""
    problems: tuple[Problem, ...] = ()

    def is_enabled_by_default(self, name: str) -> bool:
        server = self.servers.get(name)
        return self.complete and (server is None or server.default_enabled)

    def all_enabled_by_default(self) -> bool:
        return self.complete and all(server.default_enabled for server in self.servers.values())


def server_files(project_root: Path, config_dir: Path) -> list[Path]:
    """Where servers are configured, the later going before the earlier."""
    return [*(config_dir / name for name in CONFIG_NAMES), project_root / ".roo" / "mcp.json"]


def load_servers(files: Iterable[Path]) -> McpServers:
    servers: dict[str, McpServer] = {}
    problems: list[Problem] = []
    known, complete = False, True
    for path in files:
        try:
            text = read_text(path)
            if text is None:
                continue
            known = True
            found = _servers(read_document(text.text).root, str(path), problems)
        except FileUnreadable as error:
            problems.append(Problem(str(path), 1, 1, "error", str(error)))
            complete = False
        except Unreadable as error:
            message = f"The file cannot be read: {error.message}; every server must be allowed by name"
            problems.append(Problem(str(path), error.line, error.column, "error", message))
            complete = False
        else:
            servers.update(found)
    return McpServers(servers, known, complete, tuple(problems))


def _servers(root: Node, file: str, problems: list[Problem]) -> dict[str, McpServer]:
    entries = root.fields.get("mcpServers") if isinstance(root, Fields) else None
    if entries is None or not isinstance(entries[1], Fields):
        raise Unreadable("it has no `mcpServers`", root.line, root.column)
    servers = {name: _server(name, node) for name, (_, node) in entries[1].fields.items()}
    for key in entries[1].repeated:
        message = f"The server `{key.value}` is there twice, and so must be allowed by name"
        problems.append(Problem(file, key.line, key.column, "error", message))
        servers[str(key.value)] = McpServer(str(key.value), default_enabled=False)
    return servers


def _server(name: str, node: Node) -> McpServer:
    found = node.fields.get("defaultEnabled") if isinstance(node, Fields) else None
    if found is None:
        return McpServer(name)
    # Only a plain `true` enables: what is neither true nor false was meant to say something.
    return McpServer(name, default_enabled=isinstance(found[1], Scalar) and found[1].value is True)
