"""Mode files on a disk: which counts, what stays when one breaks, what a mode may do by the mode it extends."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from modes_actor.modes import text_files
from modes_actor.modes.catalog import ModeCatalog, ModesChanged, builtin_modes, merge
from modes_actor.modes.decisions import Allowed, DecisionContext, decide
from modes_actor.modes.loader import ModeLoader
from modes_actor.modes.model import ModeConfig, Origin, Source
from modes_actor.modes.servers import McpServer, McpServers, load_servers

REPEATABLE = settings(derandomize=True, database=None, deadline=None)
BUILTIN = ["code", "architect", "ask", "debug", "orchestrator"]


class Disk:
    """A project and a directory for configuration, and a loader that has seen neither."""

    def __init__(self, base: Path) -> None:
        self.project, self.config = base / "project", base / "config"
        self.config.mkdir()
        (self.project / ".roo").mkdir(parents=True)
        self.roomodes = self.project / ".roomodes"
        self.project_servers, self.servers = self.project / ".roo" / "mcp.json", self.config / "mcp.json"
        self.loader = ModeLoader(self.project, self.config)

    def catalog(self) -> ModeCatalog:
        return self.loader.load().catalog

    def custom(self) -> list[tuple[str, str, Source]]:
        """The modes that are not built in, in order: slug, name and where they come from."""
        return [(mode.slug, mode.name, mode.source) for mode in self.catalog() if mode.source != "builtin"]


@pytest.fixture
def disk(tmp_path: Path) -> Disk:
    return Disk(tmp_path)


def mode(slug: str, rest: str = "groups: [read]", *, name: str = "N") -> str:
    return f"- {{slug: {slug}, name: {name}, roleDefinition: R, {rest}}}\n"


def severities(catalog: ModeCatalog) -> list[tuple[str, int, str]]:
    return [(problem.file, problem.line, problem.severity) for problem in catalog.problems]


def test_without_any_file_there_are_the_five_built_in_modes(disk: Disk) -> None:
    """In order, and nothing is wrong."""
    loaded = disk.loader.load()
    assert (BUILTIN, (), McpServers()) == (list(loaded.catalog.by_slug), loaded.catalog.problems, loaded.servers)


WITHOUT_A_NAME = "- {slug: code, name: 5, roleDefinition: R, groups: [read]}\n"


def test_a_replacement_that_cannot_be_used_sets_nothing_free(disk: Disk) -> None:
    """It was to restrict the mode, for all that anybody can tell; mended, it counts."""
    disk.roomodes.write_text(WITHOUT_A_NAME, encoding="utf-8")
    catalog = disk.catalog()
    assert list(catalog.by_slug) == BUILTIN
    code = catalog.by_slug["code"]
    assert (code.name, code.source, code.groups, code.origin) == (
        builtin_modes()[0].name,
        "project",
        (),
        Origin(str(disk.roomodes), 1),
    )
    context = DecisionContext(catalog, str(disk.project))
    assert not isinstance(decide(code, "execute_command", {}, context), Allowed)
    assert str(catalog.problems[-1]).endswith(
        "The builtin mode `code`, which this one replaces, may use no tools until it is mended"
    )
    disk.roomodes.write_text(WITHOUT_A_NAME.replace("5", "mine"), encoding="utf-8")
    assert disk.custom() == [("code", "mine", "project")]


def test_a_mode_of_a_person_is_not_set_free_either(disk: Disk) -> None:
    """By a project's file that means to replace it."""
    (disk.config / "modes.yaml").write_text(mode("mine", "groups: [read, command]"), encoding="utf-8")
    disk.roomodes.write_text("- {slug: mine, roleDefinition: R, groups: []}\n", encoding="utf-8")
    assert [(each.slug, each.groups) for each in disk.catalog() if each.source != "builtin"] == [("mine", ())]


def test_a_mode_that_cannot_be_used_and_replaces_none_is_just_left_out(disk: Disk) -> None:
    """As is one that is there again, and good."""
    disk.roomodes.write_text("- {slug: new}\n- {slug: code}\n" + mode("code"), encoding="utf-8")
    assert disk.custom() == [("code", "N", "project")]


def test_a_directory_that_is_not_there_is_as_good_as_an_empty_one(tmp_path: Path) -> None:
    """Nobody has to make one, and a file in its place is none either."""
    (tmp_path / "file").write_text("")
    for missing in (tmp_path / "missing", tmp_path / "file"):
        loaded = ModeLoader(missing, missing).load()
        assert (list(loaded.catalog.by_slug), loaded.catalog.problems) == (BUILTIN, ())


# Precedence.


def test_project_goes_before_global_goes_before_built_in(disk: Disk) -> None:
    """Each replaces the whole mode and keeps its place; new modes come behind, those of the project last."""
    (disk.config / "modes.yaml").write_text(mode("ask", name="G") + mode("both", name="G") + mode("mine", name="G"))
    disk.roomodes.write_text(mode("new", name="P") + mode("both", name="P") + mode("code", "groups: []", name="P"))
    catalog = disk.catalog()
    assert list(catalog.by_slug) == [*BUILTIN, "both", "mine", "new"]
    assert "".join(each.name if each.source != "builtin" else "-" for each in catalog) == "P-G--PGP"
    assert catalog.get("code") == ModeConfig(
        slug="code", name="P", source="project", origin=Origin(str(disk.roomodes), 3), role_definition="R"
    )


@pytest.mark.parametrize("name", ["modes.yaml", "custom_modes.yaml", "custom_modes.json"])
def test_a_global_file_may_have_any_of_three_names(disk: Disk, name: str) -> None:
    """Each is read, as YAML or as JSON."""
    content = {"customModes": [{"slug": "a", "name": "A", "roleDefinition": "R", "groups": []}]}
    (disk.config / name).write_text(json.dumps(content))
    assert disk.custom() == [("a", "A", "global")]


def test_the_first_of_the_global_files_counts_and_the_other_is_a_warning(disk: Disk) -> None:
    """All of their other modes are there."""
    (disk.config / "modes.yaml").write_text(mode("a", name="First"))
    (disk.config / "custom_modes.json").write_text(mode("b", name="Other") + mode("a", name="Second"))
    assert disk.custom() == [("a", "First", "global"), ("b", "Other", "global")]
    assert severities(disk.catalog()) == [(str(disk.config / "custom_modes.json"), 2, "warning")]


def test_what_a_file_says_of_its_source_does_not_count(disk: Disk) -> None:
    """Where it is found does."""
    disk.roomodes.write_text(mode("a", "groups: [], source: global"))
    assert (disk.custom(), disk.catalog().problems) == ([("a", "N", "project")], ())


slugs = st.lists(st.sampled_from(["code", "ask", "a", "b", "c", "d"]), unique=True, max_size=6)
Pair = tuple[list[str], list[str]]


def shuffled(slugs: list[str]) -> st.SearchStrategy[Pair]:
    """The list, and the same in another order."""
    return st.tuples(st.just(slugs), st.permutations(slugs))


def made(slugs: list[str], source: Source) -> list[ModeConfig]:
    origin = Origin("file", 1)
    return [ModeConfig(slug=slug, name="N", source=source, origin=origin, role_definition="R") for slug in slugs]


@REPEATABLE
@given(slugs.flatmap(shuffled), slugs.flatmap(shuffled))
def test_the_order_within_a_file_decides_nothing_but_the_order(ours: Pair, theirs: Pair) -> None:
    """The same modes count, however each level lists its own."""
    first, second = (merge(builtin_modes(), made(ours[at], "global"), made(theirs[at], "project")) for at in (0, 1))
    assert sorted(first, key=lambda each: each.slug) == sorted(second, key=lambda each: each.slug)


@REPEATABLE
@given(slugs, slugs)
def test_every_slug_is_there_once_from_the_highest_level(ours: list[str], theirs: list[str]) -> None:
    """Built-in slugs first, then the global ones, then the project's, each in the place where it came up first."""
    found = merge(builtin_modes(), made(ours, "global"), made(theirs, "project"))
    order = list(dict.fromkeys([*BUILTIN, *ours, *theirs]))
    sources = ["project" if slug in theirs else "global" if slug in ours else "builtin" for slug in order]
    assert list(zip(order, sources, strict=True)) == [(each.slug, each.source) for each in found]


# What breaks, and what stays.


@pytest.mark.parametrize("text", ["", "# all gone\n", "customModes: [", "customModes: 5", "\x00", "a: b: c", "{}"])
def test_a_file_that_makes_no_sense_keeps_the_modes_it_last_gave(disk: Disk, text: str) -> None:
    """For as long as it makes none, with an error; the next good version counts again."""
    disk.roomodes.write_text(mode("a", name="Old"))
    assert disk.custom() == [("a", "Old", "project")]
    disk.roomodes.write_text(text)
    for _ in range(2):
        assert disk.custom() == [("a", "Old", "project")]
        assert "error" in [problem.severity for problem in disk.catalog().problems]
    disk.roomodes.write_text(mode("b", name="New"))
    assert (disk.custom(), disk.catalog().problems) == ([("b", "New", "project")], ())


def test_a_deleted_file_takes_its_modes_away_for_good(disk: Disk) -> None:
    """One that comes back broken does not bring them back; what it had overridden is there again."""
    disk.roomodes.write_text(mode("a") + mode("code"))
    assert disk.custom() == [("code", "N", "project"), ("a", "N", "project")]
    disk.roomodes.unlink()
    assert (list(disk.catalog()), disk.catalog().problems) == (list(builtin_modes()), ())
    disk.roomodes.write_text("customModes: [")
    assert disk.custom() == []


def test_a_file_that_says_there_are_no_modes_has_none(disk: Disk) -> None:
    """It makes sense, so nothing is kept."""
    disk.roomodes.write_text(mode("a"))
    disk.catalog()
    disk.roomodes.write_text("customModes: []\n")
    assert (disk.custom(), disk.catalog().problems) == ([], ())


def make_huge(path: Path) -> None:
    path.write_text(mode("huge"))
    os.truncate(path, 1 << 40)


NO_FILES: dict[str, Callable[[Path], None]] = {
    "directory": Path.mkdir,
    "pipe": os.mkfifo,
    "loop": lambda path: path.symlink_to(path.name),
    "device": lambda path: path.symlink_to("/dev/zero"),
    "huge file": make_huge,
}


@pytest.mark.parametrize("kind", NO_FILES)
def test_what_is_no_file_is_an_error_and_keeps_the_modes(disk: Disk, kind: str) -> None:
    """Nothing waits, nothing is read without end, nothing raises."""
    disk.roomodes.write_text(mode("a"))
    disk.catalog()
    disk.roomodes.unlink()
    NO_FILES[kind](disk.roomodes)
    assert disk.custom() == [("a", "N", "project")]
    assert severities(disk.catalog()) == [(str(disk.roomodes), 1, "error")]


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="counts descriptors where Linux lists them")
@pytest.mark.parametrize("kind", NO_FILES)
def test_what_is_no_file_costs_no_descriptor(disk: Disk, kind: str) -> None:
    """A watcher loads again and again."""
    NO_FILES[kind](disk.roomodes)
    disk.catalog()
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        disk.catalog()
    assert before == len(os.listdir("/proc/self/fd"))


def test_a_file_of_just_the_largest_size_is_read(disk: Disk) -> None:
    """And one byte more is not."""
    text = mode("a") + "#"
    disk.roomodes.write_text(text + "x" * (text_files.SIZE_LIMIT - len(text)))
    assert disk.custom() == [("a", "N", "project")]
    disk.roomodes.unlink()
    disk.catalog()
    disk.roomodes.write_text(text + "x" * (text_files.SIZE_LIMIT - len(text) + 1))
    assert disk.custom() == []


def test_bytes_that_are_no_utf_8_are_replaced(disk: Disk) -> None:
    """The modes load."""
    disk.roomodes.write_bytes(mode("a", name="'caf\xe9'").encode("latin-1") + mode("b").encode())
    assert disk.custom() == [("a", "caf\ufffd", "project"), ("b", "N", "project")]


def test_bytes_that_are_no_utf_8_are_a_warning(disk: Disk) -> None:
    """Text was changed: whoever wrote it should know, as with rule files."""
    disk.roomodes.write_bytes(mode("a", name="'caf\xe9'").encode("latin-1"))
    assert [problem.severity for problem in disk.catalog().problems] == ["warning"]


@REPEATABLE
@given(st.binary(max_size=60), st.binary(max_size=60), st.binary(max_size=60))
def test_no_bytes_in_any_file_make_the_loader_raise(project: bytes, ours: bytes, servers: bytes) -> None:
    """The built-in modes are always there."""
    with TemporaryDirectory() as base:
        disk = Disk(Path(base))
        disk.roomodes.write_bytes(b"customModes:\n" + project)
        (disk.config / "modes.yaml").write_bytes(ours)
        disk.servers.write_bytes(servers)
        assert list(disk.catalog().by_slug)[:5] == BUILTIN


# Servers.


def test_servers_are_named_by_their_files_and_the_project_goes_first(disk: Disk) -> None:
    """Only a plain false or true of `defaultEnabled` means what it says; anything else enables nothing."""
    off, on, odd = ({"defaultEnabled": value} for value in (False, True, "true"))
    disk.servers.write_text(json.dumps({"mcpServers": {"a": {}, "b": off, "c": {"command": "x"}}}))
    (disk.config / "mcp_settings.json").write_text(json.dumps({"mcpServers": {"c": odd, "d": 5}}))
    disk.project_servers.write_text(json.dumps({"mcpServers": {"a": off, "e": on}}))
    enabled = {"a": False, "b": False, "c": False, "d": True, "e": True}
    expected = {name: McpServer(name, enabled[name]) for name in enabled}
    assert disk.loader.load().servers == McpServers(expected, known=True)


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"mcpServers": []}', '{"mcpServers": null}', "\x00"])
def test_servers_that_cannot_be_read_are_an_error_and_enable_nothing(disk: Disk, text: str) -> None:
    """A server nobody can name might have been switched off there; those of other files stay."""
    disk.servers.write_text('{"mcpServers": {"a": {}}}')
    disk.project_servers.write_text(text)
    servers = disk.loader.load().servers
    assert ({"a": McpServer("a")}, False, True) == (servers.servers, servers.complete, servers.known)
    assert not servers.is_enabled_by_default("b")
    assert [(str(disk.project_servers), "error")] == [
        (problem.file, problem.severity) for problem in disk.catalog().problems
    ]


def test_a_directory_in_place_of_the_servers_enables_nothing(tmp_path: Path) -> None:
    """It is there and cannot be read."""
    assert not load_servers([tmp_path]).is_enabled_by_default("a")


def test_a_server_that_is_there_twice_is_a_problem(disk: Disk) -> None:
    """One of them was switched off, and it does not count."""
    disk.servers.write_text('{"mcpServers": {"a": {"defaultEnabled": false}, "a": {}}}')
    servers = load_servers([disk.servers])
    assert servers.problems
    assert not servers.is_enabled_by_default("a")


CONFLICTS = ["{allowedServers: [a], disallowedServers: [a]}", "{disallowedServers: [a], allowedTools: [mcp__a__x]}"]
CONFLICTS += ["{disallowedTools: [mcp__a__*], allowedTools: [mcp__a__x]}", "{allowedServers: [nobody]}"]
CONFLICTS += ["{disallowedTools: [{serverName: nobody, toolName: x}]}"]


@pytest.mark.parametrize("restrictions", CONFLICTS)
def test_restrictions_that_conflict_or_name_nobody_are_a_warning(disk: Disk, restrictions: str) -> None:
    """One, where they are written; the mode is there."""
    disk.servers.write_text('{"mcpServers": {"a": {}}}')
    disk.roomodes.write_text("#\n" + mode("m", f"groups: [mcp], mcpRestrictions: {restrictions}"))
    assert severities(disk.catalog()) == [(str(disk.roomodes), 2, "warning")]
    assert disk.custom() == [("m", "N", "project")]


# Extending another mode.


USES: dict[str, tuple[str, dict[str, Any]]] = {
    "read": ("read_file", {"path": "a.py"}),
    "edit": ("write_to_file", {"path": "a.py", "content": ""}),
    "command": ("execute_command", {"command": "ls"}),
    "mcp": ("use_mcp_tool", {"server_name": "a", "tool_name": "b"}),
}


def reach(disk: Disk, slug: str) -> set[str]:
    """The groups of which a mode may use a tool; none if it was left out."""
    context = DecisionContext(disk.catalog(), str(disk.project))
    found = context.catalog.get(slug)
    if found is None:
        return set()
    return {group for group, use in USES.items() if isinstance(decide(found, *use, context), Allowed)}


def test_a_mode_has_no_more_than_its_base(disk: Disk) -> None:
    """Whatever it lists, and however far away the base is."""
    disk.roomodes.write_text(
        mode("a", "extends: b, groups: [read, edit, mcp]") + mode("b", "baseMode: ask, groups: [read, edit]")
    )
    assert (reach(disk, "a"), reach(disk, "b")) == ({"read"}, {"read"})


def test_a_mode_without_groups_has_those_of_its_base(disk: Disk) -> None:
    """And its role, if it has none itself."""
    disk.roomodes.write_text("- {slug: a, name: A, extends: ask}\n")
    catalog = disk.catalog()
    assert reach(disk, "a") == {"mcp", "read"}
    assert catalog.role_of(catalog.by_slug["a"]) == catalog.by_slug["ask"].role_definition


@pytest.mark.parametrize("groups", ["[]", "[raed]", "read", "[[edit, {fileRegex: (}]]", "[mcp], mcpRestrictions: x"])
def test_groups_that_all_fall_away_are_not_those_of_the_base(disk: Disk, groups: str) -> None:
    """A mode inherits only where it says nothing: what cannot be understood allows nothing."""
    disk.roomodes.write_text(mode("a", f"extends: code, groups: {groups}"))
    assert reach(disk, "a") == set()


def test_restrictions_that_make_no_sense_take_away_the_mcp_that_is_inherited(disk: Disk) -> None:
    """Wherever the group comes from."""
    disk.roomodes.write_text(mode("a", "extends: code, mcpRestrictions: x"))
    assert "mcp" not in reach(disk, "a")


@pytest.mark.parametrize("base", ["[ask]", "5", "{slug: ask}", "true", '""'])
def test_a_base_that_makes_no_sense_does_not_set_a_mode_free(disk: Disk, base: str) -> None:
    """It was meant to be narrowed by something: it may use nothing."""
    disk.roomodes.write_text(mode("a", f"extends: {base}, groups: [read, edit, command]"))
    assert reach(disk, "a") == set()


def test_a_base_that_is_not_there_and_a_cycle_are_errors_and_allow_nothing(disk: Disk) -> None:
    """Each where the mode is; whoever extends such a mode has nothing either."""
    bases = {"a": "a", "b": "c", "c": "b", "d": "nobody", "e": "c", "f": "d", "ok": "ask"}
    disk.roomodes.write_text("".join(mode(slug, f"extends: {base}, groups: [read]") for slug, base in bases.items()))
    assert severities(disk.catalog()) == [(str(disk.roomodes), line, "error") for line in range(1, 7)]
    assert {slug: reach(disk, slug) for slug in bases} == {slug: {"read"} if slug == "ok" else set() for slug in bases}


# Changes.


def test_a_reload_tells_what_was_added_changed_and_removed(disk: Disk) -> None:
    """A mode that only moved has not changed; one whose rules alone did, has."""
    disk.roomodes.write_text(mode("same") + mode("gone") + mode("rules") + mode("name") + mode("ask"))
    before = disk.catalog()
    text = mode("ask") + mode("name", name="X") + mode("rules", "groups: [[read, {fileRegex: x}]]") + mode("same")
    disk.roomodes.write_text("# moved\n" + text + mode("new"))
    expected = ModesChanged(added=("new",), changed=("name", "rules"), removed=("gone",))
    assert expected == disk.catalog().changes_since(before)


def test_a_reload_of_the_same_files_tells_of_no_change(disk: Disk) -> None:
    """And neither does one of a file that broke."""
    disk.roomodes.write_text(mode("a"))
    before = disk.catalog()
    assert not disk.catalog().changes_since(before)
    disk.roomodes.write_text("[")
    assert not disk.catalog().changes_since(before)


def test_all_files_that_count_can_be_watched(disk: Disk) -> None:
    """Whether they are there or not."""
    config = ["modes.yaml", "custom_modes.yaml", "custom_modes.json", "mcp.json", "mcp_settings.json"]
    expected = {*(disk.config / name for name in config), disk.roomodes, disk.project_servers}
    assert expected == set(disk.loader.files())
