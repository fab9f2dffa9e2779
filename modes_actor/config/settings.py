"""The table of all settings: what each is for, and by which other names it can be set."""

from typing import Any, Final

from msgspec import Struct

from modes_actor.config.model import Config


class Setting(Struct, frozen=True):
    key: str
    """Sections and name, with dots between them: `sessions.timeout`."""
    variable: str
    """Of the environment."""
    says: str
    flag: str | None = None
    is_path: bool = False

    @property
    def path(self) -> tuple[str, ...]:
        return tuple(self.key.split("."))


CONFIG_VARIABLE: Final = "ROO_CONFIG"
"""Names the file, as `--config` does."""
FILE_NAME: Final = "mcp_modes_server_config.json"
"""In the global directory: read if it is there and no other file is named."""

SETTINGS: Final = {
    setting.key: setting
    for setting in (
        Setting("server.name", "ROO_SERVER_NAME", "the name that clients are told"),
        Setting("server.version", "ROO_SERVER_VERSION", "the version that clients are told"),
        Setting("server.description", "ROO_SERVER_DESCRIPTION", "a sentence for clients that show one"),
        Setting(
            "paths.project_root",
            "ROO_PROJECT_ROOT",
            "the project whose modes count; null: the client's root, else the nearest directory upwards with "
            ".roomodes, .roo or .git",
            flag="--project-root",
            is_path=True,
        ),
        Setting(
            "paths.global_config_dir",
            "ROO_CONFIG_DIR",
            "where your own modes are",
            flag="--config-dir",
            is_path=True,
        ),
        Setting("sessions.timeout", "ROO_SESSION_TIMEOUT", "seconds after its last use that a session lives"),
        Setting("sessions.cleanup_interval", "ROO_CLEANUP_INTERVAL", "seconds between two removals of ended sessions"),
        Setting("sessions.persistence.enabled", "ROO_PERSISTENCE", "false: sessions end with the server"),
        Setting(
            "sessions.persistence.storage_path", "ROO_STORAGE_PATH", "the directory of the session store", is_path=True
        ),
        Setting(
            "logging.level",
            "ROO_LOG_LEVEL",
            "DEBUG, INFO, WARNING, ERROR or CRITICAL",
            flag="--log-level",
        ),
        Setting(
            "logging.file",
            "ROO_LOG_FILE",
            "where the log is kept besides stderr, made with the first line; null: nowhere",
            flag="--log-file",
            is_path=True,
        ),
        Setting(
            "logging.format",
            "ROO_LOG_FORMAT",
            'a format of Python\'s logging, or "json" for one object a line',
            flag="--log-format",
        ),
        Setting("limits.max_line_bytes", "ROO_MAX_LINE_BYTES", "a longer message is refused"),
    )
}


def value_of(config: Config, key: str) -> Any:
    value: Any = config
    for name in key.split("."):
        value = getattr(value, name)
    return value


def set_value(config: Config, key: str, value: object) -> None:
    *sections, name = key.split(".")
    section: Any = config
    for each in sections:
        section = getattr(section, each)
    setattr(section, name, value)
