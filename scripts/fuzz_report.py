"""What came of a run: figures, verdicts, tables."""

from collections import Counter
from typing import Final

from fuzz_files import CONFIG, FILE_PROMISES, NEVER_MORE, NO_RAISE, PLACES
from fuzz_judge import LIVENESS, LOG, PERMISSIONS, PROMISES, SCHEMA, outcome_name
from fuzz_schemas import schema_check
from fuzz_worker import Tally, What
from msgspec import Struct
from reporting import Section, Verdict

RATE: Final = 1_000_000
"""Messages a minute."""
RATE_PROMISE: Final = "a million messages a minute"


class Failure(Struct, frozen=True):
    what: What
    promise: str
    found: str
    case: str


class Report(Struct, frozen=True, kw_only=True):
    seed: int
    processes: int
    messages: int
    distinct: int
    """Messages that differ in more than their ids."""
    servers: int
    seconds: float
    messages_per_minute: float
    files: dict[str, int]
    slowest_file_seconds: float
    kinds: dict[str, int]
    answers: dict[str, int]
    coverage: dict[str, list[str]]
    """Of each method and version: what came of it."""
    failures: list[Failure]
    verdicts: list[Verdict]


def summed(tallies: dict[What, list[Tally]], *, seed: int, processes: int, is_rated: bool) -> Report:
    messages = tallies.get("messages", [])
    kinds: Counter[str] = Counter()
    answers: Counter[str] = Counter()
    coverage: dict[str, set[str]] = {}
    for tally in messages:
        kinds.update(tally.kinds)
        for method, version, outcome, count in tally.outcomes:
            answers[outcome_name(outcome)] += count
            if version != "-":
                coverage.setdefault(f"{method} {version}", set()).add(outcome_name(outcome))
    failures = [
        Failure(each.broken.what, each.broken.expected, each.broken.found, each.saved or "")
        for those in tallies.values()
        for each in those
        if each.broken is not None
    ]
    seconds = max((tally.seconds for tally in messages), default=0.0)
    count = sum(tally.count for tally in messages)
    rate = count / seconds * 60 if seconds else 0.0
    files = [tally for what in ("modes", "config") for tally in tallies.get(what, ())]
    return Report(
        seed=seed,
        processes=processes,
        messages=count,
        distinct=sum(tally.distinct for tally in messages),
        servers=sum(tally.episodes for tally in messages),
        seconds=seconds,
        messages_per_minute=rate,
        files={what: sum(tally.count for tally in those) for what, those in tallies.items() if what != "messages"},
        slowest_file_seconds=max((tally.slowest for tally in files), default=0.0),
        kinds=dict(kinds.most_common()),
        answers=dict(answers.most_common()),
        coverage={name: sorted(found) for name, found in sorted(coverage.items())},
        failures=failures,
        verdicts=verdicts_of(tallies, failures, rate if is_rated and "messages" in tallies else None),
    )


def verdicts_of(tallies: dict[What, list[Tally]], failures: list[Failure], rate: float | None) -> list[Verdict]:
    """A promise is broken by a failure, and kept if something was held against it; else it is undecided.

    A run that ended early proves nothing of the others.
    """
    held = sum((Counter(tally.held) for those in tallies.values() for tally in those), Counter[str]())
    broken = {failure.promise: failure.found for failure in failures}
    promises = [*(PROMISES if "messages" in tallies else ()), *_file_promises(tallies)]
    verdicts = []
    for promise in promises:
        if promise in broken:
            verdicts.append(Verdict(promise, broken[promise], kept=False))
        elif broken:
            verdicts.append(Verdict(promise, "the run ended before", kept=None))
        elif promise == SCHEMA and schema_check() is None:
            verdicts.append(Verdict(promise, "no schemas in ../shared/mcp-schema, or no jsonschema-rs", kept=None))
        elif held[promise]:
            verdicts.append(Verdict(promise, f"{held[promise]:,} {_HELD[promise]}", kept=True))
        else:
            verdicts.append(Verdict(promise, f"no {_HELD[promise]} to hold against it", kept=None))
    if rate is not None and not broken:
        verdicts.append(Verdict(RATE_PROMISE, f"{rate:,.0f}", kept=rate >= RATE))
    return verdicts


_HELD: Final = {
    **dict.fromkeys(PROMISES, "answers"),
    PERMISSIONS: "uses of tools",
    LIVENESS: "servers",
    LOG: "servers",
    NO_RAISE: "files",
    PLACES: "problems",
    NEVER_MORE: "modes",
    CONFIG: "files",
}
"""What is held against each promise."""


def _file_promises(tallies: dict[What, list[Tally]]) -> list[str]:
    modes, config = FILE_PROMISES[:3], FILE_PROMISES[3:]
    return [*(modes if "modes" in tallies else ()), *(config if "config" in tallies else ())]


def sections_of(report: Report) -> list[Section]:
    messages = [
        ("messages", f"{report.messages:,}"),
        ("that differ in more than their ids", f"{report.distinct:,}"),
        ("messages a minute", f"{report.messages_per_minute:,.0f}"),
        ("servers, one after another", f"{report.servers:,}"),
    ]
    figures = [
        ("seed", f"{report.seed}"),
        ("processes at once", f"{report.processes}"),
        *(messages if report.messages else ()),
        *((f"files of {what}", f"{count:,}") for what, count in report.files.items()),
        *([("slowest file, s", f"{report.slowest_file_seconds:.2f}")] if report.files else []),
    ]
    sections = [Section(("run", ""), figures)]
    if report.kinds:
        sections.append(Section(("sent", "messages"), [(kind, f"{n:,}") for kind, n in report.kinds.items()]))
        sections.append(Section(("answered with", "answers"), [(kind, f"{n:,}") for kind, n in report.answers.items()]))
        rows = [(*name.rsplit(" ", 1), ", ".join(found)) for name, found in report.coverage.items()]
        sections.append(Section(("method", "version", "what came of it"), rows, left=3))
    if report.failures:
        rows = [(each.what, each.promise, each.case) for each in report.failures]
        sections.append(Section(("failed", "promise", "--replay this"), rows, left=3))
    return sections
