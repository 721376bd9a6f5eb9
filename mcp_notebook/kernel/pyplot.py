"""The figures that a call leaves open in pyplot, which a notebook shows at the end of a cell.

Runs in the user's kernel, on the thread of the call. matplotlib is never imported here: a notebook
that has not imported it has no figures. Drawing them is `kernel.results`' business.
"""

import sys
from typing import Any, Self


class CallFigures:
    """The figures that one call opened: those that appear while it is entered.

    A coroutine enters it for each of its steps: in between, cells and other calls open figures of
    their own. Used on the main thread.
    """

    def __init__(self) -> None:
        self._opened: list[Any] = []
        self._before: list[Any] | None = None

    def __enter__(self) -> Self:
        self._before = _open_figures()
        return self

    def __exit__(self, *exc: object) -> None:
        self._opened = self.still_open()
        self._before = None

    def still_open(self) -> list[Any]:
        """Return those that are still open, in their order."""
        return [
            figure
            for figure in _open_figures()
            if _among(figure, self._opened)
            or (self._before is not None and not _among(figure, self._before))
        ]


def close_figures(figures: list[Any]) -> None:
    """Close figures, as a notebook does at the end of a cell, so that no later cell shows them."""
    for figure in figures:
        sys.modules["matplotlib.pyplot"].close(figure)


def holds(value: Any, figure: Any) -> bool:
    """Tell whether a tool's value is the figure, or a list or tuple with it."""
    return value is figure or (
        isinstance(value, (list, tuple)) and any(item is figure for item in value)
    )


def _open_figures() -> list[Any]:
    helpers = sys.modules.get("matplotlib._pylab_helpers")
    if helpers is None:
        return []
    return [manager.canvas.figure for manager in helpers.Gcf.figs.values()]


def _among(figure: Any, figures: list[Any]) -> bool:
    return any(other is figure for other in figures)
