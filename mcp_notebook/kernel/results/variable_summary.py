"""What a client reads of a variable: its type and shape, its columns, its first rows, a summary.

Runs in the user's kernel. `find_facts` runs on any thread and runs no code of the value's own
class: sizes are read by the methods of the libraries and of Python's containers. `summarize` runs
on the thread of a call, within limits of time and size: of a large table it summarizes a sample.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from msgspec import Struct

from mcp_notebook.kernel.results.tables.frame import Frame
from mcp_notebook.kernel.results.tables.summary import is_mean_known, round_mean, spread
from mcp_notebook.kernel.results.tables.table_text import find_frame
from mcp_notebook.kernel.results.views.table_view import TableView
from mcp_notebook.kernel.safe.foreign_code import deadline, guard
from mcp_notebook.kernel.safe.libraries import find_imported, get_module_name, get_mro
from mcp_notebook.kernel.safe.text import clean_text, describe_error, find_member
from mcp_notebook.kernel.safe.to_json import to_bounded_json
from mcp_notebook.text.redaction import EVIDENT, MASK
from mcp_notebook.text.wording import count, format_size

SECONDS = 4.5
"""Time limit of the code of values and libraries for one summary."""
MAX_COLUMNS = 50
"""Columns that are described."""
MAX_CELLS = 1_000_000
"""Cells of a table, or elements of an array, that are summarized; of more, a sample."""
HEAD_ROWS = 5
"""First rows that are shown."""
MAX_TEXT = 200
"""Characters of a cell or a column's name."""
MAX_ELEMENTS = 2_000
"""Elements and characters of values that are not tables."""
MAX_MEASURED = 1_000
"""Columns of the widest pandas table whose bytes are counted; each takes some microseconds."""
_TABLES = (
    *("pandas.DataFrame", "pandas.Series", "pandas.Index"),
    *("polars.DataFrame", "polars.Series", "pyarrow.Table", "pyarrow.RecordBatch"),
)
_ARRAYS = ("numpy.ndarray", "torch.Tensor", "xarray.DataArray")
_CONTAINERS: Mapping[Any, str] = {
    str: "character",
    **dict.fromkeys((bytes, bytearray), "byte"),
    **dict.fromkeys((list, tuple, dict, set, frozenset, range), "item"),
}
"""Types of Python's that have a length, and what it counts."""
_WORD = (
    r"(?<![^\W_])(?:pass(?:words?|wd|phrase|code)|pwd|secrets?|token|credentials?|authorization"
    r"|(?:api|access|account|auth|private|secret|signing)_?keys?)(?![^\W\d_])"
)
"""A word of a name that is given to secrets."""
_SECRET_NAME = re.compile(_WORD, re.IGNORECASE)
_SECRET_TEXT = re.compile(
    rf"(?i:({_WORD}\w*['\"]?\s*[=:]\s*))(?:'[^']*'|\"[^\"]*\"|[^\s,;)}}\]]+)"
    rf"|{EVIDENT}"
)
"""In a text: a value after such a name, or what is evidently a secret."""
_CAPITAL = re.compile(r"(?<=[a-z\d])(?=[A-Z])")
_OF_ANY_COLUMN = ("name", "type", "missing")
"""What is said of a column of secrets."""
_LEFT_OUT = ("kind", "rows", "histogram")
"""What a live view needs of a column's summary, and a reader does not."""


class Facts(Struct, frozen=True):
    """What a list says of a variable."""

    type: str
    """The full name of its type."""
    shape: tuple[int, ...] | None = None
    """Rows and columns, the axes of an array, or the length of a container."""
    bytes: int | None = None
    """Memory of a table's columns or an array, without the objects that they refer to."""
    unit: str = "item"
    """What the length of a container counts."""

    @property
    def data(self) -> dict[str, Any]:
        """The facts as JSON data."""
        facts = {"type": self.type, "shape": self.shape, "bytes": self.bytes}
        return {name: value for name, value in facts.items() if value is not None}

    @property
    def text(self) -> str:
        """The facts in words: ``pandas.DataFrame, 1,000 rows x 5 columns, 40 kB``."""
        size = None if self.bytes is None else format_size(self.bytes)
        return ", ".join(filter(None, (self.type, self._write_shape(), size)))

    def _write_shape(self) -> str:
        if self.shape is None:
            return ""
        if self.type in _TABLES:
            units = ("row", "column")
            return " x ".join(map(count, self.shape, units))
        if len(self.shape) == 1:
            return count(self.shape[0], self.unit)
        return " x ".join(f"{size:,}" for size in self.shape)


def find_facts(value: Any) -> Facts:
    """Return a value's type, shape and size, without running code of its own class."""
    kind, name = type(value), _write_name(type(value))
    if (found := _find_library_class(value, (*_TABLES, *_ARRAYS))) is not None:
        path, owner = found
        name = path if kind is owner else name
        return guard(
            lambda: Facts(name, *_measure(value, owner, path)), recover=lambda _error: Facts(name)
        )
    for base, unit in _CONTAINERS.items():
        if base in get_mro(kind):
            return Facts(name, (base.__len__(value),), unit=unit)
    return Facts(name)


def _find_library_class(value: Any, paths: Iterable[str]) -> tuple[str, type] | None:
    """Return the first of some classes that a value is an instance of, with its full name."""
    for path in paths:
        module, _, name = path.rpartition(".")
        owner = getattr(find_imported(module), name, None)
        if isinstance(owner, type) and owner in get_mro(type(value)):
            return path, owner
    return None


def _write_name(kind: type) -> str:
    module = get_module_name(kind)
    name = type.__dict__["__qualname__"].__get__(kind)
    return clean_text(name if module in ("", "builtins", "__main__") else f"{module}.{name}")


def _measure(value: Any, owner: type, path: str) -> tuple[tuple[int, ...], int | None]:
    """Return a table's or array's shape and bytes, by the library's own methods."""
    shape = tuple(int(size) for size in _get(value, owner, "shape"))
    library, _, name = path.partition(".")
    if library == "polars":
        return shape, int(_get(value, owner, "estimated_size")())
    if library == "pandas" and name != "Index":
        if shape[1:] > (MAX_MEASURED,):
            return shape, None
        # Without the index: pandas counts what it caches there, which changes as it is used.
        usage = _get(value, owner, "memory_usage")(index=False, deep=False)
        return shape, int(usage.sum() if name == "DataFrame" else usage)
    return shape, int(_get(value, owner, "nbytes"))


def _get(value: Any, owner: type, name: str) -> Any:
    """Return an attribute as a class defines it, even if the value's own class has another."""
    return find_member(owner, name).__get__(value, owner)


# -- reading one -----------------------------------------------------------------------------------


def summarize(value: Any, name: str = "", *, seconds: float = SECONDS) -> dict[str, Any]:
    """Describe a value as JSON data, whatever its own code does.

    Args:
        value: Anything.
        name: The variable's name. Secrets are masked: what it, a key or a column calls one, and
            texts that look like one.
        seconds: Time limit of the code of the value and its library.
    """
    facts = find_facts(value)
    with deadline(seconds):
        summary = _try(_describe, value)
    columns, head = summary.get("columns", ()), summary.get("head", ())
    for position, column in enumerate(columns):
        if _is_secret(column["name"]):
            columns[position] = {key: column[key] for key in _OF_ANY_COLUMN if key in column}
            for row in head:
                row[position] = MASK
    masked: dict[str, Any] = _mask(summary, is_secret=_is_secret(name))
    return facts.data | masked


def _is_secret(name: str) -> bool:
    return _SECRET_NAME.search(_CAPITAL.sub("_", name)) is not None


def _mask(data: Any, *, is_secret: bool = False) -> Any:
    if isinstance(data, str):
        return MASK if is_secret else _SECRET_TEXT.sub(lambda found: (found[1] or "") + MASK, data)
    if isinstance(data, dict):
        return {
            key: _mask(item, is_secret=is_secret or _is_secret(key)) for key, item in data.items()
        }
    if isinstance(data, list):
        return [_mask(item, is_secret=is_secret) for item in data]
    return data


def _describe(value: Any) -> dict[str, Any]:
    if (found := _find_library_class(value, _TABLES)) is not None:
        table = value.to_frame(index=False) if found[0] == "pandas.Index" else value
        frame = find_frame(table)
        if frame is not None:
            return _describe_table(frame)
    is_array = _find_library_class(value, ("numpy.ndarray",)) is not None
    return (_describe_array(value) if is_array else {}) | _show(value)


def _show(value: Any) -> dict[str, Any]:
    shown, is_partial = to_bounded_json(value, MAX_ELEMENTS)
    return {"value": shown, "is_shortened": True} if is_partial else {"value": shown}


def _describe_array(array: Any) -> dict[str, Any]:
    facts: dict[str, Any] = {"dtype": str(array.dtype)}
    if array.dtype.kind not in "biuf" or not array.size:
        return facts
    sample = array.flat[:MAX_CELLS]
    if len(sample) < array.size:
        facts["summarized_elements"] = len(sample)
    present = sample[sample == sample]  # noqa: PLR0124 - NaN differs from itself
    facts["missing"] = len(sample) - len(present)
    if len(present):
        least, most = present.min().item(), present.max().item()
        numbers = {"min": least, "max": most}
        mean = float(present.mean(dtype="float64"))
        if is_mean_known(mean, least, most):
            numbers["mean"] = round_mean(mean, least, most)
        facts |= {name: to_bounded_json(number, 1)[0] for name, number in numbers.items()}
    return facts


def _describe_table(frame: Frame) -> dict[str, Any]:
    page = _ask({"kind": "page", "count": HEAD_ROWS}, frame)
    shown = page["shown"][:MAX_COLUMNS]
    columns: list[dict[str, Any]] = [page["columns"][str(position)] for position in shown]
    for column in columns:
        column["name"] = column["name"][:MAX_TEXT]
    table: dict[str, Any] = {"columns": columns}
    if page["width"] > len(shown):
        table["columns_left_out"] = page["width"] - len(shown)
    table["head"] = [[cell[:MAX_TEXT] for cell in row[:MAX_COLUMNS]] for row in page["rows"]]
    return table | _try(lambda whole: _summarize_columns(whole, columns), frame)


def _summarize_columns(frame: Frame, columns: list[dict[str, Any]]) -> dict[str, Any]:
    """Add to each column what is in it; return how many rows were read, if not all."""
    sample, rows = frame, max(MAX_CELLS // max(frame.width, 1), 1)
    if rows < frame.height:
        sample = frame.take(spread(frame.height, rows))
    for position, column in enumerate(columns):
        query = {"kind": "summary", "column": position}
        answer = _try(partial(_ask, query), sample)
        for name in _LEFT_OUT:
            answer.pop(name, None)
        if "top" in answer:
            answer["top"] = [[text[:MAX_TEXT], number] for text, number in answer["top"]]
        column.update(answer)
    return {} if sample is frame else {"summarized_rows": rows}


def _ask(query: Mapping[str, Any], frame: Frame) -> dict[str, Any]:
    """Return the answer of a live view of a table to a query."""
    answer: dict[str, Any] = json.loads(TableView(lambda: frame).answer(json.dumps(query)))
    return answer


def _try(describe: Callable[[Any], dict[str, Any]], value: Any) -> dict[str, Any]:
    """Return what a function finds; if the value's code fails or is slow, that it does."""
    return guard(
        describe,
        value,
        recover=lambda error: {"problem": f"Reading it failed: {describe_error(error)}"},
    )
