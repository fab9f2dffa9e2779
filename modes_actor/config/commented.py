"""The defaults as a configuration file with a comment on each setting, for a person to change."""

import textwrap

import msgspec

from modes_actor.config.model import Config
from modes_actor.config.settings import SETTINGS, Setting, value_of

_HEADING = """\
// What can be set for modes-actor; all of it is at its default here. Flags go before the environment, and that before
// this file. In texts, ${NAME} and ${NAME:-default} are replaced from the environment; ~ is the home directory, and a
// path that is not absolute counts from the directory of this file.
"""


def commented_defaults() -> str:
    """JSON with comments, ending with a newline. It loads as the defaults."""
    return f"{_HEADING}{_section((), '')}\n"


def _section(path: tuple[str, ...], indent: str) -> str:
    inner = f"{indent}  "
    below = [setting for setting in SETTINGS.values() if setting.path[: len(path)] == path]
    members = []
    for name in dict.fromkeys(setting.path[len(path)] for setting in below):
        here = (*path, name)
        setting = SETTINGS.get(".".join(here))
        written = _section(here, inner) if setting is None else _value(setting)
        comment = "" if setting is None else _comment(f"{setting.says} ({_names(setting)})", inner)
        members.append(f'{comment}{inner}"{name}": {written}')
    return "{\n" + ",\n".join(members) + f"\n{indent}}}"


def _comment(text: str, indent: str) -> str:
    return "".join(f"{indent}// {line}\n" for line in textwrap.wrap(text, 110 - len(indent)))


def _value(setting: Setting) -> str:
    return msgspec.json.encode(value_of(Config(), setting.key)).decode()


def _names(setting: Setting) -> str:
    return " or ".join(filter(None, (setting.flag, setting.variable)))
