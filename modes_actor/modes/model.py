"""What a mode is, once it is read: plain values, with the place where each was written."""

from typing import Literal, get_args

from msgspec import Struct

Source = Literal["builtin", "global", "project"]
Severity = Literal["error", "warning", "info"]
GroupName = Literal["read", "edit", "browser", "command", "mcp", "modes"]
GROUP_NAMES: tuple[GroupName, ...] = get_args(GroupName)
Day = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]

DAYS: tuple[Day, ...] = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")


class Origin(Struct, frozen=True):
    """Where something is written. A built-in has no line: nobody can edit it."""

    file: str
    line: int | None = None

    def __str__(self) -> str:
        return self.file if self.line is None else f"{self.file}:{self.line}"


class Problem(Struct, frozen=True):
    """Something wrong with a file, for the person who wrote it. Lines and columns count from 1."""

    file: str
    line: int
    column: int
    severity: Severity
    message: str
    hint: str | None = None

    def __str__(self) -> str:
        hint = f" ({self.hint})" if self.hint else ""
        return f"{self.file}:{self.line}:{self.column}: {self.severity}: {self.message}{hint}"


class TimeWindow(Struct, frozen=True):
    """When something is allowed; at any other time it is not. Times are minutes since midnight.

    Without a timezone the machine's own counts. A window that ends before it starts is overnight, and belongs to the
    day on which it begins.
    """

    text: str
    start: int = 0
    end: int = 24 * 60
    days: tuple[Day, ...] = DAYS
    timezone: str | None = None


class Group(Struct, frozen=True):
    """Tools a mode may use, and for which files."""

    name: GroupName
    origin: Origin
    file_regex: str | None = None
    description: str | None = None
    window: TimeWindow | None = None


class ToolPattern(Struct, frozen=True):
    """Tools of MCP servers, both names with `*` and `?` for anything and any one character.

    `text` is the qualified name it was written as, if it was: one that can be split in several ways gives several.
    """

    server: str
    tool: str
    text: str = ""

    def __str__(self) -> str:
        return self.text or f"mcp__{self.server}__{self.tool}"


class McpRestrictions(Struct, frozen=True):
    """Which MCP servers and which of their tools a mode may reach. None means: not restricted by this."""

    origin: Origin
    allowed_servers: tuple[str, ...] | None = None
    disallowed_servers: tuple[str, ...] | None = None
    allowed_tools: tuple[ToolPattern, ...] | None = None
    disallowed_tools: tuple[ToolPattern, ...] | None = None
    window: TimeWindow | None = None


class ModeConfig(Struct, frozen=True, kw_only=True):
    """A mode as it was written, by a person or by us."""

    slug: str
    name: str
    source: Source
    origin: Origin
    role_definition: str
    groups: tuple[Group, ...] | None = ()
    """None: nothing was said of them, which only a mode that extends another may do."""
    description: str | None = None
    when_to_use: str | None = None
    custom_instructions: str | None = None
    mcp_restrictions: McpRestrictions | None = None
    extends: str | None = None
    """The slug of a mode that this one narrows: what the base does not allow, this one does not either."""

    def group(self, name: str) -> Group | None:
        return next((group for group in self.groups or () if group.name == name), None)
