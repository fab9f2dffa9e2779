"""The parts of a task's record, for tests that look at one of them."""

from modes_actor.sessions.model import Message, ModeChange, Node, Session
from modes_actor.sessions.reading import SessionReader


def messages(reader: SessionReader, session: Session) -> list[Message]:
    found = reader.record(session, hierarchy=False).messages
    assert found is not None
    return found


def history(reader: SessionReader, session: Session) -> list[ModeChange]:
    return reader.record(session, messages=False, hierarchy=False).history


def tree(reader: SessionReader, session: Session) -> list[Node]:
    found = reader.record(session, messages=False).hierarchy
    assert found is not None
    return found.nodes
