"""A failure's case: it fails again when it is played again, and it is small enough to be read."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trio

from tests.process import ROOT
from tests.scripts import run_script, script

case_module, ground, judge, schemas = map(script, ("fuzz_case", "fuzz_ground", "fuzz_judge", "fuzz_schemas"))

PING = '{"jsonrpc":"2.0","id":1,"method":"ping"}'

Server = Callable[[str], str]


@pytest.fixture
def wrong_server(tmp_path: Path) -> Server:
    """The command of our server with some members in the result of every ping but those after a round."""

    def command(members: str) -> str:
        program = tmp_path / "server.py"
        program.write_text(
            f"import sys; sys.path.insert(0, {str(ROOT)!r})\n"
            "from msgspec import Raw\n"
            "from modes_actor.actor.outgoing import Outgoing\n"
            "from modes_actor.cli import main\n"
            "from modes_actor.wire.jsonrpc import Response\n"
            "post = Outgoing.post\n"
            "def wrong(self, message):\n"
            "    is_ours = isinstance(message, Response) and not str(message.id).startswith('barrier')\n"
            f"    post(self, Response(message.id, Raw(b'{{{members}}}')) if is_ours else message)\n"
            "Outgoing.post = wrong\n"
            "raise SystemExit(main())\n"
        )
        return f"{sys.executable} {program}"

    return command


def case_of(*lines: str, promise: str) -> Any:
    return case_module.Case(
        what="messages",
        seed="1:0:0",
        expected=promise,
        found="it was found",
        plan=case_module.Plan(anchored=False),
        rounds=[case_module.CaseRound(list(lines))],
    )


def saved(case: Any, directory: Path) -> str:
    return str(case_module.save(case, directory))


needs_schemas = pytest.mark.skipif(schemas.schema_check() is None, reason="there are no schemas here")


@needs_schemas
def test_an_answer_that_is_not_valid_is_found_again(tmp_path: Path, wrong_server: Server) -> None:
    """By --replay, in which no answer is left out of the sample."""
    case = saved(case_of(PING, promise=judge.SCHEMA), tmp_path)
    ran = run_script("fuzz.py", "--replay", case, "--server", wrong_server('"_meta":5'), "--json", home=tmp_path)
    assert (ran.code, ran.json()["promise"]) == (1, judge.SCHEMA)


def test_a_case_that_fails_in_another_way_says_so(tmp_path: Path, wrong_server: Server) -> None:
    """With both promises, and it fails nevertheless."""
    case = saved(case_of(PING, promise=judge.ONCE), tmp_path)
    server = wrong_server(f'"told":"{ground.SECRET}"')
    ran = run_script("fuzz.py", "--replay", case, "--server", server, home=tmp_path)
    first, second = ran.out.splitlines()
    assert first.startswith(f"It fails in another way: {judge.SECRETS}: ")
    assert second == f"It was: {judge.ONCE}: it was found"
    as_json = run_script("fuzz.py", "--replay", case, "--server", server, "--json", home=tmp_path)
    assert (as_json.json()["fails"], as_json.json()["is_same"]) == (True, False)
    assert (ran.code, as_json.code) == (1, 1)


@needs_schemas
def test_the_case_of_an_answer_that_is_not_valid_becomes_small(tmp_path: Path, wrong_server: Server) -> None:
    """Down to the message, and that to its members."""
    case = case_of('{"jsonrpc":"2.0","method":"notifications/x"}', PING, promise=judge.SCHEMA)
    broken = judge.Broken(judge.SCHEMA, "it was found")

    async def shrunk() -> Any:
        made = await ground.make_ground(tmp_path / "ground", tuple(wrong_server('"_meta":5').split()))
        return await case_module.shrunk(case, made, broken, trials=20, name="small")

    small = trio.run(shrunk)
    assert [line for each in small.rounds for line in each.lines] == [PING.replace("1", "0")]


def test_what_does_not_matter_is_left_out_of_a_case() -> None:
    """Down to the two items that fail together."""

    async def still(items: Any) -> bool:
        return {3, 77} <= set(items)

    assert trio.run(case_module.minimal, list(range(100)), still) == [3, 77]


def test_a_message_is_made_smaller_member_by_member() -> None:
    """Each way is tried by itself, the smallest result first."""
    assert case_module.reductions(b'{"a":{"b":1},"c":"xy"}') == [
        b'{"c":"xy"}',
        b'{"a":{"b":1}}',
        b'{"a":{},"c":"xy"}',
        b'{"a":{"b":1},"c":""}',
        b'{"a":{"b":1},"c":"x"}',
        b'{"a":{"b":1},"c":"y"}',
        b'{"a":{"b":0},"c":"xy"}',
    ]


def test_a_number_becomes_nought_and_a_text_either_half() -> None:
    """That is all that can be done to them; true is no number."""
    assert case_module.reductions(b'[12.5,true,"abc"]')[3:] == [
        b'[0,true,"abc"]',
        b'[12.5,true,""]',
        b'[12.5,true,"a"]',
        b'[12.5,true,"bc"]',
    ]
    assert case_module.reductions(b"0") == []


def test_bytes_that_are_no_text_survive_in_a_case() -> None:
    """They are kept in base64, and everything else as it is."""
    lines = [b'{"id":1}', b"\xff\x00", b"a\x1b", b"a:\n\t- b\n"]
    assert [case_module.bytes_of(case_module.written(line)) for line in lines] == lines


def test_a_file_is_kept_as_text() -> None:
    """It has lines, and is for people to read."""
    assert case_module.written(b"a:\n\t- \xc3\xa9\n") == "a:\n\t- é\n"
