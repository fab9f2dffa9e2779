#!/usr/bin/env python3
"""How fast the seven tools are, beside a trivial tool of the official SDKs, and whether they meet their targets.

    .venv/bin/python scripts/bench_modes.py [--rounds N] [--quick] [--json]

Real processes behind real pipes, one home directory of its own per run. All contenders are measured in turn, round by
round; rates are the best of their rounds. The TypeScript SDK takes part where `node` and `npm` are there: it is
installed into a temporary directory. A durable task is one whose answer came after its commit was synced.

Exit code: 0 if no target is missed, 1 if one is, 2 if a server failed. MB are 10^6 bytes.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import msgspec
from bench_tools import BenchError, Child, Verdict, table
from msgspec import Struct

SESSIONS: Final = 100_000

PYTHON_PROGRAM: Final = """
import anyio, mcp_types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
answer = mcp_types.CallToolResult(content=[mcp_types.TextContent(type="text", text="ok")])
async def call_tool(context, params):
    return answer
async def main():
    server = Server("sdk", on_call_tool=call_tool)
    async with stdio_server() as (receive, send):
        await server.run(receive, send, server.create_initialization_options())
anyio.run(main)
"""

NODE_PROGRAM: Final = """
import { Server } from "@modelcontextprotocol/server";
import { StdioServerTransport } from "@modelcontextprotocol/server/stdio";
const server = new Server({ name: "sdk", version: "1" }, { capabilities: { tools: {} } });
server.setRequestHandler("tools/call", async () => ({ content: [{ type: "text", text: "ok" }] }));
await server.connect(new StdioServerTransport());
"""


class Rates(Struct):
    """Calls per second, pipelined; None where nothing was measured."""

    list_modes: float = 0.0
    validate_tool_use: float = 0.0
    create_task: float = 0.0
    python_sdk: float = 0.0
    typescript_sdk: float | None = None


class Growth(Struct):
    """What many live sessions cost."""

    sessions: int
    memory_mb: float
    few_lookups: float
    many_lookups: float
    empty_start_ms: float
    full_start_ms: float


class Report(Struct):
    rates: Rates
    growth: Growth
    verdicts: list[Verdict]


def call(number: int, name: str, arguments: Mapping[str, Any]) -> bytes:
    params = {"name": name, "arguments": arguments}
    return msgspec.json.encode({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}) + b"\n"


def results(child: Child, requests: bytes, count: int) -> tuple[list[Any], float]:
    """Send them while reading the answers: the results in order of their ids, and the seconds it took."""
    writer = threading.Thread(target=child.write, args=[requests], daemon=True)
    begin = time.perf_counter()
    writer.start()
    lines = child.read_lines(count)
    took = time.perf_counter() - begin
    writer.join()
    answers = [msgspec.json.decode(line) for line in lines.splitlines()]
    wrong = next((answer for answer in answers if "result" not in answer or answer["result"].get("isError")), None)
    if wrong is not None:
        raise BenchError(f"a call failed: {str(wrong)[:300]}")
    if len({answer["id"] for answer in answers}) != count:
        raise BenchError("not every call was answered once")
    return [answer["result"] for answer in sorted(answers, key=lambda answer: answer["id"])], took


def rate(child: Child, name: str, count: int, arguments: Callable[[int], Mapping[str, Any]]) -> float:
    requests = b"".join(call(number, name, arguments(number)) for number in range(1, count + 1))
    return count / results(child, requests, count)[1]


@contextmanager
def ours(home: Path) -> Iterator[Child]:
    environment = {"HOME": str(home), "ROO_PROJECT_ROOT": str(home / "project"), "ROO_CONFIG_DIR": str(home / "config")}
    with Child("modes-actor", ["-m", "modes_actor"], environment=environment) as child:
        child.handshake()
        yield child
        child.finish()


def new_home(parent: Path) -> Path:
    home = Path(tempfile.mkdtemp(dir=parent))
    (home / "project" / "docs").mkdir(parents=True)
    return home


def measure_ours(parent: Path, less: int, into: Rates) -> None:
    with ours(new_home(parent)) as child:
        [created], _ = results(child, call(0, "create_task", {"mode_slug": "architect"}), 1)
        session = created["structuredContent"]["session_id"]
        rate(child, "list_modes", 200, lambda number: {})
        into.list_modes = max(into.list_modes, rate(child, "list_modes", 50_000 // less, lambda number: {}))

        def edit(number: int) -> Mapping[str, Any]:
            return {
                "session_id": session,
                "tool_name": "write_to_file",
                "file_path": f"docs/plan-{number % 1_000}.md",
            }

        into.validate_tool_use = max(into.validate_tool_use, rate(child, "validate_tool_use", 50_000 // less, edit))
        created_rate = rate(child, "create_task", 20_000 // less, lambda number: {"mode_slug": "code"})
        into.create_task = max(into.create_task, created_rate)


def measure_sdk(name: str, program: str, arguments: list[str], count: int) -> float:
    with Child(name, arguments, program=program) as child:
        child.handshake()
        rate(child, "x", 100, lambda number: {})
        return rate(child, "x", count, lambda number: {})


def measure_growth(parent: Path, sessions: int) -> Growth:
    home, empty = new_home(parent), new_home(parent)
    with ours(home) as child:
        first = call(0, "create_task", {"mode_slug": "code"})
        [created], _ = results(child, first, 1)
        session = created["structuredContent"]["session_id"]
        few = max(rate(child, "get_task_info", 5_000, lambda number: {"session_id": session}) for _ in range(3))
        for _ in range(0, sessions, 10_000):
            rate(child, "create_task", min(10_000, sessions), lambda number: {"mode_slug": "code"})
        many = max(rate(child, "get_task_info", 5_000, lambda number: {"session_id": session}) for _ in range(3))
        memory = child.memory_mb()
    with ours(empty) as child:
        results(child, call(0, "create_task", {"mode_slug": "code"}), 1)
    starts = [(start_ms(empty), start_ms(home)) for _ in range(5)]
    return Growth(sessions, memory, few, many, min(each[0] for each in starts), min(each[1] for each in starts))


def start_ms(home: Path) -> float:
    """Process start to the answer of the first durable task."""
    begin = time.perf_counter()
    with ours(home) as child:
        results(child, call(0, "create_task", {"mode_slug": "code"}), 1)
        return (time.perf_counter() - begin) * 1e3


def typescript(parent: Path) -> Path | None:
    """The directory of a TypeScript server, or None where there is no way to get one."""
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        return None
    directory = parent / "typescript"
    directory.mkdir()
    (directory / "server.mjs").write_text(NODE_PROGRAM)
    install = [npm, "install", "--silent", "--no-audit", "--no-fund", "--prefix", str(directory)]
    done = subprocess.run([*install, "@modelcontextprotocol/server@2"], capture_output=True, check=False)
    return directory if done.returncode == 0 else None


def run(rounds: int, *, quick: bool) -> Report:
    less = 10 if quick else 1
    rates = Rates()
    with tempfile.TemporaryDirectory() as directory:
        parent = Path(directory)
        node = typescript(parent)
        for number in range(1, rounds + 1):
            print(f"round {number} of {rounds} …", file=sys.stderr)
            measure_ours(parent, less, rates)
            sdk = measure_sdk("the Python SDK", sys.executable, ["-c", PYTHON_PROGRAM], 2_000 // less)
            rates.python_sdk = max(rates.python_sdk, sdk)
            if node is not None:
                sdk = measure_sdk("the TypeScript SDK", "node", [str(node / "server.mjs")], 20_000 // less)
                rates.typescript_sdk = max(rates.typescript_sdk or 0.0, sdk)
        print("many sessions …", file=sys.stderr)
        growth = measure_growth(parent, SESSIONS // less)
    return Report(rates, growth, judge(rates, growth))


def judge(rates: Rates, growth: Growth) -> list[Verdict]:
    python = rates.list_modes / rates.python_sdk
    lookups = growth.many_lookups / growth.few_lookups
    start = growth.full_start_ms / growth.empty_start_ms
    verdicts = [Verdict("list_modes: at least 40 x the Python SDK's trivial tool", f"{python:.0f} x", python >= 40)]
    if rates.typescript_sdk is None:
        verdicts.append(Verdict("list_modes: at least 3 x the TypeScript SDK's", "node or npm is missing", None))
    else:
        ratio = rates.list_modes / rates.typescript_sdk
        verdicts.append(Verdict("list_modes: at least 3 x the TypeScript SDK's", f"{ratio:.1f} x", ratio >= 3))
    return [
        *verdicts,
        Verdict(
            "validate_tool_use with a path: at least 50,000/s",
            f"{rates.validate_tool_use:,.0f}/s",
            rates.validate_tool_use >= 50_000,
        ),
        Verdict("durable create_task: at least 10,000/s", f"{rates.create_task:,.0f}/s", rates.create_task >= 10_000),
        Verdict(f"{growth.sessions:,} sessions: below 300 MB", f"{growth.memory_mb:.0f} MB", growth.memory_mb < 300),
        Verdict("get_task_info among them: at least 0.8 x the rate among few", f"{lookups:.2f} x", lookups >= 0.8),
        Verdict("start with their file: at most 1.3 x of an empty one", f"{start:.2f} x", start <= 1.3),
    ]


def show(report: Report) -> str:
    rates = report.rates
    rows = [
        ("list_modes", f"{rates.list_modes:,.0f}"),
        ("validate_tool_use with a path", f"{rates.validate_tool_use:,.0f}"),
        ("create_task, durable", f"{rates.create_task:,.0f}"),
        ("the Python SDK's trivial tool", f"{rates.python_sdk:,.0f}"),
        ("the TypeScript SDK's trivial tool", f"{rates.typescript_sdk:,.0f}" if rates.typescript_sdk else "-"),
    ]
    words = {True: "met", False: "MISSED", None: "skipped"}
    judged = [(words[each.met], each.target, each.found) for each in report.verdicts]
    return "\n\n".join(
        [
            table(("pipelined", "calls per second"), rows, markdown=False),
            table(("verdict", "target", "found"), judged, markdown=False, left=2),
        ]
    )


def main() -> int:
    parser = argparse.ArgumentParser(description="Measure the seven tools beside the official SDKs.")
    parser.add_argument("--rounds", type=int, default=3, help="how often every server is measured (default: 3)")
    parser.add_argument("--quick", action="store_true", help="a smoke test of some seconds: its numbers are rough")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    if options.rounds < 1:
        parser.error("--rounds must be at least 1")
    try:
        report = run(1 if options.quick else options.rounds, quick=options.quick)
    except BenchError as error:
        print(f"bench: {error}", file=sys.stderr)
        return 2
    print(msgspec.json.format(msgspec.json.encode(report)).decode() if options.json else show(report))
    return 1 if any(verdict.met is False for verdict in report.verdicts) else 0


if __name__ == "__main__":
    sys.exit(main())
