"""Names: which are well formed, which are the same in another spelling, and which a wildcard covers."""

import re

SLUG = re.compile(r"[a-zA-Z0-9-]+")


def is_slug(text: str) -> bool:
    return SLUG.fullmatch(text) is not None


_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_PUNCTUATION = re.compile(r"[ .-]")
_NO_LETTER = re.compile(r"[^a-z0-9]")


def alike(name: str) -> str:
    """The same text for all spellings of a server's or tool's name that clients do not tell apart.

    They make names fit for a model: `My Admin`, `my-admin` and `myAdmin` all become `my_admin` somewhere.
    """
    return _PUNCTUATION.sub("_", _HUMP.sub("_", name)).lower()


def covers_alike(pattern: str, name: str) -> bool:
    """Whether a pattern matches any of the spellings that may be meant by a name."""
    if covers(pattern, name) or covers(alike(pattern), alike(name)):
        return True
    is_literal = "*" not in pattern and "?" not in pattern
    return is_literal and _NO_LETTER.sub("", pattern.lower()) == (_NO_LETTER.sub("", name.lower()) or name)


def covers(pattern: str, name: str) -> bool:
    """Whether a pattern with `*` and `?` matches the whole name. Never worse than the product of their lengths."""
    if "*" not in pattern and "?" not in pattern:
        return pattern == name
    at = of = 0
    star = mark = -1
    while of < len(name):
        if at < len(pattern) and pattern[at] == "*":
            star, mark = at, of
            at += 1
        elif at < len(pattern) and pattern[at] in ("?", name[of]):
            at += 1
            of += 1
        elif star >= 0:
            mark += 1
            at, of = star + 1, mark
        else:
            return False
    return not pattern[at:].strip("*")
