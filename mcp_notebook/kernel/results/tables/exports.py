"""The whole of a table as a file: CSV, and Parquet where pyarrow is installed.

Runs in the user's kernel, on a thread of the store's, when a client reads the table: nothing is
encoded that nobody reads. A cell that cannot be written as what it is is written as its text, so
that one odd column loses no table.
"""

import csv
import io
import re
import sys
from collections.abc import Iterator
from datetime import date, time, timedelta
from decimal import Decimal
from importlib.util import find_spec
from typing import Any, Literal

from mcp_notebook.kernel.results.blocks.originals import FileFormat
from mcp_notebook.kernel.results.tables.frame import ABSENT, Frame, name_text
from mcp_notebook.kernel.safe.text import is_instance, safe_repr
from mcp_notebook.kernel.safe.to_json import find_free_name, is_missing, replace_surrogates

CSV = "text/csv"
PARQUET = "application/vnd.apache.parquet"
ROWS_AT_A_TIME = 10_000
MAX_NESTED = 5
"""Levels of lists and dicts in a cell that Parquet gets as such; deeper ones as their text."""
_SCALARS = (str, bytes, int, float, Decimal, date, time, timedelta)
_WHOLE = frozenset({str, int, bool})
_PLAIN = _WHOLE | {float}
_SURROGATES = re.compile("[\ud800-\udfff]")


def table_forms(frame: Frame) -> tuple[FileFormat, ...]:
    """Return the ways in which a client can get all of a table."""
    forms = [FileFormat(".csv", CSV, lambda: csv_text(frame))]
    if find_spec("pyarrow") is not None:
        forms.append(FileFormat(".parquet", PARQUET, lambda: parquet_bytes(frame)))
    return tuple(forms)


def csv_text(frame: Frame) -> str:
    """Write a table as CSV: labels that say something, then its columns; missing is empty."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    labels = ["" if name is None else name_text(name) for name, _ in frame.whole_labels()]
    writer.writerow([*labels, *(_name(frame, at) for at in range(frame.width))])
    for start in range(0, frame.height, ROWS_AT_A_TIME):
        stop = min(start + ROWS_AT_A_TIME, frame.height)
        columns = [column.values for column in frame.labels(start, stop)]
        columns += [frame.values(at, start, stop) for at in range(frame.width)]
        text.write(_csv_rows(columns))
    return _SURROGATES.sub("\ufffd", text.getvalue())


def _csv_rows(columns: list[list[Any]]) -> str:
    for cells in (_csv_cells, _csv_texts):
        rows = list(zip(*map(cells, columns), strict=True))
        try:
            text = _written(rows, csv.QUOTE_MINIMAL)
            # The module does not quote a cell for a carriage return alone, which ends its line.
            return _written(rows, csv.QUOTE_ALL) if "\r" in text else text
        except ValueError:  # an int of too many digits
            continue
    return ""


def _written(rows: list[tuple[Any, ...]], quoting: Literal[0, 1]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n", quoting=quoting).writerows(rows)
    return text.getvalue()


def parquet_bytes(frame: Frame) -> bytes:
    """Write a table as Parquet; names that come twice get a number."""
    import pyarrow as pa  # noqa: PLC0415 - only here, and only if it is installed
    from pyarrow import parquet  # noqa: PLC0415 - as above

    columns: dict[str, Any] = {}
    for name, values in _whole_columns(frame):
        columns[find_free_name(name, columns)] = _arrow_column(pa, parquet, values)
    file = io.BytesIO()
    parquet.write_table(pa.table(columns), file)
    return file.getvalue()


def _whole_columns(frame: Frame) -> Iterator[tuple[str, Any]]:
    for at, (name, values) in enumerate(frame.whole_labels()):
        yield ("index" if at == 0 else f"level_{at}") if name is None else name_text(name), values
    for at in range(frame.width):
        yield _name(frame, at), frame.whole_column(at)


def _arrow_column(arrow: Any, parquet: Any, values: Any) -> Any:
    """Return a column as Arrow's, as texts if Arrow or Parquet cannot hold its values."""
    for make in (_as_it_is, _dense) if _may_be_arrows(values) else ():
        try:
            made = make(arrow, values)
            parquet.write_table(arrow.table({"": made[:1]}), io.BytesIO())
        except KeyboardInterrupt:
            raise
        except BaseException:  # noqa: BLE001, S112 - the next way is the answer to all that fails
            continue
        return made
    if isinstance(values, (arrow.Array, arrow.ChunkedArray)):
        values = values.to_pylist()
    texts = [None if _is_missing(value) else replace_surrogates(_text(value)) for value in values]
    return arrow.array(texts, arrow.string())


def _may_be_arrows(values: Any) -> bool:
    """Tell whether a column is no danger to Arrow: a list in itself ends the process."""
    if type(values) is not list and str(getattr(values, "dtype", "")) != "object":
        return True
    return all(_is_flat(value, MAX_NESTED) for value in values)


def _is_flat(value: Any, levels: int) -> bool:
    if type(value) in (list, tuple, dict):
        parts = value.values() if type(value) is dict else value
        return levels > 0 and all(_is_flat(part, levels - 1) for part in parts)
    if is_instance(value, "numpy.ndarray"):
        return bool(value.dtype.kind != "O")
    return isinstance(value, _SCALARS) or _is_missing(value) or is_instance(value, "numpy.generic")


def _as_it_is(arrow: Any, values: Any) -> Any:
    if isinstance(values, (arrow.Array, arrow.ChunkedArray)):
        return values
    return arrow.array(values, from_pandas=True)


def _dense(arrow: Any, values: Any) -> Any:
    numpy = sys.modules["numpy"]  # who has such a column has imported it
    return arrow.array(numpy.asarray(values), from_pandas=True)


def _csv_cells(values: list[Any]) -> list[Any]:
    # What the csv module writes well itself stays as it is, and what a type is, is asked once: a
    # call for each cell takes time.
    types = {type(value): value for value in values}
    if types.keys() <= _WHOLE:
        return values
    missing = {kind for kind, value in types.items() if _is_none(value)}
    floats = {kind for kind, value in types.items() if _may_be_nan(value)}
    return [
        ""
        if (kind := type(value)) in missing or (kind in floats and value != value)  # noqa: PLR0124
        else value
        if kind in _PLAIN
        else _text(value)
        for value in values
    ]


def _csv_texts(values: list[Any]) -> list[str]:
    return ["" if _is_missing(value) else _text(value) for value in values]


def _text(value: Any) -> str:
    try:
        return str.__str__(str(value))
    except KeyboardInterrupt:
        raise
    except BaseException:  # noqa: BLE001 - an object in a cell may do anything
        return safe_repr(value)


def _is_missing(value: Any) -> bool:
    return _is_none(value) or (_may_be_nan(value) and bool(value != value))  # noqa: PLR0124


def _is_none(value: Any) -> bool:
    return value is None or value is ABSENT or is_missing(value)


def _may_be_nan(value: Any) -> bool:
    return isinstance(value, float) or is_instance(value, "numpy.datetime64")


def _name(frame: Frame, position: int) -> str:
    return name_text(frame.name(position))
