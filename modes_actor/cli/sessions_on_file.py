"""The sessions that servers keep on the disk, for commands that look at them: any short name will do."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from modes_actor.cli.command import CommandFailed, Situation
from modes_actor.sessions.model import Session
from modes_actor.sessions.reading import SessionsOnFile
from modes_actor.sessions.tables import MIGRATIONS
from modes_actor.store.snapshot import Snapshot
from modes_actor.wire.errors import RequestError, shortened

CANDIDATES_SHOWN = 10


def session_file(situation: Situation) -> Path:
    """Where they are. Raises `CommandFailed` if they are nowhere but in their servers' memory."""
    path = situation.house.session_file
    if path is None:
        raise CommandFailed(
            "sessions are kept in their server's memory, where nobody else sees them, because "
            "`sessions.persistence.enabled` is false"
        )
    return path


@contextmanager
def looking_at_sessions(situation: Situation) -> Iterator[SessionsOnFile]:
    """All of them as they are at this moment. What is asked of them raises `CommandFailed`."""
    path = session_file(situation)
    with store_trouble(path), Snapshot(path, MIGRATIONS) as snapshot:
        yield SessionsOnFile(snapshot, situation.config.sessions.timeout)


@contextmanager
def store_trouble(path: Path) -> Iterator[None]:
    """Say what the store complains of, and which file that is."""
    try:
        yield
    except RequestError as error:
        raise CommandFailed(f"{error.message} ({path})") from error


def the_session(name: str, sessions: SessionsOnFile) -> Session:
    """The one that is meant. Raises `CommandFailed` if there is none, or several may be."""
    found = sessions.named(name)
    if len(found) == 1:
        return found[0]
    shown = shortened(name, length=100)
    if found:
        lines = [f"'{shown}' may be any of {len(found)} sessions:"]
        lines += [f"  {each.session_id} {each.task.task_id} ({each.task.mode})" for each in found[:CANDIDATES_SHOWN]]
        raise CommandFailed("\n".join(lines))
    if sessions.has_expired(name):
        raise CommandFailed(f"the session {shown} has expired or was closed: nothing of it is kept")
    raise CommandFailed(f"no live session is called '{shown}', or begins so: `modes-actor sessions` lists them")
