"""Describes a matplotlib figure in one line: titles, axes, ranges and series, from its artists.

Runs in the user's kernel, on the thread of the call. Nothing is drawn for it.
"""

import math
import sys
from collections.abc import Iterable, Iterator
from typing import Any

from mcp_notebook.kernel.safe.libraries import is_instance
from mcp_notebook.kernel.safe.text import clean_text
from mcp_notebook.text.wording import count

_MAX_AXES = 4
"""Axes of a figure that are described."""
_MAX_NAMES = 6
"""Series, slices or categories that are named."""
_SCATTER = "matplotlib.collections.PathCollection"
_NOISE = 1e-12
"""Part of a range that is too small for a number of its own."""
_MAX_LABEL = 60
"""Characters of a title or a name."""


def describe_figure(figure: Any) -> str:
    """Return a line without a period; "" if its artists say nothing."""
    try:
        said = _describe(figure)
    except Exception:  # noqa: BLE001 - artists may be the author's code
        return ""
    return f"Figure{said}" if said else ""


def _describe(figure: Any) -> str:
    title = figure.get_suptitle() if hasattr(figure, "get_suptitle") else ""
    shown = [
        axes
        for axes in figure.axes
        if axes.get_label() != "<colorbar>" and (axes.has_data() or axes.get_title())
    ]
    parts = [": ".join(filter(None, _describe_axes(axes))) for axes in shown[:_MAX_AXES]]
    if len(shown) > _MAX_AXES:
        parts.append(f"{len(shown) - _MAX_AXES} more axes")
    said = " | ".join(filter(None, parts))
    if len(shown) == 1 and not title:
        return f" {said}" if said else ""
    head = f" {_quote(title)}" if title else ""
    return f"{head}: {said}" if said else head


def _describe_axes(axes: Any) -> Iterator[str]:
    """Yield the title of axes, and what they show."""
    if title := axes.get_title():
        yield _quote(title)
    slices = [patch for patch in axes.patches if is_instance(patch, "matplotlib.patches.Wedge")]
    if slices:
        total = sum(abs(piece.theta2 - piece.theta1) for piece in slices) or 1
        shares = [abs(piece.theta2 - piece.theta1) / total for piece in slices]
        names = [
            f"{_clean(piece.get_label())} {share:.3g}%".strip()
            for piece, share in zip(slices, (100 * share for share in shares), strict=True)
        ]
        yield f"{count(len(slices), 'slice')} ({_list(names)})"
        return
    pictures = [_describe_picture(item) for item in (*axes.images, *axes.collections)]
    has_axis = getattr(axes, "_axis3don", axes.axison)
    said = [] if any(pictures) or not has_axis else list(_describe_ranges(axes))
    if any(pictures):
        said += [f"{name} {_clean(label)}" for name, label in _list_labels(axes) if label]
    yield ", ".join([*said, *filter(None, pictures), *_describe_series(axes)])


def _describe_picture(artist: Any) -> str:
    """Describe an image or a mesh of colors; "" for other artists."""
    kinds = ("matplotlib.image.AxesImage", "matplotlib.collections.QuadMesh")
    values = artist.get_array() if any(is_instance(artist, kind) for kind in kinds) else None
    if values is None:
        return ""
    size = " x ".join(f"{side:,}" for side in values.shape)
    is_colored = values.ndim > 2  # noqa: PLR2004 - height, width, channels
    limits: tuple[Any, Any] = (None, None) if is_colored else artist.get_clim()
    said = "" if limits[0] is None else f" of {_format_numbers(*limits)}"
    return f"image {size}{said}"


def _list_labels(axes: Any) -> Iterator[tuple[str, str]]:
    for name in "xyz":
        if hasattr(axes, f"{name}axis"):
            yield name, getattr(axes, f"get_{name}label")()


def _describe_ranges(axes: Any) -> Iterator[str]:
    flat = getattr(axes, "xy_dataLim", axes.dataLim)
    for name, label in _list_labels(axes):
        box = axes.zz_dataLim if name == "z" else flat
        data = box.intervaly if name == "y" else box.intervalx
        view = sorted(getattr(axes, f"get_{name}lim")())
        lowest, highest = max(data[0], view[0]), min(data[1], view[1])
        limits = ""
        if lowest <= highest and all(map(math.isfinite, data)):
            limits = _format_range(axes, getattr(axes, f"{name}axis"), lowest, highest)
        if label or limits:
            yield " ".join(filter(None, [name, _clean(label), limits]))


def _format_range(axes: Any, axis: Any, lowest: float, highest: float) -> str:
    formatter = axis.get_major_formatter()
    names = list(getattr(axis.units, "_mapping", ()))
    if not names and is_instance(axis.get_major_locator(), "matplotlib.ticker.FixedLocator"):
        names = [label.get_text() for label in axis.get_ticklabels()]
    if not all(map(_is_number, names)):
        return f"({_list(map(_clean, names))})"
    if any(kind.__module__ == "matplotlib.dates" for kind in type(formatter).__mro__):
        ends = list(map(sys.modules["matplotlib.dates"].num2date, (lowest, highest)))
    elif axis.axis_name == "x" and getattr(axes, "freq", None) is not None:  # of pandas' plots
        period = sys.modules["pandas"].Period
        return " to ".join(
            str(period(ordinal=round(end), freq=axes.freq)) for end in (lowest, highest)
        )
    else:
        return _format_numbers(lowest, highest)
    form = "%Y-%m-%d" if all(f"{end:%H%M%S}" == "000000" for end in ends) else "%Y-%m-%d %H:%M"
    return " to ".join(f"{end:{form}}" for end in ends)


def _is_number(label: str) -> bool:
    try:
        float(label.replace("\N{MINUS SIGN}", "-") or 0)
    except ValueError:
        return False
    return True


def _format_numbers(lowest: float, highest: float) -> str:
    """Return two numbers with as many digits as tell them apart."""
    if lowest == highest:
        return f"{lowest:.6g}"
    size = highest - lowest
    # The edge of a bar at zero may be computed.
    lowest, highest = (0 if abs(end) < _NOISE * size else end for end in (lowest, highest))
    magnitude = max(abs(lowest), abs(highest)) / size
    digits = min(4 + max(0, math.floor(math.log10(magnitude))), 17)
    return f"{lowest:.{digits}g} to {highest:.{digits}g}"


def _describe_series(axes: Any) -> Iterator[str]:
    """Yield the kinds of series with their numbers, and their names."""
    # Those of seaborn's legends are empty.
    lines = [line for line in axes.get_lines() if line.get_visible() and _count_places(line)]
    points = [item for item in axes.collections if is_instance(item, _SCATTER)]
    points = [item for item in points if item.get_visible() and _count_places(item)]
    bars = [item for item in axes.containers if hasattr(item, "patches")]
    kinds = [
        count(len(lines), "line") if lines else "",
        count(sum(map(_count_places, points)), "point") if points else "",
        count(sum(len(item.patches) for item in bars), "bar") if bars else "",
    ]
    legend = axes.get_legend()
    if legend is None:
        labels = [str(item.get_label() or "") for item in (*lines, *points, *bars)]
        names = [label for label in labels if not label.startswith("_")]
    else:
        names = [text.get_text() for text in legend.get_texts()]
    said = " and ".join(filter(None, kinds))
    named = _list([_clean(name) for name in names if name])
    if said or named:
        yield f"{said} ({named})" if said and named else said or named


def _count_places(artist: Any) -> int:
    """Return how many places of a line or of points have all their coordinates."""
    if hasattr(artist, "get_data_3d"):
        places = artist.get_data_3d()
    elif hasattr(artist, "get_offsets"):
        places = getattr(artist, "_offsets3d", artist.get_offsets().T)
    else:
        places = artist.get_data(orig=False)
    masked = sys.modules["numpy"].ma
    missing = [masked.getmaskarray(masked.masked_invalid(part)) for part in places]
    return int((~(missing[0] | missing[1] | missing[-1])).sum())


def _list(names: Iterable[str]) -> str:
    names = list(names)
    more = [f"{len(names) - _MAX_NAMES} more"] if len(names) > _MAX_NAMES else []
    return ", ".join([*names[:_MAX_NAMES], *more])


def _clean(label: Any) -> str:
    text = " ".join(clean_text(str(label or "")).split())
    return text if len(text) <= _MAX_LABEL else f"{text[: _MAX_LABEL - 3]}..."


def _quote(title: Any) -> str:
    return f'"{_clean(title)}"'
