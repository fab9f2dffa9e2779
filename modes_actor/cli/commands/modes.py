"""`modes-actor modes`: the modes in force, and all about one of them."""

import os
from argparse import ArgumentParser
from pathlib import Path

from msgspec import Struct

from modes_actor.cli.command import Command, CommandFailed, Situation
from modes_actor.cli.output import Styled
from modes_actor.modes.model import Origin, Source
from modes_actor.surface import mode_texts
from modes_actor.surface.mode_results import ModeDetails
from modes_actor.surface.mode_tools import mode_details
from modes_actor.wire.errors import ApplicationError

_SOURCES = ("builtin", "global", "project")


class Row(Struct, frozen=True):
    """A mode, as the list has it."""

    slug: str
    name: str
    groups: list[str]
    source: Source
    file: str
    """And line; of a built-in mode, its name."""


class ListArguments(Struct):
    source: Source | None = None


def _list(arguments: ListArguments, situation: Situation) -> int:
    catalog, output = situation.house.catalog, situation.output
    modes = [mode for mode in catalog if arguments.source in (None, mode.source)]
    if output.as_json:
        output.json(
            [
                Row(
                    mode.slug, mode.name, list(mode_texts.groups_in_short(mode, catalog)), mode.source, str(mode.origin)
                )
                for mode in modes
            ]
        )
        return 0
    output.table(
        ["slug", "name", "groups", "source", "defined in"],
        [
            [
                Styled(mode.slug, "name"),
                mode.name,
                ", ".join(mode_texts.groups_in_short(mode, catalog)) or "none",
                mode.source,
                Styled(_nearby(mode.origin, situation), "dim"),
            ]
            for mode in modes
        ],
    )
    tell_of_mistakes(situation)
    return 0


def _nearby(origin: Origin, situation: Situation) -> str:
    """The place as a person would type it here; nothing where there is none to go to."""
    if origin.line is None:
        return ""
    for directory, shown in ((situation.working_directory, ""), (situation.home, f"~{os.sep}")):
        path = Path(origin.file)
        if path.is_relative_to(directory):
            return str(Origin(f"{shown}{path.relative_to(directory)}", origin.line))
    return str(origin)


def tell_of_mistakes(situation: Situation) -> None:
    """What is in force is not all that somebody wrote: say so beside it."""
    if any(problem.severity == "error" for problem in situation.house.catalog.problems):
        situation.output.note("Some mode files have mistakes: `modes-actor check` shows them.")


class ShowArguments(Struct):
    slug: str
    prompt: bool = False


def _show(arguments: ShowArguments, situation: Situation) -> int:
    house, output = situation.house, situation.output
    try:
        mode = house.mode(arguments.slug, parameter="SLUG")
    except ApplicationError as unknown:
        raise CommandFailed(unknown.message) from unknown
    prompt = house.system_prompt(mode) if arguments.prompt else None
    if output.as_json:
        details: ModeDetails = mode_details(mode, house, prompt)
        output.json(details)
    elif prompt is not None:
        output.line(prompt)
    else:
        output.text(mode_texts.mode_info(mode, house.catalog, None))
    return 0


def _add_list_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--source", choices=_SOURCES, help="only those that come from there")


def _add_show_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("slug", metavar="SLUG", help="which mode")
    parser.add_argument("--prompt", action="store_true", help="its whole system prompt, with the project's rules")


_LIST_DESCRIPTION = "List the modes in force: what they may use, and where they come from."

COMMAND = Command(
    description=_LIST_DESCRIPTION,
    examples="  modes-actor modes --source project\n  modes-actor modes show architect\n"
    "  modes-actor modes show code --prompt",
    arguments=ListArguments,
    add_arguments=_add_list_arguments,
    run=_list,
    actions={
        "list": Command(
            description=_LIST_DESCRIPTION, arguments=ListArguments, add_arguments=_add_list_arguments, run=_list
        ),
        "show": Command(
            description="Show all about one mode.",
            arguments=ShowArguments,
            add_arguments=_add_show_arguments,
            run=_show,
        ),
    },
)
