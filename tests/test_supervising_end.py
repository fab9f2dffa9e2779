"""The supervisor: clients that do not read, and how it ends."""

import signal

import pytest
import trio
import trio.testing
from trio.testing import MockClock

from modes_actor.supervising import supervisor as module
from tests.conversation import Json
from tests.process import answer, lines, ping, request
from tests.supervised import (
    CAPABILITIES,
    CHANGED,
    TIMING,
    FakeServer,
    Scene,
    error_of,
    scene,
    silent,
    silent_to,
    usual_answer,
)

# A client that does not read.


async def test_a_client_that_does_not_read_does_not_make_its_server_look_dead(autojump_clock: MockClock) -> None:
    """What is kept for it has a bound, so answers to pings are not seen: none are sent, and the status says so."""
    async with scene(to_client=trio.testing.lockstep_stream_one_way_pair()) as here:
        here.place.serving = silent_to("ping")
        await here.open()
        much = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"data": "x" * 1_000_000}}
        await here.place.server.say(*[much] * 20)
        await trio.sleep(1000)
        assert (len(here.place.servers), "ping" in here.place.server.methods()) == (1, False)
        assert (here.statuses[-1].state, here.statuses[-1].detail) == ("healthy", module.SUSPENDED)
        assert here.statuses[-1].good_until > 1000
        assert [await here.receive() for _ in range(20)] == [much] * 20
        await trio.sleep(100)
        assert len(here.place.servers) == 2


async def test_what_a_server_said_before_it_ended_waits_for_a_client_that_does_not_read(
    autojump_clock: MockClock,
) -> None:
    """However long that takes; the next server is started when all of it is known."""
    async with scene(to_client=trio.testing.lockstep_stream_one_way_pair()) as here:
        here.place.serving = silent_to("tools/call")
        await here.open()
        await here.send(request(1, "tools/call"), request(2, "tools/call"))
        await trio.testing.wait_all_tasks_blocked()
        much = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"data": "x" * 1_000_000}}
        here.place.server.exit(-9, lines(*[much] * 20, answer(1)))
        await trio.sleep(1000)
        assert len(here.place.servers) == 1
        assert [await here.receive() for _ in range(21)] == [*[much] * 20, answer(1)]
        assert error_of(await here.receive()) == (2, -32603, True)
        assert await here.receive() == CHANGED


async def test_pings_get_through_while_the_client_does_not_read(autojump_clock: MockClock) -> None:
    """As long as there is room for what the server says: their answers are not for the client."""
    async with scene(to_client=trio.testing.lockstep_stream_one_way_pair()) as here:
        await here.open()
        await here.place.server.say(*[CHANGED] * 1000)
        await trio.sleep(95)
        assert (here.place.server.methods()[-3:], here.statuses[-1].detail) == (["ping"] * 3, None)
        assert [await here.receive() for _ in range(1000)] == [CHANGED] * 1000


# The end.


async def test_at_the_end_of_its_input_a_server_finishes_and_its_code_is_passed_on(autojump_clock: MockClock) -> None:
    """All that it still says is, too."""

    def serve(server: FakeServer, message: Json) -> Json | None:
        if message.get("method") == "tools/call":
            here.place.nursery.start_soon(finish, server, message["id"])
            return None
        return usual_answer(message)

    async def finish(server: FakeServer, request_id: int) -> None:
        await trio.sleep(5)
        await server.say(answer(request_id))
        server.exit(7)

    async with scene() as here:
        here.place.serving, here.place.is_stubborn = serve, True
        await here.open()
        await here.send(request(1, "tools/call"))
        assert (await here.rest(), here.code) == ([answer(1)], 7)
        assert (trio.current_time(), len(here.place.servers)) == (5, 1)


async def test_at_the_end_a_server_that_says_nothing_more_does_not_hold_it_up(autojump_clock: MockClock) -> None:
    """It is asked to end after its grace, and killed after another; what it owed is answered."""
    async with scene() as here:
        here.place.serving, here.place.is_stubborn = silent_to("tools/call"), True
        await here.open()
        await here.send(request(1, "tools/call"))
        (refused,) = await here.rest()
        assert (error_of(refused), here.code, trio.current_time()) == ((1, -32603, True), 128 + signal.SIGKILL, 12)


async def test_a_server_that_still_speaks_at_the_end_is_listened_to(autojump_clock: MockClock) -> None:
    """It is silence that is limited, not work."""

    async def speak(server: FakeServer) -> None:
        for number in range(20):
            await trio.sleep(4)
            await server.say(answer(number))
        server.exit(0)

    async with scene() as here:
        here.place.serving, here.place.is_stubborn = silent_to("tools/call"), True
        await here.open()
        await here.send(*(request(number, "tools/call") for number in range(20)))
        await trio.testing.wait_all_tasks_blocked()
        here.place.nursery.start_soon(speak, here.place.server)
        assert (await here.rest(), here.code) == ([answer(number) for number in range(20)], 0)


async def test_a_client_that_leaves_between_two_servers_is_answered_and_no_other_is_started(
    autojump_clock: MockClock,
) -> None:
    """With the code of the last one."""
    async with scene() as here:
        await here.open()
        here.place.server.exit(3)
        await trio.testing.wait_all_tasks_blocked()
        await here.send(ping(1))
        await trio.testing.wait_all_tasks_blocked()
        (refused,) = await here.rest()
        assert (error_of(refused), here.code, len(here.place.servers)) == ((1, -32603, True), 3, 1)


async def test_a_client_that_leaves_while_another_server_is_opened_ends_that_one(autojump_clock: MockClock) -> None:
    """Nobody is going to talk to it."""
    async with scene() as here:
        await here.open()
        here.place.serving = silent
        here.place.server.exit(3)
        await trio.sleep(1)
        assert (await here.rest(), here.code, trio.current_time()) == ([], 0, 1)


async def test_a_client_that_closes_its_end_ends_the_server(autojump_clock: MockClock) -> None:
    """It is seen out as after the end of the input."""
    async with scene() as here:
        await here.open()
        await here.from_supervisor.aclose()
        await here.place.server.say(CHANGED)
        await here.ended.wait()
        assert (here.code, len(here.place.servers)) == (0, 1)


async def test_at_the_end_a_client_that_does_not_read_is_given_up(autojump_clock: MockClock) -> None:
    """After the grace, although the server would still have something to say."""
    async with scene(to_client=trio.testing.lockstep_stream_one_way_pair()) as here:
        await here.open()
        much = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"data": "x" * 1_000_000}}
        await here.place.server.say(*[much] * 20)
        await trio.testing.wait_all_tasks_blocked()
        await here.to_supervisor.aclose()
        await here.ended.wait()
        assert (here.code, trio.current_time()) == (0, TIMING.grace)


async def test_a_signal_is_passed_on_and_ends_it(autojump_clock: MockClock) -> None:
    """What was under way may still be answered."""
    async with scene() as here:
        await here.open()
        here.supervisor.stop(signal.SIGINT)
        await here.ended.wait()
        assert (here.place.server.signals, here.code, len(here.place.servers)) == ([signal.SIGINT], 0, 1)


async def test_a_cancelled_supervisor_leaves_no_server_behind(autojump_clock: MockClock) -> None:
    """Whoever embeds it may change its mind."""
    async with trio.open_nursery() as nursery:
        here = Scene(nursery, TIMING)
        async with trio.open_nursery() as inner:
            inner.start_soon(here.run)
            await here.open()
            inner.cancel_scope.cancel()
        assert here.place.server.returncode == -signal.SIGKILL


async def test_a_line_that_nobody_can_keep_costs_the_server_that_said_it(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whose answer it was cannot be known, so all that it owes is answered by errors."""
    monkeypatch.setattr(module, "LINE_LIMIT", 1000)
    async with scene() as here:
        here.place.serving = silent_to("tools/call")
        await here.open()
        await here.send(request(1, "tools/call"))
        await trio.testing.wait_all_tasks_blocked()
        await here.place.server.say(answer(1, content="x" * 1000))
        assert error_of(await here.receive()) == (1, -32603, True)
        assert [await here.receive(), await here.ask(2, "ping")] == [CHANGED, answer(2)]
        assert CAPABILITIES["tools"]["listChanged"]
