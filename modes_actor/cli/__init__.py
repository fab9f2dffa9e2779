"""The command line: which command is meant, and with which exit code it ends. Without one it serves MCP."""

import gc
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from modes_actor.cli.command_line import SERVE, CommandLine
from modes_actor.config import ConfigError, load_config

EXIT_OK = 0
EXIT_FAILED = 1
"""The answers could not be written; a command found something wrong, or could not do what it was asked."""
EXIT_UNUSABLE = 2
"""Wrong usage, wrong configuration, or no stdin and stdout to serve on."""
EXIT_INTERRUPTED = 130
EXIT_UNREAD = 141
"""Nobody reads what a command says, as when `head` has seen enough."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code. Trouble that a person can mend is one line on stderr."""
    line = _understood(sys.argv[1:] if arguments is None else arguments)
    return _serve(line) if line.command == "serve" else _run(line)


def _understood(words: Sequence[str]) -> CommandLine:
    if not words:
        return SERVE
    from modes_actor.cli.arguments import parse

    return parse(words)


def _serve(line: CommandLine) -> int:
    with _making_what_stays():
        from modes_actor.actor.stdio import StdioUnusable
        from modes_actor.actor.writer import OutputFailed
        from modes_actor.cli.serve import serve

    try:
        serve(load_config(line.flags, os.environ))
    except (ConfigError, StdioUnusable) as trouble:
        return _complain(trouble, EXIT_UNUSABLE)
    except OutputFailed as trouble:
        return _complain(trouble, EXIT_FAILED)
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED  # before the server was there to take the signal
    except Exception as bug:
        return _admit(bug, line)
    return EXIT_OK


@contextmanager
def _making_what_stays() -> Iterator[None]:
    """No module is garbage: to look for some again and again while they are loaded would only take time."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def _run(line: CommandLine) -> int:
    from modes_actor.cli.command import CommandFailed, UsageError, run

    try:
        code = run(line)
        sys.stdout.flush()
    except (ConfigError, UsageError) as trouble:
        return _complain(trouble, EXIT_UNUSABLE)
    except CommandFailed as trouble:
        return _complain(trouble, EXIT_FAILED)
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        _forget_output()
        return EXIT_UNREAD
    except OSError as error:
        _forget_output()
        where = f": {error.filename}" if error.filename else ""
        return _complain(f"{line.command} could not be done: {error.strerror or error}{where}", EXIT_FAILED)
    except Exception as bug:
        return _admit(bug, line)
    return code


def _admit(bug: Exception, line: CommandLine) -> int:
    """What nobody foresaw, in one line; all of it for who wants to look for it."""
    if line.flags.log_level is not None and line.flags.log_level.upper() == "DEBUG":
        raise bug
    while isinstance(bug, ExceptionGroup):
        bug = bug.exceptions[0]
    what = f"{type(bug).__name__}: {bug}".partition("\n")[0]
    return _complain(f"{line.command} failed unexpectedly ({what}); --log-level DEBUG shows where", EXIT_FAILED)


def _forget_output() -> None:
    """What is still in a buffer would fail once more at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def _complain(trouble: object, code: int) -> int:
    from modes_actor.cli.stderr import tell

    for each in str(trouble).splitlines():
        tell(f"modes-actor: {each}")
    return code
