"""What may reach a terminal: names, messages and mode files are other people's text, and a terminal obeys escapes."""

import re
from typing import Final

_OBEYED = r"\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069"
"""Control characters but tab and newline, and what turns the direction of writing around, for all that follows."""

OBEYED: Final = re.compile(f"[{_OBEYED}]")


def printable(text: str) -> str:
    """The text with a mark in the place of whatever a terminal would obey instead of showing it."""
    return OBEYED.sub("\ufffd", text.replace("\r\n", "\n"))
