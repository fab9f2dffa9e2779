"""Configuration files, made from the settings that there are and then damaged."""

from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any, Final

import msgspec
from fuzz_damage import damaged_bytes
from fuzz_ground import SECRET

from modes_actor.config import Config, ConfigError, Flags, load_config
from modes_actor.config.commented import commented_defaults
from modes_actor.config.settings import SETTINGS

_VALUES: Final[tuple[Any, ...]] = (
    *(None, True, False, 0, -1, 1, 1.5, 1e300, 2**70, [], {}, [1], {"a": 1}, ["x"]),
    *("", "x", "DEBUG", "json", "%(message)s", "%(nope)s", "%", "~", "~nobody/x", "/", "\x00", "a" * 5000, "é"),
    *("${FUZZ_SECRET}", "${NOPE}", "${NOPE:-7}", "${", "${}", "$HOME", "true", "12", "nan", "1e999"),
)
_ODD_NAMES: Final = ("", "timeoot", "server", "SERVER", "sessions", "timeout", "x.y", "__class__", "é", "limits ")


class ConfigTrial:
    """Texts of configurations, and the judgement on each."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / "config.json"
        self._environment = {"HOME": str(directory), "FUZZ_SECRET": SECRET}

    def texts(self, rng: Random) -> Iterator[tuple[str, str]]:
        """Without end: what kind each is, and the text."""
        defaults = commented_defaults()
        while True:
            if rng.random() < 0.4:
                yield "bytes", damaged_bytes(rng, defaults)
                continue
            text = msgspec.json.encode(_made(rng)).decode(errors="replace")
            yield ("values", text) if rng.random() < 0.7 else ("damaged values", damaged_bytes(rng, text))

    def judged(self, text: str) -> str | None:
        """What is wrong with how it is read, if anything is."""
        self._path.write_bytes(text.encode(errors="surrogatepass"))
        try:
            config = load_config(Flags(config=str(self._path)), self._environment)
        except ConfigError as error:
            said = str(error)
            if not said.strip() or "Traceback" in said:
                return f"a ConfigError that says {said!r}"
            return f"a ConfigError tells a secret: {said}" if SECRET in said else None
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        try:
            msgspec.convert(msgspec.to_builtins(config), Config)
        except msgspec.ValidationError as error:
            return f"a Config that is none: {error}"
        return None


def _made(rng: Random) -> dict[str, Any]:
    """An object with some settings, right or wrong, and some members that mean nothing."""
    made: dict[str, Any] = {}
    for key in rng.sample(list(SETTINGS), rng.randrange(1, 5)):
        *sections, name = key.split(".")
        section = made
        for each in sections:
            inner = section.setdefault(each, {})
            section = inner if isinstance(inner, dict) else {}
        section[name] = rng.choice(_VALUES)
        if rng.random() < 0.15:
            section[rng.choice(_ODD_NAMES)] = rng.choice(_VALUES)
    return made
