"""What the process knows of its client, and the one decision about eras: who is asking, in which version?"""

from typing import Final

import msgspec
from msgspec import UNSET, Raw, Struct, structs

from modes_actor.wire.base import (
    CLIENT_CAPABILITIES_KEY,
    PROTOCOL_VERSION_KEY,
    ClientCapabilities,
    Implementation,
    LogLevel,
    RequestMeta,
)
from modes_actor.wire.errors import InvalidParams, ParamsProblem, UnsupportedVersion
from modes_actor.wire.versions import HANDSHAKE_VERSIONS, STATELESS_VERSIONS, Era, Version, stateless_version

DEFAULT_LOG_LEVEL: Final[LogLevel] = "warning"
"""What a handshake client hears of before it sends `logging/setLevel`."""


class Caller(Struct, frozen=True, gc=False):
    """Who sends a request, as far as the protocol tells: from the handshake, or from the request itself."""

    version: Version
    client_info: Implementation | None
    capabilities: ClientCapabilities
    log_level: LogLevel | None
    """Log messages below this are not wanted; None: none are."""


_BEFORE_HANDSHAKE = Caller(HANDSHAKE_VERSIONS[0], None, ClientCapabilities(), None)


_decode_text = msgspec.json.Decoder(str).decode


def _text(raw: Raw) -> str:
    """A text as it is meant; anything else as it is written."""
    try:
        return _decode_text(raw)
    except (ValueError, RecursionError):
        return bytes(raw).decode(errors="replace")


class Connection:
    """The handshake, if there was one. The stateless era leaves nothing here that a later request would use."""

    def __init__(self) -> None:
        self._handshake: Caller | None = None
        self._spoke_stateless = False

    @property
    def handshake(self) -> Caller | None:
        """The client of the handshake era, once it has sent `initialize`."""
        return self._handshake

    @property
    def version_in_force(self) -> Version | None:
        """The version of a message that does not tell its own: the handshake's, else that of the requests so far."""
        if self._handshake is not None:
            return self._handshake.version
        return STATELESS_VERSIONS[-1] if self._spoke_stateless else None

    def open(self, version: Version, client_info: Implementation, capabilities: ClientCapabilities) -> None:
        """`initialize`: from here on, requests without a version of their own are this client's."""
        self._handshake = Caller(version, client_info, capabilities, DEFAULT_LOG_LEVEL)

    def set_log_level(self, level: LogLevel) -> None:
        if self._handshake is not None:
            self._handshake = structs.replace(self._handshake, log_level=level)

    def log_level(self, caller: Caller) -> LogLevel | None:
        """What the caller wants to hear now: a handshake client may have changed its mind since it asked."""
        if self._handshake is not None and caller.version.era is Era.HANDSHAKE:
            return self._handshake.log_level
        return caller.log_level

    def caller(self, method: str, meta: RequestMeta | None) -> Caller:
        """Whose request this is. A version in `_meta` alone makes it stateless; else a handshake must have been."""
        if meta is not None and meta.protocol_version is not UNSET:
            return self._stateless_caller(meta)
        if self._handshake is not None:
            return self._handshake
        if method in ("initialize", "ping"):
            return _BEFORE_HANDSHAKE
        raise InvalidParams(
            "Send `initialize` first, or name the protocol version in this request: "
            f'`params._meta["{PROTOCOL_VERSION_KEY}"] = "{STATELESS_VERSIONS[-1].name}"` '
            f'together with `params._meta["{CLIENT_CAPABILITIES_KEY}"]`',
            data=ParamsProblem(f"_meta.{PROTOCOL_VERSION_KEY}", "missing", expected=STATELESS_VERSIONS[-1].name),
        )

    def _stateless_caller(self, meta: RequestMeta) -> Caller:
        assert meta.protocol_version is not UNSET
        named = _text(meta.protocol_version)
        version = stateless_version(named)
        if version is None:
            raise UnsupportedVersion(named)
        self._spoke_stateless = True
        if meta.client_capabilities is None:
            raise InvalidParams(
                f'Invalid params: `_meta["{CLIENT_CAPABILITIES_KEY}"]` is missing',
                data=ParamsProblem(f"_meta.{CLIENT_CAPABILITIES_KEY}", "missing", expected="object"),
            )
        return Caller(version, meta.client_info, meta.client_capabilities, meta.log_level)
