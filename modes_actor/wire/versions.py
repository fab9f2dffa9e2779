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
    """One protocol version, and what sets it apart."""

    name: str
    era: Era
    methods: frozenset[str]
    """The requests it knows, in whichever direction they go."""
    arrays: bool = False
    """Several messages may come as one JSON array."""
    null_ids: bool = False
    """The answer to a message whose id cannot be read says `id: null`; elsewhere it has no id."""
    unknown_content: frozenset[str] = frozenset()
    """Types of content blocks that came later."""


_ALWAYS = frozenset(
    {
        "tools/list",
        "tools/call",
        "resources/list",
        "resources/templates/list",
        "resources/read",
        "prompts/list",
        "prompts/get",
        "completion/complete",
        # To the client: as requests of their own, or inside an `input_required` result.
        "roots/list",
        "sampling/createMessage",
    }
)
_HANDSHAKE = _ALWAYS | {"initialize", "ping", "resources/subscribe", "resources/unsubscribe", "logging/setLevel"}
_ELICITING = _HANDSHAKE | {"elicitation/create"}
_STATELESS = _ALWAYS | {"elicitation/create", "server/discover", "subscriptions/listen"}
_NO_LINKS = frozenset({"resource_link"})

V2024_11_05: Final = Version(
    "2024-11-05", Era.HANDSHAKE, _HANDSHAKE, null_ids=True, unknown_content=_NO_LINKS | {"audio"}
)
V2025_03_26: Final = Version(
    "2025-03-26", Era.HANDSHAKE, _HANDSHAKE, arrays=True, null_ids=True, unknown_content=_NO_LINKS
)
V2025_06_18: Final = Version("2025-06-18", Era.HANDSHAKE, _ELICITING, null_ids=True)
V2025_11_25: Final = Version("2025-11-25", Era.HANDSHAKE, _ELICITING)
V2026_07_28: Final = Version("2026-07-28", Era.STATELESS, _STATELESS)

HANDSHAKE_VERSIONS: Final = (V2024_11_05, V2025_03_26, V2025_06_18, V2025_11_25)
STATELESS_VERSIONS: Final = (V2026_07_28,)
ALL_VERSIONS: Final = HANDSHAKE_VERSIONS + STATELESS_VERSIONS

_BY_NAME: Final = {version.name: version for version in ALL_VERSIONS}


def handshake_version(requested: str) -> Version:
    """The version an `initialize` is answered with: the one asked for if it is a handshake version, else the newest."""
    version = _BY_NAME.get(requested)
    if version is None or version.era is not Era.HANDSHAKE:
        return HANDSHAKE_VERSIONS[-1]
    return version


def stateless_version(requested: str) -> Version | None:
    """The stateless version of that name, or None."""
    version = _BY_NAME.get(requested)
    return version if version is not None and version.era is Era.STATELESS else None
