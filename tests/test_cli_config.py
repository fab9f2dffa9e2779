"""`modes-actor config`: what is in effect and why, and a file to begin with."""

from pathlib import Path

import pytest

from modes_actor.config.commented import commented_defaults
from modes_actor.config.settings import FILE_NAME, SETTINGS
from tests.command_line import Ran, Shell


def origins(ran: Ran) -> dict[str, str]:
    return {row["key"]: row["origin"] for row in ran.json()["settings"]}


def test_every_setting_is_shown_with_its_value_and_its_origin(shell: Shell) -> None:
    """In the order of the file."""
    heading, *rows = shell.run("config", "show").lines()
    assert heading.split() == ["SETTING", "VALUE", "FROM"]
    assert [row.split()[0] for row in rows] == list(SETTINGS)
    assert rows[list(SETTINGS).index("sessions.timeout")].split() == ["sessions.timeout", "3600", "default"]


def test_the_origin_of_a_value_is_told(shell: Shell) -> None:
    """A flag, a variable, a line of the file, or what was found."""
    file = shell.config_dir / FILE_NAME
    file.write_text('{\n"server": {"name": "mine"}\n}', encoding="utf-8")
    found = origins(shell.run("config", "show", "--json", "--log-level", "DEBUG", ROO_SESSION_TIMEOUT="60"))
    assert {key: origin for key, origin in found.items() if origin != "default"} == {
        "server.name": f"{file}:2",
        "paths.project_root": "has .git",
        "sessions.timeout": "ROO_SESSION_TIMEOUT",
        "logging.level": "--log-level",
    }


def test_programs_are_told_all_there_is_to_a_setting(shell: Shell) -> None:
    """Its value as it is, and the names by which it can be set."""
    shown = shell.run("config", "show", "--json").json()
    assert shown["file"] is None
    assert shown["settings"][list(SETTINGS).index("paths.project_root")] == {
        "key": "paths.project_root",
        "value": str(shell.project),
        "origin": "has .git",
        "variable": "ROO_PROJECT_ROOT",
        "flag": "--project-root",
    }


def test_a_project_that_nothing_marks_is_the_working_directory(shell: Shell, tmp_path: Path) -> None:
    """And that is said."""
    plain = tmp_path / "plain"
    plain.mkdir()
    assert origins(shell.run("config", "show", "--json", cwd=plain))["paths.project_root"] == "working directory"


def test_a_configuration_that_cannot_be_used_is_not_shown(shell: Shell) -> None:
    """Its mistakes are."""
    file = shell.config_dir / FILE_NAME
    file.write_text('{"sessions": {"timeoot": 5}}', encoding="utf-8")
    assert shell.run("config", "show") == (
        2,
        "",
        f"modes-actor: {file}:1: sessions.timeoot is not a setting; did you mean sessions.timeout?\n",
    )


def test_a_file_to_begin_with_goes_to_stdout(shell: Shell) -> None:
    """So that it can be redirected."""
    assert shell.run("config", "generate") == (0, commented_defaults(), "")


def test_a_file_to_begin_with_is_written_and_then_in_effect(shell: Shell) -> None:
    """Where it is looked for, with directories made on the way."""
    file = shell.home / "new" / FILE_NAME
    assert shell.run("config", "generate", str(file)).lines() == [f"Written: {file}"]
    assert file.read_text(encoding="utf-8") == commented_defaults()
    shown = shell.run("config", "show", "--config-dir", str(file.parent), "--json").json()
    assert shown["file"] == str(file)


def test_a_file_that_is_there_is_only_replaced_when_that_is_asked_for(shell: Shell) -> None:
    """And then a copy stays."""
    file = shell.project / "config.json"
    file.write_text("mine", encoding="utf-8")
    refused = shell.run("config", "generate", "config.json")
    assert (refused.code, file.read_text(encoding="utf-8")) == (1, "mine")
    assert refused.err == f"modes-actor: {file} is there already: --force replaces it (and keeps a copy)\n"
    replaced = shell.run("config", "generate", "config.json", "--force", "--json").json()
    assert Path(replaced["backup"]).read_text(encoding="utf-8") == "mine"
    assert file.read_text(encoding="utf-8") == commented_defaults()


def test_a_place_that_cannot_be_written_is_told(shell: Shell) -> None:
    """One line."""
    (shell.project / "file").touch()
    refused = shell.run("config", "generate", "file/config.json")
    assert (refused.code, refused.out, refused.err.count("\n")) == (1, "", 1)
    assert refused.err.startswith(f"modes-actor: cannot write {shell.project}/file/config.json: ")


@pytest.mark.parametrize("words", [("config",), ("config", "shw")])
def test_config_alone_says_what_it_can_do(shell: Shell, words: tuple[str, ...]) -> None:
    """Wrong usage."""
    ran = shell.run(*words)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.count("\n") == 1
    assert "config show" in ran.err
