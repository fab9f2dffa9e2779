"""`modes-actor check`: what is looked at, how it is told, and with which exit code."""

import io
import json
import re
import tomllib
from pathlib import Path, PurePath
from typing import Any
from urllib.parse import unquote, urlparse

import pytest
import yaml

from modes_actor import __version__
from modes_actor.cli.arguments import SUMMARIES
from modes_actor.cli.findings import RULES, Finding, Report, github_commands, sarif, write_text
from modes_actor.cli.output import Output
from modes_actor.modes.model import Severity
from tests.command_line import Ran, Shell

REPOSITORY = Path(__file__).parents[1]
CORPUS = REPOSITORY.parent / "shared" / "corpus" / "roomodes"

GOOD = "customModes:\n  - {slug: good, name: Good, roleDefinition: You are good., groups: [read]}\n"
WRONG = """\
customModes:
  - slug: wrong
    name: Wrong
    roleDefinition: You are wrong.
    nmae: x
    groups: [raed]
    zzzz: 1
"""
WRONG_FOUND = [
    ".roomodes:5:5: warning: `nmae` means nothing in a mode (did you mean `name`?)",
    ".roomodes:6:14: error: The group `raed` of `wrong` is unknown, and is left out (did you mean `read`?)",
    ".roomodes:7:5: info: `zzzz` means nothing in a mode",
]
DOUBTFUL = GOOD.replace("groups", "nmae: x, groups")
"""A warning, and no error."""
SERVERS = '{"mcpServers": {"github": {}}}'


def narrowing(base: str) -> str:
    return f"customModes:\n  - {{slug: narrow, name: Narrow, extends: {base}}}\n"


def checked(ran: Ran) -> tuple[int, list[str]]:
    assert ran.err == ""
    return ran.code, ran.out.splitlines()


# What is looked at.


def test_a_project_without_mistakes_is_good(shell: Shell) -> None:
    """One line says how much was looked at."""
    shell.mode_file.write_text(GOOD, encoding="utf-8")
    (shell.config_dir / "modes.yaml").write_text(GOOD, encoding="utf-8")
    assert checked(shell.run("check")) == (0, ["No problems in 2 files."])


def test_where_there_is_nothing_to_check_it_is_said(shell: Shell) -> None:
    """A project need not have modes."""
    assert checked(shell.run("check")) == (0, ["Nothing to check: there are no mode files, MCP servers or rules."])


def test_mistakes_are_told_from_top_to_bottom(shell: Shell) -> None:
    """With their places and what to do, and the exit code is 1."""
    shell.mode_file.write_text(WRONG, encoding="utf-8")
    assert checked(shell.run("check")) == (1, [*WRONG_FOUND, "1 error, 1 warning, 1 remark in 1 file."])


def test_every_file_that_counts_is_looked_at(shell: Shell) -> None:
    """The person's modes and servers, the project's, and rules."""
    project_servers = shell.project / ".roo" / "mcp.json"
    rule = shell.project / ".roo" / "rules-code" / "binary.md"
    own_rule = shell.home / ".roo" / "rules" / "binary.md"
    for path in (project_servers, rule, own_rule):
        path.parent.mkdir(parents=True, exist_ok=True)
    shell.mode_file.write_text(narrowing("nobody"), encoding="utf-8")
    (shell.config_dir / "modes.yaml").write_text("customModes: 7\n", encoding="utf-8")
    (shell.config_dir / "mcp.json").write_text("{}", encoding="utf-8")
    project_servers.write_text("[]", encoding="utf-8")
    rule.write_bytes(b"\0")
    own_rule.write_bytes(b"\0")
    found = shell.run("check", "--json")
    problems = json.loads(found.out)["problems"]
    assert [(each["file"], each["severity"], each["rule"]) for each in problems] == [
        (str(shell.config_dir / "modes.yaml"), "error", "mode-file"),
        (".roomodes", "error", "mode-file"),
        (str(shell.config_dir / "mcp.json"), "error", "mcp-servers"),
        (".roo/mcp.json", "error", "mcp-servers"),
        (".roo/rules-code/binary.md", "warning", "rules"),
        (str(own_rule), "warning", "rules"),
    ]


def test_a_directory_is_a_project_of_its_own(shell: Shell) -> None:
    """Its files only; the person's are what they meet."""
    other = shell.home / "other"
    (other / ".roo" / "rules").mkdir(parents=True)
    (other / ".roomodes").write_text(narrowing("good"), encoding="utf-8")
    (other / ".roo" / "mcp.json").write_text(SERVERS, encoding="utf-8")
    (other / ".roo" / "rules" / "a.md").write_text("Be good.", encoding="utf-8")
    (shell.config_dir / "modes.yaml").write_text(GOOD + "  - 7\n", encoding="utf-8")
    shell.mode_file.write_text(WRONG, encoding="utf-8")
    assert checked(shell.run("check", str(other))) == (0, ["No problems in 3 files."])


@pytest.mark.parametrize(
    ("file", "base", "code"),
    [
        ("other/.roomodes", "code", 0),
        ("other/.roomodes", "mine", 0),
        ("other/.roomodes", "good", 1),
        ("other/modes.yaml", "code", 0),
        ("other/modes.yaml", "mine", 0),
        ("other/modes.yaml", "good", 1),
    ],
)
def test_a_file_is_checked_where_it_would_be_used(shell: Shell, file: str, base: str, code: int) -> None:
    """Built-in modes and the person's are there to extend, modes of the project where one happens to be are not."""
    shell.mode_file.write_text(GOOD, encoding="utf-8")
    (shell.config_dir / "modes.yaml").write_text(GOOD.replace("good", "mine"), encoding="utf-8")
    path = shell.project / file
    path.parent.mkdir()
    path.write_text(narrowing(base), encoding="utf-8")
    ran = shell.run("check", file)
    assert (ran.code, ran.out.count(f"{file}:2:1: error: The mode `narrow` extends `good`, which")) == (code, code)


def test_a_person_s_own_file_can_be_checked_by_its_name(shell: Shell) -> None:
    """Nothing is said twice, though it counts for everybody as well."""
    path = shell.config_dir / "modes.yaml"
    path.write_text(WRONG + GOOD.partition("\n")[2] + narrowing("good").partition("\n")[2], encoding="utf-8")
    expected = [line.replace(".roomodes", str(path)) for line in WRONG_FOUND]
    assert checked(shell.run("check", str(path))) == (1, [*expected, "1 error, 1 warning, 1 remark in 1 file."])


def test_a_file_of_modes_may_be_json(shell: Shell) -> None:
    """Whatever its name."""
    (shell.project / "m.txt").write_text('{"customModes": [{"slug": "a b"}]}', encoding="utf-8")
    assert shell.run("check", "m.txt").out.startswith("m.txt:1:27: error: The slug `a b` is not usable")


@pytest.mark.parametrize("name", ["mcp.json", "mcp_settings.json"])
def test_a_file_of_servers_is_known_by_its_name(shell: Shell, name: str) -> None:
    """Only it is looked at."""
    (shell.project / name).write_text(SERVERS, encoding="utf-8")
    assert checked(shell.run("check", name)) == (0, ["No problems in 1 file."])
    (shell.project / name).write_text("{}", encoding="utf-8")
    assert shell.run("check", name).out.startswith(
        f"{name}:1:1: error: The file cannot be read: it has no `mcpServers`"
    )


def test_a_file_that_is_named_twice_is_checked_once(shell: Shell) -> None:
    """Under any of its names."""
    shell.mode_file.write_text(WRONG, encoding="utf-8")
    code, lines = checked(shell.run("check", ".roomodes", "./.roomodes", str(shell.mode_file), "."))
    assert (code, lines[:-1]) == (1, WRONG_FOUND)


def test_paths_that_lead_nowhere_are_wrong_usage(shell: Shell) -> None:
    """One line each, and nothing is checked."""
    shell.mode_file.write_text(WRONG, encoding="utf-8")
    assert shell.run("check", "nope", ".roomodes", "no/pe") == Ran(
        2,
        "",
        "modes-actor: there is no file or directory nope\nmodes-actor: there is no file or directory no/pe\n",
    )


@pytest.mark.parametrize(
    ("word", "sentence"),
    [
        ("", "a path is empty: name a file or a directory, or none for all files that count here"),
        ("nowhere", "nowhere is a link that leads nowhere"),
        ("loop", "loop cannot be looked at: it is a link that leads back to itself"),
        ("x" * 300, f"{'x' * 300} cannot be looked at: File name too long"),
        (".roomodes/below", "there is no file or directory .roomodes/below"),
    ],
)
def test_what_cannot_be_looked_at_is_wrong_usage(shell: Shell, word: str, sentence: str) -> None:
    """With the reason."""
    shell.mode_file.write_text(WRONG, encoding="utf-8")
    (shell.project / "nowhere").symlink_to("gone")
    (shell.project / "loop").symlink_to("loop")
    assert shell.run("check", word) == Ran(2, "", f"modes-actor: {sentence}\n")


def test_why_a_file_cannot_be_opened_is_told_in_plain_words(shell: Shell) -> None:
    """Without numbers of errors, and without its path for a second time."""
    shell.mode_file.symlink_to(shell.mode_file)
    error = ".roomodes:1:1: error: The file cannot be opened: Too many levels of symbolic links"
    assert checked(shell.run("check")) == (1, [error, "1 error in 1 file."])


def test_a_file_that_cannot_be_read_is_an_error_of_that_file(shell: Shell) -> None:
    """It is there, so it was meant."""
    (shell.project / "big.yaml").write_bytes(b"#" * (8 * 1024 * 1024 + 1))
    assert checked(shell.run("check", "big.yaml")) == (
        1,
        ["big.yaml:1:1: error: The file is larger than 8,388,608 bytes", "1 error in 1 file."],
    )


def test_a_path_outside_is_shown_whole(shell: Shell) -> None:
    """A relative one would lead astray."""
    shell.mode_file.write_text(WRONG, encoding="utf-8")
    below = shell.project / "src"
    below.mkdir()
    assert shell.run("check", "../.roomodes", cwd=below).out.startswith(f"{shell.mode_file}:5:5: warning: ")


@pytest.mark.skipif(not CORPUS.exists(), reason=f"there is no corpus in {CORPUS}")
def test_people_s_files_are_checked_by_their_names(shell: Shell) -> None:
    """Those that Roo refused as a whole, and only those, have errors."""
    answer = json.loads(shell.run("check", *map(str, sorted(CORPUS.glob("*.roomodes"))), "--json").out)
    wrong = {PurePath(each["file"]).stem for each in answer["problems"] if each["severity"] == "error"}
    assert wrong == {"AIM-kennisplatformen+k-baas-2", "JackSmack1971+SPARC40", "randy888chan+Stigmergy"}
    assert answer["files"] == 35


# Exit codes and options.


@pytest.mark.parametrize(
    ("text", "words", "code"),
    [
        (GOOD, ["--strict"], 0),
        (DOUBTFUL, [], 0),
        (DOUBTFUL, ["--strict"], 1),
        (GOOD.replace("groups", "zzzz: x, groups"), ["--strict"], 0),
        (WRONG, ["--format", "github"], 1),
        (WRONG, ["--format", "sarif"], 1),
        (WRONG, ["--json"], 1),
    ],
)
def test_the_exit_code_says_whether_something_is_wrong(shell: Shell, text: str, words: list[str], code: int) -> None:
    """In every format; warnings count where a person is strict."""
    shell.mode_file.write_text(text, encoding="utf-8")
    assert shell.run("check", *words).code == code


def test_suggestions_are_made_on_request_only(shell: Shell) -> None:
    """They are no mistakes."""
    shell.mode_file.write_text(GOOD.replace("[read]", "[read, mcp]"), encoding="utf-8")
    assert checked(shell.run("check", "--strict")) == (0, ["No problems in 1 file."])
    code, lines = checked(shell.run("check", "--strict", "--suggest"))
    assert (code, lines) == (
        0,
        [
            ".roomodes:2:1: info: `good` edits no files and runs no commands, but any MCP server may do both "
            "(`modes-actor new example --restrict read-only --dry-run` shows restrictions that would suit it)",
            "1 remark in 1 file.",
        ],
    )


def test_two_formats_at_once_are_wrong_usage(shell: Shell) -> None:
    """`--json` is one of them."""
    assert shell.run("check", "--json", "--format", "sarif") == Ran(
        2, "", "modes-actor: --json and --format sarif exclude each other\n"
    )
    assert shell.run("check", "--json", "--format", "json").code == 0


# Formats.


@pytest.mark.parametrize("words", [["--json"], ["--format", "json"]])
def test_json_has_every_part_of_a_problem(shell: Shell, words: list[str]) -> None:
    """And the numbers."""
    shell.mode_file.write_text(WRONG, encoding="utf-8")
    answer = json.loads(shell.run("check", *words).out)
    assert answer["problems"][0] == {
        "file": ".roomodes",
        "line": 5,
        "column": 5,
        "severity": "warning",
        "message": "`nmae` means nothing in a mode",
        "hint": "did you mean `name`?",
        "rule": "mode-file",
    }
    assert {key: answer[key] for key in answer if key != "problems"} == {
        "files": 1,
        "errors": 1,
        "warnings": 1,
        "infos": 1,
    }


def finding(
    file: str = "a.yaml", severity: Severity = "error", message: str = "Wrong", hint: str | None = None
) -> Finding:
    return Finding(file, 3, 7, severity, message, hint, "mode-file")


def test_github_gets_a_command_for_each_problem(shell: Shell) -> None:
    """Nothing else is said: every line is for the runner."""
    shell.mode_file.write_text(WRONG, encoding="utf-8")
    _, lines = checked(shell.run("check", "--format", "github"))
    assert [line.partition("::")[2].partition("::")[0] for line in lines] == [
        "warning file=.roomodes,line=5,col=5",
        "error file=.roomodes,line=6,col=14",
        "notice file=.roomodes,line=7,col=5",
    ]
    assert lines[2] == "::notice file=.roomodes,line=7,col=5::`zzzz` means nothing in a mode"


def test_what_github_would_take_for_its_own_is_escaped() -> None:
    """Line ends and percent signs everywhere; colons and commas in properties only."""
    report = Report([finding("50%: a,b\n", message="100%:\r\n::error::x, y", hint="z")], 1)
    assert list(github_commands(report)) == [
        "::error file=50%25%3A a%2Cb%0A,line=3,col=7::100%25:%0D%0A::error::x, y (z)"
    ]


def test_sarif_tells_the_tool_its_rules_and_where_paths_begin(shell: Shell) -> None:
    """As SARIF 2.1.0 has it."""
    shell.mode_file.write_text(GOOD, encoding="utf-8")
    log = shell.run("check", "--format", "sarif").json()
    assert list(log) == ["$schema", "version", "runs"]
    assert log["version"] == "2.1.0"
    [run] = log["runs"]
    driver = run["tool"]["driver"]
    assert (driver["name"], driver["version"]) == ("modes-actor", __version__)
    assert [rule["id"] for rule in driver["rules"]] == ["mode-file", "mcp-servers", "rules", "suggestion"]
    assert all(rule["shortDescription"]["text"] for rule in driver["rules"])
    assert run["originalUriBaseIds"] == {"%SRCROOT%": {"uri": f"{shell.project.as_uri()}/"}}
    assert (run["columnKind"], run["results"]) == ("unicodeCodePoints", [])


def test_sarif_has_a_result_for_each_problem(shell: Shell) -> None:
    """Its rule by name and by number, its level and its place."""
    shell.mode_file.write_text(WRONG, encoding="utf-8")
    results = json.loads(shell.run("check", "--format", "sarif").out)["runs"][0]["results"]
    assert [result["level"] for result in results] == ["warning", "error", "note"]
    assert results[0] == {
        "ruleId": "mode-file",
        "ruleIndex": 0,
        "level": "warning",
        "message": {"text": "`nmae` means nothing in a mode (did you mean `name`?)"},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": {"uri": ".roomodes", "uriBaseId": "%SRCROOT%"},
                    "region": {"startLine": 5, "startColumn": 5},
                }
            }
        ],
    }


def test_sarif_names_files_by_uris() -> None:
    """Relative ones below the working directory, else whole ones; blanks and the like are escaped in both."""
    report = Report([finding("a dir/é#%.yaml"), finding("/else where/m.yaml")], 2)
    [run] = sarif(report, Path("/work/a b")).runs
    places = [result.locations[0].physical_location.artifact_location for result in run.results]
    assert [(place.uri, place.uri_base_id) for place in places] == [
        ("a%20dir/%C3%A9%23%25.yaml", "%SRCROOT%"),
        ("file:///else%20where/m.yaml", None),
    ]
    base = run.original_uri_base_ids["%SRCROOT%"].uri
    assert unquote(urlparse(base + places[0].uri).path) == "/work/a b/a dir/é#%.yaml"


def test_every_rule_has_a_description() -> None:
    """Code hosts show it."""
    assert all(text[0].isupper() and not text.endswith(".") for text in RULES.values())


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("environment", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False)])
def test_a_terminal_gets_colours_unless_they_are_unwanted(environment: dict[str, str], coloured: bool) -> None:
    """The words are the same."""
    stream = Terminal()
    write_text(Report([finding(hint="mend it")], 1), Output(stream, environment={"TERM": "xterm"} | environment))
    said = stream.getvalue()
    assert ("\x1b[31m" in said) == coloured
    assert re.sub(r"\x1b\[[0-9;]*m", "", said).splitlines() == [
        "a.yaml:3:7: error: Wrong (mend it)",
        "1 error in 1 file.",
    ]


def test_a_problem_is_one_line_whatever_is_in_it() -> None:
    """Else a file could put words into our mouth."""
    stream = io.StringIO()
    write_text(Report([finding(message="a\nb: error: c")], 1), Output(stream, environment={}))
    assert stream.getvalue() == "a.yaml:3:7: error: a b: error: c\n1 error in 1 file.\n"


# pre-commit.


def hook() -> dict[str, Any]:
    [found] = yaml.safe_load((REPOSITORY / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    assert isinstance(found, dict)
    return found


def test_the_hook_is_a_command_of_this_package() -> None:
    """pre-commit installs the package and runs its entry with the names of the files."""
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    program, command = hook()["entry"].split()
    assert (hook()["id"], hook()["language"]) == ("modes-actor-check", "python")
    assert program in project["scripts"]
    assert command in SUMMARIES


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (".roomodes", True),
        ("a/b/.roomodes", True),
        ("x.roomodes", False),
        (".roomodes.bak", False),
        ("roomodes", False),
    ],
)
def test_the_hook_looks_at_mode_files_of_projects(path: str, expected: bool) -> None:
    """In any directory, and at nothing else."""
    assert (re.search(hook()["files"], path) is not None) == expected


def test_the_hook_fails_for_a_file_with_a_mistake(shell: Shell) -> None:
    """As pre-commit would run it."""
    below = shell.project / "below"
    below.mkdir()
    shell.mode_file.write_text(GOOD, encoding="utf-8")
    (below / ".roomodes").write_text(WRONG, encoding="utf-8")
    words = hook()["entry"].split()[1:]
    assert shell.run(*words, ".roomodes").code == 0
    assert shell.run(*words, ".roomodes", "below/.roomodes").code == 1
