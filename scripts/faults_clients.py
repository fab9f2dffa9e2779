"""Clients that read slowly, not at all, or are gone: their servers stay small, and end; others notice nothing."""

import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Final

import trio
from faults_scene import Fault, Scene
from faults_server import Gone, NotAnswered, Server

GROWTH_MB: Final = 48.0
"""What a server may grow by while its client does not read: 8 MiB of answers, some requests, and some air."""
REQUESTS: Final = 10_000
QUESTION: Final = "tools/list"
"""Its answer is some ten kilobytes, so all of them come to much more than that."""
LOOK_SECONDS: Final = 1.5
BYSTANDER_SECONDS: Final = 10.0
END_SECONDS: Final = 15.0
"""Three times what a server gives what is still running, or a client that does not read."""
ON_THEIR_WAY: Final = 50

RELAY: Final = """
import os, subprocess, sys, threading
server = subprocess.Popen(sys.argv[2:], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
with open(sys.argv[1], "w") as file:
    file.write(str(server.pid))
def pass_on(source, target):
    while chunk := os.read(source, 65536):
        os.write(target, chunk)
threading.Thread(target=pass_on, args=(server.stdout.fileno(), 1), daemon=True).start()
pass_on(0, server.stdin.fileno())
server.stdin.close()
sys.exit(server.wait())
"""
"""A client between us and the server, so that there is one to kill. Its first argument: where to write the server's
process id."""


@asynccontextmanager
async def bystander(scene: Scene) -> AsyncIterator[None]:
    """Somebody else, with a server of his own on the same store, who should notice nothing."""
    took: list[float] = []

    async def work(server: Server) -> None:
        while True:
            begin = time.monotonic()
            await scene.ledger.change_something(server)
            took.append(time.monotonic() - begin)
            await trio.sleep(0.005)

    async with scene.ground.server() as server:
        await scene.recover(server)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(work, server)
            yield
            nursery.cancel_scope.cancel()
        await scene.ledger.check(server)
    slowest = max(took, default=float("inf"))
    scene.judge(
        f"somebody else is served meanwhile, within {BYSTANDER_SECONDS:g} s",
        slowest < BYSTANDER_SECONDS,
        f"{len(took):,} changes, slowest {slowest * 1e3:.0f} ms",
    )


async def stalled(scene: Scene) -> None:
    """It asks for many megabytes, reads nothing for a while, then everything."""
    await _lazy(scene, Server.stop_reading)


async def slow(scene: Scene) -> None:
    """It asks for many megabytes and takes a kilobyte each second; in the end it hurries."""
    await _lazy(scene, partial(Server.read_on, bytes_per_second=1024))


async def _lazy(scene: Scene, be_lazy: Callable[[Server], None]) -> None:
    growth: list[float] = []
    unanswered = size = 0
    async with bystander(scene):
        for _ in scene.rounds():
            async with scene.ground.server() as server:
                await scene.recover(server)
                size = len(await server.ask(QUESTION))
                before = server.memory_mb()
                be_lazy(server)
                scene.injected()
                calls = [server.begin(QUESTION) for _ in range(REQUESTS)]
                growth.append(await _growth(server, before))
                server.read_on()
                await scene.recover(server)
                for call in calls:
                    try:
                        await server.answer_to(call)
                    except (Gone, NotAnswered):
                        unanswered += 1
    scene.judge("once it reads on, everything is answered", not unanswered, f"{unanswered} requests were not")
    scene.judge(
        f"a server grows by less than {GROWTH_MB:g} MB meanwhile",
        max(growth) < GROWTH_MB,
        f"at most {max(growth):.1f} MB, with {size * REQUESTS / 1e6:.0f} MB asked for",
    )


async def _growth(server: Server, before: float) -> float:
    most = before
    with trio.move_on_after(LOOK_SECONDS):
        while most - before < GROWTH_MB:
            await trio.sleep(0.05)
            most = max(most, server.memory_mb())
    return most - before


# Gone.


async def _close_input(server: Server) -> None:
    await server.sent()
    await server.close_input()


async def _close_output(server: Server) -> None:
    await server.close_output()


async def _close_both(server: Server) -> None:
    await server.close_output()
    await server.close_input()


async def _kill_client(server: Server) -> None:
    server.kill()


WAYS_TO_VANISH: Final[tuple[Callable[[Server], Awaitable[None]], ...]] = (
    _close_input,
    _close_output,
    _close_both,
    _kill_client,
)


async def vanishing(scene: Scene) -> None:
    """A client closes its ends, one or both, or is killed, with changes on their way."""
    ledger = scene.ledger
    left = unanswered = 0
    slowest = 0.0
    async with bystander(scene):
        for vanish in scene.in_turn(WAYS_TO_VANISH):
            gone = 0

            async def change(server: Server) -> None:
                nonlocal gone
                try:
                    await ledger.create(server)
                except Gone:
                    gone += 1

            pid_file = scene.ground.directory / "pid"
            relay = [sys.executable, "-c", RELAY, str(pid_file), *scene.ground.command]
            async with scene.ground.server(relay if vanish is _kill_client else None) as server:
                await scene.recover(server)
                pid = int(pid_file.read_text()) if vanish is _kill_client else server.pid
                async with trio.open_nursery() as nursery:
                    for _ in range(ON_THEIR_WAY):
                        nursery.start_soon(change, server)
                    while server.unanswered + gone < ON_THEIR_WAY // 2:
                        await trio.lowlevel.checkpoint()
                    since = time.monotonic()
                    await vanish(server)
                    scene.injected()
                    with trio.move_on_after(END_SECONDS) as patience:
                        await _end_of(pid)
                    left += patience.cancelled_caught
                slowest = max(slowest, time.monotonic() - since)
                code = await server.exit_code()
                if vanish is not _kill_client and code != 0:
                    ledger.trouble.append(f"a server whose client vanished ended with code {code}")
                if vanish is _close_input:
                    unanswered += gone
            async with scene.ground.server() as again:
                await ledger.check_some(again)
    scene.judge("a server ends when its client has gone", left == 0, f"{left} did not; slowest {slowest:.1f} s")
    scene.judge("what came before the end of the input is answered", unanswered == 0, f"{unanswered} were not")
    scene.judge_file()


async def _end_of(pid: int) -> None:
    """Return once the process has ended, whether or not anybody has taken note of that."""
    while _runs(pid):  # noqa: ASYNC110  # it is no child of ours, so nobody tells us
        await trio.sleep(0.01)


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


FAULTS = (
    Fault("slow", "a client asks for a lot and reads a kilobyte each second", slow),
    Fault("stalled", "a client asks for a lot and reads nothing for a while", stalled),
    Fault("vanishing", "a client closes stdin, stdout or both, or is killed, with requests on their way", vanishing),
)
