"""Rounds of lines from several clients at once: one of the handshake era, stateless ones, a vandal that damages bytes.

Everything comes from one seed: the same seed gives the same rounds.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from random import Random
from typing import Final

import msgspec
from fuzz_ground import LINE_LIMIT
from fuzz_messages import (
    Template,
    initialize,
    is_doubtful,
    made_template,
    notification,
    response,
    template,
)
from fuzz_play import Line, Plan, Round, line_of
from fuzz_reading import Id
from msgspec import UNSET

POOL: Final = 3000
REUSE: Final = 6
"""How often a template is sent, on average."""
RECENT: Final = 40


class Generator:
    """The rounds of one episode, and its plan. `pool`: templates, kept from one episode to the next."""

    def __init__(self, seed: str, pool: list[Template], *, round_size: int) -> None:
        self._rng = rng = Random(seed)
        self._pool = pool
        self._round_size = round_size
        self._number = 1000
        self._recent: list[Id] = []
        self._has_roots = rng.random() < 0.25
        self.kinds: Counter[str] = Counter()
        """Lines, by what they are."""
        self.distinct = 0
        """Lines that differ in more than their ids."""
        anchored = rng.random() < 0.85
        tail = b'{"jsonrpc":"2.0","id":"tail","method":"ping"}' if rng.random() < 0.5 else b'{"jsonrpc":"2.0","id"'
        self.plan = Plan(
            anchored=anchored,
            tail=tail if rng.random() < 0.5 else b"",
            roots=tuple(rng.choice(_ROOTS) for _ in range(5)),
            log_level="DEBUG" if rng.random() < 0.08 else "INFO",
        )

    def rounds(self) -> Iterator[Round]:
        while True:
            yield self.round()

    def round(self) -> Round:
        rng = self._rng
        self._renew(self._round_size // REUSE)
        lines: list[Line] = []
        if rng.random() < 0.5:
            lines += self._opening()
        while len(lines) < self._round_size:
            self._step(lines)
        cuts = [_cut(rng) for _ in range(20)] if rng.random() < 0.7 else []
        return Round(lines, cuts)

    # What the pool has.

    def _renew(self, count: int) -> None:
        rng, pool = self._rng, self._pool
        if not pool:
            count = POOL // 4
        for _ in range(count):
            made = template(rng, roots=self._has_roots)
            if made is None:
                continue
            self.distinct += 1
            if len(pool) < POOL:
                pool.append(made)
            else:
                pool[rng.randrange(POOL)] = made

    def _drawn(self) -> Template:
        while True:
            made = self._rng.choice(self._pool)
            # Whoever must not be asked for roots must not say that it has some.
            if self._has_roots or made.understood.method != "initialize" or b'"roots"' not in made.tail:
                return made

    # Lines.

    def _step(self, lines: list[Line]) -> None:
        """The next line or lines, of one of the clients."""
        rng = self._rng
        chance = rng.random()
        if chance < 0.82:
            self._regular(lines)
        elif chance < 0.90:
            self._vandal(lines)
        elif chance < 0.96:
            message = notification(rng, self._recent) if rng.random() < 0.8 else response(rng)
            self._add(lines, "notification" if "method" in message else "response", msgspec.json.encode(message))
        elif chance < 0.985:
            self._array(lines)
        else:
            self._near_the_limit(lines)

    def _regular(self, lines: list[Line]) -> None:
        drawn = self._drawn()
        self.kinds[drawn.kind] += 1
        if not drawn.takes_id:
            lines.append(Line(drawn.head, drawn.understood))
            return
        written, request_id = self._new_id()
        data = drawn.filled(written)
        lines.append(Line(data, drawn.understood, request_id) if len(data) <= LINE_LIMIT else line_of(data))
        if drawn.may_share_id and self._rng.random() < 0.03:
            other = self._drawn()
            if other.takes_id and other.may_share_id and len(again := other.filled(written)) <= LINE_LIMIT:
                self.kinds["id in use"] += 1
                lines.append(Line(again, other.understood, request_id))
        self._recent.append(request_id)
        if len(self._recent) > RECENT:
            del self._recent[: RECENT // 2]

    def _opening(self) -> list[Line]:
        """The handshake client connects, perhaps again, in one version or another."""
        params = initialize(self._rng, roots=self._has_roots)
        data = msgspec.json.encode({"jsonrpc": "2.0", "id": "%%id%%", "method": "initialize", "params": params})
        made = made_template("valid", data)
        assert made is not None
        written, request_id = self._new_id()
        self.kinds["valid"] += 1
        self.kinds["notification"] += 1
        initialized = line_of(b'{"jsonrpc":"2.0","method":"notifications/initialized"}')
        return [Line(made.filled(written), made.understood, request_id), initialized]

    def _array(self, lines: list[Line]) -> None:
        rng = self._rng
        items: list[bytes] = []
        for _ in range(rng.choice((0, 1, 2, 3, 5, 12))):
            drawn = self._drawn()
            # With an id of its own: an answer in an array is not to be anyone's but that item's.
            if drawn.takes_id and drawn.understood.method != "initialize" and not drawn.understood.loose:
                items.append(drawn.filled(self._new_id()[0]))
        if rng.random() < 0.1:
            items = [b"1"] * rng.choice((1024, 1025, 3000))
        self._add(lines, "array", b"[" + b",".join(items) + b"]")

    def _near_the_limit(self, lines: list[Line]) -> None:
        rng = self._rng
        drawn = self._drawn()
        data = drawn.filled(self._new_id()[0])
        size = LINE_LIMIT + rng.choice((-1, 0, 0, 1, 1, 700, 30_000))
        padding = rng.choice((b" ", b"\t", b"\r")) * max(0, size - len(data))
        self._add(lines, "near the limit", data + padding if rng.random() < 0.7 else b"x" * size)

    def _vandal(self, lines: list[Line]) -> None:
        rng = self._rng
        drawn = self._drawn()
        self._number += 1
        # A damaged id must not be another's.
        written = b'"b%x-%08x"' % (self._number, self._number * 2654435761 % 2**32)
        data = bytearray(drawn.filled(written))
        kind = rng.choice(tuple(_DAMAGES))
        _DAMAGES[kind](rng, data)
        for each in bytes(data).split(b"\n"):
            self._add(lines, kind, each, own=written.decode().strip('"'))

    def _add(self, lines: list[Line], kind: str, data: bytes, *, own: Id | None = None) -> None:
        """`own`: an id that nobody else has."""
        line = line_of(data)
        found = line.understood
        if is_doubtful(found) or (found.loose and (not self.plan.anchored or found.id not in (own, UNSET, None))):
            return
        self.kinds[kind] += 1
        self.distinct += 1
        lines.append(line)

    def _new_id(self) -> tuple[bytes, Id]:
        """An id of some kind that nobody had before, as it is written and as it is meant."""
        self._number += 1
        number = self._number
        match self._rng.randrange(12):
            case 0:
                return b"-%d" % number, -number
            case 1:
                return b"%d" % (2**53 + number), 2**53 + number
            case 2:
                return b"%d" % (2**64 + number), 2**64 + number
            case 3:
                return b'"%d"' % number, str(number)
            case 4:
                return f'"ключ-{number}🔑"'.encode(), f"ключ-{number}🔑"
            case 5:
                return b'"\\u0000\\n\\"%d"' % number, f'\x00\n"{number}'
            case 6 if number % 16 == 0:
                return b'"%b%d"' % (b"x" * 600, number), "x" * 600 + str(number)
            case _:
                return b"%d" % number, number


_ROOTS: Final = (
    b'{"result":{"roots":[]}}',
    b'{"result":{"roots":[{"uri":"file:///nowhere/at/all"},{"uri":"http://x"},{"uri":"file://%00"}]}}',
    b'{"result":{"roots":"x"}}',
    b'{"error":{"code":-32601,"message":"no"}}',
    b'{"error":null,"result":null}',
    b'{"result":[]}',
)


_Damage = Callable[[Random, bytearray], None]


def _flip(rng: Random, data: bytearray) -> None:
    for _ in range(rng.choice((1, 1, 2, 5))):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)


def _insert(*pieces: bytes) -> _Damage:
    def insert(rng: Random, data: bytearray) -> None:
        at = rng.randrange(len(data) + 1)
        data[at:at] = rng.choice(pieces)

    return insert


def _truncate(rng: Random, data: bytearray) -> None:
    del data[rng.randrange(len(data)) :]


def _delete(rng: Random, data: bytearray) -> None:
    at = rng.randrange(len(data))
    del data[at : at + rng.choice((1, 1, 2, 10))]


def _surround(rng: Random, data: bytearray) -> None:
    before, after = rng.choice(
        ((b"\xef\xbb\xbf", b""), (b" \t", b"\r"), (b"\r", b"\r\r"), (b"\xef\xbb\xbf ", b" "), (b"", b" x"))
    )
    data[:] = before + data + after


def _blank(rng: Random, data: bytearray) -> None:
    data[:] = rng.choice((b"", b"\n", b"\r", b"  ", b"\xef\xbb\xbf", b"\x00", b"\xff\xfe", b"\x1a", b"\t\t\n\r"))


_DAMAGES: Final[dict[str, _Damage]] = {
    "bits flipped": _flip,
    "truncated": _truncate,
    "bytes deleted": _delete,
    "bad UTF-8": _insert(b"\xff", b"\xc0\xaf", b"\xed\xa0\x80", b"\xe2\x82", b"\x80", b"\xf5"),
    "bytes inserted": _insert(b"\x00", b"\n", b"\r", b"\\", b'"', b"{", b"}", b"\xef\xbb\xbf", b",", b"\x0b", b"\\u"),
    "BOM, CR, blanks": _surround,
    "blank lines": _blank,
}


def _cut(rng: Random) -> int:
    return rng.choice((1, 7, 100, 1000, 4096, 30_000, 65_536, 65_536, 200_000)) + rng.randrange(50)
