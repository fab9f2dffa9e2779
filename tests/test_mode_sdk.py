"""The official SDK's client works with the real process: reads everything back with its own types, in both eras."""

import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal

import anyio
import mcp_types as types
import pytest
from mcp import Client, MCPError, StdioServerParameters

from tests.modes_house import ALL_MODES, TOOLS, UNKNOWN_SESSION, Place

# The SDK warns of what 2026-07-28 gave up; the handshake era still has it, and so have we.
pytestmark = pytest.mark.filterwarnings("ignore::mcp.MCPDeprecationWarning")

ROOT = Path(__file__).parent.parent
Backend = Literal["asyncio", "trio"]
each_way = [
    pytest.mark.parametrize("backend", ["asyncio", "trio"]),
    pytest.mark.parametrize("mode", ["legacy", "2026-07-28"]),
]


def in_each_way(test: Any) -> Any:
    """On both event loops, in both eras."""
    for mark in each_way:
        test = mark(test)
    return test


def run(backend: Backend, talk: Any) -> None:
    anyio.run(talk, backend=backend)


@asynccontextmanager
async def modes_client(directory: Path, mode: str) -> AsyncIterator[Client]:
    """A client of `python -m modes_actor`, with everything that it touches in that directory."""
    place = Place(directory, persistent=True)
    config = directory / "config.json"
    persistence = {"enabled": True, "storage_path": str(place.storage)}
    config.write_text(json.dumps({"sessions": {"persistence": persistence}}), encoding="utf-8")
    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", "modes_actor", "--config", str(config), "--project-root", str(place.project)],
        env={
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(ROOT),
            "HOME": str(place.home),
            "ROO_CONFIG_DIR": str(place.global_dir),
        },
        cwd=place.project,
    )
    async with Client(server, mode=mode, read_timeout_seconds=60) as client:
        yield client


def text_of(block: object) -> str:
    assert isinstance(block, types.TextContent)
    return block.text


async def told(client: Client, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Call a tool; the SDK itself holds its structured content against the schema it was listed with."""
    result = await client.call_tool(name, arguments)
    assert not result.is_error, result
    assert [block.type for block in result.content] == ["text"]
    assert isinstance(result.structured_content, dict)
    return result.structured_content


@in_each_way
def test_the_sdk_walks_the_workflow_of_the_reference(backend: Backend, mode: str, tmp_path: Path) -> None:
    """From the list of modes to the end of a task."""

    async def talk() -> None:
        async with modes_client(tmp_path, mode) as client:
            assert [tool.name for tool in (await client.list_tools()).tools] == TOOLS
            modes = (await told(client, "list_modes", {"source": "all"}))["modes"]
            assert [each["slug"] for each in modes] == ALL_MODES
            assert (await told(client, "get_mode_info", {"mode_slug": "architect"}))["name"] == "🏗️ Architect"
            created = await told(client, "create_task", {"mode_slug": "architect", "initial_message": "Design it"})
            session_id = created["session_id"]
            await told(client, "create_task", {"mode_slug": "ask", "parent_session_id": session_id})
            everything = {"session_id": session_id, "include_messages": True, "include_hierarchy": True}
            info = await told(client, "get_task_info", everything)
            assert (info["messages"][0]["content"], len(info["hierarchy"])) == ("Design it", 2)
            use = {"session_id": session_id, "tool_name": "write_to_file", "file_path": "a.py"}
            assert (await told(client, "validate_tool_use", use))["allowed"] is False
            switch = {"session_id": session_id, "new_mode_slug": "code", "reason": "Ready"}
            assert (await told(client, "switch_mode", switch))["old_mode"] == "architect"
            assert (await told(client, "validate_tool_use", use))["allowed"] is True
            end = {"session_id": session_id, "status": "completed", "result": "Approved"}
            assert (await told(client, "complete_task", end))["open_subtasks"] == 1

    run(backend, talk)


@in_each_way
def test_the_sdk_reads_resources_and_templates(backend: Backend, mode: str, tmp_path: Path) -> None:
    """Every listed one, and a task by its template."""

    async def talk() -> None:
        async with modes_client(tmp_path, mode) as client:
            resources = (await client.list_resources()).resources
            assert len(resources) == 3 * len(ALL_MODES)
            for resource in resources:
                [contents] = (await client.read_resource(resource.uri)).contents
                assert isinstance(contents, types.TextResourceContents)
                assert contents.mime_type == resource.mime_type
                assert resource.size in (None, len(contents.text.encode()))
            templates = (await client.list_resource_templates()).resource_templates
            assert "task://{session_id}" in [template.uri_template for template in templates]
            session_id = (await told(client, "create_task", {"mode_slug": "code"}))["session_id"]
            [task] = (await client.read_resource(f"task://{session_id}")).contents
            assert isinstance(task, types.TextResourceContents)
            assert json.loads(task.text)["session_id"] == session_id

    run(backend, talk)


@in_each_way
def test_the_sdk_gets_prompts_and_completions(backend: Backend, mode: str, tmp_path: Path) -> None:
    """Each mode's prompt, the handoff of a task, and the session to hand over."""

    async def talk() -> None:
        async with modes_client(tmp_path, mode) as client:
            prompts = (await client.list_prompts()).prompts
            assert [prompt.name for prompt in prompts] == [*ALL_MODES, "handoff"]
            for slug in ALL_MODES:
                [message] = (await client.get_prompt(slug, {"task": "Do it"})).messages
                assert "Do it" in text_of(message.content)
            session_id = (await told(client, "create_task", {"mode_slug": "code"}))["session_id"]
            reference = types.PromptReference(name="handoff")
            found = await client.complete(reference, {"name": "session_id", "value": "sess_"})
            assert found.completion.values == [session_id]
            [message] = (await client.get_prompt("handoff", {"session_id": session_id, "to_mode": "ask"})).messages
            assert session_id in text_of(message.content)

    run(backend, talk)


@in_each_way
def test_errors_reach_the_sdk_as_its_era_has_them(backend: Backend, mode: str, tmp_path: Path) -> None:
    """A tool's is an error in one era and a result in the other; the words are the same."""

    async def talk() -> None:
        async with modes_client(tmp_path, mode) as client:
            await client.list_tools()
            arguments = {"session_id": UNKNOWN_SESSION}
            if mode == "legacy":
                with pytest.raises(MCPError) as refused:
                    await client.call_tool("get_task_info", arguments)
                assert refused.value.code == -32002
                message = refused.value.message
            else:
                result = await client.call_tool("get_task_info", arguments)
                assert result.is_error
                message = text_of(result.content[0])
                assert isinstance(result.structured_content, dict)
                assert result.structured_content["error"]["code"] == -32002
            assert message.startswith("Task not found")
            with pytest.raises(MCPError) as unknown:
                await client.read_resource("mode://nope")
            assert unknown.value.code == (-32001 if mode == "legacy" else -32602)
            assert unknown.value.message.startswith("Mode not found: nope.")

    run(backend, talk)


@in_each_way
def test_a_task_outlives_the_process(backend: Backend, mode: str, tmp_path: Path) -> None:
    """An editor restarts its servers at will; the handle still opens the task."""

    async def talk() -> None:
        async with modes_client(tmp_path, mode) as client:
            created = await told(client, "create_task", {"mode_slug": "docs", "initial_message": "Keep this"})
        async with modes_client(tmp_path, mode) as client:
            asked = {"session_id": created["session_id"], "include_messages": True}
            info = await told(client, "get_task_info", asked)
            assert (info["task_id"], info["messages"][0]["content"]) == (created["task_id"], "Keep this")

    run(backend, talk)
