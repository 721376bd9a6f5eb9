"""Tables and series as parameters, and `Columns`, which declares a table's columns.

Runs in the user's kernel: schemas at definition, checks and conversions wherever a call runs. No
library is imported: it is found through the class in the type hint.
"""

from __future__ import annotations

import datetime as dt
import itertools
import re
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Union, cast, get_args, get_origin

from pydantic_core import (
    InitErrorDetails,
    PydanticCustomError,
    PydanticKnownError,
    ValidationError,
    core_schema,
)
from typing_extensions import TypedDict

from mcp_notebook.errors import DefinitionError
from mcp_notebook.kernel.safe.text import describe_error
from mcp_notebook.kernel.schemas.tables.column_types import Column, get_library_name, read_column
from mcp_notebook.kernel.schemas.tables.table_libraries import INT64, Lists, find_library
from mcp_notebook.kernel.schemas.validation_messages import MORE_PROBLEMS, name_json_type
from mcp_notebook.text.wording import suggest

_ADVICE = re.compile(r" (?:This error occurred|Hint: |Try setting|Ensure that)")
"""Start of polars' advice to its callers in an error message."""
MAX_ERRORS = 15
"""Wrong cells of a table that a message lists; the others are counted."""


class Columns:
    """Declares the columns of a table that clients send.

    ::

        def add_rain(
            days: Annotated[pd.DataFrame, Columns(city=str, mm=float, note=str | None)],
        ): ...

    Clients see the columns, and send a list of rows or an object of columns. Each value is checked,
    and the function gets a table with exactly these columns, in this order. A column may have
    missing values, or be left out, if its type allows None. Works with DataFrames of pandas and
    polars, and with Tables of pyarrow.

    Args:
        columns: Columns whose names are not valid keywords: ``{"max temp": float}``.
        more: Further columns. A type hint (``float``, ``date``, ``Literal["a", "b"]``...), the name
            of a dtype (``"float32"``, ``"category"``), a dtype of numpy (``np.int8``), or one of
            the table's own library (``pl.Int16``).

    Raises:
        DefinitionError: There are no columns, or one is neither a type hint nor a dtype.
    """

    def __init__(self, columns: Mapping[str, Any] | None = None, /, **more: Any) -> None:
        is_mapping = columns is None or isinstance(columns, Mapping)
        listed = {**(columns or {}), **more} if is_mapping else {}
        if not listed or not all(isinstance(name, str) and name for name in listed):
            raise DefinitionError(
                "`Columns` needs the table's columns by name: `Columns(city=str, mm=float)`."
            )
        self.columns = tuple(read_column(name, kind) for name, kind in listed.items())

    def make_row_type(self) -> Any:
        """Return a row's type for pydantic."""
        fields = {column.name: column.hint for column in self.columns}
        return cast("Any", TypedDict)("Row", fields)

    def __repr__(self) -> str:
        return f"Columns({', '.join(column.name for column in self.columns)})"

    def __get_pydantic_core_schema__(self, source: Any, _handler: Any) -> Any:
        """Return the core schema of a table with these columns."""
        options = get_args(source) if get_origin(source) in (Union, types.UnionType) else (source,)
        tables = [option for option in options if option is not type(None)]
        schema = make_table_schema(tables[0] if len(tables) == 1 else source, self.columns)
        return schema if len(tables) == len(options) else core_schema.nullable_schema(schema)


def find_columns(annotation: Any) -> Columns | None:
    """Return the `Columns` in an annotation, if there are any."""
    extras = get_args(annotation)[1:] if get_origin(annotation) is Annotated else ()
    return next((extra for extra in extras if isinstance(extra, Columns)), None)


def make_table_schema(kind: Any, columns: Sequence[Column] = ()) -> Any:
    """Return the core schema of a table that clients send as rows or as columns.

    Args:
        kind: The library's class.
        columns: As the author declared them; if empty, any columns are accepted.

    Raises:
        TypeError: The class is not a supported table.
    """
    library = find_library(kind)
    if library is None or library.make_table is None:
        raise TypeError("`Columns` is for a DataFrame of pandas or polars, or a Table of pyarrow")
    make = library.make_table
    columns = [library.adapt(column) for column in columns]

    def convert(value: Any) -> Any:
        if isinstance(value, kind):  # a default
            return value
        if isinstance(value, list):
            series, is_rows = _read_rows(value, columns), True
        elif isinstance(value, dict):
            series, is_rows = _read_columns(value, columns), False
        else:
            raise PydanticKnownError("list_type")
        checked = _check_columns(series, columns, is_rows=is_rows)
        dtypes = {column.name: column for column in columns}
        lists = {name: (items, dtypes.get(name)) for name, items in checked.items()}
        return _make(make, lists, series, is_rows=is_rows)

    return core_schema.no_info_plain_validator_function(
        convert, metadata=_describe_as(describe_table(columns))
    )


def make_series_schema(kind: Any) -> Any:
    """Return the core schema of a series: a list of values, or an object of values by label."""
    library = find_library(kind)
    assert library is not None
    make = library.make_series

    def convert(value: Any) -> Any:
        if isinstance(value, kind):
            return value
        if isinstance(value, list):
            labels, values = None, value
        elif isinstance(value, dict) and library.has_labels:
            labels, values = list(value), list(value.values())
        else:
            raise PydanticKnownError("list_type")
        try:
            return make(values, labels)
        except Exception as error:  # noqa: BLE001 - a library's
            raise _make_failure(error) from None

    forms: list[dict[str, Any]] = [
        {"type": "array", "items": {}},  # OpenAI's API requires `items`
        {"type": "object"},
    ]
    schema = {"anyOf": forms} if library.has_labels else forms[0]
    return core_schema.no_info_plain_validator_function(convert, metadata=_describe_as(schema))


def describe_table(columns: Sequence[Column]) -> dict[str, Any]:
    """Return the JSON Schema of a table: rows, or columns."""
    if not columns:
        return {
            "anyOf": [
                {"type": "array", "items": {"type": "object"}},
                {"type": "object", "additionalProperties": {"type": "array", "items": {}}},
            ]
        }
    required = [column.name for column in columns if not column.is_optional]
    closed = {"additionalProperties": False} | ({"required": required} if required else {})
    cells = {column.name: column.schema for column in columns}
    rows = {"type": "object", "properties": cells, **closed}
    lists = {name: {"type": "array", "items": schema} for name, schema in cells.items()}
    return {
        "anyOf": [
            {"type": "array", "items": rows},
            {"type": "object", "properties": lists, **closed},
        ]
    }


def _describe_as(schema: dict[str, Any]) -> dict[str, Any]:
    return {"pydantic_js_functions": [lambda _core, _handler: schema]}


# -- rows and columns ------------------------------------------------------------------------------


def _read_rows(rows: list[Any], columns: Sequence[Column]) -> dict[str, list[Any]]:
    """Return the columns of rows; missing cells are None.

    Raises:
        ValidationError: Rows are not objects, or have other columns.
    """
    wrong = [
        _problem("dict_type", (i,), row) for i, row in enumerate(rows) if type(row) is not dict
    ]
    _refuse(wrong)
    names = {column.name: column for column in columns}
    if not columns:
        labels = dict.fromkeys(itertools.chain.from_iterable(rows))
    else:
        labels = dict.fromkeys(names)
        for number, row in enumerate(rows):
            if row.keys() != names.keys():
                wrong += _compare_names(row, names, (number,))
            if len(wrong) > MAX_ERRORS:
                break
        _refuse(wrong)
    return {name: [row.get(name) for row in rows] for name in labels}


def _read_columns(series: dict[str, Any], columns: Sequence[Column]) -> dict[str, list[Any]]:
    """Return the columns of an object of columns.

    Raises:
        ValidationError: They are not lists, have different lengths, or have other names.
    """
    names = {column.name: column for column in columns}
    wrong = _compare_names(series, names, ()) if columns else []
    wrong += [
        _problem("list_type", (name,), items)
        for name, items in series.items()
        if not isinstance(items, list)
    ]
    _refuse(wrong)
    lengths = {name: len(items) for name, items in series.items()}
    if len(set(lengths.values())) > 1:
        listed = ", ".join(
            f"{name!r} has {size}" for name, size in itertools.islice(lengths.items(), 10)
        )
        raise PydanticCustomError(
            "ragged", "its columns are of different lengths: {lengths}", {"lengths": listed}
        )
    size = next(iter(lengths.values()), 0)
    return {name: series.get(name, [None] * size) for name in (names or series)}


def _compare_names(
    value: Mapping[str, Any], columns: Mapping[str, Column], place: tuple[int | str, ...]
) -> list[InitErrorDetails]:
    """Return the problems with the column names of a row, or of an object of columns."""
    wrong = [
        _problem("missing", (*place, name), value)
        for name, column in columns.items()
        if name not in value and not column.is_optional
    ]
    for name in value.keys() - columns.keys():
        meant = suggest(name, columns)
        hint = f"did you mean {meant!r}?" if meant else f"there are: {', '.join(columns)}"
        wrong.append(
            _problem("column", (*place, name), value[name], f"there is no such column ({hint})")
        )
    return wrong


def _check_columns(
    series: dict[str, list[Any]], columns: Sequence[Column], *, is_rows: bool
) -> dict[str, list[Any]]:
    """Return the columns with their values validated and converted.

    Raises:
        ValidationError: Names the row and the column of each invalid value.
    """
    wrong: list[tuple[int, InitErrorDetails]] = []
    count = 0
    checked = dict(series)
    for column in columns:
        try:
            checked[column.name] = column.check(series[column.name])
        except ValidationError as error:
            count += error.error_count()
            for problem in error.errors(include_url=False)[:MAX_ERRORS]:
                row, *deeper = problem["loc"]
                cell = (row, column.name) if is_rows else (column.name, row)
                item = _problem(problem["type"], (*cell, *deeper), problem["input"], problem["msg"])
                wrong.append((int(row), item))
    wrong.sort(key=lambda pair: pair[0])
    _refuse([item for _, item in wrong], count)
    return checked


def _make(
    make: Callable[[Lists], Any], columns: Lists, cells: Mapping[str, list[Any]], *, is_rows: bool
) -> Any:
    """Return the library's table.

    Args:
        make: Builds the library's table.
        columns: The checked values.
        cells: The values as sent.
        is_rows: Whether they were sent as rows.

    Raises:
        ValidationError: Names the cell that does not fit into its column.
        PydanticCustomError: Building the table fails for another reason.
    """
    try:
        return make(columns)
    except Exception as error:  # noqa: BLE001 - a library's: no such dtype, out of bounds...
        for name, (values, column) in columns.items():
            row, failure = _find_culprit(lambda part: make({name: (part, column)}), values)  # noqa: B023
            if failure is not None:
                reason = _explain_failure(failure, values[row], values[:row], column)
                cell = (row, name) if is_rows else (name, row)
                _refuse([_problem("cell", cell, cells[name][row], reason)])
        raise _make_failure(error) from None


def _find_culprit(
    make: Callable[[list[Any]], Any], values: list[Any]
) -> tuple[int, Exception | None]:
    """Return the index of the first value that does not fit with those before it, and the error."""
    start, end = 0, len(values)
    if (failure := _try(make, values)) is None:
        return 0, None
    while end - start > 1:
        middle = (start + end) // 2
        reason = _try(make, values[:middle])
        start, end = (start, middle) if reason is not None else (middle, end)
        failure = reason or failure
    return start, failure


def _try(make: Callable[[list[Any]], Any], values: list[Any]) -> Exception | None:
    try:
        make(values)
    except Exception as error:  # noqa: BLE001 - the library's
        return error
    return None


def _make_failure(error: Exception) -> PydanticCustomError:
    return PydanticCustomError("table", "{reason}", {"reason": _explain_failure(error)})


def _explain_failure(
    error: Exception,
    value: Any = None,
    values_before: Sequence[Any] = (),
    column: Column | None = None,
) -> str:
    """Return why a column cannot be built, without the library's advice to its callers.

    Args:
        error: The library's error.
        value: The first value that does not fit.
        values_before: The values before it, which fit.
        column: The author's declaration.
    """
    if isinstance(error, PydanticCustomError):
        return error.message()
    is_large = isinstance(value, int) and value not in INT64
    if is_large or (value is None and isinstance(error, OverflowError)):
        return f"whole numbers go from {INT64[0]} to {INT64[-1]}"
    if isinstance(value, dt.date | dt.timedelta):
        return "it is out of bounds for this column's dtype"
    if isinstance(error, UnicodeEncodeError):
        return "it is not valid Unicode: half of a surrogate pair"
    if get_library_name(error) == "pyarrow":
        return _explain_arrow(value, values_before, None if column is None else column.dtype)
    return _ADVICE.split(describe_error(error), maxsplit=1)[0]


def _explain_arrow(value: Any, values_before: Sequence[Any], dtype: Any) -> str:
    """Describe the values that pyarrow allows in a column; its own messages name its classes."""
    if dtype is not None:
        return f"it is not a value of this column's dtype, {dtype}"
    types = {name_json_type(other) for other in values_before if other is not None}
    if types == {"integer"} and isinstance(value, float):
        return f"with fractions, whole numbers go from {-(2**53)} to {2**53}"
    if types and name_json_type(value) not in types:
        return f"allowed: {' | '.join(sorted(types))}, as in the rows before"
    return "all values of a column have one type, also within arrays and objects"


def _problem(
    kind: Any, place: tuple[int | str, ...], value: Any, reason: str | None = None
) -> InitErrorDetails:
    error = kind if reason is None else PydanticCustomError(kind, "{reason}", {"reason": reason})
    return InitErrorDetails(type=error, loc=place, input=value)


def _refuse(problems: list[InitErrorDetails], count: int | None = None) -> None:
    """Raise the first problems as one error, if there are any.

    Args:
        problems: In order.
        count: The total number; None: the number of `problems`.
    """
    if not problems:
        return
    listed = problems[:MAX_ERRORS]
    if more := (count or len(problems)) - len(listed):
        text = f"{more:,} more of its values are wrong"
        listed.append(_problem(MORE_PROBLEMS, (), None, text))
    raise ValidationError.from_exception_data("table", listed)
