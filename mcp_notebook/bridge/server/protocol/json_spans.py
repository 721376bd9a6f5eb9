"""Where the members of a large JSON object are, found without parsing their values.

Runs on the bridge's event loop, in slices of about a millisecond between which the loop does other
work. A parser would stop the loop for seconds, in a thread as well, because it keeps Python's
global lock throughout; and what it makes takes up to twenty times the memory of the text. What is
between a value's brackets is not checked: whoever parses the value later does that.
"""

import re
from array import array
from collections.abc import Collection
from itertools import accumulate
from typing import TypeAlias

import anyio.lowlevel

from mcp_notebook.errors import McpNotebookError

MAX_DEPTH = 200
"""Levels of brackets; the SDK's parser takes no more, either."""
MAX_MEMBERS = 1_000
"""Members of an object whose members are looked for."""
_SLICE = 32 * 2**10
"""Bytes that are looked at without a break."""

_STRING = rb'"(?:[^"\\]++|\\.)*+"'
_STRINGS = re.compile(_STRING, re.DOTALL)
_BRACKETS_AND_STRINGS = re.compile(rb"[\[\]{}]|" + _STRING, re.DOTALL)
_SCALAR = re.compile(rb"[-+0-9.A-Za-z]{1,5000}+(?=[\s,}\]]|\Z)")
_SPACE = re.compile(rb"[ \t\r\n]*+")
_ALL_BUT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_STEPS = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")
"""1 for each opening bracket, and -1 for each closing one, as signed bytes."""


class NotJson(McpNotebookError):
    """The text is not a JSON object, or has more levels or members than are accepted."""


Path: TypeAlias = tuple[bytes, ...]
"""The names of a member and of those around it, as they are written in the text."""


async def find_members(text: bytes, *, within: Path = ()) -> dict[Path, tuple[int, int]]:
    """Return where the values of an object's members begin and end.

    Args:
        text: The text of the object.
        within: Names of members whose own members are to be found, too, if they are objects.

    Raises:
        NotJson: It is not the text of an object.
    """
    members: dict[Path, tuple[int, int]] = {}
    start = _skip_space(text, 0)
    if text[start : start + 1] != b"{":
        raise NotJson
    end = await _read_object(text, start, (), frozenset((name,) for name in within), members)
    if _skip_space(text, end) != len(text):
        raise NotJson
    return members


async def measure_value(text: bytes, *, enough: int) -> tuple[int, int]:
    """Return how deep a value is nested, and how many values and names are in it.

    Each array and each object has at least one value, also an empty one.

    Args:
        text: Its JSON text, in which `find_members` has found no fault.
        enough: Stop at more values and names than this.
    """
    position = depth = deepest = count = 0
    while position < len(text) and count <= enough:
        length, outside = _remove_strings(text[position : position + _SLICE])
        if not length:
            position = await _skip_string(text, position + 1)
            continue
        change, _, highest = _count_brackets(outside)
        deepest = max(deepest, depth + highest)
        depth += change
        count += sum(map(outside.count, (b",", b":", b"[", b"{")))
        position += length
        await anyio.lowlevel.checkpoint()
    return deepest, count


async def _read_object(
    text: bytes,
    start: int,
    path: Path,
    within: Collection[Path],
    members: dict[Path, tuple[int, int]],
) -> int:
    """Add the members of the object that begins here, and return where it ends."""
    position = _skip_space(text, start + 1)
    if text[position : position + 1] == b"}":
        return position + 1
    while True:
        key = _STRINGS.match(text, position, position + _SLICE)
        if key is None or len(members) >= MAX_MEMBERS:
            raise NotJson
        member = (*path, key[0][1:-1])
        value = _skip_space(text, _expect(text, _skip_space(text, key.end()), b":"))
        if member in within and text[value : value + 1] == b"{":
            end = await _read_object(text, value, member, within, members)
        else:
            end = await _skip_value(text, value)
        members[member] = (value, end)
        position = _skip_space(text, end)
        if text[position : position + 1] == b"}":
            return position + 1
        position = _skip_space(text, _expect(text, position, b","))


def _expect(text: bytes, position: int, character: bytes) -> int:
    if text[position : position + 1] != character:
        raise NotJson
    return position + 1


def _skip_space(text: bytes, position: int) -> int:
    space = _SPACE.match(text, position)
    assert space is not None  # it may be empty
    return space.end()


async def _skip_value(text: bytes, position: int) -> int:
    """Return where the value that begins here ends."""
    first = text[position : position + 1]
    if first == b'"':
        return await _skip_string(text, position + 1)
    if first in (b"{", b"["):
        return await _skip_brackets(text, position + 1)
    scalar = _SCALAR.match(text, position)
    if scalar is None:
        raise NotJson
    return scalar.end()


async def _skip_string(text: bytes, position: int) -> int:
    """Return where the string ends that this position is within."""
    while True:
        limit = min(position + _SLICE, len(text))
        end = text.find(b'"', position, limit)
        end = limit if end < 0 else end
        if end > position and text[end - 1 : end] == b"\\":  # which may escape what is at the end
            piece = _hide_escapes(text[position:limit])
            end = piece.find(b'"')
            end = position + (end if end >= 0 else len(piece) - piece.endswith(b"\\"))
        if text[end : end + 1] == b'"':
            return end + 1
        if end == position:  # the text ends
            raise NotJson
        position = end
        await anyio.lowlevel.checkpoint()


async def _skip_brackets(text: bytes, position: int) -> int:
    """Return where the bracket closes that is open at this position."""
    depth = 1
    while True:
        length, outside = _remove_strings(text[position : position + _SLICE])
        if not length:
            if position == len(text):
                raise NotJson
            position = await _skip_string(text, position + 1)
            continue
        change, lowest, _ = _count_brackets(outside)
        if depth + lowest <= 0:
            return _find_end(text, position, depth)
        depth += change
        if depth > MAX_DEPTH:
            raise NotJson
        position += length
        await anyio.lowlevel.checkpoint()


def _remove_strings(piece: bytes) -> tuple[int, bytes]:
    """Return what is outside of strings, and how long the piece is without its unfinished end."""
    parts = _hide_escapes(piece).split(b'"')
    length = len(piece) if len(parts) % 2 else len(piece) - len(parts[-1]) - 1
    return length, b"".join(parts[::2])


def _hide_escapes(piece: bytes) -> bytes:
    """Return a piece of the same length in which each quote begins or ends a string.

    Args:
        piece: It does not begin with what a backslash before it escapes.
    """
    if b"\\" not in piece:
        return piece
    return piece.replace(b"\\\\", b"  ").replace(b'\\"', b"  ")


def _count_brackets(outside: bytes) -> tuple[int, int, int]:
    """Return how brackets change the depth, and the lowest and highest change on the way."""
    brackets = outside.translate(_STEPS, _ALL_BUT_BRACKETS)
    depths = list(accumulate(array("b", brackets), initial=0))
    return depths[-1], min(depths), max(depths)


def _find_end(text: bytes, position: int, depth: int) -> int:
    """Return where so many brackets are closed; it is within a slice."""
    for token in _BRACKETS_AND_STRINGS.finditer(text, position):
        if token[0] in b"[{":
            depth += 1
        elif token[0] in b"]}":
            depth -= 1
            if not depth:
                return token.end()
    raise NotJson
