"""One server, from its start to its end, spoken to in rounds and judged after each.

A round is written in pieces that are cut anywhere, ends with a ping of ours, and is over when that and everything else
that must be answered has been.
"""

import itertools
import re
import subprocess
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import IO, Final

import msgspec
import trio
from fuzz_expectation import ANCHORS, Expectation, anchor, anchor_mode
from fuzz_ground import LINE_LIMIT, Ground
from fuzz_judge import LIVENESS, LOG, ONCE, SAMPLED, Broken, Judge, real_sessions
from fuzz_oracle import Oracle
from fuzz_permissions import SLUGS
from fuzz_reading import Id, Understood, understand
from msgspec import Raw, Struct
from reporting import first_of

from modes_actor.wire.base import CLIENT_CAPABILITIES_KEY, PROTOCOL_VERSION_KEY
from modes_actor.wire.versions import V2026_07_28

READ_SIZE: Final = 1 << 18
PATIENCE: Final = 30.0
"""Seconds after which a server that owes an answer counts as hung."""
_BAD_LOG = re.compile(r"Traceback|ERROR|CRITICAL|failed|Exception")


class Line(Struct, gc=False):
    """A line as it is sent, but for the ids of sessions, and what it is."""

    data: bytes
    understood: Understood
    id: Id | None = None


class Round(Struct, gc=False):
    lines: list[Line]
    cuts: list[int]
    """The sizes of the pieces in which it is written, again and again."""


class Plan(Struct, frozen=True):
    """What else there is to an episode."""

    anchored: bool = True
    """Whether it begins with sessions for the others to name."""
    tail: bytes = b""
    """A last line, without a newline."""
    roots: tuple[bytes, ...] = (b'{"result":{"roots":[]}}',)
    """The answers to the server's own requests, but for their ids; again and again."""
    log_level: str = "INFO"


class Played(Struct):
    """What came of an episode that broke no promise."""

    outcomes: Counter[tuple[str, str, int]]
    held: Counter[str]
    """How much was held against each promise."""


class _CreatedContent(Struct):
    session_id: str


class _Created(Struct, rename="camel"):
    structured_content: _CreatedContent


def line_of(data: bytes) -> Line:
    return Line(data, understand(data, LINE_LIMIT))


async def play(
    ground: Ground,
    rounds: Iterable[Round],
    plan: Plan,
    *,
    name: str,
    sample: Callable[[Expectation, bytes], None] | None = None,
    sampled: int = SAMPLED,
    patience: float = PATIENCE,
) -> Played:
    """Raises `Broken`. `name`: of the store, so that several can play side by side."""
    broken: BaseException | None = None
    with tempfile.TemporaryFile() as log:
        process = await trio.lowlevel.open_process(
            ground.command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            cwd=ground.project,
            env=ground.environment(ground.new_store(name), log_level=plan.log_level),
        )
        oracle = Oracle(SLUGS, anchors=ANCHORS if plan.anchored else 0)
        talk = _Talk(process, ground, plan, log, Judge(oracle, ground.forbidden, sample, sampled), patience)
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(talk.listen)
                await talk.speak(rounds)
        except* Broken as group:
            broken = first_of(group)
        finally:
            process.kill()
            with trio.CancelScope(shield=True):
                await process.wait()
    if broken is not None:
        raise broken
    return Played(talk.judge.outcomes, talk.judge.held)


class _Talk:
    def __init__(
        self,
        process: trio.Process,
        ground: Ground,
        plan: Plan,
        log: IO[bytes],
        judge: Judge,
        patience: float,
    ) -> None:
        self._process = process
        self._plan = plan
        self._log = log
        self._patience = patience
        self._oracle = judge.oracle
        self.judge = judge
        self._sessions = dict(ground.expired)
        self._news = trio.Event()
        self._ended = False
        self._taken = 0
        self._barriers = 0
        self._roots = itertools.cycle(plan.roots)

    async def listen(self) -> None:
        assert self._process.stdout is not None
        while block := await self._process.stdout.receive_some(READ_SIZE):
            self.judge.hear(bytes(block))
            self._tell()
        self._ended = True
        self._tell()

    def _tell(self) -> None:
        news, self._news = self._news, trio.Event()
        news.set()

    async def speak(self, rounds: Iterable[Round]) -> None:
        if self._plan.anchored:
            await self._lay_anchors()
        for each in rounds:
            block = self._taking(each.lines)
            await self._send(block, itertools.cycle(each.cuts) if each.cuts else None)
            await self._settle()
        await self._end()

    def _taking(self, lines: list[Line]) -> bytes:
        take = self._oracle.take
        for number, line in enumerate(lines, self._taken):
            take(line.understood, line.understood.id if line.id is None else line.id, number)
        self._taken += len(lines)
        return real_sessions(b"".join([line.data + b"\n" for line in lines]), self._sessions)

    async def _lay_anchors(self) -> None:
        """Sessions that lines can name. They are made in the stateless era, so that no handshake has been yet."""
        meta = {PROTOCOL_VERSION_KEY: V2026_07_28.name, CLIENT_CAPABILITIES_KEY: {}}
        lines = []
        for number in range(ANCHORS):
            mode = anchor_mode(number, SLUGS)
            call = {"name": "create_task", "arguments": {"mode_slug": mode}, "_meta": meta}
            request = {"jsonrpc": "2.0", "id": f"anchor-{number}", "method": "tools/call", "params": call}
            lines.append(line_of(msgspec.json.encode(request)))
            self.judge.created[f"anchor-{number}"] = b""
        for line in lines:
            self._oracle.take(line.understood, line.understood.id, -1)
        await self._send(b"".join(line.data + b"\n" for line in lines), None)
        await self._settle()
        for number in range(ANCHORS):
            made = msgspec.json.decode(self.judge.created.pop(f"anchor-{number}"), type=_Created)
            self._sessions[anchor(number).encode()] = made.structured_content.session_id.encode()

    async def _send(self, block: bytes, cuts: Iterator[int] | None) -> None:
        assert self._process.stdin is not None
        start = 0
        try:
            while start < len(block):
                end = len(block) if cuts is None else start + next(cuts)
                await self._process.stdin.send_all(block[start:end])
                start = end
        except trio.BrokenResourceError:
            await self._wait_for_end()
            raise self._gone() from None

    async def _settle(self) -> None:
        """A ping behind the round; then everything must be answered that has to be."""
        barrier = f"barrier-{self._barriers}"
        self._barriers += 1
        ping = msgspec.json.encode({"jsonrpc": "2.0", "id": barrier, "method": "ping"}) + b"\n"
        await self._send(ping, None)
        with trio.move_on_after(self._patience):
            while barrier not in self.judge.pings:
                await self._next()
            self.judge.at_barrier()
            while self.judge.missing():
                await self._next()
            return
        if barrier not in self.judge.pings:
            raise Broken(LIVENESS, f"a ping was not answered within {self._patience:g} s", waited=True)
        missing = self.judge.missing()[0]
        what = f"{missing.method} ({missing.version}), id {missing.id!r}"
        raise Broken(ONCE, f"{what}: not answered within {self._patience:g} s", missing.line, waited=True)

    async def _next(self) -> None:
        """Wait for the server to say more, and answer what it asked. Only here: between lines."""
        if self._ended:
            await self._wait_for_end()
            raise self._gone()
        news = self._news
        while self.judge.asked:
            members = msgspec.json.decode(next(self._roots), type=dict[str, Raw])
            answer = {"jsonrpc": "2.0", "id": self.judge.asked.pop(0), **members}
            await self._send(msgspec.json.encode(answer) + b"\n", None)
        await news.wait()

    async def _end(self) -> None:
        if self._plan.tail:
            line = line_of(self._plan.tail)
            self._oracle.take(line.understood, line.understood.id, self._taken)
            await self._send(real_sessions(line.data, self._sessions), None)
        assert self._process.stdin is not None
        await self._process.stdin.aclose()
        await self._wait_for_end()
        if self._process.returncode != 0:
            raise self._gone()
        self.judge.at_end()
        log = self._logged()
        if found := _BAD_LOG.search(log):
            raise Broken(LOG, log[max(0, found.start() - 200) : found.start() + 1000])

    async def _wait_for_end(self) -> None:
        with trio.move_on_after(self._patience):
            while not self._ended:
                await self._news.wait()
            await self._process.wait()
            return
        raise Broken(
            LIVENESS, f"the process did not end within {self._patience:g} s of the end of its input", waited=True
        )

    def _gone(self) -> Broken:
        return Broken(LIVENESS, f"the process ended with exit code {self._process.returncode}: {self._logged()[-600:]}")

    def _logged(self) -> str:
        self._log.seek(0)
        return self._log.read().decode(errors="replace")
