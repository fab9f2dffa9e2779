"""The rule files of a user and a project that join a mode's instructions.

Promises: the same files give the same rules in the same order on every platform; no file from outside the project (or,
for the user's own rules, outside `~/.roo`) gets in by a link; what is read has bounds; whatever the disk holds, the
answer is rules and problems, never an exception. It does not know how the rules are worded into a prompt.

The order: rules of the mode, `AGENTS.md`, rules for all modes; in each, the user's before the project's, and those of
a folder by path, name by name, upper and lower case alike unless only that tells two names apart.
"""

import codecs
import errno
import os
import re
import stat
from pathlib import Path
from typing import Final

from msgspec import Struct

MAX_FILE_BYTES: Final = 64 * 1024
"""Of one file. Rules are prose; what is longer is likely a dump, and its beginning says what it is about."""
MAX_TOTAL_BYTES: Final = 256 * 1024
"""Of all rules together, in UTF-8. About 64,000 tokens: more would leave little of a context window for the work."""
MAX_FILES: Final = 200
"""Looked into for one mode. A folder of rules has a dozen; hundreds mean that a link led into a source tree."""
MAX_FOLDERS: Final = 200
"""Listed for one mode, so that a tree of empty folders ends too."""
MAX_DEPTH: Final = 5
"""Folders below a folder of rules, as in Roo Code."""

AGENTS: Final = ("AGENTS.md", "AGENT.md", "AGENTS.local.md")
SKIPPED: Final = re.compile(
    r"\.(DS_Store|bak|cache|crdownload|db|dmp|dump|eslintcache|lock|log|old|part|partial|pyc|pyo|stackdump|swo|swp"
    r"|temp|tmp)\Z"
)
"""How the names of files end that are no rules, as in Roo Code (its `Thumbs.db` is one of them)."""

_SLUG = re.compile(r"[a-zA-Z0-9-]+")
_MISSING = {errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG}


class Rule(Struct, frozen=True):
    source: str
    """Its path in the project, or `~/.roo/…`; always with slashes and on one line."""
    text: str
    """Without a byte order mark or blank space around it, lines ended by a newline alone; never empty."""


class RuleProblem(Struct, frozen=True):
    """A file or folder that was left out, in part or whole."""

    source: str
    sentence: str


class Rules(Struct, frozen=True):
    rules: tuple[Rule, ...]
    problems: tuple[RuleProblem, ...]


def load_rules(slug: str, *, project_root: Path, home: Path) -> Rules:
    """The rules for the mode with this slug. Blocks on the disk."""
    reading = _Reading(slug, project_root, home)
    return Rules(tuple(reading.rules), tuple(reading.problems))


def rules_signature(*, project_root: Path, home: Path) -> frozenset[tuple[str, int, int]]:
    """What changes when a rule file, of any mode, is saved, added or removed. Looks at no contents.

    What a link leads to is not looked at: a change there shows with the next change here.
    """
    found: set[tuple[str, int, int]] = set()
    for name in AGENTS:
        _sign(project_root / name, found)
    for folder, prefix in ((home / ".roo", "rules"), (project_root / ".roo", "rules"), (project_root, ".roorules")):
        for entry in _listed(folder):
            if entry.startswith(prefix):
                _sign(folder / entry, found)
                for inside, _, names in os.walk(folder / entry):
                    for each in (inside, *(os.path.join(inside, name) for name in names)):
                        _sign(Path(each), found)
                    if len(found) > MAX_FILES + MAX_FOLDERS:
                        break
    return frozenset(found)


def _listed(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _sign(path: Path, found: set[tuple[str, int, int]]) -> None:
    try:
        status = path.lstat()
    except OSError:
        return
    found.add((str(path), status.st_mtime_ns, status.st_size))


def _kinds(slug: str) -> list[str]:
    """The names of the folders; the legacy file is named the same after `.roo`."""
    return [f"rules-{slug}", "rules"] if _SLUG.fullmatch(slug) else ["rules"]


class _Scope(Struct, frozen=True):
    root: str  # links resolved; nothing outside is read
    shown: str  # what its paths begin with in a source
    called: str

    def holds(self, real: str) -> bool:
        return real == self.root or real.startswith(os.path.join(self.root, ""))


class _Place(Struct, frozen=True):
    """A path as it is named, before links are followed, with slashes."""

    scope: _Scope
    path: str

    def __str__(self) -> str:
        # A name may hold a newline or bytes that are no text: neither may break a heading or the encoder.
        return "".join(char if char.isprintable() else "?" for char in self.scope.shown + self.path)


class _LeftOut(Exception):
    """One file or folder is left out; the message says why."""


class _Enough(Exception):
    """A bound on all rules together is reached, and that is noted; the walk ends."""


class _Reading:
    """One walk over everything. What visits a place answers whether it gave a rule."""

    def __init__(self, slug: str, project_root: Path, home: Path) -> None:
        self.user = _Scope(os.path.realpath(home / ".roo"), "~/.roo/", "~/.roo")
        self.project = _Scope(os.path.realpath(project_root), "", "the project")
        self.rules: list[Rule] = []
        self.problems: list[RuleProblem] = []
        self._gave: dict[str, bool] = {}  # each file once, however many links lead to it
        self._real_folders: dict[str, str] = {}
        self._bytes = 0
        self._folders = 0
        *of_mode, of_all = _kinds(slug)
        try:
            for kind in of_mode:
                self._kind(kind)
            standard, older, local = (_Place(self.project, name) for name in AGENTS)
            if not self._visit(standard):
                self._visit(older)
            self._visit(local)
            self._kind(of_all)
        except _Enough:
            pass

    def _kind(self, kind: str) -> None:
        of_user = self._visit(_Place(self.user, kind), {})
        of_project = self._visit(_Place(self.project, f".roo/{kind}"), {})
        if not (of_user or of_project):
            self._visit(_Place(self.project, f".roo{kind}"))

    def _visit(self, place: _Place, entered: dict[str, int] | None = None, depth: int = 0) -> bool:
        """All that goes wrong with a place ends here. `entered` is there where a folder is welcome."""
        named = os.path.join(place.scope.root, place.path)
        try:
            real = self._real(named)
            if not place.scope.holds(real):  # first, so that not even what exists outside shows
                raise _LeftOut(f"A link leads outside {place.scope.called}, so it was left out.")
            mode = os.stat(real).st_mode
            if entered is not None and stat.S_ISDIR(mode):
                return self._folder(place, real, entered, depth)
            if entered is not None and depth == 0:
                raise _LeftOut("It is not a folder, so no rules were read from it.")
            return self._file(place, real, mode)
        except OSError as error:
            if error.errno not in _MISSING:
                self._problem(place, f"It could not be read: {error.strerror or type(error).__name__}.")
            elif os.path.islink(named):
                self._problem(place, "It is a link that leads nowhere.")
            # else it is not there, or not any more: no problem
        except _LeftOut as reason:
            self._problem(place, str(reason))
        return False

    def _real(self, named: str) -> str:
        """As `os.path.realpath`, which looks at every folder on the way, but at each of them once."""
        folder, name = os.path.split(named)
        if folder not in self._real_folders:
            self._real_folders[folder] = os.path.realpath(folder)
        real = os.path.join(self._real_folders[folder], name)
        return os.path.realpath(real) if os.path.islink(real) else real

    def _folder(self, place: _Place, real: str, entered: dict[str, int], depth: int) -> bool:
        if entered.get(real, depth + 1) <= depth:
            return False  # a cycle, or a second link; nearer to the top it is worth another visit, as that sees deeper
        if depth > MAX_DEPTH:
            raise _LeftOut(f"It is more than {MAX_DEPTH} folders deep, so it was left out.")
        if self._folders == MAX_FOLDERS:
            raise self._enough(place, f"At most {MAX_FOLDERS} folders of rules are read")
        entered[real] = depth
        self._folders += 1
        gave = False
        for name in sorted(os.listdir(real), key=lambda name: (name.casefold(), name)):
            if not SKIPPED.search(name) or os.path.isdir(os.path.join(real, name)):
                gave |= self._visit(_Place(place.scope, f"{place.path}/{name}"), entered, depth + 1)
        return gave

    def _file(self, place: _Place, real: str, mode: int) -> bool:
        if real in self._gave:
            return self._gave[real]
        if len(self._gave) == MAX_FILES:
            raise self._enough(place, f"At most {MAX_FILES} files of rules are read")
        self._gave[real] = False
        if not stat.S_ISREG(mode):
            raise _LeftOut("It is not a regular file, so it was left out.")
        text = self._text(place, _beginning(real))
        self._bytes += len(text.encode())
        if self._bytes > MAX_TOTAL_BYTES:
            raise self._enough(place, f"All rules together may have {MAX_TOTAL_BYTES} bytes")
        if text:
            self._gave[real] = True
            self.rules.append(Rule(str(place), text))
        return self._gave[real]

    def _text(self, place: _Place, content: bytes) -> str:
        if b"\0" in content:
            raise _LeftOut("It has a NUL byte, so it is binary or UTF-16, and was left out.")
        whole = len(content) <= MAX_FILE_BYTES
        if not whole:
            lines = content[: content.rfind(b"\n") + 1]
            content = lines if lines.strip() else content[:MAX_FILE_BYTES]
            self._problem(place, f"It is larger than {MAX_FILE_BYTES} bytes, so the rest was left out.")
        content = content.removeprefix(codecs.BOM_UTF8)
        try:
            text, _ = codecs.utf_8_decode(content, "strict", whole)  # a character cut in two at the end is no error
        except UnicodeDecodeError:
            text, _ = codecs.utf_8_decode(content, "replace", whole)
            self._problem(place, "It is not UTF-8, so the bytes that could not be read were replaced.")
        return text.replace("\r\n", "\n").replace("\r", "\n").strip()

    def _problem(self, place: _Place, sentence: str) -> None:
        self.problems.append(RuleProblem(str(place), sentence))

    def _enough(self, place: _Place, bound: str) -> _Enough:
        self._problem(place, f"{bound}, so this one and all that follow were left out.")
        return _Enough()


def _beginning(path: str) -> bytes:
    """One byte more than a rule may have, if it has that many."""
    with open(path, "rb", opener=_open_in_place) as file:
        return file.read(MAX_FILE_BYTES + 1) or b""  # a FIFO with a silent writer gives None


def _open_in_place(path: str, flags: int) -> int:
    # Since the look a link or a FIFO may have come in its place: the one is not followed, the other not waited for.
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
