"""Modes as others know them: the five of our own, Roo's tools, and the files of people who used Roo.

What is expected of a file is worked out here, from its text, by other parsers and by Roo's own rules.
"""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from modes_actor.modes.catalog import builtin_modes
from modes_actor.modes.loader import ModeLoader
from modes_actor.modes.model import ModeConfig, Problem
from modes_actor.modes.reading import read_modes
from modes_actor.modes.tools import tool_table

CORPUS = Path(__file__).parents[2] / "shared" / "corpus" / "roomodes"
FILES = sorted(CORPUS.glob("*.roomodes"))
REJECTED = ["AIM-kennisplatformen+k-baas-2", "JackSmack1971+SPARC40", "randy888chan+Stigmergy"]
"""By Roo, as a whole: the first is no YAML, the others have a mode or a group that it does not know or take twice."""

needs_corpus = pytest.mark.skipif(not FILES, reason=f"there is no corpus in {CORPUS}")
each_file = pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
each_accepted = pytest.mark.parametrize(
    "path", [path for path in FILES if path.stem not in REJECTED], ids=[p.stem for p in FILES if p.stem not in REJECTED]
)

TEXTS = ("name", "roleDefinition", "description", "whenToUse", "customInstructions")


def parsed(path: Path) -> Any:
    """By a parser that is not ours. None of these files has a word that YAML 1.1 and 1.2 read differently."""
    text = path.read_text(encoding="utf-8")
    # PyYAML drops the end of a last line that has none in the file; npm's parser, and so Roo, does not.
    return json.loads(text) if text.lstrip().startswith("{") else yaml.safe_load(text + "\n")


def as_roo_has_it(entry: Any) -> tuple[str, str | None]:
    name, options = entry if isinstance(entry, list) else (entry, {})
    return name, options.get("fileRegex")


def usable(mode: dict[str, Any]) -> bool:
    return bool(re.fullmatch("[a-zA-Z0-9-]+", mode["slug"]))


def loaded(path: Path, project: Path) -> tuple[list[ModeConfig], list[Problem]]:
    """The project's modes and everything wrong with them, when the file is a project's."""
    (project / ".roomodes").write_bytes(path.read_bytes())
    catalog = ModeLoader(project, project / "no configuration").load().catalog
    return [mode for mode in catalog if mode.source == "project"], list(catalog.problems)


def found_groups(mode: ModeConfig) -> list[tuple[str, str | None]]:
    return [(group.name, group.file_regex) for group in mode.groups or ()]


# What we bring.


def test_the_groups_of_the_built_in_modes() -> None:
    """Only the architect's edits have a pattern."""
    every = ["read", "edit", "browser", "command", "mcp", "modes"]
    assert {each.slug: [group.name for group in each.groups or ()] for each in builtin_modes()} == {
        "code": every,
        "architect": ["read", "edit", "browser", "mcp", "modes"],
        "ask": ["read", "browser", "mcp", "modes"],
        "debug": every,
        "orchestrator": ["modes"],
    }
    patterns = [(each.slug, group.name, group.file_regex) for each in builtin_modes() for group in each.groups or ()]
    assert [found for found in patterns if found[2] is not None] == [("architect", "edit", r"\.md$")]


def test_a_built_in_mode_says_all_a_person_wants_to_know() -> None:
    """Role, instructions, when to use it and a description; nowhere to edit it."""
    for each in builtin_modes():
        assert all([each.role_definition, each.custom_instructions, each.when_to_use, each.description, each.name])
        assert (each.source, each.origin.line) == ("builtin", None)


def test_every_tool_of_roo_has_its_group() -> None:
    """Every tool that Roo had, and where it belongs."""
    edits = "apply_diff write_to_file insert_content search_and_replace edit edit_file search_replace apply_patch"
    reads = "read_file search_files list_files list_code_definition_names codebase_search fetch_instructions"
    expected = {"read": reads, "edit": f"{edits} generate_image", "browser": "browser_action"}
    expected |= {"command": "execute_command read_command_output", "mcp": "use_mcp_tool access_mcp_resource"}
    expected |= {"modes": "switch_mode new_task"}
    always = "ask_followup_question attempt_completion switch_mode new_task update_todo_list run_slash_command skill"
    table = tool_table()
    found = {group: set(tools) for group, tools in table.groups.items()}
    assert {group: set(tools.split()) for group, tools in expected.items()} == found
    assert set(always.split()) == table.always


# People's files.


@needs_corpus
def test_the_corpus_is_the_one_these_tests_know() -> None:
    """Otherwise what is said above about rejected files may be wrong."""
    assert len(FILES) == 35
    assert set(REJECTED) < {path.stem for path in FILES}


@each_file
def test_no_file_makes_the_loader_raise(path: Path, tmp_path: Path) -> None:
    """And every problem has a place in that file."""
    _, problems = loaded(path, tmp_path)
    lines = path.read_text(encoding="utf-8").count("\n") + 1
    assert {problem.file for problem in problems} <= {str(tmp_path / ".roomodes")}
    assert all(1 <= problem.line <= lines and problem.column >= 1 for problem in problems)


@each_accepted
def test_what_roo_accepts_has_the_same_modes_with_the_same_groups(path: Path, tmp_path: Path) -> None:
    """Every slug once, in the file's order but for built-in ones; every group with its pattern, in order."""
    expected = {mode["slug"]: list(map(as_roo_has_it, mode["groups"])) for mode in parsed(path)["customModes"]}
    modes, _ = loaded(path, tmp_path)
    assert expected == {mode.slug: found_groups(mode) for mode in modes}
    overridden = [mode.slug for mode in builtin_modes()]
    new = [slug for slug in expected if slug not in overridden]
    assert [slug for slug in overridden if slug in expected] + new == [mode.slug for mode in modes]


@each_accepted
def test_what_roo_accepts_has_the_same_texts(path: Path) -> None:
    """To the letter: names with emoji, roles, instructions."""
    expected = [tuple(mode.get(name) for name in TEXTS) for mode in parsed(path)["customModes"]]
    modes = read_modes(path.read_text(encoding="utf-8"), file="f", source="project").modes
    assert expected == [
        (mode.name, mode.role_definition, mode.description, mode.when_to_use, mode.custom_instructions)
        for mode in modes
    ]


@each_accepted
def test_what_roo_accepts_has_no_errors(path: Path, tmp_path: Path) -> None:
    """A person who comes from Roo with a good file is not told that it is bad."""
    assert [problem for problem in loaded(path, tmp_path)[1] if problem.severity != "info"] == []


@each_accepted
def test_each_mode_knows_the_line_that_it_begins_in(path: Path) -> None:
    """There, or in one of the lines that follow, is its slug."""
    text = path.read_text(encoding="utf-8")
    lines = text.split("\n")
    for mode in read_modes(text, file="f", source="project").modes:
        assert mode.origin.line is not None
        rest = "\n".join(lines[mode.origin.line - 1 :])
        first = re.search(r"""["']?slug["']?\s*:\s*["']?([a-zA-Z0-9-]+)""", rest)
        assert first is not None
        assert first[1] == mode.slug


@needs_corpus
def test_a_group_that_is_there_several_times_leaves_the_mode_usable(tmp_path: Path) -> None:
    """All modes of the file load; of each group the first entry that has a pattern, or else the first, counts."""
    path = CORPUS / f"{REJECTED[1]}.roomodes"
    expected: dict[str, dict[str, str | None]] = {}
    for mode in parsed(path)["customModes"]:
        groups = expected.setdefault(mode["slug"], {})
        for name, pattern in map(as_roo_has_it, mode["groups"]):
            groups[name] = groups.get(name) or pattern
    modes, problems = loaded(path, tmp_path)
    assert expected == {mode.slug: dict(found_groups(mode)) for mode in modes}
    assert "error" in [problem.severity for problem in problems]


@needs_corpus
def test_slugs_and_groups_that_nobody_knows_cost_no_more_than_themselves(tmp_path: Path) -> None:
    """The modes with good slugs load, without the unknown group."""
    path = CORPUS / f"{REJECTED[2]}.roomodes"
    known = tool_table().groups
    expected = {
        mode["slug"]: [group for group in map(as_roo_has_it, mode["groups"]) if group[0] in known]
        for mode in parsed(path)["customModes"]
        if usable(mode)
    }
    modes, problems = loaded(path, tmp_path)
    assert expected == {mode.slug: found_groups(mode) for mode in modes}
    assert "error" in [problem.severity for problem in problems]


@needs_corpus
def test_a_file_that_does_not_parse_is_one_error_with_its_line(tmp_path: Path) -> None:
    """The built-in modes are there all the same."""
    path = CORPUS / f"{REJECTED[0]}.roomodes"
    with pytest.raises(yaml.MarkedYAMLError) as caught:
        parsed(path)
    mark = caught.value.problem_mark
    assert mark is not None
    modes, problems = loaded(path, tmp_path)
    assert (modes, [(mark.line + 1, "error")]) == ([], [(problem.line, problem.severity) for problem in problems])
