"""From flags, environment and file to the configuration in effect, with the origin of each value.

Whatever cannot be used is named with its place and what was expected, all of it at once, as one `ConfigError`.
"""

import math
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Struct, field

from modes_actor.config.model import JSON_LOG, Config, ConfigError, Flags
from modes_actor.config.settings import CONFIG_VARIABLE, FILE_NAME, SETTINGS, Setting, set_value, value_of

DEFAULT: Final = "default"
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}|\$\{[^}]*\}?")


class Said(Struct, frozen=True):
    """A value that somebody gave, and where. Of flags and the environment it is still text."""

    key: str
    value: Any
    where: str
    is_text: bool = True
    base: Path | None = None
    """What a relative path is relative to; None: the working directory."""
    problem: str | None = None
    """Why it means nothing."""


class Effective(Struct):
    """The configuration in effect."""

    config: Config
    origins: dict[str, str] = field(default_factory=dict)
    """Of every key that is not at its default: a flag, a variable, or a file and line."""
    file: Path | None = None

    def origin(self, key: str) -> str:
        return self.origins.get(key, DEFAULT)


class _Unusable(Exception):
    """What is wrong with a value."""


def load_config(flags: Flags, environment: Mapping[str, str]) -> Config:
    """The configuration in effect. Raises `ConfigError`."""
    return load_effective(flags, environment).config


def load_effective(flags: Flags, environment: Mapping[str, str]) -> Effective:
    """The configuration in effect, and where it comes from. Raises `ConfigError`."""
    effective = Effective(Config(), file=_file(flags, environment))
    wrong: list[str] = []
    said: list[Said] = []
    if effective.file is not None:
        from modes_actor.config.file import read_file  # most people have none

        said += read_file(effective.file)
    said += _from_environment(environment)
    said += _from_flags(flags)
    last = {each.key: each for each in said}  # what is overruled does not matter, not even if it makes no sense
    for each in said:
        if each.problem is not None:
            wrong.append(f"{each.where}: {each.problem}")
        elif last[each.key] is each:
            _apply(each, effective, environment, wrong)
    for setting in SETTINGS.values():
        if setting.is_path and effective.origin(setting.key) == DEFAULT:
            _expand_default(setting, effective, wrong)
    if wrong:
        raise ConfigError("\n".join(wrong))
    return effective


def _file(flags: Flags, environment: Mapping[str, str]) -> Path | None:
    """The file that is named, which must be there, or the one in the global directory if it is there."""
    named = flags.config or environment.get(CONFIG_VARIABLE)
    if named:
        where = "--config" if flags.config else CONFIG_VARIABLE
        try:
            return Path(_home(_with_variables(named, environment)))
        except _Unusable as why:
            raise ConfigError(f"{where} is '{named}', but {why}") from None
    directory = flags.config_dir or environment.get(SETTINGS["paths.global_config_dir"].variable)
    try:
        directory = _home(_with_variables(directory or Config().paths.global_config_dir, environment))
    except _Unusable:
        return None  # it is complained of where the directory itself is looked at
    path = Path(directory) / FILE_NAME
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise ConfigError(
            f"{path} cannot be looked at: {error.strerror}. Make its directory accessible, or choose another with "
            "--config-dir or ROO_CONFIG_DIR"
        ) from None
    return path


def _from_environment(environment: Mapping[str, str]) -> Iterator[Said]:
    """A variable that is empty counts as not set: that is how editors pass what nobody filled in."""
    for setting in SETTINGS.values():
        if value := environment.get(setting.variable):
            yield Said(setting.key, value, setting.variable)


def _from_flags(flags: Flags) -> Iterator[Said]:
    for setting in SETTINGS.values():
        if setting.flag is not None:
            value = getattr(flags, setting.flag.removeprefix("--").replace("-", "_"))
            if value is not None:
                yield Said(setting.key, value, setting.flag)


def _apply(said: Said, effective: Effective, environment: Mapping[str, str], wrong: list[str]) -> None:
    try:
        value = _value(said, environment)
    except _Unusable as why:
        name = said.where if said.is_text else f"{said.where}: {said.key}"
        wrong.append(f"{name} is {_shown(said.value)}, but {why}")
    else:
        set_value(effective.config, said.key, value)
        effective.origins[said.key] = said.where


def _value(said: Said, environment: Mapping[str, str]) -> Any:
    """What was meant. Raises `_Unusable`."""
    setting, value = SETTINGS[said.key], said.value
    if isinstance(value, str):
        value = _with_variables(value, environment)
        if said.key == "logging.level":
            value = value.upper()
    if said.is_text and value == "" and setting.is_path:
        value = None  # `--log-file ''`
    expected = type_of(said.key)
    try:
        value = msgspec.convert(value, expected, strict=not said.is_text)
    except msgspec.ValidationError:
        raise _Unusable(f"must be {expectation(expected)}") from None
    if isinstance(value, float) and not math.isfinite(value):
        raise _Unusable(f"must be {expectation(expected)}")
    if isinstance(value, str) and setting.is_path:
        value = _home(value)
        if said.base is not None:
            value = os.path.join(said.base, value)
    return _checked(said.key, value)


def _checked(key: str, value: Any) -> Any:
    if key == "paths.project_root" and value is not None:
        if not os.path.isdir(value):
            raise _Unusable("there is no such directory" if not os.path.exists(value) else "that is not a directory")
        return os.path.realpath(value)
    if key == "paths.global_config_dir" and os.path.exists(value) and not os.path.isdir(value):
        raise _Unusable("that is not a directory")
    if key == "logging.format" and value != JSON_LOG:
        import logging

        try:
            logging.Formatter(value).format(logging.makeLogRecord({}))
        except (ValueError, TypeError) as error:
            why = str(error).replace(value, "…")  # which may be what a variable holds
            raise _Unusable(f"it is no format of Python's logging ({why}), nor `{JSON_LOG}`") from None
    return value


def _expand_default(setting: Setting, effective: Effective, wrong: list[str]) -> None:
    value = value_of(effective.config, setting.key)
    if value is None:
        return
    try:
        set_value(effective.config, setting.key, _home(value))
    except _Unusable as why:
        if setting.key == "logging.file":
            effective.config.logging.file = None  # it was nobody's wish
        elif setting.key != "sessions.persistence.storage_path" or effective.config.sessions.persistence.enabled:
            wrong.append(f"{setting.key} is '{value}', but {why}")


def _home(path: str) -> str:
    expanded = os.path.expanduser(path)
    if expanded.startswith("~"):
        whose = path.split("/")[0]
        why = "there is no home directory: set HOME" if whose == "~" else f"nobody here has the home {whose}: mend it"
        raise _Unusable(f"{why}, or give another path")
    return expanded


def _with_variables(text: str, environment: Mapping[str, str]) -> str:
    """`${NAME}` and `${NAME:-what if there is none}`. Raises `_Unusable` for a variable that is not set."""

    def value(found: re.Match[str]) -> str:
        name, default = found[1], found[2]
        if name is None:
            raise _Unusable(f"`{found[0]}` names no variable: write ${{NAME}} or ${{NAME:-default}}")
        known = environment.get(name)
        if known is None and default is None:
            raise _Unusable(f"the variable {name} is not set (a client that knows it would have put its value here)")
        return known or default or ""

    return _VARIABLE.sub(value, text) if "${" in text else text


def type_of(key: str) -> Any:
    """The annotation of a setting."""
    annotation: Any = Config
    for name in key.split("."):
        annotation = get_type_hints(annotation, include_extras=True)[name]
    return annotation


def expectation(annotation: Any) -> str:
    """What a value must be, in words."""
    if get_origin(annotation) is Annotated:
        kind, meta = get_args(annotation)
        if meta.min_length is not None:
            return f"{expectation(kind)} that is not empty"
        if meta.gt is not None:
            return f"{expectation(kind)} above {meta.gt}"
        return f"{expectation(kind)}, at least {meta.ge}"
    if get_origin(annotation) is Literal:
        return f"one of {', '.join(get_args(annotation))}"
    names = {str: "text", bool: "true or false", float: "a number", int: "a whole number", type(None): "null"}
    return " or ".join(names[kind] for kind in get_args(annotation) or (annotation,))


def _shown(value: Any) -> str:
    text = repr(value) if isinstance(value, str) else msgspec.json.encode(value).decode(errors="replace")
    return text if len(text) <= 100 else f"{text[:100]}…"
