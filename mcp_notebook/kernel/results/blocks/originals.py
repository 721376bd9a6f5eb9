"""The originals of what a result shows only in part: long texts, large images, tables.

An original is described on the thread of the call. Its content is made when a client reads it, on
another thread.
"""

import sys
from collections.abc import Callable, Mapping
from dataclasses import is_dataclass
from itertools import islice
from typing import Any, Literal, TypeAlias

from msgspec import Struct

from mcp_notebook.content import ResourceLink
from mcp_notebook.kernel.safe.foreign_code import DeadlineExceeded, guard

_SAMPLES = (0, 5, 5, 20, 200)
"""Parts of a value that are measured at each level, the deepest first: 100,000 altogether."""
_UNKNOWN = 2**20
"""Bytes assumed for a value that cannot be measured."""
_BUILT_IN = frozenset({str, bytes, bytearray, int, float, list, tuple, dict, set, frozenset})


class FileFormat(Struct, frozen=True):
    """A format in which an original can be read, such as CSV for a table."""

    extension: str
    """File extension with its dot: ``".csv"``."""
    mime_type: str
    content: Callable[[], str | bytes]
    """Makes the content; called on another thread each time a client reads it."""
    size: int | None = None
    """Bytes, if known before the content is made."""


class Original(Struct, frozen=True):
    """The whole of something that a result shows only in part or downsized."""

    name: str
    """File name without extension: ``"table"``."""
    title: str
    """Description for people: ``"The whole table: 1,000 rows x 3 columns"``."""
    formats: tuple[FileFormat, ...]
    """The formats to choose from; the first suits most readers."""
    cost: int
    """Bytes of memory held while it is kept."""
    kind: Literal["", "table", "plotly", "vega", "bokeh", "page"] = ""
    """What a live view can show it as; empty for none."""
    read_table: Callable[[], Any] | None = None
    """Returns the frame (`tables.frame.Frame`) of a table, for its live view; raises
    `ResourceFailed` if the notebook no longer has the table."""


OriginalSink: TypeAlias = Callable[[Original], tuple[ResourceLink, ...]]
"""Keeps an original; returns a link for each of its formats, or none if it is too large."""


def discard_original(_original: Original) -> tuple[ResourceLink, ...]:
    """Keep nothing, where no client could read it."""
    return ()


def estimate_memory(value: Any) -> int:
    """Estimate how many bytes of memory a value holds, from a sample of its parts."""
    try:
        return _estimate(value, len(_SAMPLES) - 1)
    except DeadlineExceeded:
        return _UNKNOWN


def _estimate(value: Any, depth: int) -> int:
    if type(value) in _BUILT_IN:
        return _measure(value, depth)
    try:
        return guard(lambda value: _measure(value, depth), value)
    except Exception:  # noqa: BLE001 - the value's own code
        return _UNKNOWN


def _measure(value: Any, depth: int) -> int:
    size = sys.getsizeof(value, 64)
    if depth == 0 or isinstance(value, (str, bytes, bytearray, int, float)):
        return size
    most = _SAMPLES[depth]
    buffer = getattr(value, "nbytes", None)
    if isinstance(buffer, int):
        return max(size, buffer)
    if isinstance(value, Mapping):
        parts: Any = value.values()
        count = len(value)
    elif isinstance(value, (list, tuple)):
        count = len(value)
        parts = value[:: count // most + 1]  # spread over all of it
    elif isinstance(value, (set, frozenset)):
        parts = value
        count = len(value)
    elif is_dataclass(value) or hasattr(value, "__dict__"):
        parts = list(vars(value).values()) if hasattr(value, "__dict__") else []
        count = len(parts)
    else:
        return size
    sample = [_estimate(part, depth - 1) for part in islice(parts, most)]
    return size + (sum(sample) * count // len(sample) if sample else 0)
