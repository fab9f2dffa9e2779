"""Disks that are full, and places that cannot be written.

As root, small file systems are mounted in a mount namespace of this script's own, so that nothing of it is left behind,
however the script ends. Where that is not allowed, a limit on the size of files stands for the full disk alone. Root
may write where permission bits forbid it, so what is read-only is a mount, an immutable directory, or a file in the
place of the directory; who is not root gets a forbidden one.
"""

import ctypes
import os
import shutil
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from pathlib import Path
from typing import Final

from faults_scene import Fault, Scene, Skipped, at_once
from faults_server import Refused, Server
from msgspec import Struct, field

from modes_actor.surface.mode_results import ModeList, TaskDetails

NEW_MOUNTS: Final = 0x00020000
"""CLONE_NEWNS."""
MEGABYTE: Final = 1024 * 1024
DISK: Final = 12 * MEGABYTE
PAGE: Final = 4096
BOUND: Final = 15.0
"""Seconds in which even a refusal must have come."""
UNTIL_FULL: Final = 40
"""Commits for which there may still be room in files that were made before."""
ENOUGH: Final = 20
"""Refusals, after which it is certain."""


def _command(*arguments: str) -> str | None:
    """None if it worked, else what it said."""
    program = shutil.which(arguments[0])
    if program is None:
        return f"there is no {arguments[0]}"
    done = subprocess.run([program, *arguments[1:]], capture_output=True, text=True, check=False)
    return None if done.returncode == 0 else (done.stderr.strip().splitlines() or [f"{arguments[0]} failed"])[-1]


@cache
def why_no_mounts() -> str | None:
    """Enter a mount namespace of our own, once; or say why that cannot be."""
    if os.geteuid() != 0:
        return "only root may mount"
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(NEW_MOUNTS) != 0:
        return f"no mounts of our own: {os.strerror(ctypes.get_errno())}"
    return _command("mount", "--make-rprivate", "/")


@contextmanager
def mounted(directory: Path, *arguments: str) -> Iterator[None]:
    directory.mkdir(exist_ok=True)
    if why := why_no_mounts() or _command("mount", *arguments, str(directory)):
        raise Skipped(why)
    try:
        yield
    finally:
        _command("umount", "--lazy", str(directory))


# Full.


class Full(Struct, frozen=True):
    """How the room is taken, and given back."""

    take: Callable[[Server], None]
    give: Callable[[Server], None]


@contextmanager
def small_disk(scene: Scene) -> Iterator[Full]:
    disk = scene.ground.directory / "disk"
    ballast = disk / "ballast"

    def take(server: Server) -> None:
        with ballast.open("wb", buffering=0) as file:
            try:
                while file.write(bytes(MEGABYTE // 4)):
                    pass
            except OSError:
                pass
            try:
                while file.write(bytes(PAGE)):
                    pass
            except OSError:
                pass

    with mounted(disk, "-t", "tmpfs", "-o", f"size={DISK}", "tmpfs"):
        scene.ground.storage = disk / "store"
        yield Full(take, lambda server: ballast.unlink())


@contextmanager
def limited_files(scene: Scene) -> Iterator[Full]:
    """A limit on the size of the server's files: it may not write beyond where its log is now."""
    import resource  # which not every system has

    scene.ground.new_store()

    def take(server: Server) -> None:
        log = scene.ground.storage / "sessions.db-wal"
        resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (log.stat().st_size, resource.RLIM_INFINITY))

    def give(server: Server) -> None:
        resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))

    yield Full(take, give)


PLACES: Final[dict[str, Callable[[Scene], AbstractContextManager[Full]]]] = {
    "a full tmpfs": small_disk,
    "a limit on files": limited_files,
}


class Findings(Struct):
    refused: list[Refused] = field(default_factory=list)
    read: int = 0
    unread: int = 0
    slowest: float = 0.0


async def full(scene: Scene) -> None:
    found = Findings()
    places = dict(PLACES)
    if (why := why_no_mounts()) is not None:
        del places["a full tmpfs"]
        scene.judge("a full tmpfs", None, f"skipped: {why}")
    for name, place in places.items():
        scene.ledger.forget()
        with place(scene) as disk:
            until = time.monotonic() + scene.seconds / len(places)
            is_over = False
            while not is_over:
                await _fill_up(scene, disk, found)
                is_over = time.monotonic() > until
            scene.judge_file(f" after {name}")
    wrong = [error for error in found.refused if not error.is_passing]
    scene.judge(
        f"what cannot be written is refused with -32603, as retryable, within {BOUND:g} s",
        bool(found.refused) and not wrong and found.slowest < BOUND,
        str(wrong[0])
        if wrong
        else f"{len(found.refused)} refused, slowest {found.slowest:.1f} s ({', '.join(places)})",
    )
    scene.judge("reading goes on meanwhile", not found.unread, f"{found.unread} of {found.read} were refused")


async def _fill_up(scene: Scene, disk: Full, found: Findings) -> None:
    """One server, until there is no room and when there is some again; and the next."""
    ledger = scene.ledger
    async with scene.ground.server() as server:
        known = await scene.recover(server)
        await at_once(ledger.change_something(server) for _ in range(40))
        disk.take(server)
        scene.injected()
        before = len(found.refused)

        async def create() -> None:
            begin = time.monotonic()
            try:
                await ledger.create(server, raising=True)
            except Refused as error:
                found.refused.append(error)
            found.slowest = max(found.slowest, time.monotonic() - begin)

        for _ in range(UNTIL_FULL):
            await at_once(create() for _ in range(10))
            if len(found.refused) >= before + ENOUGH:
                break
        else:
            ledger.trouble.append("the disk was full, and changes were acknowledged")
        for _ in range(20):
            found.read += 1
            try:
                await server.use("get_task_info", TaskDetails, session_id=known.session_id)
            except Refused:
                found.unread += 1
        disk.give(server)
        await scene.recover(server)
        await at_once(ledger.change_something(server) for _ in range(40))
        await ledger.check_some(server)
        if scene.outcome.injected % 2:
            server.kill()
    async with scene.ground.server() as again:
        await ledger.check_some(again)


# Read-only.


@contextmanager
def file_in_the_way(scene: Scene) -> Iterator[None]:
    """Where the directory should be."""
    storage = scene.ground.storage
    aside = storage.with_name("aside")
    if storage.exists():
        storage.rename(aside)
    storage.write_text("mine")
    yield
    storage.unlink()
    if aside.exists():
        aside.rename(storage)


@contextmanager
def read_only_mount(scene: Scene) -> Iterator[None]:
    storage = scene.ground.storage
    with mounted(storage, "--bind", str(_made(storage))):
        if why := _command("mount", "-o", "remount,ro,bind", str(storage)):
            raise Skipped(why)
        yield


@contextmanager
def immutable_directory(scene: Scene) -> Iterator[None]:
    storage = _made(scene.ground.storage)
    if why := _command("chattr", "+i", str(storage)):
        raise Skipped(why)
    try:
        yield
    finally:
        _command("chattr", "-i", str(storage))


@contextmanager
def forbidden_directory(scene: Scene) -> Iterator[None]:
    """For who is not root: root may write there."""
    storage = _made(scene.ground.storage)
    storage.chmod(0o500)
    try:
        yield
    finally:
        storage.chmod(0o700)


def _made(directory: Path) -> Path:
    directory.mkdir(exist_ok=True)
    return directory


WAYS: Final[dict[str, Callable[[Scene], AbstractContextManager[None]]]] = {
    "a file in the way": file_in_the_way,
    "a read-only mount": read_only_mount,
    "an immutable directory": immutable_directory,
    "a forbidden directory": forbidden_directory,
}


class Told(Struct):
    """What was said where nothing could be written."""

    refusals: list[str] = field(default_factory=list)
    acknowledged: Counter[str] = field(default_factory=Counter)
    modes: int = 0


async def readonly(scene: Scene) -> None:
    """A server cannot write when it first wants to, and goes on once it can. Every other time there is a store."""
    ledger = scene.ledger
    ledger.may_refuse = lambda error: error.code in (-32603, -32004)
    told = Told()
    done: Counter[str] = Counter()
    skipped: dict[str, str] = {}
    ways = [name for name, way in WAYS.items() if way is not forbidden_directory or os.geteuid() != 0]
    cases = [(name, has_store) for name in ways for has_store in (False, True)]
    for name, has_store in scene.in_turn(cases):
        if name in skipped:
            continue
        if not has_store:
            scene.ground.new_store()
            ledger.forget()
        try:
            await _start_there(scene, name, told)
            done[name] += 1
        except Skipped as why:
            skipped[name] = str(why)
    if not done:
        raise Skipped("; ".join(f"{name}: {why}" for name, why in skipped.items()))
    places = [each for each in told.refusals if str(scene.ground.directory) in each]
    scene.judge(
        "each refusal is a -32603 that names no directory",
        bool(told.refusals) and not places,
        places[0] if places else f"{len(told.refusals)} refusals",
    )
    scene.judge(
        "what needs no store is served meanwhile",
        told.modes == scene.outcome.injected,
        f"{told.modes} of {scene.outcome.injected} times",
    )
    for name in ways:
        if name in skipped:
            scene.judge(name, None, f"skipped: {skipped[name]}")
        else:
            wrongly = told.acknowledged[name]
            kept = not wrongly if done[name] else None
            scene.judge(f"{name}: nothing is acknowledged", kept, f"{done[name]} times, {wrongly} were")


async def _start_there(scene: Scene, name: str, told: Told) -> None:
    ledger = scene.ledger
    async with scene.ground.server() as server:
        await server.is_there()  # it looks at its store when it first needs it
        with WAYS[name](scene):
            scene.injected()
            for _ in range(3):
                try:
                    await ledger.create(server, raising=True)
                except Refused as error:
                    told.refusals.append(str(error))
                else:
                    told.acknowledged[name] += 1
            told.modes += len((await server.use("list_modes", ModeList)).modes) >= 5
        await scene.recover(server)
        await at_once(ledger.change_something(server) for _ in range(20))
        await ledger.check(server)
    async with scene.ground.server() as again:
        await ledger.check(again)


FAULTS = (
    Fault("full", "the disk is full: a small tmpfs, and a limit on the size of files", full),
    Fault(
        "readonly",
        "the store cannot be written: a file in the way, a read-only mount, an immutable directory",
        readonly,
    ),
)
