"""The load test's judgement: what a right server says is taken, and each wrong word breaks the promise it should."""

from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec
import pytest

from modes_actor.wire.versions import ALL_VERSIONS, Era, Version
from tests.conversation import Json
from tests.load_bench import Bench, answer, answers, created, error, lists, mixes, projects, stateless, tool, update
from tests.scripts import script

refusals, tasks = script("load_refusals"), script("load_tasks")
CASES = projects.CASES

ONCE, TYPED, OWN = answers.ONCE, answers.TYPED, answers.OWN
REFUSALS, NEWS, ALIVE = answers.REFUSALS, answers.NEWS, answers.ALIVE
OTHER = f"sess_{'f' * 32}"
Ask = Callable[[Any], object]
Answer = Callable[[Json], Json | bytes]


@pytest.mark.parametrize("version", ALL_VERSIONS, ids=lambda version: version.name)
def test_everything_that_a_client_can_ask_is_asked(version: Version) -> None:
    """All methods that the version has for servers, and all tools."""
    is_stateless = version.era is Era.STATELESS
    bench = Bench(is_stateless=is_stateless)
    bench.ask(lists.initialize)
    asked: set[str] = set()
    for number in range(3_000):
        bench.client.turn(bench.now, bench.now)
        for request in bench.asked:
            params = request["params"]
            asked.add(params.get("name", "") if request["method"] == "tools/call" else request["method"])
            if params.get("name") == "create_task" and params["arguments"].get("mode_slug") in projects.MODES:
                told = created(request, f"sess_{number:0>32}")
                bench.say({**told, "result": stateless(told["result"])} if is_stateless else told)
        bench.pipe.pending.clear()
        for work in [work for work in bench.client.works if work.is_changing]:
            bench.client.lose(work)  # nobody answers, and it would be left alone
    to_clients = {"roots/list", "sampling/createMessage", "elicitation/create"}
    assert version.methods - to_clients - {"tools/call"} | set(projects.TOOLS) <= asked
    assert bench.findings.details == []


# What has the same answer every time.


def test_a_right_answer_breaks_nothing() -> None:
    """And leaves nothing open."""
    bench = Bench()
    assert bench.say(answer(bench.ask(lists.sound), {})) == {}
    request = bench.ask(lists.initialize)
    version = request["params"]["protocolVersion"]
    opening = {"protocolVersion": version, "capabilities": {}, "serverInfo": {"name": "a", "version": "1"}}
    assert (bench.say(answer(request, opening)), bench.asked) == ({}, [])


WRONG: dict[str, tuple[Ask, Answer, str]] = {
    "an id that nobody used": (lists.sound, lambda request: answer({"id": 5}, {}), ONCE),
    "an id of another type": (lists.sound, lambda request: answer({"id": str(request["id"])}, {}), ONCE),
    "no id": (lists.sound, lambda request: {"jsonrpc": "2.0", "id": None, "result": {}}, ONCE),
    "result and error": (
        lists.sound,
        lambda request: {**answer(request, {}), "error": {"code": 1, "message": "?"}},
        TYPED,
    ),
    "neither result nor error": (lists.sound, lambda request: {"jsonrpc": "2.0", "id": request["id"]}, TYPED),
    "a result of the other era": (lists.sound, lambda request: answer(request, stateless({})), TYPED),
    "no object": (lists.sound, lambda request: answer(request, []), TYPED),
    "an error that nobody provoked": (lists.sound, lambda request: error(request, -32603, "Internal error"), REFUSALS),
    "no JSON": (lists.sound, lambda request: b"Hello!", ALIVE),
    "no message": (lists.sound, lambda request: {"id": request["id"], "result": {}}, ALIVE),
    "a request": (lists.sound, lambda request: {"jsonrpc": "2.0", "id": 1, "method": "roots/list"}, NEWS),
    "news that nobody wanted": (lists.sound, lambda request: update(OTHER), NEWS),
    "a changed list": (
        lists.sound,
        lambda request: {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"},
        NEWS,
    ),
    "modes that are not there": (lists.list_modes, lambda request: answer(request, tool({"modes": []})), TYPED),
    "what is no list of modes": (lists.list_modes, lambda request: answer(request, tool({})), TYPED),
    "a tool's failure as a result": (
        lists.list_modes,
        lambda request: answer(
            request,
            tool({"error": {"code": -32001, "name": "ModeNotFound", "message": "Mode not found"}}, isError=True),
        ),
        TYPED,
    ),
    "another resource": (
        lists.read_mode,
        lambda request: answer(request, {"contents": [{"uri": "mode://other", "text": "{}"}]}),
        OWN,
    ),
    "two resources": (
        lists.read_mode,
        lambda request: answer(request, {"contents": [{"uri": request["params"]["uri"]}] * 2}),
        TYPED,
    ),
    "a prompt without the task": (
        lists.prompt,
        lambda request: answer(request, {"messages": [{"role": "user", "content": {"type": "text", "text": "Hi"}}]}),
        OWN,
    ),
    "a completion of something else": (
        lists.complete_slug,
        lambda request: answer(request, {"completion": {"values": ["other"]}}),
        OWN,
    ),
    "a task in another mode": (mixes.create_task, lambda request: created(request, OTHER, mode_slug="other"), OWN),
    "`metadata` of another task": (
        mixes.create_task,
        lambda request: answer(request, {**created(request, OTHER)["result"], "metadata": {"session_id": "?"}}),
        TYPED,
    ),
    "somebody's session in a list": (
        lists.complete_slug,
        lambda request: answer(request, {"completion": {"values": [OTHER]}}),
        OWN,
    ),
}


@pytest.mark.parametrize(("ask", "wrong", "promise"), WRONG.values(), ids=WRONG)
def test_a_wrong_answer_breaks_its_promise(ask: Ask, wrong: Answer, promise: str) -> None:
    """That one, and no other."""
    bench = Bench()
    request = bench.ask(ask)
    assert bench.say(wrong(request)) == {promise: 1}


def test_a_second_answer_is_found() -> None:
    """Even if it is the same one."""
    bench = Bench()
    request = bench.ask(lists.sound)
    assert bench.say(answer(request, {}), answer(request, {})) == {ONCE: 1}


def test_a_missing_answer_is_found() -> None:
    """When the server has gone; the details have the request."""
    bench = Bench()
    bench.ask(lists.sound)
    bench.pipe.judge_rest()
    assert dict(bench.findings.counts) == {ONCE: 1}
    assert '"method":"ping"' in bench.findings.details[0].request


def test_an_answer_that_nobody_would_wait_for_is_found() -> None:
    """While the run goes on, and once only."""
    bench = Bench()
    bench.ask(lists.sound)
    for seconds in (0.5, 1.5, 2.5):
        bench.pipe.judge_overdue(bench.now + seconds)
    assert dict(bench.findings.counts) == {ONCE: 1}


def test_a_stateless_result_says_what_it_is() -> None:
    """Without `resultType` and the server's name it is none; a list says how long it may be kept."""
    bench = Bench(is_stateless=True)
    whole = stateless({"supportedVersions": ["2026-07-28"], "capabilities": {}}, ttlMs=1, cacheScope="private")
    for missing in ("resultType", "_meta", "ttlMs", "cacheScope"):
        bench.say(answer(bench.ask(lists.discover), {key: value for key, value in whole.items() if key != missing}))
    assert bench.say(answer(bench.ask(lists.discover), whole)) == {TYPED: 4}


# Refusals.


def test_a_due_refusal_is_taken_in_both_eras() -> None:
    """As an error, and as a result of a tool that says so."""
    bench = Bench()
    assert bench.say(error(bench.ask(refusals._unknown_mode), -32001, "Mode not found: no-such-mode")) == {}
    bench = Bench(is_stateless=True)
    told = {"error": {"code": -32001, "name": "ModeNotFound", "message": "Mode not found: no-such-mode"}}
    result = stateless(tool(told), isError=True)
    assert bench.say(answer(bench.ask(refusals._unknown_mode), result)) == {}


@pytest.mark.parametrize(
    ("code", "message"), [(-32002, "Mode not found"), (-32001, "Oops"), (-32603, "Internal error"), (-32602, "Invalid")]
)
def test_a_refusal_with_the_wrong_code_or_words_is_found(code: int, message: str) -> None:
    """Both have to be right."""
    bench = Bench()
    assert bench.say(error(bench.ask(refusals._unknown_mode), code, message)) == {REFUSALS: 1}


def test_a_refusal_that_does_not_come_is_found() -> None:
    """A server that makes a task in a mode that is not there."""
    bench = Bench()
    request = bench.ask(refusals._unknown_mode)
    assert bench.say(created(request, OTHER)) == {REFUSALS: 1}


def test_being_busy_is_counted_and_breaks_nothing_by_itself() -> None:
    """The same request may be sent again."""
    bench = Bench()
    request = bench.ask(mixes.create_task)
    busy = error(request, -32603, "The store is busy")
    busy["error"]["data"] = {"retryable": True}
    assert (bench.say(busy), bench.known.busy) == ({}, 1)


@pytest.mark.parametrize(("idle", "expected"), [(59.0, {REFUSALS: 1}), (61.0, {})])
def test_a_session_expires_when_it_was_not_used_and_not_before(idle: float, expected: dict[str, int]) -> None:
    """By when it was surely used last."""
    bench = Bench()
    bench.give_task()
    bench.now += idle
    request = bench.ask(mixes.get_task_info)
    assert bench.say(error(request, -32003, "Session expired: it is over")) == expected


# Tasks.


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        ({}, {}),
        ({"session_id": OTHER}, {OWN: 1}),
        ({"mode_slug": "other"}, {OWN: 1}),
        ({"state": "completed"}, {OWN: 1}),
        ({"mode_history": []}, {OWN: 1}),
        ({"parent_session_id": OTHER}, {OWN: 1}),
        ({"completed_at": "now"}, {OWN: 1}),
        ({"messages": None}, {OWN: 1}),
        ({"messages": []}, {OWN: 1}),
        ({"hierarchy": []}, {OWN: 1}),
    ],
)
def test_a_task_shows_what_was_done_to_it(other: Json, expected: dict[str, int]) -> None:
    """Whatever is shown otherwise is somebody else's, or was lost."""
    bench = Bench()
    session_id = bench.give_task()
    task = bench.client.works[0].tasks[0]
    node = {"session_id": session_id, "task_id": task.task_id, "mode_slug": task.mode, "state": "active"}
    told = {
        **node,
        "created_at": "then",
        "last_activity": "now",
        "mode_history": [{"mode": task.mode, "timestamp": "then"}],
        "messages": [{"role": "user", "content": task.messages[0][1], "timestamp": "then"}],
        "hierarchy": [{**node, "depth": 0}],
        **other,
    }
    request = bench.ask(mixes.read_task)
    contents = {"uri": request["params"]["uri"], "text": msgspec.json.encode(told).decode()}
    assert bench.say(answer(request, {"contents": [contents]})) == expected


def test_a_session_that_somebody_has_is_not_given_out_again() -> None:
    """Not to another client, either."""
    bench = Bench()
    bench.give_task()
    bench.give_task(bench.another(1), session="1")
    assert dict(bench.findings.counts) == {OWN: 1}


@pytest.mark.parametrize(
    ("mode", "allowed", "expected"), [("ask", False, {}), ("code", True, {OWN: 1}), ("ask", True, {OWN: 1})]
)
def test_a_decision_is_made_in_the_mode_that_was_switched_to_last(
    mode: str, allowed: bool, expected: dict[str, int]
) -> None:
    """What is asked after a switch must not be decided in the mode before it, and what is allowed there is known."""
    bench = Bench()
    session_id = bench.give_task()
    work = bench.client.works[0]
    task = work.tasks[0]
    task.modes = [("code", None), ("ask", None)]
    execute = next(case for case in CASES if case.tool == "execute_command")
    check = partial(mixes._check_validation, bench.client, task, 1, execute, False)
    request = bench.ask(lambda client: client.call("validate_tool_use", {}, check, work, task))
    told = {"allowed": allowed, "tool_name": "execute_command", "mode": mode, "allowed_in": ["code", "debug"]}
    result = tool(told, f"Session: {session_id}\n", metadata={"allowed": allowed, "mode": mode})
    assert bench.say(answer(request, result)) == expected


# Cancelling.


@pytest.mark.parametrize(("is_late", "expected"), [(False, {}), (True, {ONCE: 1})])
def test_a_cancelled_request_may_be_answered_before_the_next_and_not_after(
    is_late: bool, expected: dict[str, int]
) -> None:
    """What came before the cancellation is right; what comes after a later answer is one too many."""
    bench = Bench()
    abandoned = bench.ask(lambda client: client.call("list_modes", {}, lambda message: None))
    bench.ask(lambda client: mixes._cancel(client, abandoned["id"]))
    replies = [answer(abandoned, {}), answer(bench.asked[-1], {})]
    assert bench.say(*(reversed(replies) if is_late else replies)) == expected


# Hearing of changes.


def test_a_subscriber_hears_of_its_task_and_of_no_other() -> None:
    """And when it has unsubscribed, of nothing."""
    bench = Bench()
    session_id = bench.give_task()
    assert bench.say(answer(bench.ask(mixes.follow), {}), update(session_id)) == {}
    bench.say(update(OTHER))
    bench.say(answer(bench.ask(mixes.follow), {}), update(session_id))
    assert dict(bench.findings.counts) == {NEWS: 2}


def test_a_stream_is_acknowledged_first_and_once() -> None:
    """It carries its own id and only what it was opened for."""
    bench = Bench(is_stateless=True)
    work = bench.client.begin(tasks.Task(OTHER, "task_1", "code", "Work", None, bench.now))
    stream = bench.ask(mixes.follow)["id"]
    acknowledged = {
        "jsonrpc": "2.0",
        "method": "notifications/subscriptions/acknowledged",
        "params": {
            "notifications": {"resourceSubscriptions": [f"task://{OTHER}"]},
            "_meta": {"io.modelcontextprotocol/subscriptionId": stream},
        },
    }
    assert bench.say(update(OTHER, stream)) == {NEWS: 1}
    assert bench.say(acknowledged, update(OTHER, stream)) == {NEWS: 1}
    assert work.subscription.is_acknowledged
    bench.say(acknowledged, update(OTHER), update(f"sess_{'e' * 32}", stream), answer({"id": stream}, stateless({})))
    assert dict(bench.findings.counts) == {NEWS: 5}


async def test_a_change_that_a_subscriber_is_not_told_is_found(autojump_clock: object) -> None:
    """At the end, after some patience."""
    bench = Bench()
    bench.give_task()
    bench.say(answer(bench.ask(mixes.follow), {}))
    bench.client.works[0].changes(bench.client.works[0].tasks[0])
    bench.client.works[0].is_changing = False
    await bench.pipe.settle()
    assert dict(bench.findings.counts) == {NEWS: 1}


def test_a_stream_that_ends_with_an_error_is_found() -> None:
    """Whatever the error is, when the server leaves: its end is a result."""
    bench = Bench(is_stateless=True)
    bench.client.begin(tasks.Task(OTHER, "task_1", "code", "Work", None, bench.now))
    stream = bench.ask(mixes.follow)
    bench.pipe._is_leaving = True
    assert bench.say(error(stream, -32603, "Internal error")) == {NEWS: 1}
