"""What the scripts share: how an interruption ends them."""

import pytest

from tests.scripts import script

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
