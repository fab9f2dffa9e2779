"""Promises of the house that concern no room more than another; tests/REQUIREMENTS.md has all of them."""

import json
import sqlite3
from collections.abc import Iterable
from pathlib import Path

import pytest
import trio
import trio.testing

from modes_actor.actor.limits import Limits
from modes_actor.actor.subscriptions import Event
from modes_actor.cli import log_file
from modes_actor.config import Config
from modes_actor.modes import decisions
from modes_actor.server import Server
from modes_actor.sessions import tables
from modes_actor.store.backends import FileBackend
from modes_actor.surface import roots
from modes_actor.surface.house import House
from modes_actor.wire.versions import V2025_11_25, V2026_07_28, Version
from tests.conversation import Json, talking
from tests.modes_house import Place, working
from tests.process import Process, answer, handshake, lines, messages_in, ping, request
from tests.sample_offer import sample_offer

A_DAY = 24 * 3600.0
PILE = 2 * Limits().in_flight + 1


class Written(trio.abc.SendStream):
    """Keeps what is written, write by write."""

    def __init__(self) -> None:
        self.writes: list[bytes] = []

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        await trio.lowlevel.checkpoint()
        self.writes.append(bytes(data))

    async def wait_send_all_might_not_block(self) -> None:
        await trio.lowlevel.checkpoint()

    async def aclose(self) -> None:
        await trio.lowlevel.checkpoint()


class WrittenWhole(Written):
    """As a pipe does: a little is taken at once."""

    def write_whole(self, data: bytearray) -> bool:
        self.writes.append(bytes(data))
        return True


@pytest.mark.parametrize("stream", [Written, WrittenWhole])
async def test_what_came_in_one_read_is_answered_in_one_write(stream: type[Written]) -> None:
    """Nothing hops from task to task message by message."""
    to_server, received = trio.testing.memory_stream_one_way_pair()
    written = stream()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(Server(sample_offer()).serve, received, written)
        await to_server.send_all(lines(*(ping(number) for number in range(500))))
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    assert [write.count(b"\n") for write in written.writes] == [500]


async def test_a_frame_is_whole_even_if_the_server_is_cancelled() -> None:
    """A program that serves over its own streams may cancel at any moment; half a line would say nothing."""
    to_server, received = trio.testing.memory_stream_one_way_pair()
    server_sends, from_server = trio.testing.lockstep_stream_one_way_pair()
    long_id = "x" * 200_000
    async with trio.open_nursery() as nursery:
        nursery.start_soon(Server(sample_offer()).serve, received, server_sends)
        await to_server.send_all(lines(ping(long_id)))
        begun = await from_server.receive_some(10)
        nursery.cancel_scope.cancel()
        with trio.CancelScope(shield=True):
            rest = b"".join([chunk async for chunk in from_server])
    assert messages_in(bytes(begun) + rest) == [answer(long_id)]


async def test_a_client_that_reads_nothing_is_waited_for_while_serving(autojump_clock: trio.testing.MockClock) -> None:
    """A day later it gets every answer, and the next one: only the end has a deadline."""
    async with talking(sample_offer(), version=None, client_must_read=True) as client:
        await client.send(*(client.compose("ping", id=number) for number in range(100)))
        await trio.sleep(A_DAY)
        assert [(await client.receive())["id"] for _ in range(100)] == list(range(100))
        assert await client.result("ping") == {}


async def test_more_tasks_than_may_be_in_flight_are_all_created(tmp_path: Path) -> None:
    """Sent in one go, on a disk: the bounds make them wait, and refuse none."""
    async with working(Place(tmp_path, persistent=True)) as client:
        talk = client.conversation
        call = {"name": "create_task", "arguments": {"mode_slug": "code"}}
        await talk.send(*(talk.compose("tools/call", call, id=number) for number in range(PILE)))
        answers = [await talk.receive() for _ in range(PILE)]
    assert sorted(answer["id"] for answer in answers) == list(range(PILE))
    assert len({answer["result"]["structuredContent"]["session_id"] for answer in answers}) == PILE


def test_the_bounds_are_the_promised_ones() -> None:
    """Of lines, answers, requests, questions and streams; of the end, of a pattern, and of the log."""
    mebibyte = 1024 * 1024
    assert Limits() == Limits(
        line_bytes=16 * mebibyte,
        queued_bytes=8 * mebibyte,
        queued_batches=4,
        in_flight=1024,
        client_requests=64,
        listeners=64,
        drain_seconds=5.0,
    )
    assert (Config().limits.max_line_bytes, roots.WAITING) == (16 * mebibyte, 64)
    assert decisions.PATTERN_SECONDS == 0.05
    assert (mebibyte, 3) == (log_file.LIMIT, log_file.KEPT)


@pytest.mark.parametrize("tool", ["get_task_info", "validate_tool_use", "switch_mode", "complete_task"])
@pytest.mark.parametrize("version", [V2025_11_25, V2026_07_28], ids=lambda version: version.name)
async def test_a_session_that_is_not_named_is_never_guessed(version: Version, tool: str, tmp_path: Path) -> None:
    """Though there is one, made a moment ago by the same client."""
    arguments: dict[str, Json] = {
        "get_task_info": {},
        "validate_tool_use": {"tool_name": "read_file"},
        "switch_mode": {"new_mode_slug": "ask"},
        "complete_task": {"status": "completed"},
    }
    async with working(tmp_path, version=version) as client:
        await client.create()
        error = await client.refusal(tool, **arguments[tool])
    assert (error["code"], "`session_id` is missing" in error["message"]) == (-32004, True)


async def test_a_use_is_written_after_a_tenth_of_the_timeout(
    tmp_path: Path, autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If no commit came by before: other processes take a session for expired by what is written."""
    place = Place(tmp_path)
    place.config.sessions.timeout = 600
    written: list[tuple[float, dict[str, float]]] = []
    touch = tables.touch

    def noted(connection: sqlite3.Connection, touched: Iterable[tuple[str, float]]) -> None:
        known = dict(touched)
        if known:
            written.append((trio.current_time(), known))
        touch(connection, known.items())

    monkeypatch.setattr(tables, "touch", noted)
    house = House(place.config, working_directory=place.project, home=place.home, now=place.clock)
    send, _ = trio.open_memory_channel[Event](100)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(house.run, send)
        session_id = (await house.sessions.create("code", None, None)).session_id
        await trio.sleep(1)
        place.clock.advance(1)
        house.sessions.get(session_id)
        used = trio.current_time()
        await trio.sleep(599)
        nursery.cancel_scope.cancel()
    [(when, uses)] = written
    assert uses == {session_id: place.clock.now}
    assert when - used <= 60


async def test_the_store_is_told_how_long_the_end_may_take(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process that keeps the file does not keep a server from ending within its five seconds."""
    told: list[float] = []
    monkeypatch.setattr(FileBackend, "end_within", lambda self, seconds: told.append(seconds))
    async with working(Place(tmp_path, persistent=True)) as client:
        await client.create()
        await client.conversation.end_input()
        await client.conversation.ended.wait()
    assert told == [5.0]


def test_a_configured_server_is_read_and_not_started(tmp_path: Path) -> None:
    """Its entry counts for decisions; its command is not run, whatever is asked."""
    started = tmp_path / "started"
    entry = {"command": "/bin/sh", "args": ["-c", f"touch {started}"]}
    servers = {"near": entry, "far": {**entry, "defaultEnabled": False}}
    (tmp_path / ".roo").mkdir()
    (tmp_path / ".roo" / "mcp.json").write_text(json.dumps({"mcpServers": servers}), encoding="utf-8")
    environment = {"ROO_PROJECT_ROOT": str(tmp_path), "ROO_CONFIG_DIR": str(tmp_path), "ROO_PERSISTENCE": "false"}
    with Process(environment=environment) as process:
        process.send(handshake(), _call(1, "create_task", mode_slug="code"))
        process.receive()
        session_id = process.receive()["result"]["structuredContent"]["session_id"]
        uses = [
            _call(server, "validate_tool_use", session_id=session_id, tool_name=f"mcp__{server}__get")
            for server in servers
        ]
        ended = process.finish_input(*uses, _call(2, "list_modes"))
    allowed = {message["id"]: message["result"]["structuredContent"].get("allowed") for message in ended.messages}
    assert allowed == {"near": True, "far": False, 2: None}
    assert not started.exists()


def _call(request_id: int | str, name: str, **arguments: str) -> Json:
    return request(request_id, "tools/call", {"name": name, "arguments": arguments})
