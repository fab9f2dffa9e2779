"""Who hears of a change, and of nothing else."""

from typing import Any

import pytest
import trio.testing

from modes_actor.actor.limits import Limits
from modes_actor.actor.subscriptions import (
    Event,
    PromptsChanged,
    ResourcesChanged,
    ResourceUpdated,
    ToolsChanged,
)
from modes_actor.wire.base import SERVER_INFO_KEY, SUBSCRIPTION_ID_KEY
from modes_actor.wire.versions import V2025_11_25, V2026_07_28
from tests.conversation import CLIENT_INFO, Conversation, Json, talking
from tests.sample_offer import sample_offer

LIST_CHANGES: list[tuple[Event, str, str]] = [
    (ToolsChanged(), "notifications/tools/list_changed", "toolsListChanged"),
    (PromptsChanged(), "notifications/prompts/list_changed", "promptsListChanged"),
    (ResourcesChanged(), "notifications/resources/list_changed", "resourcesListChanged"),
]
EVENTS: list[Event] = [ToolsChanged(), PromptsChanged(), ResourcesChanged(), ResourceUpdated("sample://one")]


async def heard(client: Conversation, *events: Event) -> list[Json]:
    """The notifications that these events cause. An answer to a request marks their end."""
    for event in events:
        await client.server.events.send(event)
    await trio.testing.wait_all_tasks_blocked()
    await client.send(client.compose("tools/list", {}, id="end"))
    messages = []
    while (message := await client.receive()).get("id") != "end":
        messages.append(message)
    return messages


@pytest.mark.parametrize(("event", "method", "_kind"), LIST_CHANGES)
async def test_a_handshake_client_hears_of_changed_lists(event: Event, method: str, _kind: str) -> None:
    """As `listChanged` promised it, without having to ask."""
    async with talking(sample_offer()) as client:
        assert await heard(client, event) == [{"jsonrpc": "2.0", "method": method}]


async def test_a_client_that_was_not_promised_list_changes_hears_of_none() -> None:
    """`listChanged: false` is kept, too."""
    async with talking(sample_offer(lists_change=False)) as client:
        assert await heard(client, *EVENTS) == []


async def test_nobody_hears_anything_before_opening() -> None:
    """Neither era has begun: there is nobody to tell."""
    async with talking(sample_offer(), version=None) as client:
        for event in EVENTS:
            await client.server.events.send(event)
        await trio.testing.wait_all_tasks_blocked()
        assert (await client.request("ping", id="p"))["id"] == "p"


async def test_a_handshake_client_hears_of_resources_while_it_is_subscribed() -> None:
    """Of those it named, from subscribe to unsubscribe."""
    async with talking(sample_offer()) as client:
        events = [ResourceUpdated("sample://one"), ResourceUpdated("sample://two")]
        before = await heard(client, *events)
        await client.result("resources/subscribe", {"uri": "sample://one"})
        during = await heard(client, *events)
        await client.result("resources/unsubscribe", {"uri": "sample://one"})
        after = await heard(client, *events)
        update = {"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": "sample://one"}}
        assert (before, during, after) == ([], [update], [])


async def test_a_new_handshake_forgets_the_subscriptions_of_the_old() -> None:
    """They were another client's."""
    async with talking(sample_offer()) as client:
        await client.result("resources/subscribe", {"uri": "sample://one"})
        await client.result(
            "initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": CLIENT_INFO}
        )
        assert await heard(client, ResourceUpdated("sample://one")) == []


def listen(**wanted: Any) -> Json:
    return {"notifications": wanted}


async def test_a_listen_is_acknowledged_first_with_what_it_will_hear() -> None:
    """Kinds that were asked for and are offered."""
    async with talking(sample_offer(), version=V2026_07_28) as client:
        wanted = listen(toolsListChanged=True, promptsListChanged=False, resourceSubscriptions=["sample://one"])
        assert await client.request("subscriptions/listen", wanted, id="s") == {
            "jsonrpc": "2.0",
            "method": "notifications/subscriptions/acknowledged",
            "params": {
                "_meta": {SUBSCRIPTION_ID_KEY: "s"},
                "notifications": {"toolsListChanged": True, "resourceSubscriptions": ["sample://one"]},
            },
        }


async def test_kinds_that_are_not_offered_are_left_out_of_the_acknowledgement() -> None:
    """A client that waits for changes of lists that never announce any should know."""
    async with talking(sample_offer(lists_change=False), version=V2026_07_28) as client:
        wanted = listen(toolsListChanged=True, promptsListChanged=True, resourcesListChanged=True)
        acknowledged = await client.request("subscriptions/listen", wanted)
        assert acknowledged["params"]["notifications"] == {}
        assert await heard(client, *EVENTS) == []


@pytest.mark.parametrize(("event", "method", "kind"), LIST_CHANGES)
async def test_a_listener_hears_of_the_kind_it_asked_for_and_of_no_other(event: Event, method: str, kind: str) -> None:
    """Each notification says which subscription it belongs to."""
    async with talking(sample_offer(), version=V2026_07_28) as client:
        await client.request("subscriptions/listen", listen(**{kind: True}), id=7)
        expected = {"jsonrpc": "2.0", "method": method, "params": {"_meta": {SUBSCRIPTION_ID_KEY: 7}}}
        assert await heard(client, *EVENTS) == [expected]


async def test_every_listener_hears_on_its_own_stream() -> None:
    """Two streams, two notifications; a resource only where it was named."""
    async with talking(sample_offer(), version=V2026_07_28) as client:
        await client.request("subscriptions/listen", listen(resourceSubscriptions=["sample://one"]), id="a")
        await client.request("subscriptions/listen", listen(resourceSubscriptions=["sample://one", "x://y"]), id="b")
        updates = await heard(client, ResourceUpdated("sample://one"), ResourceUpdated("x://y"))
        told = [(m["params"]["_meta"][SUBSCRIPTION_ID_KEY], m["params"]["uri"]) for m in updates]
        assert told == [("a", "sample://one"), ("b", "sample://one"), ("b", "x://y")]


async def test_a_cancelled_listen_falls_silent() -> None:
    """No answer, no more notifications, and its id is free again."""
    async with talking(sample_offer(), version=V2026_07_28) as client:
        await client.request("subscriptions/listen", listen(toolsListChanged=True), id="s")
        await client.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "s"}})
        await trio.testing.wait_all_tasks_blocked()
        assert await heard(client, *EVENTS) == []
        again = await client.request("subscriptions/listen", listen(toolsListChanged=True), id="s")
        assert again["method"] == "notifications/subscriptions/acknowledged"


async def test_an_open_listen_keeps_its_id() -> None:
    """A second request with it is refused."""
    async with talking(sample_offer(), version=V2026_07_28) as client:
        await client.request("subscriptions/listen", listen(toolsListChanged=True), id="s")
        assert (await client.request("tools/list", id="s"))["error"]["code"] == -32600


async def test_a_listen_is_answered_when_the_input_ends() -> None:
    """At once, with its result, so that the client knows it ended well."""
    async with talking(sample_offer(), version=V2026_07_28) as client:
        await client.request("subscriptions/listen", listen(toolsListChanged=True), id="s")
        await client.end_input()
        (answer,) = await client.remaining()
        meta = answer["result"].pop("_meta")
        assert answer == {"jsonrpc": "2.0", "id": "s", "result": {"resultType": "complete"}}
        assert meta[SUBSCRIPTION_ID_KEY] == "s"
        assert meta[SERVER_INFO_KEY]["name"] == "sample"


async def test_a_handshake_client_and_a_listener_both_hear_in_one_process() -> None:
    """One event, each told in the way of its era."""
    async with talking(sample_offer(), version=V2025_11_25) as client:
        client.version = V2026_07_28
        await client.request("subscriptions/listen", listen(toolsListChanged=True), id="s")
        methods = [(message["method"], "params" in message) for message in await heard(client, ToolsChanged())]
        assert methods == [("notifications/tools/list_changed", False), ("notifications/tools/list_changed", True)]


async def test_a_listener_hears_nothing_after_its_end() -> None:
    """Not even of what happened before, where the client was too slow to be told in time."""
    limits = Limits(queued_bytes=1_000)
    async with talking(sample_offer(), version=V2026_07_28, limits=limits, client_must_read=True) as client:
        await client.request("subscriptions/listen", listen(toolsListChanged=True), id="s")
        await client.send(client.compose("tools/call", {"name": "echo", "arguments": {"text": "x" * 2_000}}, id="big"))
        await trio.testing.wait_all_tasks_blocked()
        await client.server.events.send(ToolsChanged())
        await client.end_input()
        await trio.testing.wait_all_tasks_blocked()
        assert [message.get("id") for message in await client.remaining()] == ["big", "s"]
