"""Each library makes tables and series of lists, with the types that the columns say."""

import datetime as dt
from decimal import Decimal
from typing import Annotated, Any, Literal

import numpy as np
import pandas as pd
import pytest
from hints import Cat, Shade, accept, error_for
from optional_libraries import import_optional
from pydantic import BaseModel

from mcp_notebook.kernel.schemas.tables.columns import Columns
from mcp_notebook.kernel.schemas.tables.table_libraries import find_library

pl = import_optional("polars")
pa = import_optional("pyarrow")

DAY = dt.datetime(2024, 1, 2)  # noqa: DTZ001
LISTS = {
    "n": ([1, 2], int),
    "gap": ([1, None], int | None),
    "x": ([0.5, None], float | None),
    "ok": ([True, None], bool | None),
    "s": (["a", None], str | None),
    "day": ([dt.date(2024, 1, 2), None], dt.date | None),
    "at": ([DAY, None], dt.datetime | None),
    "long": ([dt.timedelta(1), None], dt.timedelta | None),
}


def make(kind, lists=LISTS):
    columns = Columns({name: hint for name, (_, hint) in lists.items()}).columns
    return find_library(kind).make_table(
        {column.name: (lists[column.name][0], column) for column in columns}
    )


@pytest.mark.parametrize(
    ("kind", "read_types", "types"),
    [
        (
            pd.DataFrame,
            lambda table: [str(table[name].dtype) for name in ("n", "gap", "x", "ok")],
            ["int64", "Int64", "float64", "boolean"],
        ),
        (
            pl.DataFrame,
            lambda table: list(map(str, table.dtypes)),
            [
                *("Int64", "Int64", "Float64", "Boolean", "String", "Date"),
                *("Datetime(time_unit='us', time_zone=None)", "Duration(time_unit='us')"),
            ],
        ),
        (
            pa.Table,
            lambda table: list(map(str, table.schema.types)),
            [
                *("int64", "int64", "double", "bool", "string", "date32[day]"),
                *("timestamp[us]", "duration[us]"),
            ],
        ),
    ],
)
def test_a_column_has_the_dtype_of_its_type_also_if_it_is_empty(kind, read_types, types):
    assert read_types(make(kind)) == types
    empty = {name: ([], hint) for name, (_, hint) in LISTS.items()}
    assert read_types(make(kind, empty)) == types


def test_dates_in_pandas_are_moments_and_gaps_are_missing():
    table = make(pd.DataFrame)
    for name in ("day", "at"):
        assert table[name].dtype.kind == "M"
    assert table.long.dtype.kind == "m"
    assert table.isna().sum().tolist() == [0, 1, 1, 1, 1, 1, 1, 1]
    assert table.day[0] == pd.Timestamp(DAY)


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame, pa.Table])
@pytest.mark.parametrize(
    ("dtype", "names"),
    [
        *((dtype, {"float32", "Float32", "float"}) for dtype in ("f4", "float32", np.float32)),
        *((dtype, {"int8", "Int8"}) for dtype in (np.int8, "Int8", np.dtype("int8"))),
        *((dtype, {"uint16", "UInt16"}) for dtype in ("uint16", "UInt16")),
        ("boolean", {"boolean", "Boolean", "bool"}),
        (
            "category",
            {"category", "Categorical", "dictionary<values=string, indices=int32, ordered=0>"},
        ),
        (
            "M8[ms]",
            {
                *("datetime64[ms]", "timestamp[ms]"),
                "Datetime(time_unit='ms', time_zone=None)",
            },
        ),
    ],
)
def test_a_name_or_a_dtype_of_numpy_becomes_the_tables_own(kind, dtype, names):
    library = find_library(kind)
    [column] = Columns(a=dtype).columns
    table = library.make_table({"a": ([], library.adapt(column))})
    name = str(table["a"].type if kind is pa.Table else table["a"].dtype)
    assert name.removesuffix("(ordering='physical')") in names  # polars before 1.32


def test_a_class_other_than_a_table_has_no_library():
    assert find_library(pd.Index) is None
    assert find_library(dict) is None
    assert find_library(type("DataFrame", (), {"__module__": "pandas"})) is None


def read(table):
    return getattr(table["c"], "to_list", None) or table["c"].to_pylist


def type_of(table):
    return str(table["c"].type if isinstance(table, pa.Table) else table["c"].dtype)


@pytest.mark.parametrize("kind", [pl.DataFrame, pa.Table])
@pytest.mark.parametrize(
    ("hint", "values", "stored"),
    [
        (list[int | float], [[1], [2.5]], None),
        (list[Any], [[1], [2.5]], None),
        (list[int | float] | None, [[1], None, [2.5]], None),
        (Any, [[1], [2.5]], None),
        (int | float, [1, 2.5], None),
        (int | float, [2.5, 1], None),
        (dict[str, int], [{"x": 1}, {"y": 2}], [{"x": 1, "y": None}, {"x": None, "y": 2}]),
        (tuple[int, float], [[1, 2.5], [3, 4]], None),
        (Shade, ["red", "blue"], None),
        (Cat, [{"kind": "cat", "lives": 9}], None),
        (list[Shade], [["red"], []], None),
        (Decimal, ["1.5", "2.25"], [Decimal("1.5"), Decimal("2.25")]),
    ],
)
def test_a_column_of_one_type_drops_and_changes_no_value(kind, hint, values, stored):
    table = accept(Annotated[kind, Columns(c=hint)], {"c": values})
    assert read(table)() == (stored or values)


class Visit(BaseModel):
    at: dt.datetime
    note: str | None = None
    marks: list[int] = []


@pytest.mark.parametrize("kind", [pl.DataFrame, pa.Table])
@pytest.mark.parametrize(
    ("sent", "moment"),
    [("2024-01-02T02:00:00+02:00", DAY.replace(tzinfo=dt.UTC)), ("2024-01-02T00:00:00", DAY)],
)
def test_a_struct_with_gaps_keeps_its_moments(kind, sent, moment):
    table = accept(Annotated[kind, Columns(c=Visit)], {"c": [{"at": sent}]})
    assert read(table)() == [{"at": moment, "note": None, "marks": []}]


@pytest.mark.needs("polars")
@pytest.mark.parametrize("hint", [Any, list[Any], int | str])
def test_polars_refuses_what_it_would_drop_in_a_declared_column(hint):
    wrong = [[1], ["x"]] if hint != int | str else [1, "x"]
    message = error_for(Annotated[pl.DataFrame, Columns(c=hint)], {"c": wrong})
    assert message.startswith("value.c[1]: got ")
    assert "its values are of several types, or too large" in message


@pytest.mark.needs("polars", "pyarrow")
@pytest.mark.parametrize(
    ("hint", "values", "of_polars", "of_arrow"),
    [
        (Literal["a", "b"], [], "String", "string"),
        (Shade | None, [None], "String", "string"),
        (dt.time, [], "Time", "time64[us]"),
        (bytes, [], "Binary", "binary"),
        (Any, [], "Null", "null"),
    ],
)
def test_a_column_without_values_has_the_dtype_that_values_would_have(
    hint, values, of_polars, of_arrow
):
    columns = Columns(c=hint)
    assert type_of(accept(Annotated[pl.DataFrame, columns], {"c": values})) == of_polars
    assert type_of(accept(Annotated[pa.Table, columns], {"c": values})) == of_arrow


@pytest.mark.needs("pyarrow")
def test_arrows_dtypes_of_pandas_have_missing_values():
    for dtype in (pd.ArrowDtype(pa.int64()), "int64[pyarrow]"):
        table = accept(Annotated[pd.DataFrame, Columns(c=dtype)], {"c": [2**60 + 1, None]})
        assert (type_of(table), table.c[0], table.c.isna().tolist()) == (
            "int64[pyarrow]",
            2**60 + 1,
            [False, True],
        )
