"""Which files a tool touches, and whether the mode may: every argument that carries a path, every way to spell one.

A path is judged by where it leads. A client may be Node, Python or a shell: where they would not agree, it is denied.
"""

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from modes_actor.modes.catalog import ModeCatalog
from modes_actor.modes.decisions import Allowed, Decision, DecisionContext, Denied, Rule, ToolUse, decide, decide_many
from modes_actor.modes.model import Group, GroupName, ModeConfig, Origin
from modes_actor.wire.errors import ErrorCode

REPEATABLE = settings(derandomize=True, database=None, deadline=None, max_examples=300)

HERE = Origin(".roomodes", 3)
HOUSE_RULE = Rule("only files of the project may be edited", Origin("built-in rule"))
EDIT_TOOLS = ["apply_diff", "write_to_file", "insert_content", "search_and_replace", "edit", "edit_file"]
EDIT_TOOLS += ["search_replace", "apply_patch", "generate_image", "write_file", "multi_apply_diff"]

Ask = Callable[..., bool]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with links, and something beside it that is none of its business."""
    outside = tmp_path_factory.mktemp("outside")
    (outside / "a.md").touch()
    project = tmp_path_factory.mktemp("project")
    (project / "docs" / "deep").mkdir(parents=True)
    (project / "docs" / "a.md").touch()
    (project / "src").mkdir()
    (project / "src" / "x.py").touch()
    links = {
        "docs/to-source.md": "../src/x.py",
        "docs/to-source": "../src",
        "docs/to-nothing.md": "../src/missing.py",
        "docs/to-outside.md": str(outside / "a.md"),
        "docs/to-outside-missing.md": str(outside / "new.md"),
        "docs/out": str(outside),
        "docs/to-root": "/",
        "docs/loop.md": "loop.md",
        "docs/ping": "pong",
        "docs/pong": "ping",
        "src/to-docs": "../docs",
        "src/to-docs.py": "../docs/a.md",
        "deep": "docs/deep",
        "docs/to-docs.md": "to-source.md",
    }
    for name, target in links.items():
        (project / name).symlink_to(target)
    return project


def mode(pattern: str | None = "^docs/", name: GroupName = "edit") -> ModeConfig:
    groups = (Group(name, HERE, pattern),)
    return ModeConfig(slug="m", name="M", source="project", origin=HERE, role_definition="You help.", groups=groups)


def decided(root: Path, asked: ModeConfig, tool: str, arguments: Mapping[str, Any]) -> Decision:
    return decide(asked, tool, arguments, DecisionContext(ModeCatalog([asked]), str(root)))


@pytest.fixture
def may(root: Path) -> Ask:
    """Whether a mode with this pattern on its files may use the tool with these arguments."""

    def ask(tool: str, *, pattern: str | None = "^docs/", name: GroupName = "edit", **arguments: Any) -> bool:
        return isinstance(decided(root, mode(pattern, name), tool, arguments), Allowed)

    return ask


# How one path is spelt.


ALLOWED = """docs/a.md ./docs/a.md docs/./a.md docs//a.md docs/new/../a.md src/../docs/a.md docs/b/c/new.md docs/…
docs/deep/../a.md src/to-docs/a.md src/to-docs.py x/y/../../docs/a.md docs/naïve文.md"""


@pytest.mark.parametrize("path", [*ALLOWED.split(), "docs/a b.md"])
def test_a_path_that_leads_to_an_allowed_file_is_allowed(may: Ask, path: str) -> None:
    """However it is spelt, whether the file exists or not."""
    assert may("write_to_file", path=path)


def test_an_absolute_path_into_the_project_is_judged_by_its_relative_form(root: Path, may: Ask) -> None:
    """The pattern never sees where the project is."""
    paths = [f"{root}/docs/a.md", f"{root}/src/x.py", f"{root}/docs/../src/x.py"]
    assert [may("write_to_file", path=path) for path in paths] == [True, False, False]


FORBIDDEN = """src/x.py docs/../src/x.py docs/deep/../../src/x.py docs/none/../../src/x.py DOCS/a.md xdocs/a.md
docs/to-source.md docs/to-source/new.py docs/to-nothing.md docs/to-docs.md"""


@pytest.mark.parametrize("path", FORBIDDEN.split())
def test_a_path_that_leads_to_another_file_of_the_project_is_denied(root: Path, path: str) -> None:
    """By the pattern, with its place."""
    found = decided(root, mode(), "write_to_file", {"path": path})
    assert isinstance(found, Denied)
    assert (found.code, found.rule, found.restriction) == (
        ErrorCode.FILE_RESTRICTION_ERROR,
        Rule("group edit, files matching ^docs/", HERE),
        "^docs/",
    )


OUTSIDE = """../a.md /etc/passwd docs/../../a.md docs/to-outside.md docs/to-outside-missing.md docs/out/new.md
docs/to-root/etc/passwd docs/out/../docs/a.md / /docs/a.md .. ~/docs/a.md ~root/a.md file:///docs/a.md
https://host/docs/a.md vscode-remote://h/a.md //host/docs/a.md"""
DIRECTORIES = "docs docs/ docs/deep docs/. docs/deep/.. docs/a.md/ . docs/new/ ./ deep"
WINDOWS = r"docs\a.md docs\..\src\x.py C:docs/a.md C:/docs/a.md c:\docs\a.md \\host\a.md \\?\C:\a.md docs/..\src/x.py"
LOOPS = "docs/loop.md docs/ping docs/ping/a.md"
BLANK = ["", " ", "docs/a.md ", " docs/a.md", "docs/a.md\n", "docs/a.md\r\n", "\tdocs/a.md", "docs/a.md\u00a0"]
BLANK += ["docs/a.md\u3000", "docs/a.md\u2028", "docs/a.md\ufeff", "\ufeffdocs/a.md"]
CONTROL = [
    "docs/\x00a.md",
    "docs/a.md\x00",
    "docs/a\nb.md",
    "docs/\x1b[2Ja.md",
    "docs/\x7f.md",
    "docs/\x85.md",
    "\ud800",
]
UNUSABLE = [*OUTSIDE.split(), *DIRECTORIES.split(), *WINDOWS.split(), *LOOPS.split(), *BLANK, *CONTROL]


@pytest.mark.parametrize("path", UNUSABLE)
@pytest.mark.parametrize("pattern", [None, "", "docs|md"])
def test_an_unusable_path_is_denied_even_where_every_file_is_allowed(
    root: Path, path: str, pattern: str | None
) -> None:
    """What cannot be resolved with certainty is not resolved at all."""
    found = decided(root, mode(pattern), "write_to_file", {"path": path})
    assert isinstance(found, Denied)
    assert (found.code, found.rule, found.allowed_in) == (ErrorCode.FILE_RESTRICTION_ERROR, HOUSE_RULE, ())


@pytest.mark.parametrize(
    ("path", "expected"), [(r"docs\a.md", True), (r"docs\..\src\x.py", False), (r"docs\a.md:stream", False)]
)
def test_on_windows_a_backslash_separates(monkeypatch: pytest.MonkeyPatch, may: Ask, path: str, expected: bool) -> None:
    """There the file is judged that it leads to; what names a stream of a file is another file."""
    monkeypatch.setattr(sys, "platform", "win32")
    assert may("write_to_file", path=path) is expected


@pytest.mark.parametrize("path", ["deep/../x.py", "deep/../../docs/x.py", "docs/to-source/../a.md"])
def test_going_up_from_a_link_is_denied_unless_both_readings_are_allowed(may: Ask, path: str) -> None:
    """The kernel goes up from where the link leads; Node's `path.resolve`, which Roo uses, from where it is."""
    assert not may("write_to_file", path=path)


parts = st.sampled_from(["docs", "src", "new", "a.md", "x.py"])
detours = st.lists(st.sampled_from(["", ".", "new/..", "src/..", "docs/deep/../.."]), max_size=3)


@REPEATABLE
@given(st.lists(st.tuples(detours, parts), min_size=1, max_size=4), st.booleans())
def test_all_traversal_spellings_of_one_path_decide_alike(
    root: Path, spelling: list[tuple[list[str], str]], absolute: bool
) -> None:
    """Detours that come back, doubled slashes and dots change nothing; nor does the project's own path in front."""
    plain = "/".join(part for _, part in spelling)
    steps = [step for detour, part in spelling for step in (*detour, part)]
    spelt = "/".join(steps).lstrip("/")
    paths = [plain, f"{root}/{spelt}" if absolute else spelt]
    one, other = (decided(root, mode(), "write_to_file", {"path": path}) for path in paths)
    assert (type(one), one.rule) == (type(other), other.rule)


def test_a_link_that_changes_between_batches_is_followed_anew(tmp_path: Path) -> None:
    """A longer memory would be a way in."""
    for name in ("docs", "src"):
        (tmp_path / name).mkdir()
    link, asked = tmp_path / "docs" / "link", mode()
    context = DecisionContext(ModeCatalog([asked]), str(tmp_path))
    verdicts = []
    for target in ("../docs", "../src"):
        link.symlink_to(target)
        (found,) = decide_many(asked, [ToolUse("write_to_file", {"path": "docs/link/a.md"})], context)
        verdicts.append(type(found))
        link.unlink()
    assert verdicts == [Allowed, Denied]


def test_a_project_reached_through_a_link_is_the_same_project(root: Path, tmp_path: Path) -> None:
    """The root itself is resolved, too."""
    (tmp_path / "project").symlink_to(root)
    verdicts = [
        type(decided(tmp_path / "project", mode(), "write_to_file", {"path": path}))
        for path in ("docs/a.md", f"{root}/docs/a.md", f"{tmp_path}/project/docs/a.md", "src/x.py")
    ]
    assert verdicts == [Allowed, Allowed, Allowed, Denied]


# Where a path can be among the arguments. Each form is given what `^docs/` allows and what it does not.

FORMS: dict[str, tuple[str, Callable[[str], dict[str, Any]]]] = {
    "path": ("write_to_file", lambda path: {"path": path, "content": ""}),
    "file_path": ("edit", lambda path: {"file_path": path, "old_string": "", "new_string": ""}),
    "filePath": ("edit", lambda path: {"filePath": path}),
    "image": ("generate_image", lambda path: {"prompt": "a cat", "path": path}),
    "paths": ("edit", lambda path: {"paths": ["docs/a.md", path]}),
    "paths as text": ("edit", lambda path: {"paths": path}),
    "files": ("edit", lambda path: {"files": [{"path": "docs/a.md"}, {"path": path}]}),
    "files as names": ("edit", lambda path: {"files": [path]}),
    "files as JSON": ("edit", lambda path: {"files": msgspec.json.encode([{"path": path}]).decode()}),
    "args as a list": ("apply_diff", lambda path: {"args": {"file": [{"path": "docs/a.md"}, {"path": path}]}}),
    "args as one": ("apply_diff", lambda path: {"args": {"file": {"path": path, "diff": {"content": "x"}}}}),
    "args as a bare list": ("apply_diff", lambda path: {"args": [{"path": path}]}),
    "args as JSON": (
        "multi_apply_diff",
        lambda path: {"args": f' {{"file": [{{"path": "docs/a.md"}}, {{"path": "{path}"}}]}}'},
    ),
    "args as XML": (
        "multi_apply_diff",
        lambda path: {"args": f"<file><path>docs/a.md</path></file>\n<file><path>{path}</path><diff>x</diff></file>"},
    ),
    "add": ("apply_patch", lambda path: {"patch": f"*** Begin Patch\n*** Add File: {path}\n+x\n*** End Patch"}),
    "delete": ("apply_patch", lambda path: {"patch": f"*** Begin Patch\n*** Delete File: {path}\n*** End Patch"}),
    "update": ("apply_patch", lambda path: {"input": f"*** Update File: docs/a.md\n@@\n-x\n*** Update File: {path}"}),
    "move": ("apply_patch", lambda path: {"patch": f"*** Update File: docs/a.md\n*** Move to: {path}\n@@\n-x\n+y"}),
    "indented": ("apply_patch", lambda path: {"patch": f"*** Begin Patch\n \t*** Add File: {path}\n+x"}),
    "heredoc": ("apply_patch", lambda path: {"patch": f"<<'EOF'\r\n*** Begin Patch\r\n*** Add File: {path}\r\nEOF"}),
    "unified": ("apply_diff", lambda path: {"diff": f"--- a/{path}\t2024\n+++ b/{path}\t2024\n@@ -1 +1 @@\n-x\n+y"}),
    "unified, new": ("apply_patch", lambda path: {"patch": f"--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+y"}),
    "renamed": (
        "apply_patch",
        lambda path: {"patch": f"diff --git a/docs/a.md b/{path}\nrename from docs/a.md\nrename to {path}\n"},
    ),
    "emptied": (
        "apply_patch",
        lambda path: {
            "patch": f"--- a/docs/a.md\n+++ b/docs/a.md\ndiff --git a/{path} b/{path}\ndeleted file mode 100644\n"
        },
    ),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("decoy", [{}, {"path": "docs/a.md"}])
def test_a_path_is_found_wherever_a_tool_carries_it(may: Ask, form: str, decoy: dict[str, str]) -> None:
    """Every one must be allowed: another argument that looks better does not help."""
    tool, made = FORMS[form]
    verdicts = [may(tool, **{**decoy, **made(path)}) for path in ("docs/b.md", "src/x.py", "docs/../src/x.py")]
    assert verdicts == [True, False, False]


@pytest.mark.parametrize(
    "arguments",
    [
        {"command": ["apply_patch", "*** Add File: docs/a.md\n*** Add File: /etc/x.md"]},
        {"patch": ["*** Begin Patch", "*** Add File: /etc/x.md"]},
        {"patch": {"text": "*** Add File: /etc/x.md"}},
        {"args": {"patch": "*** Add File: /etc/x.md"}},
    ],
)
@pytest.mark.parametrize("pattern", [None, "^docs/"])
def test_a_patch_in_another_shape_than_text_hides_no_files(
    may: Ask, arguments: dict[str, Any], pattern: str | None
) -> None:
    """It is read, or it is denied: the first of these is how Codex calls the tool."""
    assert not may("apply_patch", pattern=pattern, path="docs/a.md", **arguments)


@pytest.mark.parametrize("tool", EDIT_TOOLS)
def test_every_edit_tool_is_held_to_the_pattern(may: Ask, tool: str) -> None:
    """With and without content, as the tool may truncate."""
    given = [
        {"path": "docs/a.md"},
        {"path": "src/x.py"},
        {"file_path": "src/x.py"},
        {"path": "src/x.py", "content": ""},
    ]
    assert [may(tool, **arguments) for arguments in given] == [True, False, False, False]


@pytest.mark.parametrize("first", ["path", "file_path"])
def test_of_two_paths_both_must_be_allowed(may: Ask, first: str) -> None:
    """Nobody knows which of them the client will use."""
    second = {"path": "file_path", "file_path": "path"}[first]
    assert not may("edit", **{first: "docs/a.md", second: "src/x.py"})


NO_PATH: list[dict[str, Any]] = [{}, {"path": None}, {"path": ""}, {"paths": []}, {"files": "[]"}, {"args": ""}]
NO_PATH += [{"args": {}}, {"args": "<file/>"}, {"content": "docs/a.md"}, {"patch": "*** Begin Patch"}, {"diff": "a"}]


@pytest.mark.parametrize("arguments", NO_PATH)
@pytest.mark.parametrize("tool", ["write_to_file", "apply_patch", "apply_diff"])
def test_without_a_path_a_pattern_denies(may: Ask, tool: str, arguments: dict[str, Any]) -> None:
    """Even one that matches everything."""
    assert not may(tool, pattern="", **arguments)
    assert not may(tool, **arguments)


NO_TEXT = [5, 0, False, True, 1.5, {"name": "src/x.py"}, [5], [["src/x.py"]], [{"uri": "src/x.py"}], "<b"]


@pytest.mark.parametrize("value", NO_TEXT)
@pytest.mark.parametrize("key", ["path", "files", "args"])
def test_what_is_no_path_in_a_paths_place_denies(may: Ask, key: str, value: Any) -> None:
    """Whatever the client makes of it, it is not what was judged."""
    other = "file_path" if key == "path" else "path"
    assert not may("edit", **{other: "docs/a.md", key: value})


@pytest.mark.parametrize(
    "xml",
    [
        "<file><path >src/x.py</path ></file>",
        "<file><path\n>src/x.py</path></file>",
        '<file><path kind="file">src/x.py</path></file>',
        "<file><path>docs/<!-- -->../src/x.py</path></file>",
        "<file><path>docs/<![CDATA[..]]>/src/x.py</path></file>",
        "<file><path>docs/&#46;&#46;/src/x.py</path></file>",
        "<file><path>docs/&#x2e;./src/x.py</path></file>",
        "<file><path>src/x.py",
        "<file><path><path>src/x.py</path></path></file>",
    ],
)
def test_xml_that_says_more_than_plain_tags_and_text_is_denied(may: Ask, xml: str) -> None:
    """A client's parser would read another path out of it."""
    assert not may("multi_apply_diff", args=f"<file><path>docs/a.md</path></file>{xml}")


@pytest.mark.parametrize("between", ["\r", "\x0b", "\x0c", "\x1c", "\x85", "\u2028", "\u2029"])
def test_a_patchs_lines_end_where_a_client_ends_them(may: Ask, between: str) -> None:
    """At a line feed and nowhere else: the path goes on behind everything that only Python takes for an end."""
    assert not may("apply_patch", patch=f"*** Update File: docs/a.md{between}/../../src/x.py\n@@\n-x")


@pytest.mark.parametrize("blank", ["\ufeff", "\u00a0", "\u3000", "\t", "\x0b"])
def test_a_mark_behind_any_blank_is_a_mark(may: Ask, blank: str) -> None:
    """JavaScript's `trim`, by which Roo finds marks, takes a byte order mark for a blank, too."""
    assert not may("apply_patch", patch=f"*** Update File: docs/a.md\n-x\n{blank}*** Delete File: src/x.py")


def test_prose_that_begins_like_a_header_of_git_names_no_file(may: Ask) -> None:
    """Otherwise nobody could write documentation of a button."""
    assert may("apply_diff", path="docs/a.md", diff="<<<<<<< SEARCH\ncopy to clipboard\n=======\ncopy\n>>>>>>> REPLACE")


def test_more_files_than_the_limit_are_denied(may: Ask) -> None:
    """However good each of them is."""
    assert [may("edit", paths=[f"docs/{n}" for n in range(count)]) for count in (1_000, 1_001)] == [True, False]


@pytest.mark.parametrize(
    "arguments", [{"files": [{"path": "src/x.py"}]}, {"path": "docs/a.md", "files": '["src/x.py"]'}]
)
def test_a_pattern_on_reading_holds_for_every_file_that_is_read(may: Ask, arguments: dict[str, Any]) -> None:
    """In Roo it is ignored."""
    assert not may("read_file", name="read", **arguments)


@pytest.mark.parametrize("arguments", [[], ["path", "docs/a.md"], "path", 5, True])
def test_arguments_that_are_no_mapping_name_no_file(root: Path, arguments: Any) -> None:
    """And so a pattern denies."""
    assert isinstance(decided(root, mode(), "write_to_file", arguments), Denied)


# The pattern.


@pytest.mark.parametrize(
    ("pattern", "path", "expected"),
    [
        ("oc", "docs/a.md", True),
        ("^a", "docs/a.md", False),
        (r"\.md$", "docs/a.mdx", False),
        (r"\.MD$", "docs/a.md", False),
        (r"^docs/a\.md$", "./docs//a.md", True),
        (r"^\./", "./docs/a.md", False),
        (r"\.\.", "src/../docs/a.md", False),
        (r"^[^/]+$", "README", True),
    ],
)
def test_a_pattern_is_searched_for_in_the_relative_path(may: Ask, pattern: str, path: str, expected: bool) -> None:
    """In what is left when all detours are gone."""
    assert expected is may("write_to_file", pattern=pattern, path=path)


def test_a_catastrophic_pattern_denies_and_goes_on_denying(root: Path) -> None:
    """Running out of time is not a match, nor is whatever comes after it."""
    asked = mode("^(a|aa)+$")
    context = DecisionContext(ModeCatalog([asked]), str(root))
    paths = ["a" * 120 + "!", "aa"]
    found = [decide(asked, "write_to_file", {"path": path}, context) for path in paths]
    assert [isinstance(each, Denied) and "takes too long" in each.message for each in found] == [True, True]


def test_a_pattern_that_does_not_compile_denies() -> None:
    """The reader leaves such groups out; one that comes by another way must not be open."""
    asked = mode("(")
    context = DecisionContext(ModeCatalog([asked]), os.sep)
    assert isinstance(decide(asked, "write_to_file", {"path": "a"}, context), Denied)


@pytest.mark.parametrize(
    "header",
    [
        'diff --git "a/b.py" "b/b.py"\ndeleted file mode 100644',
        "diff --git b.py b.py",
        "diff -u b.py b.py",
        "Index: b.py",
        "*** a.md\n--- b.py",
        "*** Rename to: b.py",
    ],
)
def test_a_patch_with_a_header_that_nobody_knows_is_refused(header: str, tmp_path: Path) -> None:
    """Also where another file of it is known and allowed."""
    arguments = {"path": "a.md", "patch": f"*** Begin Patch\n{header}\n*** End Patch"}
    assert isinstance(decided(tmp_path, mode(r"\.md$"), "apply_patch", arguments), Denied)


@pytest.mark.parametrize(
    "more",
    [
        {"edits": [{"path": "b.py"}]},
        {"params": {"file_path": "b.py"}},
        {"file-path": "b.py"},
        {"new_path": "b.py"},
        {"destination": "b.py"},
    ],
)
def test_a_second_file_is_found_wherever_it_is_named(more: dict[str, object], tmp_path: Path) -> None:
    """One that is allowed does not cover another that is not."""
    arguments = {"path": "a.md", "content": "x", **more}
    assert isinstance(decided(tmp_path, mode(r"\.md$"), "write_to_file", arguments), Denied)


def test_prose_in_a_diff_is_not_taken_for_a_header(tmp_path: Path) -> None:
    """The body of `apply_diff` is code, and may look like anything."""
    body = "<<<<<<< SEARCH\n*** bold ***\ndiff of two\n=======\n--- dashes\n>>>>>>> REPLACE"
    arguments = {"path": "a.md", "diff": body}
    assert isinstance(decided(tmp_path, mode(r"\.md$"), "apply_diff", arguments), Allowed)
