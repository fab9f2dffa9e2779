"""How a client opens, and in which era each of its requests is served."""

from typing import Any

import pytest

from modes_actor.wire.base import (
    CLIENT_CAPABILITIES_KEY,
    LOG_LEVEL_KEY,
    PROTOCOL_VERSION_KEY,
    SERVER_INFO_KEY,
)
from modes_actor.wire.versions import ALL_VERSIONS, HANDSHAKE_VERSIONS, V2025_11_25, V2026_07_28, Version
from tests.conversation import CLIENT_INFO, Json, stateless_meta, talking
from tests.sample_offer import sample_offer

CAPABILITIES = {
    "tools": {"listChanged": False},
    "resources": {"subscribe": True, "listChanged": False},
    "prompts": {"listChanged": False},
    "completions": {},
    "logging": {},
}
HANDSHAKE_ONLY = [
    ("ping", None),
    ("logging/setLevel", {"level": "info"}),
    ("resources/subscribe", {"uri": "a://b"}),
    ("resources/unsubscribe", {"uri": "a://b"}),
    ("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": CLIENT_INFO}),
]


def initialize(version: str) -> Json:
    return {"protocolVersion": version, "capabilities": {}, "clientInfo": CLIENT_INFO}


@pytest.mark.parametrize("version", HANDSHAKE_VERSIONS, ids=lambda version: version.name)
async def test_initialize_is_answered_with_the_version_that_was_asked_for(version: Version) -> None:
    """Every handshake version is spoken, and the answer is all that a client needs to begin."""
    async with talking(version=None) as client:
        assert await client.result("initialize", initialize(version.name)) == {
            "protocolVersion": version.name,
            "capabilities": CAPABILITIES,
            "serverInfo": {"name": "roo-modes-server", "version": "1.0.0"},
        }


@pytest.mark.parametrize("asked", ["2026-07-28", "1999-01-01", "2099-01-01", ""])
async def test_initialize_with_another_version_is_answered_with_the_newest_handshake_version(asked: str) -> None:
    """The stateless version cannot be had by a handshake, and an unknown one not at all."""
    async with talking(version=None) as client:
        assert (await client.result("initialize", initialize(asked)))["protocolVersion"] == V2025_11_25.name


async def test_a_second_initialize_starts_over() -> None:
    """Some hosts keep the process and connect again; the newest handshake counts."""
    async with talking(sample_offer()) as client:
        await client.result("resources/subscribe", {"uri": "sample://one"})
        await client.result("initialize", initialize("2024-11-05"))
        said = (await client.result("tools/call", {"name": "who"}))["content"][0]["text"]
        assert said == "a test in 2024-11-05 (handshake), request 4"


async def test_discover_tells_a_stateless_client_everything_at_once() -> None:
    """No handshake: the versions, capabilities and instructions come as one cacheable result."""
    async with talking(sample_offer(lists_change=False), version=V2026_07_28) as client:
        result = await client.result("server/discover")
        server_info = result.pop("_meta")[SERVER_INFO_KEY]
        assert server_info["name"] == "sample"
        assert result == {
            "supportedVersions": ["2026-07-28"],
            "capabilities": CAPABILITIES,
            "instructions": "Echo things.",
            "resultType": "complete",
            "ttlMs": 3_600_000,
            "cacheScope": "private",
        }


async def test_one_process_serves_both_eras_at_once() -> None:
    """After a handshake, a request with modern metadata is served by that alone; the next without it is not."""
    async with talking(sample_offer()) as client:
        stateless = {"name": "who", "_meta": stateless_meta()}
        handshake = {"name": "who"}
        said = [(await client.result("tools/call", params))["content"][0]["text"] for params in (stateless, handshake)]
        assert said == [
            "a test in 2026-07-28 (stateless), request 2",
            "a test in 2025-11-25 (handshake), request 3",
        ]


@pytest.mark.parametrize("method", ["tools/list", "server/discover", "no/such/method", "subscriptions/listen"])
async def test_a_request_without_handshake_or_metadata_is_told_what_to_send_first(method: str) -> None:
    """Whatever it asks for: the sentence names both ways to begin."""
    async with talking(version=None) as client:
        error = await client.error(method, {})
        assert error["code"] == -32602
        assert error["message"].startswith("Send `initialize` first, or name the protocol version in this request")
        assert error["data"]["field"] == f"_meta.{PROTOCOL_VERSION_KEY}"


async def test_ping_needs_no_handshake() -> None:
    """A health check may come before anything else."""
    async with talking(version=None) as client:
        assert await client.request("ping", id="p") == {"jsonrpc": "2.0", "id": "p", "result": {}}


@pytest.mark.parametrize(
    ("requested", "said"),
    [
        ("1900-01-01", "1900-01-01"),
        ("2025-11-25", "2025-11-25"),
        (5, "5"),
        ({}, "{}"),
        (None, "null"),
        (False, "false"),
    ],
)
async def test_an_unsupported_version_in_the_metadata_is_refused_with_the_supported_ones(
    requested: Any, said: str
) -> None:
    """Handshake versions count as unsupported here: `_meta` speaks of stateless ones only."""
    async with talking(version=None) as client:
        error = await client.error("tools/list", {"_meta": {PROTOCOL_VERSION_KEY: requested}})
        assert error == {
            "code": -32022,
            "message": f"Unsupported protocol version: {said}. Supported: 2026-07-28",
            "data": {"supported": ["2026-07-28"], "requested": said},
        }


async def test_the_unsupported_version_is_what_counts_even_when_the_params_are_wrong_too() -> None:
    """A client must learn first that it speaks another version: its params may be right there."""
    async with talking(version=None) as client:
        error = await client.error("tools/call", {"name": 5, "_meta": {PROTOCOL_VERSION_KEY: "2099-01-01"}})
        assert error["code"] == -32022


async def test_missing_client_capabilities_are_invalid_params() -> None:
    """The stateless era requires them in every request."""
    async with talking(version=None) as client:
        error = await client.error("tools/list", {"_meta": {PROTOCOL_VERSION_KEY: "2026-07-28"}})
        assert error == {
            "code": -32602,
            "message": f'Invalid params: `_meta["{CLIENT_CAPABILITIES_KEY}"]` is missing',
            "data": {"field": f"_meta.{CLIENT_CAPABILITIES_KEY}", "problem": "missing", "expected": "object"},
        }


async def test_capabilities_alone_do_not_make_a_request_stateless() -> None:
    """The version does; what else is in the metadata changes nothing."""
    async with talking(sample_offer()) as client:
        params = {"name": "who", "_meta": {CLIENT_CAPABILITIES_KEY: {}}}
        assert "(handshake)" in (await client.result("tools/call", params))["content"][0]["text"]


async def test_an_unknown_log_level_in_the_metadata_is_invalid_params() -> None:
    """As the specification asks."""
    async with talking(version=None) as client:
        error = await client.error("tools/list", {"_meta": {**stateless_meta(), LOG_LEVEL_KEY: "loud"}})
        assert (error["code"], error["data"]["field"]) == (-32602, f"_meta.{LOG_LEVEL_KEY}")
        assert "emergency" in error["data"]["expected"]


@pytest.mark.parametrize(
    ("method", "params"), HANDSHAKE_ONLY, ids=lambda value: value if isinstance(value, str) else ""
)
async def test_what_the_stateless_era_does_not_have_is_not_found_there(method: str, params: Json | None) -> None:
    """No ping, no log level, no handshake, no subscribe."""
    async with talking(version=V2026_07_28) as client:
        assert (await client.error(method, params))["code"] == -32601


@pytest.mark.parametrize("method", ["server/discover", "subscriptions/listen", "tasks/list", "no/such/method"])
async def test_what_the_handshake_era_does_not_have_is_not_found_there(method: str) -> None:
    """Stateless methods, experimental tasks, and what nobody has."""
    async with talking(version=V2025_11_25) as client:
        assert await client.error(method, {}) == {"code": -32601, "message": f"Method not found: {method}"}


@pytest.mark.parametrize("version", [*ALL_VERSIONS, None], ids=lambda version: version.name if version else "none yet")
async def test_an_error_for_an_unreadable_message_has_a_null_id_or_none_by_version(version: Version | None) -> None:
    """Null up to 2025-06-18 and before anything was said; no id from 2025-11-25 on."""
    async with talking(version=version) as client:
        if version is not None:
            await client.request("tools/list")
        await client.send_bytes(b"{\n")
        answer = await client.receive()
        assert answer["error"]["code"] == -32700
        expects_null = version is None or version.name <= "2025-06-18"
        assert ("id" in answer, answer.get("id")) == (expects_null, None)
