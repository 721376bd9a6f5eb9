"""Which collections hold more than data: a list with a figure in it, a dict of tables.

Runs in the user's kernel, on the thread of the call. The items of such a collection are rendered
one by one; any other collection is one JSON text or one table.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from itertools import islice
from typing import Any

from mcp_notebook.kernel.results.blocks import images
from mcp_notebook.kernel.results.files.returned_files import MAX_FILES, is_path
from mcp_notebook.kernel.results.iterators import MAX_COLLECTED
from mcp_notebook.kernel.results.self_shown import RICH_METHODS
from mcp_notebook.kernel.results.value_rules import Rule, match_rules
from mcp_notebook.kernel.safe.foreign_code import DeadlineExceeded

_SCALARS = frozenset({bool, int, float, str, type(None)})
_COLLECTIONS = frozenset({list, tuple, dict})
_MAX_DEPTH = 1
"""Collections within collections whose items are looked at one by one."""
_MAX_LOOKED_AT = 8
"""Items of a collection within another that tell whether it is more than data."""


class RichItems:
    """Tells which items of one collection are more than text and data.

    Args:
        collection: A list, a tuple or a mapping; of anything else no item is rich.
        depth: In how many collections this one lies.
        is_custom: Tells whether the notebook's author converts values like an item.
        is_rich: Tells whether an item by itself is more than text and data.
    """

    def __init__(
        self,
        collection: Any,
        depth: int,
        *,
        is_custom: Callable[[Any], bool],
        is_rich: Callable[[Any], bool],
    ) -> None:
        self._collection = collection
        self._depth = depth
        self._is_custom = is_custom
        self._is_rich = is_rich

    def are_present(self, most: int = MAX_COLLECTED) -> bool:
        """Tell whether one of the first items is rich."""
        collection = self._collection
        if isinstance(collection, Mapping):
            return any(self.include(collection[key]) for key in islice(collection, most))
        if isinstance(collection, (list, tuple)):
            return any(map(self.include, collection[:most]))
        return False

    def include(self, item: Any) -> bool:
        """Tell whether an item is rich."""
        if self._is_custom(item):
            return True
        if type(item) in _SCALARS:
            return False
        if is_path(item):
            return self._depth == 0 and not self._is_listing
        if type(item) in _COLLECTIONS and self._depth < _MAX_DEPTH:
            nested = RichItems(
                item, self._depth + 1, is_custom=self._is_custom, is_rich=self._is_rich
            )
            if nested.are_present(_MAX_LOOKED_AT):
                return True
        return self._is_rich(item)

    @cached_property
    def _is_listing(self) -> bool:
        # Many paths are a listing, not files to be read.
        collection = self._collection
        items = collection.values() if isinstance(collection, Mapping) else collection
        paths = filter(is_path, islice(items, MAX_COLLECTED))
        return len(list(islice(paths, MAX_FILES + 1))) > MAX_FILES


def is_rich(value: Any, rules: Iterable[Rule[Any]]) -> bool:
    """Tell whether a value by itself is more than text and data.

    Args:
        value: Anything; if its own code fails, it is not rich.
        rules: The table of values.

    Raises:
        DeadlineExceeded: The value's own code took too long.
    """
    rich_rules = (rule for rule in rules if rule.is_rich)
    try:
        return (
            next(match_rules(rich_rules, value), None) is not None
            or (isinstance(value, bytes) and images.is_image(value))
            or any(callable(getattr(type(value), name, None)) for name in RICH_METHODS)
        )
    except (KeyboardInterrupt, DeadlineExceeded):
        raise
    except BaseException:  # noqa: BLE001 - one item that fails does not hide the others
        return False
