"""A real server process, and a client that counts every answer it gives.

Promises: whatever the server or the fault does, a question ends with its answer, `Refused`, `Gone` or `NotAnswered`;
a second answer, a stray line, half a line and a silent death are counted, none is overlooked.
"""

import itertools
import os
import signal
import subprocess
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec
import trio
from msgspec import UNSET, Raw, Struct, UnsetType, field

T = TypeVar("T")

ROOT: Final = Path(__file__).resolve().parent.parent
ANSWER_SECONDS: Final = 30.0
"""A server that runs and has not answered by then counts as silent."""
NONSENSE: Final = 0
"""The code of a refusal that is none of the server's: it answered, but not what was asked."""
LEAVE_SECONDS: Final = 15.0
READ_SIZE: Final = 256 * 1024


class Gone(Exception):
    """The server ended before it answered."""


class NotAnswered(Exception):
    """The server runs, and says nothing."""


class Refused(Exception):
    """The server said no."""

    def __init__(self, code: int, message: str, *, retryable: bool) -> None:
        super().__init__(f"{code} {message}")
        self.code, self.message, self.retryable = code, message, retryable

    @property
    def is_passing(self) -> bool:
        """Whether the same request may work later, as the server itself says."""
        return self.code == -32603 and self.retryable


class Tally(Struct):
    """What the clients of one fault saw that no client should see. `died`: servers that ended though nobody asked."""

    twice: int = 0
    silent: int = 0
    stray: list[str] = field(default_factory=list)
    died: list[str] = field(default_factory=list)

    @property
    def is_clean(self) -> bool:
        return self == Tally()

    def __str__(self) -> str:
        examples = [*self.stray[:1], *self.died[:1]]
        counts = f"{self.twice} answered twice, {self.silent} not at all, {len(self.stray)} stray lines"
        return f"{counts}, {len(self.died)} servers died" + (f": {'; '.join(examples)}" if examples else "")


class _Error(Struct):
    code: int
    message: str
    data: Any = None


class _Line(Struct):
    id: int | str | None = None
    method: str | UnsetType = UNSET
    result: Raw | UnsetType = UNSET
    error: _Error | UnsetType = UNSET


class _ToolResult(Struct, rename="camel"):
    structured_content: Raw = Raw(b"null")


class _Call:
    __slots__ = ("answer", "ended")

    def __init__(self) -> None:
        self.answer: _Line | None = None
        self.ended = trio.Event()


_line = msgspec.json.Decoder(_Line)


class Server:
    """One process and its one client. Questions may overlap; they are sent in the order they are asked."""

    def __init__(self, process: trio.Process, tally: Tally, complaints: Path) -> None:
        self._process = process
        self._complaints = complaints
        self._tally = tally
        self._ids = itertools.count()
        self._asked = 0
        self._waiting: dict[int, _Call] = {}
        self._outbox: list[bytes] = []
        self._has_mail = trio.Event()
        self._is_sending = False
        self._changed = trio.lowlevel.ParkingLot()
        self._may_read = trio.Event()
        self._may_read.set()
        self._bytes_per_second: int | None = None
        self.gone = trio.Event()
        self.is_being_ended = False
        """Somebody ends it, so that its end is no surprise."""

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def unanswered(self) -> int:
        return len(self._waiting)

    # Asking.

    async def use(self, tool: str, answer: type[T], /, **arguments: Any) -> T:
        """What a tool tells, typed. Arguments that are None are left out."""
        given = {name: value for name, value in arguments.items() if value is not None}
        result = await self.ask("tools/call", {"name": tool, "arguments": given})
        try:
            return msgspec.json.decode(msgspec.json.decode(result, type=_ToolResult).structured_content, type=answer)
        except msgspec.MsgspecError as error:
            raise Refused(NONSENSE, f"an answer that makes no sense: {error}", retryable=False) from None

    async def ask(self, method: str, params: Mapping[str, Any] | None = None) -> Raw:
        return await self.answer_to(self.begin(method, params))

    def begin(self, method: str, params: Mapping[str, Any] | None = None) -> _Call:
        """Ask without waiting."""
        call = _Call()
        if self.gone.is_set():
            call.ended.set()
            return call
        number = next(self._ids)
        self._asked = number + 1
        self._waiting[number] = call
        self.post({"jsonrpc": "2.0", "id": number, "method": method, "params": params or {}})
        return call

    async def answer_to(self, call: _Call) -> Raw:
        with trio.move_on_after(ANSWER_SECONDS):
            await call.ended.wait()
        if call.answer is None:
            if call.ended.is_set():
                raise Gone
            self._tally.silent += 1
            raise NotAnswered
        error = call.answer.error
        if error is not UNSET:
            retryable = isinstance(error.data, dict) and error.data.get("retryable") is True
            raise Refused(error.code, error.message, retryable=retryable)
        assert call.answer.result is not UNSET
        return call.answer.result

    def post(self, message: Mapping[str, Any]) -> None:
        self._outbox.append(msgspec.json.encode(message) + b"\n")
        self._has_mail.set()

    async def sent(self) -> None:
        """Return once all that was asked is on its way, or can no longer be."""
        while (self._outbox or self._is_sending) and not self.gone.is_set():
            await self._changed.park()

    async def settled(self, within: float) -> int:
        """Wait until everything is answered, but not forever. Returns how much is not."""
        with trio.move_on_after(within):
            while self._waiting and not self.gone.is_set():
                await self._changed.park()
        return len(self._waiting)

    async def is_there(self) -> None:
        """Return once it answers at all."""
        await self.ask("ping")

    # How its client reads.

    def stop_reading(self) -> None:
        self._may_read = trio.Event()

    def read_on(self, *, bytes_per_second: int | None = None) -> None:
        self._bytes_per_second = bytes_per_second
        self._may_read.set()

    # Ends of all kinds.

    def kill(self) -> None:
        self.is_being_ended = True
        self.signal(signal.SIGKILL)

    def signal(self, number: int) -> None:
        if self._process.returncode is None:
            self._process.send_signal(number)

    async def close_input(self) -> None:
        self.is_being_ended = True
        assert self._process.stdin is not None
        await self._process.stdin.aclose()

    async def close_output(self) -> None:
        """Never read again, for all the server knows."""
        self.is_being_ended = True
        assert self._process.stdout is not None
        await self._process.stdout.aclose()

    async def exit_code(self, within: float = LEAVE_SECONDS) -> int | None:
        """None if it still runs then."""
        with trio.move_on_after(within):
            return await self._process.wait()
        return None

    def memory_mb(self) -> float:
        text = Path(f"/proc/{self.pid}/status").read_text()
        return int(text.partition("VmRSS:")[2].split()[0]) / 1024

    async def see_out(self) -> None:
        """Let it end politely, whatever state it is in, and take note if it does not."""
        was_left_alone = not self.is_being_ended and not self.gone.is_set()
        self.read_on()
        self.signal(signal.SIGCONT)
        await self.close_input()
        code = await self.exit_code()
        if code is None:
            self.kill()
            await self.exit_code()
        if was_left_alone and code != 0:
            self._died(f"{'did not end' if code is None else f'ended with code {code}'} when its input did")

    # Inside.

    async def write(self) -> None:
        assert self._process.stdin is not None
        try:
            while True:
                await self._has_mail.wait()
                self._has_mail = trio.Event()
                mail, self._outbox = b"".join(self._outbox), []
                self._is_sending = True
                await self._process.stdin.send_all(mail)
                self._is_sending = False
                self._changed.unpark_all()
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass  # the reader notices, and it is the reader who knows what is still in the pipe

    async def read(self) -> None:
        assert self._process.stdout is not None
        rest = b""
        try:
            while chunk := await self._read_some(self._process.stdout):
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    self._take_in(line)
                self._changed.unpark_all()
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass
        if not self.is_being_ended:
            self._died(f"ended by itself with code {await self.exit_code()}")
            if rest:
                self._tally.stray.append(f"half a line: {rest[-60:]!r}")
        self.gone.set()
        self._changed.unpark_all()
        for call in self._waiting.values():
            call.ended.set()

    def _died(self, how: str) -> None:
        said = self._complaints.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        self._tally.died.append(f"a server {how}" + (f" ({said[-1]})" if said else ""))

    async def _read_some(self, stream: trio.abc.ReceiveStream) -> bytes:
        await self._may_read.wait()
        size = READ_SIZE
        if (slowly := self._bytes_per_second) is not None:
            await trio.sleep(0.1)
            size = max(1, slowly // 10)
        return bytes(await stream.receive_some(size))

    def _take_in(self, line: bytes) -> None:
        try:
            answer = _line.decode(line)
        except msgspec.MsgspecError:
            self._tally.stray.append(f"no JSON-RPC: {line[:60]!r}")
            return
        if answer.method is not UNSET:
            return  # a notification, or a question that a client without capabilities need not answer
        call = self._waiting.pop(answer.id, None) if isinstance(answer.id, int) else None
        if call is not None:
            call.answer = answer
            call.ended.set()
        elif isinstance(answer.id, int) and answer.id < self._asked:
            self._tally.twice += 1
        else:
            self._tally.stray.append(f"an answer to nothing: {line[:60]!r}")


@asynccontextmanager
async def running(
    command: Sequence[str], environment: Mapping[str, str], tally: Tally, complaints: Path
) -> AsyncIterator[Server]:
    """A server whose client has said its first words, and does not wait for the answer to them. Ends it politely.

    What it says on stderr goes to the file `complaints`.
    """
    with complaints.open("wb") as stderr:
        process = await trio.lowlevel.open_process(
            list(command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            env=dict(environment),
            cwd=ROOT,
        )
    server = Server(process, tally, complaints)
    failure: Exception | None = None
    async with trio.open_nursery() as nursery:
        nursery.start_soon(server.write)
        nursery.start_soon(server.read)
        info = {"name": "faults", "version": "1"}
        server.begin("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info})
        server.post({"jsonrpc": "2.0", "method": "notifications/initialized"})
        try:
            yield server
        except Exception as error:
            failure = error  # raised below, where the nursery cannot wrap it
        finally:
            with trio.CancelScope(shield=True):
                await server.see_out()
            nursery.cancel_scope.cancel()
    if failure is not None:
        raise failure


class Ground:
    """Where the servers of one fault live: a home, a project, a store, and what they are started with."""

    def __init__(self, directory: Path, command: Sequence[str]) -> None:
        self.directory = directory
        self.command = command
        self.tally = Tally()
        self.home, self.project = directory / "home", directory / "project"
        self.log = directory / "server.log"
        for made in (self.home, self.project):
            made.mkdir(parents=True)
        self._stores, self._servers = itertools.count(1), itertools.count(1)
        self.new_store()

    def new_store(self) -> Path:
        """A directory for a store, which the next servers use, and the first of them makes."""
        self.storage = self.directory / f"store-{next(self._stores)}"
        return self.storage

    @property
    def store_file(self) -> Path:
        return self.storage / "sessions.db"

    def surprises(self) -> list[str]:
        """The last line of each traceback in the log."""
        found: list[str] = []
        for file in sorted(self.directory.glob(f"{self.log.name}*")):
            is_inside = False
            for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
                if line.startswith("Traceback"):
                    is_inside = True
                elif is_inside and line[:1].strip():
                    found.append(line)
                    is_inside = False
        return found

    def environment(self, **more: str) -> dict[str, str]:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("ROO_")}
        return {
            **inherited,
            "HOME": str(self.home),
            "ROO_CONFIG_DIR": str(self.home / "config"),
            "ROO_STORAGE_PATH": str(self.storage),
            "ROO_LOG_FILE": str(self.log),
            **more,
        }

    def server(self, command: Sequence[str] | None = None, **environment: str) -> AbstractAsyncContextManager[Server]:
        arguments = [*(command or self.command), "--project-root", str(self.project)]
        complaints = self.directory / f"stderr-{next(self._servers)}"
        return running(arguments, self.environment(**environment), self.tally, complaints)
