"""From words to a command with its arguments. A command's module is loaded once it is known to be the one."""

import argparse
import importlib
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, NoReturn

from modes_actor import __version__
from modes_actor.cli.command_line import CommandLine
from modes_actor.config import Flags

if TYPE_CHECKING:
    from modes_actor.cli.command import Command

SUMMARIES: Final = {
    "serve": "serve MCP on stdin and stdout (the same as no command at all)",
    "install": "add the server to an editor or agent",
    "uninstall": "take it out again",
    "modes": "show the modes in force, or one of them",
    "new": "add a mode to .roomodes",
    "check": "look for mistakes in mode files",
    "explain": "may a mode use a tool, and why (not)?",
    "sessions": "list, show, close or export sessions",
    "config": "show the configuration and where it comes from",
    "health": "start a server, and see whether and how fast it answers",
    "doctor": "look for what could be wrong with the installation",
    "completion": "print completions for a shell",
}
"""Each command but `serve` is the module of its name in `commands/`."""

_OPTIONS: Final = (
    ("--project-root", "DIR", "the project whose modes count"),
    ("--config", "FILE", "a JSON configuration file"),
    ("--config-dir", "DIR", "where your own modes are (default: ~/.roo-code)"),
    ("--log-level", "LEVEL", "DEBUG, INFO, WARNING, ERROR or CRITICAL"),
)
_LOG_OPTIONS: Final = (
    ("--log-file", "FILE", "where the log is kept besides stderr; '' for nowhere"),
    ("--log-format", "FORMAT", "json, or a format of Python's logging"),
)


_UNRECOGNIZED: Final = "unrecognized arguments: "


def parse(words: Sequence[str]) -> CommandLine:
    """Raises `SystemExit` as `argparse` does: 0 after `--help` and `--version`, 2 for wrong usage."""
    parser = main_parser()
    parsed = vars(parser.parse_args(words))
    name, *rest = parsed.pop("command") or ["serve"]
    if name not in SUMMARIES:
        parser.error(f"there is no command `{name}`: {_meant(name, SUMMARIES)}")
    if name != "serve":
        command = load_command(name)
        actions = [f"{name} {action}" for action in command.actions]
        if rest and rest[0] in command.actions:
            command, name = command.actions[rest[0]], f"{name} {rest.pop(0)}"
        elif rest and actions and not rest[0].startswith("-"):
            parser.error(f"there is no `{name} {rest[0]}`: {_meant(f'{name} {rest[0]}', actions)}")
        elif command.run is None:
            parser.error(f"{name} does nothing alone: there are {', '.join(actions)}")
        own = command_parser(name, command, parsed)
        parsed |= vars(own.parse_intermixed_args(rest) if command.is_intermixed else own.parse_args(rest))
    elif rest:
        parser.error(f"serve takes no `{rest[0]}`: options go before it")
    elif parsed["json"]:
        parser.error("--json goes with a command")
    flags = Flags(**{flag: parsed.pop(flag, None) for flag in Flags.__struct_fields__})
    return CommandLine(command=name, flags=flags, as_json=parsed.pop("json", False), arguments=parsed)


def _meant(name: str, known: Iterable[str]) -> str:
    from modes_actor.spelling import did_you_mean

    return did_you_mean(name, known) or f"there are {', '.join(known)}"


class _Parser(argparse.ArgumentParser):
    """Wrong usage is one line: what is wrong, what was probably meant, and where to read on."""

    def error(self, message: str) -> NoReturn:
        if unknown := message.removeprefix(_UNRECOGNIZED) if message.startswith(_UNRECOGNIZED) else None:
            first = unknown.split()[0]
            options = [option for option in self._option_string_actions if option.startswith("--")]
            hint = f": {_meant(first.partition('=')[0], options)}" if first.startswith("--") else ""
            message = f"`{first}` means nothing here{hint}"
        self.exit(2, f"{self.prog}: {message} (`{self.prog} --help` tells more)\n")


def load_command(name: str) -> "Command":
    """A command, or one of its actions, by its full name."""
    first, *action = name.split()
    command: Command = importlib.import_module(f"modes_actor.cli.commands.{first}").COMMAND
    return command.actions[action[0]] if action else command


def command_parser(name: str, command: "Command", defaults: dict[str, Any] | None = None) -> argparse.ArgumentParser:
    """The parser of one command. Options that all commands have may stand before its name, too."""
    actions = "".join(f"\n  {name} {action}: {each.description}" for action, each in command.actions.items())
    parser = _Parser(
        prog=f"modes-actor {name}",
        description=command.description,
        epilog="\n\n".join(
            filter(None, (actions and f"actions:{actions}", command.examples and f"examples:\n{command.examples}"))
        ),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    command.add_arguments(parser)
    common = parser.add_argument_group("options of every command")
    for option, metavar, text in _OPTIONS:
        common.add_argument(option, metavar=metavar, help=text)
    common.add_argument("--json", action="store_true", help="answer in JSON, for programs")
    parser.set_defaults(**defaults or {})
    return parser


def main_parser() -> argparse.ArgumentParser:
    width = max(map(len, SUMMARIES))
    commands = "\n".join(f"  {name:<{width}}  {summary}" for name, summary in SUMMARIES.items())
    parser = _Parser(
        prog="modes-actor",
        usage="modes-actor [OPTION…] [COMMAND …]",
        description="Roo-style modes for any MCP client. Without a command: serve MCP on stdin and stdout, as editors "
        "want it.",
        epilog=f"commands (each has a --help of its own):\n{commands}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    for option, metavar, text in (*_OPTIONS, *_LOG_OPTIONS):
        parser.add_argument(option, metavar=metavar, help=text)
    parser.add_argument("--json", action="store_true", help="with a command: answer in JSON, for programs")
    parser.add_argument("--version", action="version", version=f"modes-actor {__version__}")
    parser.add_argument("command", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    return parser
