"""`modes-actor modes` and `modes show`: the table, the details, and what is said of mistakes."""

import os
from pathlib import Path

import pytest

from tests.command_line import Shell
from tests.modes_house import ALL_MODES, BUILTIN, GLOBAL_MODES, ROOMODES


@pytest.fixture
def with_modes(shell: Shell) -> Shell:
    """A project and a person that have modes."""
    shell.mode_file.write_text(ROOMODES, encoding="utf-8")
    (shell.config_dir / "modes.yaml").write_text(GLOBAL_MODES, encoding="utf-8")
    return shell


def test_the_modes_in_force_are_listed_in_their_order(with_modes: Shell) -> None:
    """One line each, below the headings."""
    heading, *rows = with_modes.run("modes").lines()
    assert heading.split() == ["SLUG", "NAME", "GROUPS", "SOURCE", "DEFINED", "IN"]
    assert [row.split()[0] for row in rows] == ALL_MODES


def test_a_row_tells_the_groups_the_source_and_the_place(with_modes: Shell) -> None:
    """A pattern is part of its group."""
    docs = {mode["slug"]: mode for mode in with_modes.run("modes", "--json").json()}["docs"]
    assert docs == {
        "slug": "docs",
        "name": "📝 Docs",
        "groups": ["read", "edit (^docs/)", "mcp"],
        "source": "project",
        "file": f"{with_modes.mode_file}:3",
    }


def test_the_project_is_found_from_a_directory_below_it(with_modes: Shell) -> None:
    """As the server finds it."""
    below = with_modes.project / "src" / "deep"
    below.mkdir(parents=True)
    assert [mode["slug"] for mode in with_modes.run("modes", "--json", cwd=below).json()] == ALL_MODES


@pytest.mark.parametrize("before", [True, False])
def test_an_option_may_stand_on_either_side_of_the_command(with_modes: Shell, before: bool) -> None:
    """Nobody remembers which side it was."""
    option = ("--project-root", str(with_modes.home))
    words = (*option, "modes", "--json") if before else ("modes", *option, "--json")
    assert [mode["slug"] for mode in with_modes.run(*words).json()] == [*BUILTIN, "mine"]


def test_mistakes_in_mode_files_are_pointed_out(shell: Shell) -> None:
    """On stderr, so that the table stays a table."""
    shell.mode_file.write_text("customModes:\n  - slug: broken\n", encoding="utf-8")
    ran = shell.run("modes")
    assert (ran.code, ran.err) == (0, "Some mode files have mistakes: `modes-actor check` shows them.\n")


def test_one_mode_is_shown_whole(with_modes: Shell) -> None:
    """With what it may use, and where that is written."""
    shown = with_modes.run("modes", "show", "docs").lines()
    assert shown[:3] == ["Mode: 📝 Docs (docs)", "Source: project", f"Defined in: {with_modes.mode_file}:3"]
    assert "✓ edit (restricted to: ^docs/)" in shown


def test_a_system_prompt_is_shown_with_the_rules_of_the_project(with_modes: Shell) -> None:
    """As a client would be given it."""
    (with_modes.project / "AGENTS.md").write_text("Tabs, please.\n", encoding="utf-8")
    ran = with_modes.run("modes", "show", "docs", "--prompt")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("You write guides.\n")
    assert "Tabs, please." in ran.out


def test_one_mode_is_shown_to_programs(with_modes: Shell) -> None:
    """The same members as `get_mode_info` gives."""
    shown = with_modes.run("modes", "show", "mine", "--json").json()
    assert (shown["slug"], shown["source"], shown["role_definition"]) == ("mine", "global", "You are mine.")
    assert shown["tool_groups"]["edit"] == {"enabled": False}


@pytest.mark.parametrize(
    ("slug", "sentence"),
    [
        ("doks", "Mode not found: doks. Did you mean `docs`? Available: "),
        ("no slug", "Validation error: `SLUG` must be a slug of letters, digits and `-`, not 'no slug'"),
    ],
)
def test_a_mode_that_is_not_there_is_not_shown(with_modes: Shell, slug: str, sentence: str) -> None:
    """One line, with the one that was probably meant."""
    ran = with_modes.run("modes", "show", slug)
    assert (ran.code, ran.out, ran.err.count("\n")) == (1, "", 1)
    assert ran.err.startswith(f"modes-actor: {sentence}")


@pytest.mark.parametrize("words", [["modes"], ["modes", "list"]])
def test_modes_can_be_listed_by_their_source(with_modes: Shell, words: list[str]) -> None:
    """As the tool `list_modes` does it."""
    slugs = {
        source: [mode["slug"] for mode in with_modes.run(*words, "--source", source, "--json").json()]
        for source in ("builtin", "global", "project")
    }
    assert slugs == {"builtin": BUILTIN, "global": ["mine"], "project": ["docs", "DocWriter", "narrow"]}
    assert [line.split()[0] for line in with_modes.run(*words, "--source", "global").lines()] == ["SLUG", "mine"]


def test_an_unknown_source_is_wrong_usage(with_modes: Shell) -> None:
    """The sources there are, are named."""
    ran = with_modes.run("modes", "--source", "nowhere")
    assert (ran.code, ran.out) == (2, "")
    assert "choose from 'builtin', 'global', 'project'" in ran.err


def test_places_are_told_as_one_would_type_them(with_modes: Shell) -> None:
    """From the working directory, from home, or whole; programs get them whole."""
    project, deep = with_modes.project, with_modes.project / "deep"
    deep.mkdir()

    def places(*words: str, cwd: Path = project) -> list[str]:
        rows = with_modes.run("modes", *words, cwd=cwd).lines()[1:]
        return [row.split()[-1] for row in rows if row.split()[0] in ("code", "mine", "docs")]

    mine = f"~{os.sep}{Path('.roo-code', 'modes.yaml')}:3"
    assert places() == ["builtin", mine, ".roomodes:3"]
    assert places(cwd=deep) == ["builtin", mine, f"{project / '.roomodes'}:3"]
