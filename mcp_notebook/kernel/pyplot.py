"""The figures that a call leaves open in pyplot, which a notebook shows at the end of a cell.

Runs in the user's kernel, on the thread of the call. matplotlib is never imported here: a notebook
that has not imported it has no figures. Drawing them is `kernel.results`' business.
"""

import sys
from typing import Any


def open_figures() -> dict[int, Any]:
    """Return pyplot's open figures by their number."""
    helpers = sys.modules.get("matplotlib._pylab_helpers")
    if helpers is None:
        return {}
    return {number: manager.canvas.figure for number, manager in helpers.Gcf.figs.items()}


def figures_since(before: dict[int, Any]) -> list[Any]:
    """Return the figures opened since an earlier `open_figures`, in their order."""
    return [figure for number, figure in open_figures().items() if before.get(number) is not figure]


def close_figures(figures: list[Any]) -> None:
    """Close figures, as a notebook does at the end of a cell, so that no later cell shows them."""
    for figure in figures:
        sys.modules["matplotlib.pyplot"].close(figure)


def holds(value: Any, figure: Any) -> bool:
    """Tell whether a tool's value is the figure, or a list or tuple with it."""
    return value is figure or (
        isinstance(value, (list, tuple)) and any(item is figure for item in value)
    )
