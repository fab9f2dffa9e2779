"""A failure in a file: everything that is needed to see it again, made as small as there was time for."""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, Literal, TypeVar

import msgspec
import trio
from fuzz_ground import Ground
from fuzz_judge import SCHEMA, Broken
from fuzz_play import Plan, Round, line_of, play
from fuzz_schemas import schema_check
from msgspec import UNSET, Struct, structs

T = TypeVar("T")
_LONGEST: Final = 90.0
"""Seconds after which a case is small enough."""
_IS_IT_STILL: Final = 10.0
"""Seconds after which a small case counts as hanging."""


class Blob(Struct):
    """A line that is no text."""

    base64: bytes


class CaseRound(Struct):
    lines: list[str | Blob]
    cuts: list[int] = []


class Case(Struct, kw_only=True):
    """`rounds` and `plan` for messages; `before` and `after` for a file that was changed."""

    what: Literal["messages", "modes", "config"]
    seed: str
    expected: str
    found: str
    server: tuple[str, ...] = ()
    """The command of the server that it was found with, if that was not ours."""
    plan: Plan = Plan()
    rounds: list[CaseRound] = []
    before: str = ""
    after: str | Blob = ""
    note: str = ""


def written(data: bytes) -> str | Blob:
    """As text wherever a person can read it."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return Blob(data)
    return text if text.translate(_LAYOUT).isprintable() else Blob(data)


_LAYOUT: Final = str.maketrans("", "", "\n\t")
"""What files are laid out with."""


def bytes_of(line: str | Blob) -> bytes:
    return line.encode() if isinstance(line, str) else line.base64


Rounds = list[tuple[list[bytes], list[int]]]


def rounds_of(case: Case) -> Rounds:
    return [([bytes_of(line) for line in each.lines], each.cuts) for each in case.rounds]


def save(case: Case, directory: Path) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"fuzz-{case.what}-{case.seed.replace(':', '-')}.json"
    path.write_bytes(msgspec.json.format(msgspec.json.encode(case)) + b"\n")
    return path


_line_of = lru_cache(maxsize=50_000)(line_of)  # a case is played many times, and most of its lines stay


async def played_again(
    ground: Ground, rounds: Rounds, plan: Plan, *, promise: str, name: str, patience: float = _IS_IT_STILL
) -> Broken | None:
    """What is wrong with it now, if anything is. `promise`: what was; if it is the schemas, each answer is checked."""
    made = [Round([_line_of(line) for line in lines], cuts) for lines, cuts in rounds]
    sample = schema_check() if promise == SCHEMA else None
    try:
        await play(ground, made, plan, name=name, sample=sample, sampled=1, patience=patience)
    except Broken as broken:
        return broken
    return None


async def shrunk(case: Case, ground: Ground, broken: Broken, *, trials: int, name: str) -> Case:
    """The case with fewer and smaller messages that break the same promise, on as many new servers at most."""
    smaller = _Shrinking(case, ground, name, trials, waited=broken.waited)
    with suppress(_Enough):
        await smaller.run(broken.line)
    return smaller.case


class _Enough(Exception):
    """There is no time for more trials."""


class _Shrinking:
    def __init__(self, case: Case, ground: Ground, name: str, trials: int, *, waited: bool) -> None:
        self.case = case
        self._waited = waited
        self._ground = ground
        self._name = name
        self._trials = trials
        self._deadline = trio.current_time() + _LONGEST

    async def run(self, line: int | None) -> None:
        lines = [each for each, _ in _flat(rounds_of(self.case))]
        blamed = [] if line is None or not 0 <= line < len(lines) else [lines[line]]
        openings = [each for each in lines[:line] if _opens(each)]
        for guess in (blamed, openings[-1:] + blamed):
            if blamed and await self._still([(guess, [])], Plan(anchored=b"sess_" in blamed[0])):
                break
        else:
            if not await self._still(rounds_of(self.case), self.case.plan):
                self.case.note = "it did not happen again when the same was sent to a new server"
                return
            for plan in (Plan(anchored=False), structs.replace(self.case.plan, tail=b"", log_level="INFO")):
                if await self._still(rounds_of(self.case), plan):
                    break
            await self._still([(lines, []) for lines, _ in rounds_of(self.case)], self.case.plan)
            await self._fewer_messages()
        await self._smaller_messages()

    async def _still(self, rounds: Rounds, plan: Plan) -> bool:
        """Whether the same promise is broken by this; then it is the case from now on."""
        self._trials -= 1
        if self._trials < 0 or trio.current_time() > self._deadline:
            raise _Enough
        broken = await played_again(self._ground, rounds, plan, promise=self.case.expected, name=self._name)
        if broken is None or broken.promise != self.case.expected or (broken.waited and not self._waited):
            return False
        kept = [CaseRound([written(line) for line in lines], cuts) for lines, cuts in rounds if lines]
        self.case = structs.replace(self.case, found=broken.found, rounds=kept, plan=plan)
        return True

    async def _fewer_messages(self) -> None:
        rounds = rounds_of(self.case)

        async def still(flat: Sequence[tuple[bytes, int]]) -> bool:
            return await self._still(_grouped(flat, [cuts for _, cuts in rounds]), self.case.plan)

        await minimal(_flat(rounds), still)

    async def _smaller_messages(self) -> None:
        for index in range(len(_flat(rounds_of(self.case)))):
            is_smaller = True
            while is_smaller:
                is_smaller = False
                rounds = rounds_of(self.case)
                flat = _flat(rounds)
                for smaller in reductions(flat[index][0]):
                    changed = [*flat[:index], (smaller, flat[index][1]), *flat[index + 1 :]]
                    if await self._still(_grouped(changed, [cuts for _, cuts in rounds]), self.case.plan):
                        is_smaller = True
                        break


def _opens(line: bytes) -> bool:
    if b'"initialize"' not in line:
        return False
    found = line_of(line).understood
    return found.kind == "request" and found.method == "initialize" and found.fits and found.version is UNSET


async def minimal(items: Sequence[T], still: Callable[[Sequence[T]], Awaitable[bool]]) -> Sequence[T]:
    """Delta debugging: a part of the items of which nothing can be left out, as long as `still` says yes."""
    parts = 2
    while len(items) >= 2:
        size = -(-len(items) // parts)
        for start in range(0, len(items), size):
            rest = [*items[:start], *items[start + size :]]
            if await still(rest):
                items, parts = rest, max(parts - 1, 2)
                break
        else:
            if size == 1:
                break
            parts = min(parts * 2, len(items))
    return items


def reductions(line: bytes) -> list[bytes]:
    """Smaller lines to try in the place of one, the smallest first."""
    try:
        value = msgspec.json.decode(line)
    except (ValueError, RecursionError):
        half, quarter = len(line) // 2, len(line) // 4
        cuts = [line[:half], line[half:], line[quarter:], line[: -quarter or None], line[1:], line[:-1]]
        return sorted({cut for cut in cuts if len(cut) < len(line)}, key=len)
    found = {msgspec.json.encode(each) for each in _smaller(value, 0)} - {line}
    # A digit that becomes 0 is no shorter, but that happens to it only once.
    return sorted((each for each in found if len(each) <= len(line)), key=lambda each: (len(each), each))[:200]


def _smaller(value: Any, depth: int) -> list[Any]:
    if depth > 8:
        return []
    match value:
        case dict():
            without: list[Any] = [{k: v for k, v in value.items() if k != key} for key in value]
            inside: list[Any] = [
                {**value, key: smaller} for key, v in value.items() for smaller in _smaller(v, depth + 1)
            ]
            return without + inside
        case list():
            without = [value[:at] + value[at + 1 :] for at in range(len(value))]
            inside = [
                [*value[:at], smaller, *value[at + 1 :]]
                for at, v in enumerate(value)
                for smaller in _smaller(v, depth + 1)
            ]
            return without + inside
        case str() if value:
            half = len(value) // 2
            return ["", value[:half], value[half:]]
        case int() | float() if value and value is not True:
            return [0]
        case _:
            return []


def _flat(rounds: Rounds) -> list[tuple[bytes, int]]:
    return [(line, index) for index, (lines, _) in enumerate(rounds) for line in lines]


def _grouped(flat: Sequence[tuple[bytes, int]], cuts: list[list[int]]) -> Rounds:
    return [([line for line, at in flat if at == index], each) for index, each in enumerate(cuts)]
