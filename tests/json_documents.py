"""JSON with comments as people might have written it, for hypothesis: any value, in any layout."""

import json
from typing import Any

from hypothesis import strategies as st

KEYS = st.sampled_from(["a", "b", "mcpServers", "", "//", "/*", 'x"y', "é", "{", "a,}"])
_SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-5, 10**20)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(["", "// x", "/*", "*/", "a,", "]", "}", "\\", '"', "\n", "\u2028", "😀"])
)
VALUES = st.recursive(
    _SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(KEYS, VALUES, max_size=4)
PATHS = st.lists(KEYS, min_size=1, max_size=3)
_GAPS = st.just("") | st.lists(
    st.sampled_from([" ", "  ", "\t", "\n", "\n    ", "// c, }\n", "//\n", "/* , ] */", "/* \n */", "/**/"]), max_size=2
).map("".join)


@st.composite
def documents(draw: st.DrawFn) -> tuple[dict[str, Any], str]:
    """An object, and a text that means it."""
    value = draw(OBJECTS)
    text = draw(_GAPS) + _rendered(draw, value) + draw(_GAPS)
    if draw(st.booleans()):
        text = text.replace("\n", "\r\n")
    return value, draw(st.sampled_from(["", "", "", "\ufeff"])) + text


def _rendered(draw: st.DrawFn, value: Any) -> str:
    if isinstance(value, dict):
        items = [
            f"{_scalar(draw, key)}{draw(_GAPS)}:{draw(_GAPS)}{_rendered(draw, each)}" for key, each in value.items()
        ]
        return "{" + _joined(draw, items) + "}"
    if isinstance(value, list):
        return "[" + _joined(draw, [_rendered(draw, each) for each in value]) + "]"
    return _scalar(draw, value)


def _joined(draw: st.DrawFn, items: list[str]) -> str:
    text = ",".join(draw(_GAPS) + item + draw(_GAPS) for item in items)
    trailing = draw(st.sampled_from(["", ","])) if items else ""
    return text + trailing + draw(_GAPS)


def _scalar(draw: st.DrawFn, value: Any) -> str:
    return json.dumps(value, ensure_ascii=draw(st.booleans()))
