"""The benchmark runs, sees wrong answers, and judges by what it was told."""

import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import msgspec
import pytest

from tests.interrupted import CLEANLY, TELLING, run_interrupted
from tests.scripts import SCRIPTS, run_script, script

bench, tools = script("bench"), script("bench_tools")


def test_the_benchmark_measures_everyone_and_everything(tmp_path: Path) -> None:
    """In some seconds, and with rough numbers, of which nothing is asked here but that they are there."""
    ran = run_script("bench.py", "--quick", "--json", home=tmp_path)
    assert ran.code in (0, 1), ran.err
    report = ran.json()
    assert list(report["measured"]) == ["modes-actor", "bare msgspec loop", "Python SDK", "Python SDK, high-level"]
    ours = report["measured"]["modes-actor"]
    assert [name for name, value in ours.items() if value is None] == []
    assert [len(report["growth"][kind]) for kind in ("modes", "sessions", "answers")] == [2, 3, 4]
    assert [each["trouble"] for each in report["floods"]] == [None]
    assert (ran.code == 1) == any(verdict["kept"] is False for verdict in report["verdicts"])


RUN_WITH_ANOTHER_PEER = """
import runpy, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever runs the tests may ignore it
path, peer = sys.argv[1:]
sys.path.insert(0, path)
import bench_contenders
bench_contenders.LOW_LEVEL = peer
sys.argv = ["bench.py", "--quick"]
runpy.run_path(f"{path}/bench.py", run_name="__main__")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="there is no /proc to tell which processes there are")
def test_interrupted_nothing_is_left_behind(tmp_path: Path) -> None:
    """No server, even if it is one that does not end by itself, and no directory; and no target was missed."""
    stubborn = f"{TELLING}while True: signal.pause()"
    command = [sys.executable, "-c", RUN_WITH_ANOTHER_PEER, str(SCRIPTS), stubborn]
    assert run_interrupted(command, tmp_path) == CLEANLY


def test_rounds_are_as_many_as_were_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Or those that begin within the time; one at least."""

    def rounds(**asked: Any) -> list[tuple[int, float]]:
        return list(bench.Plan(**{"rounds": None, "seconds": None, "seed": 1, "is_quick": True} | asked).next_rounds())

    assert rounds(rounds=4) == [(1, 0.0), (2, 0.25), (3, 0.5), (4, 0.75)]
    clock = iter([100.0, 100.0, 103.0, 109.0, 110.0])
    monkeypatch.setattr(bench.time, "perf_counter", lambda: next(clock))
    assert rounds(seconds=10.0) == [(1, 0.0), (2, 0.3), (3, 0.9)]
    clock = iter([100.0, 150.0, 200.0])
    assert [number for number, _ in rounds(seconds=10.0)] == [1]


@pytest.mark.parametrize("words", [["--rounds", "2", "--duration", "5"], ["--rounds", "0"], ["--json", "--markdown"]])
def test_options_that_make_no_sense_together_are_refused(words: list[str]) -> None:
    """Before anything is measured."""
    with pytest.raises(SystemExit) as told:
        bench.main(words)
    assert told.value.code == 2


def a_report(*, start_up_ms: float = 1.15, **ours: float) -> Any:
    """One in which every target is met, unless `ours` says otherwise."""
    numbers = dict.fromkeys(bench.METRICS, 1.0)
    good = numbers | {"pings": 200.0, "list_modes": 100.0, "idle_mb": 40.0} | ours
    growth = script("bench_growth")
    return bench.Report(
        seed=1,
        measured={
            bench.OURS: bench.Measured(**good),
            bench.BARE_LOOP: bench.Measured(**numbers),
            bench.PYTHON_SDK: bench.Measured(**numbers),
            bench.TYPESCRIPT_SDK: bench.Measured(**numbers | {"list_modes": 20.0}),
        },
        ping_ratios=[1.0],
        start_up=bench.StartUp(start_up_ms, 1.0),
        growth=growth.Growth(
            [growth.WithModes(*[1] * 7)], [growth.WithSessions(*[1] * 6)], [growth.WithAnswers(*[1] * 4)]
        ),
        floods=[script("bench_floods").Flood("pings", 1.0, 1.0, 1, None)],
    )


def test_targets_that_are_just_met_are_met() -> None:
    """All of them."""
    assert [each for each in bench.judge(a_report()) if each.kept is not True] == []


@pytest.mark.parametrize(
    ("key", "value"),
    [("pings", 199.0), ("list_modes", 99.0), ("idle_mb", 40.1), ("start_up_ms", 1.16), ("p50_microseconds", 1.61)],
)
def test_a_target_that_is_just_missed_is_missed(key: str, value: float) -> None:
    """And the exit code says so."""
    verdicts = bench.judge(a_report(**{key: value}))
    assert any(each.kept is False for each in verdicts)
    assert script("reporting").emit(bench.Report(**_fields(a_report())), [], verdicts, as_json=True) == 1


def test_whatever_is_printed_the_exit_code_tells(monkeypatch: pytest.MonkeyPatch) -> None:
    """Markdown as well as JSON."""
    for ratio, code in ((1.0, 0), (9.9, 1)):
        report = a_report(p50_microseconds=ratio)
        report = msgspec.structs.replace(report, ping_ratios=[ratio], verdicts=bench.judge(report))
        monkeypatch.setattr(bench, "run", lambda *_, report=report, **__: report)
        assert {bench.main([option, "--rounds", "1"]) for option in ("--markdown", "--json")} == {code}


def _fields(report: Any) -> dict[str, Any]:
    return {name: getattr(report, name) for name in report.__struct_fields__}


def test_importing_is_measured_until_it_is_done_and_not_until_the_process_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As our server is, until its first answer: the clock is looked at before an end is waited for."""
    told: list[str] = []

    class Told(tools.Child):  # type: ignore[misc, name-defined]  # mypy does not know the modules of scripts
        def first_line(self) -> float:
            told.append("line")
            return float(super().first_line())

        def finish(self) -> None:
            told.append("end")
            super().finish()

    monkeypatch.setattr(script("bench_contenders"), "Child", Told)
    ours, *_ = bench.contenders(tmp_path, less=1, peers=False)
    took = bench._start_up_seconds(ours, tmp_path)
    assert (told, min(took) > 0) == (["line", "end"] * 2, True)


def test_a_server_may_keep_what_it_compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the installed packages beside it did, whatever this shell says; else its start-up is that of a compiler."""
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    with tools.Child("one that tells", ["-c", "import sys; print(sys.dont_write_bytecode)"]) as child:
        assert child.read_to_end() == b"False\n"


PINGS = range(1, 4)


def answers(*answers: Any) -> bytes:
    return b"".join(msgspec.json.encode({"jsonrpc": "2.0", **answer}) + b"\n" for answer in answers)


@pytest.mark.parametrize(
    ("said", "trouble"),
    [
        (answers(*({"id": n, "result": {}} for n in PINGS)), None),
        (answers(*({"id": n, "result": {}} for n in (1, 2))), "2 answers to 3 requests, not one for each"),
        (answers(*({"id": n, "result": {}} for n in (1, 2, 2, 3))), "4 answers to 3 requests, not one for each"),
        (answers({"id": 1, "error": {"code": 1, "message": "no"}}), "an answer is an error: "),
        (answers({"id": 1, "result": {"content": [], "isError": True}}), "a tool refused: "),
        (answers({"id": 1}), "an answer has no result"),
        (b"oops\n", "an answer is no JSON-RPC: "),
    ],
)
def test_a_wrong_answer_is_seen(said: bytes, trouble: str | None) -> None:
    """What was measured was the right thing."""
    found = tools.trouble_with(said, tools.PING, PINGS)
    assert found is None if trouble is None else (found or "").startswith(trouble)


def test_the_readme_gets_the_tables_and_the_chart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between its marks; everything else stays."""
    readme = tmp_path / "README.md"
    readme.write_text(f"before\n{bench.SIDE_BY_SIDE_IN_README}\nold\n{bench.END_IN_README}\nafter\n", encoding="utf-8")
    (tmp_path / "scripts").mkdir()
    monkeypatch.setattr(bench, "ROOT", tmp_path)
    monkeypatch.setattr(bench, "CHART", tmp_path / "scripts" / "bench.svg")
    report = a_report()
    bench.write_readme(msgspec.structs.replace(report, verdicts=bench.judge(report)))
    text = readme.read_text(encoding="utf-8")
    assert text.startswith(f"before\n{bench.SIDE_BY_SIDE_IN_README}\n\n| target")
    picture = "![modes-actor, bare msgspec loop, Python SDK, TypeScript SDK](scripts/bench.svg)"
    assert text.endswith(f"{picture}\n\n{bench.END_IN_README}\nafter\n")
    assert "old" not in text
    ElementTree.parse(tmp_path / "scripts" / "bench.svg")
