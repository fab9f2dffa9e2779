"""A tree of values to modes. What is wrong becomes a Problem; everything else loads.

What cannot be understood never allows anything: a group that makes no sense is left out, and restrictions that make no
sense allow no MCP server at all.
"""

from collections.abc import Callable, Container
from typing import TypeVar

from msgspec import Struct, structs

from modes_actor.modes.document import (
    Document,
    Fields,
    Items,
    Node,
    Scalar,
    Unreadable,
    plain_typography,
    read_document,
)
from modes_actor.modes.model import (
    GROUP_NAMES,
    Group,
    GroupName,
    McpRestrictions,
    ModeConfig,
    Origin,
    Problem,
    Severity,
    Source,
    TimeWindow,
    ToolPattern,
)
from modes_actor.modes.names import is_slug
from modes_actor.modes.patterns import BadPattern, FilePattern
from modes_actor.modes.qualified import pattern_readings
from modes_actor.modes.tools import FILE_GROUPS
from modes_actor.modes.windows import BadWindow, make_window
from modes_actor.spelling import closest, did_you_mean
from modes_actor.wire.errors import shortened

T = TypeVar("T")


_TEXTS = ("name", "roleDefinition", "description", "whenToUse", "customInstructions")
_WINDOW = ("activeHours", "days", "timezone")
_MODE_KEYS = ("slug", *_TEXTS, "groups", "mcpRestrictions", "extends", "baseMode")
_IGNORED_MODE_KEYS = ("source", "rulesFiles", "iconName", "icon", "color", "model", "prompt", "version", "tags", "api")
"""What mode files in the wild have besides, and what means nothing here."""
_GROUP_KEYS = ("fileRegex", "description", *_WINDOW)
_RESTRICTION_KEYS = ("allowedServers", "disallowedServers", "allowedTools", "disallowedTools", *_WINDOW)


_RESTRICTING = ("extends", "baseMode", "mcpRestrictions", "groups")
_MISPLACED = ("fileRegex", *_WINDOW, "allowedServers", "disallowedServers", "allowedTools", "disallowedTools")


def _is_meant_to_restrict(name: str) -> bool:
    near = closest(name, _RESTRICTING, cutoff=0.75)
    return near is not None or name in ("base", "inherits", "inheritsFrom", "restrictions")


def _unclear_restrictions(node: Fields) -> dict[str, tuple[str, str | None]]:
    """Members of a mode that are meant to restrict it in a way that nobody can tell: why, and a hint.

    Such a mode may use no tools.
    """
    repeated = {_camel(str(key.value)) for key in node.repeated}
    seen: set[str] = set()
    unclear: dict[str, tuple[str, str | None]] = {}
    for name, (_, value) in node.fields.items():
        camel = _camel(name)
        if camel in _RESTRICTING and (camel in repeated or camel in seen):
            unclear[name] = "is there twice", None
        elif camel in _RESTRICTING and isinstance(value, Scalar) and value.value is None:
            unclear[name] = "has no value", "write `groups: []` if that is meant" if camel == "groups" else None
        elif camel in _MISPLACED:
            unclear[name] = "belongs into a group's options or into `mcpRestrictions`", None
        elif camel not in _MODE_KEYS and camel not in _IGNORED_MODE_KEYS and _is_meant_to_restrict(camel):
            hint = did_you_mean(camel, _RESTRICTING) or f"there are {', '.join(_RESTRICTING)}"
            unclear[name] = "is misspelt", hint
        seen.add(camel)
    return unclear


class ModeFile(Struct):
    """What one file says."""

    modes: list[ModeConfig]
    problems: list[Problem]
    left_out: dict[str, Origin] = {}
    """Slugs of modes that cannot be used at all."""
    readable: bool = True
    """False when the file as a whole makes no sense; then it says nothing about modes, not even that there are none."""


def read_modes(text: str, *, file: str, source: Source) -> ModeFile:
    """Read the modes of a file. Never raises."""
    found = _read_modes(text, file, source)
    if not found.modes and (plain := plain_typography(text)) != text:
        # No-break spaces before a dash are valid YAML, only not the YAML that was meant.
        repaired = _read_modes(plain, file, source)
        if repaired.modes:
            message = "The file has modes only after a repair of typographic quotes, dashes and spaces"
            repaired.problems.insert(0, Problem(file, 1, 1, "warning", message))
            return repaired
    return found


def _read_modes(text: str, file: str, source: Source) -> ModeFile:
    reader = _Reader(file, source)
    try:
        document = read_document(text)
    except Unreadable as error:
        hint = "look at the indentation and the quotes here and in the lines above"
        reader.report("error", f"The file cannot be read: {error.message}", error, hint)
        return ModeFile([], reader.problems, readable=False)
    return reader.read(document)


class _Wrong(Exception):
    """A value that cannot be used; the Problem is reported already."""


class _Reader:
    def __init__(self, file: str, source: Source) -> None:
        self._file = file
        self._source: Source = source
        self.problems: list[Problem] = []
        self._left_out: dict[str, Origin] = {}

    def report(self, severity: Severity, message: str, place: Node | Unreadable, hint: str | None = None) -> None:
        self.problems.append(Problem(self._file, place.line, place.column, severity, message, hint))

    def read(self, document: Document) -> ModeFile:
        root = document.root
        if document.repairs:
            self.report("warning", f"The file could only be read after a repair of {', '.join(document.repairs)}", root)
        if isinstance(root, Scalar) and root.value is None:
            self.report("error", "The file is empty", root, "delete it if it is not needed")
            return ModeFile([], self.problems, readable=False)
        found = self._list_of_modes(root)
        if found is None:
            return ModeFile([], self.problems, readable=False)
        modes: dict[str, ModeConfig] = {}
        for node in found.items:
            mode = self._try(self._mode, node)
            if mode is None:
                continue
            if mode.slug in modes:
                message = (
                    f"The slug `{mode.slug}` is used twice; the mode in line {modes[mode.slug].origin.line} counts"
                )
                self.report("error", message, node)
            else:
                modes[mode.slug] = mode
        left_out = {slug: origin for slug, origin in self._left_out.items() if slug not in modes}
        return ModeFile(list(modes.values()), self.problems, left_out)

    def _list_of_modes(self, root: Node) -> Items | None:
        if isinstance(root, Items):
            return root
        form = "a file is `customModes:` with a list of modes, or that list alone"
        if not isinstance(root, Fields):
            self.report("error", "The file holds no modes", root, form)
            return None
        found = self._fields(root, ("customModes",), "the file").get("customModes")
        if found is None:
            if any(_camel(name) == "customModes" for name in root.fields):
                return Items([], root.line, root.column)
            self.report("error", "The file has no `customModes`", root, form)
            return None
        if not isinstance(found, Items):
            self.report("error", f"`customModes` must be a list, not {_kind(found)}", found, form)
            return None
        return found

    # A mode.

    def _mode(self, node: Node) -> ModeConfig:
        if not isinstance(node, Fields):
            raise self._wrong(f"A mode must be a mapping, not {_kind(node)}", node)
        unclear = _unclear_restrictions(node)
        fields = self._fields(node, _MODE_KEYS, "a mode", ignored=_IGNORED_MODE_KEYS, told={*map(_camel, unclear)})
        slug = self._slug(fields, node)
        texts = {key: self._try(self._text, key, fields.get(key)) for key in _TEXTS if key in fields}
        extends = self._base(slug, fields)
        for written, (why, hint) in unclear.items():
            key, _ = node.fields[written]
            self.report("error", f"`{_short(written)}` of `{slug}` {why}; the mode may use no tools", key, hint)
        name, role = texts.get("name"), texts.get("roleDefinition")
        missing = [key for key, value in (("name", name), ("roleDefinition", role)) if not value]
        if extends is not None and name:
            missing = []  # a mode that narrows another may leave the role to it
        if missing:
            wanted = " and ".join(f"`{key}`" for key in missing)
            self._left_out[slug] = Origin(self._file, node.line)
            raise self._wrong(f"The mode `{slug}` has no {wanted}, and is left out", node)
        assert name is not None
        is_told = any(_camel(written) == "groups" for written in unclear)
        groups = self._groups(slug, fields.get("groups"), node, required=extends is None and not is_told)
        restrictions = None
        if (found := fields.get("mcpRestrictions")) is not None:
            restrictions = self._try(self._restrictions, found)
            if restrictions is None:
                message = f"The restrictions of `{slug}` cannot be understood, so it may use no MCP server at all"
                self.report("error", message, found)
                restrictions = McpRestrictions(Origin(self._file, found.line), allowed_servers=())
        if unclear:
            groups = ()
        return ModeConfig(
            slug=slug,
            name=name,
            source=self._source,
            origin=Origin(self._file, node.line),
            role_definition=role or "",
            groups=groups,
            description=texts.get("description"),
            when_to_use=texts.get("whenToUse"),
            custom_instructions=texts.get("customInstructions"),
            mcp_restrictions=restrictions,
            extends=extends,
        )

    def _slug(self, fields: dict[str, Node], node: Fields) -> str:
        found = fields.get("slug")
        if found is None:
            raise self._wrong("The mode has no `slug`, and is left out", node)
        slug = self._text("slug", found)
        if slug is None or not is_slug(slug):
            message = f"The slug `{_short(slug or '')}` is not usable, and its mode is left out"
            raise self._wrong(message, found, "letters, digits and `-` only")
        return slug

    def _base(self, slug: str, fields: dict[str, Node]) -> str | None:
        """The mode that this one extends. One that cannot be understood is none that exists: it must not set free."""
        named = [(key, fields[key]) for key in ("extends", "baseMode") if key in fields]
        bases = [text or "" for text in (self._try(self._text, key, node) for key, node in named)]
        if len(set(bases)) > 1:
            message = f"The mode `{slug}` has both `extends` and `baseMode`, so it may use no tools"
            self.report("error", message, named[1][1], "a mode extends one other")
            return ""
        return bases[0] if bases else None

    def _groups(self, slug: str, node: Node | None, mode: Fields, *, required: bool) -> tuple[Group, ...] | None:
        if node is None:
            if not required:
                return None
            hint = "write `groups: []` if that is meant"
            self.report("error", f"The mode `{slug}` has no `groups`, so it may use no tools", mode, hint)
            return ()
        if not isinstance(node, Items):
            self.report("error", f"`groups` must be a list, not {_kind(node)}; `{slug}` may use no tools", node)
            return ()
        groups: dict[GroupName, Group] = {}
        for item in node.items:
            group = self._try(self._group, slug, item)
            if group is None:
                continue
            if (known := groups.get(group.name)) is None:
                groups[group.name] = group
                continue
            if known.file_regex is None and known.window is None:
                groups[group.name] = group  # of two, the one with a limit allows less
            hint = "join patterns with `|` in one entry"
            line = groups[group.name].origin.line
            self.report("error", f"The group `{group.name}` is there twice; the one in line {line} counts", item, hint)
        return tuple(groups.values())

    def _group(self, slug: str, node: Node) -> Group:
        options: Node | None = None
        named = node
        if isinstance(node, Items) and 1 <= len(node.items) <= 2:
            named = node.items[0]
            options = node.items[1] if len(node.items) == 2 else None
        if not isinstance(named, Scalar) or not isinstance(named.value, str):
            hint = 'write a name, or `[edit, {fileRegex: "\\\\.md$"}]` with the options in a second item'
            raise self._wrong(f"A group of `{slug}` must be a name or a pair, and is left out", node, hint)
        name = next((known for known in GROUP_NAMES if known == named.value), None)
        if name is None:
            hint = did_you_mean(named.value, GROUP_NAMES) or f"there are {', '.join(GROUP_NAMES)}"
            message = f"The group `{_short(named.value)}` of `{slug}` is unknown, and is left out"
            raise self._wrong(message, named, hint)
        group = Group(name, Origin(self._file, node.line))
        return group if options is None else self._group_options(slug, group, options)

    def _group_options(self, slug: str, group: Group, node: Node) -> Group:
        if not isinstance(node, Fields):
            raise self._wrong(
                f"The options of `{group.name}` in `{slug}` must be a mapping; the group is left out", node
            )
        fields = self._fields(node, _GROUP_KEYS, "a group's options", strict=True)
        pattern = self._text("fileRegex", fields.get("fileRegex"))
        if pattern:
            try:
                FilePattern(pattern)
            except BadPattern as error:
                message = f"The pattern of `{group.name}` in `{slug}` is no regular expression; the group is left out"
                raise self._wrong(f"{message}: {_short(str(error))}", fields["fileRegex"], _short(pattern)) from error
            if group.name not in FILE_GROUPS:
                message = f"The tools of `{group.name}` name no files, so with a pattern none of them can be allowed"
                self.report("warning", message, fields["fileRegex"])
        return structs.replace(
            group,
            file_regex=pattern or None,
            description=self._try(self._text, "description", fields.get("description")),
            window=self._window(fields, node),
        )

    # MCP restrictions.

    def _restrictions(self, node: Node) -> McpRestrictions:
        if not isinstance(node, Fields):
            raise self._wrong(f"`mcpRestrictions` must be a mapping, not {_kind(node)}", node)
        fields = self._fields(node, _RESTRICTION_KEYS, "`mcpRestrictions`", strict=True)
        return McpRestrictions(
            origin=Origin(self._file, node.line),
            allowed_servers=self._list("allowedServers", fields, self._server),
            disallowed_servers=self._list("disallowedServers", fields, self._server),
            allowed_tools=self._tools("allowedTools", fields),
            disallowed_tools=self._tools("disallowedTools", fields),
            window=self._window(fields, node),
        )

    def _list(self, key: str, fields: dict[str, Node], read: Callable[[str, Node], T]) -> tuple[T, ...] | None:
        node = fields.get(key)
        if node is None:
            return None
        if not isinstance(node, Items):
            raise self._wrong(f"`{key}` must be a list, not {_kind(node)}", node)
        return tuple(read(key, item) for item in node.items)

    def _tools(self, key: str, fields: dict[str, Node]) -> tuple[ToolPattern, ...] | None:
        found = self._list(key, fields, self._tool)
        return None if found is None else tuple(pattern for readings in found for pattern in readings)

    def _server(self, key: str, node: Node) -> str:
        if not isinstance(node, Scalar) or not isinstance(node.value, str) or not node.value:
            raise self._wrong(f"`{key}` must hold names of servers, not {_kind(node)}", node)
        return node.value

    def _tool(self, key: str, node: Node) -> tuple[ToolPattern, ...]:
        if isinstance(node, Scalar) and isinstance(node.value, str) and (readings := pattern_readings(node.value)):
            return readings
        if isinstance(node, Fields):
            fields = self._fields(node, ("serverName", "toolName"), "a tool", strict=True)
            server, tool = (self._text(name, fields.get(name)) for name in ("serverName", "toolName"))
            if server and tool:
                return (ToolPattern(server, tool),)
        hint = "`{serverName: github, toolName: create_*}` or `mcp__github__create_*`"
        raise self._wrong(f"An entry of `{key}` names no tool", node, hint)

    def _window(self, fields: dict[str, Node], place: Node) -> TimeWindow | None:
        if not any(key in fields for key in _WINDOW):
            return None
        hours = self._text("activeHours", fields.get("activeHours"))
        timezone = self._text("timezone", fields.get("timezone"))
        days = self._list("days", fields, self._day)
        try:
            return make_window(hours, None if days is None else list(days), timezone)
        except BadWindow as error:
            raise self._wrong(str(error), place) from error

    def _day(self, key: str, node: Node) -> str:
        if not isinstance(node, Scalar) or not isinstance(node.value, str):
            raise self._wrong(f"`{key}` must hold names of days, not {_kind(node)}", node)
        return node.value

    # Values.

    def _fields(
        self,
        node: Fields,
        known: tuple[str, ...],
        where: str,
        *,
        ignored: tuple[str, ...] = (),
        told: Container[str] = (),
        strict: bool = False,
    ) -> dict[str, Node]:
        """The members we know, under their camelCase names, however they are spelt. A null is as good as nothing.

        What is wrong with those that are `told` of is said elsewhere.

        Members that restrict are read `strict`: one that is unknown, empty or there twice raises `_Wrong`. Whoever
        wrote it meant to restrict something, and nobody can tell what.
        """
        repeated = list(node.repeated)
        found: dict[str, Node] = {}
        for name, (key, value) in node.fields.items():
            camel = _camel(name)
            if camel in known:
                if camel in found:
                    repeated.append(key)
                if not (isinstance(value, Scalar) and value.value is None):
                    found[camel] = value
                elif strict:
                    raise self._wrong(f"`{camel}` has no value", key)
            elif camel not in ignored and camel not in told:
                hint = did_you_mean(camel, known)
                message = f"`{_short(name)}` means nothing in {where}"
                if strict:
                    raise self._wrong(message, key, hint)
                self.report("warning" if hint else "info", message, key, hint)
        for key in repeated:
            if _camel(str(key.value)) in told:
                continue
            message = f"`{_short(str(key.value))}` is there twice"
            if strict:
                raise self._wrong(message, key)
            self.report("warning", f"{message}; the last one counts", key)
        return found

    def _text(self, key: str, node: Node | None) -> str | None:
        """The text of a member, None if it has none. Raises `_Wrong` if it has something else."""
        if node is None:
            return None
        if isinstance(node, Scalar) and isinstance(node.value, str):
            return node.value
        hint = "put it in quotes" if isinstance(node, Scalar) else None
        raise self._wrong(f"`{key}` must be text, not {_kind(node)}", node, hint)

    def _try(self, read: Callable[..., T], *arguments: object) -> T | None:
        """None for what cannot be used; why is reported."""
        try:
            return read(*arguments)
        except _Wrong:
            return None

    def _wrong(self, message: str, place: Node, hint: str | None = None) -> _Wrong:
        self.report("error", message, place, hint)
        return _Wrong()


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part[:1].upper() + part[1:] for part in rest)


def _kind(node: Node) -> str:
    match node:
        case Items():
            return "a list"
        case Fields():
            return "a mapping"
        case Scalar(value=None):
            return "nothing"
        case Scalar(value=value):
            return _short(repr(value))


def _short(text: str) -> str:
    return shortened(text, length=80)
