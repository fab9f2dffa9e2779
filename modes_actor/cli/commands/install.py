"""`modes-actor install`: the server in the configuration of editors and agents; and `--list`: where it is already."""

import re
import shlex
import sys
from argparse import ArgumentParser
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from msgspec import Struct

from modes_actor.cli.command import Command, CommandFailed, Situation, UsageError
from modes_actor.cli.editors.changes import ALL, Choice, Planned, add_choice_arguments, carry_out, chosen, place_here
from modes_actor.cli.editors.clients import CLIENTS, Client, Place, Scope, configuration_files, is_found
from modes_actor.cli.editors.launch import Launch, launch
from modes_actor.cli.editors.registration import DEFAULT_NAME, CannotChange, plan_install, registered
from modes_actor.cli.output import Output, Styled, Words
from modes_actor.config import find_project

_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")


class Arguments(Choice, kw_only=True):
    command: str | None = None
    list: bool = False


class Row(Struct, frozen=True, kw_only=True):
    """A file in which a client looks for servers."""

    client: str
    found: bool
    """Whether the client is on this machine, as far as can be seen."""
    scope: Scope
    file: str
    name: str | None = None
    """Of the server's entry, if there is one."""
    command: tuple[str, ...] = ()
    is_ours: bool = False
    """False if an entry has the server's name and starts something else."""
    problem: str | None = None


def _run(arguments: Arguments, situation: Situation) -> int:
    place = place_here(situation)
    found = [name for name, client in CLIENTS.items() if is_found(client, place)]
    if arguments.list:
        _list([*_rows(arguments, place, found)], situation.output)
        return 0
    here = f"found here: {', '.join(found)}" if found else "none of those it knows was found here"
    if not _NAME.fullmatch(arguments.name):
        what = "letters, digits, `-` and `_`, as some clients want it"
        raise UsageError(f"--name must be of {what}, not {arguments.name!r}")
    clients = chosen(arguments, found, without=f"which client? `--client NAME` or `--client {ALL}` ({here})")
    if not clients:
        raise CommandFailed(f"there is nothing to add the server to: {here}")
    planned = [_planned(client, arguments, situation, place) for client in clients]
    unchanged = f"`{arguments.name}` is already in"
    return carry_out(planned, arguments, situation.output, unchanged=unchanged, done=f"`{arguments.name}` is in")


def _planned(client: Client, arguments: Arguments, situation: Situation, place: Place) -> Planned:
    scope = arguments.scope or _default_scope(client, situation)
    start = _launch(arguments, scope, place)
    words = [*start.words, *_options(situation, scope)]
    try:
        change = plan_install(client, scope, place, words, name=arguments.name, force=arguments.force)
        notes = [*_notes(client, scope, place, arguments.name)]
    except CannotChange as trouble:
        return Planned(client=client, scope=scope, file=trouble.path, problem=str(trouble))
    if scope == "project":
        notes += _notes_for_others(start, situation)
    return Planned(client=client, scope=scope, file=change.path, change=change, notes=tuple(notes), hint=client.hint)


def _default_scope(client: Client, situation: Situation) -> Scope:
    """Modes belong to a project: so does the entry, if there is a project and the client has a file for it."""
    project = find_project(situation.config, situation.working_directory)
    is_project = project.mark is not None or situation.config.paths.project_root is not None
    return "project" if "project" in client.scopes and is_project and project.root != situation.home else "user"


def _launch(arguments: Arguments, scope: Scope, place: Place) -> Launch:
    if arguments.command is None:
        return launch(place, scope, Path(sys.executable))
    is_posix = place.platform != "win32"  # elsewhere, a backslash escapes nothing
    try:
        words = shlex.split(arguments.command, posix=is_posix)
    except ValueError as error:
        raise UsageError(f"--command is no command ({error}): {arguments.command}") from error
    if not words:
        raise UsageError("--command must name a program")
    return Launch(tuple(word if is_posix else word.strip('"') for word in words), is_of_this_machine=False)


def _options(situation: Situation, scope: Scope) -> Iterator[str]:
    """What was said about the configuration, for the server as for us. Nobody knows where it will be started."""
    flags = situation.flags
    options = {"--config": flags.config, "--config-dir": flags.config_dir}
    if scope == "user":
        options["--project-root"] = flags.project_root
    for option, value in options.items():
        if value is not None:
            yield option
            yield str((situation.working_directory / Path(value).expanduser()).absolute())


def _notes(client: Client, scope: Scope, place: Place, name: str) -> Iterator[str]:
    for each in registered(client, scope, place, name):
        if each.is_ours and each.name != name:
            yield f"{each.path} starts this server as `{each.name}`, too; `modes-actor uninstall --name` takes it out"


def _notes_for_others(start: Launch, situation: Situation) -> Iterator[str]:
    """People commit the files of a project."""
    if start.is_of_this_machine:
        yield (
            f"if others share this file: {start.words[0]} is on this machine only. With `--command modes-actor` the "
            "file serves whoever has that on the PATH"
        )
    options = [*_options(situation, "project")]
    for option, path in zip(options[::2], options[1::2], strict=True):
        yield (
            f"if others share this file: {path} is on this machine only. Without {option} the file serves whoever has "
            "a configuration of their own"
        )


def _rows(arguments: Arguments, place: Place, found: list[str]) -> Iterator[Row]:
    named = arguments.client and ALL not in arguments.client
    for client in chosen(arguments, found, without="") if named else CLIENTS.values():
        for scope in client.scopes:
            if arguments.scope in (None, scope):
                is_here = client.name in found
                entries = registered(client, scope, place, arguments.name)
                for each in entries:
                    yield Row(
                        client=client.name,
                        found=is_here,
                        scope=scope,
                        file=str(each.path),
                        name=each.name,
                        command=each.command,
                        is_ours=each.is_ours,
                        problem=each.problem,
                    )
                if not entries:
                    file = str(configuration_files(client, scope, place)[0])
                    yield Row(client=client.name, found=is_here, scope=scope, file=file)


def _list(rows: list[Row], output: Output) -> None:
    if output.as_json:
        output.json(rows)
        return
    output.table(
        ["client", "found", "scope", "file", "registered"],
        [[Styled(row.client, "name"), "yes" if row.found else "no", row.scope, row.file, _state(row)] for row in rows],
    )


def _state(row: Row) -> Words:
    if row.problem is not None:
        return Styled(f"cannot be read: {row.problem}", "bad")
    if row.name is None:
        return Styled("no", "dim")
    command = shlex.join(row.command)
    if not row.is_ours:
        return Styled(f"another `{row.name}`: {command}", "warn")
    return Styled(command if row.name == DEFAULT_NAME else f"`{row.name}`: {command}", "good")


def _add_arguments(parser: ArgumentParser) -> None:
    add_choice_arguments(
        parser,
        scope="without either: in the project's, if we are in one and the client has such files",
        force="replace an entry of that name that is not this server",
    )
    parser.add_argument("--command", metavar="CMD", help="what starts the server, instead of this installation")
    parser.add_argument("--list", action="store_true", help="show which clients there are, and what is in their files")


COMMAND = Command(
    description="""\
Add the server to the configuration of editors and agents. What else is in their files stays as it is, and a copy of
each file that is not ours alone is kept beside it. The diff is shown first; at a terminal you are asked. --config,
--config-dir and, with --user, --project-root are passed on to the server.""",
    examples="""\
  modes-actor install --list
  modes-actor install --client vscode --client cursor
  modes-actor install --client all --user --dry-run
  modes-actor install --client codex --command 'uvx modes-actor'""",
    arguments=Arguments,
    add_arguments=_add_arguments,
    run=_run,
)
