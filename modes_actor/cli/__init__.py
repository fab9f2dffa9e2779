"""The command line: arguments, logging, exit codes. Without a subcommand it serves MCP on stdin and stdout."""

import argparse
import os
from collections.abc import Sequence

from modes_actor import __version__
from modes_actor.config import ConfigError, Flags, load_config

EXIT_OK = 0
EXIT_FAILED = 1
"""The answers could not be written."""
EXIT_UNUSABLE = 2
"""Wrong usage, wrong configuration, or no stdin and stdout to serve on."""
EXIT_INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code. Trouble that a person can mend is one line on stderr."""
    flags = _parse(arguments)
    from modes_actor.actor.stdio import StdioUnusable
    from modes_actor.actor.writer import OutputFailed
    from modes_actor.cli.serve import serve
    from modes_actor.cli.stderr import tell

    try:
        serve(load_config(flags, os.environ))
    except (ConfigError, StdioUnusable) as trouble:
        tell(f"modes-actor: {trouble}")
        return EXIT_UNUSABLE
    except OutputFailed as trouble:
        tell(f"modes-actor: {trouble}")
        return EXIT_FAILED
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED  # before the server was there to take the signal
    return EXIT_OK


def _parse(arguments: Sequence[str] | None) -> Flags:
    parser = argparse.ArgumentParser(
        prog="modes-actor",
        description="Roo-style modes for any MCP client. Without a subcommand: serve MCP on stdin and stdout.",
    )
    parser.add_argument("--project-root", metavar="DIR", help="the project whose modes are served")
    parser.add_argument("--config", metavar="FILE", help="a JSON configuration file")
    parser.add_argument("--log-level", metavar="LEVEL", help="DEBUG, INFO, WARNING, ERROR or CRITICAL (default: INFO)")
    parser.add_argument("--version", action="version", version=f"modes-actor {__version__}")
    parsed = parser.parse_args(arguments)
    return Flags(project_root=parsed.project_root, config=parsed.config, log_level=parsed.log_level)
