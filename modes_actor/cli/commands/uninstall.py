"""`modes-actor uninstall`: the server out of the configuration of editors and agents again."""

from argparse import ArgumentParser
from pathlib import Path

from msgspec import structs

from modes_actor.cli.command import Command, Situation
from modes_actor.cli.editors.changes import (
    ALL,
    Choice,
    Planned,
    add_choice_arguments,
    carry_out,
    chosen,
    place_here,
    scopes_of,
)
from modes_actor.cli.editors.clients import CLIENTS, Client, Place, Scope, configuration_files
from modes_actor.cli.editors.registration import CannotChange, plan_uninstall, registered, registrations


def _run(arguments: Choice, situation: Situation) -> int:
    place = place_here(situation)
    registered_here = registrations(place, name=arguments.name)
    found = [*dict.fromkeys(each.client for each in registered_here if each.name == arguments.name)]
    here = f"`{arguments.name}` is in the files of {', '.join(found)}" if found else f"nobody has `{arguments.name}`"
    clients = chosen(arguments, found, without=f"which client? `--client NAME` or `--client {ALL}` ({here})")
    if not clients:
        situation.output.note(f"There is nothing to take out: {here}.")
    for each in registered_here if ALL in arguments.client else ():
        if each.problem is not None and CLIENTS[each.client] not in clients and arguments.scope in (None, each.scope):
            name = CLIENTS[each.client].display_name
            situation.output.note(f"{name} was left out: {each.path}: {each.problem}")
    planned = [each for client in clients for each in _planned(client, arguments, place)]
    unchanged = f"there is no `{arguments.name}` in"
    return carry_out(planned, arguments, situation.output, unchanged=unchanged, done=f"`{arguments.name}` is out of")


def _planned(client: Client, choice: Choice, place: Place) -> list[Planned]:
    """For each file that has the entry, or cannot be understood; one that says that there is none, else."""
    scopes = scopes_of(client, choice)
    files = [(scope, path) for scope in scopes for path in configuration_files(client, scope, place)]
    planned = [_of_file(client, scope, path, choice) for scope, path in files]
    to_do = [each for each in planned if each.change is None or not each.change.is_noop]
    if to_do:
        return to_do
    notes = [
        f"{each.path} starts the server as `{each.name}`: --name {each.name} takes it out"
        for scope in scopes
        for each in registered(client, scope, place, choice.name)
        if each.is_ours
    ]
    return [structs.replace(planned[0], notes=tuple(notes))]


def _of_file(client: Client, scope: Scope, path: Path, choice: Choice) -> Planned:
    try:
        change = plan_uninstall(client, path, name=choice.name, force=choice.force)
    except CannotChange as trouble:
        return Planned(client=client, scope=scope, file=path, problem=str(trouble))
    hint = f"{client.display_name} stops the server when it is next started."
    return Planned(client=client, scope=scope, file=path, change=change, hint=hint)


def _add_arguments(parser: ArgumentParser) -> None:
    add_choice_arguments(
        parser,
        scope="without either: in all of them",
        force="remove an entry of that name even if it is not this server",
    )


COMMAND = Command(
    description="""\
Take the server out of the configuration of editors and agents. What else is in their files stays as it is, and a copy
of each file is kept beside it; a file that `install` made, and nobody else changed, is removed. The diff is shown
first; at a terminal you are asked.""",
    examples="""\
  modes-actor uninstall --client all
  modes-actor uninstall --client claude-code --user""",
    arguments=Choice,
    add_arguments=_add_arguments,
    run=_run,
)
