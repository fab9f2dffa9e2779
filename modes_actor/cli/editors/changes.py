"""Changes to files of several clients, for a person: shown as diffs, asked about, made, and told of.

What cannot be done for one client keeps nobody from doing the others. Nothing is asked unless somebody sits at a
terminal; nothing is written before all is shown.
"""

import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from modes_actor.cli.command import Situation, UsageError
from modes_actor.cli.editors.clients import CLIENTS, SCOPES, Client, NoSuchScope, Place, Scope
from modes_actor.cli.editors.registration import DEFAULT_NAME, Change, apply, diff
from modes_actor.cli.output import Output, Style, Styled
from modes_actor.cli.safe_files import CannotWrite
from modes_actor.spelling import did_you_mean

ALL: Final = "all"
_STYLES: Final[dict[str, Style]] = {"+": "good", "-": "bad", "@": "dim"}


class Choice(Struct, kw_only=True):
    """What `install` and `uninstall` can be asked both."""

    client: list[str] = []
    project: bool = False
    user: bool = False
    name: str = DEFAULT_NAME
    dry_run: bool = False
    force: bool = False
    yes: bool = False

    @property
    def scope(self) -> Scope | None:
        return "project" if self.project else "user" if self.user else None


class Planned(Struct, frozen=True, kw_only=True):
    """What is to be done to a file of a client's; or why nothing can be."""

    client: Client
    scope: Scope
    file: Path
    change: Change | None = None
    problem: str | None = None
    notes: tuple[str, ...] = ()
    hint: str = ""


class Outcome(Struct, frozen=True, kw_only=True):
    """What was done, as programs are told."""

    client: str
    scope: Scope
    file: str
    changed: bool
    removed: bool
    """Whether the file is gone, as nothing else was in it."""
    diff: str
    backup: str | None
    hint: str
    notes: list[str]
    problem: str | None


def add_choice_arguments(parser: ArgumentParser, *, scope: str, force: str) -> None:
    parser.add_argument(
        "--client",
        action="append",
        default=[],
        metavar="NAME",
        help=f"{', '.join(CLIENTS)}; `{ALL}` for each that was found; may be given several times",
    )
    scopes = parser.add_mutually_exclusive_group()
    scopes.add_argument("--project", action="store_true", help="in the client's files in the project")
    scopes.add_argument("--user", action="store_true", help=f"in your own; {scope}")
    parser.add_argument("--name", default=DEFAULT_NAME, help="what the server is called there (default: %(default)s)")
    parser.add_argument("--dry-run", action="store_true", help="show what would be changed, and change nothing")
    parser.add_argument("--force", action="store_true", help=force)
    parser.add_argument("--yes", action="store_true", help="do not ask")


def place_here(situation: Situation) -> Place:
    return Place.here(home=situation.home, environment=situation.environment, project=situation.project_root)


def chosen(choice: Choice, found: Sequence[str], *, without: str) -> list[Client]:
    """The clients that are meant; `without` is what to say if none is. Raises `UsageError`."""
    if not choice.client:
        raise UsageError(without)
    for name in choice.client:
        if name not in CLIENTS and name != ALL:
            hint = did_you_mean(name, CLIENTS) or f"there are {', '.join(CLIENTS)}, and `{ALL}`"
            raise UsageError(f"there is no client `{name}`: {hint}")
        if choice.project and name != ALL and "project" not in CLIENTS[name].scopes:
            raise UsageError(str(NoSuchScope(CLIENTS[name])))
    names = [*found, *choice.client] if ALL in choice.client else choice.client
    clients = [CLIENTS[name] for name in dict.fromkeys(names) if name != ALL]
    return [client for client in clients if choice.scope in (None, *client.scopes)]


def scopes_of(client: Client, choice: Choice) -> Sequence[Scope]:
    """Those that are asked for, or all that the client has."""
    return [scope for scope in SCOPES if scope in client.scopes and choice.scope in (None, scope)]


def carry_out(planned: Sequence[Planned], choice: Choice, output: Output, *, unchanged: str, done: str) -> int:
    """Show it, ask, do it, and say what was done. Returns the exit code."""
    if not output.as_json:
        for each in planned:
            _show(each, output, unchanged)
    is_to_do = any(each.change is not None and not each.change.is_noop for each in planned)
    refused = False
    if is_to_do and not (choice.dry_run or choice.yes or output.as_json) and _is_asked():
        refused = not _agreed()
    outcomes = [_outcome(each, is_wanted=not (choice.dry_run or refused)) for each in planned]
    if output.as_json:
        output.json(outcomes)
    for each, outcome in zip(planned, outcomes, strict=True):
        if outcome.problem is not None:
            output.note(f"modes-actor: {each.client.display_name}: {outcome.problem}")
        elif outcome.changed and not output.as_json:
            _tell(each, outcome, output, done)
    if is_to_do and (choice.dry_run or refused) and not output.as_json:
        output.line("Nothing was written.")
    return 1 if refused or any(outcome.problem is not None for outcome in outcomes) else 0


def _show(planned: Planned, output: Output, unchanged: str) -> None:
    if planned.change is None:
        return
    where = (Styled(planned.client.display_name, "strong"), f" ({planned.scope}): ")
    if planned.change.is_noop:
        output.line(*where, f"{unchanged} {planned.file}")
    else:
        output.line(*where, str(planned.file))
        for line in diff(planned.change).splitlines():
            style = _STYLES.get(line[:1])
            output.line(Styled(line, style) if style else line)
    for note in planned.notes:
        output.line(Styled(f"  Note: {note}", "warn"))


def _tell(planned: Planned, outcome: Outcome, output: Output, done: str) -> None:
    more = f"; what it was is in {outcome.backup}" if outcome.backup else ""
    if outcome.removed:
        more = "; nothing else was in it, so the file is removed"
    output.line(Styled(f"{planned.client.display_name}: {done} {outcome.file}", "good"), more)
    if outcome.hint:
        output.line(f"  {outcome.hint}")


def _is_asked() -> bool:
    return sys.stdin is not None and sys.stdin.isatty()


def _agreed() -> bool:
    sys.stdout.flush()
    sys.stderr.write("Shall this be written? [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _outcome(planned: Planned, *, is_wanted: bool) -> Outcome:
    change, problem = planned.change, planned.problem
    backup, changed = None, False
    if change is not None and is_wanted and not change.is_noop:
        try:
            backup = apply(change)
            changed = True
        except CannotWrite as trouble:
            problem = str(trouble)
    return Outcome(
        client=planned.client.name,
        scope=planned.scope,
        file=str(planned.file),
        changed=changed,
        removed=changed and change is not None and change.after is None,
        diff="" if change is None else diff(change),
        backup=None if backup is None else str(backup),
        hint=planned.hint if changed else "",
        notes=[*planned.notes],
        problem=problem,
    )
