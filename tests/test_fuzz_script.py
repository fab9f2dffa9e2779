"""The fuzzer runs, does the same again for the same seed, and sees everything that a server may do wrong."""

import subprocess
import sys
from pathlib import Path
from random import Random
from typing import Any

import pytest
from msgspec import UNSET

from modes_actor.wire.versions import ALL_VERSIONS
from tests.process import ROOT
from tests.scripts import run_script, script

ground, judge, messages, oracle = map(script, ("fuzz_ground", "fuzz_judge", "fuzz_messages", "fuzz_oracle"))
permissions, reading, rounds, types = map(script, ("fuzz_permissions", "fuzz_reading", "fuzz_rounds", "fuzz_types"))

FAULTY = f"{sys.executable} {ROOT / 'tests' / 'faulty_server.py'}"

INITIALIZE = (
    b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{},'
    b'"clientInfo":{"name":"a","version":"1"}}}'
)
INITIALIZED = (
    b'{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-03-26","capabilities":{},'
    b'"serverInfo":{"name":"s","version":"1"}}}'
)


def ping(request_id: int) -> bytes:
    return b'{"jsonrpc":"2.0","id":%d,"method":"ping"}' % request_id


def answer(request_id: int) -> bytes:
    return b'{"jsonrpc":"2.0","id":%d,"result":{}}' % request_id


def error(code: int) -> bytes:
    """An answer to request 1."""
    return b'{"jsonrpc":"2.0","id":1,"error":{"code":%d,"message":"m"}}' % code


def verdict_on(sent: list[bytes], said: list[bytes]) -> str | None:
    """The promise that a server broke which said this to that; None if it broke none."""
    expected = oracle.Oracle(permissions.SLUGS, anchors=0)
    judged = judge.Judge(expected, (b"a-secret",))
    for number, line in enumerate(sent):
        understood = reading.understand(line, ground.LINE_LIMIT)
        expected.take(understood, understood.id, number)
    try:
        judged.hear(b"".join(line + b"\n" for line in said))
        judged.at_end()
    except judge.Broken as broken:
        return str(broken.promise)
    return None


# The script.


def test_a_right_server_breaks_no_promise(tmp_path: Path) -> None:
    """A short run of everything, its figures in JSON."""
    chart = tmp_path / "chart.svg"
    words = ("--messages", "1200", "--processes", "1", "--seed", "1", "--json", "--svg", str(chart))
    ran = run_script("fuzz.py", *words, home=tmp_path)
    assert (ran.code, ran.err) == (0, "")
    assert "bad UTF-8" in chart.read_text(encoding="utf-8")
    report = ran.json()
    assert {each["kept"] for each in report["verdicts"]} <= {True, None}
    assert (report["messages"], report["files"], report["failures"]) == (1200, {"modes": 12, "config": 12}, [])
    assert {"valid", "truncated", "bad UTF-8", "array"} <= report["kinds"].keys()
    assert {"result", "-32700", "-32600", "-32601", "-32602", "-32022"} <= report["answers"].keys()


def test_a_wrong_server_is_found_and_its_case_can_be_replayed(tmp_path: Path) -> None:
    """The case is small, fails as long as the server is wrong that it was found with, and not with the right one."""
    words = ("--what", "messages", "--messages", "1000", "--processes", "1", "--seed", "2", "--shrink", "5", "--json")
    ran = run_script("fuzz.py", *words, "--server", FAULTY, "--cases", str(tmp_path), home=tmp_path)
    assert ran.code == 1, ran.err
    (failure,) = ran.json()["failures"]
    assert (failure["what"], failure["promise"]) == ("messages", judge.INTERNAL)
    case = Path(failure["case"])
    assert "logging/setLevel" in case.read_text(encoding="utf-8")
    assert len(case.read_bytes()) < 3000
    assert run_script("fuzz.py", "--replay", str(case), home=tmp_path).code == 1
    ours = f"{sys.executable} -m modes_actor"
    mended = run_script("fuzz.py", "--replay", str(case), "--server", ours, "--json", home=tmp_path)
    assert (mended.code, mended.json()["fails"]) == (0, False)


def test_what_cannot_be_replayed_is_one_line_on_stderr(tmp_path: Path) -> None:
    """With the exit code of a script that could not do its work."""
    ran = run_script("fuzz.py", "--replay", str(tmp_path / "nothing.json"), home=tmp_path)
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)


# The messages.


def test_the_same_seed_gives_the_same_messages() -> None:
    """In every process, and in every episode, also when it goes on with the templates of those before."""
    program = (
        "import sys; sys.path.insert(0, 'scripts'); from fuzz_rounds import Generator\n"
        "pool = []\n"
        "for episode in range(2):\n"
        "    for each in Generator(f'7:{episode}', pool, round_size=150).round().lines: print(each.data)"
    )
    first, second = (
        subprocess.run(
            [sys.executable, "-c", program],
            cwd=ROOT,
            env={"PYTHONHASHSEED": seed, "PYTHONUTF8": "1"},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    )
    assert first.count(b"\n") >= 300
    assert first == second


def test_a_message_from_a_template_is_what_its_bytes_say() -> None:
    """What is understood once, for all ids, is what is understood of each line by itself."""
    generator = rounds.Generator("8", [], round_size=600)
    for line in generator.round().lines:
        alone = reading.understand(line.data, ground.LINE_LIMIT)
        known = line.understood
        assert (alone.kind, alone.code, alone.method) == (known.kind, known.code, known.method)
        assert (alone.fits, alone.meta_fits, alone.version) == (known.fits, known.meta_fits, known.version)
        assert alone.id == (known.id if line.id is None else line.id)


def test_every_method_of_every_version_is_sent() -> None:
    """None is forgotten when a version gets another."""
    known = frozenset().union(*(version.methods for version in ALL_VERSIONS))
    assert known - types.TO_CLIENT == types.METHODS.keys()


@pytest.mark.parametrize("method", types.METHODS)
def test_an_example_fits_the_type_that_it_was_made_from(method: str) -> None:
    """The one who makes and the one who judges agree."""
    rng = Random(method)
    for stateless in (False, True) * 20:
        request = messages.valid_request(rng, method, stateless=stateless)
        assert types.fits_struct(request.get("params", {}), types.METHODS[method])


# The judge.

WRONG = {
    "nothing": ([ping(1)], []),
    "another id": ([ping(1)], [answer(2)]),
    "an id of another type": ([ping(1)], [b'{"jsonrpc":"2.0","id":"1","result":{}}']),
    "two answers": ([ping(1)], [answer(1), answer(1)]),
    "an answer to a notification": (
        [b'{"jsonrpc":"2.0","method":"ping"}'],
        [b'{"jsonrpc":"2.0","id":null,"result":{}}'],
    ),
    "an error instead of a result": ([ping(1)], [b'{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"m"}}']),
    "a result instead of an error": ([b'{"jsonrpc":"2.0","id":1,"method":"nope"}'], [answer(1)]),
    "an internal error": ([ping(1)], [b'{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"m"}}']),
    "an unfounded retryable error": (
        [ping(1)],
        [b'{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"m","data":{"retryable":true}}}'],
    ),
    "both a result and an error": (
        [ping(1)],
        [b'{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":"m"}}'],
    ),
    "another version of JSON-RPC": ([ping(1)], [b'{"jsonrpc":"1.0","id":1,"result":{}}']),
    "one member too many": ([ping(1)], [b'{"jsonrpc":"2.0","id":1,"result":{},"debug":1}']),
    "no JSON": ([ping(1)], [b"debug: a ping", answer(1)]),
    "an empty line": ([ping(1)], [b"", answer(1)]),
    "bytes that are no UTF-8": ([ping(1)], [b'{"jsonrpc":"2.0","id":1,"result":{"a":"\xff"}}', b"\xff"]),
    "a secret": ([ping(1)], [b'{"jsonrpc":"2.0","id":1,"result":{"a":"a-secret"}}']),
    "silence about bad JSON": ([b"oops"], []),
    "no `id: null` before anything was said": ([b"oops"], [b'{"jsonrpc":"2.0","error":{"code":-32700,"message":"m"}}']),
    "a question to a client that has no roots": (
        [INITIALIZE],
        [INITIALIZED, b'{"jsonrpc":"2.0","id":1,"method":"roots/list"}'],
    ),
    "a notification that no version has": ([], [b'{"jsonrpc":"2.0","method":"notifications/nope"}']),
    "an array taken apart": ([INITIALIZE, b"[%b,%b]" % (ping(1), ping(2))], [INITIALIZED, answer(1), answer(2)]),
    "an array in two pieces": (
        [INITIALIZE, b"[%b,%b]" % (ping(1), ping(2))],
        [INITIALIZED, b"[%b]" % answer(1), b"[%b]" % answer(2)],
    ),
    "an answer that was cancelled in vain": (
        [ping(1), b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}'],
        [],
    ),
}


@pytest.mark.parametrize(("sent", "said"), WRONG.values(), ids=WRONG)
def test_what_a_wrong_server_says_breaks_a_promise(sent: list[bytes], said: list[bytes]) -> None:
    """Each by itself."""
    assert verdict_on(sent, said) in judge.PROMISES


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        ([ping(1), ping(2)], [answer(1), answer(2)]),
        ([b"oops", b" ", b"\r"], [b'{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"m"}}']),
        ([INITIALIZE, b"[%b,%b]" % (ping(1), ping(2))], [INITIALIZED, b"[%b,%b]" % (answer(2), answer(1))]),
        ([b'{"jsonrpc":"2.0","id":9,"result":{}}', b'{"jsonrpc":"2.0","method":"x"}'], []),
        (
            [b'{"jsonrpc":"2.0","id":1,"method":"x\xff"}'],
            [b'{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":""}}'],
        ),
    ],
)
def test_what_a_right_server_says_breaks_none(sent: list[bytes], said: list[bytes]) -> None:
    """In any order that is allowed."""
    assert verdict_on(sent, said) is None


# Three requests of one id: the first two may wait and name a mode that nobody has, the third never waits.
CREATE = (
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"create_task","arguments":{"mode_slug":"no"}}}'
)
ONE_ID = [INITIALIZE, CREATE, CREATE, ping(1)]


@pytest.mark.parametrize(
    "said",
    [
        [error(-32001), error(-32001), answer(1)],
        [error(-32600), error(-32001), error(-32001)],
        [error(-32600), error(-32600), error(-32001)],
        [error(-32600), answer(1), error(-32001)],
    ],
)
def test_any_answer_may_be_to_any_request_of_its_id(said: list[bytes]) -> None:
    """Nobody can tell which, so it is enough that there is one way to share them out."""
    assert verdict_on(ONE_ID, [INITIALIZED, *said]) is None


@pytest.mark.parametrize(
    ("said", "promise"),
    [
        ([error(-32001), answer(1)], judge.ONCE),
        ([error(-32600), error(-32600), error(-32001), error(-32600)], judge.ONCE),
        ([error(-32600), error(-32600), error(-32600)], judge.OUTCOME),
        ([error(-32001), answer(1), answer(1)], judge.OUTCOME),
        ([error(-32002)], judge.OUTCOME),
    ],
)
def test_every_request_of_one_id_takes_an_answer_of_its_own(said: list[bytes], promise: str) -> None:
    """None too few, none too many, and each of a class that one of them calls for."""
    assert verdict_on(ONE_ID, [INITIALIZED, *said]) == promise


@pytest.mark.parametrize(
    ("line", "kind", "code", "request_id"),
    [
        (b"", "blank", 0, UNSET),
        (b"\xef\xbb\xbf {} ", "refused", -32600, UNSET),
        (b"NaN", "refused", -32700, UNSET),
        (b'{"jsonrpc":"2.0","id":1.0,"method":"m"}', "refused", -32600, UNSET),
        (b'{"jsonrpc":"1.0","id":"a","method":"m"}', "refused", -32600, "a"),
        (b'{"jsonrpc":"2.0","id":true,"id":3,"method":"m"}', "refused", -32600, 3),
        (b'{"jsonrpc":"2.0","id":"\\ud800","method":"m"}', "refused", -32700, UNSET),
        (b'{"jsonrpc":"2.0","id":3,"method":"m\\ud800"}', "request", 0, 3),
        (b'{"jsonrpc":"2.0","id":3,"params":"\\ud800"}', "refused", -32600, 3),
        (b"x" * (ground.LINE_LIMIT + 1), "refused", -32600, UNSET),
    ],
)
def test_a_line_is_understood_without_the_server(line: bytes, kind: str, code: int, request_id: Any) -> None:
    """By JSON and JSON-RPC alone."""
    found = reading.understand(line, ground.LINE_LIMIT)
    assert (found.kind, found.code, found.id) == (kind, code, request_id)
