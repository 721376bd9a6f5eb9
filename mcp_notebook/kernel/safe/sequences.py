"""Tells what is a sequence or a mapping, and reads any of them alike.

Runs in the user's kernel, on the thread of the call. A list, a tuple, a range, a deque, an array of
`array`, a view of a dict, a set or a ``UserList`` is a sequence. The items of a set are in the same
order in each process, unlike those that Python gives. One-shot iterators are not read here.
"""

import collections
from collections import Counter, deque
from collections.abc import ItemsView, Iterable, KeysView, Mapping, Sequence, ValuesView
from collections.abc import Set as AbstractSet
from contextlib import suppress
from itertools import islice
from typing import Any

from mcp_notebook.kernel.safe.foreign_code import guard
from mcp_notebook.kernel.safe.libraries import get_mro, is_instance
from mcp_notebook.kernel.safe.text import is_written, safe_repr

MAX_SORTED = 200_000
"""Items of the largest set that is sorted; a larger one is in Python's order."""
MAX_COMPARED = 10_000
"""The same for items that can only be compared by their text."""
SEQUENCES = (
    *(list, tuple, deque, range, collections.UserList),
    *(AbstractSet, KeysView, ValuesView, ItemsView),
)
"""Classes of sequences; an ``array.array`` is one too, if its module is imported."""
_BUILT_IN = frozenset({list, tuple, dict, set, frozenset})


def is_sequence(value: Any) -> bool:
    """Return whether a value is read as a list of its items.

    Not a subclass of one with a repr of its own and attributes: it is more than its items, as a
    tree with a label is.
    """
    kind = type(value)
    if kind in _BUILT_IN:
        return kind is not dict
    if not (isinstance(value, SEQUENCES) or is_instance(value, "array.array")):
        return False
    return not (getattr(value, "__dict__", None) and is_written(kind, "__repr__"))


def is_mapping(value: Any) -> bool:
    """Return whether a value is read as an object of its keys."""
    return isinstance(value, Mapping)


def list_keys(value: Mapping[Any, Any], most: int) -> Iterable[Any]:
    """Return the keys of a mapping; those of a `Counter` by count, as in its repr.

    Args:
        value: The mapping.
        most: How many keys are needed.
    """
    if not isinstance(value, Counter):
        return value
    try:
        return [key for key, _ in value.most_common(most)]
    except TypeError:  # counts that cannot be compared
        return value


def order_items(value: Any) -> Sequence[Any]:
    """Return the items of a sequence by position, those of a set sorted.

    Args:
        value: A value for which `is_sequence` is true, or an array of numpy.
    """
    if isinstance(value, Sequence):
        return value
    if is_instance(value, "numpy.ndarray"):
        array: Sequence[Any] = value
        return array
    items = list(value)
    if not isinstance(value, AbstractSet) or isinstance(value, (KeysView, ItemsView)):
        return items
    return _sort(items) if len(items) <= MAX_SORTED else items


def take_ends(items: Sequence[Any], head: int, tail: int) -> tuple[list[Any], list[Any]]:
    """Return the first and the last items."""
    size = len(items)
    return list(islice(items, head)), [items[place] for place in range(size - tail, size)]


def _sort(items: list[Any]) -> list[Any]:
    """Sort the items of a set; by their text if they cannot be compared with each other."""
    # Sets compare as subsets, which is not an order of all of them; NaN compares with nothing.
    kinds = set(map(type, items))
    if not any(frozenset in get_mro(kind) for kind in kinds) and not _has_nan(items, kinds):
        with suppress(Exception):  # they are of several types, or their code raises
            ordered: list[Any] = guard(sorted, items)
            return ordered
    return sorted(items, key=_write) if len(items) <= MAX_COMPARED else items


def _has_nan(items: list[Any], kinds: set[type]) -> bool:
    return float in kinds and any(item != item for item in items)  # noqa: PLR0124 - only NaN does


def _write(item: Any) -> tuple[str, str]:
    return type(item).__name__, safe_repr(item)
