"""Damage to mode files: any, to their text; and to what restricts a mode, of the kind that leaves no other meaning."""

import json
from pathlib import Path
from random import Random
from typing import Any, Final

import yaml
from fuzz_permissions import MODES

CORPUS: Final = Path(__file__).resolve().parents[2] / "shared" / "corpus" / "roomodes"
LARGEST: Final = 60_000

_SAMPLES: Final = (
    MODES,
    r"""
customModes:
  - slug: tight
    name: Tight
    roleDefinition: You are careful.
    groups:
      - [read, {fileRegex: '^docs/', activeHours: "09:00-17:00", days: [mon, fri], timezone: UTC}]
      - - edit
        - fileRegex: \.md$
          description: Markdown only
      - mcp
    mcpRestrictions:
      allowedServers: [docs-*]
      disallowedServers: [web]
      allowedTools: [{serverName: "docs-*", toolName: read*}]
      disallowedTools: [mcp__github__*]
  - slug: tighter
    name: Tighter
    extends: tight
    groups: [read, edit, command]
""",
    """{"customModes": [{
  "slug": "j", "name": "J", "roleDefinition": "r", "groups": ["read", ["edit", {"fileRegex": "x"}]]
}]}""",
)

_GARBAGE: Final[tuple[Any, ...]] = (5, 1.5, True, [[]], {"x": 1}, [None], [5], [{"x": 1}])
_RESTRICTING: Final = {
    "fileRegex": ("(", "[", "*", "a{2,1}", "(?<n", None, *_GARBAGE),
    "activeHours": ("25:00-26:00", "noon", "09:00", "09:00-09:00", "", None, *_GARBAGE),
    "days": (["noday"], [], "mon", None, *_GARBAGE),
    "timezone": ("Nowhere/Town", "../etc", "", None, *_GARBAGE),
    "mcpRestrictions": ("none", [], None, 5, True, [["x"]]),
    "allowedServers": ("github", None, *_GARBAGE),
    "disallowedServers": ("github", None, *_GARBAGE),
    "allowedTools": ("x", ["not_qualified"], None, *_GARBAGE),
    "disallowedTools": ("x", ["not_qualified"], None, *_GARBAGE),
    "extends": ("nobody-there", "", "Bad Slug!", None, *_GARBAGE),
    "groups": ("read", None, *_GARBAGE),
}
"""What restricts, and values in its place that nobody can understand (or that understood allow nothing)."""
_NO_OPTIONS: Final[tuple[Any, ...]] = (5, 1.5, True, "x", [], ["x"], [[]], None)
"""In the place of all the options of a group that has some."""


def files_of_modes() -> list[str]:
    texts = list(_SAMPLES)
    for path in sorted(CORPUS.glob("*.roomodes")):
        text = path.read_text(encoding="utf-8", errors="replace")
        try:
            is_good = isinstance(yaml.safe_load(text), dict)
        except yaml.YAMLError:
            continue
        if is_good and len(text) < LARGEST:
            texts.append(text)
    return texts


def damaged_bytes(rng: Random, text: str) -> str:
    """Any damage."""
    data = bytearray(text.encode())
    for _ in range(rng.choice((1, 1, 1, 3, 10))):
        at = rng.randrange(len(data) + 1)
        match rng.randrange(8):
            case 0:
                del data[at : at + rng.choice((1, 2, 50, len(data)))]
            case 1:
                data[at:at] = rng.choice(_PIECES)
            case 2 if at < len(data):
                data[at] ^= 1 << rng.randrange(8)
            case 3:
                other = rng.randrange(len(data) + 1)
                data[at:at] = data[other : other + rng.choice((1, 20, 300))]
            case 4:
                data[at:at] = rng.choice((b"[", b"{a: ", b"- ", b"{", b"(")) * rng.choice((10, 90, 3000))
            case 5:
                data[at:at] = b"\n" + b" " * rng.randrange(12)
            case 6:
                lines = bytes(data).split(b"\n")
                rng.shuffle(lines)
                data[:] = b"\n".join(lines)
            case _:
                data[at:at] = bytes(rng.randrange(256) for _ in range(rng.randrange(1, 9)))
        if not data:
            break
    return bytes(data).decode(errors=rng.choice(("replace", "ignore")))


_PIECES: Final = (
    *(
        b":",
        b"- ",
        b"&a ",
        b"*a ",
        b"? ",
        b"|\n",
        b">-\n",
        b"!!python/object:os.system ",
        b"%YAML 1.1\n",
        b"---\n",
        b"...\n",
    ),
    *(
        b"\t",
        b"\r",
        b"\x00",
        b"\xef\xbb\xbf",
        "\u2028".encode(),
        "“".encode(),
        "\u00a0".encode(),
        b"'",
        b'"',
        b"#",
        b"\\",
    ),
    *(b"slug: x\n", b"fileRegex: (a+)+$\n", b"customModes:\n", b"<<: *a\n", b"&x [*x]", b"9" * 400, b"1e999", b".nan"),
)


def damaged_restriction(rng: Random, tree: dict[str, Any]) -> tuple[str, str]:
    """A file as JSON, as it was and with something wrong in a key that restricts."""
    intact = _pairs(tree)
    damaged = _pairs(tree)
    spots = [(members, at) for members, at in _spots(damaged) if members[at][0] in _RESTRICTING]
    if not spots:
        return _text(intact), _text(damaged)
    spot = rng.choice([*spots, *_groups_with_options(spots)])
    if isinstance(spot, list):
        spot[1] = _pairs(rng.choice(_NO_OPTIONS))
        return _text(intact), _text(damaged)
    members, at = spot
    key, value = members[at]
    match rng.randrange(3):
        case 0:
            members[at] = (key, _pairs(rng.choice(_RESTRICTING[key])))
        case 1:
            members[at] = (_misspelt(rng, key), value)
        case _:
            again = (key, _pairs(rng.choice(_RESTRICTING[key])))
            members.insert(rng.choice((at, at + 1, len(members))), again)
    return _text(intact), _text(damaged)


class _Members(list[tuple[str, Any]]):
    """A mapping in which a key may be there twice."""


def _pairs(value: Any) -> Any:
    if isinstance(value, dict):
        return _Members((str(key), _pairs(each)) for key, each in value.items())
    return [_pairs(each) for each in value] if isinstance(value, list) else value


def _spots(value: Any) -> list[tuple[_Members, int]]:
    if isinstance(value, _Members):
        own = [(value, at) for at in range(len(value))]
        return own + [spot for _, each in value for spot in _spots(each)]
    return [spot for each in value for spot in _spots(each)] if isinstance(value, list) else []


def _groups_with_options(spots: list[tuple[_Members, int]]) -> list[list[Any]]:
    """Each as its name and its options."""
    listed = [value for members, at in spots for key, value in (members[at],) if key == "groups"]
    groups = [each for groups in listed if isinstance(groups, list) for each in groups]
    return [each for each in groups if isinstance(each, list) and len(each) == 2 and isinstance(each[1], _Members)]


def _text(value: Any, indent: int = 0) -> str:
    margin = "\n" + "  " * indent
    if isinstance(value, _Members):
        inner = [f"{margin}  {json.dumps(key, ensure_ascii=False)}: {_text(each, indent + 1)}" for key, each in value]
        return "{" + ",".join(inner) + margin + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_text(each, indent + 1) for each in value) + "]"
    return json.dumps(value, ensure_ascii=False, default=str)


def _misspelt(rng: Random, key: str) -> str:
    """As a person would: a letter missing, twice, or in the place of its neighbour."""
    at = rng.randrange(1, len(key) - 1)
    swapped = key[:at] + key[at + 1] + key[at] + key[at + 2 :]
    found = rng.choice((key[:at] + key[at + 1 :], key[:at] + key[at] + key[at:], swapped))
    return found if found != key else f"{key}s"
