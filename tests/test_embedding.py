"""Modes and their server inside another program: the names the package has, and what they do."""

import subprocess
import sys
from pathlib import Path

import pytest
import trio
import trio.testing

import modes_actor
from modes_actor import Allowed, Config, Denied, connect, load_modes, serve
from modes_actor.config import PathsSection, PersistenceSection, SessionsSection
from modes_actor.wire.errors import ModeNotFound
from tests.modes_house import ALL_MODES, GLOBAL_MODES, ROOMODES


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / ".roomodes").write_text(ROOMODES, encoding="utf-8")
    return tmp_path


@pytest.fixture
def config(tmp_path: Path) -> Config:
    """A person's own, who has modes too."""
    own = tmp_path / "own"
    own.mkdir()
    (own / "modes.yaml").write_text(GLOBAL_MODES, encoding="utf-8")
    return Config(
        paths=PathsSection(global_config_dir=str(own)),
        sessions=SessionsSection(persistence=PersistenceSection(enabled=False)),
    )


@pytest.mark.parametrize("name", modes_actor.__all__)
def test_every_name_is_there(name: str) -> None:
    """And is found by whoever lists them."""
    assert getattr(modes_actor, name) is not None
    assert name in dir(modes_actor)


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    """As of any module."""
    with pytest.raises(AttributeError, match="no attribute 'load_moods'"):
        _ = modes_actor.load_moods


def test_importing_the_package_loads_nothing() -> None:
    """A name costs when it is used."""
    report = (
        "import sys, modes_actor; print([m for m in sys.modules if m.startswith(('modes_actor.', 'trio', 'msgspec'))])"
    )
    assert subprocess.check_output([sys.executable, "-c", report]) == b"[]\n"


def test_the_modes_of_a_project_are_loaded(project: Path, config: Config) -> None:
    """Built-in, the person's, the project's."""
    modes = load_modes(project, config)
    assert ([mode.slug for mode in modes.catalog], modes.problems) == (ALL_MODES, ())


def test_a_mode_allows_and_denies(project: Path, config: Config) -> None:
    """The same decisions as the server's."""
    modes = load_modes(project, config)
    assert isinstance(modes.decide("docs", "write_to_file", {"path": "docs/a.md"}), Allowed)
    denied = modes.decide("docs", "write_to_file", {"path": "src/a.py"})
    assert isinstance(denied, Denied)
    assert denied.message.startswith("Cannot edit 'src/a.py' in 'docs' mode. Only files matching '^docs/' are allowed.")


def test_a_link_that_was_moved_is_seen_by_the_next_decision(project: Path, config: Config) -> None:
    """Nothing is remembered from one decision to the next."""
    modes = load_modes(project, config)
    link = project / "docs"
    for name in ("inside", "src"):
        (project / name).mkdir()
    link.symlink_to(project / "src")
    assert isinstance(modes.decide("docs", "write_to_file", {"path": "docs/a.md"}), Denied)
    link.unlink()
    link.mkdir()
    assert isinstance(modes.decide("docs", "write_to_file", {"path": "docs/a.md"}), Allowed)


def test_a_mode_that_there_is_not_is_an_error(project: Path, config: Config) -> None:
    """With the one that was probably meant."""
    with pytest.raises(ModeNotFound, match="Did you mean `docs`"):
        load_modes(project, config).decide("doks", "read_file")


def test_mistakes_in_files_are_problems(project: Path, config: Config) -> None:
    """They never raise."""
    (project / ".roomodes").write_text("customModes: [{slug: a}]", encoding="utf-8")
    assert [problem.line for problem in load_modes(project, config).problems] == [1]


def test_a_system_prompt_has_the_rules_of_the_project(project: Path, config: Config) -> None:
    """As they are when it is asked for."""
    modes = load_modes(project, config)
    (project / "AGENTS.md").write_text("Tabs, please.", encoding="utf-8")
    assert "Tabs, please." in modes.system_prompt("docs")


async def test_a_program_serves_over_its_own_streams(project: Path, config: Config) -> None:
    """In memory here; a socket will do."""
    to_server, server_receives = trio.testing.memory_stream_one_way_pair()
    server_sends, from_server = trio.testing.memory_stream_one_way_pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(lambda: serve(server_receives, server_sends, project_root=project, config=config))
        async with connect(from_server, to_server) as client:
            assert [mode.slug for mode in (await client.list_modes()).modes] == ALL_MODES
