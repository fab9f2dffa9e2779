"""The probe: what it reports of a server that answers, of one that does not, and that it leaves nothing behind."""

import os
import select
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
import trio
import trio.testing

from modes_actor.health import Identity, Report, Step, StepName, examine, probe
from modes_actor.server import Server
from modes_actor.wire.versions import V2025_11_25, V2026_07_28
from tests.conversation import Json
from tests.process import PATIENCE, program
from tests.sample_offer import sample_offer

posix_only = pytest.mark.skipif(sys.platform == "win32", reason="signals, groups and FIFOs as POSIX has them")

SCRIPTED = Identity("scripted", "1", V2025_11_25.name)
ANSWERS: dict[str, Json] = {
    "initialize": {
        "protocolVersion": V2025_11_25.name,
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "scripted", "version": "1"},
    },
    "ping": {},
    "tools/list": {"tools": [{"name": "one", "inputSchema": {"type": "object"}}]},
}

ANSWERING = f"""
import json, os, signal, subprocess, sys

def answer_all(answers={ANSWERS!r}):
    for line in sys.stdin:
        request = json.loads(line)
        if "id" not in request:
            continue
        if request["method"] in answers:
            said = {{"result": answers[request["method"]]}}
        else:
            said = {{"error": {{"code": -32601, "message": "Method not found"}}}}
        print(json.dumps({{"jsonrpc": "2.0", "id": request["id"], **said}}), flush=True)

"""
"""A server that answers as above until its input ends, and then does what a test adds."""


def steps(*taken: tuple[StepName, str | None, str | None]) -> list[tuple[StepName, str | None, str | None]]:
    return list(taken)


def without_times(report: Report) -> list[tuple[StepName, str | None, str | None]]:
    return [(step.name, step.method, step.error) for step in report.steps]


async def examined(delays: dict[str, float], answers: dict[str, Json] = ANSWERS) -> Report:
    """The report on a server that takes so many seconds for a method, and does not answer what is not in `answers`."""
    to_server, server_receives = trio.testing.memory_stream_one_way_pair()
    server_sends, from_server = trio.testing.memory_stream_one_way_pair()

    async def serve() -> None:
        received = b""
        async with server_sends:
            async for chunk in server_receives:
                received += chunk
                *lines, received = received.split(b"\n")
                for request in map(msgspec.json.decode, lines):
                    method = request["method"]
                    if "id" in request and method in answers:
                        await trio.sleep(delays.get(method, 0))
                        answer = {"jsonrpc": "2.0", "id": request["id"], "result": answers[method]}
                        await server_sends.send_all(msgspec.json.encode(answer) + b"\n")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve)
        return await examine(from_server, to_server, step_timeout=5)


def method_left_out(method: str) -> dict[str, Json]:
    return {name: answer for name, answer in ANSWERS.items() if name != method}


async def test_each_step_is_reported_with_its_time(autojump_clock: trio.testing.MockClock) -> None:
    """In the order in which they were taken; every step has the whole time limit to itself."""
    expected = Report(
        era="handshake",
        healthy=True,
        steps=(Step("open", "initialize", 4.0), Step("ping", "ping", 3.0), Step("tools", "tools/list", 2.0)),
        server=SCRIPTED,
        tools=1,
    )
    assert await examined({"initialize": 4, "ping": 3, "tools/list": 2}) == expected


@pytest.mark.parametrize(
    ("silent", "failed", "server"),
    [
        ("initialize", Step("open", "initialize", 5.0, "initialize was not answered within 5 s"), None),
        ("ping", Step("ping", "ping", 5.0, "ping was not answered within 5 s"), SCRIPTED),
        ("tools/list", Step("tools", "tools/list", 5.0, "tools/list was not answered within 5 s"), SCRIPTED),
    ],
)
async def test_the_step_that_is_not_answered_in_time_is_the_last(
    silent: str, failed: Step, server: Identity | None, autojump_clock: trio.testing.MockClock
) -> None:
    """And is the one to blame."""
    report = await examined({}, method_left_out(silent))
    assert (report.healthy, report.steps[-1], report.server, report.tools) == (False, failed, server, None)


async def test_a_server_without_tools_is_not_asked_for_them() -> None:
    """It would be right to refuse."""
    modest = {**ANSWERS, "initialize": {**ANSWERS["initialize"], "capabilities": {}}}
    report = await examined({}, modest)
    assert (report.healthy, without_times(report), report.tools) == (
        True,
        steps(("open", "initialize", None), ("ping", "ping", None)),
        None,
    )


async def test_an_answer_that_makes_no_sense_is_not_healthy() -> None:
    """The protocol promises a list."""
    report = await examined({}, {**ANSWERS, "tools/list": {"tools": 5}})
    assert (report.healthy, report.steps[-1].error) == (
        False,
        "the server's answer to tools/list makes no sense: Expected `array`, got `int` - at `$.tools`",
    )


async def test_the_stateless_era_is_asked_who_it_is_instead_of_pinged() -> None:
    """It has no ping."""
    to_server, server_receives = trio.testing.memory_stream_one_way_pair()
    server_sends, from_server = trio.testing.memory_stream_one_way_pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(Server(sample_offer()).serve, server_receives, server_sends)
        report = await examine(from_server, to_server, era="stateless")
    assert without_times(report) == steps(
        ("open", "server/discover", None), ("ping", "server/discover", None), ("tools", "tools/list", None)
    )
    assert (report.healthy, report.server and report.server.protocol_version) == (True, V2026_07_28.name)


# With a process.


async def probed(source: str, **options: Any) -> Report:
    with trio.fail_after(PATIENCE):
        return await probe(program(source), step_timeout=PATIENCE, grace=0.05, **options)


async def test_a_process_is_started_examined_and_ended() -> None:
    """All four steps."""
    report = await probed(f"{ANSWERING}answer_all()")
    assert without_times(report) == steps(
        ("start", None, None), ("open", "initialize", None), ("ping", "ping", None), ("tools", "tools/list", None)
    )
    assert (report.healthy, report.server, report.tools) == (True, SCRIPTED, 1)


async def test_a_command_that_is_not_there_fails_to_start(tmp_path: Path) -> None:
    """The reason is the system's."""
    report = await probe([str(tmp_path / "nothing")])
    assert (report.healthy, without_times(report)) == (
        False,
        steps(("start", None, f"cannot be started: No such file or directory: {tmp_path / 'nothing'}")),
    )


async def test_the_last_words_of_a_server_that_fails_are_kept() -> None:
    """Not all of them: it may have talked for hours."""
    report = await probed("import sys\nfor n in range(5000): print('line', n, file=sys.stderr)\nsys.exit(3)")
    assert report.steps[-1].error == "the server ended with exit code 3 before initialize was answered"
    assert report.stderr == tuple(f"line {n}" for n in range(4980, 5000))


async def test_what_a_healthy_server_says_on_stderr_is_its_own_affair() -> None:
    """Its log is no trouble."""
    report = await probed(f"{ANSWERING}print('a log', file=sys.stderr, flush=True)\nanswer_all()")
    assert (report.healthy, report.stderr) == (True, ())


@pytest.mark.parametrize("refusal", ["answer_all()", "sys.stdin.readline(); sys.exit(1)"], ids=["error", "end"])
async def test_a_server_that_cannot_be_discovered_is_initialized(refusal: str, tmp_path: Path) -> None:
    """Whether it refuses `server/discover` with an error or takes its leave."""
    first = f"if not os.path.exists('tried'): open('tried', 'w').close(); {refusal}"
    report = await probed(
        f"{ANSWERING}{first}\nelse: answer_all()", era="stateless", falls_back=True, working_directory=tmp_path
    )
    assert (report.healthy, report.era, report.fell_back, report.server) == (True, "handshake", True, SCRIPTED)


async def test_without_leave_to_fall_back_a_refusal_is_a_failure() -> None:
    """Whoever asks for an era wants to know about that one."""
    report = await probed(f"{ANSWERING}answer_all()", era="stateless")
    assert (report.healthy, report.fell_back, report.steps[-1].error) == (
        False,
        False,
        "the server said no: Method not found",
    )


@pytest.fixture
def all_gone(tmp_path: Path) -> Callable[[], None]:
    """Returns once nobody holds the FIFO `alive` open for writing any more: whoever did, has ended."""
    os.mkfifo(tmp_path / "alive")
    reader = os.open(tmp_path / "alive", os.O_RDONLY | os.O_NONBLOCK)

    def wait() -> None:
        assert os.read(reader, 100) == b"here", "nobody was there at all"
        assert select.select([reader], [], [], PATIENCE)[0], "somebody is there still"
        assert os.read(reader, 100) == b""
        os.close(reader)

    return wait


HERE = "alive = os.open('alive', os.O_WRONLY); os.set_inheritable(alive, True); os.write(alive, b'here')\n"
STAYS = "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"


@posix_only
@pytest.mark.parametrize(
    "behaviour",
    [
        f"{STAYS}answer_all()\nwhile True: signal.pause()",
        "subprocess.Popen(['sleep', '1000'], close_fds=False, stdin=subprocess.DEVNULL)\nanswer_all()",
        f"{STAYS}subprocess.Popen(['sleep', '1000'], close_fds=False)\nsys.exit(1)",
    ],
    ids=["it stays", "its child stays", "its child holds its pipes"],
)
async def test_nothing_that_was_started_runs_on(behaviour: str, tmp_path: Path, all_gone: Callable[[], None]) -> None:
    """Neither a server that will not end, nor what it has started itself."""
    await probed(f"{ANSWERING}{HERE}{behaviour}", working_directory=tmp_path)
    await trio.to_thread.run_sync(all_gone)


@posix_only
async def test_a_cancelled_probe_leaves_nothing_behind(tmp_path: Path, all_gone: Callable[[], None]) -> None:
    """Whoever cancels it need not know what it had started."""
    os.mkfifo(tmp_path / "begun")
    begun = f"{ANSWERING}{STAYS}{HERE}open('begun', 'w').close()\nwhile True: signal.pause()"
    async with trio.open_nursery() as nursery:
        nursery.start_soon(partial(probed, begun, working_directory=tmp_path))
        await trio.to_thread.run_sync((tmp_path / "begun").read_bytes)
        nursery.cancel_scope.cancel()
    await trio.to_thread.run_sync(all_gone)


@posix_only
async def test_a_process_that_never_answers_is_ended_after_the_time_limit() -> None:
    """However long it would have gone on."""
    silent = f"{ANSWERING}{STAYS}while True: signal.pause()"
    report = await probe(program(silent), step_timeout=0.05, grace=0.05)
    assert (report.healthy, report.steps[-1].error) == (False, "initialize was not answered within 0.05 s")
