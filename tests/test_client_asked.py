"""The client: what servers ask it and tell it."""

from typing import Any

import msgspec
import pytest
import trio
import trio.testing

from modes_actor.client import (
    INPUT_ROUNDS,
    BadAnswer,
    Options,
)
from modes_actor.wire.client_features import Root
from modes_actor.wire.jsonrpc import Notification
from tests.conversation import Json
from tests.sample_offer import sample_offer
from tests.scripted_server import EraName, Outcome, Scripted, answer_to, in_both_eras, scripted, serving


async def test_a_server_that_asks_is_answered() -> None:
    """With a sign of life, or that it asked for something this client does not do."""
    async with scripted() as (_, server, _):
        for method in ("ping", "roots/list", "sampling/createMessage"):
            await server.say({"jsonrpc": "2.0", "id": method, "method": method})
        heard = [await server.hear() for _ in range(3)]
    assert heard[0] == {"jsonrpc": "2.0", "id": "ping", "result": {}}
    assert [(each["id"], each["error"]["code"]) for each in heard[1:]] == [
        ("roots/list", -32601),
        ("sampling/createMessage", -32601),
    ]


@pytest.mark.parametrize(
    ("options", "declared"),
    [(Options(), {}), (Options(roots=[]), {"roots": {}})],
    ids=["without roots", "with an empty list of them"],
)
async def test_roots_are_declared_only_by_a_client_that_can_tell_them(options: Options, declared: Json) -> None:
    """That there are none can be told too."""
    opened_with: list[Json] = []
    server = Scripted()

    async def serve() -> None:
        opened_with.append(await server.shake_hands())
        await server.end_when_left()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve)
        async with server.client(**options):
            pass
    assert [params["capabilities"] for params in opened_with] == [declared]


@in_both_eras
async def test_a_server_that_asks_for_roots_is_told(era: EraName) -> None:
    """Whether it asks with a request or within an answer."""
    async with serving(sample_offer(), era=era, roots=[Root("file:///a"), Root("file:///b", "B")]) as client:
        assert (await client.call_tool("ask_roots")).text == "file:///a, file:///b"


async def test_a_stateless_server_that_never_stops_asking_is_given_up() -> None:
    """Each of its answers is another question."""
    server = Scripted()
    asked = []

    async def ask_on() -> None:
        await server.answer(await server.hear(), {})
        for turn in range(INPUT_ROUNDS):
            request = await server.hear()
            asked.append(request["params"].get("requestState"))
            state: Json = {"requestState": f"turn {turn}"} if turn % 2 == 0 else {"inputRequests": {}}
            await server.answer(request, {"resultType": "input_required", **state})
        await server.end_when_left()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask_on)
        async with server.client(era="stateless") as client:
            with pytest.raises(BadAnswer, match="wanted input for slow"):
                await client.request("slow")
    assert asked == [f"turn {turn - 1}" if turn % 2 else None for turn in range(INPUT_ROUNDS)]


async def test_a_stateless_server_that_asks_for_more_than_was_offered_gets_no_answer() -> None:
    """The call fails, because the server will not go on without."""
    server = Scripted()

    async def ask_for_a_model() -> None:
        await server.answer(await server.hear(), {})
        wanted = {"model": {"method": "sampling/createMessage", "params": {}}}
        await server.answer(await server.hear(), {"resultType": "input_required", "inputRequests": wanted})

    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask_for_a_model)
        async with server.client(era="stateless", patience=0) as client:
            with pytest.raises(BadAnswer, match="sampling/createMessage"):
                await client.request("slow")


async def test_notifications_go_to_whoever_wants_them() -> None:
    """In order, and before the answer that came after them."""
    heard: list[Notification] = []
    async with scripted(notifications=heard.append) as (client, server, nursery):
        nursery.start_soon((outcome := Outcome()).of, client.request, "work")
        progress = [{"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progress": n}} for n in (1, 2)]
        await server.say(*progress, answer_to(await server.hear(), {}))
        await trio.testing.wait_all_tasks_blocked()
        assert outcome.result is not None
    assert [(each.method, msgspec.json.decode(each.params)) for each in heard] == [
        ("notifications/progress", {"progress": 1}),
        ("notifications/progress", {"progress": 2}),
    ]


async def test_notifications_that_nobody_wants_hold_nothing_up() -> None:
    """However many come."""
    async with scripted() as (client, server, nursery):
        nursery.start_soon((outcome := Outcome()).of, client.request, "work")
        chatter = {"jsonrpc": "2.0", "method": "notifications/message", "params": {}}
        await server.say(*[chatter] * 5000, answer_to(await server.hear(), {}))
        await trio.testing.wait_all_tasks_blocked()
    assert bytes(outcome.result) == b"{}"


async def test_every_line_can_be_traced() -> None:
    """In both directions, as it is on the wire."""
    lines: list[tuple[str, Any]] = []
    async with serving(
        sample_offer(), trace=lambda direction, line: lines.append((direction, msgspec.json.decode(line)))
    ) as client:
        await client.ping()
    assert [(direction, line.get("method")) for direction, line in lines] == [
        ("sent", "initialize"),
        ("received", None),
        ("sent", "notifications/initialized"),
        ("sent", "ping"),
        ("received", None),
    ]
    assert lines[-1] == ("received", {"jsonrpc": "2.0", "id": 2, "result": {}})
