"""What the server does, shown in a real conversation with a real server process.

Everything that is printed was sent or answered just then; if an answer is not what it should be, the demo says so and
fails. `--svg FILE` makes a picture of it.
"""

import argparse
import io
import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, Final, TextIO, cast

import msgspec
import trio
from rich.console import Console
from rich.text import Text

from modes_actor import Client, start_server
from modes_actor.surface.mode_results import Validation
from modes_actor.wire.client_features import Root

WIDTH = 100
TITLE = "modes_actor"

PICTURE = """\
<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<title>The demo of modes_actor: a task in architect mode, a refused edit, a switch to code, a restart</title>
<style>
.{unique_id}-matrix {{
    font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace;
    font-size: {char_height}px;
    line-height: {line_height}px;
}}
.{unique_id}-title {{ font-size: 18px; font-weight: bold; font-family: sans-serif; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" />
</clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""
"""The frame of the picture. It asks the network for nothing, fonts neither."""


class Unexpected(Exception):
    """An answer is not what the demo promises."""


class Audience(io.TextIOBase):
    """stdout; but that somebody has seen enough, or a disk is full, does not end the conversation in its middle."""

    _PLAIN: Final = str.maketrans({"→": ">", "←": "<", "✓": "+", "✗": "-", "✂": "!", "“": '"', "”": '"', "…": "."})

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._failure: OSError | None = None

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._stream.encoding

    def isatty(self) -> bool:
        return self._stream.isatty()

    def fileno(self) -> int:
        return self._stream.fileno()

    def write(self, text: str) -> int:
        if self._failure is None:
            try:
                text.encode(self.encoding)
            except UnicodeEncodeError:
                text = text.translate(self._PLAIN).encode(self.encoding, "replace").decode(self.encoding)
            self._try(lambda: self._stream.write(text))
        return len(text)

    def flush(self) -> None:
        if self._failure is None:
            self._try(self._stream.flush)

    def leave(self) -> int:
        """The exit code."""
        self.flush()
        if self._failure is None:
            return 0
        os.dup2(os.open(os.devnull, os.O_WRONLY), self._stream.fileno())  # what is still buffered would fail again
        if isinstance(self._failure, BrokenPipeError):
            return 141
        print(f"The demo cannot be shown: {self._failure.strerror}", file=sys.stderr)
        return 1

    def _try(self, write: Callable[[], object]) -> None:
        try:
            write()
        except OSError as failure:
            self._failure = failure


class Show:
    """Prints what goes over the wire, a line each."""

    def __init__(self, console: Console, *, raw: bool) -> None:
        self._console = console
        self._raw = raw
        self._number = 0

    def step(self, title: str) -> None:
        self._number += 1
        self._console.print()
        self._console.print(Text.assemble((f"{self._number}  ", "dim"), (title, "bold")))

    def trace(self, direction: str, line: bytes) -> None:
        """Every message, as it is on the wire: what is sent in full, an answer where it is told (or with `--raw`)."""
        if self._raw:
            self._print("→" if direction == "sent" else "←", line.decode().strip(), "cyan")
            return
        message = msgspec.json.decode(line)
        method = message.get("method")
        if direction == "received" and method is not None and "id" in message:
            self._print("←", f"asks back: {method}", "cyan")
        elif direction == "sent" and method is None:
            self._print("→", ", ".join(f"file:///…/{Path(root['uri']).name}" for root in message["result"]["roots"]))
        elif direction == "sent" and method == "tools/call":
            name, arguments = message["params"]["name"], _compact(message["params"]["arguments"])
            self._print("→", f"{name}  {arguments}".strip(), "cyan")
        elif direction == "sent" and "id" in message:
            self._print("→", method, "cyan")

    def answer(self, line: str, style: str = "") -> None:
        self._print("←", line, style)

    def event(self, what: str) -> None:
        self._print("✂", what, "magenta")

    def _print(self, mark: str, text: str, style: str = "") -> None:
        for number, line in enumerate(Text(text, style).wrap(self._console, self._console.width - 5)):
            lead = f"   {mark} " if number == 0 else "     "
            line.rstrip()
            self._console.print(Text.assemble((lead, "dim"), line))


def _compact(arguments: dict[str, Any]) -> str:
    shown = {key: f"{value[:9]}…" if key == "session_id" else value for key, value in arguments.items()}
    texts = {key: value if isinstance(value, str) else json.dumps(value) for key, value in shown.items()}
    return ", ".join(f"{key}: {text}" for key, text in texts.items())


async def demonstrate(show: Show, project: Path, environment: dict[str, str]) -> None:
    def server() -> AbstractAsyncContextManager[Client]:
        roots = [Root(project.as_uri())]
        return start_server(roots=roots, environment=environment, working_directory=project, trace=show.trace)

    show.step("Discovery: an editor starts the server and asks what there is")
    started = time.perf_counter()
    async with server() as client:
        who = client.server
        took = (time.perf_counter() - started) * 1000
        show.answer(f"{who.name} {who.version}, MCP {who.protocol_version}, ready after {took:.0f} ms")
        show.answer(", ".join(mode.slug for mode in (await client.list_modes()).modes))

        show.step("A task in architect mode")
        task = await client.create_task("architect", "Plan the billing service")
        session = task.session_id
        show.answer(f"session {session}, {task.state}")

        show.step("The plan may be written, code may not")
        _tell(show, await client.validate_tool_use(session, "write_to_file", "docs/billing.md"), allowed=True)
        _tell(show, await client.validate_tool_use(session, "write_to_file", "src/billing.py"), allowed=False)

        show.step("On to code, with a reason that is kept")
        switched = await client.switch_mode(session, "code", "The plan is approved")
        show.answer(f"{switched.old_mode} → {switched.new_mode}")
        _tell(show, await client.validate_tool_use(session, "write_to_file", "src/billing.py"), allowed=True)

        show.step("The server is killed; the next one knows all that was answered")
        assert client.pid is not None
        show.event(f"kill -9 {client.pid}")
        os.kill(client.pid, signal.SIGKILL if hasattr(signal, "SIGKILL") else signal.SIGTERM)
    async with server() as client:
        found = await client.get_task_info(session, include_messages=True)
        if (found.mode_slug, found.state) != ("code", "active"):
            raise Unexpected("the restart lost something")
        history = " → ".join(change.mode for change in found.mode_history)
        said = "; ".join(message.content for message in found.messages or [])
        show.answer(f"{found.state}, {history}, “{said}”")

        show.step("Completion")
        done = await client.complete_task(session, "completed", "The billing service bills")
        show.answer(f"{done.status}: {done.result}")


def _tell(show: Show, found: Validation, *, allowed: bool) -> None:
    if found.allowed is not allowed:
        raise Unexpected(f"expected {'a yes' if allowed else 'a no'}, but: {found.error or found.rule}")
    if found.allowed:
        show.answer(f"✓ allowed ({found.rule})", "green")
    else:
        show.answer(f"✗ {found.error}", "red")


def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="scripts/demo", description="Shows what the server does.")
    parser.add_argument("--raw", action="store_true", help="show every message as it is on the wire")
    parser.add_argument("--svg", metavar="FILE", type=Path, help="make a picture of what is shown")
    arguments = parser.parse_args(words)
    recording = arguments.svg is not None
    audience = Audience(sys.stdout)
    console = Console(
        file=cast("TextIO", audience),
        record=recording,
        width=WIDTH if recording or not sys.stdout.isatty() else None,
        highlight=False,
        emoji=False,
        markup=False,
    )
    with tempfile.TemporaryDirectory(prefix="modes-actor-demo-") as directory:
        place = Path(directory).resolve()
        project = place / "project"
        project.mkdir()
        environment = {name: "" for name in os.environ if name.startswith("ROO_")} | {
            "ROO_CONFIG_DIR": str(place / "own"),
            "ROO_STORAGE_PATH": str(place / "sessions"),
            "ROO_LOG_FILE": str(place / "log"),
        }
        console.print("A conversation of an editor (→) with a server that was just started (←).")
        try:
            trio.run(demonstrate, Show(console, raw=arguments.raw), project, environment)
        except Exception as failure:
            print(f"The demo failed: {failure}", file=sys.stderr)
            return 1
    if recording:
        arguments.svg.write_text(
            console.export_svg(title=TITLE, code_format=PICTURE, unique_id="demo"), encoding="utf-8"
        )
    else:
        console.print()
        console.print("Add it to your editor: .venv/bin/modes-actor install --list shows which were found.")
    return audience.leave()


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
