"""The servers that are measured beside one another: ours, a bare loop as the floor, and what people use otherwise.

FastMCP and the TypeScript SDK are installed into a directory of their own when they are wanted, and left out where that
is not possible. Each serves one trivial tool named `list_modes`; ours does what it does for real.
"""

import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from bench_tools import Child
from msgspec import Struct

LOW_LEVEL: Final = """
import anyio, mcp_types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
answer = mcp_types.CallToolResult(content=[mcp_types.TextContent(type="text", text="ok")])
tool = mcp_types.Tool(name="list_modes", input_schema={"type": "object"})
async def call_tool(context, params):
    return answer
async def list_tools(context, params):
    return mcp_types.ListToolsResult(tools=[tool])
async def main():
    server = Server("sdk", on_call_tool=call_tool, on_list_tools=list_tools)
    async with stdio_server() as (receive, send):
        await server.run(receive, send, server.create_initialization_options())
anyio.run(main)
"""

HIGH_LEVEL: Final = """
from mcp.server import MCPServer
server = MCPServer("sdk")
@server.tool()
def list_modes() -> str:
    return "ok"
server.run()
"""

FASTMCP: Final = """
from fastmcp import FastMCP
server = FastMCP("fastmcp")
@server.tool
def list_modes() -> str:
    return "ok"
server.run(show_banner=False)
"""

TYPESCRIPT: Final = """
import { Server } from "@modelcontextprotocol/server";
import { StdioServerTransport } from "@modelcontextprotocol/server/stdio";
const server = new Server({ name: "sdk", version: "1" }, { capabilities: { tools: {} } });
const tool = { name: "list_modes", inputSchema: { type: "object" } };
server.setRequestHandler("tools/list", async () => ({ tools: [tool] }));
server.setRequestHandler("tools/call", async () => ({ content: [{ type: "text", text: "ok" }] }));
await server.connect(new StdioServerTransport());
"""

LOOP: Final = """
import sys, msgspec
class Request(msgspec.Struct):
    method: str
    id: int | str | None = None
class Response(msgspec.Struct, tag_field="jsonrpc", tag="2.0"):
    id: int | str
    result: dict[str, str]
decode, encode = msgspec.json.Decoder(Request).decode, msgspec.json.Encoder().encode
write, flush = sys.stdout.buffer.write, sys.stdout.buffer.flush
for line in sys.stdin.buffer:
    request = decode(line)
    if request.id is not None:
        write(encode(Response(request.id, {})) + b"\\n")
        flush()
"""

IMPORTING: Final = """
import sys, trio, msgspec
print(flush=True)
sys.stdin.read()
"""

OURS: Final = "modes-actor"
BARE_LOOP: Final = "bare msgspec loop"
PYTHON_SDK: Final = "Python SDK"
TYPESCRIPT_SDK: Final = "TypeScript SDK"


class Contender(Struct, frozen=True):
    """A server, and how many requests it gets: some would take minutes for what others answer in a second."""

    name: str
    program: str
    arguments: tuple[str, ...]
    requests: int
    has_tools: bool = True

    def start(self, home: Path) -> Child:
        environment = {"HOME": str(home), "FASTMCP_CHECK_FOR_UPDATES": "off", "FASTMCP_LOG_LEVEL": "ERROR"}
        return Child(self.name, self.arguments, program=self.program, environment=environment)


IMPORTS: Final = Contender("the import of trio and msgspec", sys.executable, ("-c", IMPORTING), 0, has_tools=False)
"""What our server stands on, and no server: it says an empty line once it is there, and ends when its input does."""


def contenders(directory: Path, *, less: int, peers: bool) -> Iterator[Contender]:
    """Those that can be had here. `peers`: also those that have to be installed."""
    python = sys.executable
    yield Contender(OURS, python, ("-m", "modes_actor"), 100_000 // less)
    yield Contender(BARE_LOOP, python, ("-c", LOOP), 100_000 // less, has_tools=False)
    yield Contender(PYTHON_SDK, python, ("-c", LOW_LEVEL), 2_000 // less)
    yield Contender("Python SDK, high-level", python, ("-c", HIGH_LEVEL), 1_000 // less)
    if peers and (installed := _fastmcp(directory / "fastmcp")) is not None:
        yield Contender("FastMCP", installed, ("-c", FASTMCP), 1_000 // less)
    if peers and (script := _typescript(directory / "typescript")) is not None:
        yield Contender(TYPESCRIPT_SDK, "node", (script,), 20_000 // less)


def _fastmcp(directory: Path) -> str | None:
    """A Python that has it."""
    try:
        venv.create(directory, with_pip=True)
        python = directory / ("Scripts" if os.name == "nt" else "bin") / "python"
        subprocess.run([python, "-m", "pip", "install", "--quiet", "fastmcp>=4"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return str(python)


def _typescript(directory: Path) -> str | None:
    """A script that node runs."""
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        return None
    directory.mkdir()
    script = directory / "server.mjs"
    script.write_text(TYPESCRIPT)
    install = [npm, "install", "--silent", "--no-audit", "--no-fund", "--prefix", str(directory)]
    done = subprocess.run([*install, "@modelcontextprotocol/server@2"], capture_output=True, check=False)
    return str(script) if done.returncode == 0 else None
