"""Every contender measured in turn, round by round, so that a busy machine is busy for all of them."""

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Annotated, Any, Final, get_type_hints

import msgspec
from bench_contenders import Contender
from bench_tools import PING, TOOLS_LIST, BenchError, Child, Kind, call, decode_answers
from msgspec import UNSET, Struct

LIST_MODES: Final = call("list_modes")


class Metric(Struct, frozen=True):
    """How a measurement is called, and which of several rounds counts."""

    label: str
    choose: Callable[[Sequence[float]], float]
    form: str = "{:,.0f}"


class Measured(Struct, frozen=True):
    """One contender, in one round or in all of them. NaN (in JSON: null) where there was nothing to measure."""

    start_up_ms: Annotated[float, Metric("process start to first answer, ms", min)]
    p50_microseconds: Annotated[float, Metric("one ping at a time, p50, µs", median)]
    p99_microseconds: Annotated[float, Metric("one ping at a time, p99, µs", median)]
    pings: Annotated[float, Metric("ping per second, pipelined", max)]
    ping_cpu_microseconds: Annotated[float, Metric("CPU per ping, µs", min, "{:,.1f}")]
    tools_lists: Annotated[float, Metric("tools/list per second, pipelined", max)]
    list_modes: Annotated[float, Metric("list_modes per second, pipelined", max)]
    list_modes_cpu_microseconds: Annotated[float, Metric("CPU per list_modes, µs", min, "{:,.1f}")]
    validations: Annotated[float, Metric("validate_tool_use per second, pipelined", max)]
    created: Annotated[float, Metric("create_task per second, pipelined, durable", max)]
    idle_mb: Annotated[float, Metric("memory when idle, MB", max, "{:,.1f}")]
    loaded_mb: Annotated[float, Metric("memory after all that, MB", max, "{:,.1f}")]


METRICS: Final[Mapping[str, Metric]] = {
    name: hint.__metadata__[0] for name, hint in get_type_hints(Measured, include_extras=True).items()
}


def measure(contender: Contender, home: Path, *, is_ours: bool, less: int) -> Measured:
    """One session: handshake, warm-up, single pings, then everything pipelined."""
    found: dict[str, float] = dict.fromkeys(METRICS, math.nan)
    count, numbers = contender.requests, _Numbers()
    with contender.start(home) as child:
        found["start_up_ms"] = child.handshake() * 1e3
        found["idle_mb"] = child.memory_mb()
        child.exchange(PING, numbers.next(200 // less))
        times = child.exchange_singly(PING, numbers.next(max(50, min(3_000, count) // less)))
        found["p50_microseconds"] = times[len(times) // 2] * 1e6
        found["p99_microseconds"] = times[len(times) * 99 // 100] * 1e6
        found["pings"], found["ping_cpu_microseconds"] = _rate(child, PING, numbers.next(count))
        if contender.has_tools:
            found["tools_lists"], _ = _rate(child, TOOLS_LIST, numbers.next(max(10, count // 4)))
            rate = _rate(child, LIST_MODES, numbers.next(max(10, count // 2)))
            found["list_modes"], found["list_modes_cpu_microseconds"] = rate
        if is_ours:
            session = created_session(child, numbers.next(1))
            found["validations"], _ = _rate(child, validate(session), numbers.next(20_000 // less))
            found["created"], _ = _rate(child, call("create_task", _code), numbers.next(10_000 // less))
        found["loaded_mb"] = child.memory_mb()
        child.finish()
    return Measured(**found)


def combine(rounds: Sequence[Measured]) -> Measured:
    """Of each measurement the round that counts. What was not measured stays so."""

    def chosen(name: str, metric: Metric) -> float:
        known = [value for each in rounds if not math.isnan(value := getattr(each, name))]
        return metric.choose(known) if known else math.nan

    return Measured(**{name: chosen(name, metric) for name, metric in METRICS.items()})


def validate(session: str, file: str = "docs/plan-{}.md") -> Kind:
    """An edit of a different file each time, by a mode that may edit some."""

    def arguments(number: int) -> Mapping[str, Any]:
        return {"session_id": session, "tool_name": "write_to_file", "file_path": file.format(number % 1_000)}

    return call("validate_tool_use", arguments)


def created_session(child: Child, numbers: range, mode: str = "architect", message: str | None = None) -> str:
    """The session of a new task."""
    arguments = {"mode_slug": mode} | ({} if message is None else {"initial_message": message})
    child.write(call("create_task", lambda _: arguments).lines(numbers))
    (answer,) = decode_answers(child.read_lines(1))
    if answer.result is UNSET:
        raise BenchError("no task could be created")
    session: str = msgspec.json.decode(answer.result)["structuredContent"]["session_id"]
    return session


def _rate(child: Child, kind: Kind, numbers: range) -> tuple[float, float]:
    """Requests per second, and what each takes of the server's CPU in microseconds, after some that warm it up."""
    warm_up = max(1, len(numbers) // 20)
    answer_bytes = child.exchange(kind, numbers[:warm_up]).answer_bytes
    numbers = numbers[warm_up:]
    before = child.cpu_seconds()
    took = child.exchange(kind, numbers, answer_bytes=answer_bytes).seconds
    return len(numbers) / took, (child.cpu_seconds() - before) / len(numbers) * 1e6


def _code(number: int) -> Mapping[str, Any]:
    return {"mode_slug": "code"}


class _Numbers:
    """Request ids that no request had before."""

    def __init__(self) -> None:
        self._next = 1

    def next(self, count: int) -> range:
        self._next += count
        return range(self._next - count, self._next)
