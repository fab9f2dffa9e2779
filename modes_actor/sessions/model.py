"""What a session and its task are. Times are seconds since the epoch; clients see them as ISO 8601."""

import re
import secrets
from datetime import UTC, datetime
from typing import Any, Final, Literal

from msgspec import Struct

TaskState = Literal["active", "completed", "failed", "cancelled"]
FinalState = Literal["completed", "failed", "cancelled"]

HIERARCHY_LIMIT: Final = 1_000
"""Tasks of one hierarchy that are shown; each is also reached by its own id."""

SESSION_ID_PREFIX: Final = "sess_"
_SESSION_ID = re.compile(r"sess?_[A-Za-z0-9]{4,64}")


def is_session_id(text: str) -> bool:
    """Whether it could be one. Which ones there are only the store knows."""
    return _SESSION_ID.fullmatch(text) is not None


def new_session_id() -> str:
    return f"{SESSION_ID_PREFIX}{secrets.token_hex(16)}"


def new_task_id() -> str:
    return f"task_{secrets.token_hex(8)}"


def iso_time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class Message(Struct, frozen=True):
    role: Literal["user", "assistant"]
    content: str
    timestamp: float


class ModeChange(Struct, frozen=True):
    """A mode that a task was in, since when, and why."""

    mode: str
    reason: str | None
    timestamp: float


class Task(Struct, frozen=True, kw_only=True):
    task_id: str
    mode: str
    state: TaskState
    created: float
    completed: float | None
    parent_session_id: str | None
    metadata: dict[str, Any]


class Session(Struct, frozen=True, kw_only=True):
    """A task and the handle by which clients name it."""

    session_id: str
    task: Task
    created: float
    last_activity: float


class Node(Struct, frozen=True):
    """One task of a hierarchy. `depth` counts from its root."""

    session_id: str
    task_id: str
    mode: str
    state: TaskState
    parent_session_id: str | None
    depth: int


class Hierarchy(Struct, frozen=True):
    """Where a task stands. `nodes` is the whole tree, up to a limit; the other two never lack anything."""

    parent: Session | None
    children: list[Session]
    nodes: list[Node]


class TaskRecord(Struct, frozen=True):
    """What is kept of a task, as it was at one moment. None: not asked for."""

    session: Session
    history: list[ModeChange]
    messages: list[Message] | None
    hierarchy: Hierarchy | None


class Completed(Struct, frozen=True):
    """What completing a task came to."""

    session: Session
    cancelled: tuple[str, ...]
    """Sessions of descendants that were cancelled with it."""
    still_open: int
    """Children that are still active."""


class SessionCreated(Struct, frozen=True):
    """`ancestors` in this and the next two: the sessions above it, whose hierarchies show the change, too."""

    session_id: str
    ancestors: tuple[str, ...]


class ModeSwitched(Struct, frozen=True):
    session_id: str
    ancestors: tuple[str, ...]


class TaskCompleted(Struct, frozen=True):
    session_id: str
    ancestors: tuple[str, ...]
    cancelled: tuple[str, ...]


class SessionsExpired(Struct, frozen=True):
    session_ids: tuple[str, ...]


SessionEvent = SessionCreated | ModeSwitched | TaskCompleted | SessionsExpired
