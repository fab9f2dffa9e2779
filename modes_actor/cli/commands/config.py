"""`modes-actor config`: what is in effect and who says so, and a file to begin with."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from msgspec import Struct

from modes_actor.cli.command import Command, CommandFailed, NoArguments, Situation
from modes_actor.cli.output import Styled
from modes_actor.cli.safe_files import CannotWrite, write_safely
from modes_actor.config import Effective, find_project, load_effective
from modes_actor.config.commented import commented_defaults
from modes_actor.config.settings import SETTINGS, value_of


class Row(Struct, frozen=True):
    key: str
    value: Any
    origin: str
    """`default`, a flag, a variable, or a file and line."""
    variable: str
    flag: str | None = None


class Shown(Struct, frozen=True):
    file: str | None
    settings: list[Row]


def _show(arguments: NoArguments, situation: Situation) -> int:
    effective, output = load_effective(situation.flags, situation.environment), situation.output
    rows = [_row(key, effective, situation) for key in SETTINGS]
    if output.as_json:
        output.json(Shown(None if effective.file is None else str(effective.file), rows))
        return 0
    output.table(
        ["setting", "value", "from"],
        [
            [
                Styled(row.key, "name"),
                "null"
                if row.value is None
                else str(row.value).lower()
                if isinstance(row.value, bool)
                else f"{row.value}",
                Styled(row.origin, "dim") if row.origin == "default" else row.origin,
            ]
            for row in rows
        ],
    )
    return 0


def _row(key: str, effective: Effective, situation: Situation) -> Row:
    setting = SETTINGS[key]
    value, origin = value_of(effective.config, key), effective.origin(key)
    if key == "paths.project_root" and value is None:
        found = find_project(effective.config, situation.working_directory)
        value = str(found.root)
        origin = f"has {found.mark}" if found.mark is not None else "working directory"
    return Row(key, value, origin, setting.variable, setting.flag)


class GenerateArguments(Struct):
    file: str | None = None
    force: bool = False


def _generate(arguments: GenerateArguments, situation: Situation) -> int:
    text, output = commented_defaults(), situation.output
    if arguments.file is None:
        if output.as_json:
            output.json({"text": text})
        else:
            output.line(text.rstrip("\n"))
        return 0
    path = situation.working_directory / Path(arguments.file).expanduser()
    if path.exists() and not arguments.force:
        raise CommandFailed(f"{path} is there already: --force replaces it (and keeps a copy)")
    try:
        backup = write_safely(path, text, backup=True)
    except CannotWrite as trouble:
        raise CommandFailed(str(trouble)) from trouble
    if output.as_json:
        output.json({"file": str(path), "backup": None if backup is None else str(backup)})
    else:
        output.line(f"Written: {path}")
        if backup is not None:
            output.line(f"What was there: {backup}")
    return 0


def _add_generate_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("file", nargs="?", metavar="FILE", help="where to write it (default: stdout)")
    parser.add_argument("--force", action="store_true", help="replace a file that is there")


COMMAND = Command(
    description="Show the configuration, or write one to begin with.",
    examples="  modes-actor config show\n"
    "  modes-actor config generate ~/.roo-code/mcp_modes_server_config.json   # read whenever it is there",
    actions={
        "show": Command(
            description="Show every setting in effect, and where its value comes from.",
            run=_show,
        ),
        "generate": Command(
            description="Write the defaults as a commented file.",
            arguments=GenerateArguments,
            add_arguments=_add_generate_arguments,
            run=_generate,
        ),
    },
)
