"""`modes-actor new`: one more mode in `.roomodes`, or among a person's own."""

import difflib
import re
from argparse import ArgumentParser
from pathlib import Path
from typing import Final

from msgspec import Struct

from modes_actor.cli.command import Command, CommandFailed, Situation, UsageError
from modes_actor.cli.findings import shown_path
from modes_actor.cli.mode_editing import Added, CannotAdd, add_mode, snippet
from modes_actor.cli.mode_writing import NewGroup, NewMode, NewRestrictions, restrictions_to_write
from modes_actor.cli.output import Output, Style, Styled
from modes_actor.cli.safe_files import CannotWrite, write_safely
from modes_actor.modes.catalog import ModeCatalog
from modes_actor.modes.loader import GLOBAL_FILES, PROJECT_FILE, ModeLoader
from modes_actor.modes.model import GROUP_NAMES, GroupName, ModeConfig, Source
from modes_actor.modes.names import is_slug
from modes_actor.modes.patterns import BadPattern, FilePattern
from modes_actor.modes.templates import templates
from modes_actor.modes.text_files import FileUnreadable, read_text
from modes_actor.spelling import did_you_mean

SLUG_LENGTH: Final = 64
"""Of a new one: it is typed, and shown in tables and menus. What others wrote may be longer."""
DEFAULT_GROUPS: tuple[GroupName, ...] = ("read", "edit")
ROLE = (
    "You are the {name} specialist of this project. You do the work that this mode is for, keep to what you were "
    "asked, and say at the end what you did, how you checked it, and what is left open."
)
"""To begin with: good enough to be used, and to be replaced."""


class NewArguments(Struct):
    slug: str
    name: str | None = None
    role: str | None = None
    description: str | None = None
    when_to_use: str | None = None
    instructions: str | None = None
    groups: str | None = None
    edit_only: str | None = None
    extends: str | None = None
    restrict: str | None = None
    is_global: bool = False
    dry_run: bool = False


class Answer(Struct):
    """For programs."""

    mode: NewMode
    file: str
    line: int | None = None
    """Where the mode begins; None if it could not be added."""
    role_line: int | None = None
    replaces: str | None = None
    """Where a mode is that the new one takes the place of."""
    replaced_by: str | None = None
    """Where a mode of the project is that takes the place of the new one."""
    written: bool = False
    diff: str | None = None
    snippet: str | None = None
    """What a person can paste where no edit was possible."""


class Target(Struct):
    """The file, and what is there before."""

    path: Path
    shown: str
    source: Source
    text: str | None
    """None if there is no such file."""
    catalog: ModeCatalog
    """The modes that the new one meets."""
    replaced_by: ModeConfig | None = None


def _new(arguments: NewArguments, situation: Situation) -> int:
    target, output = _target(arguments, situation), situation.output
    mode = _mode(arguments, target.catalog)
    try:
        added = add_mode(target.text or "", mode, file=str(target.path), source=target.source)
    except CannotAdd as reason:
        raise _refused(reason, mode, target, output) from reason
    _refuse_circle(added.mode, target.catalog)
    diff = _diff(target, added) if arguments.dry_run else None
    if diff is None:
        seen = None if target.text is None else target.text.encode()
        try:
            write_safely(target.path, added.text, backup=False, seen=seen)
        except CannotWrite as trouble:
            raise CommandFailed(str(trouble)) from trouble
    if output.as_json:
        output.json(_answer(mode, target, added, diff))
    elif diff is not None:
        _show(diff, output)
    else:
        _tell(target, added, output, has_own_role=arguments.role is not None)
    return 0


# What is asked for.


def _mode(arguments: NewArguments, catalog: ModeCatalog) -> NewMode:
    slug = arguments.slug
    if not is_slug(slug):
        raise UsageError(f"the slug '{slug}' is not usable: letters, digits and `-` only")
    if slug.startswith("-"):
        raise UsageError(f"the slug '{slug}' is not usable: a command line would take it for an option")
    if len(slug) > SLUG_LENGTH:
        raise UsageError(f"a slug has {SLUG_LENGTH} characters at most; this one has {len(slug)}")
    for option in ("name", "role", "description", "when_to_use", "instructions", "edit_only"):
        _check_text(option, getattr(arguments, option))
    base = _base(arguments, catalog)
    name = arguments.name or " ".join(word[:1].upper() + word[1:] for word in slug.split("-") if word) or slug
    role = arguments.role or (ROLE.format(name=name) if base is None else None)
    return NewMode(
        slug=slug,
        name=name,
        extends=arguments.extends,
        description=arguments.description,
        role_definition=role,
        when_to_use=arguments.when_to_use,
        custom_instructions=arguments.instructions,
        groups=_groups(arguments, base, catalog),
        mcp_restrictions=_restrictions(arguments),
    )


def _check_text(option: str, text: str | None) -> None:
    shown = f"--{option.replace('_', '-')}"
    if text == "":
        raise UsageError(f"{shown} is empty: leave it out, or say something")
    try:
        (text or "").encode()
    except UnicodeEncodeError:
        raise UsageError(f"{shown} is no UTF-8 text") from None


def _base(arguments: NewArguments, catalog: ModeCatalog) -> ModeConfig | None:
    if arguments.extends is None:
        return None
    found = catalog.get(arguments.extends)
    if found is None:
        hint = did_you_mean(arguments.extends, catalog.by_slug) or f"there are {', '.join(catalog.by_slug)}"
        raise CommandFailed(f"there is no mode `{arguments.extends}` to extend: {hint}")
    return found


def _groups(
    arguments: NewArguments, base: ModeConfig | None, catalog: ModeCatalog
) -> tuple[GroupName | tuple[GroupName, NewGroup], ...] | None:
    """Those that were named, or that are usual; None for all that the extended mode has."""
    names = _named_groups(arguments.groups)
    if names is None and base is not None and arguments.edit_only is None:
        return None
    if names is None:
        usual = (*DEFAULT_GROUPS, "mcp") if arguments.restrict is not None else DEFAULT_GROUPS
        names = usual if base is None else _groups_of(base, catalog)
    if arguments.restrict is not None and base is None and "mcp" not in names:
        raise UsageError("--restrict is about the group `mcp`, which is not among --groups: add it there")
    if arguments.edit_only is None:
        return names
    if "edit" not in names:
        where = "--groups" if arguments.groups is not None else f"the groups of `{arguments.extends}`"
        raise UsageError(f"--edit-only is about the group `edit`, which is not among {where}")
    try:
        FilePattern(arguments.edit_only)
    except BadPattern as why:
        raise UsageError(f"--edit-only '{arguments.edit_only}' is no JavaScript regular expression: {why}") from why
    return tuple((name, NewGroup(arguments.edit_only)) if name == "edit" else name for name in names)


def _named_groups(text: str | None) -> tuple[GroupName, ...] | None:
    if text is None:
        return None
    words = dict.fromkeys(word.strip() for word in text.split(",") if word.strip())
    for word in words:
        if word not in GROUP_NAMES:
            hint = did_you_mean(word, GROUP_NAMES) or f"there are {', '.join(GROUP_NAMES)}"
            raise UsageError(f"--groups: there is no group `{word}`: {hint}")
    return tuple(name for name in words if name in GROUP_NAMES)


def _groups_of(base: ModeConfig, catalog: ModeCatalog) -> tuple[GroupName, ...]:
    lineage = catalog.lineage(base)
    if lineage is None:
        raise CommandFailed(f"the mode `{base.slug}` extends a mode that does not exist, or itself; mend it first")
    return tuple(each.group.name for each in lineage[0].groups.values())


def _restrictions(arguments: NewArguments) -> NewRestrictions | None:
    if arguments.restrict is None:
        return None
    template = templates().get(arguments.restrict)
    if template is None:
        hint = did_you_mean(arguments.restrict, templates()) or f"there are {', '.join(templates())}"
        raise UsageError(f"--restrict: there is no template `{arguments.restrict}`: {hint}")
    return restrictions_to_write(template.restrictions)


# Where it goes.


def _target(arguments: NewArguments, situation: Situation) -> Target:
    root, config_dir = situation.project_root, Path(situation.config.paths.global_config_dir).expanduser()
    path = config_dir / GLOBAL_FILES[0] if arguments.is_global else root / PROJECT_FILE
    shown = shown_path(path, situation.working_directory)
    # A mode that is for all projects meets no mode of this one, so its own file stands in for the project's.
    catalog = ModeLoader(root, config_dir, project_file=path).load().catalog
    if not arguments.is_global:
        return Target(path, shown, "project", _text(path, shown), catalog)
    found = catalog.get(arguments.slug)
    if found is not None and found.source == "global" and found.origin.file != str(path):
        raise CommandFailed(f"{found.origin}: there is a mode `{found.slug}` already")
    here = ModeLoader(root, config_dir).load().catalog.get(arguments.slug)
    replaced_by = here if here is not None and here.source == "project" else None
    return Target(path, shown, "global", _text(path, shown), catalog, replaced_by)


def _text(path: Path, shown: str) -> str | None:
    try:
        found = read_text(path)
    except FileUnreadable as error:
        raise CommandFailed(f"{shown}: {error}") from error
    if found is not None and not found.is_utf8:
        raise CommandFailed(f"{shown} is not UTF-8: save it as UTF-8 and try again")
    return None if found is None else found.text


def _refuse_circle(mode: ModeConfig, catalog: ModeCatalog) -> None:
    if ModeCatalog({**catalog.by_slug, mode.slug: mode}.values()).lineage(mode) is None:
        raise CommandFailed(
            f"`{mode.slug}` cannot extend `{mode.extends}`: that leads back to `{mode.slug}`, or nowhere"
        )


def _refused(reason: CannotAdd, mode: NewMode, target: Target, output: Output) -> CommandFailed:
    if reason.line is not None:
        return CommandFailed(f"{target.shown}:{reason.line}: {reason}")
    lines = snippet(target.text or "", mode)
    if output.as_json:
        output.json(Answer(mode, target.shown, snippet=lines))
    else:
        output.line(lines)
    return CommandFailed(f"{target.shown}: {reason}; paste the mode into it yourself")


# What is said.


def _answer(mode: NewMode, target: Target, added: Added, diff: str | None) -> Answer:
    replaced, by = target.catalog.get(mode.slug), target.replaced_by
    return Answer(
        mode=mode,
        file=target.shown,
        line=added.mode.origin.line,
        role_line=added.role_line,
        replaces=None if replaced is None else str(replaced.origin),
        replaced_by=None if by is None else str(by.origin),
        written=diff is None,
        diff=diff,
    )


def _tell(target: Target, added: Added, output: Output, *, has_own_role: bool) -> None:
    slug, shown = added.mode.slug, target.shown
    output.line("Added the mode ", Styled(slug, "name"), f" in {shown}:{added.mode.origin.line}.")
    if (replaced := target.catalog.get(slug)) is not None:
        what = "the" if replaced.source == "builtin" else f"the {replaced.source} mode in"
        output.line(Styled(f"It replaces {what} {replaced.origin}.", "warn"))
    if target.replaced_by is not None:
        output.line(Styled(f"In this project, the mode in {target.replaced_by.origin} takes its place.", "warn"))
    if not has_own_role and added.role_line is not None:
        output.line(f"Its role is a sentence to begin with: say in {shown}:{added.role_line} what it is for.")
    output.line(f"`modes-actor modes show {slug}` shows what it may do; `modes-actor check` looks for mistakes.")


def _diff(target: Target, added: Added) -> str:
    """As `patch` reads it."""
    before, after = (re.findall(r"[^\n]*\n|[^\n]+", text) for text in (target.text or "", added.text))
    name = "/dev/null" if target.text is None else target.shown
    lines = difflib.unified_diff(before, after, name, target.shown)
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def _show(diff: str, output: Output) -> None:
    styles: dict[str, Style] = {"+": "good", "-": "bad", "@": "name"}
    for line in diff.removesuffix("\n").split("\n"):
        style = "strong" if line.startswith(("+++ ", "--- ")) else styles.get(line[:1])
        line = line.removesuffix("\r")
        output.line(Styled(line, style) if style else line)


def _add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("slug", metavar="SLUG", help=f"its short name: at most {SLUG_LENGTH} letters, digits and `-`")
    parser.add_argument("--name", help="its name for people (default: made from the slug)")
    parser.add_argument("--role", metavar="TEXT", help="who the model is in this mode")
    parser.add_argument("--description", metavar="TEXT", help="what it is for, in a few words")
    parser.add_argument("--when-to-use", metavar="TEXT", help="for which work to choose it")
    parser.add_argument("--instructions", metavar="TEXT", help="how to work in it")
    parser.add_argument("--groups", metavar="NAMES", help=f"of {','.join(GROUP_NAMES)} (default: read,edit)")
    parser.add_argument("--edit-only", metavar="REGEX", help=r"edit only files whose path matches, as '\.md$'")
    parser.add_argument("--extends", metavar="MODE", help="allow no more than that mode does")
    names = "; ".join(f"{template.name}: {template.description}" for template in templates().values())
    parser.add_argument("--restrict", metavar="TEMPLATE", help=f"restrict MCP servers. {names}".replace("%", "%%"))
    parser.add_argument("--global", action="store_true", dest="is_global", help="for all your projects")
    parser.add_argument("--dry-run", action="store_true", help="only show what would change")


COMMAND = Command(
    description="Add a mode to the project's .roomodes, or with --global to your own modes.yaml. Nothing else in the "
    "file changes.",
    examples="  modes-actor new docs --role 'You write documentation.' --edit-only '\\.md$'\n"
    "  modes-actor new careful --extends code --groups read,edit\n"
    "  modes-actor new look --groups read,mcp --restrict read-only",
    arguments=NewArguments,
    add_arguments=_add_arguments,
    run=_new,
)
