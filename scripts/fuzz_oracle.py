"""What a server must do with a line, given the lines before it: answer or not, how often, and with which outcomes."""

import re
from collections import Counter
from typing import Any, Final

from fuzz_expectation import (
    ANCHOR_FORM,
    BUSY,
    EXPIRED,
    FILE_RESTRICTED,
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    MODE_NOT_FOUND,
    ONLY,
    RESULT,
    SESSION_EXPIRED,
    TASK_NOT_FOUND,
    TOOL_ERROR,
    TOOL_RESTRICTED,
    UNSUPPORTED_VERSION,
    VALIDATION,
    Array,
    Expectation,
    Outcomes,
    Use,
    anchor,
    anchor_mode,
)
from fuzz_reading import INVALID_REQUEST, PARSE_ERROR, Id, Understood
from fuzz_types import METHODS, fits_struct, tools
from msgspec import UNSET

from modes_actor.actor.limits import Limits
from modes_actor.wire.notifications import CANCELLED, INITIALIZED, ROOTS_CHANGED
from modes_actor.wire.versions import (
    HANDSHAKE_VERSIONS,
    V2026_07_28,
    Era,
    Version,
    handshake_version,
)


class Oracle:
    def __init__(self, slugs: frozenset[str], *, anchors: int) -> None:
        self._slugs = slugs
        self._anchors = anchors
        self._handshake: Version | None = None
        self._declares_roots = False
        self._spoke_stateless = False
        self.may_be_asked = False
        """Whether the server may ask this client for its roots, and let it wait for the answer meanwhile."""
        self.pending: dict[Id, list[Expectation]] = {}
        self.loose: list[Expectation] = []
        self.idless: Counter[tuple[int, bool]] = Counter()
        """Errors without a readable id that must have come: codes, and whether they say `id: null`."""
        self.loose_idless = 0
        """Besides those: lines that must be refused, with one code or another."""
        self.loose_silence = 0
        """And lines that may be refused or pass in silence."""
        self.arrays: list[Array] = []
        """Those that hold messages in which no id can be read."""
        self._listeners: set[Id] = set()
        self._modes = {anchor(number): {anchor_mode(number, slugs)} for number in range(anchors)}
        """In which mode each anchor may be."""

    def take(self, understood: Understood, request_id: Any, line: int) -> None:
        """The next line. `request_id` goes before the id that was understood: many lines differ in nothing else."""
        match understood.kind:
            case "request":
                self._request(understood, request_id, line, None)
            case "refused":
                self._refused(understood, request_id, line, None)
            case "notification":
                self._notification(understood)
                self.loose_silence += understood.loose
            case "response":
                self.loose_silence += understood.loose
            case "array":
                self._array(understood, line)

    @property
    def _null_ids(self) -> bool:
        if self._handshake is not None:
            return self._handshake.null_ids
        return not self._spoke_stateless

    def _refused(self, understood: Understood, request_id: Any, line: int, array: Array | None) -> None:
        if request_id is UNSET:
            if array is not None:
                array.idless[understood.code] += 1
            elif understood.loose:
                self.loose_idless += 1
            else:
                self.idless[understood.code, self._null_ids] += 1
            return
        expected = Expectation(request_id, frozenset({understood.code}), line, "-", "-", array=array)
        if understood.loose:
            expected.outcomes |= {PARSE_ERROR}
            expected.loose = True
            self.loose.append(expected)
        self._expect(expected)

    def _notification(self, understood: Understood) -> None:
        method = understood.method
        if method == CANCELLED and understood.fits:
            request_id = understood.params["requestId"]
            for expected in self.pending.get(request_id, ()):
                expected.optional = expected.optional or expected.may_wait or expected.at_end
            if request_id in self._listeners:
                self._listeners.remove(request_id)
                for expected in self.pending[request_id]:
                    if expected.at_end:  # from here on it is silent
                        expected.optional, expected.outcomes = True, frozenset()
                if len(self.pending[request_id]) == 1:
                    del self.pending[request_id]
        elif method in (INITIALIZED, ROOTS_CHANGED) and self._declares_roots:
            self.may_be_asked = True

    def _array(self, understood: Understood, line: int) -> None:
        items = understood.items or []
        takes_arrays = self._handshake is not None and self._handshake.arrays
        if not takes_arrays or not 1 <= len(items) <= 1024:
            self.idless[INVALID_REQUEST, self._null_ids] += 1
            return
        array = Array(Counter())
        for item in items:
            if item.kind == "request" and item.method == "initialize":
                self._expect(Expectation(_id(item), ONLY[INVALID_REQUEST], line, item.method, "-", array=array))
            elif item.kind == "request":
                self._request(item, item.id, line, array)
            elif item.kind == "refused":
                self._refused(item, item.id, line, array)
            elif item.kind == "notification":
                self._notification(item)
        if array.idless:
            array.silent = all(item.kind == "notification" or item.id is UNSET for item in items)
            self.arrays.append(array)

    def _request(self, understood: Understood, request_id: Any, line: int, array: Array | None) -> None:
        method = understood.method
        version, outcomes = self._caller(understood, request_id)
        served = False
        may_wait = False
        use = None
        if version is not None and array is not None and not version.arrays:
            outcomes = ONLY[INVALID_REQUEST]
        elif version is not None:
            if method not in version.methods or method not in METHODS:
                outcomes = ONLY[METHOD_NOT_FOUND]
            elif not understood.fits:
                outcomes = ONLY[INVALID_PARAMS]
            else:
                served = True
                outcomes, may_wait = self._served(understood, version)
                use = self._use(understood) if method == "tools/call" and RESULT in outcomes else None
        known = method if method in METHODS else "an unknown method"
        name = "-" if version is None else version.name
        if served and method == "initialize" and self._handshake is not None:
            name = self._handshake.name
        expected = Expectation(request_id, outcomes, line, known, name, may_wait=may_wait, array=array, use=use)
        if understood.loose:
            expected.loose, expected.use = True, None
            expected.outcomes = outcomes | {PARSE_ERROR, INVALID_REQUEST, INVALID_PARAMS, VALIDATION}
            expected.outcomes |= {TOOL_ERROR + VALIDATION}
            self.loose.append(expected)
        if served and method == "subscriptions/listen":
            if len(self._listeners) >= _LISTENERS:
                expected.outcomes = frozenset({BUSY})
            else:
                expected.at_end = True
                self._listeners.add(request_id)
        self._expect(expected)

    def _caller(self, understood: Understood, request_id: Id) -> tuple[Version | None, Outcomes]:
        """In which version it is served, or what comes of it if in none."""
        if request_id in self._listeners:
            return None, ONLY[INVALID_REQUEST]
        if not understood.meta_fits:
            return None, ONLY[INVALID_PARAMS]
        if understood.version is not UNSET:
            if understood.version != V2026_07_28.name:
                return None, ONLY[UNSUPPORTED_VERSION]
            self._spoke_stateless = True
            return (V2026_07_28 if understood.has_capabilities else None), ONLY[INVALID_PARAMS]
        if self._handshake is not None:
            return self._handshake, ONLY[RESULT]
        return (HANDSHAKE_VERSIONS[0] if understood.method in ("initialize", "ping") else None), ONLY[INVALID_PARAMS]

    def _expect(self, expected: Expectation) -> None:
        others = self.pending.get(expected.id)
        if others is None:
            self.pending[expected.id] = [expected]
            return
        if any(each.may_wait for each in others):
            expected.outcomes |= ONLY[INVALID_REQUEST]  # its id may be in use still
        for each in (expected, *others):
            each.shared = True
        others.append(expected)

    def _served(self, understood: Understood, version: Version) -> tuple[Outcomes, bool]:
        """What may come of a request whose params fit, and whether it may wait."""
        method, params = understood.method, understood.params if understood.params is not UNSET else {}
        is_stateless = version.era is Era.STATELESS
        if method == "initialize":
            self._handshake = handshake_version(params["protocolVersion"])
            self._declares_roots = params["capabilities"].get("roots") is not None
        case = is_stateless, self._anchors
        known = understood.outcomes.get(case)
        if known is None:
            found, writes = self._outcomes(method, params)
            if is_stateless:
                found = {_stateless(each, method) for each in found}
            known = understood.outcomes[case] = (frozenset(found), writes)
        outcomes, may_wait = known
        if self.may_be_asked and not is_stateless and method in _WAIT_FOR_ROOTS:
            return outcomes | {BUSY}, True
        return outcomes, may_wait

    def _use(self, understood: Understood) -> Use | None:
        """What a call that may succeed asks about its session's mode, or changes in it."""
        name, given = understood.params["name"], understood.params.get("arguments")
        if name == "switch_mode":
            self._modes[given["session_id"]].add(given["new_mode_slug"])
        if name != "validate_tool_use":
            return None
        return Use(
            self._modes[given["session_id"]], given["tool_name"], given.get("file_path"), bool(given.get("arguments"))
        )

    def _outcomes(self, method: str, params: dict[str, Any]) -> tuple[set[int], bool]:
        """In the handshake era's numbers."""
        match method:
            case "tools/call":
                return self._tool(params["name"], params.get("arguments"))
            case "tools/list" | "resources/list" | "resources/templates/list" | "prompts/list":
                return {RESULT if params.get("cursor") is None else INVALID_PARAMS}, False
            case "resources/read":
                return self._read(params["uri"]), False
            case "prompts/get":
                return self._prompt(params["name"], params.get("arguments") or {}), False
            case _:
                return {RESULT}, False

    def _tool(self, name: str, arguments: Any) -> tuple[set[int], bool]:
        struct = tools().get(name)
        if struct is None:
            return {INVALID_PARAMS}, False
        given = {} if arguments is None else arguments
        if not fits_struct(given, struct):
            return {VALIDATION}, False
        match name:
            case "list_modes":
                return {RESULT}, False
            case "get_mode_info":
                return self._mode(given["mode_slug"]), False
            case "create_task":
                parent, mode = given.get("parent_session_id"), self._mode(given["mode_slug"])
                above = {RESULT} if parent is None else self._open_task(parent)
                return _first({VALIDATION} if above == {VALIDATION} else {RESULT}, mode, above)
            case "switch_mode":
                session, mode = self._session(given["session_id"]), self._mode(given["new_mode_slug"])
                if VALIDATION in (*session, *mode):
                    return {VALIDATION}, True
                return _first(session, mode, self._open_task(given["session_id"]))
            case "get_task_info":
                return self._session(given["session_id"]), False
            case "validate_tool_use":
                if not given["tool_name"].strip():
                    return {VALIDATION}, True
                told = {RESULT, TOOL_RESTRICTED, FILE_RESTRICTED} if given.get("enforce") else {RESULT}
                return _first(self._session(given["session_id"]), told)
            case "complete_task":
                return _first(self._open_task(given["session_id"]))
            case _:
                return {RESULT, MODE_NOT_FOUND, TASK_NOT_FOUND, SESSION_EXPIRED, VALIDATION}, True

    def _mode(self, slug: str) -> set[int]:
        if re.fullmatch("[a-zA-Z0-9-]+", slug) is None:
            return {VALIDATION}
        return {RESULT if slug in self._slugs else MODE_NOT_FOUND}

    def _open_task(self, session_id: str) -> set[int]:
        """As `_session`, for what a task that has ended takes no more; and what changes may overtake one another."""
        found = self._session(session_id)
        return {RESULT, VALIDATION} if found == {RESULT} else found

    def _session(self, session_id: str) -> set[int]:
        if re.fullmatch("sess?_[A-Za-z0-9]{4,64}", session_id) is None:
            return {VALIDATION}
        found = ANCHOR_FORM.fullmatch(session_id.encode())
        is_expired = found is not None and found[1] == b"f"
        if found is None or int(found[2], 16) >= (EXPIRED if is_expired else self._anchors):
            return {TASK_NOT_FOUND}
        return {SESSION_EXPIRED if is_expired else RESULT}

    def _read(self, uri: str) -> set[int]:
        if uri.startswith("task://"):
            return self._session(uri.removeprefix("task://"))
        slug, slash, part = uri.removeprefix("mode://").partition("/")
        if not uri.startswith("mode://") or (slash and part not in ("config", "system_prompt")):
            return {VALIDATION}
        return self._mode(slug)

    def _prompt(self, name: str, arguments: dict[str, str]) -> set[int]:
        if name in self._slugs:
            return {RESULT}
        if name != "handoff" or not {"session_id", "to_mode"} <= arguments.keys():
            return {INVALID_PARAMS}
        session, mode = self._session(arguments["session_id"]), self._mode(arguments["to_mode"])
        return {VALIDATION} if VALIDATION in (*session, *mode) else _first(session, mode)[0]


_LISTENERS: Final = Limits().listeners
_WAIT_FOR_ROOTS: Final = frozenset(
    {"tools/call", "resources/list", "resources/read", "prompts/list", "prompts/get", "completion/complete"}
)


def _id(understood: Understood) -> Id:
    assert isinstance(understood.id, int | str)
    return understood.id


def _first(*checks: set[int]) -> tuple[set[int], bool]:
    """The first check that does not pass decides. All of these may wait for the store."""
    return next((each for each in checks if each != {RESULT}), {RESULT}), True


def _stateless(outcome: int, method: str) -> int:
    """The tools' own errors are results there, and those of other methods are about the params."""
    if not -32010 < outcome < -32000:
        return outcome
    return TOOL_ERROR + outcome if method == "tools/call" else INVALID_PARAMS
