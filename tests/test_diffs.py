"""Diffs for people: right, with the numbers of the whole text, and never wider than can be read."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from modes_actor.cli.editors.diffs import WIDTH, unified

REPEATABLE = settings(derandomize=True, database=None, deadline=None, max_examples=300)

texts = st.lists(st.sampled_from("abc"), max_size=12).map(lambda lines: "".join(f"{line}\n" for line in lines))


def patched(before: str, diff: str) -> str:
    """What the diff makes of the text, by its numbers."""
    lines, done = before.splitlines(keepends=True), 0
    made: list[str] = []
    for line in diff.splitlines(keepends=True)[2:]:
        if found := re.fullmatch(r"@@ -(\d+)(?:,(\d+))? \+.* @@\n", line):
            start = int(found[1]) - (found[2] != "0")
            made += lines[done:start]
            done = start
        elif line.startswith("+"):
            made.append(line[1:])
        else:
            assert lines[done] == line[1:]
            made += [line[1:]] if line.startswith(" ") else []
            done += 1
    return "".join(made + lines[done:])


@REPEATABLE
@given(texts, texts)
def test_a_diff_leads_from_the_one_text_to_the_other(before: str, after: str) -> None:
    """Wherever they differ; and if they do not, it is empty."""
    diff = unified(before, after, "old", "new")
    assert patched(before, diff) == after
    assert (diff == "") == (before == after)


@pytest.mark.skipif(shutil.which("patch") is None, reason="there is no `patch` on this system")
def test_patch_understands_it(tmp_path: Path) -> None:
    """With the numbers of the lines in the whole file."""
    lines = [f"{number}\n" for number in range(1000)]
    before, after = "".join(lines), "".join([*lines[:500], "new\n", *lines[501:990], *lines[992:]])
    (tmp_path / "file").write_text(before)
    diff = unified(before, after, "file", "file")
    assert [line for line in diff.splitlines() if line.startswith("@@")] == [
        "@@ -498,7 +498,7 @@",
        "@@ -988,8 +988,6 @@",
    ]
    subprocess.run(["patch", "-s", "-F0", "file"], input=diff, text=True, cwd=tmp_path, check=True)
    assert (tmp_path / "file").read_text() == after


def test_of_a_long_line_only_what_changed_is_shown() -> None:
    """Files without line ends may have millions of characters."""
    before = '{"a": "' + "x" * 1_000_000 + '", "b": 1, "c": "' + "y" * 1_000_000 + '"}'
    after = before.replace('"b": 1', '"b": 1, "new": 2')
    around = "x" * 68, "y" * 75
    assert unified(before, after, "old", "new").splitlines() == [
        "--- old",
        "+++ new",
        "@@ -1 +1 @@",
        f'-…{around[0]}", "b": 1, "c": "{around[1]}…',
        "\\ No newline at end of file",
        f'+…{around[0]}", "b": 1, "new": 2, "c": "{around[1]}…',
        "\\ No newline at end of file",
    ]


def test_long_lines_that_stay_or_come_or_go_are_shortened_too() -> None:
    """No line is wider than can be read."""
    long = "z" * 10_000
    diff = unified(f"{long}\nold\n", f"{long}\nnew\n{long}1\n", "old", "new")
    assert max(map(len, diff.splitlines())) <= WIDTH + 3
    assert [line[:4] for line in diff.splitlines()[3:]] == [" zzz", "-old", "+new", "+zzz"]
