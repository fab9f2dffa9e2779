"""What a server said, held against what the oracle expects. The first thing that is wrong is a `Broken`."""

from collections import Counter
from collections.abc import Callable
from typing import Final, Literal

import msgspec
from fuzz_expectation import ANCHOR_FORM, BUSY, RESULT, TOOL_ERROR, Array, Expectation
from fuzz_matching import matching
from fuzz_oracle import Oracle
from fuzz_permissions import is_known, objection
from fuzz_reading import Id
from msgspec import UNSET, Raw, Struct, UnsetType

from modes_actor.wire.notifications import (
    CANCELLED,
    LISTEN_ACKNOWLEDGED,
    PROMPTS_CHANGED,
    RESOURCE_UPDATED,
    RESOURCES_CHANGED,
    TOOLS_CHANGED,
)

INTERNAL_ERROR: Final = -32603
SERVER_REQUESTS: Final = ("roots/list",)
SERVER_NOTIFICATIONS: Final = (
    CANCELLED,
    LISTEN_ACKNOWLEDGED,
    PROMPTS_CHANGED,
    RESOURCE_UPDATED,
    RESOURCES_CHANGED,
    TOOLS_CHANGED,
)


SAMPLED: Final = 200
"""One answer of so many is held against the schema."""


class Broken(Exception):
    """A promise that was not kept. `line`: which of the lines that were sent it is about, if it is about one."""

    def __init__(self, promise: str, found: str, line: int | None = None, *, waited: bool = False) -> None:
        """`waited`: it was found by waiting for nothing, which a busy machine can bring about, too."""
        super().__init__(f"{promise}: {found}")
        self.promise = promise
        self.found = found
        self.line = line
        self.waited = waited


class _Error(Struct, forbid_unknown_fields=True, gc=False):
    code: int
    message: str
    data: Raw | UnsetType = UNSET


class _Said(Struct, forbid_unknown_fields=True, gc=False):
    jsonrpc: Literal["2.0"]
    id: Id | UnsetType | None = UNSET
    method: str | UnsetType = UNSET
    params: Raw | UnsetType = UNSET
    result: Raw | UnsetType = UNSET
    error: _Error | UnsetType = UNSET


class _ToolErrorCode(Struct):
    code: int


class _ToolErrorContent(Struct):
    error: _ToolErrorCode


class _ToolErrorResult(Struct, rename="camel"):
    is_error: Literal[True]
    structured_content: _ToolErrorContent


_decode = msgspec.json.Decoder(_Said | list[_Said]).decode_lines
_decode_tool_error = msgspec.json.Decoder(_ToolErrorResult).decode

ENVELOPE: Final = "nothing but valid JSON-RPC on stdout, a line each"
ONCE: Final = "each request is answered exactly once, notifications and responses never"
OUTCOME: Final = "each answer is of the class that its request calls for"
PERMISSIONS: Final = "a tool is allowed where the mode's groups and its edit pattern allow it, and nowhere else"
INTERNAL: Final = "no internal error"
SECRETS: Final = "no secret, no path outside the project and no traceback in an answer"
SCHEMA: Final = "a sample of answers is valid by the official schemas"
LIVENESS: Final = "the process lives, answers a ping after everything else, and ends with exit code 0"
LOG: Final = "no traceback and no error in the log"
PROMISES: Final = (ENVELOPE, ONCE, OUTCOME, PERMISSIONS, INTERNAL, SECRETS, SCHEMA, LIVENESS, LOG)


class Judge:
    def __init__(
        self,
        oracle: Oracle,
        forbidden: tuple[bytes, ...] = (),
        sample: "Callable[[Expectation, bytes], None] | None" = None,
        sampled: int = SAMPLED,
    ) -> None:
        """`forbidden`: what must not be in any answer. `sample` is shown one of `sampled` answers, and may raise."""
        self.oracle = oracle
        self._forbidden = forbidden
        self._sample = sample
        self._sampled = sampled
        self._idless: Counter[tuple[int, bool]] = Counter()
        self._rest = b""
        self._heard = self._shown = self._known_uses = 0
        self._tangled: dict[Id, list[int]] = {}
        """What came of requests that were under way with one id: which answer is whose, nobody can tell."""
        self.outcomes: Counter[tuple[str, str, int]] = Counter()
        """Methods, versions and what came of them."""
        self.pings: set[Id] = set()
        """Barriers that have been answered."""
        self.asked: list[Id] = []
        """Requests of the server that wait for an answer."""
        self.created: dict[Id, bytes] = {}
        """Results of requests whose ids are in here beforehand."""

    @property
    def held(self) -> Counter[str]:
        """How much was held against each promise; a server that has ended counts by itself."""
        answers = dict.fromkeys((ENVELOPE, ONCE, OUTCOME, INTERNAL, SECRETS), self.outcomes.total())
        return Counter({**answers, PERMISSIONS: self._known_uses, SCHEMA: self._shown, LIVENESS: 1, LOG: 1})

    def hear(self, block: bytes) -> None:
        """The next bytes from the server."""
        block = self._rest + block
        end = block.rfind(b"\n") + 1
        block, self._rest = block[:end], block[end:]
        if not block:
            return
        for text in self._forbidden:
            if text in block:
                line = next(each for each in block.splitlines() if text in each)
                raise Broken(SECRETS, f"{text.decode()!r} is in {_shown(line)}")
        try:
            said = _decode(block)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise _envelope_trouble(block) from error
        if b"\n\n" in block or block.startswith(b"\n"):
            raise Broken(ENVELOPE, "an empty line")
        for each in said:
            if isinstance(each, list):
                self._hear_array(each)
            elif each.method is not UNSET:
                self._hear_server(each)
            else:
                self._hear_answer(each)

    def at_barrier(self) -> None:
        """Everything sent before the barrier has been handled: what never waits must have been answered."""
        oracle = self.oracle
        for key, count in oracle.idless.items():
            if self._idless[key] < count:
                code, is_null = key
                came = ", ".join(f"{n} times {c} {_without_id(null)}" for (c, null), n in self._idless.items())
                raise Broken(
                    ONCE, f"{count} times {code} {_without_id(is_null)} should have come, not {came or 'none'}"
                )
        extras = sum(self._idless.values()) - sum(oracle.idless.values())
        unresolved = [each for each in oracle.loose if each in oracle.pending.get(each.id, ())]
        inline = [each for each in unresolved if not each.late]
        most = oracle.loose_idless + oracle.loose_silence + len(unresolved)
        if not oracle.loose_idless + len(inline) <= extras <= most:
            least = oracle.loose_idless + len(inline)
            raise Broken(ONCE, f"{extras} errors without an id besides those expected, not {least} to {most}")
        for each in inline:
            self._forget(each)
        if extras > oracle.loose_idless + len(inline):
            for each in unresolved:
                each.optional = True  # one of the late ones may have been refused: nobody can tell which
        if any(each.silent and not each.answered for each in oracle.arrays):
            raise Broken(ONCE, "an array in which no id can be read was not answered")
        oracle.arrays = [each for each in oracle.arrays if not each.answered]
        self._idless.clear()
        oracle.idless.clear()
        oracle.loose = [each for each in unresolved if each in oracle.pending.get(each.id, ())]
        oracle.loose_idless = oracle.loose_silence = 0
        for expected in self.missing():
            if not expected.late:
                raise _unanswered(expected)

    def missing(self, *, at_end: bool = False) -> list[Expectation]:
        """What must be answered and has not been."""
        found: list[Expectation] = []
        for request_id, those in self.oracle.pending.items():
            owed = [each for each in those if not each.optional and (at_end or not each.at_end)]
            if len(those) > 1:
                answers = matching(self._tangled.get(request_id, ()), owed)
                owed = [each for each, answer in zip(owed, answers, strict=True) if answer is None]
            found += owed
        return found

    def at_end(self) -> None:
        """The server has ended."""
        if self._rest:
            raise Broken(ENVELOPE, f"the output ends in the middle of a line: {_shown(self._rest)}")
        self.at_barrier()
        if missing := self.missing(at_end=True):
            raise _unanswered(missing[0])

    def _hear_server(self, said: _Said) -> None:
        if said.result is not UNSET or said.error is not UNSET or said.id is None:
            raise Broken(ENVELOPE, f"a message with a method and an answer's members: {said.method}")
        is_request = said.id is not UNSET
        if said.method not in (SERVER_REQUESTS if is_request else SERVER_NOTIFICATIONS):
            raise Broken(ENVELOPE, f"the server sent a {said.method} that no version knows")
        if is_request:
            if not self.oracle.may_be_asked:
                raise Broken(OUTCOME, f"the server asked a client for {said.method} that did not declare it")
            assert isinstance(said.id, int | str)
            self.asked.append(said.id)

    def _hear_array(self, array: list[_Said]) -> None:
        arrays = {id(found): found for each in array if (found := self._hear_answer(each, inside=True)) is not None}
        idless = Counter(each.error.code for each in array if each.id is None and each.error is not UNSET)
        if not arrays and idless:
            alike = [each for each in self.oracle.arrays if each.idless == idless and not each.answered]
            if not alike:
                raise Broken(ONCE, f"an array of {len(array)} answers that nobody waits for")
            max(alike, key=lambda each: each.silent).answered = True
            return
        if len(arrays) != 1:
            raise Broken(ONCE, f"one array of answers to {len(arrays)} arrays of requests")
        for found in arrays.values():
            if found.answered or idless != found.idless:
                raise Broken(ONCE, f"an array's answers came in pieces, or without an id: {dict(idless)}")
            found.answered = True

    def _hear_answer(self, said: _Said, *, inside: bool = False) -> Array | None:
        error = said.error
        if (said.result is UNSET) == (error is UNSET) or said.params is not UNSET:
            raise Broken(ENVELOPE, f"an answer needs either a result or an error: id {said.id!r}")
        outcome = RESULT if error is UNSET else self._code(error)
        if said.id is None or said.id is UNSET:
            if error is UNSET:
                raise Broken(ENVELOPE, "a result without an id")
            if not inside:
                self._idless[outcome, said.id is None] += 1
                self.outcomes["-", "-", outcome] += 1
            return None
        those = self.oracle.pending.get(said.id)
        if those is None:
            if said.id in self.pings or not isinstance(said.id, str) or not said.id.startswith("barrier"):
                raise Broken(ONCE, f"an answer that nobody waits for: id {_shown(repr(said.id).encode())}")
            self.pings.add(said.id)
            return None
        if said.result is not UNSET and any(each.method == "tools/call" for each in those):
            outcome = self._tool_outcome(bytes(said.result))
        if len(those) > 1:
            self._hear_tangled(said, outcome, those, inside=inside)
            return None
        (expected,) = those
        self._check(said, outcome, expected, inside=inside)
        if said.id in self.created:
            self.created[said.id] = bytes(said.result) if said.result is not UNSET else b""
        self._forget(expected)
        return expected.array

    def _hear_tangled(self, said: _Said, outcome: int, those: list[Expectation], *, inside: bool) -> None:
        assert isinstance(said.id, int | str)
        heard = self._tangled.setdefault(said.id, [])
        heard.append(outcome)
        answers = matching(heard, those)
        if len(heard) > len(those):
            raise Broken(ONCE, f"{len(heard)} answers to {len(those)} requests: id {_shown(repr(said.id).encode())}")
        last = len(heard) - 1
        # One answer too many of its kind is everybody's; it is told of the request that takes the fewest others.
        at = answers.index(last) if last in answers else min(range(len(those)), key=lambda at: len(those[at].outcomes))
        self._check(said, outcome, those[at], inside=inside)
        if sum(answer is not None for answer in answers) < len(heard):
            raise Broken(OUTCOME, f"answers {heard} to requests of which none takes as many: id {said.id!r}")
        if len(heard) == len(those):
            del self.oracle.pending[said.id], self._tangled[said.id]

    def _check(self, said: _Said, outcome: int, expected: Expectation, *, inside: bool) -> None:
        self.outcomes[expected.method, expected.version, outcome] += 1
        what = f"{expected.method} ({expected.version}), id {_shown(repr(said.id).encode())}"
        if outcome not in expected.outcomes:
            told = "" if said.error is UNSET else f" ({_shown(said.error.message.encode())})"
            if outcome in (INTERNAL_ERROR, BUSY):
                raise Broken(INTERNAL, f"{what}: {outcome_name(outcome)}{told}", expected.line)
            wanted = " or ".join(sorted(map(outcome_name, expected.outcomes)))
            raise Broken(OUTCOME, f"{what}: {outcome_name(outcome)}{told}, not {wanted}", expected.line)
        if inside != (expected.array is not None):
            raise Broken(ONCE, f"{what}: answered {'inside' if inside else 'outside'} an array", expected.line)
        if expected.use is not None and not expected.shared:
            self._known_uses += is_known(expected.use, outcome)
            result = b"" if said.result is UNSET else bytes(said.result)
            if (against := objection(expected.use, outcome, result)) is not None:
                raise Broken(PERMISSIONS, f"{what}: {against}", expected.line)
        self._heard += 1
        is_clear = not expected.shared and expected.version != "-"
        if self._sample is not None and self._heard % self._sampled == 0 and is_clear:
            self._shown += 1
            self._sample(expected, msgspec.json.encode(said))

    def _forget(self, expected: Expectation) -> None:
        those = self.oracle.pending[expected.id]
        if len(those) == 1:
            del self.oracle.pending[expected.id]
        else:
            those.remove(expected)

    @staticmethod
    def _code(error: _Error) -> int:
        if error.code == INTERNAL_ERROR and error.data is not UNSET and b'"retryable":true' in bytes(error.data):
            return BUSY
        return error.code

    @staticmethod
    def _tool_outcome(result: bytes) -> int:
        if b'"isError":true' not in result:
            return RESULT
        try:
            return TOOL_ERROR + _decode_tool_error(result).structured_content.error.code
        except msgspec.MsgspecError as error:
            raise Broken(ENVELOPE, f"a tool's error that is none: {_shown(result)}") from error


def outcome_name(outcome: int) -> str:
    """For people."""
    if outcome == RESULT:
        return "result"
    if outcome == BUSY:
        return "-32603, retryable"
    return str(outcome) if outcome > TOOL_ERROR // 2 else f"tool error {outcome - TOOL_ERROR}"


def real_sessions(block: bytes, sessions: dict[bytes, bytes]) -> bytes:
    """The lines with the ids of the anchors in place of their numbers; they are equally long."""
    return ANCHOR_FORM.sub(lambda found: sessions.get(found[0], found[0]), block)


def _unanswered(expected: Expectation) -> Broken:
    what = f"{expected.method} ({expected.version}), id {_shown(repr(expected.id).encode())}"
    return Broken(ONCE, f"{what}: not answered", expected.line)


def _without_id(is_null: bool) -> str:
    return "with `id: null`" if is_null else "without `id`"


def _envelope_trouble(block: bytes) -> Broken:
    for line in block.splitlines():
        try:
            _decode(line)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            return Broken(ENVELOPE, f"{error}: {_shown(line)}")
    return Broken(ENVELOPE, f"no lines of JSON: {_shown(block)}")


def _shown(data: bytes) -> str:
    text = data[:300].decode(errors="replace")
    return text if len(data) <= 300 else f"{text}…"
