"""Which room may import from which: the table of the house, held against the imports."""

import ast
import math
from pathlib import Path

import pytest

import modes_actor

PACKAGE = Path(modes_actor.__file__).parent

LAYERS = {
    "__main__": 11,
    "cli": 10,
    "supervising": 9,
    "health": 8,
    "embedding": 8,  # the server, and what it serves, for other programs
    "server": 7,
    "client": 7,
    "surface": 6,
    "sessions": 4,
    "watch": 4,
    "store": 3,
    "modes": 3,
    "config": 2,
    "actor": 2,
    "wire": 1,
    "jsonc": 1,
    "spelling": 1,
    "": 0,  # modes_actor itself: the version; the names it passes on load nothing
}

MODULES = sorted(PACKAGE.rglob("*.py"))


def room(module: str) -> str:
    """The room a dotted name belongs to: `modes_actor.wire.codec` is in `wire`."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 and parts[1] in LAYERS else ""


def own_name(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(path: Path) -> set[str]:
    """Every module of the package that a file imports, anywhere in it."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute, so that a door has one name"
            assert node.module is not None
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
    return {name for name in names if name.split(".")[0] == "modes_actor"}


@pytest.mark.parametrize("path", MODULES, ids=own_name)
def test_a_module_imports_only_from_its_own_room_or_a_lower_layer(path: Path) -> None:
    """Rooms of one layer do not know each other."""
    here = room(own_name(path))
    height = LAYERS[here] if path != PACKAGE / "__init__.py" else math.inf  # its names load when they are used
    wrong = {name for name in imported(path) if room(name) != here and LAYERS[room(name)] >= height}
    assert wrong == set()


def test_every_room_has_its_layer() -> None:
    """A new room must be given a place in the house."""
    rooms = {path.stem if path.is_file() else path.name for path in PACKAGE.iterdir() if path.name != "__pycache__"}
    assert rooms - {"__init__", "py"} <= set(LAYERS)


@pytest.mark.parametrize("path", sorted((PACKAGE / "wire").glob("*.py")), ids=own_name)
def test_the_wire_neither_waits_nor_opens_anything(path: Path) -> None:
    """No Trio, no I/O, no `async` in `wire/`."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    modules = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    modules |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert not {name.split(".")[0] for name in modules} & {"trio", "os", "io", "socket", "pathlib", "sqlite3"}
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.AsyncFunctionDef | ast.Await)]
    called = {ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    assert not called & {"open", "print", "input"}
