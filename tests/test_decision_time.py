"""How long a decision may take is counted in work, not by the clock on the wall: a busy machine decides the same."""

import itertools
import time
from pathlib import Path

import pytest

from modes_actor.modes.catalog import ModeCatalog, builtin_modes
from modes_actor.modes.decisions import Allowed, DecisionContext, Denied, decide


@pytest.fixture
def context(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DecisionContext:
    """The built-in modes, on a machine on which others get the processor for a minute between any two looks."""
    minutes = itertools.count(0.0, 60.0)
    monkeypatch.setattr(time, "monotonic", lambda: next(minutes))
    return DecisionContext(ModeCatalog(builtin_modes()), str(tmp_path))


def test_a_file_is_allowed_however_long_the_process_had_to_wait(context: DecisionContext) -> None:
    """A pattern that needs no time matches, even if the decision was interrupted."""
    paths = {"path": "docs/a.md", "diff": ""}
    found = decide(context.catalog.by_slug["architect"], "apply_diff", paths, context)
    assert isinstance(found, Allowed)


def test_a_denial_names_all_modes_however_long_the_process_had_to_wait(context: DecisionContext) -> None:
    """The search for modes that would allow it is not cut short by others' work."""
    found = decide(context.catalog.by_slug["orchestrator"], "apply_diff", {"path": "a.md"}, context)
    assert isinstance(found, Denied)
    assert found.allowed_in == ("code", "architect", "debug")
