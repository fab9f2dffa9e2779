"""The end: everything received is answered, what runs is given time, and nobody waits forever."""

from functools import partial

import pytest
import trio
import trio.testing
from msgspec import structs

from modes_actor.actor.limits import Limits
from modes_actor.actor.reader import read_messages
from modes_actor.actor.writer import PIECE_SIZE
from modes_actor.server import Server
from modes_actor.wire.codec import Message
from modes_actor.wire.jsonrpc import Incoming
from tests.conversation import talking
from tests.process import lines, ping
from tests.sample_offer import Gate, sample_offer


async def test_the_end_of_the_input_answers_everything_received() -> None:
    """Then the server ends the conversation."""
    async with talking() as client:
        await client.send(*(client.compose("ping", id=number) for number in range(1000)))
        await client.end_input()
        assert [message["id"] for message in await client.remaining()] == list(range(1000))


async def test_running_work_may_finish_after_the_end_of_the_input() -> None:
    """Its answer is the last thing that is sent."""
    gate = Gate()
    async with talking(sample_offer(gate)) as client:
        await client.send(client.compose("tools/call", {"name": "wait"}, id="slow"))
        await client.end_input()
        await trio.testing.wait_all_tasks_blocked()
        gate.opened.set()
        (answer,) = await client.remaining()
        assert (answer["id"], answer["result"]["content"][0]["text"]) == ("slow", "waited")


async def test_work_that_does_not_finish_is_cancelled_and_its_request_answered(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """After five seconds, with an error that says the request may be sent again."""
    gate = Gate()
    async with talking(sample_offer(gate)) as client:
        await client.send(client.compose("tools/call", {"name": "wait"}, id="endless"))
        began = trio.current_time()
        await client.end_input()
        (answer,) = await client.remaining()
        assert trio.current_time() - began == pytest.approx(5.0)
        assert (answer["id"], answer["error"]["code"]) == ("endless", -32603)
        assert answer["error"]["data"] == {"retryable": True}
        assert gate.cancelled == 1


async def test_requests_still_queued_behind_endless_work_are_answered_at_the_end(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """A full house at the end of the input: each request is answered once, and the end comes in time."""
    async with talking(sample_offer(Gate()), limits=Limits(in_flight=2)) as client:
        await client.send(*(client.compose("tools/call", {"name": "wait"}, id=number) for number in range(10)))
        await client.end_input()
        answers = await client.remaining()
        assert sorted(answer["id"] for answer in answers) == list(range(10))
        assert {answer["error"]["code"] for answer in answers} == {-32603}


async def test_what_waits_for_the_client_fails_when_the_input_ends() -> None:
    """No answer can come any more, so there is no point in waiting for one."""
    async with talking(sample_offer(), capabilities={"roots": {}}) as client:
        await client.request("tools/call", {"name": "ask_roots"}, id="call")
        await client.end_input()
        (answer,) = await client.remaining()
        assert answer["error"] == {
            "code": -32603,
            "message": "The client closed its end before it answered roots/list",
            "data": {"retryable": True},
        }


async def test_an_answer_that_came_before_the_end_of_the_input_still_counts() -> None:
    """What was received is served, in order, before anything is given up."""
    async with talking(sample_offer(), capabilities={"roots": {}}) as client:
        asked = await client.request("tools/call", {"name": "ask_roots"}, id="call")
        await client.send({"jsonrpc": "2.0", "id": asked["id"], "result": {"roots": [{"uri": "file:///a"}]}})
        await client.end_input()
        (answer,) = await client.remaining()
        assert answer["result"]["content"][0]["text"] == "file:///a"


async def test_stop_ends_like_the_end_of_the_input() -> None:
    """What was received is answered; what comes later is not read."""
    gate = Gate()
    async with talking(sample_offer(gate)) as client:
        await client.send(client.compose("tools/call", {"name": "wait"}, id="slow"))
        await trio.testing.wait_all_tasks_blocked()
        client.server.stop()
        gate.opened.set()
        assert [message["id"] for message in await client.remaining()] == ["slow"]


async def test_a_client_that_reads_nothing_cannot_hold_up_the_end(autojump_clock: trio.testing.MockClock) -> None:
    """While serving it may take its time; at the end it gets five seconds."""
    gate = Gate()
    async with talking(sample_offer(gate), version=None, client_must_read=True) as client:
        await client.send(*(client.compose("ping", id=number) for number in range(100)))
        await trio.testing.wait_all_tasks_blocked()
        began = trio.current_time()
        await client.end_input()
        await client.ended.wait()
        assert trio.current_time() - began == pytest.approx(5.0)


async def test_a_server_that_is_cancelled_waits_for_a_client_that_reads_nothing_no_longer_than_one_that_ends(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """The frame under way is not torn for that; a program that embeds a server can always be rid of it."""
    async with talking(sample_offer(Gate()), version=None, client_must_read=True) as client:
        await client.send(*(client.compose("ping", id=number) for number in range(100)))
        await trio.testing.wait_all_tasks_blocked()
        began = trio.current_time()
    assert trio.current_time() - began == pytest.approx(5.0)
    assert not client.ended.is_set()


async def test_a_server_that_is_cancelled_ends_in_time_though_its_client_reads_a_little_now_and_then(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """One that ends by itself gives such a client all the time it needs."""
    to_server, received = trio.testing.memory_stream_one_way_pair()
    server_sends, from_server = trio.testing.lockstep_stream_one_way_pair()

    async def trickle() -> None:
        async for _ in from_server:
            await trio.sleep(1.5)

    async with trio.open_nursery() as reading:
        reading.start_soon(trickle)
        async with trio.open_nursery() as serving:
            serving.start_soon(Server(sample_offer()).serve, received, server_sends)
            await to_server.send_all(lines(*(ping(f"{number} {'x' * PIECE_SIZE}") for number in range(50))))
            await trio.sleep(10)
            serving.cancel_scope.cancel()
        assert trio.current_time() == pytest.approx(15.0)


async def test_a_server_whose_input_fails_ends_though_its_client_reads_nothing(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Or whatever else in it does: Ctrl-C comes in the same way where a program has not taken it for itself."""

    class Failing(trio.abc.ReceiveStream):
        def __init__(self) -> None:
            self.blocks = [lines(*(ping(number) for number in range(100)))]

        async def receive_some(self, max_bytes: int | None = None) -> bytes:
            await trio.sleep(1)
            if not self.blocks:
                raise KeyboardInterrupt
            return self.blocks.pop()

        async def aclose(self) -> None:
            await trio.lowlevel.checkpoint()

    to_client, _unread = trio.testing.lockstep_stream_one_way_pair()
    with pytest.raises(BaseExceptionGroup) as caught:
        await Server(sample_offer()).serve(Failing(), to_client)
    assert caught.group_contains(KeyboardInterrupt)
    assert trio.current_time() == pytest.approx(7.0, abs=0.1)


async def test_a_client_that_takes_its_time_but_reads_gets_every_answer(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Patience at the end is counted from the last byte taken, not from the end of the input."""
    async with talking(sample_offer(), version=None, client_must_read=True) as client:
        await client.send(*(client.compose("ping", id=f"{number} {'x' * 5000}") for number in range(100)))
        await client.end_input()
        answers = 0
        while await client.receive_line() is not None:
            answers += 1
            await trio.sleep(0.3)  # on a clock that jumps
        assert answers == 100


async def test_a_client_that_vanishes_while_everything_is_full_ends_the_server_quietly() -> None:
    """Reader, processor and writer all wait for it at that moment, and a request waits for a place."""
    limits = Limits(in_flight=1, queued_batches=1, queued_bytes=100)
    async with talking(sample_offer(Gate()), limits=limits, client_must_read=True) as client:
        for number in range(20):
            await client.send(client.compose("tools/call", {"name": "wait"}, id=f"w{number}"), client.compose("ping"))
            await trio.testing.wait_all_tasks_blocked()
        assert client.bytes_not_taken_in()
        await client.stop_reading()
        await client.ended.wait()


async def test_a_client_that_closes_its_end_ends_the_server_quietly() -> None:
    """No error, no waiting for work that nobody wants."""
    async with talking(sample_offer(Gate())) as client:
        await client.send(client.compose("tools/call", {"name": "wait"}, id="slow"))
        await trio.testing.wait_all_tasks_blocked()
        await client.stop_reading()
        await client.send(client.compose("ping"))
        await client.ended.wait()


async def test_what_was_read_is_delivered_though_reading_is_cancelled() -> None:
    """`stop` cancels a reader that may be waiting for room in the channel."""
    to_server, received = trio.testing.memory_stream_one_way_pair()
    batches, batches_received = trio.open_memory_channel[list[Message]](0)
    async with trio.open_nursery() as reading:
        reading.start_soon(partial(read_messages, received, batches, lambda batch: False, line_limit=1000))
        await to_server.send_all(lines(ping(1), ping(2)))
        await trio.testing.wait_all_tasks_blocked()
        reading.cancel_scope.cancel()
        with trio.CancelScope(shield=True):
            delivered = await batches_received.receive()
    assert [message.id for message in delivered if isinstance(message, Incoming)] == [1, 2]


@pytest.mark.parametrize("end", ["the input ends", "it is stopped", "it is cancelled"])
async def test_what_is_offered_is_told_once_that_the_end_has_begun(
    end: str, autojump_clock: trio.testing.MockClock
) -> None:
    """And how long it may take, so that nothing behind it waits for longer."""
    told: list[float] = []
    offer = structs.replace(sample_offer(), leaving=told.append)
    async with talking(offer, limits=Limits(drain_seconds=3.0)) as client:
        await client.result("ping")
        assert told == []
        if end == "the input ends":
            await client.end_input()
        elif end == "it is stopped":
            client.server.stop()
        if end != "it is cancelled":
            await client.ended.wait()
    assert told == [3.0]
