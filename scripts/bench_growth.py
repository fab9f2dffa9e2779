"""How our server grows: with modes, with live sessions, and with the size of an answer."""

import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from bench_side_by_side import LIST_MODES, created_session, validate
from bench_tools import Child, Kind, call
from msgspec import Struct

MODES: Final = (1, 10, 100, 1_000)
SESSIONS: Final = (10, 100, 1_000, 10_000, 100_000)
ANSWERS: Final = (1_000, 10_000, 100_000, 1_000_000)


class WithModes(Struct, frozen=True):
    """A project that has so many modes of its own."""

    modes: int
    start_up_ms: float
    """To the first answer that needs them."""
    list_modes: float
    validations: float
    denials: float
    """Each names all the modes that would allow it."""
    created: float
    memory_mb: float


class WithSessions(Struct, frozen=True):
    """The best of several tries; the most memory."""

    sessions: int
    start_up_ms: float
    """To the first answer that needs the store."""
    task_infos: float
    validations: float
    created: float
    memory_mb: float


class WithAnswers(Struct, frozen=True):
    """Answers of about so many bytes."""

    answer_bytes: int
    answers: float
    megabytes: float
    memory_mb: float


class Growth(Struct, frozen=True):
    modes: list[WithModes]
    sessions: list[WithSessions]
    answers: list[WithAnswers]


def measure_growth(directory: Path, *, less: int) -> Growth:
    return Growth(
        [_with_modes(directory / f"modes-{count}", count, less) for count in MODES if count <= 1_000 // less],
        list(_with_sessions(directory / "sessions", less)),
        [_with_answers(directory / f"answers-{size}", size, less) for size in ANSWERS],
    )


@contextmanager
def _server(home: Path) -> Iterator[Child]:
    project = home / "project"
    (project / "docs").mkdir(parents=True, exist_ok=True)
    environment = {"HOME": str(home), "ROO_PROJECT_ROOT": str(project)}
    with Child("modes-actor", ["-m", "modes_actor"], environment=environment) as child:
        child.handshake()
        yield child
        child.finish()


def _with_modes(home: Path, count: int, less: int) -> WithModes:
    project = home / "project"
    project.mkdir(parents=True)
    modes = "".join(
        f"  - slug: mode-{number}\n    name: Mode {number}\n    roleDefinition: You are number {number}.\n"
        f"    groups: [read, [edit, {{fileRegex: '^(docs|part{number})/.*\\.md$'}}], mcp]\n"
        for number in range(count)
    )
    (project / ".roomodes").write_text(f"customModes:\n{modes}")
    begin = time.perf_counter()
    with _server(home) as child:
        child.exchange(LIST_MODES, range(1, 2))
        start_up = time.perf_counter() - begin
        calls = range(10, 10 + max(20, 20_000 // less // max(1, count // 10)))
        lists = len(calls) / child.exchange(LIST_MODES, calls).seconds
        session = created_session(child, range(5, 6), "mode-0")
        checks = range(1_000_000, 1_000_000 + 10_000 // less)
        validations = len(checks) / child.exchange(validate(session), checks).seconds
        refused = range(2_000_000, 2_000_000 + max(10, 2_000 // less // max(1, count // 10)))
        denials = len(refused) / child.exchange(validate(session, "src/app-{}.py"), refused).seconds
        created = _creations_per_second(child, f"mode-{count - 1}", less)
        return WithModes(count, start_up * 1e3, lists, validations, denials, created, child.memory_mb())


def _with_sessions(home: Path, less: int) -> Iterator[WithSessions]:
    home.mkdir()
    made = 0
    for wanted in SESSIONS:
        if wanted > 100_000 // less:
            return
        while made < wanted:
            batch = min(10_000, wanted - made)
            with _server(home) as child:  # a new one for each batch, so that no slow disk is taken for a hang
                child.exchange(call("create_task", lambda number: {"mode_slug": "code"}), range(made, made + batch))
            made += batch
        tries = [_with_those_sessions(_copy(home, f"{wanted}-{number}"), wanted, less) for number in range(3)]
        yield WithSessions(
            wanted,
            min(each.start_up_ms for each in tries),
            max(each.task_infos for each in tries),
            max(each.validations for each in tries),
            max(each.created for each in tries),
            max(each.memory_mb for each in tries),
        )


def _copy(home: Path, name: str) -> Path:
    """For whoever makes more sessions there."""
    return Path(shutil.copytree(home, home.with_name(f"sessions-{name}")))


def _with_those_sessions(home: Path, sessions: int, less: int) -> WithSessions:
    begin = time.perf_counter()
    with _server(home) as child:
        session = created_session(child, range(1, 2))
        start_up = time.perf_counter() - begin
        calls = range(10, 10 + 5_000 // less)
        infos = len(calls) / child.exchange(_task_info(session), calls).seconds
        checks = range(1_000_000, 1_000_000 + 10_000 // less)
        validations = len(checks) / child.exchange(validate(session), checks).seconds
        created = _creations_per_second(child, "code", less)
        return WithSessions(sessions, start_up * 1e3, infos, validations, created, child.memory_mb())


def _creations_per_second(child: Child, mode: str, less: int) -> float:
    """Of tasks that are durable when they are answered."""
    numbers = range(3_000_000, 3_000_000 + 2_000 // less)
    return len(numbers) / child.exchange(call("create_task", lambda _: {"mode_slug": mode}), numbers).seconds


def _with_answers(home: Path, size: int, less: int) -> WithAnswers:
    home.mkdir()
    with _server(home) as child:
        session = created_session(child, range(1, 2), message="x" * (size // 2))  # it is told twice
        calls = range(10, 10 + max(5, min(5_000, 100_000_000 // size) // less))
        rate = len(calls) / child.exchange(_task_info(session, include_messages=True), calls, answer_bytes=size).seconds
        return WithAnswers(size, rate, rate * size / 1e6, child.memory_mb())


def _task_info(session: str, *, include_messages: bool = False) -> Kind:
    asked = {"session_id": session, "include_messages": include_messages}
    return call("get_task_info", lambda _: asked)
