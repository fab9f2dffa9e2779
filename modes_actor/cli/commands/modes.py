"""`modes-actor modes`: the modes in force, and all about one of them."""

from argparse import ArgumentParser

from msgspec import Struct

from modes_actor.cli.command import Command, CommandFailed, NoArguments, Situation
from modes_actor.cli.output import Styled
from modes_actor.modes.model import Source
from modes_actor.surface import mode_texts
from modes_actor.surface.mode_results import ModeDetails
from modes_actor.surface.mode_tools import mode_details
from modes_actor.wire.errors import ApplicationError


class Row(Struct, frozen=True):
    """A mode, as the list has it."""

    slug: str
    name: str
    groups: list[str]
    source: Source
    file: str
    """And line; of a built-in mode, its name."""


def _list(arguments: NoArguments, situation: Situation) -> int:
    catalog, output = situation.house.catalog, situation.output
    rows = [
        Row(mode.slug, mode.name, list(mode_texts.groups_in_short(mode, catalog)), mode.source, str(mode.origin))
        for mode in catalog
    ]
    if output.as_json:
        output.json(rows)
        return 0
    output.table(
        ["slug", "name", "groups", "source", "defined in"],
        [
            [Styled(row.slug, "name"), row.name, ", ".join(row.groups) or "none", row.source, Styled(row.file, "dim")]
            for row in rows
        ],
    )
    if any(problem.severity == "error" for problem in catalog.problems):
        output.note("Some mode files have mistakes: `modes-actor check` shows them.")
    return 0


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
    else:
        output.line(prompt if prompt is not None else mode_texts.mode_info(mode, house.catalog, None).rstrip())
    return 0


def _add_show_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("slug", metavar="SLUG", help="which mode")
    parser.add_argument("--prompt", action="store_true", help="its whole system prompt, with the project's rules")


COMMAND = Command(
    description="List the modes in force: what they may use, and where they come from.",
    examples="  modes-actor modes\n  modes-actor modes show architect\n  modes-actor modes show code --prompt",
    run=_list,
    actions={
        "show": Command(
            description="Show all about one mode.",
            arguments=ShowArguments,
            add_arguments=_add_show_arguments,
            run=_show,
        ),
    },
)
