"""Rules of the house that only its source can show: what is written where, and what is written nowhere else."""

import ast
import importlib
import pkgutil
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import modes_actor
from modes_actor.wire.errors import RequestError
from modes_actor.wire.versions import Era
from tests.process import ROOT

PACKAGE = Path(modes_actor.__file__).parent
TREES = {
    path.relative_to(PACKAGE).as_posix(): ast.parse(path.read_text(encoding="utf-8"))
    for path in sorted(PACKAGE.rglob("*.py"))
}
LONGEST_MODULE = 500
"""Lines; and of a hundred modules, at most five have more than 400."""

NO_SERVER = ("client/", "supervising/", "health.py")
"""These talk to a server, or stand before one, and are none."""
ROOMS_WITH_ERRORS = ("wire", "actor", "modes", "store", "sessions", "surface")


def where(kind: type[ast.AST], name: str) -> set[str]:
    """The server's modules that have such a node of that name."""
    return {
        module
        for module, tree in TREES.items()
        if not module.startswith(NO_SERVER)
        and any(_name(node) == name for node in ast.walk(tree) if type(node) is kind)
    }


def _name(node: ast.AST) -> str | None:
    match node:
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
            return name
        case ast.Name(id=name) | ast.Attribute(attr=name) | ast.alias(name=name):
            return name
    return None


def imports(tree: ast.Module) -> Iterator[str]:
    """The packages of which a module imports something, wherever it does."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield (node.module or "").partition(".")[0]


def texts(tree: ast.Module) -> Iterator[str]:
    """Every text of a module that is more than a remark."""
    remarks = {
        id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in remarks:
            yield node.value


def test_what_versions_there_are_is_written_in_one_place() -> None:
    """Their names, and so all that differs between them by name."""
    named = {
        module
        for module, tree in TREES.items()
        if any(re.search(r"\b20\d\d-\d\d-\d\d\b", text) for text in texts(tree))
    }
    constants = {
        module
        for module, tree in TREES.items()
        for node in ast.walk(tree)
        if re.fullmatch(r"V20\d\d_\d\d_\d\d", _name(node) or "")
    }
    assert (named, constants) == ({"wire/versions.py"}, {"wire/versions.py"})


def test_no_handler_asks_for_the_version() -> None:
    """Nor for the era; but whether there is a handshake client to ask where it works is a question about eras."""
    asking = where(ast.Name, "Era") | where(ast.Attribute, "era")
    above_the_actor = {module for module in asking if not module.startswith(("wire/", "actor/", "cli/"))}
    assert above_the_actor == {"surface/roots.py"}
    versions = where(ast.Attribute, "version_in_force") | {
        module
        for module, tree in TREES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr == "version" and "context" in ast.unparse(node.value)
    }
    assert {module for module in versions if module.startswith("surface/")} == set()


def test_exceptions_become_answers_in_one_place() -> None:
    """By one table; an array that would be too long is an error without an exception."""
    assert where(ast.Call, "error_object") == {"actor/processor.py"}
    assert where(ast.Call, "ErrorResponse") == {"actor/processor.py", "actor/replies.py"}
    assert where(ast.Call, "tool_error") == {"actor/processor.py"}


def test_only_the_writer_writes_to_the_client() -> None:
    """Itself, or by the short cut that it gives to its queue; nobody else has a stream, or claims the process's own."""
    assert where(ast.Call, "send_all") == {"actor/writer.py"}
    assert where(ast.Call, "write_whole") == {"actor/outgoing.py"}
    assert where(ast.Call, "claim_stdio") == {"cli/serve.py", "cli/supervise.py"}


def test_decisions_are_made_in_one_place() -> None:
    """Whoever says yes or no has asked there."""
    made = where(ast.Call, "Allowed") | where(ast.Call, "Denied")
    assert made == {"modes/decisions.py"}


def test_nothing_in_the_modes_room_waits() -> None:
    """No `async`, no `await`, no Trio, no sleep."""
    waiting = (ast.AsyncFunctionDef, ast.AsyncFor, ast.AsyncWith, ast.Await)
    modes = {module: tree for module, tree in TREES.items() if module.startswith("modes/")}
    assert len(modes) > 10
    waits = {module for module, tree in modes.items() if any(isinstance(node, waiting) for node in ast.walk(tree))}
    assert (waits, (where(ast.alias, "trio") | where(ast.Call, "sleep")) & modes.keys()) == (set(), set())


def test_a_module_is_read_in_one_sitting() -> None:
    """What grows beyond that is two things by then."""
    lengths = {module: len((PACKAGE / module).read_text(encoding="utf-8").splitlines()) for module in TREES}
    long = {module: length for module, length in lengths.items() if length > 400}
    assert max(lengths.values()) <= LONGEST_MODULE, long
    assert len(long) <= 0.05 * len(lengths), long


def test_no_error_has_a_code_that_the_stateless_era_forbids() -> None:
    """JSON-RPC's own five, and the two that the specification gave a meaning; none of the handshake era's."""
    for room in ROOMS_WITH_ERRORS:
        for found in pkgutil.walk_packages([str(PACKAGE / room)], f"modes_actor.{room}."):
            importlib.import_module(found.name)
    codes = {
        int(kind.__new__(kind).code_in(Era.STATELESS)) for kind in _below(RequestError) if getattr(kind, "code", None)
    }
    assert codes == {-32700, -32600, -32601, -32602, -32603, -32021, -32022}


def _below(kind: type[RequestError]) -> Iterator[type[RequestError]]:
    for below in kind.__subclasses__():
        yield below
        yield from _below(below)


def test_the_dependencies_are_those_that_are_told_of() -> None:
    """Trio and msgspec first, each with its reason in the README; no stubs that hide Trio's own types, no asyncio."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    runtime, development = (
        {re.split(r"[^\w-]", entry)[0] for entry in entries}
        for entries in (project["dependencies"], project["optional-dependencies"]["dev"])
    )
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    section = readme[readme.index("## Dependencies") : readme.index("## Working on it")].lower()
    assert {"trio", "msgspec"} <= runtime
    assert {name for name in runtime if name not in section} == set()
    assert "trio-typing" in section
    assert "trio-typing" not in runtime | development
    imported = {module: set(imports(tree)) for module, tree in TREES.items()}
    assert {module for module, names in imported.items() if "asyncio" in names} == set()


def test_the_distribution_has_its_name() -> None:
    """What is installed, and what is imported."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    packages = settings["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    assert (settings["project"]["name"], packages) == ("modes-actor", ["modes_actor"])


def test_what_old_bugfix_releases_of_python_get_wrong_is_not_used() -> None:
    """Before 3.11.4, possessive quantifiers of groups do not match, and what is raised in `except*` becomes a group."""
    scripts = {path.name: ast.parse(path.read_text(encoding="utf-8")) for path in (ROOT / "scripts").glob("*.py")}
    nodes = [node for tree in (*TREES.values(), *scripts.values()) for node in ast.walk(tree)]
    raised = [
        node
        for statement in nodes
        if isinstance(statement, ast.TryStar)
        for handler in statement.handlers
        for node in ast.walk(handler)
        if isinstance(node, ast.Raise)
    ]
    patterns = [
        text.value
        for node in nodes
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "re.compile"
        for text in ast.walk(node.args[0])
        if isinstance(text, ast.Constant) and isinstance(text.value, str)
    ]
    outside_of_sets = [re.sub(r"\[\^?\]?(?:\\.|[^\]])*\]", "S", pattern) for pattern in patterns]
    assert len(patterns) > 20
    assert [each for each in outside_of_sets if re.search(r"(?<!\\)[*+?}]\+|\(\?>", each)] == []
    assert raised == []
