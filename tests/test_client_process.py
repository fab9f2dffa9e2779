"""The client and a server that is a process of its own: how it starts, how it ends, and that nothing of it is left."""

import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

from modes_actor.client import Client, Options, ServerGone, start_server
from tests.modes_house import ALL_MODES, Place
from tests.process import PATIENCE, program

OPENS = """
import json, os, signal, subprocess, sys

def open_conversation():
    request = json.loads(sys.stdin.readline())
    info = {"name": str(os.getpid()), "version": "1"}
    result = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": info}
    print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)
    sys.stdin.readline()

"""
"""A server that opens a conversation as its process id, and then does what a test adds."""

STAYS = """
signal.signal(signal.SIGTERM, signal.SIG_IGN)
open_conversation()
while True:
    signal.pause()
"""

posix_only = pytest.mark.skipif(sys.platform == "win32", reason="signals and descriptors as POSIX has them")


@asynccontextmanager
async def started(command: tuple[str, ...] | None = None, **options: Any) -> AsyncIterator[Client]:
    """A child's client, with a bound that no test depends on; afterwards, no descriptor more than before."""
    before = _descriptors()
    try:
        with trio.fail_after(PATIENCE):
            async with start_server(command, **options) as client:
                yield client
    finally:
        assert _descriptors() == before


def _descriptors() -> set[str]:
    return set(os.listdir("/dev/fd")) if os.path.isdir("/dev/fd") else set()


def is_gone(pid: int) -> bool:
    """Ended, and not left as a zombie either."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


@pytest.mark.parametrize("era", ["handshake", "stateless"])
async def test_the_packages_own_server_is_started_by_default(tmp_path: Path, era: Any) -> None:
    """With the modes of the project it is given."""
    place = Place(tmp_path)
    environment = {"ROO_CONFIG_DIR": str(place.global_dir), "HOME": str(place.home)}
    async with started(project_root=place.project, environment=environment, era=era) as client:
        await client.ping()
        assert [mode.slug for mode in (await client.list_modes()).modes] == ALL_MODES
        session = (await client.create_task("docs")).session_id
        assert (await client.get_task_info(session)).mode_slug == "docs"


async def test_what_the_child_says_on_stderr_goes_where_it_is_told_to(tmp_path: Path) -> None:
    """A file collects it."""
    complains = program(f"{OPENS}open_conversation()\nprint('a complaint', file=sys.stderr)")
    with (tmp_path / "log").open("w+b") as collected:
        async with started(complains, stderr=collected, working_directory=tmp_path):
            pass
        collected.seek(0)
        assert collected.read().decode().splitlines() == ["a complaint"]


@pytest.mark.parametrize("stderr", [subprocess.PIPE, subprocess.STDOUT])
async def test_stderr_cannot_go_where_it_would_do_harm(stderr: int) -> None:
    """A pipe that nobody reads would stop the child one day; stdout is for messages."""
    with pytest.raises(ValueError, match="give a file"):
        async with start_server(stderr=stderr):
            pytest.fail("it was started")


async def test_a_server_that_cannot_be_started_is_gone(tmp_path: Path) -> None:
    """With the reason, and nothing left open."""
    with pytest.raises(ServerGone, match=r"could not be started: .*no-such-command"):
        async with started((str(tmp_path / "no-such-command"),)):
            pytest.fail("it was started")


async def test_a_waiting_call_is_told_the_exit_code() -> None:
    """The server read the request and left."""
    async with started(program(f"{OPENS}open_conversation()\nsys.stdin.readline()\nsys.exit(3)")) as client:
        with pytest.raises(ServerGone) as caught:
            await client.ping()
    assert str(caught.value) == "The server ended with exit code 3 before ping was answered"


@posix_only
async def test_a_waiting_call_is_told_the_signal() -> None:
    """The server was killed in the middle of its work."""
    async with started(program(f"{OPENS}open_conversation()\nsys.stdin.readline()")) as client:
        os.kill(int(client.server.name), signal.SIGKILL)
        with pytest.raises(ServerGone, match="The server was ended by signal 9"):
            await client.ping()


async def test_a_server_that_ends_instead_of_opening_is_gone() -> None:
    """The usual fate of a wrong configuration."""
    with pytest.raises(ServerGone, match="exit code 2 before initialize was answered"):
        async with started(program("import sys; sys.exit(2)")):
            pytest.fail("it was opened")


async def test_a_server_whose_own_child_holds_the_pipe_is_gone_all_the_same() -> None:
    """The end of its output never comes, but its own end does."""
    child = "subprocess.Popen([sys.executable, '-c', 'import sys; sys.stdin.buffer.read()'])"
    with pytest.raises(ServerGone, match="exit code 4"):
        async with started(program(f"{OPENS}{child}\nsys.exit(4)"), patience=0.1):
            pytest.fail("it was opened")


@posix_only
async def test_a_server_that_stays_is_asked_to_end_before_it_is_killed(tmp_path: Path) -> None:
    """It gets the chance to tidy up."""
    tidies = "signal.signal(signal.SIGTERM, lambda *_: sys.exit('tidied up'))\nopen_conversation()\nsignal.pause()"
    with (tmp_path / "log").open("w+b") as collected:
        async with started(program(OPENS + tidies), stderr=collected, patience=1):
            pass
        collected.seek(0)
        assert collected.read().decode().splitlines() == ["tidied up"]


@posix_only
async def test_a_server_that_will_not_end_is_killed() -> None:
    """It ignores the end of its input, and the request to terminate."""
    async with started(program(OPENS + STAYS), patience=0.1) as client:
        pid = int(client.server.name)
    assert is_gone(pid)


@posix_only
async def test_a_cancelled_block_leaves_no_child() -> None:
    """Nobody is left to wait for it, so the block does."""
    with trio.CancelScope() as scope:
        async with started(program(OPENS + STAYS), patience=0.1) as client:
            pid = int(client.server.name)
            scope.cancel()
            await client.ping()
    assert scope.cancelled_caught
    assert is_gone(pid)


async def test_serving_does_not_load_the_client(tmp_path: Path) -> None:
    """An editor's server pays only for what it serves."""
    reports = "print('modes_actor.client' in sys.modules, file=sys.stderr)"
    serves = program(f"import sys\nfrom modes_actor.cli import main\nmain(['--log-level', 'ERROR'])\n{reports}")
    options: Options = {"era": "stateless"}
    with (tmp_path / "log").open("w+b") as collected:
        async with started(serves, stderr=collected, environment=_no_home(tmp_path), **options) as client:
            await client.list_modes()
        collected.seek(0)
        assert collected.read().decode().splitlines() == ["False"]


def _no_home(directory: Path) -> dict[str, str]:
    return {"HOME": str(directory), "ROO_CONFIG_DIR": str(directory)}
