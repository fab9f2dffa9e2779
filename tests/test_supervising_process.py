"""The supervisor with real servers, which are killed, stopped, and end by themselves; the client is a pipe."""

import os
import signal
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from modes_actor.supervising import Status, read_status
from modes_actor.supervising.supervisor import SUSPENDED
from tests.conversation import Json
from tests.process import COMMAND, ROOT, Ended, Process, answer, handshake, ping, program, request
from tests.test_health import ANSWERING

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals and groups as POSIX has them")

SUPERVISE = (sys.executable, str(ROOT / "scripts" / "health.py"), "supervise")
INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}
QUICK = ("--interval", "0.3", "--timeout", "0.7", "--failures", "2", "--grace", "20")
"""Two failures take about two seconds; a healthy server is in time also on a busy machine."""
SLOW = ("--interval", "300", "--timeout", "300")
"""For tests in which a ping has nothing to say."""


class Supervised:
    """A client whose server is supervised, and the file with its status."""

    def __init__(self, process: Process, status: Path) -> None:
        self.process = process
        self._status = status

    @property
    def status(self) -> Status:
        return read_status(self._status)

    def open(self) -> None:
        self.process.send(handshake())
        assert self.process.receive()["id"] == "handshake"
        self.process.send(INITIALIZED)
        assert self.ask(ping("is it there?")) == answer("is it there?")

    def ask(self, message: Json) -> Any:
        """The answer, past whatever comes before it."""
        self.process.send(message)
        return self.await_answer(message["id"])

    def await_answer(self, request_id: int | str) -> Any:
        while (said := self.process.receive()).get("id") != request_id:
            assert "method" in said, said
        return said

    def finish(self) -> Ended:
        self.process.end_input()
        return self.process.finish()


@contextmanager
def supervised(directory: Path, *words: str, command: tuple[str, ...] = COMMAND) -> Iterator[Supervised]:
    status = directory / "status.json"
    environment = {"HOME": str(directory), "ROO_PROJECT_ROOT": str(directory)}
    with Process((*SUPERVISE, "--status", str(status), *words, "--", *command), environment=environment) as process:
        yield Supervised(process, status)


def create(number: int) -> Json:
    arguments = {"mode_slug": "code", "initial_message": f"request {number}"}
    return request(number, "tools/call", {"name": "create_task", "arguments": arguments})


def requests_in_store(directory: Path) -> list[str]:
    """The first message of each session there is."""
    with closing(sqlite3.connect(directory / ".roo-code" / "mcp_sessions" / "sessions.db")) as file:
        return [content for (content,) in file.execute("SELECT content FROM messages")]


@pytest.mark.parametrize("answers", [1, 100, 250])
def test_a_killed_server_loses_no_acknowledged_work_and_does_none_twice(tmp_path: Path, answers: int) -> None:
    """Each request is answered once; what was acknowledged is found through the same connection."""
    numbers = range(300)
    with supervised(tmp_path, *SLOW) as here:
        here.open()
        here.process.send(*map(create, numbers))
        said = [here.process.receive() for _ in range(answers)]
        os.kill(here.status.pid or 0, signal.SIGKILL)
        while len(said) < len(numbers):
            if "id" in (message := here.process.receive()):
                said.append(message)
        assert sorted(message["id"] for message in said) == list(numbers)
        acknowledged = {
            message["id"]: message["result"]["structuredContent"]["session_id"]
            for message in said
            if "result" in message
        }
        here.process.await_log("the server was ended by SIGKILL; another is started in 0.1 s")
        refused = [message["error"] for message in said if "error" in message]
        assert [(error["code"], error["data"]) for error in refused] == [(-32603, {"retryable": True})] * len(refused)
        for number, session_id in acknowledged.items():
            arguments = {"session_id": session_id, "include_messages": True}
            found = here.ask(request(f"find {number}", "tools/call", {"name": "get_task_info", "arguments": arguments}))
            assert found["result"]["structuredContent"]["messages"][0]["content"] == f"request {number}"
        assert here.status.restarts == 1
        assert (here.finish().code, len(acknowledged) >= answers) == (0, True)
    done = requests_in_store(tmp_path)
    assert len(done) == len(set(done))
    assert {f"request {number}" for number in acknowledged} <= set(done) <= {f"request {each}" for each in numbers}


def test_a_stopped_server_is_replaced_once_it_has_not_answered_often_enough(tmp_path: Path) -> None:
    """It gets the chance to finish what it has; the client stays where it is."""
    with supervised(tmp_path, *QUICK) as here:
        here.open()
        before = here.status.pid
        assert before is not None
        os.kill(before, signal.SIGSTOP)
        here.process.send(ping("while stopped"))
        here.process.await_log("the server did not answer 2 pings in a row and was ended; another is started in 0.1 s")
        assert here.await_answer("while stopped")["id"] == "while stopped"
        assert here.ask(ping("after"))["result"] == {}
        assert (here.status.restarts, here.status.pid != before) == (1, True)
        assert here.finish().code == 0


FLOODS = program(
    f"""{ANSWERING}
def answer_first(request, **result):
    print(json.dumps({{"jsonrpc": "2.0", "id": request["id"], "result": result}}), flush=True)

answer_first(json.loads(sys.stdin.readline()), protocolVersion="2025-11-25", capabilities={{}}, serverInfo={{}})
line = json.dumps({{"jsonrpc": "2.0", "method": "notifications/message", "params": {{"data": "x" * 2**20}}}})
for _ in range(20):
    print(line, flush=True)
answer_all()
"""
)


def test_a_client_that_does_not_read_is_not_taken_for_a_dead_server(tmp_path: Path) -> None:
    """For longer than failures would take; the status tells whoever asks, and afterwards all is there."""
    with supervised(tmp_path, *QUICK, "--log-level", "DEBUG", command=FLOODS) as here:
        here.process.send(handshake())
        for _ in range(6):
            here.process.await_log(SUSPENDED)
        assert (here.status.state, here.status.detail, here.status.restarts) == ("healthy", SUSPENDED, 0)
        ended = here.finish()
        assert (ended.code, len(ended.messages), "another is started" in ended.stderr) == (0, 21, False)


def test_a_server_that_ends_at_once_is_tried_ever_more_rarely(tmp_path: Path) -> None:
    """The client is told what happened, and the exit code at the end is the server's."""
    with supervised(tmp_path, command=program("raise SystemExit(3)")) as here:
        here.process.send(ping(1))
        for wait in ("0.1", "0.2", "0.4"):
            here.process.await_log(f"the server ended with exit code 3; another is started in {wait} s")
        said = here.process.receive()
        assert (said["id"], said["error"]["code"], said["error"]["data"]) == (1, -32603, {"retryable": True})
        ended = here.finish()
        assert (ended.code, ended.messages) == (3, [])


def test_the_end_of_the_input_ends_the_server_and_all_that_was_asked_is_answered(tmp_path: Path) -> None:
    """As it would without anybody in between."""
    with supervised(tmp_path) as here:
        ended = here.process.finish_input(handshake(), *(ping(number) for number in range(1000)))
        assert [message["id"] for message in ended.messages] == ["handshake", *range(1000)]
        assert (ended.code, ended.stderr, (tmp_path / "status.json").exists()) == (0, "", False)


def test_the_exit_code_is_the_servers(tmp_path: Path) -> None:
    """Whatever it means by it."""
    with supervised(tmp_path, command=program(f"{ANSWERING}answer_all(); sys.exit(7)")) as here:
        assert here.process.finish_input(handshake()).code == 7


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP], ids=lambda number: number.name)
def test_a_signal_ends_the_server_too(tmp_path: Path, number: signal.Signals) -> None:
    """Politely: the exit code is the one with which the server has ended."""
    with supervised(tmp_path) as here:
        here.open()
        server = here.status.pid
        assert server is not None
        here.process.signal(number)
        # Ours goes on ignoring the hang-up of a terminal that it does not have, and ends with its input.
        assert here.process.wait() in ({0, 128 + number} if number is signal.SIGHUP else {0})
        with pytest.raises(ProcessLookupError):
            os.kill(server, 0)


def test_a_second_signal_does_not_wait_for_the_server(tmp_path: Path) -> None:
    """One that does not listen is killed."""
    deaf = program(
        "import os, signal\n"
        "signal.signal(signal.SIGTERM, lambda *_: os.write(2, b'heard\\n'))\n"
        "os.write(2, b'ready\\n')\n"
        "while True: signal.pause()"
    )
    with supervised(tmp_path, "--grace", "300", command=deaf) as here:
        here.process.await_log("ready")
        here.process.signal(signal.SIGTERM)
        here.process.await_log("heard")
        here.process.signal(signal.SIGTERM)
        assert (here.process.wait(), (tmp_path / "status.json").exists()) == (128 + signal.SIGTERM, False)


REFUSES_PINGS = program(
    f"""{ANSWERING}
for line in sys.stdin:
    request = json.loads(line)
    if request["method"] == "initialize":
        said = {{"result": {{"protocolVersion": "2025-11-25", "capabilities": {{}}, "serverInfo": {{}}}}}}
    else:
        print("was asked to", request["method"], file=sys.stderr, flush=True)
        said = {{"error": {{"code": -32601, "message": "Method not found"}}}}
    print(json.dumps({{"jsonrpc": "2.0", "id": request["id"], **said}}), flush=True)
"""
)


def test_a_foreign_server_without_ping_is_healthy(tmp_path: Path) -> None:
    """It refuses to be pinged, so somebody is there; the client hears nothing of it."""
    with supervised(tmp_path, *QUICK, command=REFUSES_PINGS) as here:
        here.process.send(handshake())
        assert here.process.receive()["id"] == "handshake"
        for _ in range(5):
            here.process.await_log("was asked to ping")
        assert (here.status.state, here.status.restarts, here.status.failures) == ("healthy", 0, 0)
        ended = here.finish()
        assert (ended.code, ended.messages) == (0, [])


def test_what_a_killed_wrapper_has_started_does_not_live_on(tmp_path: Path) -> None:
    """Two servers would write to one store, and the first would hold the pipe."""
    locks = f"""{ANSWERING}
import fcntl
lock = open({str(tmp_path / "lock")!r}, "w")
fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
print("is alone", file=sys.stderr, flush=True)
answer_all()
"""
    wrapper = program(f"import subprocess; subprocess.run({program(locks)!r})")
    with supervised(tmp_path, *SLOW, command=wrapper) as here:
        here.process.send(handshake())
        assert here.process.receive()["id"] == "handshake"
        os.kill(here.status.pid or 0, signal.SIGKILL)
        here.process.await_log("was ended by SIGKILL")
        here.process.await_log("is alone")
        assert here.finish().code == 0
