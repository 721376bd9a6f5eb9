"""Reads tables and arrays from files, with the libraries that the notebook has loaded.

Runs in the user's kernel, on the thread of the call. pandas, polars and numpy are looked up in
``sys.modules`` and never imported: without them, the file is shown like any other. No code in a
file runs (no pickles), and its size is limited.
"""

import csv
import io
import json
import re
import zipfile
from collections.abc import Callable, Mapping
from itertools import chain, islice
from typing import Any, BinaryIO

from msgspec import Struct

from mcp_notebook.kernel.results.files.file_contents import FileInfo, detect_encoding
from mcp_notebook.kernel.safe.foreign_code import DeadlineExceeded, run_bounded, run_guarded
from mcp_notebook.kernel.safe.libraries import find_imported
from mcp_notebook.kernel.safe.text import describe_error

MAX_FILE = 64 * 2**20
"""Bytes of the largest file that is read as a table."""
MAX_SHEETS_FILE = 4 * 2**20
"""Bytes of the largest spreadsheet that is read: each MiB takes about a second."""
MAX_UNPACKED = 512 * 2**20
"""Maximum bytes in memory, if the file declares its size."""
MAX_ROWS = 1_000_000
_VALUE_BYTES = 8
_SAMPLE_BYTES = 8_192
_TEXTS = (".csv", ".tsv", ".jsonl", ".ndjson")
_DELIMITERS = (",", ";", "\t", "|")
_LARGEST_EXACT = 2**53
"""Larger integers are rounded as floats."""
_CODE = r"^\s*(?:[+-]?0\d|\+\d{7}|[+-]?\d+[eE]\d+\s*$)"
"""Codes that would be read as numbers: 007, +4712345678 (a telephone number), 1E5."""
_INTEGER = re.compile(r"\s*[+-]?\d+\s*")
_CODE_OR_LONG_INTEGER = rf"{_CODE}|^\s*[+-]?\d{{16}}"


class DataFile(Struct, frozen=True):
    """The data that was read from a file."""

    value: Any = None
    """The table, the array, or a dict of them; None if there is none."""
    note: str = ""
    """A sentence on why nothing or not everything was read, for the tool's author."""
    encoding: str | None = None
    """Encoding of a text file such as CSV; None for other files."""
    is_refused: bool = False
    """Whether no other library should try."""


class _TooLarge(Exception):
    """The data is too large for memory; the message says how large."""


class _Reader(Struct, frozen=True):
    """How a library reads a format."""

    library: str
    read: Callable[[Any, BinaryIO, FileInfo], Any]
    most: int = MAX_FILE


def is_data_file(info: FileInfo) -> bool:
    """Return whether a file's extension is that of a table or an array."""
    return info.path.suffix.lower() in READERS


def read_data_file(file: BinaryIO, info: FileInfo) -> DataFile:
    """Read a table or an array from an open file, and rewind it.

    Args:
        file: The open file.
        info: The description of the file, for which `is_data_file` is true.
    """
    readers = READERS[info.path.suffix.lower()]
    usable = [reader for reader in readers if find_imported(reader.library) is not None]
    names = " or ".join(f"`import {reader.library}`" for reader in readers)
    if not usable:
        return DataFile(note=f"After {names} in the notebook, {info.name} is shown as data.")
    note = ""
    for reader in usable:
        if info.size > reader.most:
            note = f"{info.name} is too large to be read as data: return a part of it."
            continue
        data = run_guarded(
            lambda reader=reader: _read(reader, file, info),  # type: ignore[misc]
            lambda error, reader=reader: _explain(reader, info, error),  # type: ignore[misc]
        )
        file.seek(0)
        if data.value is not None or data.is_refused:
            return data
        note = note or data.note
    return DataFile(note=note)


def _read(reader: _Reader, file: BinaryIO, info: FileInfo) -> DataFile:
    library = find_imported(reader.library)

    def read(file: Any) -> Any:
        file.seek(0)
        return reader.read(library, file, info)

    # A buffer, since libraries may close their file or read on after the deadline.
    content = file.read(info.size)
    value = run_bounded(read, io.BytesIO(content))
    note = ""
    if getattr(value, "shape", (0,))[:1] == (MAX_ROWS,) and reader.library != "numpy":
        note = f"Only the first {MAX_ROWS:,} rows of {info.name} were read."
    is_text = info.path.suffix.lower() in _TEXTS
    return DataFile(value, note, _detect_encoding(io.BytesIO(content), info) if is_text else None)


def _explain(reader: _Reader, info: FileInfo, error: BaseException) -> DataFile:
    if isinstance(error, DeadlineExceeded):
        note = f"{info.name} takes too long to read: return a part of its data."
        return DataFile(note=note, is_refused=True)
    if isinstance(error, _TooLarge):
        return DataFile(note=f"{info.name} {error}", is_refused=True)
    note = f"{reader.library} cannot read {info.name}: {describe_error(error)}"
    # Another library may misread text that this one refused.
    return DataFile(note=note, is_refused=info.path.suffix.lower() in _TEXTS)


# -- text ------------------------------------------------------------------------------------------


def _read_pandas_csv(pandas: Any, file: BinaryIO, info: FileInfo) -> Any:
    encoding, delimiter = _detect_dialect(file, info)
    # Not in chunks, between which a column may change its type. `NA` is a string.
    options = {"sep": delimiter, "encoding": encoding, "low_memory": False, "index_col": False}
    options |= {"keep_default_na": False, "na_values": [""]}
    # Raises for rows with more fields than the header, which the table would lose.
    pandas.read_csv(file, **options, header=None, nrows=2)
    file.seek(0)
    options["nrows"] = MAX_ROWS
    table = pandas.read_csv(file, **options)
    file.seek(0)
    has_codes = _may_have_codes(file.read(), encoding, delimiter)
    suspects = {}
    for position in range(table.shape[1]):
        column = table.iloc[:, position]
        kind = pandas.api.types.infer_dtype(column)
        is_rounded = kind == "floating" and column.abs().max() >= _LARGEST_EXACT
        is_whole = kind == "floating" and column.hasnans and (column.dropna() % 1 == 0).all()
        if is_rounded or is_whole or (has_codes and kind in ("integer", "floating")):
            suspects[position] = _CODE_OR_LONG_INTEGER if is_rounded else _CODE
    if suspects:
        file.seek(0)
        texts = pandas.read_csv(file, **options, usecols=[*suspects], dtype=object)
        for index, (position, pattern) in enumerate(suspects.items()):
            column, fields = table.iloc[:, position], texts.iloc[:, index].dropna()
            if any(map(re.compile(pattern).match, fields)):
                table.isetitem(position, texts.iloc[:, index].infer_objects())
            elif column.hasnans and fields.size and all(map(_INTEGER.fullmatch, fields)):
                table.isetitem(position, column.astype("Int64"))
    return table


def _read_polars_csv(polars: Any, file: BinaryIO, info: FileInfo) -> Any:
    encoding, delimiter = _detect_dialect(file, info)
    data = file.read().decode(encoding).encode()
    options = {"separator": delimiter, "n_rows": MAX_ROWS}
    table = polars.read_csv(io.BytesIO(data), infer_schema_length=10_000, **options)
    if b'"' in data and table.height < _count_rows(data.decode(), delimiter):
        raise ValueError("an unclosed quote hides some of its rows")
    has_codes = _may_have_codes(data, "utf-8", delimiter)
    suspects = {}
    for name, dtype in table.schema.items():
        is_rounded = dtype.is_float() and (table[name].abs().max() or 0) >= _LARGEST_EXACT
        if is_rounded or (has_codes and dtype.is_numeric()):
            suspects[name] = _CODE_OR_LONG_INTEGER if is_rounded else _CODE
    if suspects:
        texts = polars.read_csv(io.BytesIO(data), infer_schema_length=0, **options)
        names = [
            name for name, pattern in suspects.items() if texts[name].str.contains(pattern).any()
        ]
        table = table.with_columns(texts[name] for name in names)
    return table


def _count_rows(text: str, delimiter: str) -> int:
    """Return the number of rows of a CSV file without its header, at most `MAX_ROWS`.

    Raises:
        csv.Error: A quote is not closed, or is followed by text.
    """
    lines = io.StringIO(text.lstrip("\ufeff\r\n"), newline="")
    rows = csv.reader(lines, delimiter=delimiter, strict=True)
    return sum(1 for _ in islice(rows, 1, MAX_ROWS + 1))


def _may_have_codes(data: bytes, encoding: str, delimiter: str) -> bool:
    """Return whether a field may be a code such as 007, which a number would change.

    Reading each column as text would take several times as long as the table.
    """
    if encoding.startswith(("utf-16", "utf-32")):
        data = data.decode(encoding).encode()
    before = rb'[\s"%s]' % re.escape(delimiter.encode())
    after = rb'[.\s"%s]' % re.escape(delimiter.encode())
    patterns = (
        rb"0(?:(?<=%s0)|(?<=%s[+-]0))\d+(?:%s|\Z)" % (before, before, after),
        rb"\+\d{7}",
        rb"[eE](?<=\d[eE])\d+(?:%s|\Z)" % after,
    )
    return any(re.search(pattern, data) for pattern in patterns)


def _read_pandas_lines(pandas: Any, file: BinaryIO, info: FileInfo) -> Any:
    # `pandas.read_json` turns strings into numbers, numbers into dates, long integers into floats.
    lines = io.TextIOWrapper(file, _detect_encoding(file, info))
    rows = list(islice((json.loads(line) for line in lines if line.strip()), MAX_ROWS))
    if not all(isinstance(row, dict) for row in rows):
        raise ValueError("some of its lines are not objects")
    names = dict.fromkeys(chain.from_iterable(rows))
    columns = {name: [row.get(name) for row in rows] for name in names}
    return pandas.DataFrame(
        {name: _make_exact_column(pandas, values) for name, values in columns.items()},
        index=pandas.RangeIndex(len(rows)),
    )


def _make_exact_column(pandas: Any, values: list[Any]) -> Any:
    kinds = set(map(type, values))
    is_rounded = int in kinds and len(kinds) > 1 and kinds <= {int, float, type(None)}
    is_rounded = is_rounded and any(
        isinstance(value, int) and abs(value) >= _LARGEST_EXACT for value in values
    )
    if kinds == {int, type(None)} and not is_rounded:
        return pandas.Series(values, dtype="Int64")
    return pandas.Series(values, dtype=object if is_rounded else None)


def _read_polars_lines(polars: Any, file: BinaryIO, _info: FileInfo) -> Any:
    # `read_ndjson` may drop a name that the first lines lack.
    table = polars.scan_ndjson(file, infer_schema_length=None, n_rows=MAX_ROWS).collect()
    floats = [name for name, dtype in table.schema.items() if "Float" in str(dtype)]
    file.seek(0)
    if not floats or not re.search(rb"\d{16}", file.read()):
        return table
    file.seek(0)
    rows = [json.loads(line) for line in islice(filter(bytes.strip, file), MAX_ROWS)]
    for name in floats:
        values = [row.get(name) for row in rows]
        if any(map(_has_long_integer, values)):
            texts = [None if value is None else json.dumps(value) for value in values]
            table = table.with_columns(polars.Series(name, texts))
    return table


def _has_long_integer(value: Any) -> bool:
    """Return whether a JSON value contains an integer that a float would round."""
    if isinstance(value, (list, dict)):
        return any(map(_has_long_integer, value.values() if isinstance(value, dict) else value))
    return isinstance(value, int) and abs(value) >= _LARGEST_EXACT


def _detect_dialect(file: BinaryIO, info: FileInfo) -> tuple[str, str]:
    """Return the encoding of a file and its column separator."""
    encoding = _detect_encoding(file, info)
    header = file.read(_SAMPLE_BYTES).decode(encoding, "ignore").lstrip("\ufeff\r\n")
    file.seek(0)
    if header.startswith("#"):
        raise ValueError("it begins with a comment")
    if info.path.suffix.lower() == ".tsv":
        return encoding, "\t"
    return encoding, max(_DELIMITERS, key=header.partition("\n")[0].count)


def _detect_encoding(file: BinaryIO, info: FileInfo) -> str:
    beginning = file.read(_SAMPLE_BYTES)
    file.seek(max(info.size - _SAMPLE_BYTES, 0))
    encoding = detect_encoding(beginning, file.read(_SAMPLE_BYTES))
    file.seek(0)
    if encoding is None:
        raise ValueError("it is not text")
    return encoding


# -- binary formats --------------------------------------------------------------------------------


def _read_pandas_parquet(pandas: Any, file: BinaryIO, _info: FileInfo) -> Any:
    from pyarrow import parquet  # noqa: PLC0415 - as pandas does, only where there is such a file

    metadata = parquet.read_metadata(file)
    groups = range(metadata.num_row_groups)
    packed = sum(metadata.row_group(group).total_byte_size for group in groups)
    # Repeated values take no space in the file.
    _check_unpacked(max(packed, metadata.num_rows * metadata.num_columns * _VALUE_BYTES))
    return _read_exactly(pandas, pandas.read_parquet, file)


def _read_pandas_feather(pandas: Any, file: BinaryIO, _info: FileInfo) -> Any:
    return _read_exactly(pandas, pandas.read_feather, file)


def _read_exactly(pandas: Any, read: Callable[..., Any], file: BinaryIO) -> Any:
    """Read an Arrow table; keep Arrow columns where pandas' would round integers."""
    file.seek(0)
    table = read(file)
    file.seek(0)
    exact = read(file, dtype_backend="pyarrow")
    for position in range(table.shape[1]):
        if _is_rounded(pandas, table.iloc[:, position], exact.iloc[:, position]):
            table.isetitem(position, exact.iloc[:, position].array)
    if _is_rounded(pandas, table.index, exact.index):
        table.index = exact.index
    return table


def _is_rounded(pandas: Any, column: Any, exact: Any) -> bool:
    """Return whether pandas would turn integers into floats: beside nulls or within lists."""
    from pyarrow import types  # noqa: PLC0415 - as above

    kind = getattr(exact.dtype, "pyarrow_dtype", None)
    if kind is None:
        return False
    if types.is_nested(kind):
        return bool(column.dtype == object)
    return types.is_integer(kind) and pandas.api.types.is_float_dtype(column.dtype) is True


def _read_sheets(pandas: Any, file: BinaryIO, _info: FileInfo) -> Any:
    if zipfile.is_zipfile(file):  # not so those of old versions
        with zipfile.ZipFile(file) as archive:
            _check_unpacked(sum(member.file_size for member in archive.infolist()))
    file.seek(0)
    # As the cells are: strings such as `01` and `NA` are neither numbers nor missing.
    options = {"keep_default_na": False, "na_values": [""], "dtype": object}
    sheets = pandas.read_excel(file, sheet_name=None, nrows=MAX_ROWS, **options)
    tables = {name: table.infer_objects() for name, table in sheets.items()}
    return next(iter(tables.values())) if len(tables) == 1 else tables


def _read_array(numpy: Any, file: BinaryIO, _info: FileInfo) -> Any:
    loaded = numpy.load(file, allow_pickle=False)
    if not isinstance(loaded, Mapping):
        return loaded
    _check_unpacked(sum(member.file_size for member in loaded.zip.infolist()))  # type: ignore[attr-defined]
    return dict(loaded)


def _check_unpacked(size: int) -> None:
    if size > MAX_UNPACKED:
        raise _TooLarge(f"takes {size / 2**20:,.0f} MiB in memory: return a part of its data.")


READERS: Mapping[str, tuple[_Reader, ...]] = {
    **dict.fromkeys(
        (".csv", ".tsv"), (_Reader("pandas", _read_pandas_csv), _Reader("polars", _read_polars_csv))
    ),
    ".parquet": (
        _Reader("pandas", _read_pandas_parquet),
        _Reader("polars", lambda polars, file, _: polars.read_parquet(file, n_rows=MAX_ROWS)),
    ),
    **dict.fromkeys(
        (".feather", ".arrow"),
        (
            _Reader("pandas", _read_pandas_feather),
            _Reader("polars", lambda polars, file, _: polars.read_ipc(file, n_rows=MAX_ROWS)),
        ),
    ),
    **dict.fromkeys(
        (".jsonl", ".ndjson"),
        (
            _Reader("pandas", _read_pandas_lines),
            _Reader("polars", _read_polars_lines),
        ),
    ),
    **dict.fromkeys((".xlsx", ".xls", ".ods"), (_Reader("pandas", _read_sheets, MAX_SHEETS_FILE),)),
    **dict.fromkeys((".npy", ".npz"), (_Reader("numpy", _read_array),)),
}
"""Readers by extension, in the order of trial."""
