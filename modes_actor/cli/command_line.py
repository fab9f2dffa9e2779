"""What the words of a command line come to."""

from typing import Any, Final

from msgspec import Struct

from modes_actor.config import Flags


class CommandLine(Struct, frozen=True, kw_only=True):
    """What the words mean. `arguments` are the command's own, as its parser leaves them."""

    command: str
    flags: Flags
    as_json: bool = False
    arguments: dict[str, Any] = {}


SERVE: Final = CommandLine(command="serve", flags=Flags())
"""No words at all, as editors start it. That is understood without loading a parser."""
