"""A run as a whole: what it says of itself, and how it ends."""

import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import trio

from tests.process import PATIENCE, ROOT
from tests.scripts import SCRIPTS, run_script, script

fuzz, judge, report, reporting, schemas, worker = map(
    script, ("fuzz", "fuzz_judge", "fuzz_report", "reporting", "fuzz_schemas", "fuzz_worker")
)


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


@pytest.mark.parametrize("what", ["modes", "config"])
def test_a_chart_that_cannot_be_drawn_is_one_line_on_stderr(what: str, tmp_path: Path) -> None:
    """Before anything else is done."""
    ran = run_script("fuzz.py", "--what", what, "--svg", str(tmp_path / "chart.svg"), home=tmp_path)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == f"fuzz.py: there is no chart of {what}: --svg draws messages\n"


def test_the_help_says_what_a_seed_repeats(tmp_path: Path) -> None:
    """And says it once."""
    ran = run_script("fuzz.py", "--help", home=tmp_path)
    assert " ".join(ran.out.split()).count("--seed N the same messages and files") == 1


needs_fifos = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no FIFOs here")

# The second goes on until it is ended, which closes its end of the FIFO, and that is what the first waits for.
FAKE_WORKER = """
import json, os, signal, sys
task = json.loads(sys.argv[1])
broken = {"what": "messages", "seed": "1", "expected": "p", "found": "f"}
if task["number"]:
    fifo = os.open(task["directory"], os.O_WRONLY)
    {goes_on}
with open(task["directory"]) as fifo:
    print(json.dumps({"broken": broken}), flush=True)
    fifo.read()
print(json.dumps({"done": True, "broken": broken}))
"""


@needs_fifos
@pytest.mark.parametrize(
    "goes_on",
    ["signal.pause()", "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n    while True: print('{}', flush=True)"],
    ids=["waiting", "talking"],
)
def test_the_others_stop_as_soon_as_one_has_found_something(goes_on: str, tmp_path: Path) -> None:
    """While it makes its case small, for which it has all the time that it needs."""
    program, fifo = tmp_path / "worker.py", str(tmp_path / "fifo")
    program.write_text(FAKE_WORKER.replace("{goes_on}", goes_on))
    os.mkfifo(fifo)
    tasks = [worker.Task(what="messages", number=n, seed=1, seconds=60.0, count=None, directory=fifo) for n in (0, 1)]
    tallies: dict[int, object] = {}

    async def run() -> None:
        with trio.fail_after(PATIENCE), reporting.Progress("", 1.0) as progress:
            await fuzz.run_task(tasks, tallies, progress, 0.0, 1.0, program=program)

    trio.run(run)
    broken = worker.Case(what="messages", seed="1", expected="p", found="f")
    assert tallies[0] == worker.Tally(done=True, broken=broken)


@needs_fifos
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_leaves_nothing_behind(number: int, tmp_path: Path) -> None:
    """No server, no directory, and no traceback: one line says what happened."""
    fifo, server, temporary = tmp_path / "fifo", tmp_path / "server", tmp_path / "temporary"
    os.mkfifo(fifo)
    temporary.mkdir()
    server.write_text(f'exec 9>"{fifo}"\necho >&9\nexec {sys.executable} -m modes_actor "$@"\n')
    words = ("--what", "messages", "--duration", "1000", "--processes", "2", "--server", f"sh {server}")
    process = subprocess.Popen(
        [sys.executable, str(SCRIPTS / "fuzz.py"), *words],
        cwd=ROOT,
        env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "TMPDIR": str(temporary), "PYTHONUTF8": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    servers = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    try:
        assert select.select([servers], [], [], PATIENCE)[0]  # a server has been started
        process.send_signal(number)
        out, err = process.communicate(timeout=PATIENCE)
        while os.read(servers, 100):
            pass  # up to the end, which there is none of as long as anybody could write
    finally:
        os.close(servers)
        process.kill()
    assert (process.returncode, out, err) == (2, b"", b"Interrupted.\n")
    assert list(temporary.iterdir()) == []
