"""The client: many calls at a time, and calls that are cancelled."""

import msgspec
import pytest
import trio
import trio.testing

from tests.sample_offer import Gate, sample_offer
from tests.scripted_server import EraName, Outcome, Scripted, answer_to, in_both_eras, scripted, serving


async def test_each_call_gets_its_own_answer_in_whatever_order_they_come() -> None:
    """Calls are sent at once, without waiting for one another; ids tell the answers apart."""
    async with scripted() as (client, server, nursery):
        outcomes = [Outcome() for _ in range(20)]
        for number, outcome in enumerate(outcomes):
            nursery.start_soon(outcome.of, client.request, "echo", {"number": number})
        requests = [await server.hear() for _ in outcomes]
        await server.say(*(answer_to(request, request["params"]) for request in reversed(requests)))
        await trio.testing.wait_all_tasks_blocked()
    assert len({request["id"] for request in requests}) == 20
    assert [msgspec.json.decode(outcome.result) for outcome in outcomes] == [{"number": n} for n in range(20)]


async def test_answers_may_come_in_an_array() -> None:
    """As a server of 2025-03-26 may send them."""
    async with scripted() as (client, server, nursery):
        outcomes = [Outcome(), Outcome()]
        for outcome in outcomes:
            nursery.start_soon(outcome.of, client.request, "echo")
        await server.say([answer_to(await server.hear(), {}) for _ in outcomes])
        await trio.testing.wait_all_tasks_blocked()
    assert [bytes(outcome.result) for outcome in outcomes] == [b"{}", b"{}"]


async def test_only_the_first_answer_to_a_call_counts() -> None:
    """And an error that is null is none."""
    async with scripted() as (client, server, nursery):
        nursery.start_soon((outcome := Outcome()).of, client.request, "echo")
        request = await server.hear()
        await server.say({**answer_to(request, 1), "error": None}, answer_to(request, 2))
        await trio.testing.wait_all_tasks_blocked()
    assert bytes(outcome.result) == b"1"


async def test_a_call_that_is_cancelled_is_withdrawn_and_its_late_answer_dropped() -> None:
    """The next call gets its own."""
    async with scripted() as (client, server, nursery):
        with trio.CancelScope() as scope:
            nursery.start_soon(_cancel_when_blocked, scope)
            await client.request("slow")
        request = await server.hear()
        assert await server.hear() == {
            "jsonrpc": "2.0",
            "method": "notifications/cancelled",
            "params": {"requestId": request["id"]},
        }
        await server.answer(request, {"late": True})
        nursery.start_soon((outcome := Outcome()).of, client.request, "next")
        await server.answer(await server.hear(), {"late": False})
        await trio.testing.wait_all_tasks_blocked()
    assert bytes(outcome.result) == b'{"late":false}'


async def _cancel_when_blocked(scope: trio.CancelScope) -> None:
    await trio.testing.wait_all_tasks_blocked()
    scope.cancel()


@in_both_eras
async def test_a_cancelled_call_stops_the_servers_work(era: EraName) -> None:
    """The real one understands the withdrawal."""
    gate = Gate()
    async with serving(sample_offer(gate), era=era) as client, trio.open_nursery() as nursery:
        with trio.CancelScope() as scope:
            nursery.start_soon(_cancel_when_blocked, scope)
            await client.call_tool("wait")
        await trio.testing.wait_all_tasks_blocked()
        assert (gate.entered, gate.cancelled) == (1, 1)


async def test_a_handshake_that_is_cancelled_is_not_withdrawn() -> None:
    """The protocol forbids it: the conversation just ends, even if the server reads only then."""
    server = Scripted(unread_is_full=True)
    heard: list[str] = []

    async def cancel_and_read(scope: trio.CancelScope) -> None:
        await _cancel_when_blocked(scope)
        await trio.testing.wait_all_tasks_blocked()
        heard.append((await server.hear())["method"])
        heard.append((await server.receives.receive_some()).decode())

    async with trio.open_nursery() as nursery:
        with trio.CancelScope() as scope:
            nursery.start_soon(cancel_and_read, scope)
            async with server.client():
                pytest.fail("nobody answered")
    assert heard == ["initialize", ""]


async def test_a_frame_is_sent_whole_although_its_call_is_cancelled_in_the_middle() -> None:
    """Half a line would make the rest of the conversation unreadable."""
    async with scripted(Scripted(unread_is_full=True)) as (client, server, nursery):
        with trio.CancelScope() as scope:
            nursery.start_soon(_cancel_when_blocked, scope)
            await client.request("slow", {"text": "x" * 1000})
        beginning = bytes(await server.receives.receive_some(10))
        await trio.testing.wait_all_tasks_blocked()
        server._received += beginning
        request = await server.hear()
        assert request["params"] == {"text": "x" * 1000}
        assert (await server.hear())["params"] == {"requestId": request["id"]}
