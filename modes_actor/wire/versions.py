"""The protocol versions this server speaks, and all that differs between them. Nowhere else is a version compared.

Two eras: *handshake* versions open with `initialize` and keep a connection's state; the *stateless* version carries
everything a request needs inside the request.
"""

from enum import Enum
from typing import Final

from msgspec import Struct


class Era(Enum):
    HANDSHAKE = "handshake"
    STATELESS = "stateless"


class Version(Struct, frozen=True, gc=False):
    """One protocol version. `arrays`: JSON arrays of messages are allowed. `null_ids`: an unreadable id is null."""

    name: str
    era: Era
    number: int
    arrays: bool = False
    null_ids: bool = False

    def has(self, method: str) -> bool:
        """Whether this version knows the request `method`, in whichever direction it goes."""
        span = _METHODS.get(method)
        return span is not None and span[0].number <= self.number <= span[1].number

    def since(self, other: "Version") -> bool:
        return self.number >= other.number


V2024_11_05: Final = Version("2024-11-05", Era.HANDSHAKE, 1, null_ids=True)
V2025_03_26: Final = Version("2025-03-26", Era.HANDSHAKE, 2, arrays=True, null_ids=True)
V2025_06_18: Final = Version("2025-06-18", Era.HANDSHAKE, 3, null_ids=True)
V2025_11_25: Final = Version("2025-11-25", Era.HANDSHAKE, 4)
V2026_07_28: Final = Version("2026-07-28", Era.STATELESS, 5)

HANDSHAKE_VERSIONS: Final = (V2024_11_05, V2025_03_26, V2025_06_18, V2025_11_25)
STATELESS_VERSIONS: Final = (V2026_07_28,)
ALL_VERSIONS: Final = HANDSHAKE_VERSIONS + STATELESS_VERSIONS

_BY_NAME: Final = {version.name: version for version in ALL_VERSIONS}

_ALWAYS = (V2024_11_05, V2026_07_28)
_HANDSHAKE = (V2024_11_05, V2025_11_25)
_STATELESS = (V2026_07_28, V2026_07_28)

_METHODS: Final[dict[str, tuple[Version, Version]]] = {
    # from the client
    "initialize": _HANDSHAKE,
    "ping": _HANDSHAKE,
    "server/discover": _STATELESS,
    "tools/list": _ALWAYS,
    "tools/call": _ALWAYS,
    "resources/list": _ALWAYS,
    "resources/templates/list": _ALWAYS,
    "resources/read": _ALWAYS,
    "resources/subscribe": _HANDSHAKE,
    "resources/unsubscribe": _HANDSHAKE,
    "prompts/list": _ALWAYS,
    "prompts/get": _ALWAYS,
    "completion/complete": _ALWAYS,
    "logging/setLevel": _HANDSHAKE,
    "subscriptions/listen": _STATELESS,
    # to the client: as requests of their own, or inside an `input_required` result
    "roots/list": _ALWAYS,
    "sampling/createMessage": _ALWAYS,
    "elicitation/create": (V2025_06_18, V2026_07_28),
}


def handshake_version(requested: str) -> Version:
    """The version an `initialize` is answered with: the one asked for if it is a handshake version, else the newest."""
    version = _BY_NAME.get(requested)
    if version is None or version.era is not Era.HANDSHAKE:
        return HANDSHAKE_VERSIONS[-1]
    return version


def stateless_version(requested: object) -> Version | None:
    """The stateless version of that name, or None."""
    version = _BY_NAME.get(requested) if isinstance(requested, str) else None
    return version if version is not None and version.era is Era.STATELESS else None
