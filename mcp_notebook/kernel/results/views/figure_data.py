"""The numbers that a matplotlib figure shows, as rows of a table beside its picture.

Runs in the user's kernel, on the thread of the call. Lines, scatters and bars have numbers to show;
whatever else is drawn has only the picture.
"""

from collections.abc import Iterator
from typing import Any

from mcp_notebook.kernel.results.plots.matplotlib_figures import find_figures
from mcp_notebook.kernel.safe.foreign_code import run_guarded

MAX_POINTS = 100_000
"""Points of one table; a figure with more has none."""
_UNNAMED = "_"
"""The beginning of the labels that matplotlib makes itself."""


def read_figures(value: Any) -> list[dict[str, Any]]:
    """Return a row for each point that the figures of a value show; none if there are too many."""
    return run_guarded(lambda: _read(find_figures(value) or []), lambda _error: [])


def _read(figures: list[Any]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for figure in figures:
        for number, axes in enumerate(figure.axes, 1):
            place = axes.get_title() or f"axes {number}"
            for series, x, y in _iterate_series(axes):
                if len(rows) + len(x) > MAX_POINTS:
                    return []
                rows += [
                    {"axes": place, "series": series, "x": left, "y": up}
                    for left, up in zip(x, y, strict=True)
                ]
    return rows


def _iterate_series(axes: Any) -> Iterator[tuple[str, list[Any], list[Any]]]:
    for number, line in enumerate(axes.get_lines(), 1):
        yield _name(line, f"line {number}"), _to_list(line.get_xdata()), _to_list(line.get_ydata())
    for number, points in enumerate(axes.collections, 1):
        offsets = points.get_offsets().tolist() if hasattr(points, "get_sizes") else []
        if offsets:
            x, y = map(list, zip(*offsets, strict=True))
            yield _name(points, f"points {number}"), x, y
    for number, bars in enumerate(axes.containers, 1):
        patches = [patch for patch in bars if hasattr(patch, "get_height")]
        if patches:
            left = [patch.get_x() + patch.get_width() / 2 for patch in patches]
            yield _name(bars, f"bars {number}"), left, [patch.get_height() for patch in patches]


def _name(artist: Any, default: str) -> str:
    label = str(artist.get_label() or "")
    return default if not label or label.startswith(_UNNAMED) else label


def _to_list(values: Any) -> list[Any]:
    return list(values.tolist() if hasattr(values, "tolist") else values)
