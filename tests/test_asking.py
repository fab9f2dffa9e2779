"""Asking the client for something: as a request in the handshake era, as `input_required` in the stateless one."""

import pytest
import trio
import trio.testing

from modes_actor.wire.versions import V2025_03_26, V2025_06_18, V2026_07_28, Version
from tests.conversation import Json, talking
from tests.sample_offer import sample_offer

ELICITATION: Json = {"elicitation": {}}
FORM = {
    "message": "Who are you?",
    "requestedSchema": {
        "type": "object",
        "properties": {"name": {"type": "string", "title": "Your name"}},
        "required": ["name"],
    },
}


async def test_a_handler_asks_and_gets_the_clients_answer() -> None:
    """The request goes out, the answer comes in, the tool goes on."""
    async with talking(sample_offer(), capabilities=ELICITATION) as client:
        asked = await client.request("tools/call", {"name": "ask_name"}, id="call")
        assert asked == {"jsonrpc": "2.0", "id": 1, "method": "elicitation/create", "params": FORM}
        await client.send({"jsonrpc": "2.0", "id": 1, "result": {"action": "accept", "content": {"name": "Ada"}}})
        answer = await client.receive()
        assert (answer["id"], answer["result"]["content"][0]["text"]) == ("call", "accept: Ada")


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        ({"error": {"code": -1, "message": "no"}}, "The client refused elicitation/create: no"),
        ({"error": 5}, "The client refused elicitation/create: it gave no reason"),
        ({"result": {"action": "dance"}}, "The client's answer to elicitation/create makes no sense"),
        ({"result": 5}, "The client's answer to elicitation/create makes no sense"),
    ],
)
async def test_an_answer_that_is_none_ends_the_request_with_an_error(reply: Json, message: str) -> None:
    """A refusal, or something that does not fit: the request fails, the server does not."""
    async with talking(sample_offer(), capabilities=ELICITATION) as client:
        asked = await client.request("tools/call", {"name": "ask_name"})
        await client.send({"jsonrpc": "2.0", "id": asked["id"], **reply})
        error = (await client.receive())["error"]
        assert error["code"] == -32603
        assert error["message"].startswith(message)


async def test_a_client_that_never_answers_is_given_up(autojump_clock: trio.testing.MockClock) -> None:
    """Our request is cancelled, theirs fails as retryable, and an answer that comes too late is dropped."""
    async with talking(sample_offer(), capabilities=ELICITATION) as client:
        asked = await client.request("tools/call", {"name": "ask_name"}, id="call")
        cancelled, answer = await client.receive(), await client.receive()
        assert cancelled["method"] == "notifications/cancelled"
        assert cancelled["params"]["requestId"] == asked["id"]
        assert answer["error"] == {
            "code": -32603,
            "message": "The client did not answer elicitation/create within 30 seconds",
            "data": {"retryable": True},
        }
        assert trio.current_time() >= 30
        await client.send({"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "accept"}})
        assert await client.result("ping") == {}


async def test_cancelling_the_request_cancels_what_it_asked() -> None:
    """The person should not be asked on behalf of nobody."""
    async with talking(sample_offer(), capabilities=ELICITATION) as client:
        asked = await client.request("tools/call", {"name": "ask_name"}, id="call")
        await client.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "call"}})
        told = await client.receive()
        assert (told["method"], told["params"]["requestId"]) == ("notifications/cancelled", asked["id"])
        assert await client.result("ping") == {}


@pytest.mark.parametrize("version", [V2025_06_18, V2026_07_28], ids=lambda version: version.name)
async def test_a_capability_that_was_not_declared_is_not_used(version: Version) -> None:
    """The stateless era has a code of its own for it; both say what would be needed."""
    async with talking(sample_offer(), version=version, capabilities={"roots": {}}) as client:
        error = await client.error("tools/call", {"name": "ask_name"})
        assert error == {
            "code": -32021 if version is V2026_07_28 else -32600,
            "message": "This request needs elicitation/create, which the client did not declare",
            "data": {"requiredCapabilities": {"elicitation": {}}},
        }


async def test_what_a_version_does_not_know_is_not_sent_even_when_it_is_declared() -> None:
    """Elicitation came with 2025-06-18."""
    async with talking(sample_offer(), version=V2025_03_26, capabilities=ELICITATION) as client:
        assert (await client.error("tools/call", {"name": "ask_name"}))["code"] == -32600


async def test_a_stateless_request_ends_as_input_required_and_is_sent_again_with_the_answer() -> None:
    """No waiting, no server request: the handler runs anew with what the client says."""
    async with talking(sample_offer(), version=V2026_07_28, capabilities=ELICITATION) as client:
        result = await client.result("tools/call", {"name": "ask_name"})
        result.pop("_meta")
        assert result == {
            "resultType": "input_required",
            "inputRequests": {"name": {"method": "elicitation/create", "params": FORM}},
        }
        responses = {"name": {"action": "accept", "content": {"name": "Ada"}}}
        again = await client.result("tools/call", {"name": "ask_name", "inputResponses": responses})
        assert (again["resultType"], again["content"][0]["text"]) == ("complete", "accept: Ada")


async def test_an_answer_under_another_name_is_asked_for_again() -> None:
    """Only what was asked for counts."""
    async with talking(sample_offer(), version=V2026_07_28, capabilities=ELICITATION) as client:
        responses = {"other": {"action": "accept"}}
        result = await client.result("tools/call", {"name": "ask_name", "inputResponses": responses})
        assert result["resultType"] == "input_required"


async def test_of_two_answers_to_one_request_the_first_counts() -> None:
    """Also when both come at once."""
    async with talking(sample_offer(), capabilities=ELICITATION) as client:
        asked = await client.request("tools/call", {"name": "ask_name"}, id="call")
        yes = {"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "accept", "content": {"name": "Ada"}}}
        no = {"jsonrpc": "2.0", "id": asked["id"], "error": {"code": -1, "message": "no"}}
        await client.send(yes, no)
        assert (await client.receive())["result"]["content"][0]["text"] == "accept: Ada"


async def test_an_answer_whose_error_is_null_is_no_refusal() -> None:
    """Some libraries always write both members."""
    async with talking(sample_offer(), capabilities=ELICITATION) as client:
        asked = await client.request("tools/call", {"name": "ask_name"}, id="call")
        await client.send({"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "decline"}, "error": None})
        assert (await client.receive())["result"]["content"][0]["text"] == "decline: None"
