"""The framer: however the bytes are cut, the same lines come out, and no more is kept than the limit allows."""

from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from modes_actor.actor.framer import TOO_LONG, Framer, Piece, TooLong
from modes_actor.wire.codec import Message, decode_lines

REPEATABLE = settings(derandomize=True, database=None, deadline=None)
PLENTY = 1 << 20

Line = bytes | TooLong

# Newlines, and what a decoder treats in some special way, far more often than chance would have them.
TELLING = [b"\n", b"\n", b"\r\n", b"\n\n", b" ", b"\xef\xbb\xbf", b"\x00", b"\xff", b"[]", b'{"jsonrpc":"2.0"}', b"abc"]
streams = st.lists(st.sampled_from(TELLING) | st.binary(max_size=12), max_size=24).map(b"".join)
cuts = st.lists(st.integers(min_value=0, max_value=400), max_size=12)
limits = st.integers(min_value=1, max_value=16)


def chunks(data: bytes, cuts: list[int]) -> list[bytes]:
    """The bytes, cut at these places; empty chunks are left out, because a stream never gives one before its end."""
    edges = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    return [data[start:end] for start, end in pairwise(edges) if start < end]


def pieces_of(chunks: list[bytes], limit: int) -> list[Piece]:
    framer = Framer(limit)
    return [piece for chunk in chunks for piece in framer.feed(chunk)] + framer.finish()


def lines_of(pieces: list[Piece]) -> list[Line]:
    """The lines in the pieces, without the empty ones, which mean nothing to anyone."""
    lines: list[Line] = []
    for piece in pieces:
        if piece is TOO_LONG:
            lines.append(piece)
        else:
            lines.extend(bytes(line) for line in piece.split(b"\n") if line)
    return lines


def expected_lines(data: bytes, limit: int) -> list[Line]:
    return [TOO_LONG if len(line) > limit else line for line in data.split(b"\n") if line]


def messages_of(pieces: list[Piece]) -> list[Message | TooLong]:
    messages: list[Message | TooLong] = []
    for piece in pieces:
        if piece is TOO_LONG:
            messages.append(piece)
        else:
            messages.extend(decode_lines(piece))
    return messages


def kept(framer: Framer) -> int:
    """Bytes that the framer holds on to, wherever it has them."""
    return sum(len(value) for value in vars(framer).values() if isinstance(value, bytes | bytearray))


@REPEATABLE
@given(streams, cuts)
def test_the_lines_do_not_depend_on_the_cuts(data: bytes, cuts: list[int]) -> None:
    """Any bytes in any chunks are the lines between the newlines."""
    assert expected_lines(data, PLENTY) == lines_of(pieces_of(chunks(data, cuts), PLENTY))


@REPEATABLE
@given(streams, cuts, limits)
@example(b"1234\n12345\n\n1234", [4, 5, 9, 10], 4)
@example(b"12345\n12345", [5, 6], 4)
def test_the_lines_do_not_depend_on_the_cuts_when_some_are_too_long(data: bytes, cuts: list[int], limit: int) -> None:
    """Each line over the limit is one mark in its place; the lines around it are whole."""
    assert expected_lines(data, limit) == lines_of(pieces_of(chunks(data, cuts), limit))


@REPEATABLE
@given(streams, cuts, limits | st.just(PLENTY))
def test_the_messages_do_not_depend_on_the_cuts(data: bytes, cuts: list[int], limit: int) -> None:
    """What the reader makes of the pieces is the same as if all had come at once."""
    assert messages_of(pieces_of([data], limit)) == messages_of(pieces_of(chunks(data, cuts), limit))


@pytest.mark.parametrize("length", [4, 5, 8, 9, 10, 40])
@pytest.mark.parametrize("ending", [b"", b"\n", b"\nnext", b"\nnext\n"])
def test_a_line_is_too_long_once_and_only_past_the_limit(length: int, ending: bytes) -> None:
    """Wherever one cut falls, and a second one after it; the limit itself is still allowed."""
    data = b"a\n" + b"x" * length + ending
    expected = expected_lines(data, 8)
    assert (TOO_LONG in expected) == (length > 8)
    for first in range(len(data) + 1):
        for second in range(first, len(data) + 1):
            assert expected == lines_of(pieces_of(chunks(data, [first, second]), 8)), (first, second)


def test_a_line_that_is_too_long_is_reported_as_soon_as_it_is() -> None:
    """Its end may never come: the client is told without waiting for it."""
    framer = Framer(4)
    assert [framer.feed(b"12345"), framer.feed(b"6"), framer.feed(b"7\nok\n")] == [[TOO_LONG], [], [b"ok\n"]]


@pytest.mark.parametrize("chunk_size", [1, 7, 64, 65, 1000])
def test_an_endless_line_keeps_no_more_than_the_limit(chunk_size: int) -> None:
    """After every chunk of many times the limit, whatever the chunk."""
    limit = 64
    framer = Framer(limit)
    most = 0
    for _ in range(20 * limit // chunk_size + 1):
        framer.feed(b"x" * chunk_size)
        most = max(most, kept(framer))
    assert most <= limit
    assert kept(framer) == 0


@REPEATABLE
@given(streams, cuts, limits)
def test_no_bytes_make_it_keep_more_than_the_limit(data: bytes, cuts: list[int], limit: int) -> None:
    """At no time, with lines of any length."""
    framer = Framer(limit)
    for chunk in chunks(data, cuts):
        framer.feed(chunk)
        assert kept(framer) <= limit


def test_the_unfinished_line_is_what_is_kept() -> None:
    """Holds the measure used above against a line whose length is known."""
    framer = Framer(64)
    framer.feed(b"done\nhalf")
    assert kept(framer) == len(b"half")


def test_the_last_line_needs_no_newline() -> None:
    """The end of the input ends it."""
    framer = Framer(64)
    assert [framer.feed(b"one\ntwo"), framer.finish(), framer.finish()] == [[b"one\n"], [b"two"], []]
