"""Mode files and configurations that were damaged, read in this process.

Whatever bytes: reading never raises, nor takes long, and places of problems are in the file. Damage to what restricts a
mode (`restricting`) never lets it do more. That does not hold for any damage: a file that was cut behind `- edit` is a
good file that says something else; so only such damage is held against it as leaves no other meaning.
"""

import logging
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from difflib import SequenceMatcher
from functools import partial
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Final

import trio
import yaml
from fuzz_case import Blob, Case, minimal, written
from fuzz_damage import damaged_bytes, damaged_restriction, files_of_modes
from fuzz_settings import ConfigTrial
from msgspec import Struct, structs

from modes_actor.modes.catalog import ModeCatalog
from modes_actor.modes.decisions import Allowed, DecisionContext, decide
from modes_actor.modes.model import ModeConfig
from modes_actor.modes.reading import read_modes

if TYPE_CHECKING:
    from fuzz_worker import Clock, Tally, Task

SLOW_SECONDS: Final = 2.0
"""What no file of this size may take, on a busy machine either."""
NO_RAISE: Final = "no file makes the reader raise, and none takes long"
PLACES: Final = "each problem has a place in the file"
NEVER_MORE: Final = "what cannot be understood never allows more than the intact file did"
CONFIG: Final = "any configuration file is a Config or a ConfigError"
FILE_PROMISES: Final = (NO_RAISE, PLACES, NEVER_MORE, CONFIG)

_USES: Final = tuple(
    (tool, arguments)
    for tool, several in {
        "read_file": ({"path": "src/app.py"}, {"path": "docs/a.md"}, {}),
        "write_to_file": ({"path": "src/app.py"}, {"path": "docs/a.md"}, {"path": "x.test.ts"}, {}),
        "execute_command": ({},),
        "browser_action": ({},),
        "use_mcp_tool": (
            {"server_name": "github", "tool_name": "delete_repo"},
            {"server_name": "web", "tool_name": "get"},
        ),
        "mcp__github__create_issue": ({},),
        "mcp__docs-x__read": ({},),
        "access_mcp_resource": ({"server_name": "github"},),
    }.items()
    for arguments in several
)
_ROOT: Final = str(Path(sys.prefix))
"""A project, as far as paths go."""
_MOMENTS: Final = tuple(datetime(2024, 1, day, hour, tzinfo=UTC) for day, hour in ((1, 12), (3, 23)))
"""A Monday at noon, a Wednesday at night."""

Ability = frozenset[int]


class _Errors(logging.Handler):
    """Whatever is logged as an error: a decision that fails is a denial, and one finds out only here."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.said: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.said.append(record.getMessage())


class Found(Struct, frozen=True):
    """A broken promise, and what with."""

    expected: str
    found: str


def _at(moment: datetime) -> datetime:
    return moment


def abilities(modes: list[ModeConfig], root: str) -> dict[str, Ability]:
    """Which of the uses each mode allows."""
    catalog = ModeCatalog(modes)
    contexts = [DecisionContext(catalog, root, now=partial(_at, now)).for_batch() for now in _MOMENTS]
    return {
        mode.slug: frozenset(
            index + len(_USES) * moment
            for moment, context in enumerate(contexts)
            for index, (tool, arguments) in enumerate(_USES)
            if isinstance(decide(mode, tool, arguments, context), Allowed)
        )
        for mode in catalog
    }


def judged(after: str, before: dict[str, Ability] | None, root: str, held: Counter[str]) -> Found | None:
    """What is wrong with how a text is read. `before`: what the modes were able to do, if they must not do more.

    `held`: counts what was held against each promise.
    """
    held[NO_RAISE] += 1
    began = time.perf_counter()
    errors = _Errors()
    log = logging.getLogger("modes_actor")
    log.addHandler(errors)
    try:
        read = read_modes(after, file="f", source="project")
        able = abilities(read.modes, root)
    except Exception as error:
        return Found(NO_RAISE, f"{type(error).__name__}: {error}")
    finally:
        log.removeHandler(errors)
    if errors.said:
        return Found(NO_RAISE, errors.said[0])
    if (took := time.perf_counter() - began) > SLOW_SECONDS:
        return Found(NO_RAISE, f"it took {took:.1f} s")
    lines = after.count("\n") + 2
    problems = (*read.problems, *ModeCatalog(read.modes).problems)
    held[PLACES] += len(problems)
    for problem in problems:
        if not (1 <= problem.line <= lines and problem.column >= 1 and problem.message and problem.file == "f"):
            return Found(PLACES, f"{problem} in a file of {lines - 1} lines")
    if before is None:
        return None
    held[NEVER_MORE] += len(able)
    for slug, uses in able.items():
        more = uses - before.get(slug, frozenset())
        if more:
            tool, arguments = _USES[min(more) % len(_USES)]
            return Found(NEVER_MORE, f"the mode `{slug}` may now use {tool} {arguments}")
    return None


def fuzz_files(task: "Task", clock: "Clock", tally: "Tally") -> None:
    rng = Random(f"{task.seed}:{task.number}:{task.what}")
    directory = Path(task.directory)
    directory.mkdir(parents=True)
    held: Counter[str] = Counter()
    is_modes = task.what == "modes"
    trials = _mode_trials(rng, held) if is_modes else _config_trials(rng, ConfigTrial(directory), held)
    while clock.left(tally.count):
        kind, before, after, trial = next(trials)
        began = time.perf_counter()
        found = trial(after)
        tally.slowest = max(tally.slowest, time.perf_counter() - began)
        tally.count += 1
        tally.kinds[kind] = tally.kinds.get(kind, 0) + 1
        clock.tell(tally)
        if found is not None:
            case = Case(
                what=task.what,
                seed=f"{task.seed}:{task.number}",
                expected=found.expected,
                found=found.found,
                before=before,
                after=_written(after),
            )
            clock.tell_of(case, tally)
            if found.expected == NEVER_MORE:
                before, after = _smallest_pair(before, after)
            else:
                after = _smallest(after, found, trial)
            tally.broken = structs.replace(case, before=before, after=_written(after))
            return
    tally.distinct, tally.held = tally.count, dict(held)


def _written(text: str) -> str | Blob:
    return written(text.encode(errors="surrogatepass"))


Trial = Callable[[str], Found | None]


def _mode_trials(rng: Random, held: Counter[str]) -> Iterator[tuple[str, str, str, Trial]]:
    texts = files_of_modes()
    trees = [yaml.safe_load(text) for text in texts]
    while True:
        index = rng.randrange(len(texts) if rng.random() < 0.3 else 3)  # the first ones are ours, and small
        before = texts[index]
        if rng.random() < 0.5 and isinstance(trees[index], dict):
            intact, damaged = damaged_restriction(rng, trees[index])
            yield "restriction", intact, damaged, partial(judged, before=_able(intact), root=_ROOT, held=held)
        else:
            yield "bytes", before, damaged_bytes(rng, before), partial(judged, before=None, root=_ROOT, held=held)


def _config_trials(rng: Random, configs: ConfigTrial, held: Counter[str]) -> Iterator[tuple[str, str, str, Trial]]:
    for kind, text in configs.texts(rng):
        held[CONFIG] += 1
        yield kind, "", text, partial(_config_judged, configs)


def _config_judged(configs: ConfigTrial, after: str) -> Found | None:
    sentence = configs.judged(after)
    return None if sentence is None else Found(CONFIG, sentence)


def _smallest(text: str, found: Found, trial: Trial) -> str:
    """The text with lines, then characters left out, as long as the same is wrong with it."""
    for pieces in (text.split("\n"), None):
        parts = list(text) if pieces is None else pieces
        glue = "" if pieces is None else "\n"
        size = max(1, len(parts) // 2)
        deadline = time.perf_counter() + 10
        while size and time.perf_counter() < deadline:
            start = 0
            while start < len(parts):
                rest = parts[:start] + parts[start + size :]
                again = trial(glue.join(rest))
                if again is not None and again.expected == found.expected:
                    parts = rest
                else:
                    start += size
            size //= 2
        text = glue.join(parts)
    return text


Row = tuple[list[str], list[str]]
"""Lines of the intact file, and those of the damaged one in their place."""


def _smallest_pair(before: str, after: str) -> tuple[str, str]:
    """Both texts without lines that they share, as long as a mode of the damaged one may do more.

    The lines that they do not share stay: without them, the damaged file would be a good one that says something else.
    And the intact one has to stay intact.
    """
    deadline = time.perf_counter() + 20
    lines = before.split("\n"), after.split("\n")
    rows: list[Row] = []
    for kind, start, end, other_start, other_end in SequenceMatcher(None, *lines, autojunk=False).get_opcodes():
        if kind == "equal":
            rows += [([line], [line]) for line in lines[0][start:end]]
        else:
            rows.append((lines[0][start:end], lines[1][other_start:other_end]))
    damage = [row for row in rows if row[0] != row[1]]
    known = _problems(before)

    async def still(fewer: Sequence[Row]) -> bool:
        if time.perf_counter() > deadline or [row for row in fewer if row[0] != row[1]] != damage:
            return False
        intact, damaged = _texts(fewer)
        able = _able(intact)
        is_intact = _problems(intact) <= known and _able(damaged).keys() <= able.keys()
        found = judged(damaged, able, _ROOT, Counter()) if is_intact else None
        return found is not None and found.expected == NEVER_MORE

    return _texts(trio.run(minimal, rows, still))


def _texts(rows: Sequence[Row]) -> tuple[str, str]:
    return "\n".join(line for row in rows for line in row[0]), "\n".join(line for row in rows for line in row[1])


def _problems(text: str) -> set[str]:
    read = read_modes(text, file="f", source="project")
    return {problem.message for problem in (*read.problems, *ModeCatalog(read.modes).problems)}


def _able(text: str) -> dict[str, Ability]:
    return abilities(read_modes(text, file="f", source="project").modes, _ROOT)


def replayed(case: Case, after: str) -> Found | None:
    """A case of a file, once more."""
    if case.what == "config":
        with tempfile.TemporaryDirectory(prefix="fuzz-") as directory:
            return _config_judged(ConfigTrial(Path(directory)), after)
    able = _able(case.before) if case.expected == NEVER_MORE else None
    return judged(after, able, _ROOT, Counter())
