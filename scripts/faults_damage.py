"""A store whose file is damaged: overwritten, cut, emptied; before a server starts, and while one has it open.

What was destroyed on purpose cannot be asked for again. What is checked: no wrong answer comes out of it, nobody dies,
what is no database any more is kept aside, and the way out of it is open.
"""

import os
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Final

from faults_ledger import examples
from faults_scene import Fault, Scene, at_once
from faults_server import Server
from msgspec import Struct

from modes_actor.surface.mode_results import ModeList

PAGE: Final = 4096
"""Bytes. Damage is done to whole pages: within one, SQLite has nothing by which to notice it."""


def _garbage(path: Path, random: Random) -> None:
    path.write_bytes(b"no database, " + random.randbytes(random.randrange(1, 50_000)))


def _zeros(path: Path, random: Random) -> None:
    path.write_bytes(bytes(random.randrange(PAGE, 50_000)))


def _empty(path: Path, random: Random) -> None:
    path.write_bytes(b"")


def _cut(path: Path, random: Random) -> None:
    os.truncate(path, random.randrange(1, path.stat().st_size // PAGE) * PAGE)


def _overwrite_pages(path: Path, random: Random) -> None:
    """Not with what could be a page: that would be another database, not a damaged one."""
    with path.open("r+b") as file:
        for page in random.sample(range(1, path.stat().st_size // PAGE), 4):
            file.seek(page * PAGE)
            file.write(b"\xff" + random.randbytes(PAGE - 1))


def _overwrite_log(path: Path, random: Random) -> None:
    """The write-ahead log that a killed server left."""
    log = path.with_name(f"{path.name}-wal")
    with log.open("r+b") as file:
        file.seek(random.randrange(log.stat().st_size // 2))
        file.write(random.randbytes(2 * PAGE))


class Case(Struct, frozen=True):
    damage: Callable[[Path, Random], None]
    while_open: bool = False
    no_database: bool = False
    """What is there afterwards is to be set aside."""
    goes_on: bool = True
    """What is there afterwards is good for more."""


CASES: Final = (
    Case(_garbage, no_database=True),
    Case(_cut, no_database=True),
    Case(_zeros, no_database=True),
    Case(_empty),
    Case(_overwrite_log),
    Case(_overwrite_pages, goes_on=False),
    Case(_garbage, while_open=True, goes_on=False),
    Case(_cut, while_open=True, goes_on=False),
    Case(_zeros, while_open=True, goes_on=False),
    Case(_empty, while_open=True, goes_on=False),
    Case(_overwrite_pages, while_open=True, goes_on=False),
)


class Counts(Struct):
    set_aside: int = 0
    without_modes: int = 0
    taken_away: int = 0


async def damaged(scene: Scene) -> None:
    ledger = scene.ledger
    ledger.may_refuse = lambda error: error.code in (-32603, -32004, -32002)
    counts, no_databases = Counts(), 0
    for case in scene.in_turn(CASES):
        scene.ground.new_store()
        ledger.forget()
        no_databases += case.no_database
        if case.while_open:
            await _damage_while_open(scene, case, counts)
        else:
            await _damage_before_start(scene, case)
        await _start_again(scene, case, counts)
    scene.judge_file()
    scene.judge(
        "what is no database is set aside, to the byte, and a new one made",
        counts.set_aside == no_databases if no_databases else None,
        f"{counts.set_aside} of {no_databases}",
    )
    scene.judge(
        "what needs no store is served meanwhile", not counts.without_modes, f"{counts.without_modes} times it was not"
    )
    scene.judge(
        "no wrong answer comes out of a damaged file",
        not ledger.trouble,
        examples(ledger.trouble) or f"{ledger.refusals.total()} refusals",
    )
    taken = counts.taken_away  # after each of which the server has recovered, or we would not be here
    scene.judge("once it is taken away, it is replaced", True if taken else None, f"{taken} times")


async def _damage_before_start(scene: Scene, case: Case) -> None:
    async with scene.ground.server() as server:
        await _fill(scene, server)
        if case.damage is _overwrite_log:
            server.kill()  # else the log has gone with it
    case.damage(scene.ground.store_file, scene.random)
    scene.injected()


async def _damage_while_open(scene: Scene, case: Case, counts: Counts) -> None:
    async with scene.ground.server() as before:
        await _fill(scene, before)  # which is in the file itself once it has ended
    async with scene.ground.server() as server:
        await scene.ledger.check(server)
        await _fill(scene, server)
        case.damage(scene.ground.store_file, scene.random)
        scene.injected()
        await scene.ledger.check(server, may_be_missing=True)
        counts.without_modes += not await _tells_modes(server)
        for _ in range(20):
            await scene.ledger.create(server)


async def _start_again(scene: Scene, case: Case, counts: Counts) -> None:
    """The next server finds it so."""
    ledger, path = scene.ledger, scene.ground.store_file
    before = path.read_bytes()
    since = time.monotonic()
    async with scene.ground.server() as server:
        await ledger.check(server, may_be_missing=True)
        counts.without_modes += not await _tells_modes(server)
        ledger.forget()
        if case.goes_on:
            await scene.recover(server, since)
            counts.set_aside += case.no_database and any(
                each.read_bytes() == before for each in path.parent.glob("*.corrupt-*")
            )
        else:
            await ledger.create(server)
            for each in path.parent.glob(f"{path.name}*"):
                each.unlink()  # what is left to a person who is told that it is damaged
            ledger.forget()
            await scene.recover(server)
            counts.taken_away += 1
        await _fill(scene, server)
        server.kill()
    async with scene.ground.server() as last:
        await ledger.check(last)


async def _fill(scene: Scene, server: Server) -> None:
    await at_once(scene.ledger.change_something(server) for _ in range(200))


async def _tells_modes(server: Server) -> bool:
    return len((await server.use("list_modes", ModeList)).modes) >= 5


FAULTS = (
    Fault(
        "damaged", "the file of the store is overwritten, cut or emptied, before start and while it is open", damaged
    ),
)
