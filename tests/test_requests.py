"""Requests, their handlers and their answers: one answer each, the right error, and nothing else disturbed."""

import logging
from typing import Any

import pytest
import trio
import trio.testing

from modes_actor.actor import processor
from modes_actor.actor.context import RequestContext
from modes_actor.surface.offer import Offer, OfferedTool
from modes_actor.wire.base import LOG_LEVEL_KEY, Implementation
from modes_actor.wire.tools import CallToolResult
from modes_actor.wire.versions import ALL_VERSIONS, V2025_11_25, V2026_07_28, Version
from tests.conversation import Json, talking
from tests.sample_offer import Gate, NoArguments, sample_offer, text, tool


@pytest.mark.parametrize("id", [1, 0, -7, 2**70, "", "1", "ünïcode \U0001f600", "a\u0000b"])
async def test_an_id_comes_back_exactly_as_it_was_sent(id: Any) -> None:
    """Strings stay strings and integers stay integers, of any size."""
    async with talking() as client:
        assert await client.request("ping", id=id) == {"jsonrpc": "2.0", "id": id, "result": {}}


async def test_requests_that_never_wait_are_answered_in_order() -> None:
    """However many come at once."""
    async with talking(sample_offer()) as client:
        await client.send(
            *(client.compose("tools/call", {"name": "echo", "arguments": {"text": "x"}}, id=n) for n in range(500))
        )
        assert [(await client.receive())["id"] for _ in range(500)] == list(range(500))


async def test_a_request_that_waits_does_not_hold_up_the_others() -> None:
    """The slow one is answered last although it came first."""
    gate = Gate()
    async with talking(sample_offer(gate)) as client:
        await client.send(client.compose("tools/call", {"name": "wait"}, id="slow"), client.compose("ping", id="fast"))
        first = await client.receive()
        gate.opened.set()
        assert [first["id"], (await client.receive())["id"]] == ["fast", "slow"]


@pytest.mark.parametrize("version", ALL_VERSIONS, ids=lambda version: version.name)
@pytest.mark.parametrize("tool", ["crash", "crash_later", "unencodable"])
async def test_a_handler_that_fails_gives_an_internal_error_without_details(
    tool: str, version: Version, caplog: pytest.LogCaptureFixture
) -> None:
    """The client learns nothing of the inside; the log has it; the next request works."""
    async with talking(sample_offer(), version=version) as client:
        with caplog.at_level(logging.ERROR):
            error = await client.error("tools/call", {"name": tool})
        assert error == {"code": -32603, "message": "Internal error: the server's log has the details"}
        assert "Traceback" in caplog.text
        assert await client.result("tools/list")


async def test_the_only_error_of_a_handlers_own_nursery_is_the_error_of_the_request() -> None:
    """Trio raises it in a group; the client should not notice."""
    async with talking(sample_offer()) as client:
        error = await client.error("tools/call", {"name": "refuse_in_nursery"})
        assert error == {"code": -32602, "message": "not like this"}


@pytest.mark.parametrize(
    ("method", "params", "field", "expected"),
    [
        ("tools/call", {}, "name", "a value"),
        ("tools/call", {"name": 5}, "name", "str"),
        ("tools/call", [], "params", "object"),
        ("tools/call", "x", "params", "object"),
        ("tools/call", None, "params", "object"),
        ("tools/call", {"name": "nope"}, "name", None),
        ("tools/list", {"cursor": 1}, "cursor", "str | null"),
        ("tools/list", {"_meta": 1}, "_meta", "object | null"),
        ("tools/list", {"_meta": {"progressToken": 1.5}}, "_meta.progressToken", None),
        ("resources/read", {}, "uri", "a value"),
        ("prompts/get", {"name": "nope"}, "name", "plain, greet"),
        ("prompts/get", {"name": "greet"}, "arguments.who", "str"),
        ("prompts/get", {"name": "greet", "arguments": {"who": 1}}, "arguments[...]", "str"),
        ("completion/complete", {"ref": {"type": "ref/x"}, "argument": {}}, "ref.type", None),
        ("logging/setLevel", {"level": "loud"}, "level", None),
        ("initialize", {"protocolVersion": "x", "capabilities": {}}, "clientInfo", "a value"),
    ],
)
async def test_params_of_the_wrong_shape_name_the_member_and_what_was_expected(
    method: str, params: Any, field: str, expected: str | None
) -> None:
    """-32602, with the details for programs in `data` and a whole sentence in `message`."""
    async with talking(sample_offer()) as client:
        await client.send({"jsonrpc": "2.0", "id": "x", "method": method, "params": params})
        error = (await client.receive())["error"]
        assert (error["code"], error["data"]["field"]) == (-32602, field)
        assert field.split(".")[-1].split("[")[0] in error["message"] or "Unknown" in error["message"]
        if expected is not None:
            assert error["data"]["expected"] == expected


WRONG_ARGUMENTS = [
    ({}, "echo: `text` is missing"),
    ({"text": 1}, "echo: `text` must be str, not int"),
    ([1], "echo: `arguments` must be object, not array"),
]


@pytest.mark.parametrize(("arguments", "sentence"), WRONG_ARGUMENTS)
async def test_wrong_arguments_of_a_tool_are_a_validation_error(arguments: Any, sentence: str) -> None:
    """In the handshake era a number of our own, with the tool, the parameter and what was expected of it."""
    async with talking(sample_offer()) as client:
        error = await client.error("tools/call", {"name": "echo", "arguments": arguments})
        assert error == {"code": -32004, "message": f"Validation error: {sentence}", "data": sentence}


@pytest.mark.parametrize(("arguments", "sentence"), WRONG_ARGUMENTS)
async def test_wrong_arguments_of_a_tool_are_a_result_in_the_stateless_era(arguments: Any, sentence: str) -> None:
    """One that a model can read, and a program, too."""
    async with talking(sample_offer(), version=V2026_07_28) as client:
        result = await client.result("tools/call", {"name": "echo", "arguments": arguments})
        message = f"Validation error: {sentence}"
        assert (result["isError"], result["content"]) == (True, [{"type": "text", "text": message}])
        assert result["structuredContent"] == {
            "error": {"code": -32004, "name": "ValidationFailed", "message": message}
        }


@pytest.mark.parametrize(
    ("version", "code"), [(V2025_11_25, -32002), (V2026_07_28, -32602)], ids=["handshake", "stateless"]
)
async def test_a_resource_nobody_has_is_not_found_by_the_eras_own_code(version: Version, code: int) -> None:
    """The stateless era gave up the old code."""
    async with talking(sample_offer(), version=version) as client:
        error = await client.error("resources/read", {"uri": "sample://none"})
        assert error == {"code": code, "message": "Resource not found: sample://none", "data": {"uri": "sample://none"}}


async def test_an_offer_of_nothing_still_answers_every_list() -> None:
    """Empty lists, no errors: what is declared is served."""
    async with talking() as client:
        methods = ["tools/list", "resources/list", "resources/templates/list", "prompts/list"]
        assert [await client.result(method) for method in methods] == [
            {"tools": []},
            {"resources": []},
            {"resourceTemplates": []},
            {"prompts": []},
        ]
        assert (await client.error("resources/read", {"uri": "a://b"}))["code"] == -32002
        ref = {"ref": {"type": "ref/prompt", "name": "x"}, "argument": {"name": "a", "value": ""}}
        assert await client.result("completion/complete", ref) == {"completion": {"values": []}}


async def test_an_id_in_flight_cannot_be_used_again() -> None:
    """The second is refused; the first is answered all the same."""
    gate = Gate()
    async with talking(sample_offer(gate)) as client:
        waiting = client.compose("tools/call", {"name": "wait"}, id=7)
        await client.send(waiting, waiting, client.compose("ping", id=7))
        refused = [await client.receive(), await client.receive()]
        gate.opened.set()
        answer = await client.receive()
        assert [(message["id"], message["error"]["code"]) for message in refused] == [(7, -32600), (7, -32600)]
        assert (answer["id"], answer["result"]["content"][0]["text"]) == (7, "waited")


async def test_an_id_can_be_used_again_once_it_was_answered() -> None:
    """Nothing remembers it."""
    gate = Gate()
    gate.opened.set()
    async with talking(sample_offer(gate)) as client:
        answers = [await client.request("tools/call", {"name": "wait"}, id=7) for _ in range(2)]
        assert ["result" in answer for answer in answers] == [True, True]


async def test_progress_is_reported_only_to_who_asked_and_only_when_it_grows() -> None:
    """The token comes back; the step that repeats is left out; everything comes before the answer."""
    async with talking(sample_offer()) as client:
        await client.send(client.compose("tools/call", {"name": "work", "_meta": {"progressToken": "t"}}, id=1))
        messages = [await client.receive() for _ in range(4)]
        params = [message["params"] for message in messages if message.get("method") == "notifications/progress"]
        assert params == [
            {"progressToken": "t", "progress": 1.0, "total": 2.0, "message": "step 1"},
            {"progressToken": "t", "progress": 2.0, "total": 2.0, "message": "step 2"},
        ]
        assert messages[-1]["id"] == 1


@pytest.mark.parametrize(
    ("level", "heard"),
    [(None, ["error"]), ("debug", ["debug", "error"]), ("error", ["error"]), ("emergency", [])],
)
async def test_log_messages_honour_the_level_that_was_set(level: str | None, heard: list[str]) -> None:
    """Before `logging/setLevel`, warnings and worse are sent."""
    async with talking(sample_offer()) as client:
        if level is not None:
            await client.result("logging/setLevel", {"level": level})
        assert [params["level"] for params in await logged(client, {"name": "work"})] == heard


@pytest.mark.parametrize(("level", "heard"), [(None, []), ("debug", ["debug", "error"]), ("notice", ["error"])])
async def test_a_stateless_request_names_its_own_log_level(level: str | None, heard: list[str]) -> None:
    """Without one it gets no log messages at all."""
    async with talking(sample_offer(), version=V2026_07_28) as client:
        meta = {} if level is None else {"_meta": {LOG_LEVEL_KEY: level}}
        assert [params["level"] for params in await logged(client, {"name": "work", **meta})] == heard


async def logged(client: Any, params: Json) -> list[Json]:
    """The log messages that come before the answer to a tool call."""
    await client.send(client.compose("tools/call", params, id="call"))
    messages = []
    while (message := await client.receive()).get("id") != "call":
        messages.append(message)
    return [message["params"] for message in messages if message["method"] == "notifications/message"]


async def test_notifications_and_stray_responses_are_never_answered() -> None:
    """Known, unknown, malformed: the next thing that comes is the answer to the next request."""
    async with talking() as client:
        await client.send(
            {"jsonrpc": "2.0", "method": "notifications/initialized"},
            {"jsonrpc": "2.0", "method": "notifications/roots/list_changed"},
            {"jsonrpc": "2.0", "method": "notifications/no/such"},
            {"jsonrpc": "2.0", "method": "ping"},
            {"jsonrpc": "2.0", "method": "tools/call", "params": 5},
            {"jsonrpc": "2.0", "method": "notifications/cancelled"},
            {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1.5}},
            {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "unknown"}},
            {"jsonrpc": "2.0", "id": 99, "result": {}},
            {"jsonrpc": "2.0", "id": None, "error": {"code": 1, "message": "x"}},
        )
        assert (await client.request("ping", id="next"))["id"] == "next"


@pytest.mark.parametrize(
    ("message", "id"),
    [
        ({"jsonrpc": "2.0", "id": 5}, 5),
        ({"jsonrpc": "2.0"}, None),
        ({"jsonrpc": "2.0", "id": None, "method": "ping"}, None),
        ({"jsonrpc": "2.0", "id": 1.5, "method": "ping"}, None),
        ({"jsonrpc": "2.0", "id": True, "method": "ping"}, None),
        ({"jsonrpc": "2.0", "id": [], "method": "ping"}, None),
        ({"jsonrpc": "1.0", "id": 5, "method": "ping"}, 5),
        ({"id": "a", "method": "ping"}, "a"),
        ({"jsonrpc": "2.0", "id": 5, "method": 5}, 5),
        ({"jsonrpc": "2.0", "method": None}, None),
        ({}, None),
        (5, None),
        ("ping", None),
        (None, None),
        ([], None),
        ([{"jsonrpc": "2.0", "id": 1, "method": "ping"}], None),
    ],
)
async def test_json_that_is_no_request_is_an_invalid_request(message: Any, id: Any) -> None:
    """-32600, with the id when it can be read; and the next request works."""
    async with talking() as client:
        await client.send(message)
        answer = await client.receive()
        assert (answer["error"]["code"], answer.get("id")) == (-32600, id)
        assert await client.result("ping") == {}


async def test_cancelling_a_request_stops_its_work_and_it_gets_no_answer() -> None:
    """The handler is cancelled where it waits."""
    gate = Gate()
    async with talking(sample_offer(gate)) as client:
        await client.send(client.compose("tools/call", {"name": "wait"}, id="unwanted"))
        await trio.testing.wait_all_tasks_blocked()
        await client.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "unwanted"}})
        await trio.testing.wait_all_tasks_blocked()
        assert (gate.entered, gate.cancelled) == (1, 1)
        gate.opened.set()
        assert (await client.request("ping", id="next"))["id"] == "next"


async def test_a_handler_that_fails_while_it_is_cancelled_harms_nobody() -> None:
    """Its error comes out of the cancelled scope, together with the cancellation."""
    async with talking(sample_offer()) as client:
        await client.send(client.compose("tools/call", {"name": "crash_when_cancelled"}, id=1))
        await trio.testing.wait_all_tasks_blocked()
        await client.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})
        await trio.testing.wait_all_tasks_blocked()
        assert (await client.request("ping", id="next"))["id"] == "next"


async def test_a_cancelled_id_is_free_again() -> None:
    """Cancelled and asked anew in one breath: the new one is answered."""
    gate = Gate()
    async with talking(sample_offer(gate)) as client:
        await client.send(client.compose("tools/call", {"name": "wait"}, id=1))
        await trio.testing.wait_all_tasks_blocked()
        await client.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})
        await trio.testing.wait_all_tasks_blocked()
        assert await client.request("ping", id=1) == {"jsonrpc": "2.0", "id": 1, "result": {}}


async def test_ids_of_different_types_are_different_requests() -> None:
    """Cancelling "1" does not cancel 1."""
    gate = Gate()
    async with talking(sample_offer(gate)) as client:
        await client.send(
            client.compose("tools/call", {"name": "wait"}, id=1),
            {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "1"}},
        )
        await trio.testing.wait_all_tasks_blocked()
        gate.opened.set()
        assert (await client.receive())["id"] == 1


async def test_arguments_that_are_null_are_as_good_as_none() -> None:
    """Null means not set."""
    async with talking(sample_offer()) as client:
        result = await client.result("tools/call", {"name": "who", "arguments": None})
        assert "a test in 2025-11-25" in result["content"][0]["text"]


async def test_a_new_log_level_counts_for_what_is_running_too() -> None:
    """Else a person who turns the noise off goes on hearing it."""
    gate = Gate()
    logs = trio.Event()

    async def wait_and_log(arguments: NoArguments, context: RequestContext) -> CallToolResult:
        logs.set()
        await gate.opened.wait()
        await context.log("error", "a problem")
        return text("done")

    offer = Offer(info=Implementation("x", "1"), tools=lambda: [OfferedTool(tool("log"), NoArguments, wait_and_log)])
    async with talking(offer) as client:
        await client.send(client.compose("tools/call", {"name": "log"}, id="call"))
        await logs.wait()
        await client.result("logging/setLevel", {"level": "emergency"})
        gate.opened.set()
        assert (await client.receive())["id"] == "call"


async def test_a_handler_that_outlives_its_request_says_nothing_more_in_its_name() -> None:
    """Progress after the answer would belong to nobody."""
    kept: list[RequestContext] = []

    async def keep(arguments: NoArguments, context: RequestContext) -> CallToolResult:
        kept.append(context)
        return text("kept")

    offer = Offer(info=Implementation("x", "1"), tools=lambda: [OfferedTool(tool("keep"), NoArguments, keep)])
    async with talking(offer) as client:
        await client.result("tools/call", {"name": "keep", "_meta": {"progressToken": 1}})
        await kept[0].report_progress(1)
        await kept[0].log("emergency", "too late")
        assert await client.result("ping") == {}


async def test_what_a_notification_leads_to_may_fail_and_harms_nobody(caplog: pytest.LogCaptureFixture) -> None:
    """Nobody is told but the log."""

    async def fails() -> None:
        await trio.lowlevel.checkpoint()
        raise RuntimeError("no roots")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(processor._aside, fails())
    assert "what a notification led to failed" in caplog.text
    assert "no roots" in caplog.text
