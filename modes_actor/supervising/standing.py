"""What the client and the server have agreed on, so that another server can be told: the memory behind re-attaching.

Remembered is what a server has granted (`initialize`, `logging/setLevel`, `resources/subscribe`), never what was only
asked for. The stateless era leaves nothing to remember, but that it was spoken.
"""

import logging
from typing import Final, TypeVar

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType, field

from modes_actor import __version__
from modes_actor.supervising.ledger import Owed
from modes_actor.wire import base, codec, lifecycle, notifications
from modes_actor.wire.jsonrpc import Incoming, Notification
from modes_actor.wire.versions import STATELESS_VERSIONS, Version, handshake_version

log = logging.getLogger(__name__)

T = TypeVar("T")

SUBSCRIPTIONS_LIMIT: Final = 1024 * 1024
"""Bytes of subscriptions that are remembered, which is as much as a server of ours takes."""

_METHODS_KEPT: Final = frozenset({"initialize", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"})
_CHANGES: Final = (notifications.TOOLS_CHANGED, notifications.PROMPTS_CHANGED, notifications.RESOURCES_CHANGED)


class _Requested(base.WireStruct):
    protocol_version: str = ""


class _Granted(base.WireStruct):
    """The part of the answer to `initialize` that a client builds on."""

    protocol_version: str = ""
    capabilities: lifecycle.ServerCapabilities = field(default_factory=lifecycle.ServerCapabilities)


class _About(base.WireStruct):
    uri: str = ""


class _Meta(Struct):
    version: Raw | UnsetType = field(default=UNSET, name=base.PROTOCOL_VERSION_KEY)


class _WithMeta(Struct):
    meta: _Meta | None = field(default=None, name="_meta")


_requested = msgspec.json.Decoder(_Requested)
_granted = msgspec.json.Decoder(_Granted)
_about = msgspec.json.Decoder(_About)
_with_meta = msgspec.json.Decoder(_WithMeta)


class Standing:
    def __init__(self) -> None:
        self.version: Version | None = None
        """Of the handshake: as asked for, until it is answered."""
        self._opening: Raw | None = None
        self._granted = _Granted()
        self._is_initialized = False
        self._level: Raw | None = None
        self._subscriptions: dict[str, Raw] = {}
        self._subscribed_bytes = 0
        self._is_stateless = False

    @property
    def opening(self) -> Raw | None:
        """The params of the `initialize` that is in force."""
        return self._opening

    # What the client says, and what is answered.

    def asked(self, method: str, params: Raw | UnsetType, array: int | None) -> Owed:
        """The client sends this request to the server."""
        if method not in _METHODS_KEPT:
            return Owed(method, is_stateless=self._opens_stateless(params), array=array)
        if method == "initialize":
            self._is_initialized = False
            if params is not UNSET and (requested := _decoded(_requested, params)) is not None:
                self.version = handshake_version(requested.protocol_version)
        # A copy, because a `Raw` keeps all that it was read from.
        return Owed(method, None if params is UNSET else params.copy(), array=array)

    def initialized(self) -> None:
        """The client has told the server, or would have, had there been one."""
        self._is_initialized = True

    def answered(self, owed: Owed, answer: Incoming) -> None:
        """The server answers such a request."""
        if owed.is_stateless:
            self._is_stateless = True
        if owed.params is None or answer.result is UNSET:
            return
        match owed.method:
            case "initialize":
                self._opening = owed.params
                self._granted = _decoded(_granted, answer.result) or _Granted()
                self.version = handshake_version(self._granted.protocol_version)
                self._level = None
                self._subscriptions.clear()
                self._subscribed_bytes = 0
            case "logging/setLevel":
                self._level = owed.params
            case "resources/subscribe":
                self._subscribed(owed.params)
            case "resources/unsubscribe":
                about = _decoded(_about, owed.params)
                if about is not None and (params := self._subscriptions.pop(about.uri, None)) is not None:
                    self._subscribed_bytes -= len(bytes(params))

    def _subscribed(self, params: Raw) -> None:
        about = _decoded(_about, params)
        if about is None or about.uri in self._subscriptions:
            return
        if self._subscribed_bytes + len(bytes(params)) > SUBSCRIPTIONS_LIMIT:
            log.warning("there are too many subscriptions to remember: this one ends with the server that is running")
            return
        self._subscriptions[about.uri] = params
        self._subscribed_bytes += len(bytes(params))

    def _opens_stateless(self, params: Raw | UnsetType) -> bool:
        """Whether this request, if it is answered, shows that the server speaks the stateless era."""
        if self._is_stateless or params is UNSET or base.PROTOCOL_VERSION_KEY.encode() not in bytes(params):
            return False
        found = _decoded(_with_meta, params)
        return found is not None and found.meta is not None and found.meta.version is not UNSET

    # What a server is asked and told.

    def ping(self, opening: Owed | None) -> tuple[str, object] | None:
        """What to ask a server that is to show that it is there; None while no conversation is open.

        `opening`: the request that is to open one, which the server owes an answer. A ping may come before that.
        """
        if self._opening is not None or (opening is not None and not opening.is_stateless):
            return "ping", UNSET
        if not self._is_stateless and opening is None:
            return None
        meta = {
            base.PROTOCOL_VERSION_KEY: STATELESS_VERSIONS[-1].name,
            base.CLIENT_INFO_KEY: base.Implementation("modes-actor-supervisor", __version__),
            base.CLIENT_CAPABILITIES_KEY: base.ClientCapabilities(),
        }
        return "server/discover", {"_meta": meta}

    def resumption(self) -> list[tuple[str, Raw]]:
        """The requests that bring a server that has just been opened to where its predecessor was."""
        levels = [("logging/setLevel", self._level)] if self._level is not None else []
        return levels + [("resources/subscribe", params) for params in self._subscriptions.values()]

    def initialized_line(self) -> bytes | None:
        """What a server is told after it was opened, if the client has told its predecessor."""
        return codec.encode(Notification(notifications.INITIALIZED)) if self._is_initialized else None

    def news(self) -> list[bytes]:
        """What a client is told after a restart, because nobody was there to notice changes: look again."""
        if not self._is_initialized:
            return []
        can = self._granted.capabilities
        promised = [each is not None and each.list_changed for each in (can.tools, can.prompts, can.resources)]
        lists = [Notification(method) for method, promise in zip(_CHANGES, promised, strict=True) if promise]
        updates = [Notification(notifications.RESOURCE_UPDATED, {"uri": uri}) for uri in self._subscriptions]
        return [codec.encode(each) for each in (*lists, *updates)]

    def differences(self, result: Raw | UnsetType) -> list[str]:
        """In what a new server's answer to `initialize` is not what the client was told."""
        now = None if result is UNSET else _decoded(_granted, result)
        if now is None:
            return ["its answer to initialize cannot be read"]
        found: list[str] = []
        if now.protocol_version != self._granted.protocol_version:
            found.append(f"it speaks {now.protocol_version} and not {self._granted.protocol_version}")
        if now.capabilities != self._granted.capabilities:
            found.append("it has other capabilities")
        return found


def _decoded(decoder: msgspec.json.Decoder[T], raw: Raw) -> T | None:
    """None for what has another shape: it is for its receiver to say so."""
    try:
        return decoder.decode(raw)
    except (ValueError, RecursionError):
        return None
