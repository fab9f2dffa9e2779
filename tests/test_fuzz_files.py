"""Damaged mode files and configurations, and the judgement on how they are read."""

import re
from collections import Counter
from pathlib import Path
from random import Random

import pytest
import trio

from tests.scripts import script

case_module, damage, files, ground, permissions = map(
    script, ("fuzz_case", "fuzz_damage", "fuzz_files", "fuzz_ground", "fuzz_permissions")
)
fuzz, settings, worker = map(script, ("fuzz", "fuzz_settings", "fuzz_worker"))

TIGHT = '{"customModes": [{"slug": "a", "name": "A", "roleDefinition": "r", "groups": ["read"]}]}'


def test_a_mode_that_may_do_more_than_before_is_found() -> None:
    """Here the damage is a group more."""
    able = files.abilities(files.read_modes(TIGHT, file="f", source="project").modes, "/")
    assert files.judged(TIGHT, able, "/", Counter()) is None
    assert files.judged(TIGHT.replace('"read"', '"read", "command"'), able, "/", Counter()).expected == files.NEVER_MORE


def test_a_reader_that_raises_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever it raises."""

    def read_modes(*_: object, **__: object) -> None:
        raise KeyError("slug")

    monkeypatch.setattr(files, "read_modes", read_modes)
    assert files.judged(TIGHT, None, "/", Counter()).expected == files.NO_RAISE


def test_a_decision_that_fails_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is only a denial, to whoever asks; the log knows better."""

    def judge_one(*_: object) -> None:
        raise RecursionError

    monkeypatch.setattr("modes_actor.modes.decisions._judge_one", judge_one)
    assert files.judged(TIGHT, None, "/", Counter()).expected == files.NO_RAISE


def test_damage_to_a_restriction_is_in_one_place() -> None:
    """And the intact text has the modes of the original."""
    tree = files.yaml.safe_load(permissions.MODES)
    for seed in range(30):
        intact, damaged = damage.damaged_restriction(Random(seed), tree)
        assert files.yaml.safe_load(intact) == tree
        assert intact != damaged


@pytest.mark.parametrize("options", ["5", "null", "[]", '["x"]'])
def test_all_the_options_of_a_group_are_damaged_at_once(options: str) -> None:
    """Not only one or the other of them."""
    tree = files.yaml.safe_load(permissions.MODES)
    damaged = {damage.damaged_restriction(Random(seed), tree)[1] for seed in range(300)}
    assert any(f'["edit", {options}]' in text for text in damaged)


def test_a_configuration_that_fails_in_another_way_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nothing but a `ConfigError` is an answer, and it must tell no secret."""

    def fails(*_: object) -> None:
        raise KeyError("x")

    def tells(*_: object) -> None:
        raise settings.ConfigError(ground.SECRET)

    found = []
    for load_config in (fails, tells):
        monkeypatch.setattr(settings, "load_config", load_config)
        found.append(settings.ConfigTrial(tmp_path).judged("{}"))
    assert [re.sub(r":.*", "", sentence) for sentence in found] == ["KeyError", "a ConfigError tells a secret"]


INTACT = """{"customModes": [
  {
    "slug": "a",
    "name": "A",
    "description": "It reads.",
    "roleDefinition": "r",
    "groups": [
      "read"
    ],
    "customInstructions": "Read."
  },
  {"slug": "b", "name": "B", "roleDefinition": "r", "groups": []}
]}"""
SMALL = """{"customModes": [
  {
    "slug": "a",
    "name": "A",
    "roleDefinition": "r",
    "groups": [
      "read"
    ],
  },
]}"""


def test_a_mode_that_may_do_more_becomes_a_small_case(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Lines that both files have are left out of both; the damage stays, and so does what makes the intact one good."""

    def damaged(text: str) -> str:
        return text.replace('"read"', '"read", "command"')

    monkeypatch.setattr(files, "damaged_restriction", lambda *_: (INTACT, damaged(INTACT)))
    task = worker.Task(
        what="modes", number=0, seed=1, seconds=60.0, count=1000, directory=str(tmp_path / "here"), cases=str(tmp_path)
    )
    tally = worker.Tally()
    files.fuzz_files(task, worker.Clock(task), tally)
    case = tally.broken
    assert (case.before, case.after) == (SMALL, damaged(SMALL))
    assert files.replayed(case, case.after).expected == files.NEVER_MORE
    again = trio.run(fuzz.replay, case, (), 1.0)
    assert (again.fails, again.is_same, fuzz.told(case, again, as_json=True)) == (True, True, 1)
