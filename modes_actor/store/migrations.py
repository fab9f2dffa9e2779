"""How tables come to be: numbered steps for each room, each applied once and for all.

Promises: a migration and the record of it are one transaction; two processes that open one file at the same time apply
each migration once; a file in which somebody newer has left records is refused, and nothing in it is changed.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    import sqlite3

TABLE = "modes_actor_migrations"


class Migration(Struct, frozen=True):
    """One step of one room. Once released it never changes: the next change of a table is the next number."""

    room: str
    number: int
    statements: tuple[str, ...]


class NewerSchema(Exception):
    """Records of migrations that are not known here."""


class OlderSchema(Exception):
    """Migrations that are still missing, where none may be applied."""


def check_numbering(migrations: Sequence[Migration]) -> None:
    """Each room counts 1, 2, … in the order of its migrations: a slip here would show only in somebody's old file."""
    last: dict[str, int] = {}
    for migration in migrations:
        expected = last.get(migration.room, 0) + 1
        if migration.number != expected:
            raise ValueError(f"Migration {migration.number} of `{migration.room}` comes where {expected} should")
        last[migration.room] = expected


def migrate(connection: "sqlite3.Connection", migrations: Sequence[Migration]) -> None:
    """Apply what is missing. Raises what SQLite raises: then what was applied stays, the rest can be tried again."""
    applied = refuse_newer(connection, migrations)
    for migration in migrations:
        if (migration.room, migration.number) in applied:
            continue
        connection.execute("BEGIN IMMEDIATE")
        try:
            # Another process may have been here since; from now on none can.
            applied = refuse_newer(connection, migrations)
            if (migration.room, migration.number) not in applied:
                _apply(connection, migration)
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise


def refuse_newer(connection: "sqlite3.Connection", migrations: Sequence[Migration]) -> set[tuple[str, int]]:
    """What is applied already; raises `NewerSchema` if that is more than is known here. Changes nothing."""
    if connection.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (TABLE,)).fetchone() is None:
        return set()
    applied: set[tuple[str, int]] = set(connection.execute(f"SELECT room, number FROM {TABLE}"))
    known = {(migration.room, migration.number) for migration in migrations}
    if unknown := sorted(applied - known):
        raise NewerSchema(", ".join(f"{room} {number}" for room, number in unknown))
    return applied


def _apply(connection: "sqlite3.Connection", migration: Migration) -> None:
    connection.execute(
        f"CREATE TABLE IF NOT EXISTS {TABLE} (room TEXT NOT NULL, number INTEGER NOT NULL, "
        "applied_at TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP, PRIMARY KEY (room, number)) WITHOUT ROWID"
    )
    for statement in migration.statements:
        connection.execute(statement)
    connection.execute(f"INSERT INTO {TABLE} (room, number) VALUES (?, ?)", (migration.room, migration.number))
