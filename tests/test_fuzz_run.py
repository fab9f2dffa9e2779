"""A run as a whole: what it says of itself, and how it ends."""

from pathlib import Path

import pytest

from tests.scripts import run_script, script

judge, report, schemas, worker = map(script, ("fuzz_judge", "fuzz_report", "fuzz_schemas", "fuzz_worker"))


def test_a_promise_that_nothing_was_held_against_is_not_kept(tmp_path: Path) -> None:
    """Of so few answers, none is in the sample."""
    ran = run_script(
        "fuzz.py", "--what", "messages", "--messages", "20", "--processes", "1", "--seed", "1", "--json", home=tmp_path
    )
    verdicts = {each["promise"]: (each["kept"], each["found"]) for each in ran.json()["verdicts"]}
    assert verdicts[judge.LIVENESS] == (True, "1 servers")
    assert verdicts[judge.ENVELOPE] == (True, f"{sum(ran.json()['answers'].values())} answers")
    assert verdicts[judge.SCHEMA][0] is None
    assert ran.code == 0


@pytest.mark.parametrize("what", ["messages", "modes", "config"])
def test_a_verdict_says_how_much_was_held_against_the_promise(what: str) -> None:
    """And there is one only if that is more than nothing."""
    promises = [each.promise for each in report.verdicts_of({what: []}, [], None)]
    tally = worker.Tally(held=dict.fromkeys(promises, 1000))
    for verdict in report.verdicts_of({what: [tally, tally]}, [], None):
        is_checked = verdict.promise != judge.SCHEMA or schemas.schema_check() is not None
        assert (verdict.kept, verdict.found.startswith("2,000 ")) == ((True, True) if is_checked else (None, False))
    assert {each.kept for each in report.verdicts_of({what: [worker.Tally()]}, [], None)} == {None}
