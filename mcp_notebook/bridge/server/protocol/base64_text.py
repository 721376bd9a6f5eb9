"""The base64 of large bytes in an answer, made piece by piece while the answer is sent.

Runs on the bridge's event loop; pure.
"""

from base64 import b64encode
from collections.abc import Iterable, Iterator
from typing import TypeAlias

_PIECE = 3 * 2**16
"""Bytes that are encoded at a time; a multiple of three, so that the pieces can be joined. New
memory for all of a picture would take as long as to encode it."""


class Base64Text:
    """The base64 of some bytes.

    Args:
        data: The bytes.
    """

    def __init__(self, data: bytes) -> None:
        self._data = data

    def __len__(self) -> int:
        return 4 * -(-len(self._data) // 3)

    def __iter__(self) -> Iterator[bytes]:
        view = memoryview(self._data)
        for start in range(0, len(view), _PIECE):
            yield b64encode(view[start : start + _PIECE])


Piece: TypeAlias = bytes | Base64Text
"""A part of an answer."""


def expand(pieces: Iterable[Piece]) -> Iterator[bytes]:
    """Yield the bytes of an answer, each part when it is asked for."""
    for piece in pieces:
        if isinstance(piece, bytes):
            yield piece
        else:
            yield from piece
