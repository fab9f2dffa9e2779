"""Bytes to blocks of whole lines.

Promises: what comes out does not depend on how the bytes were cut; at most `limit` bytes of an unfinished line are
kept; a line longer than that is dropped as it arrives and reported once.
"""

from enum import Enum
from typing import Final, Literal


class TooLong(Enum):
    """Stands for a line that was over the limit."""

    LINE = "line"


TOO_LONG: Final = TooLong.LINE

Piece = bytes | bytearray | Literal[TooLong.LINE]
"""One or more whole lines with a newline between them, or the mark of a line that was dropped."""


class Framer:
    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._partial = bytearray()
        self._dropping = False

    def feed(self, chunk: bytes | bytearray) -> list[Piece]:
        """The pieces that this chunk completes."""
        pieces: list[Piece] = []
        if self._dropping:
            end = chunk.find(b"\n") + 1
            if not end:
                return pieces
            self._dropping = False
            chunk = chunk[end:]
        end = chunk.rfind(b"\n") + 1
        if end:
            block = chunk[:end]
            if self._partial:
                self._partial += block
                block, self._partial = self._partial, bytearray()
            self._add_lines(block, pieces)
            chunk = chunk[end:]
        if len(self._partial) + len(chunk) > self._limit:
            self._partial = bytearray()
            self._dropping = True
            pieces.append(TOO_LONG)
        elif chunk:
            self._partial += chunk
        return pieces

    def finish(self) -> list[Piece]:
        """The last line, if the input ended without a newline."""
        block, self._partial = self._partial, bytearray()
        return [block] if block else []

    def _add_lines(self, block: bytes | bytearray, pieces: list[Piece]) -> None:
        if len(block) <= self._limit:  # then no line in it is longer
            pieces.append(block)
            return
        pieces.extend(TOO_LONG if len(line) > self._limit else line for line in block.split(b"\n")[:-1])
