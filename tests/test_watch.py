"""Watching mode files: changes come into force soon, whole, and never in the middle of a save."""

import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from modes_actor.modes.catalog import ModesChanged
from modes_actor.modes.loader import ModeLoader
from modes_actor.watch import LOOK_EVERY_SECONDS, ModesReloaded, ModeWatch

NOTICED_WITHIN = 2.0


def modes(*slugs: str, role: str = "You help.") -> str:
    lines = [f"  - slug: {slug}\n    name: {slug}\n    roleDefinition: {role}\n    groups: [read]" for slug in slugs]
    return "\n".join(["customModes:", *lines, ""])


class Watched:
    """A project whose mode files are watched; time passes only when a test says so."""

    def __init__(self, project: Path, watch: ModeWatch, events: trio.MemoryReceiveChannel[ModesReloaded]) -> None:
        self.file = project / ".roomodes"
        self.watch = watch
        self._events = events

    async def after(self, seconds: float) -> list[ModesReloaded]:
        """What was told by then."""
        told: list[ModesReloaded] = []
        with trio.move_on_after(seconds):
            while True:
                told.append(await self._events.receive())
        return told

    def custom(self) -> list[str]:
        return [mode.slug for mode in self.watch.loaded.catalog if mode.source != "builtin"]


@asynccontextmanager
async def watching(tmp_path: Path, text: str | None = None) -> AsyncIterator[Watched]:
    if text is not None:
        (tmp_path / ".roomodes").write_text(text)
    watch = ModeWatch(ModeLoader(tmp_path, tmp_path / "config"))
    send, receive = trio.open_memory_channel[ModesReloaded](10)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(watch.run, send)
        yield Watched(tmp_path, watch, receive)
        nursery.cancel_scope.cancel()


def edit(file: Path) -> None:
    file.write_text(modes("one", role="You help more."))


def replace(file: Path) -> None:
    """As many editors save: a new file under the old name."""
    other = file.with_suffix(".new")
    edit(other)
    os.replace(other, file)


def add(file: Path) -> None:
    file.write_text(modes("one", "two"))


@pytest.mark.parametrize(
    ("act", "changed"),
    [
        (edit, ModesChanged(changed=("one",))),
        (replace, ModesChanged(changed=("one",))),
        (add, ModesChanged(added=("two",))),
        (Path.unlink, ModesChanged(removed=("one",))),
    ],
    ids=["edited", "replaced by rename", "a mode added", "deleted"],
)
async def test_a_change_is_told_once_and_in_time(
    act: Callable[[Path], None], changed: ModesChanged, tmp_path: Path, autojump_clock: MockClock
) -> None:
    """Whichever way the file was changed."""
    async with watching(tmp_path, modes("one")) as watched:
        act(watched.file)
        assert [ModesReloaded(changed, ())] == await watched.after(NOTICED_WITHIN)


async def test_a_file_that_appears_is_noticed(tmp_path: Path, autojump_clock: MockClock) -> None:
    """Most projects have none at first."""
    async with watching(tmp_path) as watched:
        watched.file.write_text(modes("one"))
        assert [ModesReloaded(ModesChanged(added=("one",)), ())] == await watched.after(NOTICED_WITHIN)
        assert watched.custom() == ["one"]


async def test_a_global_file_is_watched_too(tmp_path: Path, autojump_clock: MockClock) -> None:
    """Also where its directory did not exist."""
    async with watching(tmp_path) as watched:
        (tmp_path / "config").mkdir()
        (tmp_path / "config" / "modes.yaml").write_text(modes("mine"))
        assert [ModesReloaded(ModesChanged(added=("mine",)), ())] == await watched.after(NOTICED_WITHIN)


async def test_the_configuration_of_servers_is_watched_too(tmp_path: Path, autojump_clock: MockClock) -> None:
    """No mode changes, but what modes may reach does."""
    async with watching(tmp_path) as watched:
        (tmp_path / ".roo").mkdir()
        (tmp_path / ".roo" / "mcp.json").write_text('{"mcpServers": {"a": {"defaultEnabled": false}}}')
        assert [ModesReloaded(ModesChanged(), (), True)] == await watched.after(NOTICED_WITHIN)
        assert not watched.watch.loaded.servers.is_enabled_by_default("a")


async def test_nothing_is_told_while_nothing_changes(tmp_path: Path, autojump_clock: MockClock) -> None:
    """Looking is not news."""
    async with watching(tmp_path, modes("one")) as watched:
        assert await watched.after(60) == []


async def test_a_file_is_not_read_while_it_is_still_being_saved(tmp_path: Path, autojump_clock: MockClock) -> None:
    """Half a file is not what its author meant; the last look before it settles sees the whole."""
    async with watching(tmp_path, modes("one")) as watched:
        whole = modes("one", "two", "three")
        for end in range(len(whole) // 4, len(whole), len(whole) // 4):
            watched.file.write_text(whole[:end])
            assert await watched.after(0.8 * LOOK_EVERY_SECONDS) == []
        watched.file.write_text(whole)
        assert [ModesReloaded(ModesChanged(added=("two", "three")), ())] == await watched.after(NOTICED_WITHIN)


async def test_a_file_that_never_settles_does_not_hold_up_the_others(tmp_path: Path, autojump_clock: MockClock) -> None:
    """Nor is it read in the middle of being saved."""
    async with watching(tmp_path, modes("one")) as watched:
        restless = tmp_path / "config" / "modes.yaml"
        restless.parent.mkdir()
        watched.file.write_text(modes("one", "two"))
        told = []
        for number in range(5):
            restless.write_text(modes(f"half-{number}"))
            told += await watched.after(0.8 * LOOK_EVERY_SECONDS)
        assert told == [ModesReloaded(ModesChanged(added=("two",)), ())]
        assert watched.custom() == ["one", "two"]
        assert [ModesReloaded(ModesChanged(added=("half-4",)), ())] == await watched.after(NOTICED_WITHIN)


async def test_a_file_that_is_broken_keeps_its_modes_until_it_is_mended(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    """The problem is told, and nobody loses a mode to a typo."""
    async with watching(tmp_path, modes("one")) as watched:
        watched.file.write_text("customModes: [")
        [broken] = await watched.after(NOTICED_WITHIN)
        assert (broken.changed, len(broken.problems), watched.custom()) == (ModesChanged(), 1, ["one"])
        watched.file.write_text(modes("two"))
        expected = ModesReloaded(ModesChanged(added=("two",), removed=("one",)), ())
        assert [expected] == await watched.after(NOTICED_WITHIN)


async def test_a_mode_that_only_moved_has_not_changed(tmp_path: Path, autojump_clock: MockClock) -> None:
    """A comment above it is not news to anyone who works in it."""
    async with watching(tmp_path, modes("one")) as watched:
        watched.file.write_text("# a comment\n" + modes("one"))
        assert [ModesReloaded(ModesChanged(), ())] == await watched.after(NOTICED_WITHIN)


async def test_a_project_that_disappears_takes_its_modes_away(tmp_path: Path, autojump_clock: MockClock) -> None:
    """And the built-in ones stay."""
    project = tmp_path / "project"
    project.mkdir()
    async with watching(project, modes("one", "code")) as watched:
        watched.file.unlink()
        project.rmdir()
        expected = ModesReloaded(ModesChanged(changed=("code",), removed=("one",)), ())
        assert [expected] == await watched.after(NOTICED_WITHIN)
        assert watched.custom() == []


async def test_the_catalog_in_use_is_never_changed_under_its_user(tmp_path: Path, autojump_clock: MockClock) -> None:
    """A reload makes a new one."""
    async with watching(tmp_path, modes("one")) as watched:
        in_use = watched.watch.loaded.catalog
        add(watched.file)
        await watched.after(NOTICED_WITHIN)
        assert [mode.slug for mode in in_use if mode.source == "project"] == ["one"]
        assert watched.custom() == ["one", "two"]
