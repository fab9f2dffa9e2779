"""Memory is bounded: what waits, waits its turn; only what would wait for the client itself is refused."""

import pytest
import trio
import trio.testing

from modes_actor.actor.limits import Limits
from modes_actor.wire.versions import V2026_07_28
from tests.conversation import talking
from tests.sample_offer import Gate, sample_offer


async def test_more_requests_than_may_be_in_flight_all_get_their_turn() -> None:
    """The bound is a queue, not a refusal: every one of them is answered."""
    gate = Gate()
    async with talking(sample_offer(gate), limits=Limits(in_flight=10)) as client:
        await client.send(*(client.compose("tools/call", {"name": "wait"}, id=number) for number in range(100)))
        await trio.testing.wait_all_tasks_blocked()
        entered = gate.entered
        gate.opened.set()
        answers = [await client.receive() for _ in range(100)]
        assert entered == 10
        assert sorted(answer["id"] for answer in answers) == list(range(100))
        assert all("result" in answer for answer in answers)


async def test_a_client_that_does_not_read_is_not_read() -> None:
    """Once the answers that wait fill their bound, nothing more is taken in; reading on gets every answer."""
    limits = Limits(queued_bytes=10_000, queued_batches=1)
    async with talking(sample_offer(), limits=limits, client_must_read=True) as client:
        sent = 0
        while not client.bytes_not_taken_in():
            assert sent < 100, "the server takes in whatever it is sent"
            big = {"name": "echo", "arguments": {"text": "x" * 1000}}
            await client.send(client.compose("tools/call", big, id=sent))
            await trio.testing.wait_all_tasks_blocked()
            sent += 1
        assert [(await client.receive())["id"] for _ in range(sent)] == list(range(sent))


async def test_one_read_cannot_queue_more_than_the_bound() -> None:
    """The bound is checked between the messages of a batch: a kilobyte of requests may ask for megabytes."""
    gate = Gate()
    async with talking(sample_offer(gate), limits=Limits(queued_bytes=50_000), client_must_read=True) as client:
        big = {"name": "echo", "arguments": {"text": "x", "times": 5_000}}  # comes twice in the answer
        await client.send(*(client.compose("tools/call", big, id=number) for number in range(100)))
        await trio.testing.wait_all_tasks_blocked()
        assert gate.echoed == 5
        assert [(await client.receive())["id"] for _ in range(100)] == list(range(100))


@pytest.mark.parametrize("over", [0, 1])
async def test_requests_that_wait_for_the_client_are_refused_past_their_bound(over: int) -> None:
    """Its answers come through the same pipe: they must never queue behind what waits for them."""
    limits = Limits(client_requests=3)
    async with talking(sample_offer(), capabilities={"roots": {}}, limits=limits) as client:
        await client.send(*(client.compose("tools/call", {"name": "ask_roots"}, id=f"r{n}") for n in range(3 + over)))
        messages = [await client.receive() for _ in range(3 + over)]
        asked = [message["id"] for message in messages if message.get("method") == "roots/list"]
        refused = [message for message in messages if "error" in message]
        assert (len(asked), len(refused)) == (3, over)
        assert [message["error"]["data"] for message in refused] == [{"retryable": True}] * over
        await client.send(*({"jsonrpc": "2.0", "id": id, "result": {"roots": []}} for id in asked))
        assert ["result" in (await client.receive()) for _ in range(3)] == [True] * 3


async def test_listeners_are_refused_past_their_bound_and_do_not_count_as_work() -> None:
    """A listen is not work in flight: it has a bound of its own."""
    gate = Gate()
    gate.opened.set()
    limits = Limits(listeners=2, in_flight=1)
    async with talking(sample_offer(gate), version=V2026_07_28, limits=limits) as client:
        listen = {"notifications": {"toolsListChanged": True}}
        answers = [await client.request("subscriptions/listen", listen) for _ in range(3)]
        assert [answer.get("method") for answer in answers] == ["notifications/subscriptions/acknowledged"] * 2 + [None]
        assert (answers[2]["error"]["code"], answers[2]["error"]["data"]) == (-32603, {"retryable": True})
        assert (await client.result("tools/call", {"name": "wait"}))["content"][0]["text"] == "waited"


async def test_subscribed_uris_are_bounded_together() -> None:
    """A client chooses their number and their length, so the sum is what counts; giving one up makes room."""
    async with talking(sample_offer()) as client:
        long = "sample://" + "x" * 600_000
        assert await client.result("resources/subscribe", {"uri": long}) == {}
        assert await client.result("resources/subscribe", {"uri": long}) == {}
        error = await client.error("resources/subscribe", {"uri": long + "y"})
        assert (error["code"], error["data"]) == (-32603, {"retryable": True})
        assert await client.result("resources/unsubscribe", {"uri": long}) == {}
        assert await client.result("resources/subscribe", {"uri": long + "y"}) == {}


async def test_a_line_over_the_limit_is_refused_and_the_next_request_works() -> None:
    """Not stored, not parsed: one error, whatever it was."""
    async with talking(limits=Limits(line_bytes=1000)) as client:
        await client.send_bytes(b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"' + b"x" * 5000 + b'"}}\n')
        answer = await client.receive()
        assert answer["error"] == {"code": -32600, "message": "Invalid request: longer than 1,000 bytes"}
        assert await client.result("ping") == {}
