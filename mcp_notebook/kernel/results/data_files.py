"""Reads the tables and arrays in files with the library that the notebook has loaded.

Runs in the user's kernel, on the thread of the call. pandas, polars and numpy are looked up in
``sys.modules`` and never imported: a kernel that has none of them shows the file as any other.
Nothing that a file contains is run (no pickles), and how much is read of it is bounded.
"""

import io
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO

from mcp_notebook.kernel.results.file_contents import FileInfo, detect_encoding
from mcp_notebook.kernel.safe.deadline import DeadlineExceeded, run_bounded
from mcp_notebook.kernel.safe.foreign_code import run_guarded
from mcp_notebook.kernel.safe.text import describe_error

MAX_FILE = 64 * 2**20
"""Bytes of the largest file that is read as a table."""
MAX_SHEETS_FILE = 4 * 2**20
"""Bytes of the largest spreadsheet, which takes a second for each."""
MAX_UNPACKED = 512 * 2**20
"""Bytes that a file may take in the memory, as far as it says so."""
MAX_ROWS = 1_000_000
_VALUE_BYTES = 8
_SAMPLE_BYTES = 8_192
_TEXTS = (".csv", ".tsv", ".jsonl", ".ndjson")
_DELIMITERS = (",", ";", "\t", "|")


@dataclass(frozen=True)
class DataFile:
    """What was read of a file."""

    value: Any = None
    """The table, the array, or a dict of them; None if none was read."""
    note: str = ""
    """A sentence on why nothing was read, or not everything; for whoever returned the file."""
    is_refused: bool = False
    """Whether no other library is to try it."""


class _TooLarge(Exception):
    """A file says that its data would fill the memory; the message says how much of it."""


@dataclass(frozen=True)
class _Reader:
    """How one library reads one format."""

    library: str
    read: Callable[[Any, BinaryIO, FileInfo], Any]
    most: int = MAX_FILE


def is_data_file(info: FileInfo) -> bool:
    """Tell whether the name of a file says that it holds a table or an array."""
    return info.path.suffix.lower() in READERS


def is_text_file(info: FileInfo) -> bool:
    """Tell whether the name of such a file says that it is a text, too."""
    return info.path.suffix.lower() in _TEXTS


def read_data_file(file: BinaryIO, info: FileInfo) -> DataFile:
    """Read a table or an array from an open file; leave it at its beginning.

    Args:
        file: The open file.
        info: The description of the file, for which `is_data_file` is true.
    """
    readers = READERS[info.path.suffix.lower()]
    usable = [reader for reader in readers if reader.library in sys.modules]
    names = " or ".join(f"`import {reader.library}`" for reader in readers)
    if not usable:
        return DataFile(note=f"With {names} in the notebook, {info.name} is shown as its data.")
    note = ""
    for reader in usable:
        if info.size > reader.most:
            note = f"{info.name} is too large to be shown as its data: return a part of that."
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
    library = sys.modules[reader.library]

    def read(file: Any) -> Any:
        file.seek(0)
        return reader.read(library, file, info)

    # In a buffer: libraries may close what they are given, or read on after the deadline.
    buffer = io.BytesIO(file.read(info.size))
    value = run_bounded(read, buffer)
    if getattr(value, "shape", (0,))[:1] == (MAX_ROWS,) and reader.library != "numpy":
        return DataFile(value, f"Of {info.name} the first {MAX_ROWS:,} rows were read.")
    return DataFile(value)


def _explain(reader: _Reader, info: FileInfo, error: BaseException) -> DataFile:
    if isinstance(error, DeadlineExceeded):
        note = f"{info.name} takes too long to read: return a part of its data."
        return DataFile(note=note, is_refused=True)
    if isinstance(error, _TooLarge):
        return DataFile(note=f"{info.name} {error}", is_refused=True)
    return DataFile(note=f"{reader.library} cannot read {info.name}: {describe_error(error)}")


# -- text ------------------------------------------------------------------------------------------


def _read_pandas_csv(pandas: Any, file: BinaryIO, info: FileInfo) -> Any:
    encoding, delimiter = _detect_dialect(file, info)
    # Not in chunks, in which a column may change its type, with a warning.
    options = {"sep": delimiter, "encoding": encoding, "low_memory": False}
    return pandas.read_csv(file, nrows=MAX_ROWS, **options)


def _read_pandas_lines(pandas: Any, file: BinaryIO, _info: FileInfo) -> Any:
    # Before version 3, pandas numbers the rows in an index that looks like data.
    return pandas.read_json(file, lines=True, nrows=MAX_ROWS).reset_index(drop=True)


def _read_polars_csv(polars: Any, file: BinaryIO, info: FileInfo) -> Any:
    encoding, delimiter = _detect_dialect(file, info)
    text = io.BytesIO(file.read().decode(encoding).encode())
    return polars.read_csv(text, separator=delimiter, n_rows=MAX_ROWS, infer_schema_length=10_000)


def _detect_dialect(file: BinaryIO, info: FileInfo) -> tuple[str, str]:
    """Return the encoding of a file and what separates its columns."""
    beginning = file.read(_SAMPLE_BYTES)
    file.seek(max(info.size - _SAMPLE_BYTES, 0))
    encoding = detect_encoding(beginning, file.read(_SAMPLE_BYTES))
    file.seek(0)
    if encoding is None:
        raise ValueError("it is no text")
    if info.path.suffix.lower() == ".tsv":
        return encoding, "\t"
    header = beginning.decode(encoding, "ignore").lstrip("\r\n").partition("\n")[0]
    return encoding, max(_DELIMITERS, key=header.count)


# -- binary formats --------------------------------------------------------------------------------


def _read_pandas_parquet(pandas: Any, file: BinaryIO, _info: FileInfo) -> Any:
    from pyarrow import parquet  # noqa: PLC0415 - as pandas does, only where there is such a file

    metadata = parquet.read_metadata(file)
    groups = range(metadata.num_row_groups)
    packed = sum(metadata.row_group(group).total_byte_size for group in groups)
    # Equal values take no room in the file.
    _check_unpacked(max(packed, metadata.num_rows * metadata.num_columns * _VALUE_BYTES))
    file.seek(0)
    return pandas.read_parquet(file)


def _read_sheets(pandas: Any, file: BinaryIO, _info: FileInfo) -> Any:
    sheets = pandas.read_excel(file, sheet_name=None, nrows=MAX_ROWS)
    [*tables] = sheets.values()
    return tables[0] if len(tables) == 1 else sheets


def _read_array(numpy: Any, file: BinaryIO, _info: FileInfo) -> Any:
    loaded = numpy.load(file, allow_pickle=False)
    if not isinstance(loaded, Mapping):
        return loaded
    _check_unpacked(sum(member.file_size for member in loaded.zip.infolist()))  # type: ignore[attr-defined]
    return dict(loaded)


def _check_unpacked(size: int) -> None:
    if size > MAX_UNPACKED:
        raise _TooLarge(f"takes {size / 2**20:,.0f} MiB in the memory: return a part of its data.")


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
            _Reader("pandas", lambda pandas, file, _: pandas.read_feather(file)),
            _Reader("polars", lambda polars, file, _: polars.read_ipc(file, n_rows=MAX_ROWS)),
        ),
    ),
    **dict.fromkeys(
        (".jsonl", ".ndjson"),
        (
            _Reader("pandas", _read_pandas_lines),
            _Reader("polars", lambda polars, file, _: polars.read_ndjson(file)),
        ),
    ),
    **dict.fromkeys((".xlsx", ".xls", ".ods"), (_Reader("pandas", _read_sheets, MAX_SHEETS_FILE),)),
    **dict.fromkeys((".npy", ".npz"), (_Reader("numpy", _read_array),)),
}
"""The readers of each extension, in the order in which they are tried."""
