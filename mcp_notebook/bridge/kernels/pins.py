"""Which of a notebook's kernels somebody's calls go to, once one of them has gone there.

Runs on the bridge's event loop; no I/O. A client is a session, forgotten with it, or the name of a
caller; what is named is limited in number.
"""

from collections import OrderedDict
from typing import Any
from weakref import WeakKeyDictionary

MAX_NAMES = 10_000
"""Names that are remembered; those that have not been used for longest are forgotten."""


class Pins:
    """Remembers kernels, by who calls and the notebook."""

    def __init__(self) -> None:
        self._of_sessions: WeakKeyDictionary[Any, dict[str, str]] = WeakKeyDictionary()
        self._of_names: OrderedDict[tuple[str, str], str] = OrderedDict()

    def find(self, who: Any, notebook_id: str) -> str | None:
        """Return the id of a kernel; None if there is none."""
        if not isinstance(who, str):
            return self._of_sessions.get(who, {}).get(notebook_id)
        if (key := (who, notebook_id)) in self._of_names:
            self._of_names.move_to_end(key)
        return self._of_names.get(key)

    def set(self, who: Any, notebook_id: str, kernel_id: str) -> None:
        """Remember a kernel.

        Args:
            who: A session, which is not kept alive by this, or a name.
            notebook_id: The id of the notebook.
            kernel_id: The id of the kernel.
        """
        if not isinstance(who, str):
            self._of_sessions.setdefault(who, {})[notebook_id] = kernel_id
            return
        self._of_names[who, notebook_id] = kernel_id
        if len(self._of_names) > MAX_NAMES:
            self._of_names.popitem(last=False)

    def forget(self, name: str, notebook_id: str) -> None:
        """Forget the kernel of a name."""
        self._of_names.pop((name, notebook_id), None)
