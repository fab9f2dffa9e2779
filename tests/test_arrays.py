"""Several messages in one JSON array: allowed in one version, refused in the others."""

import pytest
import trio.testing

from modes_actor.actor.limits import Limits
from modes_actor.wire.versions import ALL_VERSIONS, V2025_03_26, Version
from tests.conversation import CLIENT_INFO, stateless_meta, talking
from tests.sample_offer import Gate, sample_offer


def ping(id: object) -> dict[str, object]:
    return {"jsonrpc": "2.0", "id": id, "method": "ping"}


async def test_the_answers_to_an_array_come_as_one_array_when_the_last_is_there() -> None:
    """Requests that wait hold back the array, and nothing else."""
    gate = Gate()
    async with talking(sample_offer(gate), version=V2025_03_26) as client:
        await client.send([ping("a"), client.compose("tools/call", {"name": "wait"}, id="b"), ping("c")], ping("d"))
        assert (await client.receive())["id"] == "d"
        gate.opened.set()
        assert [answer["id"] for answer in await client.receive()] == ["a", "c", "b"]


async def test_only_what_expects_an_answer_is_answered() -> None:
    """Notifications and responses are not; broken items are, each by itself."""
    async with talking(version=V2025_03_26) as client:
        await client.send(
            [
                {"jsonrpc": "2.0", "method": "notifications/initialized"},
                {"jsonrpc": "2.0", "id": 5, "result": {}},
                ping("a"),
                5,
                {"jsonrpc": "2.0", "id": "b"},
                {"jsonrpc": "2.0", "id": None, "method": "ping"},
            ]
        )
        answers = await client.receive()
        assert [(answer["id"], answer.get("error", {}).get("code")) for answer in answers] == [
            ("a", None),
            (None, -32600),
            ("b", -32600),
            (None, -32600),
        ]


async def test_an_array_without_requests_is_not_answered() -> None:
    """There is nothing to say."""
    async with talking(version=V2025_03_26) as client:
        await client.send([{"jsonrpc": "2.0", "method": "notifications/initialized"}], ping("next"))
        assert (await client.receive())["id"] == "next"


async def test_a_cancelled_request_is_missing_from_the_array() -> None:
    """The others are answered without it."""
    async with talking(sample_offer(Gate()), version=V2025_03_26) as client:
        await client.send([ping("a"), client.compose("tools/call", {"name": "wait"}, id="b")])
        await trio.testing.wait_all_tasks_blocked()
        await client.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "b"}})
        assert [answer["id"] for answer in await client.receive()] == ["a"]


async def test_initialize_must_not_be_part_of_an_array() -> None:
    """It is refused by itself, the rest is served."""
    async with talking(version=V2025_03_26) as client:
        params = {"protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": CLIENT_INFO}
        await client.send([client.compose("initialize", params, id="i"), ping("a")])
        answers = await client.receive()
        assert [(answer["id"], answer.get("error", {}).get("code")) for answer in answers] == [
            ("i", -32600),
            ("a", None),
        ]


@pytest.mark.parametrize(
    "version",
    [version for version in (*ALL_VERSIONS, None) if version is not V2025_03_26],
    ids=lambda version: version.name if version else "none yet",
)
async def test_every_other_version_refuses_arrays(version: Version | None) -> None:
    """One -32600 for the whole, and the next request works. Also before any version was agreed on."""
    async with talking(version=version) as client:
        await client.send([ping("a"), ping("b")])
        answer = await client.receive()
        assert (answer["error"]["code"], answer.get("id")) == (-32600, None)
        assert "result" in await client.request("ping") or version is ALL_VERSIONS[-1]


@pytest.mark.parametrize("length", [0, 11])
async def test_an_array_that_is_empty_or_too_long_is_refused_as_a_whole(length: int) -> None:
    """Its length is bounded by what may be in flight."""
    async with talking(version=V2025_03_26, limits=Limits(in_flight=10)) as client:
        await client.send([ping(number) for number in range(length)])
        answer = await client.receive()
        assert (answer["id"], answer["error"]["code"]) == (None, -32600)
        assert "1 to 10 messages" in answer["error"]["message"]


async def test_answers_that_make_an_array_too_long_become_retryable_errors() -> None:
    """An array leaves in one piece, so it has to be bounded in bytes."""
    async with talking(sample_offer(), version=V2025_03_26, limits=Limits(queued_bytes=1000)) as client:
        long = {"name": "echo", "arguments": {"text": "x" * 200}}
        await client.send([client.compose("tools/call", long, id=number) for number in range(4)])
        answers = await client.receive()
        assert ["result" in answer for answer in answers] == [True, False, False, False]
        assert [answer["error"]["data"] for answer in answers[1:]] == [{"retryable": True}] * 3


async def test_a_broken_array_is_a_parse_error() -> None:
    """Not JSON is not JSON, whatever it begins with."""
    async with talking(version=V2025_03_26) as client:
        await client.send_bytes(b"[1, 2\n")
        assert (await client.receive())["error"]["code"] == -32700


async def test_a_request_of_another_version_inside_an_array_is_refused_and_the_others_answered() -> None:
    """It names its own version, and that one has no arrays: above all no stream that never answers."""
    async with talking(sample_offer(), version=V2025_03_26) as client:
        params = {"notifications": {}, "_meta": stateless_meta()}
        listen = {"jsonrpc": "2.0", "id": "l", "method": "subscriptions/listen", "params": params}
        await client.send([ping("a"), listen])
        answers = {answer["id"]: answer for answer in await client.receive()}
        assert answers["a"] == {"jsonrpc": "2.0", "id": "a", "result": {}}
        assert answers["l"]["error"]["code"] == -32600


async def test_an_array_of_millions_is_refused_as_a_whole() -> None:
    """Only as many items as are allowed are ever looked at."""
    async with talking(version=V2025_03_26, limits=Limits(in_flight=10)) as client:
        await client.send_bytes(b"[" + b"0," * 2_000_000 + b"0]\n")
        answer = await client.receive()
        assert (answer["error"]["code"], answer["id"]) == (-32600, None)
        assert await client.result("ping") == {}
