"""What a line from a client is, by JSON and JSON-RPC alone. It shares no code with the server's own reading.

It is read by the standard library. Where two good parsers may disagree (text that is no UTF-8, absurd nesting), the
line is `loose`: it may be refused as no JSON, or taken for what it means.
"""

import json
import re
from collections.abc import Callable
from typing import Any, Final, Literal

from fuzz_types import METHODS, Absurd, Repeated, fits_struct
from msgspec import UNSET, Struct, UnsetType

from modes_actor.wire.base import CLIENT_CAPABILITIES_KEY, PROTOCOL_VERSION_KEY, RequestMeta
from modes_actor.wire.notifications import CANCELLED, CancelledParams

Id = int | str
Kind = Literal["blank", "refused", "array", "notification", "response", "request"]

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600

LOOSE_DEPTH: Final = 300
"""How deep a value may be nested without any parser giving up."""
DIGITS_LIMIT: Final = 4300
"""Longer whole numbers are none."""

_BOM: Final = b"\xef\xbb\xbf"
_WHITESPACE: Final = b" \t\r\n"
_LONG_NUMBER = re.compile(rb"[0-9]{250}|[eE]\+?[0-9]{3}")
_SURROGATE = re.compile("[\ud800-\udfff]")


class Understood(Struct, gc=False):
    """A line by itself, before anyone knows what was said before it."""

    kind: Kind
    id: Any = UNSET
    """Of a refused line: the id to answer with, if it can be read."""
    code: int = 0
    """With which a line is refused."""
    method: str = ""
    params: Any = UNSET
    version: str | UnsetType = UNSET
    """That its `_meta` names."""
    meta_fits: bool = True
    has_capabilities: bool = False
    fits: bool = False
    """Whether the params are what the method takes."""
    loose: bool = False
    items: "list[Understood] | None" = None
    outcomes: dict[tuple[bool, int], Any] = {}
    """Filled by the oracle: what may come of the request, in the stateless era or not, with so many sessions."""


def understand(line: bytes, limit: int) -> Understood:
    """The line without its newline. `limit`: how long one may be."""
    if len(line) > limit:
        return _refused(INVALID_REQUEST)
    line = line.strip(_WHITESPACE)
    if line.startswith(_BOM):
        line = line.removeprefix(_BOM).strip(_WHITESPACE)
    if not line:
        return Understood("blank")
    loose = line.count(b"[") + line.count(b"{") > LOOSE_DEPTH
    try:
        text = line.decode()
    except UnicodeDecodeError:
        text, loose = line.decode(errors="replace"), True
    try:
        value = _load_wary(text) if _LONG_NUMBER.search(line) else _load(text)
    except (ValueError, RecursionError):
        return _refused(PARSE_ERROR)
    has_halves = b"\\u" in line and _SURROGATE.search(json.dumps(value, ensure_ascii=False, default=str)) is not None
    if isinstance(value, list):
        if has_halves:
            return _refused(PARSE_ERROR)
        return Understood("array", loose=loose, items=[_message(item) for item in value])
    understood = _message(value)
    if has_halves and not (isinstance(value, dict) and _is_envelope(value) and not _is_half(value.get("id"))):
        return _refused(PARSE_ERROR)  # what is wrong with it is more than a character
    understood.loose = loose
    return understood


def _is_half(value: object) -> bool:
    """An id has to go back as it came, and none of these can."""
    return isinstance(value, str) and re.search("[\ud800-\udfff\ufffd]", value) is not None


def _message(value: Any) -> Understood:
    if not isinstance(value, dict):
        return _refused(INVALID_REQUEST)
    request_id, method = value.get("id", UNSET), value.get("method", UNSET)
    if not _is_envelope(value):
        is_response = method is UNSET and ("result" in value or "error" in value)
        readable = not is_response and _is_id(request_id)
        return _refused(INVALID_REQUEST, request_id if readable else UNSET)
    if method is UNSET:
        if "result" in value or "error" in value:
            return Understood("response", request_id)
        return _refused(INVALID_REQUEST, request_id)
    params = value.get("params", UNSET)
    if request_id is UNSET:
        fits = method == CANCELLED and fits_struct(params, CancelledParams)
        return Understood("notification", method=method, params=params, fits=fits)
    if request_id is None:
        return _refused(INVALID_REQUEST)
    understood = Understood("request", request_id, method=method, params=params, outcomes={})
    if params is not UNSET:
        _read_meta(params, understood)
    known = METHODS.get(method)
    understood.fits = known is not None and fits_struct({} if params is UNSET else params, known)
    return understood


def _read_meta(params: Any, understood: Understood) -> None:
    if not isinstance(params, dict):
        understood.meta_fits = False
        return
    metas = [params.get("_meta"), *(v for k, v in getattr(params, "earlier", ()) if k == "_meta")]
    understood.meta_fits = all(meta is None or fits_struct(meta, RequestMeta) for meta in metas)
    meta = metas[0]
    if understood.meta_fits and isinstance(meta, dict):
        if PROTOCOL_VERSION_KEY in meta:
            named = meta[PROTOCOL_VERSION_KEY]
            understood.version = named if isinstance(named, str) else ""
        understood.has_capabilities = meta.get(CLIENT_CAPABILITIES_KEY) is not None


def _is_envelope(value: dict[str, Any]) -> bool:
    members = [*value.items(), *(value.earlier if isinstance(value, Repeated) else ())]
    return "jsonrpc" in value and all(_TAKES[name](member) for name, member in members if name in _TAKES)


def _is_id(value: object) -> bool:
    return isinstance(value, int | str) and not isinstance(value, bool)


_TAKES: Final[dict[str, Callable[[Any], bool]]] = {
    "jsonrpc": lambda value: isinstance(value, str) and value == "2.0",
    "id": lambda value: value is None or _is_id(value),
    "method": lambda value: isinstance(value, str),
}


def _refused(code: int, request_id: Any = UNSET) -> Understood:
    return Understood("refused", UNSET if request_id is None else request_id, code)


# JSON as the standard has it: the library's own reader takes NaN, and says nothing of members that are there twice.


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) == len(pairs):
        return found
    repeated = Repeated(found)
    last = {name: index for index, (name, _) in enumerate(pairs)}
    repeated.earlier = [pair for index, pair in enumerate(pairs) if last[pair[0]] != index]
    return repeated


def _no_constant(name: str) -> Any:
    raise ValueError(name)


def _whole(digits: str) -> Any:
    return int(digits) if len(digits.lstrip("-")) <= DIGITS_LIMIT else Absurd()


def _real(digits: str) -> Any:
    value = float(digits)
    return Absurd() if value in (float("inf"), float("-inf")) else value


_load = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_no_constant).decode
_load_wary = json.JSONDecoder(
    object_pairs_hook=_object, parse_constant=_no_constant, parse_int=_whole, parse_float=_real
).decode
