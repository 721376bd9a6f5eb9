"""Collects the items of generators, async generators, ``map`` objects...

Runs in the user's kernel, where the call runs: the items of an async generator are awaited on the
loop that the call's coroutines run on. The number of items is limited. Their time is
not, since it is the tool's running time, which its client and its user can end.
"""

import inspect
import io
import types
from collections.abc import AsyncGenerator, Awaitable, Iterable
from contextlib import aclosing
from itertools import groupby, islice
from typing import Any

from msgspec import Struct

from mcp_notebook.kernel.safe.libraries import get_mro, is_instance
from mcp_notebook.kernel.safe.text import find_member, is_written

MAX_COLLECTED = 1_000
"""Maximum items taken from a generator."""
_PARTS = frozenset({list, tuple, dict})
_FILE = io.IOBase.__mro__[1]
"""The class of all files, also of those written in C."""
_NO_ITERATOR = frozenset({str, int, float, bool, type(None), bytes, list, tuple, dict, set})


class Collected(Struct, frozen=True):
    """What was taken from an iterator; or a value that is none."""

    items: Any
    note: str = ""
    """Says that there were more items; empty if there were not."""


def is_iterator(value: Any) -> bool:
    """Return whether to collect a value's items, which it yields only once.

    Not those of a file, of something else that is read, or of an object with a repr of its own,
    such as an endless ``itertools.count``.
    """
    kind = type(value)
    if kind in _NO_ITERATOR or find_member(kind, "__next__") is None:
        return False
    is_readable = _FILE in get_mro(kind) or find_member(kind, "read") is not None
    is_iterable = find_member(kind, "__iter__") is not None
    is_other = is_readable or is_result(value) or is_written(kind, "__repr__")
    return is_iterable and not is_other


def is_result(value: Any) -> bool:
    """Return whether a value is a SQLAlchemy result, whose rows can be fetched only once."""
    return is_instance(value, "sqlalchemy.engine.result.ResultInternal")


def is_awaitable(value: Any) -> bool:
    """Return whether a value is awaitable, without running its code as `isinstance` would."""
    if type(value) is types.GeneratorType:
        return bool(value.gi_code.co_flags & inspect.CO_ITERABLE_COROUTINE)
    try:
        return issubclass(type(value), Awaitable)
    except Exception:  # noqa: BLE001 - a metaclass may do anything
        return False


def is_async_generator(value: Any) -> bool:
    """Return whether to collect a value's items with `collect_async_items`."""
    return issubclass(type(value), types.AsyncGeneratorType)


def collect_items(lazy: Iterable[Any], most: int, items: list[Any] | None = None) -> Collected:
    """Take at most `most` items.

    Args:
        lazy: Yields the items.
        most: The limit.
        items: An empty list that holds what was yielded before an exception.
    """
    items = [] if items is None else items
    if type(lazy) is groupby:  # each group is empty once the next one is taken
        lazy = ([key, [*islice(group, most)]] for key, group in lazy)
    items.extend(islice(lazy, most + 1))
    return _note_more(items, most)


def collect_within(value: Any, most: int) -> Any:
    """Return a list, tuple or dict with lists in place of the iterators in it.

    Args:
        value: Anything; returned as it is if it is large, or has no iterator among its items.
        most: Maximum items taken of each.
    """
    if type(value) not in _PARTS or len(value) > MAX_COLLECTED:
        return value
    parts = value if type(value) is dict else dict(enumerate(value))
    if not any(map(is_iterator, parts.values())):
        return value
    read = {key: _read_within(part, most) for key, part in parts.items()}
    return read if type(value) is dict else type(value)(read.values())


def _read_within(part: Any, most: int) -> Any:
    if not is_iterator(part):
        return part
    collected = collect_items(part, most)
    return [*collected.items, f"... {collected.note} ..."] if collected.note else collected.items


async def collect_async_items(
    lazy: AsyncGenerator[Any, None], most: int, items: list[Any] | None = None
) -> Collected:
    """Take at most `most` items as `collect_items` does, and close the generator.

    Its ``finally`` may await, so it must be closed on the loop that it ran on.
    """
    items = [] if items is None else items
    async with aclosing(lazy):
        async for item in lazy:
            items.append(item)
            if len(items) > most:
                break
    return _note_more(items, most)


def _note_more(items: list[Any], most: int) -> Collected:
    if len(items) <= most:
        return Collected(items)
    note = (
        f"only the first {most:,} items were taken; the others are lost, since a generator yields "
        "each once: return a list to keep all"
    )
    return Collected(items[:most], note)
