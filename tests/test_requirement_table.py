"""tests/REQUIREMENTS.md is complete and true: every promise has its row, and every proof that a row names is there.

That a proof would fail without what it proves, no test can tell: whoever adds a row breaks the behaviour and looks.
"""

import ast
import re
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple, TypeGuard

import pytest

from tests.process import ROOT

README: Final = (ROOT / "README.md").read_text(encoding="utf-8")
ARCHITECTURE: Final = ROOT.parent / "shared" / "ARCHITECTURE.md"
"""The plan of the house, which is not part of a clone."""

LATER: Final = {"asking 4", "toolset 3"}
"""The only rows that may have no proof, because what they are about is not built."""
HEADINGS: Final = {"label", "---"}
ROWS_OF: Final = {
    "The way of one message": "way",
    "Rooms and doors": "room",
    "Who is asking": "asking",
    "Toolsets": "toolset",
    "Protocol: two eras, one core": "era",
    "Errors": "error",
    "Decisions where the seeds disagree": "decision",
    "Promises the house keeps": "promise",
}
"""The sections of the architecture, and what the labels of their rows begin with."""
RUN_BY_TESTS: Final = {
    name
    for test in (ROOT / "tests").glob("test_*.py")
    for name in re.findall(r"\brun_script\(\s*\"(\w+\.py)\"", test.read_text(encoding="utf-8"))
}
"""Scripts that some test starts, so that they can never rot."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


class Row(NamedTuple):
    section: str
    label: str
    promise: str
    proof: str

    def proofs(self) -> list[str]:
        """As they are named: `tests/FILE.py::NAME` or `scripts/NAME.py`."""
        return re.findall(r"`([^`]+)`", self.proof)


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def rows() -> list[Row]:
    found, section = [], ""
    for line in (ROOT / "tests" / "REQUIREMENTS.md").read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            section = line[3:]
        elif line.startswith("|") and cells(line)[0] not in HEADINGS:
            found.append(Row(section, *cells(line)))
    return found


ROWS: Final = rows()


def labels(kind: str) -> list[int]:
    """The numbers of the labels of that kind, each once: parts of one (`promise 1a`, `promise 1b`) count as one."""
    found = (re.fullmatch(rf"{kind} (\d+)[a-z]?", row.label) for row in ROWS)
    return list(dict.fromkeys(int(match[1]) for match in found if match))


def promised(kind: str) -> list[str]:
    return [row.promise for row in ROWS if re.fullmatch(rf"{kind} \d+", row.label)]


def readme_table(heading: str) -> list[list[str]]:
    """The rows of the README's table with that heading."""
    return [cells(line) for line in README[README.index(heading) :].split("\n\n")[0].splitlines()[2:]]


# Complete.


def test_every_promise_of_the_readme_has_its_row() -> None:
    """In its own words, and no other has one."""
    assert sorted(promised("readme promise")) == sorted(row[0] for row in readme_table("| promise | proof |"))


def test_every_error_of_the_readme_has_its_row() -> None:
    """In its own words, and no other has one."""
    assert sorted(promised("readme error")) == sorted(row[0] for row in readme_table("| what is wrong | answer |"))


@pytest.mark.parametrize(
    ("kind", "heading"), [("command", "| command | what it does |"), ("script", "| script | what it does |")]
)
def test_every_command_and_script_of_the_readme_has_its_row(kind: str, heading: str) -> None:
    """As it is written there, and no other has one."""
    assert promised(f"readme {kind}") == [row[0] for row in readme_table(heading)]


def test_every_invariant_of_the_readme_has_its_row() -> None:
    """In its own words, and no other has one."""
    invariants = re.findall(r"^\*Architecture Invariant:\* (.*?)\n\n", README, re.DOTALL | re.MULTILINE)
    assert len(invariants) >= 8
    assert sorted(promised("invariant")) == sorted(" ".join(invariant.split()) for invariant in invariants)


def test_every_file_that_the_readme_calls_a_proof_is_one_here() -> None:
    """In the row of the same promise."""
    proofs = {row.promise: {proof.split("::")[0] for proof in row.proofs()} for row in ROWS}
    missing = {
        promise: set(re.findall(r"`([^`]+)`", files)) - proofs.get(promise, set())
        for promise, files in readme_table("| promise | proof |")
    }
    assert {promise: files for promise, files in missing.items() if files} == {}


@pytest.mark.skipif(not ARCHITECTURE.is_file(), reason="the plan of the house lies beside a clone, not in it")
@pytest.mark.parametrize(
    ("kind", "heading", "one"),
    [
        ("promise", "## Promises the house keeps", r"^\d+\. "),
        ("error", "## Errors", r"^\|(?! situation|---)"),
        ("decision", "## Decisions where the seeds disagree", r"^- "),
        ("era", "## Protocol: two eras, one core", r"^- "),
    ],
)
def test_every_row_of_the_architecture_has_its_label(kind: str, heading: str, one: str) -> None:
    """As many as there are, numbered in their order."""
    _, _, rest = ARCHITECTURE.read_text(encoding="utf-8").partition(f"{heading}\n")
    there = len(re.findall(one, rest.split("\n## ")[0], re.MULTILINE))
    assert there > 0
    assert labels(kind) == list(range(1, there + 1))


@pytest.mark.skipif(not ARCHITECTURE.is_file(), reason="the plan of the house lies beside a clone, not in it")
def test_every_section_of_the_architecture_has_rows() -> None:
    """Of prose nobody can count what it promises; but none of it is passed by."""
    sections = re.findall(r"^## (.*)$", ARCHITECTURE.read_text(encoding="utf-8"), re.MULTILINE)
    assert sections == list(ROWS_OF)
    assert [section for section, kind in ROWS_OF.items() if not labels(kind)] == []


def test_no_label_is_there_twice() -> None:
    """Whoever refers to one means one row."""
    assert [label for label, times in Counter(row.label for row in ROWS).items() if times > 1] == []


# True.


def test_only_what_is_not_built_has_no_proof() -> None:
    """And then a reason; everything else has a proof and nothing besides."""
    later = {row.label for row in ROWS if row.proof.startswith("later: ")}
    wordy = {row.label for row in ROWS if row.label not in later and re.sub(r"`[^`]+`", "", row.proof).strip()}
    without = {row.label for row in ROWS if row.label not in later and not row.proofs()}
    assert (later, wordy, without) == (LATER, set(), set())


@pytest.mark.parametrize("proof", sorted({proof for row in ROWS for proof in row.proofs()}))
def test_a_proof_is_there_and_is_run(proof: str) -> None:
    """A test that no longer exists, or that is always left out, proves nothing."""
    file, separator, name = proof.partition("::")
    assert re.fullmatch(r"tests/test_\w+\.py" if separator else r"scripts/\w+\.py", file)
    assert (ROOT / file).is_file()
    if separator:
        module = parsed(ROOT / file)
        assert name in functions(module)
        assert not is_left_out(module, functions(module)[name])
    else:
        assert 'if __name__ == "__main__":' in (ROOT / file).read_text(encoding="utf-8")
        assert Path(file).name in RUN_BY_TESTS


@cache
def parsed(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


def functions(module: ast.Module) -> dict[str, Function]:
    """The tests of a module, by name."""
    found = (node for node in module.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return {node.name: node for node in found if node.name.startswith("test_")}


def is_left_out(module: ast.Module, test: Function) -> bool:
    """By a mark without a condition, on it or on its module, or by a call that nothing decides about."""
    marks = [*test.decorator_list, *(node.value for node in module.body if _sets(node, "pytestmark"))]
    called = [node.value.func for node in test.body if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)]
    named = {ast.unparse(each.func if isinstance(each, ast.Call) else each) for each in marks}
    return bool(named & {"pytest.mark.skip", "pytest.mark.xfail"}) or bool(
        {*map(ast.unparse, called)} & {"pytest.skip", "pytest.xfail"}
    )


def _sets(node: ast.stmt, name: str) -> TypeGuard[ast.Assign]:
    return isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("def test_it(): assert True", False),
        ("@pytest.mark.skipif(sys.platform == 'win32', reason='x')\ndef test_it(): assert True", False),
        ("async def test_it():\n    if os.geteuid():\n        pytest.skip('x')\n    assert True", False),
        ("@pytest.mark.skip\ndef test_it(): assert True", True),
        ("@pytest.mark.skip(reason='x')\nasync def test_it(): assert True", True),
        ("@pytest.mark.xfail(reason='x')\ndef test_it(): assert False", True),
        ("def test_it():\n    pytest.skip('x')", True),
        ("pytestmark = pytest.mark.skip(reason='x')\ndef test_it(): assert True", True),
    ],
)
def test_a_test_that_is_always_left_out_is_known_for_it(source: str, expected: bool) -> None:
    """One that is left out somewhere is a proof everywhere else."""
    module = ast.parse(source)
    assert is_left_out(module, functions(module)["test_it"]) is expected
