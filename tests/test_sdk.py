"""The official SDK's client talks to the real process: both event loops it runs on, both eras it speaks."""

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal

import anyio
import mcp_types as types
import pytest
from mcp import Client, MCPError, StdioServerParameters
from pydantic import FileUrl

# The SDK warns of what 2026-07-28 gave up; the handshake era still has it, and so have we.
pytestmark = pytest.mark.filterwarnings("ignore::mcp.MCPDeprecationWarning")

ROOT = Path(__file__).parent.parent

SERVE_SAMPLE = """
import trio
from modes_actor.actor.stdio import claim_stdio
from modes_actor.server import Server
from tests.sample_offer import sample_offer

stdio = claim_stdio()
trio.run(Server(sample_offer()).serve, stdio.receive, stdio.send)
"""
Backend = Literal["asyncio", "trio"]
BACKENDS: list[Backend] = ["asyncio", "trio"]
MODES = ["legacy", "auto", "2026-07-28"]
"""A handshake; the SDK's own probing, which finds the stateless era; the stateless era without a probe."""


def run(backend: Backend, talk: Any) -> None:
    anyio.run(talk, backend=backend)


@asynccontextmanager
async def sample_client(mode: str, **options: Any) -> AsyncIterator[Client]:
    server = StdioServerParameters(command=sys.executable, args=["-c", SERVE_SAMPLE], cwd=ROOT)
    async with Client(server, mode=mode, read_timeout_seconds=60, **options) as client:
        yield client


def said(result: types.CallToolResult) -> str:
    (block,) = result.content
    assert isinstance(block, types.TextContent)
    return block.text


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("mode", MODES)
def test_the_real_server_opens_and_lists(backend: Backend, mode: str) -> None:
    """`python -m modes_actor` as an editor would start it."""

    async def talk() -> None:
        server = StdioServerParameters(command=sys.executable, args=["-m", "modes_actor"], cwd=ROOT)
        async with Client(server, mode=mode, read_timeout_seconds=60) as client:
            assert client.protocol_version == ("2025-11-25" if mode == "legacy" else "2026-07-28")
            assert client.server_info is None or client.server_info.name == "roo-modes-server"
            if mode == "legacy":
                await client.send_ping()
            assert [tool.name for tool in (await client.list_tools()).tools] == [
                "list_modes",
                "get_mode_info",
                "create_task",
                "switch_mode",
                "get_task_info",
                "validate_tool_use",
                "complete_task",
            ]
            assert {str(each.uri) for each in (await client.list_resources()).resources} >= {"mode://code"}
            assert {each.name for each in (await client.list_prompts()).prompts} >= {"code", "handoff"}

    run(backend, talk)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("mode", MODES)
def test_tools_resources_prompts_and_completions_read_back_with_the_sdks_own_types(backend: Backend, mode: str) -> None:
    """What we send is what the SDK's models say it is."""

    async def talk() -> None:
        async with sample_client(mode) as client:
            tools = (await client.list_tools()).tools
            assert [tool.name for tool in tools][:2] == ["echo", "everything"]
            assert tools[0].annotations is not None
            assert tools[0].annotations.read_only_hint is True
            echoed = await client.call_tool("echo", {"text": "ab", "times": 2})
            assert (said(echoed), echoed.structured_content) == ("abab", {"said": "abab"})
            everything = await client.call_tool("everything", {})
            kinds = [block.type for block in everything.content]
            assert kinds == ["text", "image", "audio", "resource_link", "resource", "resource"]
            assert [resource.uri for resource in (await client.list_resources()).resources] == [
                "sample://one",
                "sample://two",
            ]
            templates = (await client.list_resource_templates()).resource_templates
            assert [template.uri_template for template in templates] == ["sample://{name}"]
            (contents,) = (await client.read_resource("sample://one")).contents
            assert isinstance(contents, types.TextResourceContents)
            assert contents.text == "one"
            greeting = await client.get_prompt("greet", {"who": "Ada"})
            assert isinstance(greeting.messages[0].content, types.TextContent)
            reference = types.PromptReference(name="greet")
            completion = await client.complete(reference, {"name": "who", "value": "x"})
            assert completion.completion.values == ["xa", "xb", "xc"]

    run(backend, talk)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("mode", MODES)
def test_errors_arrive_as_the_sdks_errors(backend: Backend, mode: str) -> None:
    """Code and message, in both eras."""

    async def talk() -> None:
        async with sample_client(mode) as client:
            with pytest.raises(MCPError) as unknown:
                await client.call_tool("nope", {})
            assert unknown.value.code == -32602
            with pytest.raises(MCPError) as crashed:
                await client.call_tool("crash", {})
            assert crashed.value.code == -32603

    run(backend, talk)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("mode", MODES)
def test_the_clients_callbacks_are_asked_in_both_eras(backend: Backend, mode: str) -> None:
    """A server request in one era, `input_required` in the other: the same callbacks answer."""

    async def elicit(context: Any, params: Any) -> types.ElicitResult:
        return types.ElicitResult(action="accept", content={"name": "Ada"})

    async def roots(context: Any) -> types.ListRootsResult:
        return types.ListRootsResult(roots=[types.Root(uri=FileUrl("file:///project"))])

    async def talk() -> None:
        async with sample_client(mode, elicitation_callback=elicit, list_roots_callback=roots) as client:
            assert said(await client.call_tool("ask_name", {})) == "accept: Ada"
            assert said(await client.call_tool("ask_roots", {})) == "file:///project"

    run(backend, talk)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("mode", MODES)
def test_progress_and_log_messages_reach_the_clients_callbacks(backend: Backend, mode: str) -> None:
    """Before the answer, in order."""
    steps: list[float] = []
    logs: list[str] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        steps.append(progress)

    async def on_log(params: types.LoggingMessageNotificationParams) -> None:
        logs.append(params.level)

    async def talk() -> None:
        async with sample_client(mode, logging_callback=on_log, log_level="debug") as client:
            if mode == "legacy":
                await client.set_logging_level("debug")
            assert said(await client.call_tool("work", {}, progress_callback=on_progress)) == "worked"

    run(backend, talk)
    assert (steps, logs) == ([1.0, 2.0], ["debug", "error"])


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_sdks_listen_opens_and_closes(backend: Backend) -> None:
    """The stateless era's subscription, acknowledged with what was asked for."""

    async def talk() -> None:
        async with (
            sample_client("2026-07-28") as client,
            client.listen(tools_list_changed=True, resource_subscriptions=["sample://one"]) as subscription,
        ):
            assert subscription.honored.tools_list_changed is True
            assert subscription.honored.resource_subscriptions == ["sample://one"]

    run(backend, talk)
