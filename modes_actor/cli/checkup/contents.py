"""What is in the files that a server reads: modes, MCP servers, and the clients that are to start it."""

import glob
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from modes_actor.cli.checkup.finding import Finding, Status, counted
from modes_actor.cli.command import Situation
from modes_actor.cli.editors.changes import place_here
from modes_actor.cli.editors.clients import CLIENTS, Place, configuration_files
from modes_actor.cli.editors.launch import found_by_clients
from modes_actor.cli.editors.registration import DEFAULT_NAME, Registration, registrations
from modes_actor.cli.safe_files import BACKUP_SUFFIX
from modes_actor.modes.model import Problem
from modes_actor.modes.servers import server_files

_SEE_CHECK = "`modes-actor check` shows where"


def modes(situation: Situation) -> Iterator[Finding]:
    catalog = situation.house.catalog
    of_servers = set(map(str, _server_files(situation)))
    problems = [each for each in catalog.problems if each.file not in of_servers]
    sources = Counter(mode.source for mode in catalog)
    modes = ", ".join(f"{number} {source}" for source, number in sources.items())
    yield _judged("modes", f"{counted(sources.total(), 'mode')} ({modes})", problems)


def servers(situation: Situation) -> Iterator[Finding]:
    files = [path for path in _server_files(situation) if os.path.lexists(path)]
    if not files:
        yield Finding("servers", "ok", "no MCP servers are configured")
        return
    loaded = situation.house.loaded.servers
    what = f"{counted(len(loaded.servers), 'MCP server')} in {', '.join(map(str, files))}"
    yield _judged("servers", what, loaded.problems)


def clients(situation: Situation) -> Iterator[Finding]:
    place = place_here(situation)
    found = registrations(place)
    for each in found:
        yield _registered(each, place)
    if not any(each.is_ours for each in found):
        message = "no client has this server in its configuration"
        yield Finding("clients", "note", message, "`modes-actor install --client NAME` adds it")
    copies = sorted(_copies(place))
    if copies:
        message = f"{counted(len(copies), 'copy', 'copies')} of clients' files that we changed: {', '.join(copies)}"
        yield Finding("clients", "note", message, "Delete them, once the clients work as they should")


def _copies(place: Place) -> Iterator[str]:
    """What `install` and `uninstall` keep beside the files that they change."""
    for client in CLIENTS.values():
        for scope in client.scopes:
            for path in configuration_files(client, scope, place):
                yield from map(str, path.parent.glob(f"{glob.escape(path.name)}{BACKUP_SUFFIX}*"))


def _registered(entry: Registration, place: Place) -> Finding:
    client = f"{CLIENTS[entry.client].display_name} ({entry.path})"
    if entry.problem is not None:
        return Finding("clients", "warning", f"{client} cannot be understood: {entry.problem}", "Mend that file")
    if not entry.is_ours:
        message = f"{client} has a server `{entry.name}` that is not this one"
        return Finding(
            "clients", "note", message, "Give this one another name: `modes-actor install --client NAME --name OTHER`"
        )
    words = " ".join(entry.command)
    name = "" if entry.name == DEFAULT_NAME else f" --name {entry.name}"
    fix = f"`modes-actor install --client {entry.client} --{entry.scope}{name}` mends it"
    if _is_missing(entry.command, place):
        message = f"{client}: the command of `{entry.name}` does not exist ({words})"
        return Finding("clients", "error", message, fix)
    if _is_only_in_an_environment(entry.command, place):
        message = (
            f"{client}: the command of `{entry.name}` is on the PATH only in a virtual environment, where a client "
            f"that is started from a menu does not look ({words})"
        )
        return Finding("clients", "warning", message, fix)
    return Finding("clients", "ok", f"{client} starts `{entry.name}`: {words}")


def _is_missing(command: Sequence[str], place: Place) -> bool:
    """Whether what is to be started is certainly not there. What a client expands first is not known here."""
    program = command[0] if command else ""
    if "$" in program or "%" in program or program.startswith("~"):
        return False
    if not os.path.dirname(program):
        return place.which(program) is None
    if not os.path.isabs(program):
        return False  # each client has its own idea of what that is relative to
    return not (os.path.isfile(program) and os.access(program, os.X_OK))


def _is_only_in_an_environment(command: Sequence[str], place: Place) -> bool:
    program = command[0] if command else ""
    if os.path.dirname(program) or place.which(program) is None:
        return False
    return found_by_clients(place, program) is None


def _server_files(situation: Situation) -> list[Path]:
    return server_files(situation.project_root, Path(situation.config.paths.global_config_dir))


def _judged(check: str, what: str, problems: Sequence[Problem]) -> Finding:
    counts = Counter(problem.severity for problem in problems)
    wrong = [counted(counts[severity], severity) for severity in ("error", "warning") if counts[severity]]
    if not wrong:
        return Finding(check, "ok", what)
    status: Status = "error" if counts["error"] else "warning"
    return Finding(check, status, f"{what}, with {' and '.join(wrong)}", _SEE_CHECK)
