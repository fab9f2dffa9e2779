"""The client: how conversations end, politely or not."""

import msgspec
import pytest
import trio
import trio.testing

from modes_actor.client import (
    ServerGone,
)
from tests.scripted_server import Outcome, Scripted, answer_to, scripted


async def test_every_waiting_call_learns_that_the_server_has_gone() -> None:
    """And so does every call after that."""
    async with scripted() as (client, server, nursery):
        outcomes = [Outcome(), Outcome()]
        for outcome in outcomes:
            nursery.start_soon(outcome.of, client.ping)
        await trio.testing.wait_all_tasks_blocked()
        await server.sends.aclose()
        await trio.testing.wait_all_tasks_blocked()
        assert [str(each.error) for each in outcomes] == [
            "The server closed the connection before ping was answered"
        ] * 2
        with pytest.raises(ServerGone, match="The server closed the connection"):
            await client.ping()


async def test_what_a_server_said_before_it_went_is_still_heard() -> None:
    """Its last line too, which may lack a newline."""
    async with scripted() as (client, server, nursery):
        nursery.start_soon((outcome := Outcome()).of, client.request, "last")
        await server.sends.send_all(msgspec.json.encode(answer_to(await server.hear(), {"last": 1})))
        await server.sends.aclose()
        await trio.testing.wait_all_tasks_blocked()
    assert bytes(outcome.result) == b'{"last":1}'


async def test_a_connection_that_breaks_is_the_end_of_it() -> None:
    """As when a socket is reset."""

    async def break_off() -> None:
        raise trio.BrokenResourceError

    async with scripted() as (client, server, nursery):
        nursery.start_soon((outcome := Outcome()).of, client.ping)
        server.client_receives.receive_some_hook = break_off
        await server.say({"jsonrpc": "2.0", "method": "notifications/message"})
        await trio.testing.wait_all_tasks_blocked()
    assert isinstance(outcome.error, ServerGone)


async def test_a_server_that_reads_no_more_is_gone_though_it_does_not_say_so(autojump_clock: object) -> None:
    """It gets some time to end its sentence, and the call does not wait for longer."""
    async with scripted() as (client, server, _):
        await server.receives.aclose()
        with pytest.raises(ServerGone):
            await client.ping()


async def test_a_line_over_the_limit_ends_the_conversation() -> None:
    """Whose answer it was cannot be told, so no call may wait for it."""
    async with scripted(line_limit=1000) as (client, server, nursery):
        nursery.start_soon((outcome := Outcome()).of, client.request, "long")
        await server.answer(await server.hear(), "x" * 1000)
        await trio.testing.wait_all_tasks_blocked()
    assert isinstance(outcome.error, ServerGone)
    assert "more than 1,000 bytes" in str(outcome.error)


async def test_a_call_that_waits_for_room_ends_with_the_server() -> None:
    """While a server reads nothing, calls wait with their words; nothing of theirs piles up."""
    sent: list[bytes] = []
    async with scripted(Scripted(unread_is_full=True), patience=0, trace=lambda direction, line: sent.append(line)) as (
        client,
        server,
        nursery,
    ):
        first, second = Outcome(), Outcome()
        nursery.start_soon(first.of, client.request, "big", {"text": "x" * 9_000_000})
        await trio.testing.wait_all_tasks_blocked()
        before = len(sent)
        nursery.start_soon(second.of, client.request, "waits")
        await server.say({"jsonrpc": "2.0", "id": 1, "method": "ping"})
        await trio.testing.wait_all_tasks_blocked()
        assert [b'"ping"' in line for line in sent[before:]] == [True]  # the server's question; no word of ours
        await server.sends.aclose()
        await trio.testing.wait_all_tasks_blocked()
        assert [type(first.error), type(second.error)] == [ServerGone, ServerGone]


async def test_a_call_that_is_still_waiting_when_the_block_is_left_learns_of_it() -> None:
    """It is in another task, and must not wait forever."""
    async with trio.open_nursery() as calls, scripted() as (client, server, _):
        calls.start_soon((outcome := Outcome()).of, client.ping)
        await server.hear()
    assert str(outcome.error) == "The client was closed before ping was answered"


async def test_leaving_waits_for_the_server_to_end_but_not_forever(autojump_clock: object) -> None:
    """One that reads nothing and closes nothing is left after a while."""
    server = Scripted(unread_is_full=True)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(server.shake_hands)
        with trio.fail_after(100):
            async with server.client(patience=20) as client:
                nursery.start_soon(Outcome().of, client.request, "unread")
                await trio.testing.wait_all_tasks_blocked()
                started = trio.current_time()
        assert trio.current_time() - started == 20


async def test_what_was_said_last_is_sent_before_the_end() -> None:
    """Leaving closes the stream after the last frame, not before."""
    server = Scripted(unread_is_full=True)
    heard: list[str] = []

    async def read_slowly() -> None:
        await trio.testing.wait_all_tasks_blocked()
        heard.extend([(await server.hear())["method"] for _ in range(2)])
        await server.end_when_left()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(server.shake_hands)
        async with server.client() as client:
            await server.hear()
            for method in ("being written", "queued"):
                nursery.start_soon(Outcome().of, client.request, method)
                await trio.testing.wait_all_tasks_blocked()
            nursery.start_soon(read_slowly)
    assert heard == ["being written", "queued"]


async def test_an_exception_of_the_block_comes_out_as_it_is() -> None:
    """Not in a group: whoever uses a client should not have to know about its tasks."""
    server = Scripted()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(server.shake_hands)
        with pytest.raises(KeyError):
            async with server.client(patience=0):
                raise KeyError("mine")


async def test_both_streams_are_closed_at_the_end_also_when_cancelled() -> None:
    """Whoever gave them away need not think of them again."""
    for cancelled in (False, True):
        server = Scripted()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(server.shake_hands)
            with trio.CancelScope() as scope:
                async with server.client(patience=0):
                    if cancelled:
                        scope.cancel()
                        await trio.lowlevel.checkpoint()
        with pytest.raises(trio.ClosedResourceError):
            await server.client_sends.send_all(b"x")
        with pytest.raises(trio.ClosedResourceError):
            await server.client_receives.receive_some()
