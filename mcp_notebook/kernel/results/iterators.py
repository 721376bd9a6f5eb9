"""Collects the items of generators, async generators, ``map`` objects...

Runs in the user's kernel, where the call runs: the items of an async generator are awaited on the
loop that the call's coroutines run on. The number of items is limited. Their time is
not, since it is the tool's running time, which its client and its user can end.
"""

import inspect
import types
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from itertools import islice
from typing import Any

from mcp_notebook.kernel.safe.libraries import is_instance

MAX_COLLECTED = 1_000
"""Maximum items taken from a generator."""

_LAZY = (types.GeneratorType, map, filter, zip, enumerate, reversed)


def is_iterator(value: Any) -> bool:
    """Return whether to collect a value's items; not for every iterator, since a file is one."""
    return isinstance(value, _LAZY)


def is_result(value: Any) -> bool:
    """Return whether a value is a SQLAlchemy result, whose rows can be fetched only once."""
    return is_instance(value, "sqlalchemy.engine.result.ResultInternal")


def is_awaitable(value: Any) -> bool:
    """Return whether a value is awaitable, even if its class cannot be read."""
    try:
        return inspect.isawaitable(value)
    except Exception:  # noqa: BLE001 - the value's own code
        return False


def is_async_generator(value: Any) -> bool:
    """Return whether to collect a value's items with `collect_async_items`."""
    return issubclass(type(value), types.AsyncGeneratorType)


def collect_items(lazy: Iterable[Any], most: int) -> list[Any]:
    """Take at most `most` items, and note if there are more."""
    return _marked(list(islice(lazy, most + 1)), most)


async def collect_async_items(lazy: AsyncGenerator[Any, None], most: int) -> list[Any]:
    """Take at most `most` items, note if there are more, and close the generator.

    Its ``finally`` may await, so it must be closed on the loop that it ran on.
    """
    items: list[Any] = []
    async with aclosing(lazy):
        async for item in lazy:
            items.append(item)
            if len(items) > most:
                break
    return _marked(items, most)


def _marked(items: list[Any], most: int) -> list[Any]:
    if len(items) > most:
        items[-1] = (
            f"... only the first {most:,} items were taken; the others are lost, since a generator "
            "yields each once: return a list to keep all ..."
        )
    return items
