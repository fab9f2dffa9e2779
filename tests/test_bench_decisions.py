"""What a decision costs is measured by a script that anybody can run."""

from pathlib import Path

import pytest

from tests.scripts import run_script, script

bench = script("bench_decisions")


def test_every_kind_of_decision_is_measured(tmp_path: Path) -> None:
    """With few modes and once, beside a look-up; the exit code says whether the targets are met."""
    ran = run_script("bench_decisions.py", "--modes", "2", "--rounds", "1", "--json", home=tmp_path)
    found = ran.json()
    assert found[0]["name"] == "a look-up in a dict"
    assert [each["name"] for each in found] == [kind.name for kind in bench.kinds(2, str(tmp_path))]
    assert all(each["microseconds"] > 0 for each in found)
    assert ran.code == any(each["met"] is False for each in found)


@pytest.mark.parametrize(("target", "code"), [(1e9, 0), (1e-9, 1)])
def test_a_target_that_is_missed_is_told_by_the_exit_code(
    target: float, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However fast the machine is."""
    monkeypatch.setattr(bench, "GROUP_TARGET", target)
    monkeypatch.setattr(bench, "FILE_TARGET", target)
    monkeypatch.setattr(bench.sys, "argv", ["bench_decisions.py", "--modes", "0", "--rounds", "1"])
    assert bench.main() == code
