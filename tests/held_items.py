"""How much our objects hold, to see that nothing is left of what has passed."""

from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any


def count_items(*roots: object) -> int:
    """Return the number of items in all containers that our own objects hold, however deep."""
    seen: dict[int, object] = {}
    total = 0
    waiting = list(roots)
    while waiting:
        here = waiting.pop()
        if id(here) in seen:
            continue
        seen[id(here)] = here
        if isinstance(here, Mapping):
            total += len(here)
            waiting += [*here.keys(), *here.values()]
        elif isinstance(here, list | tuple | set | frozenset | deque):
            total += len(here)
            waiting += here
        elif type(here).__module__.startswith("mcp_notebook"):
            waiting += _list_attributes(here)
    return total


def _list_attributes(owner: Any) -> Iterator[object]:
    yield from vars(owner).values() if hasattr(owner, "__dict__") else ()
    for kind in type(owner).__mro__:
        names = getattr(kind, "__slots__", ())
        for name in (names,) if isinstance(names, str) else names:
            if hasattr(owner, name):
                yield getattr(owner, name)
