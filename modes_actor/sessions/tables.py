"""The tables of sessions, and every statement that touches them. Knows SQL; decides nothing."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final, get_args

import msgspec

from modes_actor.sessions.model import (
    HIERARCHY_LIMIT,
    SESSION_ID_PREFIX,
    Message,
    ModeChange,
    Node,
    Session,
    Task,
    TaskState,
)
from modes_actor.store.migrations import Migration

if TYPE_CHECKING:
    from collections.abc import Iterable
    from sqlite3 import Connection

MIGRATIONS: Final = (
    Migration(
        "sessions",
        1,
        (
            """
            CREATE TABLE sessions (
                session_id TEXT PRIMARY KEY,
                task_id TEXT NOT NULL UNIQUE,
                parent_session_id TEXT,
                mode TEXT NOT NULL,
                state TEXT NOT NULL,
                created REAL NOT NULL,
                last_activity REAL NOT NULL,
                completed REAL,
                metadata TEXT NOT NULL
            ) WITHOUT ROWID
            """,
            "CREATE INDEX sessions_by_parent ON sessions (parent_session_id) WHERE parent_session_id IS NOT NULL",
            "CREATE INDEX sessions_by_activity ON sessions (last_activity)",
            """
            CREATE TABLE messages (
                session_id TEXT NOT NULL,
                number INTEGER NOT NULL,
                role TEXT NOT NULL,
                content TEXT NOT NULL,
                timestamp REAL NOT NULL,
                PRIMARY KEY (session_id, number)
            ) WITHOUT ROWID
            """,
            """
            CREATE TABLE mode_changes (
                session_id TEXT NOT NULL,
                number INTEGER NOT NULL,
                mode TEXT NOT NULL,
                reason TEXT,
                timestamp REAL NOT NULL,
                PRIMARY KEY (session_id, number)
            ) WITHOUT ROWID
            """,
            """
            CREATE TABLE expired_sessions (
                session_id TEXT PRIMARY KEY,
                task_id TEXT NOT NULL UNIQUE,
                expired REAL NOT NULL
            ) WITHOUT ROWID
            """,
            "CREATE INDEX expired_sessions_by_time ON expired_sessions (expired)",
        ),
    ),
)

_COLUMNS = "session_id, task_id, parent_session_id, mode, state, created, last_activity, completed, metadata"
_ANCESTORS: Final = f"""
    WITH RECURSIVE line AS (
        SELECT {_COLUMNS}, 1 AS height FROM sessions WHERE session_id = ?
        UNION ALL
        SELECT {", ".join(f"above.{name}" for name in _COLUMNS.split(", "))}, line.height + 1
        FROM sessions AS above JOIN line ON above.session_id = line.parent_session_id
        WHERE line.height < ?
    )
    SELECT {_COLUMNS} FROM line ORDER BY height
"""
HIGHEST: Final = 100_000
"""Tasks above one another. Nobody gets there, but a line that bites its own tail has no end."""
_STATES: Final = frozenset(get_args(TaskState))


def find(connection: Connection, session_id: str) -> Session | None:
    row = connection.execute(f"SELECT {_COLUMNS} FROM sessions WHERE session_id = ?", (session_id,)).fetchone()
    return None if row is None else _session(row)


def has_expired(connection: Connection, session_id: str) -> bool:
    row = connection.execute("SELECT 1 FROM expired_sessions WHERE session_id = ?", (session_id,)).fetchone()
    return row is not None


def session_of_task(connection: Connection, task_id: str) -> str | None:
    """The session of a task, whether it lives or has expired."""
    row = connection.execute(
        "SELECT session_id FROM sessions WHERE task_id = ?"
        " UNION ALL SELECT session_id FROM expired_sessions WHERE task_id = ?",
        (task_id, task_id),
    ).fetchone()
    return None if row is None else row[0]


def recent(connection: Connection, *, since: float, limit: int, prefix: str = "") -> list[Session]:
    """The sessions last used whose IDs begin so, the latest first. A negative limit is none."""
    # Either the latest ones are looked through or, where the beginning tells some from others, those that begin so.
    narrows = "" if SESSION_ID_PREFIX.startswith(prefix) else "session_id BETWEEN :prefix AND :prefix || :last AND +"
    rows = connection.execute(
        f"SELECT {_COLUMNS} FROM sessions WHERE {narrows}last_activity >= :since "
        "AND substr(session_id, 1, length(:prefix)) = :prefix "
        "ORDER BY last_activity DESC, created DESC, session_id LIMIT :limit",
        {"since": since, "prefix": prefix, "last": chr(sys.maxunicode), "limit": limit},
    )
    return [_session(row) for row in rows]


def beginning_with(connection: Connection, *, session_id: str, task_id: str, since: float) -> list[Session]:
    """The sessions last used of which either ID begins so, the latest first."""
    rows = connection.execute(
        f"SELECT {_COLUMNS} FROM sessions WHERE last_activity >= ? "
        "AND (substr(session_id, 1, ?) = ? OR substr(task_id, 1, ?) = ?) "
        "ORDER BY last_activity DESC, created DESC, session_id",
        (since, len(session_id), session_id, len(task_id), task_id),
    )
    return [_session(row) for row in rows]


def first_message(connection: Connection, session_id: str) -> Message | None:
    row = connection.execute(
        "SELECT role, content, timestamp FROM messages WHERE session_id = ? ORDER BY number LIMIT 1", (session_id,)
    ).fetchone()
    return None if row is None else Message(*row)


def messages(connection: Connection, session_id: str) -> list[Message]:
    rows = connection.execute(
        "SELECT role, content, timestamp FROM messages WHERE session_id = ? ORDER BY number", (session_id,)
    )
    return [Message(*row) for row in rows]


def mode_changes(connection: Connection, session_id: str) -> list[ModeChange]:
    rows = connection.execute(
        "SELECT mode, reason, timestamp FROM mode_changes WHERE session_id = ? ORDER BY number", (session_id,)
    )
    return [ModeChange(*row) for row in rows]


def children(connection: Connection, session_id: str) -> list[Session]:
    rows = connection.execute(
        f"SELECT {_COLUMNS} FROM sessions WHERE parent_session_id = ? ORDER BY created, session_id", (session_id,)
    )
    return [_session(row) for row in rows]


def ancestors(connection: Connection, session: Session) -> list[Session]:
    """The tasks above this one that still exist, the nearest first."""
    if session.task.parent_session_id is None:
        return []
    rows = connection.execute(_ANCESTORS, (session.task.parent_session_id, HIGHEST))
    line: dict[str, Session] = {session.session_id: session}
    for row in rows:
        above = _session(row)
        if above.session_id in line:
            break  # no task of ours is above itself, but a file can be damaged
        line[above.session_id] = above
    return list(line.values())[1:]


def hierarchy(connection: Connection, session: Session) -> list[Node]:
    """The tree that a task is in, each parent before its children; of a large one a part, with this task in it."""
    line = [session, *ancestors(connection, session)]
    nodes = _tree(connection, line[-1], 0)
    if any(node.session_id == session.session_id for node in nodes):
        return nodes
    highest = min(len(line), HIERARCHY_LIMIT) - 1
    ids = frozenset(each.session_id for each in line)
    return _tree(connection, line[highest], len(line) - 1 - highest, first=ids)


def _tree(connection: Connection, top: Session, depth: int, first: frozenset[str] = frozenset()) -> list[Node]:
    """What is below a task, and it. Sessions of `first` come before their siblings."""
    nodes: list[Node] = []
    waiting = [(top, depth)]
    seen: set[str] = set()
    while waiting and len(nodes) < HIERARCHY_LIMIT:
        found, depth = waiting.pop()
        if found.session_id in seen:
            continue
        seen.add(found.session_id)
        task = found.task
        nodes.append(Node(found.session_id, task.task_id, task.mode, task.state, task.parent_session_id, depth))
        below = sorted(children(connection, found.session_id), key=lambda child: child.session_id not in first)
        waiting += [(child, depth + 1) for child in reversed(below)]
    return nodes


def active_descendants(connection: Connection, session_id: str) -> list[Session]:
    """Sessions below this one whose tasks are active, also below ones that are not."""
    found: list[Session] = []
    waiting = [session_id]
    seen = {session_id}
    while waiting:
        for child in children(connection, waiting.pop()):
            if child.session_id in seen:
                continue
            seen.add(child.session_id)
            waiting.append(child.session_id)
            if child.task.state == "active":
                found.append(child)
    return found


def insert(connection: Connection, session: Session) -> None:
    task = session.task
    connection.execute(
        f"INSERT INTO sessions ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            session.session_id,
            task.task_id,
            task.parent_session_id,
            task.mode,
            task.state,
            session.created,
            session.last_activity,
            task.completed,
            msgspec.json.encode(task.metadata).decode(),
        ),
    )


def set_mode(connection: Connection, session_id: str, mode: str, now: float) -> None:
    connection.execute(
        "UPDATE sessions SET mode = ?, last_activity = max(last_activity, ?) WHERE session_id = ?",
        (mode, now, session_id),
    )


def set_state(connection: Connection, session_id: str, state: TaskState, now: float) -> None:
    connection.execute(
        "UPDATE sessions SET state = ?, completed = ?, last_activity = max(last_activity, ?) WHERE session_id = ?",
        (state, now, now, session_id),
    )


def touch(connection: Connection, touched: Iterable[tuple[str, float]]) -> None:
    connection.executemany(
        "UPDATE sessions SET last_activity = max(last_activity, ?) WHERE session_id = ?",
        [(when, session_id) for session_id, when in touched],
    )


def add_message(connection: Connection, session_id: str, message: Message) -> None:
    connection.execute(
        "INSERT INTO messages SELECT ?, coalesce(max(number), 0) + 1, ?, ?, ? FROM messages WHERE session_id = ?",
        (session_id, message.role, message.content, message.timestamp, session_id),
    )


def add_mode_change(connection: Connection, session_id: str, change: ModeChange) -> None:
    connection.execute(
        "INSERT INTO mode_changes SELECT ?, coalesce(max(number), 0) + 1, ?, ?, ? "
        "FROM mode_changes WHERE session_id = ?",
        (session_id, change.mode, change.reason, change.timestamp, session_id),
    )


def idle_since(connection: Connection, before: float, limit: int) -> list[str]:
    """Sessions not used since then, the longest idle first."""
    rows = connection.execute(
        "SELECT session_id FROM sessions WHERE last_activity < ? ORDER BY last_activity LIMIT ?", (before, limit)
    )
    return [row[0] for row in rows]


def is_clean_up_due(connection: Connection, idle_before: float, expired_before: float) -> bool:
    found = connection.execute(
        "SELECT EXISTS (SELECT 1 FROM sessions WHERE last_activity < ?)"
        " OR EXISTS (SELECT 1 FROM expired_sessions WHERE expired < ?)",
        (idle_before, expired_before),
    ).fetchone()
    return bool(found[0])


def expire(connection: Connection, session_ids: Iterable[str], now: float) -> None:
    """Forget all about them but that they were there."""
    for session_id in session_ids:
        connection.execute(
            "INSERT INTO expired_sessions SELECT session_id, task_id, ? FROM sessions WHERE session_id = ?",
            (now, session_id),
        )
        for table in ("sessions", "messages", "mode_changes"):
            connection.execute(f"DELETE FROM {table} WHERE session_id = ?", (session_id,))


def forget_expired(connection: Connection, before: float, limit: int) -> None:
    connection.execute(
        "DELETE FROM expired_sessions WHERE session_id IN "
        "(SELECT session_id FROM expired_sessions WHERE expired < ? ORDER BY expired LIMIT ?)",
        (before, limit),
    )


def _session(row: tuple[Any, ...]) -> Session:
    session_id, task_id, parent, mode, state, created, last_activity, completed, metadata = row
    if state not in _STATES:
        raise ValueError(f"the store has a task in state {state!r}")
    task = Task(
        task_id=task_id,
        mode=mode,
        state=state,
        created=created,
        completed=completed,
        parent_session_id=parent,
        metadata=msgspec.json.decode(metadata, type=dict[str, Any]) if metadata != "{}" else {},
    )
    return Session(session_id=session_id, task=task, created=created, last_activity=last_activity)
