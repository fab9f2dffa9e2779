"""What may stand where the cursor is: told by the parsers of the commands, so that it is never out of date.

Promises: nothing is made or written for it. What raises is for the caller to keep to itself: a shell that completes is
no place for complaints.
"""

from argparse import SUPPRESS, Action, ArgumentParser
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Final, Literal, get_args

from msgspec import Struct, field

from modes_actor.cli.arguments import SUMMARIES, command_parser, load_command, main_parser
from modes_actor.cli.command import Situation
from modes_actor.config import Flags

Kind = Literal["files", "directories", "commands"]
"""What a shell completes better than we do."""
Look = Callable[[Flags], Situation]
"""Where a command with these options would run."""

SHELLS: Final = ("bash", "zsh", "fish")
SESSIONS_SHOWN: Final = 100


class Suggestion(Struct, frozen=True):
    value: str
    description: str = ""


class Suggestions(Struct, frozen=True):
    found: list[Suggestion] = []
    kind: Kind | None = None
    prefix: str = ""
    """What stands before the value in the same word: `--mode=`."""


class _Read(Struct):
    """What words mean to a parser."""

    values: dict[str, str] = {}
    given: list[Action] = []
    positionals: list[str] = []
    waiting: Action | None = None
    """An option whose value comes next."""
    only_positionals: bool = False
    rest: list[str] = field(default_factory=list)
    """What was not read, from the first positional on, if that is where to stop."""


def suggest(words: Sequence[str], look: Look) -> Suggestions:
    """For the last of the words behind `modes-actor`, which may be empty."""
    *before, current = words or [""]
    parser = main_parser()
    read = _read(parser, before, stop_at_positional=True)
    if not read.rest:
        commands = _matching([Suggestion(*each) for each in SUMMARIES.items()], current)
        return _suggest(parser, read, current, _Values("", read.values, look), commands)
    name, *typed = read.rest
    if name not in SUMMARIES or name == "serve":
        return Suggestions()
    command = load_command(name)
    actions: list[Suggestion] = []
    if typed and typed[0] in command.actions:
        command, name = command.actions[typed[0]], f"{name} {typed.pop(0)}"
    elif not typed:
        actions = [Suggestion(action, each.description) for action, each in command.actions.items()]
    parser = command_parser(name, command)
    of_command = _read(parser, typed)
    values = _Values(name, read.values | of_command.values, look)
    return _suggest(parser, of_command, current, values, _matching(actions, current))


def _suggest(
    parser: ArgumentParser, read: _Read, current: str, values: "_Values", words: list[Suggestion]
) -> Suggestions:
    if read.waiting is not None:
        return values.of(read.waiting, current)
    if current.startswith("-") and not read.only_positionals:
        option, has_value, begun = current.partition("=")
        action = parser._option_string_actions.get(option)
        if has_value:
            return Suggestions() if action is None else values.of(action, begun, prefix=f"{option}=")
        return Suggestions(_matching(list(_options(parser, read)), current))
    positional = _positional(parser, len(read.positionals))
    found = Suggestions() if positional is None else values.of(positional, current)
    if found.kind == "commands" and not read.only_positionals:
        found = Suggestions()  # they are to be behind a `--`, and there are too many to show them to everybody
    elif found.kind == "commands" and read.positionals:
        found = Suggestions(kind="files")  # the command's own arguments, of which nothing is known
    return Suggestions([*words, *found.found], found.kind)


def _read(parser: ArgumentParser, words: Sequence[str], *, stop_at_positional: bool = False) -> _Read:
    read = _Read()
    for number, word in enumerate(words):
        if read.waiting is not None:
            read.values[read.waiting.dest], read.waiting = word, None
        elif read.only_positionals or not word.startswith("-"):
            if stop_at_positional:
                read.rest = list(words[number:])
                break
            read.positionals.append(word)
        elif word == "--":
            read.only_positionals = True
        else:
            option, has_value, value = word.partition("=")
            action = parser._option_string_actions.get(option)
            if action is None:
                continue
            read.given.append(action)
            if has_value:
                read.values[action.dest] = value
            elif action.nargs != 0:
                read.waiting = action
    return read


def _options(parser: ArgumentParser, read: _Read) -> Iterator[Suggestion]:
    """Those that are not there yet, each by its long name."""
    formatter = parser._get_formatter()
    for action in parser._actions:
        if not action.option_strings or action.help == SUPPRESS:
            continue
        if action not in read.given or type(action).__name__ == "_AppendAction":
            yield Suggestion(action.option_strings[-1], formatter._expand_help(action) if action.help else "")


def _positional(parser: ArgumentParser, number: int) -> Action | None:
    """The argument that the next word belongs to, after a number of others."""
    for action in parser._get_positional_actions():
        if action.nargs in ("*", "+"):
            return action
        if number == 0:
            return action
        number -= 1
    return None


def _matching(suggestions: Sequence[Suggestion], begun: str) -> list[Suggestion]:
    return [each for each in suggestions if each.value.startswith(begun)]


class _Values:
    """The values that an argument may have, by how its help calls it."""

    def __init__(self, command: str, typed: dict[str, str], look: Look) -> None:
        self._command = command
        self._flags = Flags(**{name: typed[name] for name in Flags.__struct_fields__ if name in typed})
        self._look = look

    def of(self, action: Action, begun: str, *, prefix: str = "") -> Suggestions:
        name = action.metavar if isinstance(action.metavar, str) else action.dest
        if action.choices is not None:
            values = [Suggestion(str(choice)) for choice in action.choices]
        elif name in _KINDS:
            return Suggestions(kind=_KINDS[name], prefix=prefix)
        elif self._command == "new" and action.dest == "slug":
            return Suggestions()  # the one argument that must be no mode yet
        else:
            find = _VALUES.get(action.dest) or _VALUES.get(name)
            values = [] if find is None else list(find(self._look(self._flags)))
        return Suggestions(_matching(values, begun), prefix=prefix)


def _modes(situation: Situation) -> Iterator[Suggestion]:
    from modes_actor.modes.loader import ModeLoader  # not by way of the house, which would load Trio for it

    config_dir = Path(situation.config.paths.global_config_dir)
    for mode in ModeLoader(situation.project_root, config_dir).load().catalog:
        yield Suggestion(mode.slug, mode.name)


def _sessions(situation: Situation) -> Iterator[Suggestion]:
    from modes_actor.cli.sessions_on_file import looking_at_sessions

    with looking_at_sessions(situation) as sessions:
        for session in islice(sessions.live(), SESSIONS_SHOWN):
            yield Suggestion(session.session_id, f"{session.task.mode}, {session.task.state}")


def _clients(situation: Situation) -> Iterator[Suggestion]:
    from modes_actor.cli.editors.clients import CLIENTS

    for client in CLIENTS.values():
        yield Suggestion(client.name, client.display_name)


def _tools(situation: Situation) -> Iterator[Suggestion]:
    from modes_actor.modes.tools import group_of

    for tool, group in group_of().items():
        yield Suggestion(tool, group)


def _templates(situation: Situation) -> Iterator[Suggestion]:
    from modes_actor.modes.templates import templates

    for template in templates().values():
        yield Suggestion(template.name, template.description)


def _levels(situation: Situation) -> Iterator[Suggestion]:
    from modes_actor.config.model import LogLevelName

    return map(Suggestion, get_args(LogLevelName))


def _shells(situation: Situation) -> Iterator[Suggestion]:
    return map(Suggestion, SHELLS)


_KINDS: Final[dict[str, Kind]] = {
    "FILE": "files",
    "PATH": "files",
    "DIR": "directories",
    "COMMAND": "commands",
    "CMD": "commands",
}
_VALUES: Final[dict[str, Callable[[Situation], Iterator[Suggestion]]]] = {
    "SLUG": _modes,
    "MODE": _modes,
    "ID": _sessions,
    "client": _clients,
    "TOOL": _tools,
    "TEMPLATE": _templates,
    "LEVEL": _levels,
    "SHELL": _shells,
}
"""By the name in the help, or by the destination where that says more."""
