"""Rule files: which are read, in which order, within which bounds, and that nothing on a disk breaks it."""

import random
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from modes_actor.modes.rules import (
    MAX_DEPTH,
    MAX_FILE_BYTES,
    MAX_FILES,
    MAX_FOLDERS,
    MAX_TOTAL_BYTES,
    Rule,
    RuleProblem,
    Rules,
    load_rules,
)
from tests.rules_disk import Disk

REPEATABLE = settings(derandomize=True, database=None, deadline=None)
NOTHING = Rules((), ())
TOO_LARGE = "It is larger than 65536 bytes, so the rest was left out."
NO_UTF_8 = "It is not UTF-8, so the bytes that could not be read were replaced."


@pytest.fixture
def disk(tmp_path: Path) -> Disk:
    return Disk(tmp_path)


def test_without_any_files_there_are_no_rules(disk: Disk) -> None:
    """The usual project."""
    assert disk.load() == NOTHING


def test_a_project_and_a_home_that_do_not_exist_have_no_rules(tmp_path: Path) -> None:
    """Missing all the way up."""
    assert load_rules("code", project_root=tmp_path / "a" / "b", home=tmp_path / "c") == NOTHING


def test_rules_of_the_mode_come_first_then_agents_then_rules_for_all(disk: Disk) -> None:
    """And in each the user's before the project's."""
    disk.write("project/.roo/rules/all.md")
    disk.write("home/.roo/rules/all.md")
    disk.write("project/AGENTS.md")
    disk.write("project/AGENTS.local.md")
    disk.write("project/.roo/rules-code/mode.md")
    disk.write("home/.roo/rules-code/mode.md")
    expected = (
        Rule("~/.roo/rules-code/mode.md", "home/.roo/rules-code/mode.md"),
        Rule(".roo/rules-code/mode.md", "project/.roo/rules-code/mode.md"),
        Rule("AGENTS.md", "project/AGENTS.md"),
        Rule("AGENTS.local.md", "project/AGENTS.local.md"),
        Rule("~/.roo/rules/all.md", "home/.roo/rules/all.md"),
        Rule(".roo/rules/all.md", "project/.roo/rules/all.md"),
    )
    assert disk.load() == Rules(expected, ())


def test_rules_of_another_mode_are_not_read(disk: Disk) -> None:
    """Nor those of a mode whose slug begins the same."""
    disk.write("project/.roo/rules-ask/a.md")
    disk.write("project/.roo/rules-code-review/a.md")
    disk.write("project/.roorules-ask")
    assert disk.load() == NOTHING


def test_legacy_files_count_where_no_folder_gave_a_rule(disk: Disk) -> None:
    """One for the mode, one for all."""
    disk.write("project/.roorules-code")
    disk.write("project/.roorules")
    disk.write("project/AGENTS.md")
    assert disk.sources() == [".roorules-code", "AGENTS.md", ".roorules"]


@pytest.mark.parametrize("place", ["home/.roo", "project/.roo"])
def test_a_folder_of_either_scope_replaces_the_legacy_file_of_its_kind_only(disk: Disk, place: str) -> None:
    """A rule of the mode says nothing about the rules for all."""
    disk.write("project/.roorules-code")
    disk.write("project/.roorules")
    rule = disk.write(f"{place}/rules-code/a.md")
    shown = place.replace("home", "~").removeprefix("project/")
    assert disk.sources() == [f"{shown}/rules-code/a.md", ".roorules"]
    rule.unlink()
    disk.write(f"{place}/rules/a.md")
    assert disk.sources() == [".roorules-code", f"{shown}/rules/a.md"]


def test_a_folder_without_a_rule_does_not_replace_the_legacy_file(disk: Disk) -> None:
    """Empty files, blank ones, binary ones and backups are no rules."""
    disk.write("project/.roo/rules/blank.md", " \r\n\t\n")
    disk.write("project/.roo/rules/only-a-mark.md", b"\xef\xbb\xbf\n")
    disk.write("project/.roo/rules/picture.png", b"\x89PNG\0")
    disk.write("project/.roo/rules/rule.md.bak")
    disk.write("project/.roorules")
    assert disk.sources() == [".roorules"]


def test_a_legacy_file_in_the_home_is_not_read(disk: Disk) -> None:
    """Roo Code knows none there."""
    disk.write("home/.roorules")
    disk.write("home/.roo/.roorules")
    assert disk.load() == NOTHING


@pytest.mark.parametrize(
    ("present", "expected"),
    [
        (["AGENTS.md", "AGENT.md"], ["AGENTS.md"]),
        (["AGENT.md"], ["AGENT.md"]),
        (["AGENT.md", "AGENTS.local.md"], ["AGENT.md", "AGENTS.local.md"]),
        (["AGENTS.local.md"], ["AGENTS.local.md"]),
    ],
)
def test_agent_md_stands_in_for_agents_md_and_the_local_one_joins(
    disk: Disk, present: list[str], expected: list[str]
) -> None:
    """Whatever combination there is."""
    for name in present:
        disk.write(f"project/{name}")
    assert disk.sources() == expected


def test_an_empty_agents_md_is_as_good_as_none(disk: Disk) -> None:
    """Then the older name counts."""
    disk.write("project/AGENTS.md", "\n")
    disk.write("project/AGENT.md")
    assert disk.sources() == ["AGENT.md"]


def test_agents_md_of_the_home_is_not_read(disk: Disk) -> None:
    """It is a file of a project."""
    disk.write("home/AGENTS.md")
    disk.write("home/.roo/AGENTS.md")
    assert disk.load() == NOTHING


@pytest.mark.parametrize("slug", ["", "../rules", "a/b", "code\n", "cöde", "a b", ".", "\0", "x" * 5_000])
def test_a_slug_that_names_no_folder_gives_the_other_rules_only(disk: Disk, slug: str) -> None:
    """It is checked elsewhere, and is safe here."""
    disk.write("project/.roo/rules/a.md")
    disk.write("project/AGENTS.md")
    disk.write("project/.roo/rules-/a.md")
    disk.write("project/.roo/rules-a/b/a.md")
    expected = (Rule("AGENTS.md", "project/AGENTS.md"), Rule(".roo/rules/a.md", "project/.roo/rules/a.md"))
    assert disk.load(slug) == Rules(expected, ())


def test_files_come_by_path_whatever_their_case(disk: Disk) -> None:
    """Subfolders take their place among the files."""
    names = ["01.md", "10/b.md", "2.md", "a.md", "B/z/a.md", "B/z.md", "b.md", "C.md", "c.txt", "d", "é.md"]
    for name in reversed(names):
        disk.write(f"project/.roo/rules/{name}")
    assert disk.sources() == [f".roo/rules/{name}" for name in names]


def test_names_that_differ_in_case_alone_come_upper_case_first(disk: Disk) -> None:
    """For folders too, each with all that is in it."""
    if (disk.base / "PROJECT").exists():
        pytest.skip("this file system takes them for one name")
    names = ["A/b.md", "a/a.md", "B.md", "b.md", "c.md"]
    for name in names:
        disk.write(f"project/.roo/rules/{name}")
    assert disk.sources() == [f".roo/rules/{name}" for name in names]


@REPEATABLE
@given(
    st.lists(
        st.lists(st.sampled_from(["a", "B", "a-b", "a.b", "Z", "_", "é", "10"]), min_size=1, max_size=3),
        max_size=8,
    ),
    st.randoms(use_true_random=False),
)
def test_the_order_does_not_depend_on_how_the_files_came_about(paths: list[list[str]], chance: random.Random) -> None:
    """Neither on the order of their making nor on the file system's."""
    names = sorted({"/".join(f"{part}.d" for part in path[:-1]) + f"/{path[-1]}.md" for path in paths})
    chance.shuffle(names)
    with TemporaryDirectory() as base:
        disk = Disk(Path(base))
        for name in names:
            disk.write(f"project/.roo/rules/{name}")
        found = disk.sources()
    files = [PurePosixPath(".roo/rules", name.lstrip("/")) for name in names]
    by_name = sorted(files, key=lambda file: [(part.casefold(), part) for part in file.parts])
    assert [str(file) for file in by_name] == found


@pytest.mark.parametrize(
    "name", [".DS_Store", "Thumbs.db", "a.md.bak", "x.log", ".a.md.swp", "y.tmp", "z.pyc", "q.lock"]
)
def test_what_editors_and_systems_leave_behind_is_no_rule(disk: Disk, name: str) -> None:
    """The same names that Roo Code skips."""
    disk.write(f"project/.roo/rules/{name}")
    disk.write(f"project/.roo/rules/sub/{name}")
    assert disk.load() == NOTHING


def test_names_are_skipped_by_their_exact_ending(disk: Disk) -> None:
    """Hidden files, any extension and folders named like a backup are read, as in Roo Code."""
    for name in [".hidden", "a.LOG", "catalog", "log.md", "v1.old/a.md"]:
        disk.write(f"project/.roo/rules/{name}")
    assert disk.sources() == [f".roo/rules/{name}" for name in [".hidden", "a.LOG", "catalog", "log.md", "v1.old/a.md"]]


def test_a_binary_file_is_left_out_and_reported(disk: Disk) -> None:
    """UTF-16 looks the same, so the sentence names it."""
    disk.write("project/.roo/rules/a.md", "text".encode("utf-16"))
    problem = RuleProblem(".roo/rules/a.md", "It has a NUL byte, so it is binary or UTF-16, and was left out.")
    assert disk.load() == Rules((), (problem,))


@pytest.mark.parametrize(
    "content",
    [
        b"one\ntwo",
        b"one\r\ntwo\r\n",
        b"one\rtwo\r",
        b"\xef\xbb\xbfone\ntwo\n",
        b"\xef\xbb\xbf\r\n  one\r\ntwo \r\n\r\n",
    ],
)
def test_marks_blank_edges_and_line_ends_do_not_show(disk: Disk, content: bytes) -> None:
    """A rule reads the same whichever editor wrote it."""
    disk.write("project/AGENTS.md", content)
    assert disk.only() == ("one\ntwo", [])


def test_bytes_that_are_not_utf_8_are_replaced_and_reported(disk: Disk) -> None:
    """The rest of the rule still counts."""
    disk.write("project/AGENTS.md", "Übung".encode("latin-1"))
    assert disk.only() == ("\ufffdbung", [NO_UTF_8])


def is_utf_8(content: bytes) -> bool:
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True


@REPEATABLE
@given(st.binary(max_size=40), st.booleans())
def test_any_bytes_give_a_clean_rule_or_none(content: bytes, mark: bool) -> None:
    """Stripped, not empty, plain newlines, and a problem exactly if bytes were lost."""
    content = b"\xef\xbb\xbf" * mark + content
    with TemporaryDirectory() as base:
        disk = Disk(Path(base))
        disk.write("project/AGENTS.md", content or b"\n")
        loaded = disk.load()
    for rule in loaded.rules:
        assert rule.text
        assert rule.text == rule.text.strip()
        assert "\r" not in rule.text
    assert bool(loaded.problems) == (b"\0" in content or not is_utf_8(content))


def test_a_file_of_exactly_the_limit_is_whole(disk: Disk) -> None:
    """The bound is what a file may have."""
    disk.write("project/AGENTS.md", "x" * MAX_FILE_BYTES)
    assert disk.only() == ("x" * MAX_FILE_BYTES, [])


def test_a_larger_file_is_cut_after_its_last_whole_line(disk: Disk) -> None:
    """Half a rule could say the opposite."""
    line = "y" * 99 + "\n"
    disk.write("project/AGENTS.md", line * 700)
    assert disk.only() == ((line * (MAX_FILE_BYTES // 100)).strip(), [TOO_LARGE])


def test_a_line_that_ends_at_the_limit_is_kept(disk: Disk) -> None:
    """Its newline is not text."""
    disk.write("project/AGENTS.md", "x" * MAX_FILE_BYTES + "\nmore")
    assert disk.only() == ("x" * MAX_FILE_BYTES, [TOO_LARGE])


@pytest.mark.parametrize("start", ["", "\n\n"])
def test_a_line_longer_than_the_limit_is_cut_between_characters(disk: Disk, start: str) -> None:
    """There is no better place, and half a character is not taken for an encoding error."""
    disk.write("project/AGENTS.md", start + "€" * MAX_FILE_BYTES)
    assert disk.only() == ("€" * ((MAX_FILE_BYTES - len(start)) // 3), [TOO_LARGE])


def test_rules_beyond_the_total_are_left_out_and_reported(disk: Disk) -> None:
    """Those that come first are kept whole; the first that does not fit ends it, even if a later one would fit."""
    for number in range(5):
        disk.write(f"project/.roo/rules-code/{number}.md", "x" * (MAX_FILE_BYTES - 1))
    disk.write("project/AGENTS.md")
    loaded = disk.load()
    assert [f".roo/rules-code/{number}.md" for number in range(4)] == [rule.source for rule in loaded.rules]
    sentence = f"All rules together may have {MAX_TOTAL_BYTES} bytes, so this one and all that follow were left out."
    assert loaded.problems == (RuleProblem(".roo/rules-code/4.md", sentence),)


def test_the_total_may_be_reached(disk: Disk) -> None:
    """To the byte."""
    for number in range(4):
        disk.write(f"project/.roo/rules/{number}.md", "x" * MAX_FILE_BYTES)
    loaded = disk.load()
    assert (sum(len(rule.text) for rule in loaded.rules), loaded.problems) == (MAX_TOTAL_BYTES, ())


def test_replaced_bytes_count_with_what_replaces_them(disk: Disk) -> None:
    """Three bytes for one: the total bounds what goes into a prompt, not what was read."""
    for number in range(2):
        disk.write(f"project/.roo/rules/{number}.md", b"\xff" * MAX_FILE_BYTES)
    assert disk.sources() == [".roo/rules/0.md"]


def test_at_most_two_hundred_files_are_read(disk: Disk) -> None:
    """In all folders together, and one problem says so."""
    for number in range(MAX_FILES // 2 + 1):
        disk.write(f"home/.roo/rules/{number:03}.md")
        disk.write(f"project/.roo/rules/sub/{number:03}.md")
    loaded = disk.load()
    sentence = "At most 200 files of rules are read, so this one and all that follow were left out."
    assert loaded.problems == (RuleProblem(".roo/rules/sub/099.md", sentence),)
    assert len(loaded.rules) == MAX_FILES


def test_a_tree_of_empty_folders_ends_too(disk: Disk) -> None:
    """The folder of rules itself is the first."""
    for number in range(MAX_FOLDERS):
        (disk.root / f".roo/rules/{number:03}").mkdir(parents=True)
    sentence = "At most 200 folders of rules are read, so this one and all that follow were left out."
    assert disk.load() == Rules((), (RuleProblem(".roo/rules/199", sentence),))


def test_folders_are_read_five_deep(disk: Disk) -> None:
    """What is deeper is reported."""
    deepest = "/".join(str(level) for level in range(MAX_DEPTH))
    disk.write(f"project/.roo/rules/{deepest}/in.md")
    disk.write(f"project/.roo/rules/{deepest}/more/out.md")
    loaded = disk.load()
    sentence = "It is more than 5 folders deep, so it was left out."
    assert [rule.source for rule in loaded.rules] == [f".roo/rules/{deepest}/in.md"]
    assert loaded.problems == (RuleProblem(f".roo/rules/{deepest}/more", sentence),)
