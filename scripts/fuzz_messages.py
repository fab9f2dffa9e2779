"""Messages: valid ones made from the Structs of the protocol, and what becomes of them.

A `Template` is a message with a hole for its id: it is made and understood once, and sent several times, among others,
under ids of every kind. What is mutated in bytes is new each time.
"""

from collections.abc import Callable
from random import Random
from typing import Any, Final

import msgspec
from fuzz_expectation import ANCHORS, EXPIRED, SETTLED, anchor
from fuzz_ground import LINE_LIMIT
from fuzz_permissions import SLUGS
from fuzz_reading import Id, Understood, understand
from fuzz_types import METHODS, NOTIFICATIONS, TO_CLIENT, example, tools, type_of
from msgspec import Struct

from modes_actor.modes.tools import group_of, tool_table
from modes_actor.wire.base import CLIENT_CAPABILITIES_KEY, PROTOCOL_VERSION_KEY, RequestMeta
from modes_actor.wire.lifecycle import InitializeParams
from modes_actor.wire.versions import ALL_VERSIONS, HANDSHAKE_VERSIONS, V2026_07_28

Json = dict[str, Any]

_HOLE: Final = "%%id%%"
_RAW: Final = "%%raw%%"
_WORDS: Final = (
    "",
    "x",
    "a b",
    "Привет",
    "你好，世界",
    "مرحبا",
    "🚀👩‍💻",
    "\x00\x1b[31m",
    "\u2028",
    "a" * 300,
    "\u202e../",
)
_URIS: Final = (
    *(f"mode://{slug}{part}" for slug in ("code", "docs", "nope") for part in ("", "/config")),
    "mode://code/system_prompt",
    *(f"task://{anchor(number)}" for number in range(4)),
    f"task://{anchor(0, expired=True)}",
    *(
        "mode://",
        "mode://a/b/c",
        "task://",
        "file:///etc/passwd",
        "mode://../..",
        "task://sess_0000",
        "",
        "mode://code/",
    ),
)
_FILES: Final = (
    "src/app.py",
    "docs/a.md",
    "../x.md",
    "/etc/passwd",
    "",
    "a\x00b",
    "src/../docs/b.mdx",
    "~/x",
    "C:\\x.md",
    "é.md",
)
_USES: Final = (
    *group_of(),
    *sorted(tool_table().always),
    "mcp__github__delete_repo",
    "mcp__docs-x__read",
    "mcp__a",
    "nope",
    " ",
)
_ODD_VERSIONS: Final[tuple[Any, ...]] = (
    "2024-11-05",
    "2025-11-25",
    "2027-01-01",
    "",
    "DRAFT",
    "2026-07-28 ",
    20260728,
    None,
    [],
)


class Template(Struct, gc=False):
    kind: str
    head: bytes
    tail: bytes
    understood: Understood
    takes_id: bool
    may_share_id: bool = False
    """Whether it changes nothing about the connection, so that another of its id may be under way."""

    def filled(self, written: bytes) -> bytes:
        return self.head + written + self.tail if self.takes_id else self.head


def text_for(rng: Random) -> Callable[[str], str]:
    """Strings that mean something where they are put, mostly."""

    def text(name: str) -> str:
        if rng.random() < 0.1:
            return rng.choice(_WORDS)
        match name:
            case "mode_slug" | "new_mode_slug" | "to_mode":
                return rng.choice((*SLUGS_LISTED, "nope", "Bad Slug!"))
            case "session_id" | "parent_session_id":
                return _session(rng)
            case "uri" | "resourceSubscriptions":
                return rng.choice(_URIS)
            case "tool_name":
                return rng.choice(_USES)
            case "file_path":
                return rng.choice(_FILES)
            case "protocolVersion":
                return rng.choice([version.name for version in ALL_VERSIONS] + ["1.0"])
            case "cursor":
                return rng.choice(("", "dG9vbHM6NTAw", "x", "AA==", "é"))
            case "name":
                return rng.choice((*SLUGS_LISTED, "handoff", "mode_slug", "session_id", "nope"))
            case _:
                return rng.choice(_WORDS)

    return text


SLUGS_LISTED: Final = tuple(sorted(SLUGS))


def _session(rng: Random, first: int = 0) -> str:
    if rng.random() < 0.8:
        return anchor(rng.randrange(first, ANCHORS))
    return rng.choice((anchor(rng.randrange(EXPIRED), expired=True), "sess_" + "ab" * 16, "sess_1", "x", ""))


def initialize(rng: Random, *, roots: bool) -> Json:
    """Params that fit. Without `roots`, none are declared."""
    params: Json = example(type_of(InitializeParams), rng, text_for(rng))
    params["protocolVersion"] = rng.choice(HANDSHAKE_VERSIONS).name
    params["capabilities"].pop("roots", None)
    if roots:
        params["capabilities"]["roots"] = {}
    return params


def valid_request(rng: Random, method: str, *, stateless: bool, roots: bool = False) -> Json:
    """A request whose params fit, with a hole for its id."""
    text = text_for(rng)
    params = initialize(rng, roots=roots) if method == "initialize" else example(type_of(METHODS[method]), rng, text)
    if "cursor" in params and rng.random() < 0.8:
        del params["cursor"]
    if method == "tools/call":
        params["name"] = rng.choice(list(tools()))
        params["arguments"] = example(type_of(tools()[params["name"]]), rng, text)
        if params["name"] == "switch_mode":
            params["arguments"]["session_id"] = _session(rng, SETTLED)
        if rng.random() < 0.9:
            params["arguments"].pop("include_system_prompt", None)  # rules are read anew each time, which takes long
    elif method == "prompts/get" and rng.random() < 0.9:
        params["name"] = rng.choice(("handoff", "nope"))
        params["arguments"] = {"session_id": text("session_id"), "to_mode": text("to_mode")}
    if stateless:
        meta: Json = example(type_of(RequestMeta), rng, text) if rng.random() < 0.25 else {}
        params["_meta"] = {**meta, PROTOCOL_VERSION_KEY: V2026_07_28.name}
        params["_meta"][CLIENT_CAPABILITIES_KEY] = meta.get(CLIENT_CAPABILITIES_KEY) or {}
    elif rng.random() < 0.2:
        params["_meta"] = {"progressToken": rng.choice((1, "t"))}
    request = {"jsonrpc": "2.0", "id": _HOLE, "method": method, "params": params}
    if not params and rng.random() < 0.5:
        del request["params"]
    return request


def notification(rng: Random, recent: list[Id]) -> Json:
    """Of all kinds, cancellations of recent and of random ids above all."""
    if recent and rng.random() < 0.6:
        params = {"requestId": rng.choice((rng.choice(recent), rng.choice((0, "0", -1, "nobody"))))}
        return {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}
    method = rng.choice((*NOTIFICATIONS, "notifications/nobody", "tools/list", "initialize"))
    message = {"jsonrpc": "2.0", "method": method}
    if (struct := NOTIFICATIONS.get(method)) is not None:
        message["params"] = example(type_of(struct), rng, text_for(rng))
    return message


def response(rng: Random) -> Json:
    """To nothing that was asked."""
    said: Json = rng.choice(({"result": {}}, {"error": {"code": 1, "message": "no"}}, {"result": None, "error": None}))
    return {"jsonrpc": "2.0", "id": rng.choice((1, 2, 3, "x", None)), **said}


# Mutations of a message that is still a tree. A raw text goes in where `_RAW` stands, once it is encoded.

_RAW_VALUES: Final = (
    *(b"1e999", b"-1e999", b"1" * 25, b"-" + b"9" * 100, b"1" * 400, b"7" * 5000, b"0.1e-400", b"1.0", b"-0"),
    *(b'"\\ud800"', b'"\\udc00\\ud800"', b'"cut \\ud83d"', b'"\\u0000\\u001f"', b'"\\/"'),
    *(b"[" * depth + b"]" * depth for depth in (60, 200, 900, 3000)),
    *(b'{"a":' * depth + b"1" + b"}" * depth for depth in (60, 200, 1200)),
    *(b"NaN", b"Infinity", b"01", b"+1", b".5", b"'x'", b"undefined", b'"\x01"', b"tru", b""),
)
_WRONG: Final[tuple[Any, ...]] = (
    None,
    True,
    False,
    0,
    -1,
    1.5,
    2**63,
    2**70,
    "",
    "x",
    [],
    {},
    [[]],
    {"a": {}},
    [1, "x", None],
)
_STRANGE: Final = (*_WORDS, "\ud7ff\ue000", "\x7f\x80\x9f", "a" * 3000, "𝕏" * 200, "%s%n{}", "../" * 50, "\\")


def mutated(rng: Random, message: Json) -> tuple[str, bytes]:
    """What was done to it, and the message in bytes."""
    places = _places(message)
    container, key = rng.choice(places)
    kind = rng.choice(("removed", "null", "wrong type", "raw value", "strange text", "added", "renamed", "repeated"))
    raw = b""
    match kind:
        case "removed":
            del container[key]
        case "null":
            container[key] = None
        case "wrong type":
            container[key] = rng.choice(_WRONG)
        case "raw value":
            container[key], raw = _RAW, rng.choice(_RAW_VALUES)
        case "strange text":
            container[key] = rng.choice(_STRANGE)
        case "added":
            where = container if isinstance(container, dict) else message
            where[rng.choice(("extra", "_meta", "params", "result", "error", "method", "__proto__", ""))] = rng.choice(
                _WRONG
            )
        case "renamed" if isinstance(key, str):
            container[rng.choice((key.upper(), f"{key} ", f"{key[:-1]}", "\u0130", f"{key}s"))] = container.pop(key)
        case _:
            data = msgspec.json.encode(message)
            begins = [at for at, byte in enumerate(data) if byte == 0x7B]  # {
            at = rng.choice(begins) + 1
            name = key if isinstance(key, str) else "id"
            again = msgspec.json.encode({name: rng.choice(_WRONG)})[1:-1]
            comma = b"" if data[at : at + 1] == b"}" else b","
            return "repeated", data[:at] + again + comma + data[at:]
    return kind, msgspec.json.encode(message).replace(b'"%b"' % _RAW.encode(), raw or b"0")


def _places(value: Any) -> list[tuple[Any, Any]]:
    """Every member and item, as the container and its key."""
    found: list[tuple[Any, Any]] = []
    rest = [value]
    while rest:
        each = rest.pop()
        keys = list(each) if isinstance(each, dict) else range(len(each))
        for key in keys:
            found.append((each, key))
            if isinstance(each[key], dict | list):
                rest.append(each[key])
    return found


def enveloped(rng: Random, message: Json) -> tuple[str, bytes]:
    """A message that is wrong from the outside: version, method, id, or what it is altogether."""
    match rng.randrange(6):
        case 0:
            return "jsonrpc", _encoded(
                {**message, "jsonrpc": rng.choice(("1.0", "2", 2.0, 2, None, "", "2.0 ", ["2.0"]))}
            )
        case 1:
            named = rng.choice(
                (*sorted(TO_CLIENT), "tools/nope", "", "rpc.discover", "Ping", "x" * 600, "tasks/get", "\x00")
            )
            return "unknown method", _encoded({**message, "method": named})
        case 2:
            return "wrong id", _encoded({**message, "id": rng.choice((None, True, 1.5, 1.0, [], {}, [1]))})
        case 3:
            return "params of no kind", _encoded({**message, "params": rng.choice(([], [1], "x", 1, None, True))})
        case 4:
            meta: Json = {
                PROTOCOL_VERSION_KEY: rng.choice(_ODD_VERSIONS),
                CLIENT_CAPABILITIES_KEY: rng.choice(({}, None, [], 1)),
            }
            return "wrong _meta", _encoded({**message, "params": {"_meta": rng.choice((meta, [], 1, "x", None))}})
        case _:
            return "no request", _encoded(
                rng.choice(
                    (
                        None,
                        True,
                        0,
                        "x",
                        {},
                        {"jsonrpc": "2.0"},
                        {"id": _HOLE},
                        message.get("params", 1),
                    )
                )
            )


def _encoded(value: Any) -> bytes:
    return msgspec.json.encode(value)


def template(rng: Random, *, roots: bool) -> Template | None:
    """A new one of some kind; None for one whose consequences nobody could tell."""
    method = rng.choice(_METHODS)
    message = valid_request(rng, method, stateless=rng.random() < 0.45, roots=roots)
    chance = rng.random()
    if chance < 0.55:
        kind, data = "valid", _encoded(message)
    elif chance < 0.87:
        kind, data = mutated(rng, message)
    else:
        kind, data = enveloped(rng, message)
    return made_template(kind, data)


_METHODS: Final = (*METHODS, *("tools/call",) * 6, "resources/read", "resources/read", "completion/complete")


def made_template(kind: str, data: bytes) -> Template | None:
    hole = b'"%b"' % _HOLE.encode()
    takes_id = data.count(hole) == 1
    head, _, tail = data.partition(hole) if takes_id else (data, b"", b"")
    understood = understand(data.replace(hole, b"0"), LINE_LIMIT)
    # Another id must be as good: it is one if the hole was where an id is.
    takes_id = takes_id and understood.id == 0 and understood.kind in ("request", "refused")
    if not takes_id:
        head, tail = data, b""
        understood = understand(data, LINE_LIMIT)
    if is_doubtful(understood) or len(data) > LINE_LIMIT - 1000:
        return None
    is_stateful = understood.kind == "request" and understood.method in _STATEFUL
    has_id = isinstance(understood.id, int | str)
    if has_id and not takes_id and (is_stateful or understood.loose):
        return None  # its id may be in use, and then nobody knows whether it was served
    shares = understood.kind == "request" and not is_stateful and not understood.loose
    return Template(kind, head, tail, understood, takes_id, shares)


_STATEFUL: Final = frozenset({"initialize", "subscriptions/listen", "logging/setLevel"})


def is_doubtful(understood: Understood) -> bool:
    """Whether a line may be refused or have consequences for all that follow: then nobody could tell what to expect."""
    changes = ("initialize", "subscriptions/listen", "notifications/cancelled")
    return understood.loose and (understood.method in changes or understood.kind == "array")
