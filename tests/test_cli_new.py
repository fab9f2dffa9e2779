"""`modes-actor new`: what is added, what is said of it, and what is refused."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.command_line import Ran, Shell
from tests.modes_house import ROOMODES

NEXT = "`modes-actor modes show guide` shows what it may do; `modes-actor check` looks for mistakes."
ROLE = (
    "You are the Guide specialist of this project. You do the work that this mode is for, keep to what you were asked, "
    "and say at the end what you did, how you checked it, and what is left open."
)


def shown(shell: Shell, slug: str) -> Any:
    return shell.run("modes", "show", slug, "--json").json()


def refused(ran: Ran) -> tuple[int, str]:
    assert ran.out == ""
    return ran.code, ran.err.removeprefix("modes-actor: ").rstrip("\n")


def test_a_slug_is_all_that_a_mode_needs(shell: Shell) -> None:
    """The file is made, and the person is told where to go on."""
    assert shell.run("new", "guide").lines() == [
        "Added the mode guide in .roomodes:2.",
        "Its role is a sentence to begin with: say in .roomodes:4 what it is for.",
        NEXT,
    ]
    expected = (
        f"customModes:\n  - slug: guide\n    name: Guide\n    roleDefinition: {ROLE}\n"
        "    groups:\n      - read\n      - edit\n"
    )
    assert shell.mode_file.read_text(encoding="utf-8") == expected


def test_everything_that_is_said_is_in_the_mode(shell: Shell) -> None:
    """As the server has it then."""
    words = ["--name", "Guide: 1", "--role", "You #guide.", "--description", "Guides", "--when-to-use", "Lost?"]
    words += ["--instructions", "First:\n  look", "--groups", "edit, read,edit", "--edit-only", r"\.md$"]
    assert shell.run("new", "guide", *words).lines() == ["Added the mode guide in .roomodes:2.", NEXT]
    mode = shown(shell, "guide")
    assert (mode["name"], mode["role_definition"], mode["description"]) == ("Guide: 1", "You #guide.", "Guides")
    assert (mode["when_to_use"], mode["custom_instructions"]) == ("Lost?", "First:\n  look")
    assert [name for name, group in mode["tool_groups"].items() if group["enabled"]] == ["read", "edit"]
    assert mode["tool_groups"]["edit"]["file_regex"] == [r"\.md$"]


def test_a_mode_is_added_to_the_modes_that_there_are(shell: Shell) -> None:
    """Below them, and nothing else changes."""
    shell.mode_file.write_text(ROOMODES, encoding="utf-8")
    shell.run("new", "guide", "--role", "You guide.").lines()
    after = shell.mode_file.read_text(encoding="utf-8")
    assert after.startswith(ROOMODES)
    assert "guide" in after.removeprefix(ROOMODES)


def test_a_person_s_own_file_gets_a_mode_for_all_projects(shell: Shell) -> None:
    """It is made if need be, with its directory."""
    shell.config_dir.rmdir()
    assert shell.run("new", "guide", "--global", "--role", "You guide.").lines() == [
        f"Added the mode guide in {shell.config_dir / 'modes.yaml'}:2.",
        NEXT,
    ]
    assert shown(shell, "guide")["source"] == "global"
    assert not shell.mode_file.exists()


def test_a_program_is_told_the_mode_and_its_place(shell: Shell) -> None:
    """One JSON value."""
    assert shell.run("new", "guide", "--groups", "", "--json").json() == {
        "mode": {"slug": "guide", "name": "Guide", "roleDefinition": ROLE, "groups": []},
        "file": ".roomodes",
        "line": 2,
        "role_line": 4,
        "replaces": None,
        "replaced_by": None,
        "written": True,
        "diff": None,
        "snippet": None,
    }


def test_a_rehearsal_shows_the_change_and_makes_none(shell: Shell) -> None:
    """As `patch` reads it, the missing end of the last line included."""
    shell.mode_file.write_text("customModes: []", encoding="utf-8")
    words = ("new", "guide", "--role", "You guide.", "--groups", "read", "--dry-run")
    expected = [
        "--- .roomodes",
        "+++ .roomodes",
        "@@ -1 +1,6 @@",
        "-customModes: []",
        "\\ No newline at end of file",
        "+customModes:",
        "+  - slug: guide",
        "+    name: Guide",
        "+    roleDefinition: You guide.",
        "+    groups:",
        "+      - read",
    ]
    assert shell.run(*words).lines() == expected
    answer = shell.run(*words, "--json").json()
    assert (answer["diff"].splitlines(), answer["written"]) == (expected, False)
    assert shell.mode_file.read_text(encoding="utf-8") == "customModes: []"


def test_a_rehearsal_for_a_new_file_makes_none(shell: Shell) -> None:
    """It says that there is none yet."""
    assert shell.run("new", "guide", "--dry-run").lines()[0] == "--- /dev/null"
    assert not shell.mode_file.exists()


# Other modes.


@pytest.mark.parametrize(
    ("words", "groups"),
    [
        ((), None),
        (("--groups", "read,edit"), ["read", "edit"]),
        (
            ("--edit-only", "^src/"),
            ["read", ["edit", {"fileRegex": "^src/"}], "browser", "mcp", "modes"],
        ),
    ],
)
def test_a_mode_that_extends_another_says_only_what_it_narrows(
    shell: Shell, words: tuple[str, ...], groups: Any
) -> None:
    """Neither role nor groups of its own unless they are asked for."""
    answer = shell.run("new", "careful", "--extends", "architect", *words, "--json").json()
    expected = {"slug": "careful", "name": "Careful", "extends": "architect"}
    assert answer["mode"] == expected | ({} if groups is None else {"groups": groups})
    assert answer["role_line"] is None


def test_a_mode_that_extends_another_can_restrict_its_servers(shell: Shell) -> None:
    """The groups are the other's, so that nobody need repeat `mcp`."""
    answer = shell.run("new", "careful", "--extends", "code", "--restrict", "none", "--json").json()
    assert answer["mode"]["mcpRestrictions"] == {"allowedServers": []}
    assert "groups" not in answer["mode"]


def test_restrictions_come_with_the_group_that_they_restrict(shell: Shell) -> None:
    """Where no groups are named."""
    answer = shell.run("new", "guide", "--restrict", "docs-only", "--json").json()
    assert answer["mode"]["groups"] == ["read", "edit", "mcp"]
    assert "*docs*" in answer["mode"]["mcpRestrictions"]["allowedServers"]
    assert shell.run("check", "--strict").code == 0


def test_a_built_in_mode_can_be_replaced_and_that_is_said(shell: Shell) -> None:
    """It is allowed, but hardly to be done unawares."""
    assert shell.run("new", "code", "--role", "You code.").lines()[1] == "It replaces the built-in mode code."


def test_a_mode_of_one_s_own_can_be_replaced_in_a_project(shell: Shell) -> None:
    """With the place where that is."""
    shell.run("new", "guide", "--global")
    said = shell.run("new", "guide").lines()
    assert said[1] == f"It replaces the global mode in {shell.config_dir / 'modes.yaml'}:2."


def test_a_global_mode_that_the_project_replaces_is_pointed_out(shell: Shell) -> None:
    """It is added, and has no effect here."""
    shell.run("new", "guide")
    said = shell.run("new", "guide", "--global").lines()
    assert said[1] == f"In this project, the mode in {shell.mode_file}:2 takes its place."


def test_a_slug_that_the_file_has_is_refused(shell: Shell) -> None:
    """With its place."""
    shell.run("new", "guide")
    before = shell.mode_file.read_bytes()
    assert refused(shell.run("new", "guide")) == (1, ".roomodes:2: there is a mode `guide` already")
    assert shell.mode_file.read_bytes() == before


def test_a_slug_that_another_of_one_s_own_files_has_is_refused(shell: Shell) -> None:
    """Two modes of one slug would only confuse."""
    other = shell.config_dir / "custom_modes.json"
    mode = {"slug": "guide", "name": "Guide", "roleDefinition": "You guide.", "groups": []}
    other.write_text(json.dumps({"customModes": [mode]}), encoding="utf-8")
    assert refused(shell.run("new", "guide", "--global")) == (1, f"{other}:1: there is a mode `guide` already")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--extends", "cod"), "there is no mode `cod` to extend: did you mean `code`?"),
        (("--extends", "guide"), "there is no mode `guide` to extend: "),
        (("--global", "--extends", "docs"), "there is no mode `docs` to extend: "),
    ],
)
def test_a_mode_that_does_not_exist_cannot_be_extended(shell: Shell, words: tuple[str, ...], sentence: str) -> None:
    """A mode for all projects cannot extend one of a project."""
    shell.mode_file.write_text(ROOMODES, encoding="utf-8")
    code, said = refused(shell.run("new", "guide", *words))
    assert (code, said.startswith(sentence)) == (1, True), said


def test_modes_that_extend_each_other_are_refused(shell: Shell) -> None:
    """Nothing is written."""
    text = "customModes:\n  - {slug: a, name: A, extends: code, groups: [read]}\n"
    shell.mode_file.write_text(text, encoding="utf-8")
    assert refused(shell.run("new", "code", "--extends", "a")) == (
        1,
        "`code` cannot extend `a`: that leads back to `code`, or nowhere",
    )
    assert shell.mode_file.read_text(encoding="utf-8") == text


# What makes no sense.


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("a b",), "the slug 'a b' is not usable: letters, digits and `-` only"),
        (("a", "--groups", "raed"), "--groups: there is no group `raed`: did you mean `read`?"),
        (("--", "-x"), "the slug '-x' is not usable: a command line would take it for an option"),
        (("x" * 65,), "a slug has 64 characters at most; this one has 65"),
        (("a", "--name", ""), "--name is empty: leave it out, or say something"),
        (("a", "--role", "\udcff"), "--role is no UTF-8 text"),
        (
            ("a", "--edit-only", "("),
            "--edit-only '(' is no JavaScript regular expression: unterminated group at position 0",
        ),
        (
            ("a", "--edit-only", "x", "--groups", "read"),
            "--edit-only is about the group `edit`, which is not among --groups",
        ),
        (
            ("a", "--edit-only", "x", "--extends", "ask"),
            "--edit-only is about the group `edit`, which is not among the groups of `ask`",
        ),
        (
            ("a", "--restrict", "zzz"),
            "--restrict: there is no template `zzz`: there are read-only, no-network, docs-only, no-admin, none",
        ),
        (
            ("a", "--restrict", "none", "--groups", "read"),
            "--restrict is about the group `mcp`, which is not among --groups: add it there",
        ),
    ],
)
def test_what_makes_no_sense_is_wrong_usage(shell: Shell, words: tuple[str, ...], sentence: str) -> None:
    """One line, and no file."""
    assert refused(shell.run("new", *words)) == (2, sentence)
    assert not shell.mode_file.exists()


def test_a_slug_may_be_as_long_as_is_bearable(shell: Shell) -> None:
    """And not a character longer."""
    assert shell.run("new", "x" * 64).code == 0
    assert f"slug: {'x' * 64}\n" in shell.mode_file.read_text(encoding="utf-8")


def test_the_templates_are_in_the_help(shell: Shell) -> None:
    """With what they are for."""
    assert "read-only: Look, never change" in " ".join(shell.run("new", "--help").out.split())


# Files that cannot be edited.


def test_a_broken_file_is_not_edited(shell: Shell) -> None:
    """Whoever wrote it mends it first."""
    shell.mode_file.write_text("customModes: [\n", encoding="utf-8")
    code, said = refused(shell.run("new", "guide"))
    assert (code, said.partition(": ")[::2]) == (
        1,
        (".roomodes:2", "the file cannot be read, so mend that first: did not find expected node content"),
    )


TWICE = "customModes: []\ncustomModes: []\n"


def test_where_no_edit_is_possible_the_mode_is_shown_for_pasting(shell: Shell) -> None:
    """The person knows where it belongs."""
    shell.mode_file.write_text(TWICE, encoding="utf-8")
    ran = shell.run("new", "guide", "--role", "You guide.", "--groups", "read")
    assert (ran.code, ran.out) == (
        1,
        "- slug: guide\n  name: Guide\n  roleDefinition: You guide.\n  groups:\n    - read\n",
    )
    assert ran.err == (
        "modes-actor: .roomodes: the file is written in a way that cannot be edited without changing something else in "
        "it; paste the mode into it yourself\n"
    )


def test_a_program_gets_the_snippet_too(shell: Shell) -> None:
    """And that nothing was written."""
    shell.mode_file.write_text(TWICE, encoding="utf-8")
    ran = shell.run("new", "guide", "--json")
    answer = json.loads(ran.out)
    assert (ran.code, answer["written"], answer["line"]) == (1, False, None)
    assert answer["snippet"].startswith("- slug: guide\n")


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"customModes:\n  - name: \xff\n", ".roomodes is not UTF-8: save it as UTF-8 and try again"),
        (None, ".roomodes: This is not a regular file"),
    ],
)
def test_a_file_that_cannot_be_read_as_text_is_left_alone(shell: Shell, content: bytes | None, sentence: str) -> None:
    """Its bytes could not be kept."""
    if content is None:
        shell.mode_file.mkdir()
    else:
        shell.mode_file.write_bytes(content)
    assert refused(shell.run("new", "guide")) == (1, sentence)


def test_a_file_that_cannot_be_opened_is_told_in_plain_words(shell: Shell) -> None:
    """As the system calls it."""
    shell.mode_file.symlink_to(shell.mode_file)
    expected = ".roomodes: The file cannot be opened: Too many levels of symbolic links"
    assert refused(shell.run("new", "guide")) == (1, expected)


def test_a_file_that_cannot_be_written_is_one_sentence(shell: Shell) -> None:
    """A file stands where the directory should be."""
    shell.config_dir.rmdir()
    shell.config_dir.write_text("", encoding="utf-8")
    code, said = refused(shell.run("new", "guide", "--global"))
    assert (code, said.startswith(f"cannot write {shell.config_dir / 'modes.yaml'}: ")) == (1, True), said


def test_a_link_stays_a_link(shell: Shell, tmp_path: Path) -> None:
    """What it leads to is edited."""
    real = tmp_path / "shared.yaml"
    real.write_text("customModes: []\n", encoding="utf-8")
    shell.mode_file.symlink_to(real)
    shell.run("new", "guide").lines()
    assert shell.mode_file.is_symlink()
    assert "slug: guide" in real.read_text(encoding="utf-8")
