"""`modes-actor explain`: the answer for one mode, for all of them, for a session; and what it was understood to ask."""

import json
from pathlib import Path
from typing import Any

import pytest

from modes_actor.modes import decisions
from tests.command_line import Ran, Shell
from tests.kept_sessions import keep
from tests.modes_house import ALL_MODES, ROOMODES


@pytest.fixture(autouse=True)
def _time_for_suggestions(monkeypatch: pytest.MonkeyPatch) -> None:
    """A slow machine finds the same modes as a fast one."""
    monkeypatch.setattr(decisions, "SUGGESTION_SECONDS", 3600)


@pytest.fixture
def with_modes(shell: Shell) -> Shell:
    """A project with the mode `docs`, among others."""
    shell.mode_file.write_text(ROOMODES, encoding="utf-8")
    for made in (shell.project / "docs", shell.project / "src"):
        made.mkdir()
    return shell


def explained(shell: Shell, *words: str, cwd: Path | None = None) -> Any:
    """The answer for one mode, as programs get it, which agrees with the exit code."""
    ran = shell.run("explain", *words, "--json", cwd=cwd)
    assert ran.err == ""
    answer = json.loads(ran.out)
    assert ran.code == (0 if answer["allowed"] else 1)
    return answer


def test_a_denial_is_explained(with_modes: Shell) -> None:
    """In the words a model gets; then the rule, its place, what was not met, and where to go."""
    ran = with_modes.run("explain", "--mode", "docs", "write_to_file", "src/app.py")
    place = f"{with_modes.mode_file}:9"
    assert (ran.code, ran.err) == (1, "")
    assert ran.out.splitlines() == [
        "✗ Not allowed",
        "Cannot edit 'src/app.py' in 'docs' mode. Only files matching '^docs/' are allowed. (guides) "
        f"[{place}] Modes that allow it: code, debug.",
        "",
        "rule        group edit, files matching ^docs/",
        f"defined in  {place}",
        "not met     ^docs/",
        "allowed in  code, debug",
        "file        src/app.py",
    ]


def test_an_allowed_use_is_explained(with_modes: Shell) -> None:
    """By the rule that allows it."""
    assert with_modes.run("explain", "--mode", "docs", "write_to_file", "docs/a.md").lines() == [
        "✓ Allowed",
        "Tool 'write_to_file' may be used like this in 'docs' mode.",
        "",
        "rule        group edit, files matching ^docs/",
        f"defined in  {with_modes.mode_file}:9",
        "file        docs/a.md",
    ]


def test_a_denial_is_explained_to_programs(with_modes: Shell) -> None:
    """The members of `validate_tool_use`, and a few more."""
    place = f"{with_modes.mode_file}:9"
    assert explained(with_modes, "--mode", "docs", "write_to_file", "a.md") == {
        "allowed": False,
        "tool_name": "write_to_file",
        "mode": "docs",
        "rule": "group edit, files matching ^docs/",
        "defined_in": place,
        "error": "Cannot edit 'a.md' in 'docs' mode. Only files matching '^docs/' are allowed. (guides) "
        f"[{place}] Modes that allow it: code, architect, debug.",
        "why_not": "Only files matching '^docs/' are allowed. (guides)",
        "restriction": "^docs/",
        "allowed_in": ["code", "architect", "debug"],
        "files": ["a.md"],
    }


def test_an_allowed_use_is_explained_to_programs(with_modes: Shell) -> None:
    """Without what only a denial has."""
    assert explained(with_modes, "execute_command", "--mode", "code") == {
        "allowed": True,
        "tool_name": "execute_command",
        "mode": "code",
        "rule": "group command",
        "defined_in": "built-in mode code",
    }


def test_without_a_mode_every_mode_is_asked(with_modes: Shell) -> None:
    """Nothing has failed when some of them say no."""
    heading, *rows = with_modes.run("explain", "write_to_file", "README.md").lines()
    assert heading.split() == ["MODE", "ALLOWED", "RULE", "WHY", "NOT"]
    assert rows == [
        r"code          ✓ yes    group edit",
        r"architect     ✓ yes    group edit, files matching \.md$",
        r"ask           ✗ no     groups: read, browser, mcp, modes  Tool group 'edit' is not enabled.",
        r"debug         ✓ yes    group edit",
        r"orchestrator  ✗ no     groups: modes                      Tool group 'edit' is not enabled.",
        r"docs          ✗ no     group edit, files matching ^docs/  Only files matching '^docs/' are allowed. (guides)",
        r"DocWriter     ✗ no     group edit, files matching ^docs/  Only files matching '^docs/' are allowed. (guides)",
        r"narrow        ✗ no     group edit, files matching ^docs/  Only files matching '^docs/' are allowed. (guides)",
    ]


def test_every_mode_is_asked_by_programs_too(with_modes: Shell) -> None:
    """One answer each, as for one mode."""
    answers = with_modes.run("explain", "write_to_file", "docs/a.txt", "--json").json()
    found = {each["mode"]: each["allowed"] for each in answers}
    allowing = {"code", "debug", "docs", "DocWriter"}
    assert found == {slug: slug in allowing for slug in ALL_MODES if slug != "mine"}
    assert answers[0] == explained(with_modes, "--mode", "code", "write_to_file", "docs/a.txt")


# MCP.


@pytest.mark.parametrize(
    ("words", "taken_for"),
    [
        (["mcp__github__create_issue"], [{"server": "github", "tool": "create_issue"}]),
        (["mcp__a__b__c"], [{"server": "a", "tool": "b__c"}, {"server": "a__b", "tool": "c"}]),
        (["mcp__github"], []),
        (["use_mcp_tool"], []),
        (["use_mcp_tool", "--arguments", '{"server_name": "x"}'], [{"server": "x", "tool": ""}]),
        (
            ["use_mcp_tool", "--arguments", '{"server_name": "x", "tool_name": "y"}'],
            [{"server": "x", "tool": "y"}],
        ),
        (["access_mcp_resource", "--arguments", '{"server_name": "x", "tool_name": "y"}'], [{"server": "x"}]),
        (["use_mcp_tool", "--arguments", '{"server_name": " x"}'], []),
        (["read_file", "--arguments", '{"server_name": "x"}'], []),
        (["create_task"], []),
    ],
)
def test_it_is_told_which_server_and_tool_was_understood(
    with_modes: Shell, words: list[str], taken_for: list[dict[str, str]]
) -> None:
    """A qualified name can be split in several ways: each must be allowed."""
    assert explained(with_modes, "--mode", "code", *words).get("taken_for", []) == taken_for


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["mcp__github__delete_repo"], "taken for   tool 'delete_repo' of server 'github'"),
        (["use_mcp_tool", "--arguments", '{"server": "x"}'], "taken for   any tool of server 'x'"),
        (["access_mcp_resource", "--arguments", '{"server": "x"}'], "taken for   resources of server 'x'"),
    ],
)
def test_it_is_said_which_server_and_tool_was_understood(with_modes: Shell, words: list[str], line: str) -> None:
    """To a person in words."""
    ran = with_modes.run("explain", "--mode", "docs", *words)
    assert (ran.code, ran.out.splitlines()[-1]) == (1, line)


def test_every_mode_is_told_what_was_understood_once(with_modes: Shell) -> None:
    """Below the table."""
    assert with_modes.run("explain", "mcp__github__get").lines()[-1] == "Taken for tool 'get' of server 'github'."


# Files.


@pytest.mark.parametrize(
    ("directory", "path", "file", "allowed"),
    [
        (".", "docs/a.md", "docs/a.md", True),
        ("docs", "a.md", "docs/a.md", True),
        ("docs", "../a.md", "a.md", False),
        ("docs", "../docs/a.md", "docs/a.md", True),
        ("src", "../docs/./a.md", "docs/a.md", True),
        ("src", "docs/a.md", "src/docs/a.md", False),
        ("docs", "../../outside.md", "../outside.md", False),
        ("docs", "", "docs/", False),
        ("..", "project/docs/a.md", "docs/a.md", True),
        ("../home", "docs/a.md", "../home/docs/a.md", False),
    ],
)
def test_a_path_means_the_file_that_the_person_means(
    with_modes: Shell, directory: str, path: str, file: str, allowed: bool
) -> None:
    """It is looked up from the working directory, as everywhere in a shell; the project may be elsewhere."""
    root = ("--project-root", str(with_modes.project))
    words = ("--mode", "docs", "write_to_file", path)
    answer = explained(with_modes, *root, *words, cwd=with_modes.project / directory)
    assert (answer["files"], answer["allowed"]) == ([file], allowed)


def test_an_absolute_path_is_one_of_the_project_if_it_leads_there(with_modes: Shell) -> None:
    """From wherever."""
    inside, outside = str(with_modes.project / "docs" / "a.md"), str(with_modes.home / "docs" / "a.md")
    words = ("--mode", "docs", "write_to_file")
    assert [explained(with_modes, *words, path)["allowed"] for path in (inside, outside)] == [True, False]


def test_to_go_up_from_a_link_is_left_to_the_decision(with_modes: Shell) -> None:
    """It may lead to another file than it seems to: that is not for this command to tidy up."""
    (with_modes.project / "docs" / "deep").mkdir()
    (with_modes.project / "link").symlink_to(with_modes.project / "docs" / "deep")
    answer = explained(with_modes, "--mode", "docs", "write_to_file", "../link/../a.md", cwd=with_modes.project / "src")
    assert (answer["allowed"], answer["files"]) == (False, ["src/../link/../a.md"])
    assert "goes up from a link" in answer["error"]


def test_every_path_must_be_allowed(with_modes: Shell) -> None:
    """Those after the tool, and those in its arguments."""

    def allowed(*words: str) -> bool:
        return bool(explained(with_modes, "--mode", "docs", "write_to_file", *words)["allowed"])

    inside = '{"path": "docs/b.md", "paths": ["docs/c.md"]}'
    assert allowed("docs/a.md", "docs/b.md", "--arguments", inside)
    assert not allowed("docs/a.md", "b.md", "--arguments", inside)
    assert not allowed("docs/a.md", "--arguments", '{"path": "b.md"}')
    assert not allowed("docs/a.md", "--arguments", '{"paths": ["b.md"]}')


def test_options_may_stand_between_the_paths(with_modes: Shell) -> None:
    """Nobody remembers that they may not."""
    answer = explained(with_modes, "write_to_file", "--mode", "docs", "docs/a.md", "--project-root", ".", "docs/b.md")
    assert answer["files"] == ["docs/a.md", "docs/b.md"]


# Sessions.


def test_a_session_is_asked_by_its_mode(with_modes: Shell) -> None:
    """By any name that means it."""
    session = keep(with_modes, mode="docs")
    for name in (session.session_id, session.task.task_id, session.session_id[5:12]):
        answer = explained(with_modes, "--session", name, "execute_command")
        assert (answer["allowed"], answer["mode"], answer["session_id"]) == (False, "docs", session.session_id)
    shown = with_modes.run("explain", "read_file", "--session", session.session_id).lines()
    assert shown[-1] == f"session     {session.session_id}"


def test_a_session_whose_mode_is_gone_may_only_leave_it(with_modes: Shell) -> None:
    """As the server says it."""
    session = keep(with_modes, mode="gone")
    answer = explained(with_modes, "--session", session.session_id, "read_file")
    assert answer["error"].startswith("The mode 'gone' of this session is no longer defined: switch to another. ")
    assert explained(with_modes, "--session", session.session_id, "switch_mode")["allowed"]


def test_an_unknown_session_is_not_asked(with_modes: Shell) -> None:
    """Nor is another in its place."""
    ran = with_modes.run("explain", "--session", "sess_00", "read_file")
    assert (ran.code, ran.out) == (1, "")
    assert (
        ran.err == "modes-actor: no live session is called 'sess_00', or begins so: `modes-actor sessions` lists them\n"
    )


# What is wrong with the question.


def test_an_unknown_tool_is_answered_with_the_one_that_was_probably_meant(with_modes: Shell) -> None:
    """A tool that nobody knows is allowed nowhere."""
    answer = explained(with_modes, "--mode", "code", "writ_to_file")
    assert answer["why_not"] == "The tool is unknown: did you mean `write_to_file`?"


@pytest.mark.parametrize(
    ("slug", "sentence"),
    [
        ("doks", "Mode not found: doks. Did you mean `docs`? Available: "),
        ("no slug", "Validation error: `--mode` must be a slug of letters, digits and `-`, not 'no slug'"),
    ],
)
def test_an_unknown_mode_is_not_asked(with_modes: Shell, slug: str, sentence: str) -> None:
    """One line, with the one that was probably meant."""
    ran = with_modes.run("explain", "--mode", slug, "read_file")
    assert (ran.code, ran.out, ran.err.count("\n")) == (1, "", 1)
    assert ran.err.startswith(f"modes-actor: {sentence}")


def complaint(text: str) -> str:
    """Of Python's decoder, whose words differ from release to release."""
    with pytest.raises(json.JSONDecodeError) as error:
        json.loads(text)
    return str(error.value)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ('{"path" "a"}', "Expecting ':' delimiter: line 1 column 9 (char 8)"),
        ('{"path": "a",}', complaint('{"path": "a",}')),
        ("", "Expecting value: line 1 column 1 (char 0)"),
        ('{"a": NaN}', "there is no NaN in JSON"),
        ("[" * 100_000, "maximum recursion depth exceeded"),
    ],
)
def test_what_is_not_json_is_wrong_usage(with_modes: Shell, arguments: str, sentence: str) -> None:
    """With the place where it goes wrong."""
    ran = with_modes.run("explain", "read_file", "--arguments", arguments)
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert ran.err.startswith(f"modes-actor: --arguments is not JSON: {sentence}")


WRONG: list[tuple[list[str], str]] = [
    (["read_file", "--arguments", "[]"], """--arguments must be a JSON object, like {"path": "README.md"}"""),
    (["", "a.md"], "TOOL must be the name of a tool, not empty"),
    (["read_file", "--mode", "a", "--session", "b"], "argument --session: not allowed with argument --mode"),
    ([], "the following arguments are required: TOOL"),
]


@pytest.mark.parametrize(
    ("words", "sentence"), WRONG, ids=lambda each: " ".join(each) if isinstance(each, list) else ""
)
def test_wrong_usage_ends_with_2(with_modes: Shell, words: list[str], sentence: str) -> None:
    """So that scripts do not take it for a denial."""
    ran: Ran = with_modes.run("explain", *words)
    assert (ran.code, ran.out) == (2, "")
    assert (ran.err.count("\n"), sentence in ran.err) == (1, True)


def test_mistakes_in_mode_files_are_pointed_out(shell: Shell) -> None:
    """The answer may be another than its author thinks."""
    shell.mode_file.write_text("customModes:\n  - slug: broken\n", encoding="utf-8")
    for words in (["read_file"], ["read_file", "--mode", "code"]):
        ran = shell.run("explain", *words)
        assert (ran.code, ran.err) == (0, "Some mode files have mistakes: `modes-actor check` shows them.\n")
