"""The load test runs and finds nothing wrong; it finds what is wrong with bad servers; and its figures are right."""

import math
import os
import re
import shlex
import sys
from functools import partial
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import msgspec
import pytest
import trio
import trio.testing
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.load_bench import Bench, answer, answers, histograms, lists
from tests.scripts import run_script, script

paces, resources, reports = script("load_pace"), script("load_resources"), script("load_report")
profiles = script("load_profile")

posix_only = pytest.mark.skipif(sys.platform == "win32", reason="bad servers are made of descriptors and signals")
REPEATABLE = settings(derandomize=True, database=None, deadline=None, max_examples=100)

BAD_SERVER = """
import os
from modes_actor.actor.outgoing import Outgoing
from modes_actor.cli import main
from modes_actor.surface.house import House
from modes_actor.wire.jsonrpc import ErrorObject, ErrorResponse, Notification, Response

post, session, posted, sessions = Outgoing.post, House.session, [], []

def post_badly(self, message):
    posted.append(message)
    turn = len(posted)
    if turn % 10 == 3 and type(message) is Response:
        message = Response(message.id, {"nonsense": True})
    if turn % 10 == 6 and type(message) is Response:
        message = ErrorResponse(message.id, ErrorObject(-32603, "Internal error"))
    post(self, message)
    if turn % 10 == 0:
        post(self, message)
        self.post_encoded(b"stray output")
        post(self, Notification("notifications/resources/updated", {"uri": "task://sess_" + "0" * 32}))

def confuse(self, session_id, context):
    sessions.append(session(self, session_id, context))
    return sessions[0]

Outgoing.post, House.session = post_badly, confuse
main([])
os.write(2, b"good bye")
os._exit(3)
"""
"""Says things twice, and what nobody asked for; answers nonsense; takes all sessions for one; ends badly."""


def broken(report: Any) -> set[str]:
    return {verdict["promise"] for verdict in report["verdicts"] if verdict["kept"] is False}


@posix_only
def test_clients_of_both_eras_share_servers_and_each_gets_its_own_answers(tmp_path: Path) -> None:
    """Nothing is broken, all kinds of requests were answered, and the chart can be read."""
    chart = tmp_path / "chart.svg"
    words = (
        "--clients",
        "12",
        "--servers",
        "2",
        "--think",
        "0",
        "--duration",
        "1.5",
        "--soak",
        "--seed",
        "7",
        "--json",
    )
    ran = run_script("load.py", *words, "--svg", str(chart), home=tmp_path)
    assert ran.code == 0, (ran.out, ran.err)
    report = ran.json()
    asked = {row["method"]: row["answers"] for row in report["methods"]}
    assert (broken(report), report["broken"]) == (set(), [])
    assert {"validate_tool_use", "create_task", "switch_mode", "refusals"} <= asked.keys()
    assert asked["(start-up)"] == 2
    assert asked["all"] == sum(asked.values()) - asked["all"] - 2
    assert all(sample["tasks"] >= 2 * 5 for sample in report["samples"])
    leaks = [verdict["promise"] for verdict in report["verdicts"] if "second half" in verdict["promise"]]
    assert len(leaks) == 4
    ElementTree.parse(chart)


@posix_only
def test_an_open_loop_asks_at_its_times(tmp_path: Path) -> None:
    """As many requests as the rate comes to, whether they could be sent in time or not."""
    words = ("--clients", "40", "--servers", "one", "--rate", "200", "--duration", "1", "--seed", "7", "--json")
    ran = run_script("load.py", *words, "--era", "handshake", home=tmp_path)
    assert ran.code == 0, (ran.out, ran.err)
    report = ran.json()
    # An arrival may be one request, or one with a second one and its cancellation, beside the handshake's two lines.
    assert report["sent"] + report["not_sent"] >= 200
    assert (report["loop"], broken(report)) == ("open, 200 requests/s", set())
    assert [each["found"] for each in report["verdicts"] if "takes what is sent" in each["promise"]] == [
        f"{report['not_sent']} of {report['sent'] + report['not_sent']}"
    ]


@posix_only
def test_a_profile_tells_where_the_servers_time_went(tmp_path: Path) -> None:
    """Of all servers together, the function that took most itself first."""
    words = ("--clients", "4", "--servers", "2", "--think", "0", "--duration", "1", "--seed", "7", "--profile")
    ran = run_script("load.py", *words, "--json", home=tmp_path)
    assert ran.code == 0, (ran.out, ran.err)
    report = ran.json()
    spent = {each["function"]: each for each in report["spent"]}
    served = next(each for name, each in spent.items() if name.startswith("modes_actor/actor/processor.py:"))
    assert served["whole_ms"] >= served["own_ms"] > 0
    made = [each for name, each in spent.items() if re.fullmatch(r"modes_actor/server\.py:\d+ __init__", name)]
    assert [each["calls"] for each in made] == [2]
    own = [each["own_ms"] for each in report["spent"]]
    assert own == sorted(own, reverse=True)


def test_the_table_of_a_profile_shows_shares_of_all_that_was_spent() -> None:
    """So that what a profile itself takes does not matter."""
    spent = [profiles.Spent("serve", 2, 75.0, 100.0), profiles.Spent("decode", 1000, 25.0, 25.0)]
    assert list(profiles.spent_section(spent).rows) == [
        ("serve", "75.0%", "100.0%", "2"),
        ("decode", "25.0%", "25.0%", "1,000"),
    ]


def test_only_the_server_of_this_tree_can_be_profiled(tmp_path: Path) -> None:
    """It is told before anything is started."""
    ran = run_script("load.py", "--profile", "--server", "cat", home=tmp_path)
    assert (ran.code, ran.out) == (2, "")
    assert "--profile looks into the server of this tree" in ran.err


@posix_only
def test_a_bad_server_is_found_out(tmp_path: Path) -> None:
    """Every promise that it breaks is named, and the details have what was asked and what came."""
    server = shlex.join([sys.executable, "-c", BAD_SERVER])
    words = ("--clients", "8", "--servers", "one", "--duration", "1.5", "--seed", "7", "--json", "--server", server)
    ran = run_script("load.py", *words, home=tmp_path)
    assert ran.code == 1, (ran.out, ran.err)
    report = ran.json()
    assert set(answers.PROMISES) <= broken(report)
    details = [each for each in report["broken"] if each["client"] is not None]
    assert all(each["request"] and each["answer"] for each in details)
    assert details
    assert report["servers_said"] == "good bye"


def test_a_server_that_cannot_be_started_is_no_verdict(tmp_path: Path) -> None:
    """The exit code is 2, with one line that says so."""
    ran = run_script("load.py", "--server", "/no/such/server", "--duration", "1", home=tmp_path)
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert "could not be started" in ran.err


# Percentiles.


@REPEATABLE
@given(
    st.lists(st.floats(min_value=1e-6, max_value=1e4), min_size=1, max_size=200),
    st.sampled_from([0.1, 50.0, 90.0, 99.0, 100.0]),
)
def test_percentiles_are_within_one_part_in_128(durations: list[float], percent: float) -> None:
    """Of the value that has this share of all at or below it."""
    histogram = histograms.Histogram()
    for duration in durations:
        histogram.record(duration)
    exact = sorted(durations)[math.ceil(len(durations) * percent / 100) - 1]
    assert exact <= histogram.percentile(percent) <= exact * (1 + 1 / 128) + 1e-15


@REPEATABLE
@given(st.lists(st.lists(st.floats(min_value=0, max_value=1e4), max_size=50), max_size=5))
def test_merging_loses_nothing(parts: list[list[float]]) -> None:
    """What was counted in parts is as if it had been counted at once."""
    whole, pieces = histograms.Histogram(), []
    for part in parts:
        piece = histograms.Histogram()
        pieces.append(piece)
        for duration in part:
            whole.record(duration)
            piece.record(duration)
    assert histograms.merged(pieces) == whole


def test_there_is_no_percentile_of_nothing() -> None:
    """NaN, which charts leave out."""
    assert math.isnan(histograms.Histogram().percentile(50))


# Leaks.


@pytest.mark.skipif(not resources.HAS_PROC, reason="there is no /proc here")
def test_what_processes_take_is_summed_up(tmp_path: Path) -> None:
    """Of those that are there; a descriptor more is seen."""
    before = resources.usage_of(os.getpid(), tmp_path)
    with (tmp_path / "file").open("w"):
        after = resources.summed([resources.usage_of(pid, tmp_path) for pid in (os.getpid(), os.getpid(), 2**31 - 1)])
    assert after.descriptors == 2 * (before.descriptors + 1)
    assert after.threads == 2 * before.threads
    assert min(before.rss_kb, before.cpu_seconds) > 0


def test_of_no_process_nothing_is_known(tmp_path: Path) -> None:
    """NaN, not nothing."""
    assert math.isnan(resources.summed([resources.usage_of(2**31 - 1, tmp_path)]).rss_kb)


def samples(seconds: float, rss_mb: Any, descriptors: Any = lambda at: 15.0, tasks: Any = lambda at: 9.0) -> list[Any]:
    """A hundred samples of a run of eight servers, of which seven are as they should be."""
    times = [seconds * (number + 1) / 100 for number in range(100)]
    return [
        resources.Sample(
            at=at,
            answers_per_second=1.0,
            p50_ms=1.0,
            p99_ms=1.0,
            rss_mb=0.0,
            servers_cpu=0.1,
            own_cpu=0.1,
            descriptors=0.0,
            threads=0.0,
            tasks=0.0,
            servers=[
                *[resources.Usage(40_000.0, 1.0, 15.0, 2.0, 9.0)] * 5,
                resources.Usage(rss_mb(at) * 1024, 1.0, descriptors(at), 2.0, tasks(at)),
                *[resources.Usage(rss_mb(0.0) * 1024, 1.0, 15.0, 2.0, tasks(0.0))] * 2,
            ],
        )
        for at in times
    ]


@pytest.mark.parametrize(
    ("seconds", "rss_mb", "expected"),
    [
        (7200.0, lambda at: 40.0, True),
        (7200.0, lambda at: min(80.0, 40.0 + at / 10), True),
        (7200.0, lambda at: 500.0 if at == 5040.0 else 40.0, True),
        (7200.0, lambda at: 40.0 + at / 360, False),
        (7200.0, lambda at: 40.0 + at / 1800, True),
        (60.0, lambda at: 40.0 + at / 10, None),
        (60.0, lambda at: 40.0 + at * 2, False),
    ],
    ids=["flat", "warm-up", "a peak", "10 MB an hour", "2 MB an hour", "too short", "short and steep"],
)
def test_memory_is_judged_by_the_trend_of_the_second_half(seconds: float, rss_mb: Any, expected: bool | None) -> None:
    """Of each server, however many others are as they should be. Warm-up and peaks do not count; a short run only if
    there is no doubt."""
    found = resources.leak_verdicts(samples(seconds, rss_mb), limit_kb_per_hour=4096)
    assert found[0].kept is expected


@pytest.mark.parametrize(("what", "row"), [("descriptors", 1), ("tasks", 3)])
@pytest.mark.parametrize(
    ("seconds", "numbers", "expected"),
    [
        (7200.0, lambda at: 15.0, True),
        (7200.0, lambda at: 15.0 + at // 30 % 2, True),
        (7200.0, lambda at: 15.0 + at / 600, False),
        (10.0, lambda at: 15.0 + at, None),
        (10.0, lambda at: 15.0 + at * 20, False),
    ],
    ids=["as they were", "up and down", "more and more", "too short", "short and steep"],
)
def test_descriptors_and_tasks_must_not_grow(
    seconds: float, numbers: Any, expected: bool | None, what: str, row: int
) -> None:
    """By one for each server, over the second half; in a short run, by many."""
    found = resources.leak_verdicts(samples(seconds, lambda at: 40.0, **{what: numbers}), limit_kb_per_hour=4096)
    assert found[row].kept is expected
    assert [verdict.kept for verdict in found[1:] if verdict is not found[row]] == [True, True]


def test_what_nobody_counts_is_not_judged() -> None:
    """Another server does not tell how many tasks it has; without /proc, nothing is known."""
    usages = [resources.Usage(40_000.0, 1.0, 15.0, 2.0, math.nan)]
    untold = [msgspec.structs.replace(sample, servers=usages) for sample in samples(7200.0, lambda at: 40.0)]
    unknown = [msgspec.structs.replace(sample, servers=[resources.UNKNOWN]) for sample in untold]
    for found, expected in ((untold, [True, True, True, None]), (unknown, [None] * 4)):
        assert [verdict.kept for verdict in resources.leak_verdicts(found, limit_kb_per_hour=4096)] == expected


def test_tasks_are_counted_as_they_begin_and_end(tmp_path: Path) -> None:
    """As many as Trio itself says there are."""
    counted = script("load_server")
    differences = []

    async def compare() -> None:
        await trio.testing.wait_all_tasks_blocked()
        living = trio.lowlevel.current_statistics().tasks_living
        differences.append(counted.tasks_of(7, tmp_path) - living)

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            await compare()
            for _ in range(3):
                nursery.start_soon(trio.sleep_forever)
            await compare()
            nursery.cancel_scope.cancel()
        await compare()

    trio.run(main, instruments=[counted.TaskCount(tmp_path / "7")])
    assert (differences, counted.tasks_of(7, tmp_path)) == ([0, 0, 0], 0)
    assert math.isnan(counted.tasks_of(8, tmp_path))


def test_a_run_without_samples_is_not_judged() -> None:
    """It is neither kept nor broken."""
    assert [verdict.kept for verdict in resources.leak_verdicts([], limit_kb_per_hour=1)] == [None] * 4


# Pace.


class Client:
    number = 1


def test_the_open_loop_counts_from_the_time_at_which_a_request_was_due() -> None:
    """However late its sender comes; what is left at the end is counted, too."""
    pace = paces.OpenLoop([Client()], begin=10.0, rate=4.0)
    assert [due for due, _ in pace.due(10.6)] == [10.0, 10.25, 10.5]
    assert (pace.next_due(), pace.overdue(12.0)) == (10.75, 6)


async def test_what_was_due_before_the_end_is_asked_after_it(autojump_clock: trio.testing.MockClock) -> None:
    """A server that was stuck to the end is not the better for it; nobody else begins to ask then."""
    bench = Bench()
    stuck = trio.Event()
    sent: list[float] = []

    async def flush() -> None:
        if not sent:
            await stuck.wait()
        sent.append(trio.current_time())
        bench.pipe._outbox.clear()
        for request in bench.asked:
            bench.say(answer(request, {}))

    bench.pipe._flush = flush
    bench.client._deck = [lists.sound] * 100
    begin = trio.current_time()
    pace = paces.OpenLoop([bench.client], begin=begin, rate=1.0)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(partial(bench.pipe.drive, pace, until=begin + 5))
        await trio.sleep(5.5)
        stuck.set()
    assert pace.overdue(begin + 5) == 0
    assert bench.measured.answers.by_kind["ping"].total == 6  # at 0, 1, 2, 3, 4 and 5
    assert bench.measured.lateness.largest == pytest.approx(4.5)


def test_the_closed_loop_waits_for_the_answer() -> None:
    """A client has its next turn when its last one was answered."""
    client = Client()
    pace = paces.ClosedLoop([client], begin=10.0, think=0.0, seed=1)
    first = [due for due, _ in pace.due(11.0)]
    unanswered = list(pace.due(12.0))
    pace.answered(client, 13.0)
    assert (first, unanswered, [due for due, _ in pace.due(13.0)]) == ([11.0], [], [13.0])


@pytest.mark.parametrize(
    ("own_cpu", "servers_cpu", "behind", "expected"),
    [
        (0.95, 0.5, True, "the generator: it took 95% of a core, the servers could do more"),
        (0.8, 1.1, True, "the machine: generator and servers together took 1.9 of 2 cores"),
        (0.2, 0.5, True, "the servers: they did not keep up"),
        (0.2, 0.5, False, "the rate that was asked for"),
    ],
)
def test_it_is_said_when_the_generator_is_the_limit(
    own_cpu: float, servers_cpu: float, behind: bool, expected: str
) -> None:
    """Else its own slowness would be taken for the servers'."""
    found = reports.limit_of(
        own_cpu=own_cpu, servers_cpu=servers_cpu, cores=2, behind=behind, is_open=True, thinks=False
    )
    assert found == expected


def test_a_promise_that_nothing_was_held_against_is_not_kept() -> None:
    """A check that checked nothing says nothing good."""
    examined = {promise: reports.Examined(0, "answers") for promise in answers.PROMISES}
    examined[answers.TYPED] = reports.Examined(1_000, "answers")
    found = reports.promise_verdicts({answers.ONCE: 1}, examined)
    assert [verdict.kept for verdict in found] == [False, True, *[None] * 4]
    assert found[1].found == "1,000 answers"


@pytest.mark.parametrize(
    ("not_sent", "own_cpu", "kept"), [(0, 0.1, True), (10, 0.1, True), (11, 0.1, False), (11, 0.95, None)]
)
def test_a_server_must_take_what_is_sent_at_the_rate(not_sent: int, own_cpu: float, kept: bool | None) -> None:
    """Else what waited longest would be missing in the latencies; unless it was the generator that could do no more."""
    assert reports.sent_verdict(not_sent, 1_000, own_cpu).kept is kept


def test_too_many_busy_answers_break_a_promise() -> None:
    """One of a thousand may be sent again."""
    assert [reports.busy_verdict(busy, 1000).kept for busy in (0, 1, 2)] == [True, True, False]
