"""The configuration: what can be set, and who says so: flags over environment over file over defaults."""

from modes_actor.config.load import Effective, load_config, load_effective
from modes_actor.config.model import (
    Config,
    ConfigError,
    Flags,
    LimitsSection,
    LoggingSection,
    PathsSection,
    PersistenceSection,
    ServerSection,
    SessionsSection,
)
from modes_actor.config.project import FoundProject, current_directory, find_project, home_directory, project_root

__all__ = [
    "Config",
    "ConfigError",
    "Effective",
    "Flags",
    "FoundProject",
    "LimitsSection",
    "LoggingSection",
    "PathsSection",
    "PersistenceSection",
    "ServerSection",
    "SessionsSection",
    "current_directory",
    "find_project",
    "home_directory",
    "load_config",
    "load_effective",
    "project_root",
]
