"""Every message that leaves the server, held against the official schema of the version in force.

The schemas are not part of this project; without them these tests are skipped.
"""

import json
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema_rs
import msgspec
import pytest

from modes_actor.actor.limits import Limits
from modes_actor.actor.subscriptions import Event, PromptsChanged, ResourcesChanged, ResourceUpdated, ToolsChanged
from modes_actor.surface.offer import Offer
from modes_actor.wire.base import LOG_LEVEL_KEY, PROTOCOL_VERSION_KEY, SERVER_INFO_KEY, SUBSCRIPTION_ID_KEY
from modes_actor.wire.completion import Completion
from modes_actor.wire.versions import (
    ALL_VERSIONS,
    HANDSHAKE_VERSIONS,
    STATELESS_VERSIONS,
    V2025_03_26,
    V2025_11_25,
    V2026_07_28,
    Era,
    Version,
)
from tests.conversation import CLIENT_INFO, PLAIN_OFFER, Conversation, Json, talking
from tests.sample_offer import sample_offer

SCHEMAS = Path(__file__).parents[2] / "shared" / "mcp-schema"

pytestmark = pytest.mark.skipif(
    not SCHEMAS.is_dir(), reason="the official schemas are not in ../shared/mcp-schema, seen from the project"
)


class Schema:
    """One version's schema, by the names of its definitions."""

    def __init__(self, version: Version) -> None:
        self._schema = json.loads((SCHEMAS / f"{version.name}.json").read_text(encoding="utf-8"))
        self._key = "$defs" if "$defs" in self._schema else "definitions"
        self.definitions: Json = self._schema[self._key]
        self._validators: dict[str, Any] = {}

    def errors(self, definition: str, value: Any) -> list[str]:
        """What is wrong with the value."""
        assert definition in self.definitions
        if definition not in self._validators:
            schema = {**self._schema, "allOf": [{"$ref": f"#/{self._key}/{definition}"}]}
            self._validators[definition] = jsonschema_rs.validator_for(schema, validate_formats=True)
        return [error.message for error in self._validators[definition].iter_errors(value)]

    def check(self, definition: str, value: Any) -> None:
        assert self.errors(definition, value) == [], (definition, value)

    def methods(self, union: str) -> dict[str, str]:
        """The members of a union of requests or notifications: method to definition."""
        names = [member["$ref"].rpartition("/")[2] for member in self.definitions.get(union, {}).get("anyOf", ())]
        return {self.definitions[name]["properties"]["method"]["const"]: name for name in names}


@cache
def schema_of(version: Version) -> Schema:
    return Schema(version)


ERRORS = {
    -32700: "ParseError",
    -32600: "InvalidRequestError",
    -32601: "MethodNotFoundError",
    -32602: "InvalidParamsError",
    -32603: "InternalError",
}
WHOLE_ERRORS = {-32021: "MissingRequiredClientCapabilityError", -32022: "UnsupportedProtocolVersionError"}
"""Of the stateless version: no other code may leave the server in it."""


def check_message(message: Any, version: Version) -> None:
    """Hold a message against everything the schema says about messages of its kind."""
    schema = schema_of(version)
    schema.check("JSONRPCMessage", message)
    older = version.name < V2025_11_25.name
    if isinstance(message, list):
        schema.check("JSONRPCBatchResponse", message)
    elif "method" in message:
        is_request = "id" in message
        schema.check("JSONRPCRequest" if is_request else "JSONRPCNotification", message)
        known = schema.methods("ServerRequest" if is_request else "ServerNotification")
        schema.check(known[message["method"]], message)
    elif "result" in message:
        schema.check("JSONRPCResponse" if older else "JSONRPCResultResponse", message)
    else:
        schema.check("JSONRPCError" if older else "JSONRPCErrorResponse", message)
        if version.era is Era.STATELESS:
            code = message["error"]["code"]
            if code in WHOLE_ERRORS:
                schema.check(WHOLE_ERRORS[code], message)
            else:
                schema.check(ERRORS[code], message["error"])


def check_result(message: Json, definition: str, version: Version) -> None:
    """Hold an answer against the result that its request should have."""
    assert "result" in message, message
    check_message(message, version)
    schema = schema_of(version)
    schema.check(definition, message["result"])
    if f"{definition}Response" in schema.definitions:
        schema.check(f"{definition}Response", message)


TO_CLIENT = {"roots/list", "sampling/createMessage", "elicitation/create"}
EVERY_CHANGE = {
    "toolsListChanged": True,
    "promptsListChanged": True,
    "resourcesListChanged": True,
    "resourceSubscriptions": ["sample://one"],
}
NAME, PROMPT = {"name": "who", "value": "x"}, {"type": "ref/prompt", "name": "greet"}
TEMPLATE = {"type": "ref/resource", "uri": "sample://{name}"}
ECHO = {"name": "echo", "arguments": {"text": "x"}}
GREET = {"name": "greet", "arguments": {"who": "you"}}
LISTS = {
    "tools/list": "ListToolsResult",
    "prompts/list": "ListPromptsResult",
    "resources/list": "ListResourcesResult",
    "resources/templates/list": "ListResourceTemplatesResult",
}
CALLS: dict[str, tuple[str, list[Json]]] = {
    **{method: (definition, [{}]) for method, definition in LISTS.items()},
    "initialize": ("InitializeResult", [{"capabilities": {}, "clientInfo": CLIENT_INFO}]),
    "ping": ("EmptyResult", [{}]),
    "server/discover": ("DiscoverResult", [{}]),
    "logging/setLevel": ("EmptyResult", [{"level": "debug"}]),
    "tools/call": ("CallToolResult", [ECHO, {"name": "everything"}, {"name": "work"}]),
    "resources/read": ("ReadResourceResult", [{"uri": "sample://one"}, {"uri": "sample://two"}]),
    "resources/subscribe": ("EmptyResult", [{"uri": "sample://one"}]),
    "resources/unsubscribe": ("EmptyResult", [{"uri": "sample://one"}]),
    "subscriptions/listen": ("SubscriptionsListenResult", [{"notifications": EVERY_CHANGE}, {"notifications": {}}]),
    "prompts/get": ("GetPromptResult", [{"name": "plain"}, GREET]),
    "completion/complete": ("CompleteResult", [{"ref": ref, "argument": NAME} for ref in (PROMPT, TEMPLATE)]),
}
"""Each request that a client can send: the definition of its result, and the params to send it with."""
CACHEABLE = {"server/discover", "resources/read", *LISTS}


def calls(version: Version) -> list[tuple[str, Json]]:
    """Every request that a client of this version can send, with its params."""
    return [
        (method, {**params, "protocolVersion": version.name} if method == "initialize" else params)
        for method in sorted(version.methods - TO_CLIENT)
        for params in CALLS[method][1]
    ]


def by_name(value: Any) -> str | None:
    return value.name if isinstance(value, Version) else value if isinstance(value, str) else None


every_version = pytest.mark.parametrize("version", ALL_VERSIONS, ids=by_name)
every_call = pytest.mark.parametrize(
    ("version", "method", "params"),
    [(version, method, params) for version in ALL_VERSIONS for method, params in calls(version)],
    ids=by_name,
)


async def answer_to(version: Version, method: str, params: Json, offer: Offer | None = None) -> Json:
    """Send one request, as the schema wants it, in a conversation of its own; check all that comes; give the answer."""
    opening = None if method == "initialize" else version
    async with talking(offer or sample_offer(), version=opening) as client:
        request = client.compose(method, params)
        schema = schema_of(version)
        schema.check(schema.methods("ClientRequest")[method], request)
        await client.send(request)
        await client.end_input()
        messages = await client.remaining()
    for message in messages:
        check_message(message, version)
    assert [message["id"] for message in messages if "method" not in message] == [request["id"]]
    answer: Json = messages[-1]
    return answer


@every_version
def test_every_request_of_the_schema_is_driven(version: Version) -> None:
    """So that no method is forgotten here, nor in the table of versions. The experimental tasks are not offered."""
    official = set(schema_of(version).methods("ClientRequest"))
    if version is V2025_11_25:
        official -= {"tasks/get", "tasks/result", "tasks/cancel", "tasks/list"}
    assert official == {method for method, _ in calls(version)}


def test_the_check_refuses_what_a_version_does_not_know() -> None:
    """A sound in the oldest, a result without its type in the newest: a check that cannot fail says nothing."""
    sound = {"content": [{"type": "audio", "data": "aGVsbG8=", "mimeType": "audio/wav"}]}
    refused = [bool(schema_of(version).errors("CallToolResult", sound)) for version in ALL_VERSIONS]
    assert refused == [True, False, False, False, True]


@every_call
async def test_a_result_is_what_the_schema_says(version: Version, method: str, params: Json) -> None:
    """Every request in every version, and all that its answer is made of."""
    check_result(await answer_to(version, method, params), CALLS[method][0], version)


@every_version
@pytest.mark.parametrize("method", LISTS)
async def test_an_empty_list_is_what_the_schema_says(method: str, version: Version) -> None:
    """A server that has nothing to offer still says so properly."""
    check_result(await answer_to(version, method, {}, PLAIN_OFFER), LISTS[method], version)


@every_version
async def test_a_page_with_more_behind_it_is_what_the_schema_says(version: Version) -> None:
    """With a cursor."""
    sample = sample_offer()
    many = list(sample.tools()) * 50
    answer = await answer_to(version, "tools/list", {}, msgspec.structs.replace(sample, tools=lambda: many))
    check_result(answer, "ListToolsResult", version)
    assert "nextCursor" in answer["result"]


@every_version
async def test_a_completion_of_many_values_is_what_the_schema_says(version: Version) -> None:
    """No more than a hundred, however many there are."""
    offer = msgspec.structs.replace(sample_offer(), complete=lambda params, context: Completion(["x"] * 101))
    answer = await answer_to(version, "completion/complete", {"ref": PROMPT, "argument": NAME}, offer)
    check_result(answer, "CompleteResult", version)
    assert answer["result"]["completion"] == {"values": ["x"] * 100, "total": 101, "hasMore": True}


@every_call
async def test_what_the_stateless_era_adds_is_there_and_nowhere_else(
    version: Version, method: str, params: Json
) -> None:
    """The type of the result and the server on every one, how long to keep it on those that may be kept."""
    result = (await answer_to(version, method, params))["result"]
    added = {"resultType", "ttlMs", "cacheScope"} & set(result)
    server = result.get("_meta", {}).get(SERVER_INFO_KEY)
    if version.era is Era.STATELESS:
        assert added == ({"resultType", "ttlMs", "cacheScope"} if method in CACHEABLE else {"resultType"})
        assert (result["resultType"], server) == ("complete", msgspec.to_builtins(sample_offer().info))
    else:
        assert (added, server) == (set(), None)


@every_version
async def test_progress_and_log_messages_are_what_the_schema_says(version: Version) -> None:
    """All that a tool says while it works, before its answer."""
    meta: Json = {"progressToken": "token"}
    async with talking(sample_offer(), version=version) as client:
        if version.era is Era.STATELESS:
            meta[LOG_LEVEL_KEY] = "debug"
        else:
            await client.result("logging/setLevel", {"level": "debug"})
        await client.send(client.compose("tools/call", {"name": "work", "_meta": meta}))
        messages = [await client.receive() for _ in range(5)]
    for message in messages:
        check_message(message, version)
    progress, log = "notifications/progress", "notifications/message"
    assert [message.get("method") for message in messages] == [progress, progress, log, log, None]


CAN: Json = {"roots": {}, "sampling": {}, "elicitation": {}}
HELLO: Json = {"role": "assistant", "content": {"type": "text", "text": "hello"}, "model": "m"}
ANN: Json = {"action": "accept", "content": {"name": "Ann"}}
ROOTS: Json = {"roots": [{"uri": "file:///project"}]}
ASKING: dict[str, tuple[str, str, Json, str]] = {
    "ask_name": ("elicitation/create", "ElicitRequest", ANN, "accept: Ann"),
    "ask_model": ("sampling/createMessage", "CreateMessageRequest", HELLO, "hello"),
    "ask_roots": ("roots/list", "ListRootsRequest", ROOTS, "file:///project"),
}
"""Tools that ask the client: with which request, how it is defined, the reply to it, what the tool says then."""


def asking(versions: tuple[Version, ...]) -> pytest.MarkDecorator:
    """Each tool that asks, in each of these versions that knows its question."""
    known = [(version, tool) for version in versions for tool in ASKING if ASKING[tool][0] in version.methods]
    return pytest.mark.parametrize(("version", "tool"), known, ids=by_name)


@asking(HANDSHAKE_VERSIONS)
async def test_a_request_to_the_client_is_what_the_schema_says(version: Version, tool: str) -> None:
    """And so is the answer to the request that it was made for."""
    method, definition, reply, said = ASKING[tool]
    async with talking(sample_offer(), version=version, capabilities=CAN) as client:
        asked = await client.request("tools/call", {"name": tool})
        await client.send({"jsonrpc": "2.0", "id": asked["id"], "result": reply})
        answer = await client.receive()
    check_message(asked, version)
    schema_of(version).check(definition, asked)
    check_result(answer, "CallToolResult", version)
    assert (asked["method"], answer["result"]["content"][0]["text"]) == (method, said)


@asking(STATELESS_VERSIONS)
async def test_a_result_that_asks_the_client_is_what_the_schema_says(version: Version, tool: str) -> None:
    """And so is the one that comes when the request is sent again with what was asked for."""
    method, definition, reply, said = ASKING[tool]
    async with talking(sample_offer(), version=version, capabilities=CAN) as client:
        asked = await client.request("tools/call", {"name": tool})
        check_result(asked, "InputRequiredResult", version)
        [(key, question)] = asked["result"]["inputRequests"].items()
        schema_of(version).check(definition, question)
        answer = await client.request("tools/call", {"name": tool, "inputResponses": {key: reply}})
    check_result(answer, "CallToolResult", version)
    assert (asked["result"]["resultType"], SERVER_INFO_KEY in asked["result"]["_meta"]) == ("input_required", True)
    assert (question["method"], answer["result"]["content"][0]["text"]) == (method, said)


@pytest.mark.parametrize("version", HANDSHAKE_VERSIONS, ids=by_name)
async def test_taking_a_question_back_is_what_the_schema_says(version: Version) -> None:
    """The client cancels its request, and the server what it asked on its behalf."""
    async with talking(sample_offer(), version=version, capabilities=CAN) as client:
        asked = await client.request("tools/call", {"name": "ask_roots"}, id="cancelled")
        cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "cancelled"}}
        await client.send(cancel)
        taken_back = await client.receive()
    check_message(taken_back, version)
    assert (taken_back["method"], taken_back["params"]["requestId"]) == ("notifications/cancelled", asked["id"])


FAULTS: dict[str, tuple[str, Json, int, int]] = {
    "unknown method": ("no/such", {}, -32601, -32601),
    "method of the other side": ("roots/list", {}, -32601, -32601),
    "invalid params": ("tools/call", {"name": 5}, -32602, -32602),
    "unknown tool": ("tools/call", {"name": "no such"}, -32602, -32602),
    "unknown prompt": ("prompts/get", {"name": "no such"}, -32602, -32602),
    "missing prompt argument": ("prompts/get", {"name": "greet"}, -32602, -32602),
    "bad cursor": ("tools/list", {"cursor": "no such"}, -32602, -32602),
    "unknown resource": ("resources/read", {"uri": "sample://none"}, -32002, -32602),
    "missing capability": ("tools/call", {"name": "ask_roots"}, -32600, -32021),
    "crash": ("tools/call", {"name": "crash"}, -32603, -32603),
    "crash while waiting": ("tools/call", {"name": "crash_later"}, -32603, -32603),
    "result that cannot be encoded": ("tools/call", {"name": "unencodable"}, -32603, -32603),
}


@every_version
@pytest.mark.parametrize("fault", FAULTS)
async def test_an_error_is_what_the_schema_says(fault: str, version: Version) -> None:
    """With the code that the era has for it."""
    method, params, *codes = FAULTS[fault]
    async with talking(sample_offer(), version=version) as client:
        answer = await client.request(method, params, id=fault)
    check_message(answer, version)
    assert (answer["id"], answer["error"]["code"]) == (fault, codes[version.era is Era.STATELESS])


@every_version
async def test_a_tools_own_error_is_what_the_schema_says(version: Version) -> None:
    """An error in the handshake era, a result in the stateless one."""
    async with talking(sample_offer(), version=version) as client:
        answer = await client.request("tools/call", {"name": "echo", "arguments": {}})
    if version.era is Era.STATELESS:
        check_result(answer, "CallToolResult", version)
        assert answer["result"]["isError"] is True
    else:
        check_message(answer, version)
        assert answer["error"]["code"] == -32004


@pytest.mark.parametrize("requested", ["1999-01-01", V2025_11_25.name, 5, [], True])
async def test_an_unsupported_version_is_refused_as_the_schema_says(requested: Any) -> None:
    """Whatever was put in the version's place."""
    async with talking(sample_offer(), version=V2026_07_28) as client:
        answer = await client.request("tools/list", {"_meta": {PROTOCOL_VERSION_KEY: requested}})
    check_message(answer, V2026_07_28)
    assert (answer["error"]["code"], answer["error"]["data"]["supported"]) == (-32022, [V2026_07_28.name])


UNREADABLE = {
    "parse error": (b"{", -32700),
    "no UTF-8": (b"\xff", -32700),
    "no object": (b"5", -32600),
    "empty array": (b"[]", -32600),
    "null id": (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600),
    "too long": (b"x" * 5000, -32600),
}


@every_version
@pytest.mark.parametrize("fault", UNREADABLE)
async def test_an_error_without_an_id_is_what_the_schema_says_but_for_the_null(fault: str, version: Version) -> None:
    """The one stated exception: older versions get `id: null`, which no schema allows; all else about it is right."""
    line, code = UNREADABLE[fault]
    async with talking(sample_offer(), version=version, limits=Limits(line_bytes=4096)) as client:
        await client.result("tools/list")
        await client.send_bytes(line + b"\n")
        answer = await client.receive()
    assert answer["error"]["code"] == code
    if version.null_ids:
        assert schema_of(version).errors("JSONRPCMessage", answer) != []
        assert answer.pop("id") is None
        answer["id"] = 0
    else:
        assert "id" not in answer
    check_message(answer, version)


EVENTS: dict[str, Event] = {
    "notifications/tools/list_changed": ToolsChanged(),
    "notifications/prompts/list_changed": PromptsChanged(),
    "notifications/resources/list_changed": ResourcesChanged(),
    "notifications/resources/updated": ResourceUpdated("sample://one"),
}


async def hear_of_everything(client: Conversation, version: Version) -> Json:
    """Subscribe in the version's own way; what comes back."""
    if version.era is Era.STATELESS:
        return await client.request("subscriptions/listen", {"notifications": EVERY_CHANGE}, id="stream")
    return await client.request("resources/subscribe", {"uri": "sample://one"})


@every_version
@pytest.mark.parametrize("method", EVENTS)
async def test_news_of_a_change_is_what_the_schema_says(method: str, version: Version) -> None:
    """In the stateless era on its stream, which it names."""
    async with talking(sample_offer(), version=version) as client:
        await hear_of_everything(client, version)
        await client.server.events.send(EVENTS[method])
        news = await client.receive()
    check_message(news, version)
    stream = news.get("params", {}).get("_meta", {}).get(SUBSCRIPTION_ID_KEY)
    assert (news["method"], stream) == (method, "stream" if version.era is Era.STATELESS else None)


async def test_a_stream_is_acknowledged_and_ended_as_the_schema_says() -> None:
    """The acknowledgement first; the result when the input ends."""
    async with talking(sample_offer(), version=V2026_07_28) as client:
        acknowledged = await hear_of_everything(client, V2026_07_28)
        await client.end_input()
        [ended] = await client.remaining()
    check_message(acknowledged, V2026_07_28)
    schema_of(V2026_07_28).check("SubscriptionsAcknowledgedNotification", acknowledged)
    assert acknowledged["params"] == {"notifications": EVERY_CHANGE, "_meta": {SUBSCRIPTION_ID_KEY: "stream"}}
    check_result(ended, "SubscriptionsListenResult", V2026_07_28)
    assert (ended["id"], ended["result"]["_meta"][SUBSCRIPTION_ID_KEY]) == ("stream", "stream")


async def test_the_answers_to_an_array_are_what_the_schema_says() -> None:
    """In the one version that has them: results and errors in one array, the null id again the exception."""
    async with talking(sample_offer(), version=V2025_03_26) as client:
        slow = client.compose("resources/read", {"uri": "sample://two"})
        requests = [client.compose("ping"), client.compose("no/such"), slow]
        await client.send([*requests, {"jsonrpc": "2.0", "method": "notifications/initialized"}])
        answers = await client.receive()
        await client.send([client.compose("ping", id=7), 5])
        with_null = await client.receive()
    check_message(answers, V2025_03_26)
    assert [answer["id"] for answer in answers] == [request["id"] for request in requests]
    assert schema_of(V2025_03_26).errors("JSONRPCBatchResponse", with_null) != []
    assert [answer["id"] for answer in with_null] == [7, None]
    check_message([{**answer, "id": 7} for answer in with_null], V2025_03_26)
