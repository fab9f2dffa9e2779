"""Memory is bounded: what waits, waits its turn; only what would wait for the client itself is refused."""

import pytest
import trio
import trio.testing

from modes_actor.actor.limits import Limits
from modes_actor.actor.outgoing import Outgoing
from modes_actor.actor.subscriptions import ToolsChanged
from modes_actor.wire import jsonrpc
from modes_actor.wire.base import PROTOCOL_VERSION_KEY
from modes_actor.wire.versions import V2026_07_28
from tests.conversation import Json, talking
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
        await trio.testing.wait_all_tasks_blocked()  # all that opening takes is taken in
        sent = 0
        while not client.bytes_not_taken_in():
            assert sent < 100, "the server takes in whatever it is sent"
            big = {"name": "echo", "arguments": {"text": "x" * 1000}}
            await client.send(client.compose("tools/call", big, id=sent))
            await trio.testing.wait_all_tasks_blocked()
            sent += 1
        assert sent > 10_000 / 1000 / 2  # an answer has the text twice
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


@pytest.mark.parametrize(
    ("request_id", "uris"),
    [("x" * 600_000, []), ("short", [""] * 10_000)],
    ids=["long ids", "very many URIs"],
)
async def test_what_a_listener_makes_us_keep_is_bounded(request_id: str, uris: list[str]) -> None:
    """Its id is kept as long as it listens, and even an empty URI takes room."""
    async with talking(sample_offer(), version=V2026_07_28) as client:
        wanted = {"notifications": {"resourceSubscriptions": uris}}
        answers = [await client.request("subscriptions/listen", wanted, id=request_id + str(n)) for n in range(2)]
        assert [answer.get("method") for answer in answers] == ["notifications/subscriptions/acknowledged", None]
        assert answers[1]["error"]["data"] == {"retryable": True}


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("x" * 100_000, {}),
        ("tools/call", {"name": "x" * 100_000}),
        ("prompts/get", {"name": "x" * 100_000}),
        ("resources/read", {"uri": "x" * 100_000}),
        ("logging/setLevel", {"level": "x" * 100_000}),
        ("tools/list", {"_meta": {PROTOCOL_VERSION_KEY: "x" * 100_000}}),
    ],
    ids=["a method", "a tool", "a prompt", "a resource", "a choice", "a version"],
)
async def test_an_error_does_not_grow_with_what_it_complains_of(method: str, params: Json) -> None:
    """It repeats enough for the reader to know what is meant."""
    async with talking(sample_offer()) as client:
        error = await client.error(method, params)
        assert "xxx" in error["message"]
        assert len(str(error)) < 3_000


async def test_finished_work_of_a_client_that_does_not_read_stays_in_flight(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its answers would be queued past the bound, however many requests there are."""
    posted: list[object] = []
    post = Outgoing.post

    def counted(queue: Outgoing, message: jsonrpc.Outgoing) -> None:
        posted.append(message)
        post(queue, message)

    monkeypatch.setattr(Outgoing, "post", counted)
    gate = Gate()
    limits = Limits(queued_bytes=10_000, in_flight=3)
    async with talking(sample_offer(gate), limits=limits, client_must_read=True) as client:
        big = client.compose("tools/call", {"name": "echo", "arguments": {"text": "x" * 10_000}}, id="big")
        waits = [client.compose("tools/call", {"name": "wait"}, id=number) for number in range(9)]
        await client.send(*waits[:3], big, *waits[3:])
        await trio.testing.wait_all_tasks_blocked()
        posted.clear()
        gate.opened.set()
        await trio.testing.wait_all_tasks_blocked()
        assert (gate.entered, posted) == (3, [])
        answered = [str((await client.receive())["id"]) for _ in range(10)]
        assert sorted(answered) == [*map(str, range(9)), "big"]


async def test_events_wait_while_the_client_does_not_read() -> None:
    """The queue to the client is full: what changed is told when there is room again."""
    limits = Limits(queued_bytes=100)
    async with talking(sample_offer(), limits=limits, client_must_read=True) as client:
        await client.send(client.compose("tools/call", {"name": "echo", "arguments": {"text": "x" * 200}}, id=1))
        await trio.testing.wait_all_tasks_blocked()
        for _ in range(20):
            client.server.events.send_nowait(ToolsChanged())
        await trio.testing.wait_all_tasks_blocked()
        assert client.server.events.statistics().current_buffer_used == 19  # and one in the relay's hands
        assert (await client.receive())["id"] == 1
        assert [(await client.receive())["method"] for _ in range(20)] == ["notifications/tools/list_changed"] * 20


async def test_what_is_being_written_counts_as_queued() -> None:
    """Else there could be twice as much."""
    outgoing = Outgoing(100)
    outgoing.post_encoded(b"x" * 60)
    await outgoing.take()
    assert not outgoing.is_full
    outgoing.post_encoded(b"x" * 60)
    assert outgoing.is_full
