"""The file of the store in other hands: locked by another process, deleted, moved, replaced."""

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

import trio
from faults_ledger import Ledger
from faults_scene import Fault, Scene, pause
from faults_server import Gone, NotAnswered, Refused, Server
from msgspec import Struct

from modes_actor.surface.mode_results import TaskDetails

BOUND: Final = 15.0
"""Seconds in which a server that waits for a file must have given up: three times as long as it means to wait."""
LONG: Final = 6.5
"""Seconds for which a lock outlasts the patience of the store."""


class Hold(Struct, frozen=True):
    against_readers: bool
    is_long: bool


SHORT_HOLDS: Final = (Hold(False, False), Hold(True, False))
HOLDS: Final = (*SHORT_HOLDS, Hold(False, True), Hold(True, True))


@contextmanager
def held(path: Path, *, against_readers: bool) -> Iterator[None]:
    """Another process (this one) has the file for itself."""
    with closing(sqlite3.connect(path, timeout=10, isolation_level=None)) as other:
        if against_readers:
            other.execute("PRAGMA locking_mode = EXCLUSIVE")
        other.execute("BEGIN EXCLUSIVE")
        yield


async def locked(scene: Scene) -> None:
    """For a moment, which is waited out, or for longer than that; against writers, or against everybody."""
    ledger = scene.ledger
    took: list[float] = []
    reads: list[bool] = []
    async with scene.ground.server() as first:
        known = await scene.recover(first)

    async def change(server: Server) -> None:
        begin = time.monotonic()
        await ledger.change_something(server)
        took.append(time.monotonic() - begin)

    async def look(server: Server) -> None:
        try:
            await server.use("get_task_info", TaskDetails, session_id=known.session_id)
        except Refused as error:
            reads.append(False)
            if not error.is_passing:
                ledger.trouble.append(f"a look at a locked file: {error}")
        else:
            reads.append(True)

    holds = HOLDS if scene.seconds >= 2 * LONG else SHORT_HOLDS
    for hold in scene.in_turn(holds, no_time_for=len(HOLDS) - len(holds)):
        async with scene.ground.server() as server:
            await server.is_there()
            if not hold.against_readers:  # otherwise nobody could have the file for himself
                await scene.recover(server)
            async with trio.open_nursery() as nursery:
                with held(scene.ground.store_file, against_readers=hold.against_readers):
                    scene.injected()
                    before = ledger.acknowledged
                    for _ in range(10):
                        nursery.start_soon(change, server)
                    if not hold.against_readers:
                        for _ in range(10):
                            await look(server)
                    await trio.sleep(LONG if hold.is_long else scene.random.uniform(0.1, 0.5))
                    if ledger.acknowledged != before:
                        ledger.trouble.append("a change was acknowledged while another process had the file")
            await scene.recover(server)
            await ledger.check_some(server)
    scene.judge_file()
    refused = ledger.refusals.total()
    scene.judge(
        f"a change waits, or is refused as retryable within {BOUND:g} s",
        max(took) < BOUND,
        f"{len(took)} asked, {refused} refused, slowest {max(took):.1f} s",
    )
    scene.judge("reading goes on while another writes", all(reads), f"{reads.count(False)} of {len(reads)} refused")


def _delete(path: Path) -> None:
    path.unlink()


def _delete_all(path: Path) -> None:
    for each in path.parent.iterdir():
        each.unlink(missing_ok=True)


def _move_directory(path: Path) -> None:
    path.parent.rename(path.parent.with_name(f"{path.parent.name}-moved-{time.monotonic_ns()}"))


def _replace(path: Path) -> None:
    """By an empty one, as a program that synchronizes files may."""
    fresh = path.with_name("fresh")
    fresh.touch()
    fresh.replace(path)


WAYS_TO_GO: Final[tuple[Callable[[Path], None], ...]] = (_delete, _delete_all, _move_directory, _replace)


async def deleted(scene: Scene) -> None:
    """The file, it and its companions, or its directory goes while two servers write to it."""
    ledger = scene.ledger
    for go in scene.in_turn(WAYS_TO_GO):
        async with scene.ground.server() as one, scene.ground.server() as other:
            servers = (one, other)
            for each in servers:
                await scene.ledger.create(each)
            async with trio.open_nursery() as nursery:
                for each in servers * 10:
                    nursery.start_soon(_keep_creating, ledger, each)
                await pause(scene, 0.05, 0.2)
                go(scene.ground.store_file)
                scene.injected()
                ledger.forget()
                since = time.monotonic()
                for each in servers:
                    await scene.recover(each, since)
                await pause(scene, 0.05, 0.2)
                nursery.cancel_scope.cancel()
            for each in servers:
                await ledger.check_some(each)
        async with scene.ground.server() as again:
            await ledger.check_some(again)
    scene.judge_file()


async def _keep_creating(ledger: Ledger, server: Server) -> None:
    """Nothing but new tasks: the others went with the file."""
    try:
        while True:
            if await ledger.create(server) is None:
                await trio.sleep(0.01)
    except (Gone, NotAnswered):
        pass


FAULTS = (
    Fault("locked", "another process holds the file of the store, for a moment or for long", locked),
    Fault("deleted", "the file of the store is deleted, moved or replaced while two servers write", deleted),
)
