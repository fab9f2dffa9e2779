"""All modes in force, in order, with what was compiled from them. A catalog never changes: a reload makes a new one.

Precedence is built-in < global < project: an override replaces the whole mode and keeps its place in the order.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct, structs

from modes_actor.modes.model import Group, GroupName, ModeConfig, Origin, Problem
from modes_actor.modes.patterns import FilePattern
from modes_actor.spelling import did_you_mean

LONGEST_LINE: Final = 16
"""Modes that may extend one another; a circle is longer than any number."""

BUILTIN_ORDER = ("code", "architect", "ask", "debug", "orchestrator")


class CompiledGroup(Struct, frozen=True):
    group: Group
    pattern: FilePattern | None


class Rules(Struct, frozen=True):
    """The rules of one mode, ready to be asked: its own, or those of a mode that it extends."""

    mode: ModeConfig
    groups: dict[str, CompiledGroup]


class ModesChanged(Struct, frozen=True):
    """How a catalog differs from the one before it, by slugs."""

    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.added or self.changed or self.removed)


class ModeCatalog:
    def __init__(self, modes: Iterable[ModeConfig], problems: Iterable[Problem] = ()) -> None:
        """`modes` in order; each slug once."""
        self.by_slug: Mapping[str, ModeConfig] = {mode.slug: mode for mode in modes}
        self._lineages: dict[str, tuple[Rules, ...] | None] = {}
        self._patterns: dict[str, FilePattern] = {}
        self._conditional = {"edit", "mcp"} | {
            group.name for mode in self for group in mode.groups or () if group.file_regex or group.window
        }
        self._memories: dict[tuple[str, str], dict[str, Any]] = {}
        self.problems: tuple[Problem, ...] = (*problems, *self._broken_lineages())

    def __iter__(self) -> Iterator[ModeConfig]:
        return iter(self.by_slug.values())

    def __len__(self) -> int:
        return len(self.by_slug)

    def get(self, slug: str) -> ModeConfig | None:
        return self.by_slug.get(slug)

    def lineage(self, mode: ModeConfig) -> tuple[Rules, ...] | None:
        """The mode's own rules and those of every mode it extends; all of them must allow. None if that is broken."""
        if self.by_slug.get(mode.slug) is not mode:
            return self._compile(mode)  # another catalog's, or nobody's: it must not be taken for ours of that name
        if mode.slug not in self._lineages:
            self._lineages[mode.slug] = self._compile(mode)
        return self._lineages[mode.slug]

    def memory(self, mode: ModeConfig, group: str) -> dict[str, Any] | None:
        """Where decisions about tools of a group may be remembered, because nothing but the modes decides them.

        None if something else does: files, servers, or the time of day, in this mode or one it may be compared with.
        """
        if group in self._conditional or self.by_slug.get(mode.slug) is not mode:
            return None
        return self._memories.setdefault((mode.slug, group), {})

    def role_of(self, mode: ModeConfig) -> str:
        """The mode's own role, or that of the nearest mode it extends that has one."""
        return next((each.role_definition for each in self._line(mode) or (mode,) if each.role_definition), "")

    def changes_since(self, before: "ModeCatalog") -> ModesChanged:
        """A mode that only moved within its file has not changed."""
        added = tuple(slug for slug in self.by_slug if slug not in before.by_slug)
        removed = tuple(slug for slug in before.by_slug if slug not in self.by_slug)
        changed = tuple(
            slug
            for slug, mode in self.by_slug.items()
            if slug in before.by_slug and _content(mode) != _content(before.by_slug[slug])
        )
        return ModesChanged(added, changed, removed)

    def _compile(self, mode: ModeConfig) -> tuple[Rules, ...] | None:
        modes = self._line(mode)
        return None if modes is None else tuple(map(self._rules, _inheriting(modes)))

    def _line(self, mode: ModeConfig) -> list[ModeConfig] | None:
        line = [mode]
        while line[-1].extends is not None:
            base = self.by_slug.get(line[-1].extends)
            if base is None or len(line) == LONGEST_LINE:
                return None
            line.append(base)
        return line

    def _rules(self, mode: ModeConfig) -> Rules:
        return Rules(
            mode, {group.name: CompiledGroup(group, self._pattern(group.file_regex)) for group in mode.groups or ()}
        )

    def _pattern(self, text: str | None) -> FilePattern | None:
        if text is None:
            return None
        if text not in self._patterns:
            self._patterns[text] = FilePattern(text)
        return self._patterns[text]

    def _broken_lineages(self) -> Iterator[Problem]:
        for mode in self:
            if mode.extends is None or self._line(mode) is not None:
                continue
            if mode.extends not in self.by_slug:
                what, hint = "which does not exist", did_you_mean(mode.extends, self.by_slug)
            else:
                what, hint = f"and so on: in a circle, to nowhere, or over more than {LONGEST_LINE} modes", None
            message = f"The mode `{mode.slug}` extends `{mode.extends}`, {what}; it may use no tools"
            yield Problem(mode.origin.file, mode.origin.line or 1, 1, "error", message, hint)


def merge(
    builtin: Iterable[ModeConfig], global_: Iterable[ModeConfig], project: Iterable[ModeConfig]
) -> list[ModeConfig]:
    """The modes in force, in order."""
    return list({mode.slug: mode for mode in (*builtin, *global_, *project)}.values())


@cache
def builtin_modes() -> tuple[ModeConfig, ...]:
    """The five modes that are always there, unless somebody overrides them."""
    return tuple(map(_builtin, BUILTIN_ORDER))


class _BuiltinFile(Struct, forbid_unknown_fields=True):
    slug: str
    name: str
    description: str
    when_to_use: str
    role_definition: str
    custom_instructions: str
    groups: list[GroupName | tuple[GroupName, "_BuiltinOptions"]]


class _BuiltinOptions(Struct, rename={"file_regex": "fileRegex"}, forbid_unknown_fields=True):
    file_regex: str
    description: str


def _builtin(slug: str) -> ModeConfig:
    text = (Path(__file__).parent / "builtin" / f"{slug}.toml").read_text(encoding="utf-8")
    file = msgspec.toml.decode(text, type=_BuiltinFile)
    origin = Origin(f"built-in mode {slug}")
    groups = [
        Group(entry, origin)
        if isinstance(entry, str)
        else Group(entry[0], origin, entry[1].file_regex, entry[1].description)
        for entry in file.groups
    ]
    return ModeConfig(
        slug=file.slug,
        name=file.name,
        source="builtin",
        origin=origin,
        role_definition=file.role_definition.strip(),
        groups=tuple(groups),
        description=file.description,
        when_to_use=file.when_to_use.strip(),
        custom_instructions=file.custom_instructions.strip(),
    )


def _inheriting(line: list[ModeConfig]) -> list[ModeConfig]:
    """A mode that says nothing of groups has its base's; what it does say is held against the base all the same."""
    inheriting = [line[-1]]
    for mode in reversed(line[:-1]):
        inheriting.append(mode if mode.groups is not None else structs.replace(mode, groups=inheriting[-1].groups))
    return inheriting[::-1]


def _content(mode: ModeConfig) -> Any:
    """All of a mode but its places in the file."""
    return _without_lines(mode)


def _without_lines(value: Any) -> Any:
    if isinstance(value, Origin):
        return value.file
    if isinstance(value, Struct):
        return {name: _without_lines(getattr(value, name)) for name in value.__struct_fields__}
    return [_without_lines(item) for item in value] if isinstance(value, tuple) else value
