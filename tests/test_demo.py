"""The demo: a real conversation, shown pleasantly, that fails when an answer is not what it should be."""

import os
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

from tests.process import ROOT

DEMO = (sys.executable, str(ROOT / "scripts" / "demo.py"))


def demo(tmp_path: Path, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    inherited = {"HOME": str(tmp_path), "PATH": os.environ["PATH"], "TMPDIR": str(tmp_path)}
    return subprocess.run(
        [*DEMO, *words], env=inherited | environment, cwd=tmp_path, capture_output=True, encoding="utf-8", check=False
    )


def test_the_demo_shows_the_main_job(tmp_path: Path) -> None:
    """Discovery, a task, a yes and a no with its reason, a switch, a restart, the end; and it leaves nothing behind."""
    ran = demo(tmp_path)
    assert (ran.returncode, ran.stderr) == (0, "")
    shown = " ".join(ran.stdout.split())
    for words in (
        "→ initialize ← roo-modes-server 1.0.0, MCP 2025-11-25",
        "← code, architect, ask, debug, orchestrator",
        "→ create_task mode_slug: architect, initial_message: Plan the billing service ← session sess_",
        r"file_path: docs/billing.md ← ✓ allowed (group edit, files matching \.md$)",
        "file_path: src/billing.py ← ✗ Cannot edit 'src/billing.py' in 'architect' mode.",
        "Modes that allow it: code, debug.",
        "← architect → code",
        "file_path: src/billing.py ← ✓ allowed (group edit)",
        "✂ kill -9",
        "← active, architect → code, “Plan the billing service”",
        "← completed: The billing service bills",
    ):
        assert words in shown
    assert list(tmp_path.iterdir()) == []


def test_the_demo_is_not_led_astray_by_the_environment(tmp_path: Path) -> None:
    """What a person has configured for real is not what is shown, and is not touched."""
    ran = demo(tmp_path, ROO_SERVER_NAME="mine", ROO_PERSISTENCE="false", ROO_LOG_LEVEL="nonsense")
    assert (ran.returncode, ran.stderr) == (0, "")


def test_the_demo_can_show_every_message(tmp_path: Path) -> None:
    """As it is on the wire: the lines are JSON-RPC."""
    ran = demo(tmp_path, "--raw")
    assert ran.returncode == 0
    joined = re.sub(r"\n     (?! )", "", ran.stdout)
    methods = re.findall(r'"method": ?"([a-z/]+)"', joined)
    assert methods[:2] == ["initialize", "notifications/initialized"]
    assert {"tools/call", "roots/list"} <= set(methods)


def test_the_demo_draws_a_picture_of_itself(tmp_path: Path) -> None:
    """One that asks no other machine for anything."""
    picture = tmp_path / "demo.svg"
    assert demo(tmp_path, "--svg", str(picture)).returncode == 0
    text = picture.read_text(encoding="utf-8")
    words = "".join(ElementTree.fromstring(text).itertext()).replace("\xa0", " ")
    assert "Cannot edit 'src/billing.py' in 'architect' mode." in words
    assert set(re.findall(r"https?://[^\s\"')]+", text)) == {"http://www.w3.org/2000/svg"}


def words_of(picture: Path) -> str:
    """What is read in a picture, without what differs from run to run."""
    text = picture.read_text(encoding="utf-8")
    words = "".join(ElementTree.fromstring(text).itertext()).replace("\xa0", " ")
    words = re.sub(r"sess_[0-9a-f]+", "sess_X", re.sub(r"after \d+ ms", "after N ms", words))
    words = re.sub(r"kill -9 \d+", "kill -9 N", words)
    return " ".join(re.sub(r"\{[^}]*\}", "", words).split())  # and without its styles


def test_the_picture_in_the_readme_is_one_of_todays_runs(tmp_path: Path) -> None:
    """Word for word; `./scripts/demo --svg scripts/demo.svg` makes it anew."""
    fresh = tmp_path / "demo.svg"
    assert demo(tmp_path, "--svg", str(fresh)).returncode == 0
    assert words_of(ROOT / "scripts" / "demo.svg") == words_of(fresh)


def in_a_shell(tmp_path: Path, command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-c", command.replace("DEMO", " ".join(DEMO))],
        env={"HOME": str(tmp_path), "PATH": os.environ["PATH"], **environment},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )


def test_who_has_seen_enough_may_leave(tmp_path: Path) -> None:
    """Quietly."""
    ran = in_a_shell(tmp_path, "DEMO | head -1; exit ${PIPESTATUS[0]}")
    assert (ran.stdout, ran.stderr, ran.returncode in (0, 141)) == (
        "A conversation of an editor (→) with a server that was just started (←).\n",
        "",
        True,
    )


def test_a_disk_that_is_full_is_one_line(tmp_path: Path) -> None:
    """And no traceback."""
    ran = in_a_shell(tmp_path, "DEMO > /dev/full")
    assert (ran.returncode, ran.stderr) == (1, "The demo cannot be shown: No space left on device\n")


def test_a_terminal_that_knows_few_characters_shows_directions_and_verdicts(tmp_path: Path) -> None:
    """With characters that every terminal has."""
    ran = in_a_shell(tmp_path, "DEMO", PYTHONUTF8="0", PYTHONIOENCODING="latin-1")
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "> initialize" in ran.stdout
    assert "< + allowed" in ran.stdout
    assert "< - Cannot edit" in ran.stdout


def test_the_demo_fails_when_an_answer_is_not_what_it_promises(tmp_path: Path) -> None:
    """Here nothing is kept over the restart, so the task is not found."""
    source = (
        "import importlib.util, sys\n"
        f"spec = importlib.util.spec_from_file_location('demo', {DEMO[1]!r})\n"
        "demo = sys.modules['demo'] = importlib.util.module_from_spec(spec)\n"
        "spec.loader.exec_module(demo)\n"
        "start = demo.start_server\n"
        "def forgetful(*, environment, **options):\n"
        "    return start(environment={**environment, 'ROO_PERSISTENCE': 'false'}, **options)\n"
        "demo.start_server = forgetful\n"
        "sys.exit(demo.main([]))\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", source],
        env={"HOME": str(tmp_path), "PATH": os.environ["PATH"]},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert ran.returncode == 1
    assert ran.stderr.startswith("The demo failed: Task not found: ")
