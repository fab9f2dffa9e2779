"""What the scripts share: how an interruption ends them, and what they say of their options."""

from pathlib import Path

import pytest

from tests.scripts import run_script, script

reporting = script("reporting")
INTERRUPTED = KeyboardInterrupt()
IN_A_GROUP = BaseExceptionGroup("", [OSError(), BaseExceptionGroup("", [INTERRUPTED])])


@pytest.mark.parametrize("raised", [INTERRUPTED, IN_A_GROUP], ids=["alone", "with what came of it"])
def test_an_interruption_is_a_line_and_no_broken_promise(
    raised: BaseException, capsys: pytest.CaptureFixture[str]
) -> None:
    """The exit code is that of a script which could not do its work."""

    def main() -> int:
        raise raised

    assert (reporting.interruptible(main), *capsys.readouterr()) == (2, "", "Interrupted.\n")


def test_what_is_no_interruption_is_left_as_it_is() -> None:
    """An exit code, and any other error."""

    def fail() -> int:
        raise ExceptionGroup("", [OSError("no")])

    assert reporting.interruptible(lambda: 1) == 1
    with pytest.raises(ExceptionGroup):
        reporting.interruptible(fail)


@pytest.mark.parametrize(
    ("name", "repeats"),
    [
        ("faults.py", "the damage, the jumps and the changes that are drawn"),
        ("bench.py", "the order in which servers take their turns"),
        ("load.py", "the mix of requests; how those of several clients interleave depends on timing"),
    ],
)
def test_help_says_what_a_seed_repeats(name: str, repeats: str, tmp_path: Path) -> None:
    """It is not the same in all of them, and never everything."""
    assert f"to repeat {repeats}" in " ".join(run_script(name, "--help", home=tmp_path).out.split())
