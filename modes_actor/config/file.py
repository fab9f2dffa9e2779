"""The configuration file: JSON, comments and trailing commas allowed. Every member must mean something."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from modes_actor.config.load import Said
from modes_actor.config.model import ConfigError
from modes_actor.config.settings import SETTINGS
from modes_actor.jsonc import line_of, place_of, plain_json

_MEND: Final = "Mend it, or begin anew: `modes-actor config generate` prints a file that is right"


def read_file(path: Path) -> list[Said]:
    """What the file says, in its order. Raises `ConfigError` if it cannot be read as a whole."""
    try:
        text = path.read_bytes().decode()
    except OSError as error:
        raise ConfigError(f"{path}: the configuration file cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(
            f"{path}: the configuration file is not UTF-8 (byte {error.start}): save it as UTF-8"
        ) from None
    try:
        members = json.loads(plain_json(text), parse_constant=_refuse)
    except json.JSONDecodeError as error:
        raise ConfigError(f"{path}:{error.lineno}:{error.colno}: this is not JSON: {error.msg}. {_MEND}") from None
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path}: the configuration file is not JSON: {error}. {_MEND}") from None
    if not isinstance(members, dict):
        raise ConfigError(f'{path}:1: the configuration must be an object: {{"sessions": {{"timeout": 3600}}}}')
    said: list[Said] = []
    for path_in_file, value, problem in _members(members, ()):
        where = f"{path}:{line_of(text, place_of(text, path_in_file))}"
        said.append(Said(".".join(path_in_file), value, where, is_text=False, base=path.parent, problem=problem))
    return said


def _refuse(constant: str) -> None:
    raise ValueError(f"there is no {constant} in JSON")


def _members(members: dict[str, Any], above: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any, str | None]]:
    """Every member that should be a setting, sections taken apart: its path, its value, and why it means nothing."""
    for name, value in members.items():
        path = (*above, name)
        key = ".".join(path)
        if key in SETTINGS:
            yield path, value, None
        elif not any(known.startswith(f"{key}.") for known in SETTINGS):
            yield path, value, f"{_short(key)} is not a setting{_suggestion(path)}"
        elif isinstance(value, dict):
            yield from _members(value, path)
        else:
            yield path, value, f"{key} must be an object of settings, not {_short(repr(value))}"


def _suggestion(path: tuple[str, ...]) -> str:
    from modes_actor.spelling import closest

    sections = {".".join(setting.path[:depth]) for setting in SETTINGS.values() for depth in (1, 2)} - SETTINGS.keys()
    same_name = [key for key in SETTINGS if key.rpartition(".")[2] == path[-1]]
    meant = same_name[0] if len(same_name) == 1 else closest(".".join(path), [*SETTINGS, *sections])
    return f"; did you mean {meant}?" if meant else f"; there are {', '.join(SETTINGS)}"


def _short(text: str) -> str:
    return text if len(text) <= 100 else f"{text[:100]}…"
