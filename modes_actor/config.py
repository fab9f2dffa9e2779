"""The configuration: Structs, and where their values come from (flags over environment over file over defaults)."""

import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal, get_args

import msgspec
from msgspec import Meta, Struct, field

LogLevelName = Literal["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"]


_PROJECT_MARKS = (".roomodes", ".roo", ".git")


class ConfigError(Exception):
    """The configuration cannot be used. The message is for a person: what, where, and what was expected."""


class ServerSection(Struct):
    """How the server introduces itself."""

    name: str = "roo-modes-server"
    version: str = "1.0.0"
    description: str | None = None


class PathsSection(Struct):
    project_root: str | None = None
    global_config_dir: str = "~/.roo-code"


class PersistenceSection(Struct):
    enabled: bool = True
    storage_path: str = "~/.roo-code/mcp_sessions"


class SessionsSection(Struct):
    """Seconds."""

    timeout: Annotated[float, Meta(gt=0)] = 3600
    cleanup_interval: Annotated[float, Meta(gt=0)] = 300
    persistence: PersistenceSection = field(default_factory=PersistenceSection)


class LoggingSection(Struct):
    level: LogLevelName = "INFO"


class LimitsSection(Struct):
    max_line_bytes: Annotated[int, Meta(ge=1)] = 16 * 1024 * 1024


class Config(Struct):
    """The file's sections. Members this version does not know are ignored: a file may serve several versions."""

    server: ServerSection = field(default_factory=ServerSection)
    paths: PathsSection = field(default_factory=PathsSection)
    sessions: SessionsSection = field(default_factory=SessionsSection)
    logging: LoggingSection = field(default_factory=LoggingSection)
    limits: LimitsSection = field(default_factory=LimitsSection)


class Flags(Struct, kw_only=True):
    """What the command line said; None where it said nothing."""

    project_root: str | None = None
    config: str | None = None
    config_dir: str | None = None
    log_level: str | None = None
    log_file: str | None = None
    log_format: str | None = None


def load_config(flags: Flags, environment: Mapping[str, str]) -> Config:
    """The configuration in effect. Raises `ConfigError` with one sentence."""
    config = _read(Path(flags.config).expanduser()) if flags.config is not None else Config()
    if root := flags.project_root or environment.get("ROO_PROJECT_ROOT"):
        config.paths.project_root = root
    if level := flags.log_level or environment.get("ROO_LOG_LEVEL"):
        where = "--log-level" if flags.log_level else "ROO_LOG_LEVEL"
        config.logging.level = _level(level, where)
    if config_dir := environment.get("ROO_CONFIG_DIR"):
        config.paths.global_config_dir = config_dir
    if timeout := environment.get("ROO_SESSION_TIMEOUT"):
        config.sessions.timeout = _seconds(timeout, "ROO_SESSION_TIMEOUT")
    if config.paths.project_root is not None:
        config.paths.project_root = _directory(config.paths.project_root)
    paths, persistence = config.paths, config.sessions.persistence
    paths.global_config_dir = _expanded(paths.global_config_dir, "paths.global_config_dir")
    if persistence.enabled:
        persistence.storage_path = _expanded(persistence.storage_path, "sessions.persistence.storage_path")
    return config


def home_directory() -> Path:
    """Where the person's own files are; a path that leads nowhere if nobody knows."""
    return Path(os.path.expanduser("~"))  # `Path.home` would raise


def project_root(config: Config, working_directory: Path) -> Path:
    """The configured root, else the nearest directory upwards that looks like a project, else where we are."""
    if config.paths.project_root is not None:
        return Path(config.paths.project_root)
    for directory in (working_directory, *working_directory.parents):
        marks = [mark for mark in _PROJECT_MARKS if (directory / mark).exists()]
        if marks and not (marks == [".roo"] and directory == home_directory()):  # that one holds a person's own rules
            return directory
    return working_directory


def _read(path: Path) -> Config:
    try:
        text = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"cannot read the configuration file {path}: {error.strerror}") from error
    try:
        return msgspec.json.decode(text, type=Config)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"the configuration file {path} cannot be used: {error}") from error


def _level(level: str, where: str) -> LogLevelName:
    try:
        known: LogLevelName = msgspec.convert(level.upper(), LogLevelName)
    except msgspec.ValidationError as error:
        levels = ", ".join(get_args(LogLevelName))
        raise ConfigError(f"{where} is {level!r}, but must be one of {levels}") from error
    return known


def _expanded(path: str, key: str) -> str:
    expanded = os.path.expanduser(path)
    if expanded.startswith("~"):
        raise ConfigError(f"{key} is {path}, but there is no home directory: set HOME, or configure another path")
    return expanded


def _seconds(text: str, where: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < math.inf:
        raise ConfigError(f"{where} is {text!r}, but must be a number of seconds above 0")
    return seconds


def _directory(path: str) -> str:
    directory = Path(path).expanduser()
    if not directory.is_dir():
        raise ConfigError(f"the project root {directory} is not a directory")
    return os.fspath(directory.resolve())
