"""Servers that are killed or stopped in the middle of things: alone, and several on one store."""

import signal
import time
from typing import Final

import trio
from faults_scene import Fault, NotRecovered, Scene, pause

CLIENTS: Final = 100
"""Changes that are on their way at the same time."""
SETTLE_SECONDS: Final = 20.0
"""In which a server that goes on must have answered what was asked before."""


async def kill(scene: Scene) -> None:
    """Each round is the life of a server, short or very short, and the next one's first words."""
    ledger = scene.ledger
    for number in scene.rounds():
        async with scene.ground.server() as server, trio.open_nursery() as nursery:
            if number % 3 != 2:
                await ledger.create(server)  # else it is killed while it starts, makes the file, or looks into it
            for _ in range(CLIENTS):
                nursery.start_soon(ledger.change_until_gone, server)
            await pause(scene, 0.0, 0.6)
            server.kill()
            scene.injected()
        since = time.monotonic()
        async with scene.ground.server() as again:
            await scene.recover(again, since)
            await ledger.check_some(again)
    async with scene.ground.server() as last:
        await ledger.check(last)
    scene.judge_file()


async def several(scene: Scene) -> None:
    """Three editors, whose servers share the tasks; each is killed now and then, the others go on."""
    ledger = scene.ledger

    async def window() -> None:
        lives = 0
        while not scene.is_over or lives < 2:
            lives += 1
            begin = time.monotonic()
            async with scene.ground.server() as server:
                if lives > 1:
                    try:
                        await scene.recover(server, begin)
                    except NotRecovered as error:
                        ledger.trouble.append(f"a server beside others: {error}")
                async with trio.open_nursery() as nursery:
                    for _ in range(CLIENTS // 3):
                        nursery.start_soon(ledger.change_until_gone, server)
                    await pause(scene, 0.2, 1.5)
                    if scene.random.random() < 0.8 or lives == 1:
                        server.kill()
                        scene.injected()
                    else:
                        nursery.cancel_scope.cancel()

    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(window)
    async with scene.ground.server() as one, scene.ground.server() as other:
        await ledger.check(one)
        await ledger.check_some(other)
    scene.judge_file()


async def stopped(scene: Scene) -> None:
    """SIGSTOP and SIGCONT, with another server on the same store that must get its turn."""
    ledger = scene.ledger
    slowest = 0.0

    async with scene.ground.server() as server, scene.ground.server() as other:
        await scene.recover(server)
        async with trio.open_nursery() as nursery:
            for _ in range(CLIENTS):
                nursery.start_soon(ledger.change_until_gone, server)
            nursery.start_soon(ledger.change_until_gone, other)
            for _ in scene.rounds(at_least=3):
                await pause(scene, 0.0, 0.2)
                server.signal(signal.SIGSTOP)
                scene.injected()
                asked_meanwhile = [server.begin("ping") for _ in range(20)]
                stopped_at = time.monotonic()
                await other.is_there()
                await pause(scene, 0.02, 0.5)
                slowest = max(slowest, time.monotonic() - stopped_at)
                server.signal(signal.SIGCONT)
                since = time.monotonic()
                for call in asked_meanwhile:
                    await server.answer_to(call)
                await scene.recover(server, since)
            nursery.cancel_scope.cancel()
        unanswered = await server.settled(SETTLE_SECONDS) + await other.settled(SETTLE_SECONDS)
        await ledger.check(server)
        await ledger.check_some(other)
    scene.judge_file()
    scene.judge(
        "once it goes on, all that was asked is answered",
        unanswered == 0,
        f"{unanswered} left, stopped up to {slowest:.1f} s",
    )


FAULTS = (
    Fault("kill", "kill -9 at any moment of pipelined changes, and a restart", kill),
    Fault("several", "three servers on one store, killed and restarted while they share its tasks", several),
    Fault("stopped", "SIGSTOP and SIGCONT in the middle of traffic, beside another server", stopped),
)
