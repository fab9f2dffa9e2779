"""`modes-actor sessions`: the tasks under way, whichever server they belong to. To look at them leaves no trace."""

from argparse import ArgumentParser, ArgumentTypeError
from collections import Counter
from collections.abc import Callable

import trio
from msgspec import Struct

from modes_actor.cli.command import Command, Situation
from modes_actor.cli.output import Output, Style, Styled, Words
from modes_actor.cli.sessions_on_file import looking_at_sessions, session_file, store_trouble, the_session
from modes_actor.sessions.model import Session, TaskState, iso_time
from modes_actor.sessions.reading import SessionsOnFile
from modes_actor.surface import mode_texts
from modes_actor.surface.house import House
from modes_actor.surface.mode_tools import task_details

_DIGITS_SHOWN = 8
_FIRST_WORDS = 60
_STATE_STYLES: dict[TaskState, Style] = {"active": "good", "failed": "bad", "completed": "dim", "cancelled": "dim"}


class Row(Struct, frozen=True, kw_only=True):
    """A session, as the list has it. `age` and `idle` are seconds."""

    session_id: str
    task_id: str
    mode_slug: str
    state: TaskState
    age: int
    idle: int
    created_at: str
    last_activity: str
    subtasks: int
    parent_session_id: str | None
    first_words: str | None


class ListArguments(Struct):
    limit: int | None = None
    mode: str | None = None
    active: bool = False


def _list(arguments: ListArguments, situation: Situation) -> int:
    output = situation.output
    with looking_at_sessions(situation) as sessions:
        live = sessions.live()
        subtasks = Counter(each.task.parent_session_id for each in live)
        wanted = [
            each
            for each in live
            if arguments.mode in (None, each.task.mode) and (each.task.state == "active" or not arguments.active)
        ]
        rows = [_row(each, sessions, subtasks[each.session_id]) for each in wanted[: arguments.limit]]
    if output.as_json:
        output.json(rows)
    elif rows:
        _draw(rows, output)
    elif live:
        output.line(f"None of {len(live)} live sessions is like that.")
    else:
        output.line("No live sessions." if session_file(situation).exists() else "No sessions yet.")
    return 0


def _row(session: Session, sessions: SessionsOnFile, subtasks: int) -> Row:
    task, message = session.task, sessions.first_message(session)
    return Row(
        session_id=session.session_id,
        task_id=task.task_id,
        mode_slug=task.mode,
        state=task.state,
        age=round(sessions.age(session)),
        idle=round(sessions.seconds_idle(session)),
        created_at=iso_time(session.created),
        last_activity=iso_time(session.last_activity),
        subtasks=subtasks,
        parent_session_id=task.parent_session_id,
        first_words=None if message is None else _first_words(message.content),
    )


def _first_words(text: str) -> str:
    words = " ".join(text[: 4 * _FIRST_WORDS].split())
    return words if len(words) <= _FIRST_WORDS else f"{words[:_FIRST_WORDS].rstrip()}…"


def _draw(rows: list[Row], output: Output) -> None:
    """A terminal has little room: it gets IDs by a name that is short, and no column without content.

    In a pipe each row has every column, for whoever takes it apart.
    """
    columns = ["session", "task", "mode", "state", "age", "idle", "subtasks", "parent", "first words"]
    if not output.is_rich:
        output.table(columns, [_cells(row, str, nothing="-") for row in rows])
        return
    cells = [_cells(row, _abbreviated, nothing="") for row in rows]
    filled = [number for number in range(len(columns)) if any(row[number] for row in cells)]
    output.table([columns[each] for each in filled], [[row[each] for each in filled] for row in cells])


def _abbreviated(whole_id: str) -> str:
    """A name that commands understand."""
    return whole_id.rpartition("_")[2][:_DIGITS_SHOWN]


def _cells(row: Row, name: Callable[[str], str], *, nothing: str) -> list[Words]:
    parent = row.parent_session_id
    return [
        Styled(name(row.session_id), "name"),
        name(row.task_id),
        row.mode_slug,
        Styled(row.state, _STATE_STYLES[row.state]),
        _duration(row.age),
        _duration(row.idle),
        str(row.subtasks or nothing),
        nothing if parent is None else name(parent),
        row.first_words or nothing,
    ]


def _duration(seconds: int) -> str:
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86400
    if not minutes:
        return f"{seconds}s"
    if not hours:
        return f"{minutes}m"
    return f"{hours}h {minutes % 60}m" if not days else f"{days}d {hours % 24}h"


class ShowArguments(Struct):
    session: str


def _show(arguments: ShowArguments, situation: Situation) -> int:
    output = situation.output
    with looking_at_sessions(situation) as sessions:
        session = the_session(arguments.session, sessions)
        if output.as_json:
            output.json(task_details(sessions.record(session)))
        else:
            output.text(_told(session, sessions, situation.house))
    return 0


def _told(session: Session, sessions: SessionsOnFile, house: House) -> str:
    mode = house.catalog.get(session.task.mode)
    record = sessions.record(session)
    return mode_texts.task_info(
        record,
        mode.name if mode else "not defined in this project",
        age=sessions.age(session),
        idle=sessions.seconds_idle(session),
        history=record.history,
    )


class Closed(Struct, frozen=True, kw_only=True):
    """A session that was ended, and what its task was."""

    session_id: str
    task_id: str
    mode_slug: str
    state: TaskState
    open_subtasks: list[str]
    """Sessions below it, which go on."""


class CloseArguments(Struct):
    sessions: list[str]


def _close(arguments: CloseArguments, situation: Situation) -> int:
    path = session_file(situation)
    with looking_at_sessions(situation) as sessions:  # all names are understood before anything is closed
        chosen = {(session := the_session(name, sessions)).session_id: session for name in arguments.sessions}
        active = [each for each in sessions.live() if each.task.state == "active"]
    closing = [
        _closed(session, [each for each in active if each.session_id not in chosen]) for session in chosen.values()
    ]
    closed: list[Closed] = []
    try:
        with store_trouble(path):
            trio.run(_destroy, situation.house, closing, closed)
    finally:
        _tell_closed(closed, situation.output)
    return 0


def _closed(session: Session, others: list[Session]) -> Closed:
    task = session.task
    return Closed(
        session_id=session.session_id,
        task_id=task.task_id,
        mode_slug=task.mode,
        state=task.state,
        open_subtasks=[each.session_id for each in others if each.task.parent_session_id == session.session_id],
    )


async def _destroy(house: House, closing: list[Closed], closed: list[Closed]) -> None:
    try:
        for each in closing:
            await house.sessions.destroy(each.session_id)
            closed.append(each)
    finally:
        await house.sessions.close()


def _tell_closed(closed: list[Closed], output: Output) -> None:
    if output.as_json:
        output.json(closed)
        return
    for each in closed:
        output.line("Closed ", Styled(each.session_id, "name"), f" ({each.task_id}, {each.mode_slug}, {each.state})")
        for below in each.open_subtasks:
            output.line(f"  its subtask goes on: {below}")


class ExportArguments(Struct):
    sessions: list[str] = []


def _export(arguments: ExportArguments, situation: Situation) -> int:
    with looking_at_sessions(situation) as sessions:
        if arguments.sessions:
            named = [the_session(name, sessions) for name in arguments.sessions]
            chosen = list({session.session_id: session for session in named}.values())
        else:
            chosen = sessions.live()
        situation.output.json([task_details(sessions.record(each)) for each in chosen])
    return 0


def _whole_number(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise ArgumentTypeError(f"must be a number above 0, not {text!r}")
    return int(text)


def _add_list_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--limit", metavar="N", type=_whole_number, help="the N that were used last")
    parser.add_argument("--mode", metavar="SLUG", help="only those in this mode")
    parser.add_argument("--active", action="store_true", help="only those whose task has not ended")


_LIST = Command(
    description="List the sessions that have not expired, the one last used first.",
    arguments=ListArguments,
    add_arguments=_add_list_arguments,
    run=_list,
)
_ID_HELP = "a session's ID or its task's, or the beginning of one"

COMMAND = Command(
    description="List the sessions that have not expired, the one last used first. They belong to all servers and\n"
    "projects of this person. To look at a session does not keep it alive.",
    examples="  modes-actor sessions --active\n  modes-actor sessions show 1f3a\n"
    "  modes-actor sessions close sess_1f3a\n  modes-actor sessions export > sessions.json",
    arguments=ListArguments,
    add_arguments=_add_list_arguments,
    run=_list,
    actions={
        "list": _LIST,
        "show": Command(
            description="Show all about one session: its task, modes, messages, and the tasks around it.",
            arguments=ShowArguments,
            add_arguments=lambda parser: parser.add_argument("session", metavar="ID", help=_ID_HELP),
            run=_show,
        ),
        "close": Command(
            description="End sessions before their time. They answer as expired from then on; their subtasks go on.",
            arguments=CloseArguments,
            add_arguments=lambda parser: parser.add_argument("sessions", metavar="ID", nargs="+", help=_ID_HELP),
            is_intermixed=True,
            run=_close,
        ),
        "export": Command(
            description="Write all there is about some sessions, or about all of them, as JSON.",
            arguments=ExportArguments,
            add_arguments=lambda parser: parser.add_argument(
                "sessions", metavar="ID", nargs="*", default=[], help=_ID_HELP
            ),
            is_intermixed=True,
            run=_export,
        ),
    },
)
