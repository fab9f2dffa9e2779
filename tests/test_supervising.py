"""The supervisor's hours: pings, restarts, what is held and what is refused, on a clock that jumps. No process here."""

import itertools
import signal

import pytest
import trio
import trio.testing
from trio.testing import MockClock

from modes_actor.supervising import CannotStart, Supervisor, Timing
from tests.conversation import Json
from tests.process import answer, lines, ping, request
from tests.supervised import CHANGED, STATELESS, FakeServer, error_of, scene, silent, silent_to, usual_answer


async def test_a_healthy_server_is_pinged_and_left_alone(autojump_clock: MockClock) -> None:
    """Every 30 seconds, and the client sees nothing of it."""
    async with scene() as here:
        await here.open()
        await trio.sleep(100)
        assert here.place.server.methods() == ["initialize", "notifications/initialized", "ping", "ping", "ping"]
        assert here.told() == [("starting", 0), ("healthy", 0)]
        assert (await here.rest(), here.code) == ([], 0)


async def test_before_the_client_has_said_anything_nothing_is_asked(autojump_clock: MockClock) -> None:
    """A server need not answer anything before its handshake; its status is kept fresh all the same."""
    async with scene() as here:
        await trio.sleep(1000)
        assert (here.place.server.received, here.told()) == ([], [("starting", 0)])
        assert here.statuses[-1].good_until > 1000


@pytest.mark.parametrize("opening", [("initialize", {"protocolVersion": "2025-11-25"}), ("tools/list", STATELESS)])
async def test_a_server_that_does_not_answer_its_first_request_is_pinged_and_replaced_in_the_end(
    autojump_clock: MockClock, opening: tuple[str, Json]
) -> None:
    """It may be downloading what it needs, so it gets as long as any other; who waits is told to ask again."""
    async with scene() as here:
        here.place.serving = silent
        await here.send(request(1, *opening))
        await trio.sleep(94)
        assert len(here.place.servers) == 1
        here.place.serving = None
        await trio.sleep(2)
        assert error_of(await here.receive()) == (1, -32603, True)
        assert len(here.place.servers) == 2
        assert "result" in await here.ask(2, *opening)


@pytest.mark.parametrize(
    ("opening", "question"),
    [(("initialize", {"protocolVersion": "2025-11-25"}), "ping"), (("tools/list", STATELESS), "server/discover")],
)
async def test_a_server_that_is_silent_is_asked_what_its_era_has(
    autojump_clock: MockClock, opening: tuple[str, Json], question: str
) -> None:
    """Before its first answer, too."""
    async with scene() as here:
        here.place.serving = silent
        await here.send(request(1, *opening))
        await trio.sleep(31)
        assert here.place.server.methods() == [opening[0], question]
        here.place.serving = None


async def test_a_server_whose_client_waits_for_nothing_yet_is_asked_nothing(autojump_clock: MockClock) -> None:
    """What comes before the first request (a note, or what is no message) opens no conversation."""
    async with scene() as here:
        here.place.serving = silent
        await here.send(CHANGED, request(1, "what is this"))
        await trio.sleep(10_000)
        assert [message["method"] for message in here.place.server.received] == [CHANGED["method"], "what is this"]


async def test_where_there_is_no_ping_the_server_is_asked_what_it_offers(autojump_clock: MockClock) -> None:
    """In the stateless era, as a request of that era has to be."""
    async with scene() as here:
        await here.ask(1, "tools/list", STATELESS)
        await trio.sleep(31)
        asked = here.place.server.received[-1]
        assert asked["method"] == "server/discover"
        assert asked["params"]["_meta"].keys() == {
            "io.modelcontextprotocol/protocolVersion",
            "io.modelcontextprotocol/clientCapabilities",
            "io.modelcontextprotocol/clientInfo",
        }


async def test_a_server_that_refuses_pings_is_alive(autojump_clock: MockClock) -> None:
    """Somebody has to be there to refuse."""

    def refuses(server: FakeServer, message: Json) -> Json | None:
        if message.get("method") == "ping":
            error = {"code": -32601, "message": "Method not found"}
            return {"jsonrpc": "2.0", "id": message["id"], "error": error}
        return usual_answer(message)

    async with scene() as here:
        here.place.serving = refuses
        await here.open()
        await trio.sleep(1000)
        assert (len(here.place.servers), here.told()[-1]) == (1, ("healthy", 0))


async def test_a_server_that_answers_the_client_is_alive(autojump_clock: MockClock) -> None:
    """It may be too busy to come to the pings."""
    async with scene() as here:
        here.place.serving = silent_to("ping")
        await here.open()
        for number in range(100):
            assert await here.ask(number, "tools/list") == answer(number)
            await trio.sleep(4)
        assert len(here.place.servers) == 1


async def test_a_server_that_does_not_answer_pings_is_replaced(autojump_clock: MockClock) -> None:
    """After the third in a row, here; it is asked to end first."""
    async with scene() as here:
        here.place.serving = silent_to("ping")
        await here.open()
        await trio.sleep(94)
        assert len(here.place.servers) == 1
        await trio.sleep(2)
        first, second = here.place.servers
        assert (first.signals, round(second.started, 6)) == ([int(signal.SIGTERM)], 95.1)
        states = [("starting", 0), ("healthy", 0), ("failing", 1), ("failing", 2), ("restarting", 0), ("healthy", 0)]
        assert here.told() == states
        assert here.statuses[-1].restarts == 1


async def test_a_server_that_does_not_end_when_asked_is_killed(autojump_clock: MockClock) -> None:
    """After its grace; there are never two of them."""
    async with scene() as here:
        here.place.serving, here.place.is_stubborn = silent_to("ping"), True
        await here.open()
        await trio.sleep(105)
        first, second = here.place.servers
        assert (first.signals, round(second.started, 6)) == ([int(signal.SIGTERM), int(signal.SIGKILL)], 101.1)
        assert first.returncode == -signal.SIGKILL


async def test_what_a_server_says_while_it_is_asked_to_end_still_counts(autojump_clock: MockClock) -> None:
    """Work that was done is not answered by an error."""

    async def speak_late() -> None:
        await trio.sleep(97)
        await here.place.servers[0].say(answer("work"))
        here.place.servers[0].exit(0)

    async with scene() as here, trio.open_nursery() as nursery:
        here.place.serving, here.place.is_stubborn = silent_to("ping", "tools/call"), True
        await here.open()
        nursery.start_soon(speak_late)
        assert await here.ask("work", "tools/call") == answer("work")
        here.place.is_stubborn = False


async def test_what_was_under_way_is_answered_by_an_error_and_never_sent_again(autojump_clock: MockClock) -> None:
    """The client may look and decide; what it says next goes to the next server."""
    async with scene() as here:
        here.place.serving = silent_to("tools/call")
        await here.open()
        await here.send(request(1, "tools/call"), request(2, "tools/call"))
        await trio.testing.wait_all_tasks_blocked()
        here.place.server.exit(3)
        refusals = [await here.receive(), await here.receive()]
        assert list(map(error_of, refusals)) == [(1, -32603, True), (2, -32603, True)]
        assert refusals[0]["error"]["message"] == (
            "The server ended with exit code 3 before it answered, so nobody knows whether this was done. "
            "It is not sent to another one: look, and send it again if need be"
        )
        assert await here.receive() == CHANGED
        assert await here.ask(3, "tools/list") == answer(3)
        assert here.place.server.methods() == ["initialize", "notifications/initialized", "tools/list"]


async def test_a_stream_of_the_stateless_era_ends_with_its_server(autojump_clock: MockClock) -> None:
    """The client has to listen again, and is told so."""
    async with scene() as here:
        here.place.serving = silent_to("subscriptions/listen")
        await here.ask(1, "tools/list", STATELESS)
        await here.send(request("stream", "subscriptions/listen", STATELESS))
        await trio.testing.wait_all_tasks_blocked()
        here.place.server.exit(1)
        assert error_of(await here.receive()) == ("stream", -32603, True)
        assert await here.ask(2, "tools/list", STATELESS) == answer(2)


async def test_a_new_stateless_server_is_asked_at_once_whether_it_is_there(autojump_clock: MockClock) -> None:
    """An idle client would not show it, and whoever reads the status waits."""
    async with scene() as here:
        await here.ask(1, "tools/list", STATELESS)
        here.place.server.exit(1)
        await trio.sleep(1)
        assert here.place.server.methods() == ["server/discover"]
        assert here.told()[-1] == ("healthy", 0)


async def test_the_last_words_of_a_server_are_passed_on_but_no_torn_ones(autojump_clock: MockClock) -> None:
    """What was answered is answered; half an answer is none."""
    async with scene() as here:
        here.place.serving = silent_to("tools/call")
        await here.open()
        await here.send(request(1, "tools/call"), request(2, "tools/call"), request(3, "tools/call"))
        await trio.testing.wait_all_tasks_blocked()
        here.place.server.exit(-9, lines(answer(1), answer(2))[:-4])
        assert await here.receive() == answer(1)
        assert [error_of(await here.receive())[0] for _ in range(2)] == [2, 3]


async def test_a_last_line_that_is_whole_needs_no_line_end(autojump_clock: MockClock) -> None:
    """An object has an end of its own."""
    async with scene() as here:
        here.place.serving = silent_to("tools/call")
        await here.open()
        await here.send(request(1, "tools/call"))
        await trio.testing.wait_all_tasks_blocked()
        here.place.server.exit(-9, lines(answer(1))[:-1])
        assert await here.receive() == answer(1)


async def test_a_server_that_ends_again_and_again_is_started_ever_more_rarely(autojump_clock: MockClock) -> None:
    """From 100 ms to 10 s; the client is told each time it asks."""
    async with scene(Timing(hold=60)) as here:
        here.place.serving = lambda server, message: server.exit(1)
        started = list[float]()
        for number in range(12):
            assert error_of(await here.ask(number, "tools/list")) == (number, -32603, True)
            started.append(here.place.server.started)
        waits = [round(after - before, 6) for before, after in itertools.pairwise(started)]
        assert waits == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 10, 10, 10, 10]


async def test_after_a_while_of_health_the_waits_begin_again(autojump_clock: MockClock) -> None:
    """A ping that is answered after an interval says so; one right after the start does not."""
    async with scene() as here:
        await here.open()
        for _ in range(4):
            here.place.server.exit(1)
            assert await here.receive() == CHANGED
        before = trio.current_time()
        assert before == pytest.approx(0.1 + 0.2 + 0.4 + 0.8)
        await trio.sleep(40)
        here.place.server.exit(1)
        assert await here.receive() == CHANGED
        assert trio.current_time() == pytest.approx(before + 40 + 0.1)


async def test_what_the_client_says_between_two_servers_is_held_for_the_next(autojump_clock: MockClock) -> None:
    """A restart that takes a moment is not noticed."""
    async with scene() as here:
        await here.open()
        here.place.server.exit(1)
        await trio.testing.wait_all_tasks_blocked()
        await here.send(ping(1))
        assert [await here.receive(), await here.receive()] == [CHANGED, answer(1)]


async def test_what_the_client_says_is_refused_if_there_is_no_server_for_too_long(autojump_clock: MockClock) -> None:
    """It says that nothing was done; notifications are dropped, and what comes later is refused at once."""
    async with scene(Timing(backoff_first=8, hold=5)) as here:
        await here.open()
        here.place.server.exit(1)
        await trio.testing.wait_all_tasks_blocked()
        refused = await here.ask(1, "tools/list")
        assert error_of(refused) == (1, -32603, True)
        assert refused["error"]["message"] == (
            "The server ended with exit code 1: this was not done. Send it again later"
        )
        await here.send({"jsonrpc": "2.0", "method": "notifications/roots/list_changed"})
        assert trio.current_time() == pytest.approx(5)
        assert error_of(await here.ask(2, "tools/list")) == (2, -32603, True)
        assert trio.current_time() == pytest.approx(5)
        assert [await here.receive(), await here.ask(3, "tools/list")] == [CHANGED, answer(3)]
        assert here.place.server.methods() == ["initialize", "notifications/initialized", "tools/list"]


async def test_another_server_is_brought_to_where_the_last_one_was(autojump_clock: MockClock) -> None:
    """It hears the client's own words again, and the client hears that it had better look."""
    async with scene() as here:
        await here.open("2025-06-18")
        await here.ask(1, "logging/setLevel", {"level": "debug"})
        await here.ask(2, "resources/subscribe", {"uri": "mode://code"})
        here.place.server.exit(1)
        updated = {"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": "mode://code"}}
        assert [await here.receive(), await here.receive()] == [CHANGED, updated]
        await trio.testing.wait_all_tasks_blocked()
        first, second = (
            [(each["method"], each.get("params")) for each in server.received] for server in here.place.servers
        )
        assert second == first
        assert (await here.rest(), here.code) == ([], 0)


async def test_a_server_that_does_not_open_again_is_replaced(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    """Whether it refuses or says nothing; meanwhile the client is told that there is none."""

    def serve(server: FakeServer, message: Json) -> Json | None:
        if server.number == 2:
            return None
        if server.number == 3:
            return {"jsonrpc": "2.0", "id": message.get("id"), "error": {"code": -32603, "message": "no"}}
        return usual_answer(message)

    async with scene() as here:
        here.place.serving = serve
        await here.open()
        here.place.server.exit(1)
        await trio.sleep(10)
        assert error_of(await here.ask(1, "ping")) == (1, -32603, True)
        assert await here.receive() == CHANGED
        assert [server.started for server in here.place.servers] == [0, *map(pytest.approx, [0.1, 15.3, 15.7])]
        assert "initialize is not answered" in caplog.text
        assert "initialize is refused" in caplog.text


async def test_a_server_that_is_another_than_the_last_is_told_of(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    """The client cannot be told, so whoever reads the log is."""

    def serve(server: FakeServer, message: Json) -> Json | None:
        said = usual_answer(message)
        if said and server.number == 2 and message["method"] == "initialize":
            said["result"] |= {"capabilities": {}}
        return said

    async with scene() as here:
        here.place.serving = serve
        await here.open()
        here.place.server.exit(1)
        assert await here.receive() == CHANGED
        assert "the new server is not what the client was told: it has other capabilities" in caplog.text


async def test_a_server_that_cannot_be_started_again_is_tried_again(autojump_clock: MockClock) -> None:
    """Its program is being replaced, perhaps."""
    async with scene() as here:
        await here.open()
        here.place.cannot_start = True
        here.place.server.exit(1)
        await trio.sleep(6)
        refused = await here.ask(1, "ping")
        assert refused["error"]["message"] == "The server cannot be started: this was not done. Send it again later"
        here.place.cannot_start = False
        assert [await here.receive(), await here.ask(2, "ping")] == [CHANGED, answer(2)]


async def test_a_server_that_cannot_be_started_at_all_is_an_error(autojump_clock: MockClock) -> None:
    """Nobody would want that to be tried forever."""

    async def start() -> FakeServer:
        raise CannotStart("nothing")

    to_supervisor, receive = trio.testing.memory_stream_one_way_pair()
    send, _ = trio.testing.memory_stream_one_way_pair()
    with pytest.raises(CannotStart):
        await Supervisor(start).run(receive, send)
    with pytest.raises(trio.BrokenResourceError):
        await to_supervisor.send_all(b"hello?")
