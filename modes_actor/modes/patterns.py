"""The `fileRegex` of a mode: JavaScript regular expressions, matched as `new RegExp(text).test(path)` would.

Promises: what JavaScript refuses is refused; what is accepted means what it means there (no flags, so Annex B grammar
and UTF-16 code units); no pattern and no path hold the caller up much longer than it allows. Where the same meaning
cannot be given, the pattern is refused: a mode never gets more files than its author wrote down.

Does not know what a path is, nor what a match permits.
"""

import re
import struct
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import takewhile
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    import regex

LONGEST = 5_000  # characters in a pattern
LONGEST_PATH = 65_536  # beyond it, single steps of the engine take so long that it overruns its time
DEEPEST = 50  # groups in groups; the engine compiles them recursively
BIGGEST = 10_000  # terms, each as often as it must occur; the engine writes a{500} out as 500 nodes
PLAINEST = 100  # characters in a row; the engine takes cubic time, on no clock, to prepare the search for a string
ENDLESS = 2**31 - 1  # V8 takes higher counts for this one, and this one for no bound

Ranges = list[tuple[int, int]]


class BadPattern(ValueError):
    """The text is no JavaScript regular expression, or one whose meaning cannot be kept; says why, for a person."""


class FilePattern:
    """One pattern. Once it has run out of time it matches nothing any more: being slow must not open anything."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.exhausted = False
        self._search = _compiled(text).search

    def matches(self, path: str, *, within: float = 0.05) -> bool:
        """Whether it is found anywhere in the path, within so many seconds; never in a path of absurd length."""
        if self.exhausted or len(path) > LONGEST_PATH:
            return False
        try:
            return self._search(path if path.isascii() else _code_units(path), timeout=within) is not None
        except Exception:  # TimeoutError; but whatever else the engine may raise, the answer has to be no
            self.exhausted = True
            return False


def _compiled(text: str) -> "regex.Pattern[str]":
    if len(text) > LONGEST:
        raise BadPattern(f"longer than {LONGEST} characters")
    translated = _Translation(_code_units(text)).result()
    import regex  # here, because it takes 20 ms and most servers have no patterns

    try:
        return regex.compile(translated, regex.VERSION0 | regex.ASCII, cache_pattern=False)
    except (regex.error, RecursionError, OverflowError, MemoryError) as error:
        raise BadPattern(f"too much for the engine: {error}") from error


def _code_units(text: str) -> str:
    """One character per UTF-16 code unit, which is what JavaScript's `.` and classes see without the u flag."""
    encoded = text.encode("utf-16-le", "surrogatepass")
    return "".join(map(chr, struct.unpack(f"<{len(encoded) // 2}H", encoded)))


def _characters(units: str) -> str:
    return units.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


# Characters and classes. All are written as \uXXXX and ranges of them, so that nothing in them can mean anything else
# to the engine.

LAST = 0xFFFF
LINE_ENDS: Ranges = [(0x0A, 0x0A), (0x0D, 0x0D), (0x2028, 0x2029)]
DIGITS: Ranges = [(0x30, 0x39)]
WORD: Ranges = [*DIGITS, (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A)]
SPACE: Ranges = [(0x09, 0x0D), (0x20, 0x20), (0xA0, 0xA0), (0x1680, 0x1680), (0x2000, 0x200A), (0x2028, 0x2029)]
SPACE += [(0x202F, 0x202F), (0x205F, 0x205F), (0x3000, 0x3000), (0xFEFF, 0xFEFF)]


def _others(ranges: Ranges) -> Ranges:
    """All code units outside of these ranges, which are in order."""
    starts = [0, *(high + 1 for _, high in ranges)]
    ends = [*(low - 1 for low, _ in ranges), LAST]
    return [(low, high) for low, high in zip(starts, ends, strict=True) if low <= high]


ESCAPED_SETS = {"d": DIGITS, "w": WORD, "s": SPACE, "D": _others(DIGITS), "W": _others(WORD), "S": _others(SPACE)}


def _class(ranges: Ranges, *, negated: bool = False) -> str:
    if not ranges:
        return f"[\\u0000-\\u{LAST:04x}]" if negated else "(?!)"
    inside = "".join(f"\\u{low:04x}-\\u{high:04x}" if low < high else f"\\u{low:04x}" for low, high in ranges)
    return f"[^{inside}]" if negated else inside if inside.count("\\") == 1 else f"[{inside}]"


@cache
def _case_families() -> dict[int, list[int]]:
    """For each code unit with case, those that JavaScript holds equal to it; not quite those that Python does."""
    families = defaultdict(list)
    for unit in range(LAST + 1):
        upper = chr(unit).upper()
        same = len(upper) == 1 and ord(upper) <= LAST and (unit < 0x80) >= (ord(upper) < 0x80)
        families[ord(upper) if same else unit].append(unit)
    return {unit: family for family in families.values() if len(family) > 1 for unit in family}


def _in_any_case(ranges: Ranges) -> Ranges:
    more: set[int] = set()
    for low, high in ranges:
        if low == high:
            more.update(_case_families().get(low, ()))
        else:
            more.update(*(family for unit, family in _case_families().items() if low <= unit <= high))
    return ranges + [(unit, unit) for unit in sorted(more) if not any(low <= unit <= high for low, high in ranges)]


# The grammar.

CAPTURES = re.compile(r"\\.|\[(?:\\.|[^\]\\])*|\((?:(?!\?)|\?<(?![=!]))", re.DOTALL)
GROUP = re.compile(r"\((?:(?!\?)|\?(?:<?[=!]|<(?P<name>[^>]*)>|(?P<on>[ims]*)(?:-(?P<off>[ims]*))?:))")
QUANTIFIER = re.compile(r"(?:[*+?]|\{(?P<least>[0-9]+)(?P<range>,(?P<most>[0-9]*))?\})(?P<lazy>\??)")
NUMBERED_REFERENCE = re.compile(r"[1-9][0-9]*")
NAMED_REFERENCE = re.compile(r"k<([^>]*)>")
HEXADECIMAL = re.compile(r"x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})")
OCTAL = re.compile(r"[0-3][0-7]{0,2}|[4-7][0-7]?")
CONTROL = re.compile(r"c([A-Za-z])")
CONTROL_IN_CLASS = re.compile(r"c([A-Za-z0-9_])")
CONTROL_LETTERS = {"t": 0x09, "n": 0x0A, "v": 0x0B, "f": 0x0C, "r": 0x0D}
SHORT_QUANTIFIERS = {"*": (0, ENDLESS), "+": (1, ENDLESS), "?": (0, 1)}


@dataclass(eq=False)
class _Group:
    opening: str
    within: "_Group | None" = None
    branch: int = 0  # which alternative of the group around it has it
    piece: int = 0  # where in the output it begins
    position: int = 0  # where in the text
    modifiers: frozenset[str] = frozenset()
    branches: int = 1
    size: int = 1
    least: int = 1
    most: int = 1

    def is_lookaround(self) -> bool:
        return self.opening.endswith(("=", "!"))

    def around(self) -> "Iterator[_Group]":
        """The groups that it is in, from the inside out."""
        group = self.within
        while group:
            yield group
            group = group.within


@dataclass
class _Translation:
    """Reads the text once, from left to right; what references stand for is settled at the end."""

    text: str
    at: int = 0
    plain: int = 0  # characters and classes so far
    pieces: list[str] = field(default_factory=list)
    captures: list[_Group] = field(default_factory=list)
    names: dict[str, int] = field(default_factory=dict)
    references: list[tuple[int | str, _Group]] = field(default_factory=list)

    def result(self) -> str:
        ahead = [found[0] for found in CAPTURES.finditer(self.text) if found[0][0] == "("]
        self.capture_count = len(ahead)
        self.has_names = "(?<" in ahead
        self.group = _Group("")
        self.repeatable: _Group | bool = False  # what a quantifier would repeat here
        while self.at < len(self.text):
            self.term(self.text[self.at])
        if self.group.within:
            self.refuse("unterminated group", self.group.position)
        for to, place in self.references:
            self.settle(to, place)
        return "".join(self.pieces)

    def refuse(self, why: str, position: int) -> NoReturn:
        raise BadPattern(f"{why} at position {position}")

    def term(self, char: str) -> None:
        if char == "(":
            self.open_group()
        elif char == ")":
            self.close_group()
        elif quantifier := QUANTIFIER.match(self.text, self.at):
            self.quantify(quantifier)
        elif char == "[":
            self.character_class()
        elif char == "\\":
            self.escape()
        else:
            self.at += 1
            multiline = "m" in self.group.modifiers
            if char == "|":
                self.group.branches += 1
                self.add("|", repeatable=False)
            elif char == "^":
                self.add(f"(?<!{_class(LINE_ENDS, negated=True)})" if multiline else r"\A", repeatable=False)
            elif char == "$":
                self.add(f"(?!{_class(LINE_ENDS, negated=True)})" if multiline else r"\Z", repeatable=False)
            elif char == ".":
                self.add(_class([] if "s" in self.group.modifiers else LINE_ENDS, negated=True))
            else:
                self.add_ranges([(ord(char), ord(char))])

    def add(self, piece: str, *, repeatable: _Group | bool = True) -> None:
        self.pieces.append(piece)
        self.group.size += 1
        self.repeatable = repeatable

    def add_ranges(self, ranges: Ranges, *, negated: bool = False) -> None:
        piece = _class(_in_any_case(ranges) if "i" in self.group.modifiers else ranges, negated=negated)
        self.plain += 1
        if self.plain % PLAINEST == 0:
            piece = f"(?:(?={piece}){piece})"
        self.add(piece)

    def here(self, opening: str, modifiers: frozenset[str]) -> _Group:
        return _Group(opening, self.group, self.group.branches, len(self.pieces), self.at, modifiers)

    def open_group(self) -> None:
        found = GROUP.match(self.text, self.at)
        if not found:
            self.refuse("unknown kind of group", self.at)
        on, off = found["on"] or "", found["off"] or ""
        if len(set(on + off)) < len(on + off) or (found["off"] == "" and not on):
            self.refuse("bad modifiers", self.at)
        opening = found[0] if found[0][-1] in "=!" else "(?:"  # none captures until a reference needs it
        group = self.here(opening, self.group.modifiers.union(on).difference(off))
        if found["name"] is not None:
            name = _characters(found["name"])
            if not name.replace("$", "_").isidentifier():
                self.refuse("bad group name", self.at)
            if name in self.names:
                self.refuse("group name used before", self.at)
            self.names[name] = len(self.captures) + 1
        if found["name"] is not None or found[0] == "(":
            self.captures.append(group)
        if sum(1 for _ in group.around()) > DEEPEST:
            self.refuse("groups nested too deeply", self.at)
        self.at = found.end()
        self.add(opening, repeatable=False)
        self.group = group

    def close_group(self) -> None:
        group = self.group
        if not group.within:
            self.refuse("unmatched )", self.at)
        self.at += 1
        self.group = group.within
        self.group.size += group.size
        self.add(")", repeatable=False if group.opening.startswith("(?<") else group)

    def quantify(self, found: re.Match[str]) -> None:
        if not self.repeatable:
            self.refuse("nothing to repeat", self.at)
        if found["least"]:
            least = _count(found["least"])
            most = least if not found["range"] else _count(found["most"]) if found["most"] else ENDLESS
        else:
            least, most = SHORT_QUANTIFIERS[found[0][0]]
        if least > most:
            self.refuse("numbers out of order in {}", self.at)
        self.group.size += max(0, least - 1) * (self.repeatable.size if isinstance(self.repeatable, _Group) else 1)
        if self.group.size > BIGGEST:
            self.refuse("too many repetitions", self.at)
        self.at = found.end()
        quantifier = f"{{{least},{'' if most == ENDLESS else most}}}{found['lazy']}"
        if isinstance(self.repeatable, _Group):
            self.repeatable.least, self.repeatable.most = least, most
            if self.repeatable.is_lookaround():  # a lookahead: JavaScript drops a round that consumed nothing
                quantifier = "" if least else "{0}"
        self.add(quantifier, repeatable=False)

    def character_class(self) -> None:
        start = self.at
        negated = self.text.startswith("^", start + 1)
        self.at += 2 if negated else 1
        ranges: Ranges = []
        while member := self.class_member(start):
            ranges += member
            if self.text.startswith("-", self.at) and not self.text.startswith("-]", self.at):
                dash = self.at
                self.at += 1
                last = self.class_member(start)
                if member in ESCAPED_SETS.values() or last in ESCAPED_SETS.values():
                    ranges += [(0x2D, 0x2D), *last]
                elif member > last:
                    self.refuse("range out of order", dash)
                else:
                    ranges[-1] = (member[0][0], last[0][0])
        self.add_ranges(ranges, negated=negated)

    def class_member(self, start: int) -> Ranges:
        """A character, or a set such as `\\d`; nothing at the end of the class."""
        char = self.text[self.at : self.at + 1]
        escaped = self.text[self.at + 1 : self.at + 2]
        if not char:
            self.refuse("unterminated character class", start)
        if char == "\\" and (escaped == "b" or escaped in ESCAPED_SETS):
            self.at += 2
            return ESCAPED_SETS.get(escaped, [(0x08, 0x08)])
        self.at += 1
        if char == "]":
            return []
        code = self.escaped_character(CONTROL_IN_CLASS) if char == "\\" else ord(char)
        return [(code, code)]

    def escape(self) -> None:
        self.at += 1
        char = self.text[self.at : self.at + 1]
        number = NUMBERED_REFERENCE.match(self.text, self.at)
        if number and _count(number[0]) <= self.capture_count:
            self.refer(int(number[0]), number.end())
        elif char == "k" and self.has_names and (name := NAMED_REFERENCE.match(self.text, self.at)):
            self.refer(_characters(name[1]), name.end())
        elif char in ("b", "B"):
            self.at += 1
            self.add("\\" + char, repeatable=False)
        elif char in ESCAPED_SETS:
            self.at += 1
            self.add(_class(ESCAPED_SETS[char]))
        else:
            code = self.escaped_character(CONTROL)
            self.add_ranges([(code, code)])

    def escaped_character(self, control: re.Pattern[str]) -> int:
        """The code unit that the escape stands for, when `at` is behind its backslash."""
        if found := HEXADECIMAL.match(self.text, self.at):
            code = int(found[1] or found[2], 16)
        elif found := OCTAL.match(self.text, self.at):
            code = int(found[0], 8)
        elif found := control.match(self.text, self.at):
            code = ord(found[1]) % 32
        else:
            char = self.text[self.at : self.at + 1]
            if not char:
                self.refuse("nothing after the backslash", self.at - 1)
            if char == "k" and self.has_names:
                self.refuse("bad reference to a named group", self.at - 1)
            if char == "c":
                return 0x5C  # the backslash itself, and then a c
            self.at += 1
            return CONTROL_LETTERS.get(char, ord(char))
        self.at = found.end()
        return code

    def refer(self, to: int | str, end: int) -> None:
        self.references.append((to, self.here("", self.group.modifiers)))  # the place, as a group of nothing
        self.at = end
        self.add("(?:)")

    def settle(self, to: int | str, place: _Group) -> None:
        """Put in what the reference means; nothing, where its group cannot have matched by then.

        JavaScript finds a group that has not matched equal to the empty string, forgets it at each new round of a
        repetition around it, and takes back a round that consumed nothing. The engine does none of these. The first
        can be written for it; what would depend on the others is refused.
        """
        number = self.names.get(to) if isinstance(to, str) else to
        if number is None:
            self.refuse("reference to an unknown group", place.position - 1)
        group = self.captures[number - 1]
        around_place = [place, *place.around()]
        path = list(takewhile(lambda outer: outer not in around_place, [group, *group.around()]))
        if not path:
            return  # inside the group itself
        shared = list(path[-1].around())
        beside = around_place[around_place.index(shared[0]) - 1]
        looking = next((outer.opening for outer in shared if outer.is_lookaround()), "")
        group_is_first = (group.piece < place.piece) != looking.startswith("(?<")  # lookbehinds run backwards
        if path[-1].branch != beside.branch or not group_is_first or any(outer.opening[-1] == "!" for outer in path):
            return
        unsure = any(outer.least == 0 for outer in path) or any(outer.branches > 1 for outer in path[1:])
        if any(outer.most > 1 for outer in path) or (unsure and any(outer.most > 1 for outer in shared)):
            self.refuse("unsupported reference to a group in a repetition", place.position - 1)
        if any(outer.is_lookaround() for outer in path):
            self.refuse("unsupported reference into a lookaround", place.position - 1)
        if "i" in place.modifiers:
            self.refuse("unsupported reference where case is ignored", place.position - 1)
        self.pieces[group.piece] = f"(?P<g{number}>"
        self.pieces[place.piece] = f"(?(g{number})(?P=g{number}))"


def _count(digits: str) -> int:
    digits = digits.lstrip("0") or "0"
    return ENDLESS if len(digits) > 10 else min(int(digits), ENDLESS)
