"""Gives each call its own pyplot figures, and finds those that it left open.

Runs in the user's kernel, on the thread of the call. pyplot has one registry of open figures for
the whole process, so that ``plt.plot`` knows where to draw. While the extension is loaded, that
registry depends on the context: a call begins without figures, and the figures that it opens are
invisible to the user's cells and to overlapping calls. matplotlib is never imported here.
"""

import sys
from collections import OrderedDict
from collections.abc import Iterator, MutableMapping, ValuesView
from contextvars import ContextVar
from typing import Any

from mcp_notebook.kernel.safe.libraries import find_imported

_HELPERS = "matplotlib._pylab_helpers"

_of_call: ContextVar["OrderedDict[int, Any] | None"] = ContextVar(
    "mcp_notebook_figures", default=None
)


class PyplotPatcher:
    """Gives calls their own figures; `install` and `uninstall` run on the main thread."""

    def __init__(self) -> None:
        self._installed: Any = None

    def install(self) -> None:
        """Replace pyplot's registry of open figures, once matplotlib has been imported."""
        helpers = find_imported(_HELPERS)
        if helpers is not None and self._installed is None:
            self._installed = helpers.Gcf.figs = _ByContext(helpers.Gcf.figs)

    def uninstall(self) -> None:
        """Restore it, with the figures of the user's cells."""
        helpers = find_imported(_HELPERS)
        if helpers is not None and helpers.Gcf.figs is self._installed:
            helpers.Gcf.figs = self._installed.of_cells
        self._installed = None

    def begin(self) -> None:
        """Let the current context, which is that of a call, begin without figures."""
        self.install()
        # Before matplotlib is imported, the user cannot have figures either.
        _of_call.set(OrderedDict() if self._installed is not None else None)


class _ByContext(MutableMapping[int, Any]):
    """pyplot's figure managers by number: those of the current call, or of the user's cells."""

    def __init__(self, of_cells: "OrderedDict[int, Any]") -> None:
        self.of_cells = of_cells

    @property
    def _here(self) -> "OrderedDict[int, Any]":
        of_call = _of_call.get()
        return self.of_cells if of_call is None else of_call

    def __getitem__(self, number: int) -> Any:
        return self._here[number]

    def __setitem__(self, number: int, manager: Any) -> None:
        self._here[number] = manager

    def __delitem__(self, number: int) -> None:
        del self._here[number]

    def __len__(self) -> int:
        return len(self._here)

    def __iter__(self) -> Iterator[int]:
        return iter(self._here)

    def __reversed__(self) -> Iterator[int]:
        backwards: Iterator[int] = reversed(self._here)
        return backwards

    def values(self) -> ValuesView[Any]:
        """Return the managers, as a view that can be reversed like that of an OrderedDict."""
        return self._here.values()

    def move_to_end(self, key: int, last: bool = True) -> None:  # noqa: FBT001, FBT002 - OrderedDict's
        """Make a figure the current one."""
        self._here.move_to_end(key, last)


def open_figures() -> list[Any]:
    """Return the figures that are open in this context, in order."""
    helpers = find_imported(_HELPERS)
    if helpers is None:
        return []
    return [manager.canvas.figure for manager in helpers.Gcf.figs.values()]


def close_figures(figures: list[Any]) -> None:
    """Close figures, as a notebook does at the end of a cell."""
    for figure in figures:
        sys.modules["matplotlib.pyplot"].close(figure)
