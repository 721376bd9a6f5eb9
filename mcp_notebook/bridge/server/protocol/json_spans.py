"""Finds the members of a large JSON object without parsing their values.

Runs on the bridge's event loop, in slices of about a millisecond between which the loop does other
work. A parser would block the loop for seconds, even in a thread, because it holds the GIL; and its
result takes up to twenty times the memory of the text. The text between the brackets of a value is
not checked: the parser does that later.
"""

import re
from array import array
from collections.abc import Collection
from itertools import accumulate
from typing import TypeAlias

import anyio.lowlevel

from mcp_notebook.errors import McpNotebookError

MAX_DEPTH = 200
"""Maximum depth of brackets, like that of the SDK's parser."""
MAX_MEMBERS = 1_000
"""Maximum number of members to find."""
_SLICE = 32 * 2**10
"""Bytes that are scanned before the loop does other work."""

_STRING = rb'"(?:[^"\\]++|\\.)*+"'
_STRINGS = re.compile(_STRING, re.DOTALL)
_BRACKETS_AND_STRINGS = re.compile(rb"[\[\]{}]|" + _STRING, re.DOTALL)
_SCALAR = re.compile(rb"[-+0-9.A-Za-z]{1,5000}+(?=[\s,}\]]|\Z)")
_SPACE = re.compile(rb"[ \t\r\n]*+")
_ALL_BUT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_STEPS = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")
"""1 for each opening bracket, and -1 for each closing one, as signed bytes."""


class NotJson(McpNotebookError):
    """The text is not a JSON object, or has too many levels or members."""


Path: TypeAlias = tuple[bytes, ...]
"""The names of a member and of those around it, outermost first, as written in the text."""


async def find_members(text: bytes, *, within: Path = ()) -> dict[Path, tuple[int, int]]:
    """Return where the values of an object's members begin and end.

    Args:
        text: The text of the object.
        within: Names of members that are searched as well, if they are objects.

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
    """Return how deep a value is nested, and the number of values and names in it.

    An empty array or object counts as if it contained one value.

    Args:
        text: Its JSON text, in which `find_members` has found no error.
        enough: Stop counting at more values and names than this.
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
    """Return where the string around this position ends."""
    while True:
        limit = min(position + _SLICE, len(text))
        end = text.find(b'"', position, limit)
        end = limit if end < 0 else end
        if end > position and text[end - 1 : end] == b"\\":  # which may escape the quote
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
    """Return where the innermost bracket around this position closes."""
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
    """Return the length of a piece without an unfinished string, and the text outside strings."""
    parts = _hide_escapes(piece).split(b'"')
    length = len(piece) if len(parts) % 2 else len(piece) - len(parts[-1]) - 1
    return length, b"".join(parts[::2])


def _hide_escapes(piece: bytes) -> bytes:
    """Return a piece of the same length in which each quote begins or ends a string.

    Args:
        piece: The piece; it must not begin with an escaped character.
    """
    if b"\\" not in piece:
        return piece
    return piece.replace(b"\\\\", b"  ").replace(b'\\"', b"  ")


def _count_brackets(outside: bytes) -> tuple[int, int, int]:
    """Return the change of depth by brackets, and its lowest and highest value on the way."""
    brackets = outside.translate(_STEPS, _ALL_BUT_BRACKETS)
    depths = list(accumulate(array("b", brackets), initial=0))
    return depths[-1], min(depths), max(depths)


def _find_end(text: bytes, position: int, depth: int) -> int:
    """Return where this many brackets are closed, which is within the next slice."""
    for token in _BRACKETS_AND_STRINGS.finditer(text, position):
        if token[0] in b"[{":
            depth += 1
        elif token[0] in b"]}":
            depth -= 1
            if not depth:
                return token.end()
    raise NotJson
