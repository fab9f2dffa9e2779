"""Where a server would work: the configuration, the project, and the directories it reads and writes."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from modes_actor.cli.checkup.finding import Finding, may, nearest, why_no_good_file, why_not_writable
from modes_actor.cli.command import Situation
from modes_actor.config import ConfigError, find_project, load_effective
from modes_actor.surface.house import STORE_FILE

LITTLE_SPACE: Final = 100 * 1024 * 1024
"""Bytes. Sessions take far less, but a disk that is nearly full is full soon."""


def configuration(situation: Situation) -> Iterator[Finding]:
    try:
        effective = load_effective(situation.flags, situation.environment)
    except ConfigError as trouble:
        message = "; ".join(str(trouble).splitlines())
        yield Finding("configuration", "error", message, "Until this is mended, no server starts here")
        return
    said = f"{effective.file}" if effective.file is not None else "no file, defaults"
    elsewhere = {origin for origin in effective.origins.values() if not origin.startswith(f"{effective.file}:")}
    yield Finding("configuration", "ok", ", ".join([said, *sorted(elsewhere)]))


def project(situation: Situation) -> Iterator[Finding]:
    effective = load_effective(situation.flags, situation.environment)
    found = find_project(effective.config, situation.working_directory)
    if effective.config.paths.project_root is not None:
        yield Finding("project", "ok", f"{found.root} (by {effective.origin('paths.project_root')})")
    elif found.mark is not None:
        yield Finding("project", "ok", f"{found.root} (it has {found.mark})")
    else:
        message = f"{found.root}, the working directory: neither it nor one above it has .roomodes, .roo or .git"
        yield Finding("project", "note", message, "Start clients in a project, or give --project-root")


def global_directory(situation: Situation) -> Iterator[Finding]:
    directory = Path(situation.config.paths.global_config_dir)
    if not os.path.lexists(directory):
        yield Finding("global", "ok", f"{directory} is not there: you have no modes of your own")
    elif not directory.is_dir():
        yield Finding("global", "error", f"{directory} is no directory", "Move it away, or give --config-dir")
    elif not may(directory, os.R_OK | os.X_OK):
        yield Finding("global", "error", f"{directory} may not be read", f"chmod u+rx {directory}")
    else:
        yield Finding("global", "ok", f"{directory}")


def storage(situation: Situation) -> Iterator[Finding]:
    persistence = situation.config.sessions.persistence
    directory = Path(persistence.storage_path)
    if not persistence.enabled:
        yield Finding("storage", "ok", "sessions are kept in memory only, as configured")
        return
    trouble = why_not_writable(directory) or why_no_good_file(directory / STORE_FILE)
    if trouble is not None:
        fix = "Mend that, or set sessions.persistence.storage_path (ROO_STORAGE_PATH) to another directory"
        yield Finding("storage", "error", f"Sessions cannot be kept: {trouble}", fix)
    else:
        yield Finding("storage", "ok", f"{directory}" + ("" if directory.is_dir() else " (made when it is needed)"))


def log(situation: Situation) -> Iterator[Finding]:
    name = situation.config.logging.file
    if name is None:
        yield Finding("log", "ok", "stderr only, as configured")
        return
    path = Path(name)
    trouble = why_not_writable(path.parent) or why_no_good_file(path)
    if trouble is not None:
        fix = "Mend that, or set logging.file (--log-file) to another file"
        yield Finding("log", "warning", f"The log file cannot be written: {trouble}", fix)
    else:
        yield Finding("log", "ok", f"{path}" + ("" if path.exists() else " (made with its first line)"))


def disk(situation: Situation) -> Iterator[Finding]:
    config = situation.config
    wanted = config.sessions.persistence.storage_path if config.sessions.persistence.enabled else config.logging.file
    if wanted is None:
        return  # nothing is written at all
    there = nearest(Path(wanted))
    free = shutil.disk_usage(there).free
    if free < LITTLE_SPACE:
        message = f"only {free / 1024**2:.0f} MiB are free where {there} is"
        yield Finding("disk", "warning", message, "Make room: a full disk keeps tasks from being saved")
    else:
        yield Finding("disk", "ok", f"{free / 1024**3:,.1f} GiB free")
