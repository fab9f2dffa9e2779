"""Project directories that go and come back, and mode files that change all the time."""

import shutil
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from random import Random
from typing import Final

import trio
from faults_ledger import Kept, examples
from faults_scene import Fault, Scene
from faults_server import Gone, NotAnswered, Refused, Server
from msgspec import Struct, field

from modes_actor.surface.mode_results import ModeList, Validation

IN_FORCE_SECONDS: Final = 20.0
"""Ten times what is promised, for machines that have other things to do."""
SETTLE_SECONDS: Final = 1.5
FOLDERS: Final = ("a", "b")
"""What the versions of the mode file allow, each one of them; `c` is what none allows."""
NO_VERSION: Final = (b"", b"\n\n", b"customModes: [{slug: swift, name: [", b"\x00\xff\xfe garbage \x00" * 50)
"""With these, the last good version stays in force."""


def version(folder: str) -> bytes:
    """The mode file in which `swift` may read everything, and edit this folder."""
    lines = (
        "customModes:",
        "  - slug: swift",
        "    name: Swift",
        "    roleDefinition: You are swift.",
        f"    groups: [read, [edit, {{fileRegex: '^{folder}/'}}]]",
        "",
    )
    return "\n".join(lines).encode()


class Asked(Struct):
    """Decisions that a server made, and those that none of the versions would give."""

    times: int = 0
    gone: int = 0
    """How often there was no such mode any more, which is a no."""
    wrong: list[str] = field(default_factory=list)

    async def about(self, server: Server, kept: Kept, *, may_be_gone: bool = False) -> str | None:
        """Ask for every folder. Returns the one that may be edited."""
        allowed = None
        try:
            for folder in (*FOLDERS, "c"):
                found = await edits(server, kept, f"{folder}/x.py")
                self.times += 1
                rules = [each for each in FOLDERS if found.rule and f"^{each}/" in found.rule]
                if may_be_gone and not rules and not found.allowed:
                    self.gone += 1
                    return None
                if found.allowed != (rules == [folder]) or len(rules) != 1:
                    self.wrong.append(f"{folder}/x.py: {'allowed' if found.allowed else 'denied'} by {found.rule}")
                if found.allowed:
                    allowed = folder
            if not (await edits(server, kept, "c/x.py", tool="read_file")).allowed:
                self.wrong.append("reading was denied")
        except Refused as error:
            self.wrong.append(str(error))
        return allowed


async def edits(server: Server, kept: Kept, path: str, *, tool: str = "write_to_file") -> Validation:
    arguments = {"session_id": kept.session_id, "tool_name": tool, "file_path": path}
    return await server.use("validate_tool_use", Validation, **arguments)


async def in_force(scene: Scene, what: str, is_so: Callable[[], Awaitable[bool]]) -> None:
    """Wait until what the files say is what the server says, and note how long that took."""
    begin = time.monotonic()
    while not await is_so():
        if time.monotonic() > begin + IN_FORCE_SECONDS:
            scene.ledger.trouble.append(f"{what} was not in force after {IN_FORCE_SECONDS:g} s")
            return
        await trio.sleep(0.05)
    scene.outcome.recoveries.append(time.monotonic() - begin)


async def project(scene: Scene) -> None:
    """The directory is moved away, or removed and made again, while decisions are asked for."""
    ledger, directory = scene.ledger, scene.ground.project
    aside = directory.with_name("project-elsewhere")
    mode_file = directory / ".roomodes"
    mode_file.write_bytes(version("a"))
    asked = Asked()

    async with scene.ground.server() as server:
        swift, plain = await ledger.reserve(server, "swift"), await ledger.reserve(server, "code")

        async def knows_swift() -> bool:
            return "swift" in [mode.slug for mode in (await server.use("list_modes", ModeList)).modes]

        async def has_forgotten_swift() -> bool:
            return not await knows_swift()

        async def ask(*, is_gone: bool) -> None:
            for _ in range(20):
                await asked.about(server, swift, may_be_gone=is_gone)
                if not (await edits(server, plain, "src/x.py")).allowed:
                    asked.wrong.append("the mode `code` may not edit any more")
                await ledger.change_something(server)

        for number in scene.rounds(at_least=2):
            await asked.about(server, swift)
            directory.rename(aside)
            scene.injected()
            await ask(is_gone=True)
            await in_force(scene, "that the project has gone", has_forgotten_swift)
            await ask(is_gone=True)
            if number % 2:
                shutil.rmtree(aside)
                directory.mkdir()
                mode_file.write_bytes(version("a"))
            else:
                aside.rename(directory)
            await in_force(scene, "that the project is back", knows_swift)
            await ask(is_gone=False)
        await ledger.check(server)
    scene.judge_file()
    scene.judge(
        "decisions are those of the mode file, or none",
        asked.times > 0 and not asked.wrong,
        examples(asked.wrong) or f"{asked.times:,} decisions, {asked.gone:,} times the mode had gone",
    )


async def modefile(scene: Scene) -> None:
    """It is replaced, or overwritten bit by bit, as fast as it goes; now and then it rests."""
    ledger = scene.ledger
    mode_file = scene.ground.project / ".roomodes"
    mode_file.write_bytes(version("a"))
    asked = Asked()

    async with scene.ground.server() as server:
        swift = await ledger.reserve(server, "swift")

        async def keep_asking() -> None:
            try:
                while True:
                    await asked.about(server, swift)
                    await ledger.change_something(server)
                    await trio.sleep(0.002)
            except (Gone, NotAnswered):
                pass

        async def is_allowed(folder: str) -> bool:
            return await asked.about(server, swift) == folder

        async with trio.open_nursery() as nursery:
            nursery.start_soon(keep_asking)
            for number in scene.rounds(at_least=2):
                burst = trio.current_time() + scene.random.uniform(0.3, 1.2)
                while trio.current_time() < burst:
                    await _save(mode_file, scene.random.choice((version("a"), version("b"), *NO_VERSION)), scene.random)
                    scene.injected()
                folder = FOLDERS[number % 2]
                await _save(mode_file, version(folder), scene.random)
                await in_force(scene, f"the version that allows {folder}", partial(is_allowed, folder))
                if number % 2:
                    await _save(mode_file, scene.random.choice(NO_VERSION), scene.random)
                    scene.injected()
                    await trio.sleep(SETTLE_SECONDS)
                    if await asked.about(server, swift) != folder:
                        asked.wrong.append("a file that is no good took the last good version away")
            nursery.cancel_scope.cancel()
        await ledger.check(server)
    scene.judge_file()
    scene.judge(
        "every decision is one that a version of the file gives",
        asked.times > 0 and not asked.wrong,
        examples(asked.wrong) or f"{asked.times:,} decisions",
    )


async def _save(path: Path, content: bytes, random: Random) -> None:
    """As editors do: all at once under another name, or in place, with a moment in which half of it is there."""
    if random.random() < 0.5:
        fresh = path.with_name("fresh")
        fresh.write_bytes(content)
        fresh.replace(path)
    else:
        with path.open("wb") as file:
            file.write(content[: len(content) // 2])
            file.flush()
            await trio.sleep(random.uniform(0.0, 0.01))
            file.write(content[len(content) // 2 :])
    await trio.sleep(random.uniform(0.0, 0.05))


FAULTS = (
    Fault("project", "the directory of the project is moved away or removed, and comes back", project),
    Fault(
        "modefile", "a mode file is replaced by good, bad and empty versions while decisions are asked for", modefile
    ),
)
