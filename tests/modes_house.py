"""The real offer of modes with everything it touches in one directory: a project, a home, a store, and a clock."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import trio
import trio.testing

from modes_actor.config import Config, PathsSection, PersistenceSection, SessionsSection
from modes_actor.surface.house import House
from modes_actor.surface.modes_offer import modes_offer
from modes_actor.surface.offer import Offer
from modes_actor.wire.versions import V2025_11_25, V2026_07_28, Era, Version
from tests.conversation import Conversation, Json, talking

BUILTIN = ["code", "architect", "ask", "debug", "orchestrator"]
GROUPS = ["read", "edit", "browser", "command", "mcp", "modes"]
CREATED = 1_736_764_200.0
"""2025-01-13T10:30:00Z, when the examples of the API reference take place."""
NOTICED_WITHIN = 2.0
"""Seconds (of a mock clock) after which a changed mode file is in force."""
UNKNOWN_SESSION = f"sess_{'0' * 32}"

ROOMODES = r"""
customModes:
  - slug: docs
    name: 📝 Docs
    description: Write documentation
    whenToUse: Use this mode for guides.
    roleDefinition: You write guides.
    customInstructions: Be brief.
    groups: [read, [edit, {fileRegex: '^docs/', description: guides}], mcp]
    mcpRestrictions: {allowedServers: [github], disallowedTools: [mcp__github__delete_repo]}
  - slug: DocWriter
    name: Doc Writer
    extends: docs
  - slug: narrow
    name: Narrow
    roleDefinition: You fix typos.
    extends: docs
    groups: [read, command, [edit, {fileRegex: '\.md$'}]]
"""
GLOBAL_MODES = """
customModes:
  - {slug: mine, name: Mine, roleDefinition: You are mine., groups: [read]}
"""
ALL_MODES = [*BUILTIN, "mine", "docs", "DocWriter", "narrow"]

PARAMETERS: dict[str, tuple[dict[str, str], list[str]]] = {
    "list_modes": ({"source": "string"}, []),
    "get_mode_info": ({"mode_slug": "string", "include_system_prompt": "boolean"}, ["mode_slug"]),
    "create_task": ({"mode_slug": "string", "initial_message": "string", "parent_session_id": "string"}, ["mode_slug"]),
    "switch_mode": (
        {"session_id": "string", "new_mode_slug": "string", "reason": "string"},
        ["session_id", "new_mode_slug"],
    ),
    "get_task_info": (
        {"session_id": "string", "include_messages": "boolean", "include_hierarchy": "boolean"},
        ["session_id"],
    ),
    "validate_tool_use": (
        {
            "session_id": "string",
            "tool_name": "string",
            "file_path": "string",
            "arguments": "object",
            "enforce": "boolean",
        },
        ["session_id", "tool_name"],
    ),
    "complete_task": ({"session_id": "string", "status": "string", "result": "string"}, ["session_id", "status"]),
}
"""Of the seven tools, in the order of the API reference: the type of each parameter, and which are required."""
TOOLS = list(PARAMETERS)
CHOICES = {
    ("list_modes", "source"): {"builtin", "global", "project", "all"},
    ("complete_task", "status"): {"completed", "failed", "cancelled"},
}


class Clock:
    """Stands still until a test moves it."""

    def __init__(self) -> None:
        self.now = CREATED

    def __call__(self) -> float:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += seconds


class Place:
    """Where one test's server lives. Its sessions are in memory, unless a test is about more than one server."""

    def __init__(self, directory: Path, *, persistent: bool = False) -> None:
        self.project, self.global_dir = directory / "project", directory / "config"
        self.mode_file = self.project / ".roomodes"
        self.home, self.storage = directory / "home", directory / "store"
        for made in (self.project, self.global_dir, self.home):
            made.mkdir(exist_ok=True)
        self.mode_file.write_text(ROOMODES, encoding="utf-8")
        (self.global_dir / "modes.yaml").write_text(GLOBAL_MODES, encoding="utf-8")
        self.clock = Clock()
        self.config = Config(
            paths=PathsSection(project_root=str(self.project), global_config_dir=str(self.global_dir)),
            sessions=SessionsSection(
                persistence=PersistenceSection(enabled=persistent, storage_path=str(self.storage)),
            ),
        )

    def offer(self) -> Offer:
        """A new server's."""
        house = House(self.config, working_directory=self.project, home=self.home, now=self.clock)
        return modes_offer(self.config, house)

    async def save_modes(self, text: str | None) -> None:
        """Save the project's modes (None: delete them), and let mock time pass until they are in force."""
        if text is None:
            self.mode_file.unlink()
        else:
            self.mode_file.write_text(text, encoding="utf-8")
        await trio.sleep(NOTICED_WITHIN)


class Client:
    """A client of the seven tools."""

    def __init__(self, place: Place, conversation: Conversation) -> None:
        self.place = place
        self.conversation = conversation
        self.request, self.result, self.error = conversation.request, conversation.result, conversation.error

    async def call(self, name: str, /, **arguments: Any) -> Json:
        """The result of a tool that does its work."""
        result = await self.result("tools/call", {"name": name, "arguments": arguments})
        assert not result.get("isError"), result
        return result

    async def text(self, name: str, /, **arguments: Any) -> str:
        return said(await self.call(name, **arguments))

    async def told(self, name: str, /, **arguments: Any) -> Json:
        """Its structured content."""
        told: Json = (await self.call(name, **arguments))["structuredContent"]
        return told

    async def create(self, mode_slug: str = "code", **more: Any) -> str:
        """The session of a new task."""
        session_id: str = (await self.told("create_task", mode_slug=mode_slug, **more))["session_id"]
        return session_id

    async def family(self) -> list[str]:
        """Sessions of a task, its child, and two grandchildren, a second apart."""
        sessions = [await self.create("orchestrator")]
        for parent, mode in ((0, "code"), (1, "debug"), (1, "ask")):
            self.place.clock.advance(1)
            sessions.append(await self.create(mode, parent_session_id=sessions[parent]))
        return sessions

    async def refusal(self, name: str, /, **arguments: Any) -> Json:
        """The error that a tool answers with: in the stateless era it is inside a result."""
        answer = await self.request("tools/call", {"name": name, "arguments": arguments})
        version = self.conversation.version
        if version is not None and version.era is Era.HANDSHAKE:
            assert "error" in answer, answer
            error: Json = answer["error"]
            return error
        assert "result" in answer, answer
        assert answer["result"]["isError"] is True
        error = answer["result"]["structuredContent"]["error"]
        return error

    async def read(self, uri: str) -> str:
        """The text of a resource."""
        [contents] = (await self.result("resources/read", {"uri": uri}))["contents"]
        assert contents["uri"] == uri
        text: str = contents["text"]
        return text

    async def read_json(self, uri: str) -> Any:
        return json.loads(await self.read(uri))

    async def tools(self) -> dict[str, Json]:
        """The tools, by name, as they are listed."""
        return {tool["name"]: tool for tool in (await self.result("tools/list"))["tools"]}

    async def subscribe(self, *uris: str, **kinds: bool) -> None:
        """Want to hear of resources (and lists, which a handshake client hears of anyway)."""
        conversation = self.conversation
        if conversation.version is V2026_07_28:
            wanted = {"resourceSubscriptions": list(uris), **kinds}
            heard = await conversation.request("subscriptions/listen", {"notifications": wanted}, id="stream")
            assert heard["method"] == "notifications/subscriptions/acknowledged"
        else:
            for uri in uris:
                assert await self.result("resources/subscribe", {"uri": uri}) == {}

    async def news(self) -> list[tuple[str, str | None]]:
        """All notifications so far: method and URI. An answer to a request marks their end."""
        await trio.testing.wait_all_tasks_blocked()
        await self.conversation.send(self.conversation.compose("tools/list", {}, id="end"))
        heard = []
        while (message := await self.conversation.receive()).get("id") != "end":
            heard.append((message["method"], message.get("params", {}).get("uri")))
        return heard


@asynccontextmanager
async def working(directory: Path | Place, *, version: Version = V2025_11_25) -> AsyncIterator[Client]:
    """A client of a server of its own."""
    place = directory if isinstance(directory, Place) else Place(directory)
    async with talking(place.offer(), version=version) as conversation:
        yield Client(place, conversation)


def said(result: Json) -> str:
    """The text of a result that is one text."""
    [block] = result["content"]
    assert block["type"] == "text"
    text: str = block["text"]
    return text


def objects_in(schema: Any) -> list[Json]:
    """Every JSON object of a schema, from the outside in."""
    if isinstance(schema, list):
        return [found for item in schema for found in objects_in(item)]
    return [schema, *objects_in(list(schema.values()))] if isinstance(schema, dict) else []
