"""What becomes of each line between a client and the servers that follow one another: a pure core, without any I/O."""

from typing import Any

import msgspec
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from modes_actor.supervising import ledger, standing
from modes_actor.supervising.ledger import Ledger, Owed
from modes_actor.supervising.relay import Relay
from tests.conversation import CLIENT_INFO, Json
from tests.process import answer, lines, messages_in, ping, request

GONE = "The server has gone"


def opened(version: str = "2025-11-25", capabilities: Json | None = None) -> Relay:
    """A relay whose client and server have shaken hands."""
    relay = Relay()
    params = {"protocolVersion": version, "capabilities": {}, "clientInfo": CLIENT_INFO}
    relay.from_client(lines(request("open", "initialize", params)))
    result = {"protocolVersion": version, "capabilities": capabilities or {}, "serverInfo": CLIENT_INFO}
    relay.from_server(lines(answer("open", **result)))
    relay.from_client(lines(notification("notifications/initialized")))
    return relay


def notification(method: str, **params: Any) -> Json:
    return {"jsonrpc": "2.0", "method": method, "params": params}


def cancelled(request_id: int | str) -> Json:
    return notification("notifications/cancelled", requestId=request_id)


def retryable(request_id: int | str, message: str = GONE) -> Json:
    error = {"code": -32603, "message": message, "data": {"retryable": True}}
    return {"jsonrpc": "2.0", "id": request_id, "error": error}


def sent(relay: Relay, *messages: Any) -> list[Any]:
    """What a server gets of what a client says."""
    return messages_in(_ended(relay.from_client(lines(*messages))))


def heard(relay: Relay, *messages: Any) -> list[Any]:
    """What a client gets of what a server says."""
    return messages_in(_ended(relay.from_server(lines(*messages)).lines))


def gone(relay: Relay) -> list[Any]:
    return messages_in(_ended(relay.server_gone(GONE)))


def _ended(block: bytes) -> bytes:
    return block + b"\n" if block else block


@pytest.mark.parametrize(
    "line",
    [
        b'{ "id" : 1, "method":"tools/list" , "jsonrpc":"2.0", "unknown": [1.50] }',
        b'\xef\xbb\xbf{"jsonrpc":"2.0","id":1,"method":"ping"}\r',
        b'{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}',
        b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}',
        b"what is this?",
        b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]',
    ],
)
def test_a_line_passes_as_it_is_written(line: bytes) -> None:
    """In both directions: whether it makes sense is for its receiver to say."""
    assert Relay().from_client(line + b"\n") == line
    assert Relay().from_server(line + b"\n").lines == line


def test_what_a_server_owed_when_it_went_is_answered_by_an_error_once() -> None:
    """And what it had answered is not."""
    relay = opened()
    assert sent(relay, ping(1), ping("1"), ping(2)) == [ping(1), ping("1"), ping(2)]
    assert heard(relay, answer(1)) == [answer(1)]
    assert (gone(relay), gone(relay)) == ([retryable("1"), retryable(2)], [])


def test_a_request_that_was_cancelled_is_not_answered() -> None:
    """The server is told, and no error comes when it goes."""
    relay = opened()
    sent(relay, ping(1), ping(2))
    assert sent(relay, cancelled(1)) == [cancelled(1)]
    assert gone(relay) == [retryable(2)]


def test_a_server_does_not_hear_that_what_its_predecessor_had_is_cancelled() -> None:
    """It might have a request of that id."""
    relay = opened()
    sent(relay, ping(1))
    gone(relay)
    assert sent(relay, cancelled(1)) == []


def test_initialize_cannot_be_cancelled() -> None:
    """A server answers it all the same, and the client is answered if that one goes."""
    relay = Relay()
    sent(relay, request(1, "initialize"), cancelled(1))
    assert gone(relay) == [retryable(1)]


def test_two_requests_with_one_id_are_owed_two_answers() -> None:
    """The second is refused by the server; the first stays owed."""
    relay = opened()
    sent(relay, ping(1), ping(1))
    refused = {"jsonrpc": "2.0", "id": 1, "error": {"code": -32600, "message": "in use"}}
    assert heard(relay, refused) == [refused]
    assert gone(relay) == [retryable(1)]


def test_a_message_that_is_no_request_but_has_an_id_is_owed_an_answer() -> None:
    """The server would have said what is wrong with it."""
    relay = opened()
    sent(relay, {"id": 1, "method": "ping"}, {"jsonrpc": "2.0", "id": 2})
    assert gone(relay) == [retryable(1), retryable(2)]


def test_requests_of_one_array_are_answered_in_one_array() -> None:
    """As far as they were not answered before."""
    relay = opened("2025-03-26")
    sent(relay, [ping(1), ping(2), cancelled(9), ping(3)], ping(4))
    assert heard(relay, [answer(2)]) == [[answer(2)]]
    assert gone(relay) == [retryable(4), [retryable(1), retryable(3)]]


def test_where_arrays_mean_nothing_their_requests_are_owed_nothing() -> None:
    """The server refuses the whole, without any id."""
    relay = opened("2025-11-25")
    sent(relay, [ping(1)])
    assert gone(relay) == []


def test_only_what_must_not_pass_is_taken_out_of_an_array() -> None:
    """The rest goes on."""
    relay = opened("2025-03-26")
    assert sent(relay, [answer("late"), ping(1)]) == [[ping(1)]]
    assert sent(relay, [answer("late")]) == []


def test_the_supervisors_own_requests_are_answered_to_it_alone() -> None:
    """A client never sees them, but they are signs of life, as are answers to the client."""
    relay = opened()
    request_id, line = relay.own_request("ping")
    found = relay.from_server(lines(answer(request_id), notification("notifications/message")))
    assert msgspec.json.decode(line) == ping(request_id)
    assert [each.id for each in found.own] == [request_id]
    assert (found.answered, messages_in(_ended(found.lines))) == (True, [notification("notifications/message")])


def test_what_is_no_answer_is_no_sign_of_life() -> None:
    """A server may go on telling its log while it does not listen any more."""
    relay = opened()
    assert not relay.from_server(lines(notification("notifications/message"), request(1, "roots/list"))).answered


# What servers ask the client.


def test_the_client_answers_the_server_that_asked() -> None:
    """With the ids that this one has chosen."""
    relay = opened()
    assert heard(relay, request(1, "roots/list")) == [request(1, "roots/list")]
    assert sent(relay, answer(1, roots=[])) == [answer(1, roots=[])]


def test_a_second_answer_or_one_to_nothing_does_not_pass() -> None:
    """The server is not waiting for it."""
    relay = opened()
    heard(relay, request(1, "roots/list"))
    sent(relay, answer(1))
    assert sent(relay, answer(1), answer(7)) == []


def test_a_late_answer_does_not_reach_the_next_server() -> None:
    """Even if that one asks under the same id; the client hears that the first question is void."""
    relay = opened()
    heard(relay, request(1, "roots/list"))
    assert gone(relay) == [
        notification("notifications/cancelled", requestId=1, reason="the server has gone"),
    ]
    (asked,) = heard(relay, request(1, "elicitation/create", {"message": "sure?"}))
    assert asked == request(asked["id"], "elicitation/create", {"message": "sure?"})
    assert asked["id"] != 1
    assert sent(relay, answer(1, roots=[])) == []
    assert sent(relay, answer(asked["id"], action="accept")) == [answer(1, action="accept")]


def test_a_server_takes_back_what_it_has_asked() -> None:
    """Under the id that the client knows; an answer that comes all the same does not pass."""
    relay = opened()
    gone(relay)
    (asked,) = heard(relay, request(1, "roots/list"))
    withdrawn = notification("notifications/cancelled", requestId=1, reason="too late")
    assert heard(relay, withdrawn) == [
        notification("notifications/cancelled", requestId=asked["id"], reason="too late"),
    ]
    assert sent(relay, answer(asked["id"])) == []


def test_a_server_that_asks_without_end_does_not_take_all_memory() -> None:
    """The oldest question is given up."""
    relay = opened()
    heard(relay, *(request(number, "ping") for number in range(ledger.OWED_LIMIT + 1)))
    assert sent(relay, answer(0), answer(1)) == [answer(1)]


# Without a server.


def test_without_a_server_requests_are_refused_and_the_rest_is_dropped() -> None:
    """Nothing of it is sent to anyone later."""
    relay = opened()
    said = lines(ping(1), notification("notifications/progress"), answer(2), {"id": 3}, {"jsonrpc": "2.0", "id": 4})
    assert messages_in(_ended(relay.refuse(said + b"what?\n", GONE))) == [
        retryable(1),
        {"jsonrpc": "2.0", "id": 3, "error": {"code": -32600, "message": 'Invalid request: `jsonrpc` must be "2.0"'}},
        retryable(4),
        {
            "jsonrpc": "2.0",
            "error": {"code": -32700, "message": "Parse error: JSON is malformed: invalid character (byte 0)"},
        },
    ]
    assert gone(relay) == []


def test_without_a_server_an_array_is_refused_as_one() -> None:
    """Where arrays are taken; elsewhere it is no message at all."""
    said = msgspec.json.encode([ping(1), notification("notifications/progress"), ping(2)])
    assert messages_in(_ended(opened("2025-03-26").refuse(said, GONE))) == [[retryable(1), retryable(2)]]
    (refused,) = messages_in(_ended(opened("2025-11-25").refuse(said, GONE)))
    assert refused["error"]["code"] == -32600


def test_a_line_that_is_too_long_is_refused() -> None:
    """Nobody knows its id any more."""
    assert msgspec.json.decode(Relay().refuse_long_line(1000)) == {
        "jsonrpc": "2.0",
        "id": None,
        "error": {"code": -32600, "message": "Invalid request: longer than 1,000 bytes"},
    }


def test_what_is_owed_is_bounded_by_what_it_takes_to_remember() -> None:
    """Requests without end, or with endless ids."""
    for request_id, number in (("x" * 1000, 1), ("x", 16)):
        found = Ledger(1000)
        for each in range(number):
            assert not found.is_full
            found.add(f"{request_id}{each}", Owed("ping"))
        assert found.is_full
        found.settle(f"{request_id}0")
        assert not found.is_full


# What another server must be told.


def told(relay: Relay) -> list[tuple[str, Json]]:
    return [(method, msgspec.json.decode(params)) for method, params in relay.standing.resumption()]


def test_another_server_is_told_what_was_granted() -> None:
    """The handshake, the level of the log and the subscriptions that are in force, as they were last."""
    relay = opened()
    for number, (method, params) in enumerate(
        [
            ("logging/setLevel", {"level": "error"}),
            ("logging/setLevel", {"level": "debug"}),
            ("resources/subscribe", {"uri": "mode://code"}),
            ("resources/subscribe", {"uri": "mode://ask"}),
            ("resources/subscribe", {"uri": "mode://ask"}),
            ("resources/unsubscribe", {"uri": "mode://code"}),
        ]
    ):
        sent(relay, request(number, method, params))
        heard(relay, answer(number))
    assert relay.standing.opening is not None
    assert msgspec.json.decode(relay.standing.opening)["protocolVersion"] == "2025-11-25"
    assert relay.standing.initialized_line() == b'{"jsonrpc":"2.0","method":"notifications/initialized"}'
    assert told(relay) == [("logging/setLevel", {"level": "debug"}), ("resources/subscribe", {"uri": "mode://ask"})]


def test_what_was_refused_or_not_answered_is_not_repeated() -> None:
    """The client was told that it did not work."""
    relay = opened()
    sent(relay, request(1, "resources/subscribe", {"uri": "a"}), request(2, "logging/setLevel", {"level": "debug"}))
    heard(relay, {"jsonrpc": "2.0", "id": 1, "error": {"code": -32602, "message": "no"}})
    gone(relay)
    assert told(relay) == []


def test_a_handshake_that_was_not_answered_is_not_repeated() -> None:
    """It is the client's to begin again."""
    relay = Relay()
    sent(relay, request(1, "initialize", {"protocolVersion": "2025-11-25"}))
    assert gone(relay) == [retryable(1)]
    assert relay.standing.opening is None


def test_a_second_handshake_forgets_what_the_first_had_led_to() -> None:
    """As servers do."""
    relay = opened()
    sent(relay, request(1, "logging/setLevel", {"level": "debug"}), request(2, "resources/subscribe", {"uri": "a"}))
    heard(relay, answer(1), answer(2))
    sent(relay, request(3, "initialize", {"protocolVersion": "2025-06-18"}))
    heard(relay, answer(3, protocolVersion="2025-06-18", capabilities={}, serverInfo=CLIENT_INFO))
    assert (told(relay), relay.standing.initialized_line()) == ([], None)


def test_subscriptions_are_remembered_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rest ends with the server that granted them."""
    monkeypatch.setattr(standing, "SUBSCRIPTIONS_LIMIT", 30)
    relay = opened()
    for number, uri in enumerate(["mode://code", "mode://architect"]):
        sent(relay, request(number, "resources/subscribe", {"uri": uri}))
        heard(relay, answer(number))
    assert told(relay) == [("resources/subscribe", {"uri": "mode://code"})]


def test_the_client_is_told_to_look_again_at_what_it_was_promised_news_of() -> None:
    """Lists with `listChanged`, and what it has subscribed to."""
    relay = opened(capabilities={"tools": {"listChanged": True}, "prompts": {}, "resources": {"listChanged": False}})
    sent(relay, request(1, "resources/subscribe", {"uri": "mode://code"}))
    heard(relay, answer(1))
    assert [msgspec.json.decode(line) for line in relay.standing.news()] == [
        {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"},
        notification("notifications/resources/updated", uri="mode://code"),
    ]


def test_a_client_that_was_not_ready_yet_is_told_nothing() -> None:
    """It has not sent `notifications/initialized`."""
    relay = Relay()
    sent(relay, request(1, "initialize", {"protocolVersion": "2025-11-25"}))
    heard(relay, answer(1, protocolVersion="2025-11-25", capabilities={"tools": {"listChanged": True}}))
    assert (relay.standing.news(), relay.standing.initialized_line()) == ([], None)


def test_that_the_client_is_ready_is_remembered_while_there_is_no_server() -> None:
    """The next one is told."""
    relay = Relay()
    sent(relay, request(1, "initialize", {"protocolVersion": "2025-11-25"}))
    heard(relay, answer(1, protocolVersion="2025-11-25", capabilities={}))
    gone(relay)
    assert relay.refuse(lines(notification("notifications/initialized")), GONE) == b""
    assert relay.standing.initialized_line() is not None


def test_a_server_that_is_another_than_the_client_was_told_is_noticed() -> None:
    """By its version and what it can do; its name and its instructions may be others."""
    relay = opened(capabilities={"tools": {}})
    same = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {}, "instructions": "new"}
    other = {"protocolVersion": "2025-06-18", "capabilities": {}}
    assert relay.standing.differences(msgspec.Raw(msgspec.json.encode(same))) == []
    assert relay.standing.differences(msgspec.Raw(msgspec.json.encode(other))) == [
        "it speaks 2025-06-18 and not 2025-11-25",
        "it has other capabilities",
    ]


STATELESS = {"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}}


def pinged(relay: Relay) -> str | None:
    question = relay.ping()
    return None if question is None else question[0]


def test_what_to_ask_a_server_depends_on_what_the_client_speaks_with_it() -> None:
    """`ping` from a handshake on, `server/discover` where there is no ping, also while the first answer is owed."""
    for opening, question in (
        (request(1, "tools/list", STATELESS), "server/discover"),
        (request(1, "initialize", {"protocolVersion": "2025-11-25"}), "ping"),
    ):
        relay = Relay()
        assert pinged(relay) is None
        sent(relay, opening)
        assert pinged(relay) == question
        heard(relay, answer(1))
        assert pinged(relay) == question


def test_a_handshake_goes_before_what_was_asked_without_one() -> None:
    """A client that speaks both looks for the newer first, which an old server may not even answer."""
    relay = Relay()
    sent(relay, request(1, "server/discover", STATELESS), request(2, "initialize", {"protocolVersion": "2025-11-25"}))
    assert pinged(relay) == "ping"


def test_a_first_request_that_the_client_gave_up_says_no_less_about_the_server() -> None:
    """As long as that one has not answered anything."""
    relay = Relay()
    sent(relay, request(1, "tools/list", STATELESS), request(2, "what is this"), cancelled(1))
    assert pinged(relay) == "server/discover"
    heard(relay, answer(2))
    assert pinged(relay) is None
    sent(relay, request(3, "tools/list", STATELESS), cancelled(3))
    relay.server_gone("has gone")
    assert pinged(relay) is None


def test_a_server_that_went_without_a_word_leaves_nothing_to_ask_the_next_one() -> None:
    """Until the client tries again."""
    relay = Relay()
    sent(relay, request(1, "initialize", {"protocolVersion": "2025-11-25"}))
    relay.server_gone("has gone")
    assert pinged(relay) is None


def test_discover_says_what_a_request_of_its_era_must() -> None:
    """The version, above all."""
    relay = Relay()
    sent(relay, request(1, "tools/list", STATELESS))
    _, params = relay.ping() or ("", None)
    assert msgspec.to_builtins(params)["_meta"]["io.modelcontextprotocol/protocolVersion"] == "2026-07-28"


def test_words_about_the_stateless_era_do_not_begin_it() -> None:
    """They may be anywhere in what a tool is called with."""
    relay = Relay()
    sent(relay, request(1, "tools/call", {"arguments": {"text": "io.modelcontextprotocol/protocolVersion"}}))
    assert pinged(relay) is None
    heard(relay, answer(1))
    assert pinged(relay) is None


class ExactlyOnce(RuleBasedStateMachine):
    """A client and its servers at random: how many answers has each request had, and may it have?"""

    ids = st.sampled_from([1, 2, 3, "1", "a"])

    def __init__(self) -> None:
        super().__init__()
        self.relay = opened("2025-03-26")
        self.has: list[int | str] = []
        """What the server that runs has and has not answered; None of it is any other's."""
        self.asked = dict[int | str, int]()
        self.answered = dict[int | str, int]()
        self.forgiven = dict[int | str, int]()

    def count(self, told: Any, into: dict[int | str, int]) -> None:
        for each in told if isinstance(told, list) else [told]:
            if isinstance(each, list):
                self.count(each, into)
            elif "id" in each:
                into[each["id"]] = into.get(each["id"], 0) + 1

    @rule(request_ids=st.lists(ids, min_size=1, max_size=4), is_array=st.booleans())
    def ask(self, request_ids: list[int | str], is_array: bool) -> None:
        said = [ping(each) for each in request_ids]
        passed = sent(self.relay, said) if is_array else sent(self.relay, *said)
        assert passed == ([said] if is_array else said)
        self.count(said, self.asked)
        self.has += request_ids

    @rule(request_id=ids)
    def cancel(self, request_id: int | str) -> None:
        passed = sent(self.relay, cancelled(request_id))
        assert passed == ([cancelled(request_id)] if request_id in self.has else [])
        if passed:
            self.has.remove(request_id)
            self.forgiven[request_id] = self.forgiven.get(request_id, 0) + 1

    @precondition(lambda self: self.has)
    @rule(data=st.data(), fails=st.booleans())
    def reply(self, data: st.DataObject, fails: bool) -> None:
        request_id = data.draw(st.sampled_from(self.has))
        self.has.remove(request_id)
        said = retryable(request_id, "not now") if fails else answer(request_id)
        told = heard(self.relay, said)
        assert told == [said]
        self.count(told, self.answered)

    @rule()
    def crash(self) -> None:
        self.count(gone(self.relay), self.answered)
        self.has.clear()

    @rule(request_ids=st.lists(ids, max_size=3))
    def ask_nobody(self, request_ids: list[int | str]) -> None:
        said = [ping(each) for each in request_ids]
        self.count(said, self.asked)
        self.count(messages_in(_ended(self.relay.refuse(lines(*said), GONE))), self.answered)

    @invariant()
    def every_request_is_answered_once_or_still_with_the_server(self) -> None:
        with_server = dict[int | str, int]()
        for each in self.has:
            with_server[each] = with_server.get(each, 0) + 1
        for request_id, number in self.asked.items():
            known = (self.answered, self.forgiven, with_server)
            assert number == sum(each.get(request_id, 0) for each in known)


TestExactlyOnce = ExactlyOnce.TestCase
TestExactlyOnce.settings = settings(
    derandomize=True, database=None, deadline=None, max_examples=60, stateful_step_count=30
)
