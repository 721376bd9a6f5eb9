"""Writes a whole table as a file: CSV, and Parquet if pyarrow is installed.

Runs in the user's kernel, on a thread of the resource store, when a client reads the file. A cell
that a format cannot hold becomes text, so that one odd column does not cost the whole file.
"""

import io
import re
import sys
from collections.abc import Callable, Iterator
from datetime import date, time, timedelta
from decimal import Decimal
from functools import partial
from importlib.util import find_spec
from typing import Any

from mcp_notebook.kernel.results.blocks.originals import FileFormat, Original
from mcp_notebook.kernel.results.tables.cell_text import (
    ABSENT,
    QuotedText,
    find_quoted_texts,
    mark_text,
)
from mcp_notebook.kernel.results.tables.csv_text import format_csv_rows
from mcp_notebook.kernel.results.tables.frame import MAX_COPY, Frame, format_name
from mcp_notebook.kernel.safe.foreign_code import guard
from mcp_notebook.kernel.safe.libraries import is_instance
from mcp_notebook.kernel.safe.stand_ins import format_object
from mcp_notebook.kernel.safe.tabular_data import is_missing, name_uniquely
from mcp_notebook.kernel.safe.text import replace_surrogates, safe_repr
from mcp_notebook.kernel.safe.to_json import TooLarge, format_json_lines, to_whole_json
from mcp_notebook.text.wording import count as format_count

CSV = "text/csv"
PARQUET = "application/vnd.apache.parquet"
NPY = "application/x-npy"
CHUNK_ROWS = 10_000
MAX_ELEMENTS = 2**24
"""Maximum elements and characters of an array that is written as JSON."""
MAX_NESTED = 5
"""Maximum nesting of a cell in Parquet; a deeper one becomes text."""
_SCALARS = (str, bytes, int, float, Decimal, date, time, timedelta)
_EXACT = frozenset({str, int, bool})
_PLAIN = _EXACT | {float}
_SURROGATES = re.compile("[\ud800-\udfff]")


def describe_exports(frame: Frame) -> tuple[FileFormat, ...]:
    """Return the file formats in which a client can read a whole table."""
    formats = [FileFormat(".csv", CSV, lambda: write_csv(frame.renew()))]
    if find_spec("pyarrow") is not None:
        formats.append(FileFormat(".parquet", PARQUET, lambda: write_parquet(frame.renew())))
    return tuple(formats)


def describe_array(array: Any) -> Original:
    """Describe a whole array that is not a table: as JSON, and as numpy's file."""
    is_live = array.nbytes > MAX_COPY
    kept = array if is_live else array.copy()
    formats = [FileFormat(".json", "application/json", lambda: _write_elements(kept))]
    if not array.dtype.hasobject and not is_instance(array, "numpy.ma.MaskedArray"):
        formats.append(FileFormat(".npy", NPY, lambda: _write_npy(kept)))
    title = f"The whole array: {format_count(array.size, 'element')}"
    title += ", as of when it is read" if is_live else ""
    return Original("array", title, tuple(formats), array.nbytes)


def _write_elements(array: Any) -> str:
    try:
        return format_json_lines(to_whole_json(array, MAX_ELEMENTS))
    except TooLarge:
        raise ValueError(f"it has more than {MAX_ELEMENTS:,} elements and characters") from None


def _write_npy(array: Any) -> bytes:
    file = io.BytesIO()
    sys.modules["numpy"].save(file, array, allow_pickle=False)
    return file.getvalue()


# -- CSV -------------------------------------------------------------------------------------------


def write_csv(frame: Frame) -> str:
    """Write a table as CSV: its labels, then its columns.

    A missing value is an empty cell; a string that looks like one is quoted.
    """
    labels = ["" if name is None else format_name(name) for name, _ in frame.label_data()]
    names = [_column_name(frame, position) for position in range(frame.width)]
    parts = [format_csv_rows([(*labels, *names)])]
    for start in range(0, frame.height, CHUNK_ROWS):
        stop = min(start + CHUNK_ROWS, frame.height)
        columns = [label.values for label in frame.labels(start, stop)]
        columns += [frame.column_values(position, start, stop) for position in range(frame.width)]
        parts.append(_format_rows(frame, columns))
    return _SURROGATES.sub("\ufffd", "".join(parts))


def _format_rows(frame: Frame, columns: list[list[Any]]) -> str:
    for to_cells in (_to_csv_cells, _to_texts):
        try:
            return format_csv_rows(list(zip(*(to_cells(frame, c) for c in columns), strict=True)))
        except ValueError:  # an int with more digits than Python converts
            continue
    return ""


def _to_csv_cells(frame: Frame, values: list[Any]) -> list[Any]:
    # A call for each cell is slow: each type and each text is examined once, and values that the
    # csv module writes well stay as they are.
    examples = {type(value): value for value in values}
    quoted: dict[str, QuotedText] = {}
    if str in examples:
        quoted = find_quoted_texts({value for value in values if type(value) is str})
    if examples.keys() <= _EXACT:
        return [quoted.get(value, value) for value in values] if quoted else values
    missing_types = {kind for kind, value in examples.items() if _is_none(value)}
    float_types = {kind for kind, value in examples.items() if _may_be_nan(value)}
    return [
        ""
        if (kind := type(value)) in missing_types
        else quoted.get(value, value)
        if kind is str
        else _write_nan(frame, value)
        if kind in float_types and value != value  # noqa: PLR0124 - only NaN and NaT differ
        else value
        if kind in _PLAIN
        else _to_cell(value)
        for value in values
    ]


def _to_texts(frame: Frame, values: list[Any]) -> list[str]:
    are_missing = frame.find_missing(values)
    return ["" if no else _to_cell(value) for value, no in zip(values, are_missing, strict=True)]


def _write_nan(frame: Frame, value: Any) -> str:
    return "NaN" if isinstance(value, float) and not frame.nan_is_missing else ""


def _to_cell(value: Any) -> str:
    text = _to_text(value)
    return mark_text(text) if isinstance(value, str) else text


# -- Parquet ---------------------------------------------------------------------------------------


def write_parquet(frame: Frame) -> bytes:
    """Write a table as Parquet; repeated column names get a number."""
    import pyarrow as pa  # noqa: PLC0415 - only here, and only if it is installed
    from pyarrow import parquet  # noqa: PLC0415 - as above

    columns = name_uniquely(
        (name, _to_arrow(pa, parquet, data)) for name, data in _iterate_columns(frame)
    )
    file = io.BytesIO()
    parquet.write_table(pa.table(columns), file)
    return file.getvalue()


def _iterate_columns(frame: Frame) -> Iterator[tuple[str, Any]]:
    for level, (name, data) in enumerate(frame.label_data()):
        default = "index" if level == 0 else f"level_{level}"
        yield default if name is None else format_name(name), data
    for position in range(frame.width):
        yield _column_name(frame, position), frame.column_data(position)


def _to_arrow(arrow: Any, parquet: Any, data: Any) -> Any:
    """Return a column as an Arrow array; as strings if Arrow or Parquet cannot hold its values."""
    for to_array in (_to_array, _to_dense_array) if _is_safe_for_arrow(data) else ():
        convert = partial(_convert_and_check, arrow, parquet, to_array, data)
        array = guard(convert, recover=lambda _error: None)
        if array is not None:
            return array
    values = data.to_pylist() if isinstance(data, (arrow.Array, arrow.ChunkedArray)) else data
    texts = [
        None if _is_missing(value) else replace_surrogates(_to_text(value)) for value in values
    ]
    return arrow.array(texts, arrow.string())


def _convert_and_check(arrow: Any, parquet: Any, to_array: Callable[..., Any], data: Any) -> Any:
    array = to_array(arrow, data)
    parquet.write_table(arrow.table({"": array[:1]}), io.BytesIO())
    return array


def _is_safe_for_arrow(data: Any) -> bool:
    """Return whether a column is safe for Arrow: self-containing lists crash the process."""
    if type(data) is not list and str(getattr(data, "dtype", "")) != "object":
        return True
    return all(_is_shallow(value, MAX_NESTED) for value in data)


def _is_shallow(value: Any, levels: int) -> bool:
    if type(value) in (list, tuple, dict):
        items = value.values() if type(value) is dict else value
        return levels > 0 and all(_is_shallow(item, levels - 1) for item in items)
    if is_instance(value, "numpy.ndarray"):
        return bool(value.dtype.kind != "O")
    return isinstance(value, _SCALARS) or _is_missing(value) or is_instance(value, "numpy.generic")


def _to_array(arrow: Any, data: Any) -> Any:
    if isinstance(data, (arrow.Array, arrow.ChunkedArray)):
        return data
    return arrow.array(data, from_pandas=True)


def _to_dense_array(arrow: Any, data: Any) -> Any:
    numpy = sys.modules["numpy"]  # loaded wherever there is a sparse column
    return arrow.array(numpy.asanyarray(data), from_pandas=True)


# -- values and names, for both --------------------------------------------------------------------


def _to_text(value: Any) -> str:
    # Not `guard`: its closures take as long as formatting a cell.
    try:
        if is_instance(value, "numpy.ndarray"):  # whose own text leaves elements out
            return str(sys.modules["numpy"].array2string(value, threshold=value.size + 1))
        return format_object(value)
    except KeyboardInterrupt:
        raise
    except BaseException:  # noqa: BLE001 - the code of an object in a cell may raise anything
        return safe_repr(value)


def _is_missing(value: Any) -> bool:
    return _is_none(value) or (_may_be_nan(value) and bool(value != value))  # noqa: PLR0124


def _is_none(value: Any) -> bool:
    return value is None or value is ABSENT or is_missing(value)


def _may_be_nan(value: Any) -> bool:
    return isinstance(value, float) or is_instance(value, "numpy.datetime64")


def _column_name(frame: Frame, position: int) -> str:
    return format_name(frame.column_name(position))
