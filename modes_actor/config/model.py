"""What can be configured, as Structs with their defaults; and what the command line may say of it."""

from typing import Annotated, Literal

from msgspec import Meta, Struct, field

LogLevelName = Literal["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"]
JSON_LOG = "json"
"""The log format that is one JSON object a line."""


class ConfigError(Exception):
    """The configuration cannot be used. Each line of the message says what, where, and what was expected."""


class ServerSection(Struct):
    """How the server introduces itself."""

    name: Annotated[str, Meta(min_length=1)] = "roo-modes-server"
    version: Annotated[str, Meta(min_length=1)] = "1.0.0"
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
    file: str | None = "~/.roo-code/mcp_modes_server.log"
    format: str = "%(asctime)s - %(name)s - %(levelname)s - %(message)s"


class LimitsSection(Struct):
    max_line_bytes: Annotated[int, Meta(ge=1)] = 16 * 1024 * 1024


class Config(Struct):
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
