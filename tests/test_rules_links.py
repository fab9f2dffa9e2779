"""Rules behind links, odd things in the place of files, files that change: nothing on a disk breaks the reading."""

import errno
import os
from pathlib import Path

import pytest

from modes_actor.modes import rules as rules_module
from modes_actor.modes.rules import (
    Rule,
    RuleProblem,
    Rules,
    load_rules,
)
from tests.rules_disk import Disk

NOTHING = Rules((), ())
OUTSIDE_PROJECT = "A link leads outside the project, so it was left out."
OUTSIDE_ROO = "A link leads outside ~/.roo, so it was left out."


@pytest.fixture
def disk(tmp_path: Path) -> Disk:
    return Disk(tmp_path)


def test_links_inside_the_project_are_followed_under_their_own_names(disk: Disk) -> None:
    """To files and to folders."""
    disk.write("project/docs/style.md", "style")
    disk.write("project/docs/more/b.md", "more")
    disk.link("project/.roo/rules/a.md", "../../docs/style.md")
    disk.link("project/.roo/rules/linked", disk.root / "docs/more")
    expected = (Rule(".roo/rules/a.md", "style"), Rule(".roo/rules/linked/b.md", "more"))
    assert disk.load() == Rules(expected, ())


@pytest.mark.parametrize("target", ["secret/key", "secret", "secret/missing", "home/.roo/rules/a.md", "project-2/a.md"])
def test_a_link_that_leads_outside_the_project_is_not_followed(disk: Disk, target: str) -> None:
    """To a file, a folder, nothing, the user's rules or a neighbour with a similar name: all the same."""
    disk.write("secret/key")
    disk.write("project-2/a.md")
    disk.link("project/.roo/rules-code/a.md", disk.base / target)
    assert disk.load() == Rules((), (RuleProblem(".roo/rules-code/a.md", OUTSIDE_PROJECT),))


@pytest.mark.parametrize("target", ["secret/key", "home/.ssh/id", "project/a.md"])
def test_a_link_that_leads_outside_the_users_folder_is_not_followed(disk: Disk, target: str) -> None:
    """Not even into the rest of the home."""
    disk.write(target)
    disk.link("home/.roo/rules/a.md", disk.base / target)
    assert disk.load() == Rules((), (RuleProblem("~/.roo/rules/a.md", OUTSIDE_ROO),))


@pytest.mark.parametrize("name", ["AGENTS.md", "AGENTS.local.md", ".roorules", ".roorules-code", ".roo/rules"])
def test_no_place_of_rules_may_lead_outside_itself(disk: Disk, name: str) -> None:
    """Each is checked, not only what is inside a folder."""
    disk.write("secret/key")
    disk.link(f"project/{name}", "../../secret" if "/" in name else "../secret/key")
    assert disk.load() == Rules((), (RuleProblem(name, OUTSIDE_PROJECT),))


def test_a_chain_of_links_is_followed_to_its_end(disk: Disk) -> None:
    """A link inside the project that leads to a link that leads outside, and a folder above that is a link."""
    disk.write("secret/rules/key")
    disk.link("project/way", "../secret")
    disk.link("project/.roo/rules/a.md", "../../way/rules/key")
    disk.link("project/.roo/rules/b.md", "../../way/../project/AGENTS.md")
    assert disk.load().problems == (
        RuleProblem(".roo/rules/a.md", OUTSIDE_PROJECT),
        RuleProblem(".roo/rules/b.md", "It is a link that leads nowhere."),
    )


def test_a_roo_folder_of_a_project_that_is_a_link_outside_gives_nothing(disk: Disk) -> None:
    """Though no rule in it is a link."""
    disk.write("secret/rules/key")
    disk.link("project/.roo", "../secret")
    expected = [RuleProblem(f".roo/{kind}", OUTSIDE_PROJECT) for kind in ("rules-code", "rules")]
    assert disk.load() == Rules((), tuple(expected))


def test_the_users_own_folder_and_the_project_may_be_reached_by_links(disk: Disk) -> None:
    """The user chose those, as people do who keep their settings in a repository."""
    disk.write("dotfiles/roo/rules/a.md")
    disk.link("home/.roo", "../dotfiles/roo")
    disk.write("project/AGENTS.md")
    disk.link("short", "project")
    loaded = load_rules("code", project_root=disk.base / "short", home=disk.home)
    expected = (Rule("AGENTS.md", "project/AGENTS.md"), Rule("~/.roo/rules/a.md", "dotfiles/roo/rules/a.md"))
    assert loaded == Rules(expected, ())


def test_cycles_of_links_end(disk: Disk) -> None:
    """Each file comes once, under the first name in order."""
    disk.write("project/.roo/rules/a.md")
    disk.write("project/.roo/rules/sub/b.md")
    disk.link("project/.roo/rules/sub/self", ".")
    disk.link("project/.roo/rules/sub/up", "..")
    disk.link("project/.roo/rules/zoo", "..")
    expected = (
        Rule(".roo/rules/a.md", "project/.roo/rules/a.md"),
        Rule(".roo/rules/sub/b.md", "project/.roo/rules/sub/b.md"),
    )
    assert disk.load() == Rules(expected, ())


def test_a_folder_first_met_far_down_is_read_in_full_where_it_is_nearer(disk: Disk) -> None:
    """A link must not make the depth of the real folder smaller."""
    disk.write("project/.roo/rules/z/1/2/3/4/deep.md", "deep")
    disk.link("project/.roo/rules/a/b/link", "../../z")
    assert disk.sources() == [".roo/rules/z/1/2/3/4/deep.md"]


def test_a_file_with_several_names_is_one_rule(disk: Disk) -> None:
    """Many projects link one such file to another; and it still replaces the legacy file of its second kind."""
    disk.write("project/AGENTS.md")
    disk.link("project/AGENTS.local.md", "AGENTS.md")
    disk.link("project/.roo/rules/agents.md", "../../AGENTS.md")
    disk.write("project/.roorules")
    assert disk.load() == Rules((Rule("AGENTS.md", "project/AGENTS.md"),), ())


def test_a_project_that_is_the_home_has_each_rule_once(disk: Disk) -> None:
    """As the user's."""
    disk.write("home/.roo/rules/a.md")
    loaded = load_rules("code", project_root=disk.home, home=disk.home)
    assert loaded == Rules((Rule("~/.roo/rules/a.md", "home/.roo/rules/a.md"),), ())


def test_links_that_lead_nowhere_are_reported(disk: Disk) -> None:
    """Somebody meant them to lead somewhere."""
    disk.link("project/.roo/rules/gone.md", "missing.md")
    assert disk.load() == Rules((), (RuleProblem(".roo/rules/gone.md", "It is a link that leads nowhere."),))


def test_links_in_a_circle_are_reported(disk: Disk) -> None:
    """There is nothing at their end."""
    disk.link("project/.roo/rules/a.md", "b.md")
    disk.link("project/.roo/rules/b.md", "a.md")
    sentence = f"It could not be read: {os.strerror(errno.ELOOP)}."
    assert disk.load() == Rules((), tuple(RuleProblem(f".roo/rules/{name}", sentence) for name in ("a.md", "b.md")))


@pytest.mark.parametrize("name", [".roo", "home/.roo"])
def test_a_file_in_place_of_the_roo_folder_is_no_rule(disk: Disk, name: str) -> None:
    """It may be something else's."""
    disk.write(name if "/" in name else f"project/{name}")
    assert disk.load() == NOTHING


def test_a_file_in_place_of_a_folder_of_rules_is_reported(disk: Disk) -> None:
    """And the legacy file counts."""
    disk.write("project/.roo/rules")
    disk.write("project/.roorules")
    problem = RuleProblem(".roo/rules", "It is not a folder, so no rules were read from it.")
    assert disk.load() == Rules((Rule(".roorules", "project/.roorules"),), (problem,))


@pytest.mark.parametrize("name", ["AGENTS.md", ".roorules", ".roorules-code"])
def test_a_folder_in_place_of_a_file_is_reported(disk: Disk, name: str) -> None:
    """Its files are not read."""
    disk.write(f"project/{name}/a.md")
    assert disk.load() == Rules((), (RuleProblem(name, "It is not a regular file, so it was left out."),))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs FIFOs")
def test_a_fifo_is_not_waited_for(disk: Disk) -> None:
    """Opening one would wait for a writer for ever."""
    disk.write("project/.roo/rules/b.md")
    os.mkfifo(disk.root / ".roo/rules/a.md")
    problem = RuleProblem(".roo/rules/a.md", "It is not a regular file, so it was left out.")
    assert disk.load() == Rules((Rule(".roo/rules/b.md", "project/.roo/rules/b.md"),), (problem,))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs FIFOs")
def test_a_file_that_turns_into_a_fifo_or_a_link_is_not_read(disk: Disk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even between the look and the opening."""
    secret = disk.write("secret")
    disk.write("project/AGENTS.md")
    disk.write("project/AGENTS.local.md")
    beginning = rules_module._beginning

    def swap(real: str) -> bytes:
        path = Path(real)
        path.unlink()
        if path.name == "AGENTS.md":
            os.mkfifo(path)
        else:
            path.symlink_to(secret)
        return beginning(real)

    monkeypatch.setattr(rules_module, "_beginning", swap)
    sentence = f"It could not be read: {os.strerror(errno.ELOOP)}."
    assert disk.load() == Rules((), (RuleProblem("AGENTS.local.md", sentence),))


def test_a_file_that_vanishes_before_it_is_read_is_no_problem(disk: Disk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Editors replace files while we look."""
    disk.write("project/.roo/rules/a.md")
    disk.write("project/.roo/rules/b.md")
    beginning = rules_module._beginning

    def vanish(real: str) -> bytes:
        if real.endswith("a.md"):
            Path(real).unlink()
        return beginning(real)

    monkeypatch.setattr(rules_module, "_beginning", vanish)
    assert disk.load() == Rules((Rule(".roo/rules/b.md", "project/.roo/rules/b.md"),), ())


def test_names_that_vanish_after_the_listing_are_no_problem(disk: Disk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files and folders alike."""
    disk.write("project/.roo/rules/b.md")
    listdir = os.listdir
    monkeypatch.setattr(os, "listdir", lambda path: ["a.md", "sub", *listdir(path)])
    assert disk.load() == Rules((Rule(".roo/rules/b.md", "project/.roo/rules/b.md"),), ())


@pytest.mark.parametrize(
    ("error", "problems"),
    [
        (FileNotFoundError(errno.ENOENT, "gone"), ()),
        (PermissionError(errno.EACCES, "Not for you"), ("It could not be read: Not for you.",)),
        (OSError("odd"), ("It could not be read: OSError.",)),
    ],
)
def test_a_folder_that_cannot_be_listed_is_reported_unless_it_is_gone(
    disk: Disk, monkeypatch: pytest.MonkeyPatch, error: OSError, problems: tuple[str, ...]
) -> None:
    """The other places are read all the same."""
    disk.write("project/.roo/rules/a.md")
    disk.write("project/AGENTS.md")

    def refuse(path: Path) -> list[str]:
        raise error

    monkeypatch.setattr(os, "listdir", refuse)
    expected = tuple(RuleProblem(".roo/rules", sentence) for sentence in problems)
    assert disk.load() == Rules((Rule("AGENTS.md", "project/AGENTS.md"),), expected)


def test_a_file_that_cannot_be_read_is_reported(disk: Disk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once, though two names lead to it."""
    disk.write("project/AGENTS.md")
    disk.link("project/AGENT.md", "AGENTS.md")

    def refuse(path: Path) -> bytes:
        raise PermissionError(errno.EACCES, "Not for you")

    monkeypatch.setattr(rules_module, "_beginning", refuse)
    assert disk.load() == Rules((), (RuleProblem("AGENTS.md", "It could not be read: Not for you."),))


def test_a_name_that_is_no_text_is_shown_on_one_line(disk: Disk) -> None:
    """A heading stays a heading, and the source can be sent as UTF-8."""
    name = b"a\n# b\xff.md"
    (disk.root / ".roo/rules").mkdir(parents=True)
    try:
        Path(os.fsdecode(os.path.join(os.fsencode(disk.root), b".roo/rules", name))).write_text("text")
    except OSError:
        pytest.skip("this file system takes no such name")
    assert disk.load() == Rules((Rule(".roo/rules/a?# b?.md", "text"),), ())


PLACES = [
    "project/AGENTS.md",
    "project/AGENTS.local.md",
    "home/.roo/rules-code/a.md",
    "project/.roo/rules-code/deep/a.md",
    "project/.roorules-code",
    "home/.roo/rules/a.md",
    "project/.roo/rules/a.md",
    "project/.roorules",
]


@pytest.mark.parametrize("place", PLACES)
def test_a_change_at_any_place_of_rules_shows_in_the_signature(disk: Disk, place: str) -> None:
    """When a file comes, when it changes, and when it goes."""
    seen = [disk.signature()]
    disk.write(place, "one")
    seen.append(disk.signature())
    disk.write(place, "other")
    seen.append(disk.signature())
    (disk.base / place).unlink()
    seen.append(disk.signature())
    assert len(set(seen[:3])) == 3
    assert seen[3] not in seen[1:3]


def test_what_is_no_rule_does_not_show_in_the_signature(disk: Disk) -> None:
    """A project has many files, and a save of one of them must not be taken for a change of rules."""
    before = disk.signature()
    disk.write("project/src/app.py", "x")
    disk.write("project/.roo/mcp.json", "{}")
    assert before == disk.signature()
