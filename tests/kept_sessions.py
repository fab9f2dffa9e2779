"""Sessions that servers have left in the store of a `Shell`, and what `modes-actor sessions` says of them."""

import sqlite3
import time
from contextlib import closing
from pathlib import Path

import trio

from modes_actor.sessions.model import FinalState, Session
from modes_actor.sessions.sessions import Sessions
from modes_actor.sessions.tables import MIGRATIONS
from modes_actor.store.database import Store
from tests.command_line import Shell

NEVER_SEEN = f"sess_{'0' * 32}"


def storage(shell: Shell) -> Path:
    return shell.config_dir / "mcp_sessions"


def file_of(shell: Shell) -> Path:
    return storage(shell) / "sessions.db"


def keep(
    shell: Shell,
    *,
    mode: str = "code",
    message: str | None = None,
    parent: Session | None = None,
    ended: FinalState | None = None,
    switched: str | None = None,
    seconds_ago: float = 0,
    session_id: str | None = None,
) -> Session:
    """A session in the store of that home, as a server that has ended by now has left it."""
    then = time.time() - seconds_ago

    async def create() -> Session:
        sessions = Sessions(Store(file_of(shell), MIGRATIONS), now=lambda: then)
        session = await sessions.create(mode, message, parent.session_id if parent else None)
        if switched is not None:
            await sessions.switch(session.session_id, switched, "a reason")
        if ended is not None:
            await sessions.complete(session.session_id, ended, "the result")
        await sessions.close()
        return session

    session = trio.run(create)
    if session_id is not None:
        with closing(sqlite3.connect(file_of(shell), isolation_level=None)) as file:
            for table in ("sessions", "messages", "mode_changes"):
                file.execute(
                    f"UPDATE {table} SET session_id = ? WHERE session_id = ?", (session_id, session.session_id)
                )
        session = Session(session_id=session_id, task=session.task, created=then, last_activity=then)
    return session


def files(directory: Path) -> dict[str, bytes]:
    """Everything there is, to the last byte."""
    return {str(path): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def listed(shell: Shell, *words: str) -> list[str]:
    return [each["session_id"] for each in shell.run("sessions", *words, "--json").json()]


def refused(shell: Shell, *words: str) -> str:
    """The sentences with which a command ends that could not be done."""
    ran = shell.run("sessions", *words)
    assert (ran.code, ran.out) == (1, ""), ran
    lines = ran.err.splitlines()
    assert all(line.startswith("modes-actor: ") for line in lines)
    return "\n".join(line.removeprefix("modes-actor: ") for line in lines)
