"""Tables that clients send as rows or as columns, and what is said of those that are wrong."""

import datetime as dt
import warnings
from decimal import Decimal
from typing import Annotated, Any, Literal

import numpy as np
import pandas as pd
import pytest
from hints import Cat, Shade, accept, error_for, schema_of
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from optional_libraries import import_optional
from pydantic import BaseModel, Field

from mcp_notebook import Columns
from mcp_notebook.errors import DefinitionError, InvalidArguments
from mcp_notebook.kernel.schemas.parameters.signature_to_schema import read_function_schema
from mcp_notebook.kernel.schemas.tables.columns import find_columns

pl = import_optional("polars")
pa = import_optional("pyarrow")

COLUMNS = Columns(city=str, mm=float, day=dt.date | None)
ROWS = [{"city": "Oslo", "mm": 1.5, "day": "2024-01-02"}, {"city": "Rome", "mm": "2"}]
AS_COLUMNS = {"city": ["Oslo", "Rome"], "mm": [1.5, 2], "day": ["2024-01-02", None]}


def read_rows(table):
    if isinstance(table, pd.DataFrame):
        return table.assign(day=table.day.dt.date).astype(object).to_numpy().tolist()
    return [
        list(row.values())
        for row in (table.to_dicts() if hasattr(table, "to_dicts") else table.to_pylist())
    ]


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame, pa.Table])
@pytest.mark.parametrize("sent", [ROWS, AS_COLUMNS])
def test_rows_and_columns_become_the_same_table(kind, sent):
    table = accept(Annotated[kind, COLUMNS], sent)
    assert type(table) is kind
    first, second = read_rows(table)
    assert first == ["Oslo", 1.5, dt.date(2024, 1, 2)]
    assert second[:2] == ["Rome", 2.0]
    assert second[2] is None or pd.isna(second[2])


@pytest.mark.smoke
def test_the_schema_tells_the_columns_of_rows_and_of_columns():
    rows, columns = schema_of(Annotated[pd.DataFrame, COLUMNS]).input_schema["properties"]["value"][
        "anyOf"
    ]
    assert rows["items"] == {
        "type": "object",
        "properties": {
            "city": {"type": "string"},
            "mm": {"type": "number"},
            "day": {"anyOf": [{"type": "string", "format": "date"}, {"type": "null"}]},
        },
        "additionalProperties": False,
        "required": ["city", "mm"],
    }
    assert columns["properties"]["mm"] == {"type": "array", "items": {"type": "number"}}
    for sent in (AS_COLUMNS, [{"city": "a", "mm": 1}]):
        assert Draft202012Validator({"anyOf": [rows, columns]}).is_valid(sent)


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        (
            [ROWS[0], {"city": "a", "mm": "abc"}],
            "value[1].mm: got 'abc' (string); allowed",
        ),
        ({"city": ["a"], "mm": ["x"]}, "value.mm[0]: got 'x' (string); allowed: number."),
        ([{"city": "a", "mm": None}], "value[0].mm: got None (null); allowed: number."),
        ([{"city": "a", "mm": True}], "value[0].mm: got True (boolean); allowed: number."),
        ([{"city": "a"}], "value[0].mm: missing; allowed: number."),
        ({"city": []}, "value.mm: missing; allowed: array of number."),
        ({}, "value.city: missing; allowed: array of string."),
        (
            [{"city": "a", "mm": 1, "cit": 2}],
            "value[0].cit: no such parameter; did you mean 'city'?",
        ),
        (
            [{"city": "a", "mm": 1, "zzzzz": 2}],
            "value[0].zzzzz: no such parameter; there are: city, mm, day.",
        ),
        (
            {"city": ["a", "b"], "mm": [1]},
            "its columns are of different lengths: 'city' has 2, 'mm' has 1.",
        ),
        (
            [{"city": "a", "mm": 1, "day": "soon"}],
            "value[0].day: got 'soon' (string); allowed: date",
        ),
        ([1], "value[0]: got 1 (integer); allowed: object with city, mm, day."),
        ({"city": "a", "mm": [1]}, "value.city: got 'a' (string); allowed: array of string."),
        (5, "allowed: array of object with city, mm, day | object with"),
        ("[{", "value: got '[{' (string); it is not valid JSON ("),
    ],
)
@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame, pa.Table])
def test_what_is_wrong_is_told_with_its_row_and_column(kind, sent, said):
    assert said in error_for(Annotated[kind, COLUMNS], sent)


@pytest.mark.parametrize(
    ("kind", "schema", "is_optional"),
    [
        (float, {"type": "number"}, False),
        (str | None, {"anyOf": [{"type": "string"}, {"type": "null"}]}, True),
        (Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}, False),
        (Annotated[int, Field(ge=0)], {"type": "integer", "minimum": 0}, False),
        ("f4", {"type": "number"}, False),
        (np.int8, {"type": "integer", "minimum": -128, "maximum": 127}, False),
        ("uint64", {"type": "integer", "minimum": 0}, False),
        (np.dtype("datetime64[ns]"), {"type": "string", "format": "date-time"}, False),
        (pd.Timestamp, {"type": "string", "format": "date-time"}, False),
        ("Int64", {"anyOf": [{"type": "integer"}, {"type": "null"}]}, True),
        (pd.BooleanDtype(), {"anyOf": [{"type": "boolean"}, {"type": "null"}]}, True),
        ("string", {"anyOf": [{"type": "string"}, {"type": "null"}]}, True),
        (Any, {}, True),
    ],
)
def test_a_column_is_a_type_hint_or_a_dtype(kind, schema, is_optional):
    hint = Annotated[pd.DataFrame, Columns(a=kind)]
    [rows, columns] = schema_of(hint).input_schema["properties"]["value"]["anyOf"]
    assert rows["items"]["properties"]["a"] == schema
    assert columns["properties"]["a"]["items"] == schema
    assert ("required" not in rows["items"]) is is_optional


@pytest.mark.parametrize("kind", ["no dtype", object(), type("C", (), {})])
def test_what_is_neither_is_refused(kind):
    with pytest.raises(DefinitionError, match=r"the type of `a`, .* is neither a type hint"):
        schema_of(Annotated[pd.DataFrame, Columns(a=kind)])


@pytest.mark.needs("polars", "pyarrow")
def test_a_dtype_that_the_library_does_not_have_is_refused_at_definition():
    for kind, dtype in (
        (pa.Table, pl.Enum(["x"])),
        (pd.DataFrame, pl.Datetime("us", "UTC")),
        (pl.DataFrame, "datetime64[s]"),
        (pd.DataFrame, pl.Int16),
        (pa.Table, pl.Boolean),
    ):
        with pytest.raises(DefinitionError) as raised:
            schema_of(Annotated[kind, Columns(a=dtype)])
        told = np.dtype(dtype) if isinstance(dtype, str) else dtype
        assert f"`Columns`: the type of `a`, {told!r}, is neither" in str(raised.value)


class Order(BaseModel):
    shade: Shade
    shades: dict[str, Shade] = {}


@pytest.mark.needs("polars", "pyarrow")
def test_enumerations_within_models_and_mappings_are_written_as_their_values():
    sent = [{"a": {"shade": "red", "shades": {"x": "blue"}}}]
    for kind in (pl.DataFrame, pa.Table):
        (row,) = read_rows(accept(Annotated[kind, Columns(a=Order)], sent))
        assert row == [{"shade": "red", "shades": {"x": "blue"}}]


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame, pa.Table])
@pytest.mark.parametrize(
    ("dtype", "right", "wrong", "said"),
    [
        ("uint64", 2**64 - 1, -1, "got -1 (integer); allowed: integer at least 0."),
        (np.int8, -128, 300, "got 300 (integer); allowed: integer from -128 to 127."),
        ("uint64", 0, 2**64, "got 18446744073709551616 (integer); "),
        (int, 2**63 - 1, 10**30, "got 1000000000000000000000000000000 (integer); "),
        ("f4", 0.5, "a", "got 'a' (string); allowed: number."),
        ("M8[ns]", "2024-01-02", "1500-01-01T00:00:00", "got '1500-01-01T00:00:00' (string); "),
    ],
)
def test_what_a_dtype_cannot_hold_is_told_with_its_row_and_column(kind, dtype, right, wrong, said):
    hint = Annotated[kind, Columns(n=int, a=dtype)]
    rows = [{"n": 1, "a": right}] * 5
    assert len(accept(hint, rows)) == 5
    assert error_for(hint, [*rows, {"n": 1, "a": wrong}]).startswith(f"value[5].a: {said}")


def test_a_category_that_the_author_does_not_list_is_refused():
    hint = Annotated[pd.DataFrame, Columns(c=pd.CategoricalDtype(["x", "y"]))]
    assert accept(hint, [{"c": "x"}, {"c": None}]).c.isna().tolist() == [False, True]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a later pandas will raise
        assert error_for(hint, [{"c": "x"}, {"c": "z"}]) == (
            "value[1].c: got 'z' (string); it is not a value of this column's dtype."
        )


@pytest.mark.needs("polars", "pyarrow")
@pytest.mark.parametrize(
    ("kind", "sent", "place"),
    [
        (pl.DataFrame, {"a": [1, None, "x"]}, "value.a[2]: got 'x' (string); "),
        (pl.DataFrame, [{"a": {"b": 1}}, {"a": 3}], "value[1].a: got 3 (integer); "),
        (pl.DataFrame, {"a": [None, 10**50]}, "value.a[1]: got 1000000"),
        (pl.Series, [1, "x"], "value[1]: got 'x' (string); "),
        (pa.Table, {"a": [1, None, "x"]}, "value.a[2]: got 'x' (string); "),
        (pa.Table, [{"a": [1]}, {"a": ["x"]}], "value[1].a: got ['x'] (array); "),
        (pa.Table, {"a": ["\ud800"]}, "value.a[0]: got '\\ud800' (string); "),
    ],
)
def test_a_value_of_another_type_is_told_where_a_column_has_one_type(kind, sent, place):
    message = error_for(kind, sent)
    assert message.startswith(place)
    assert "strict" not in message  # advice to callers of the library


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame, pa.Table])
@pytest.mark.parametrize("dtype", ["uint64", np.uint64])
def test_an_unsigned_column_takes_all_of_its_values(kind, dtype):
    table = accept(Annotated[kind, Columns(a=dtype)], {"a": [0, 2**63, 2**64 - 1]})
    assert list(map(int, table["a"].to_numpy())) == [0, 2**63, 2**64 - 1]


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame, pa.Table])
@pytest.mark.parametrize(("hint", "value"), [(list[str] | None, ["a"]), (dict | None, {"a": 1})])
def test_a_column_of_lists_or_objects_may_have_gaps(kind, hint, value):
    table = accept(Annotated[kind, Columns(tags=hint)], [{"tags": value}, {}])
    read = getattr(table["tags"], "to_list", None) or table["tags"].to_pylist
    assert read() == [value, None]


@pytest.mark.parametrize(
    ("kind", "read_zone"),
    [
        (pd.DataFrame, lambda table: table["at"].dt.tz),
        (pl.DataFrame, lambda table: table["at"].dtype.time_zone),
        (pa.Table, lambda table: table["at"].type.tz),
    ],
)
def test_moments_with_time_zones_are_in_utc_and_others_stay_without(kind, read_zone):
    hint = Annotated[kind, Columns(at=dt.datetime | None)]
    table = accept(hint, {"at": ["2024-01-01T02:00:00+02:00", None, "2024-01-01T00:00:00Z"]})
    assert str(read_zone(table)) == "UTC"
    read = getattr(table["at"], "to_list", None) or table["at"].to_pylist
    assert read()[0] == read()[2] == dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
    assert read_zone(accept(hint, {"at": ["2024-01-01T02:00:00", None]})) is None


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame, pa.Table])
def test_a_mixture_of_moments_with_and_without_a_time_zone_is_refused(kind):
    rows = [{"at": "2024-01-01T00:00:00"}, {"at": "2024-01-01T00:00:00Z"}]
    assert error_for(Annotated[kind, Columns(at=dt.datetime)], rows) == (
        "value[1].at: got '2024-01-01T00:00:00Z' (string); "
        "some values of this column have a time zone and some have none."
    )
    assert error_for(Annotated[kind, Columns(at="M8[us]")], rows[1:]) == (
        "value[0].at: got '2024-01-01T00:00:00Z' (string); Input should not have timezone info."
    )


@pytest.mark.parametrize(
    ("kind", "dtype"),
    [
        (pd.DataFrame, "datetime64[ns, UTC]"),
        (pl.DataFrame, pl.Datetime("us", "UTC")),
        (pa.Table, pa.timestamp("us", "UTC")),
    ],
)
def test_a_dtype_of_the_library_may_have_a_time_zone(kind, dtype):
    table = accept(Annotated[kind, Columns(at=dtype)], [{"at": "2024-01-01T02:00:00+02:00"}])
    read = getattr(table["at"], "to_list", None) or table["at"].to_pylist
    assert read() == [dt.datetime(2024, 1, 1, tzinfo=dt.UTC)]


@pytest.mark.needs("polars")
@pytest.mark.parametrize(
    ("sent", "stored"),
    [
        ([1, 2.5, None], [1.0, 2.5, None]),
        ([[1], [2.5]], [[1.0], [2.5]]),
        ([{"b": 1}, {"c": "x"}], [{"b": 1, "c": None}, {"b": None, "c": "x"}]),
        ([10**30, 1], [10**30, 1]),
    ],
)
def test_polars_takes_what_fits_into_one_type(sent, stored):
    assert accept(pl.DataFrame, {"a": sent})["a"].to_list() == stored


def test_a_table_of_any_columns_takes_any():
    assert accept(pd.DataFrame, [{"a": 1}, {"b": "x"}]).isna().sum().tolist() == [1, 1]
    assert accept(pd.DataFrame, {"a": [1, 10**30]}).a[1] == 10**30
    assert "different lengths" in error_for(pd.DataFrame, {"a": [1], "b": []})
    assert error_for(pd.DataFrame, [[1]]).startswith("value[0]: got [1] (array)")


def test_a_series_of_pandas_is_a_list_or_an_object_of_labels():
    assert accept(pd.Series, [1, 2.5]).tolist() == [1, 2.5]
    assert accept(pd.Series, {"a": 1}).to_dict() == {"a": 1}


def test_a_default_is_passed_as_it_is():
    frame = pd.DataFrame({"a": [1]})

    def f(rows: pd.DataFrame = frame):
        """Do."""

    assert read_function_schema(f).validate({})["rows"] is frame


cells = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3) | st.just([1])
names = st.sampled_from(["city", "mm", "day", "other", ""])
tables = st.lists(st.dictionaries(names, cells, max_size=4) | cells, max_size=4) | st.dictionaries(
    names, st.lists(cells, max_size=3) | cells, max_size=4
)


def answer(schema, sent):
    try:
        return schema.validate({"value": sent})["value"]
    except InvalidArguments as refusal:
        return str(refusal)


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame, pa.Table])
def test_whatever_is_sent_becomes_a_table_or_is_refused_in_lines(kind):
    schemas = schema_of(kind), schema_of(Annotated[kind, COLUMNS])

    @settings(max_examples=15)
    @given(tables)
    def check(sent):
        for schema in schemas:
            table = answer(schema, sent)
            if isinstance(table, str):
                assert all(line.startswith("value") for line in table.splitlines()), table
                assert "refused by a validator" not in table
            else:
                assert isinstance(table, kind)

    check()


def test_columns_have_names():
    assert list(Columns({"max temp": float}, city=str).columns) == [
        "max temp",
        "city",
    ]
    for wrong in ({}, {5: float}, {"": float}, ["city", "mm"]):
        with pytest.raises(DefinitionError, match="needs the table's columns by name"):
            Columns(wrong)


def test_columns_are_found_in_an_annotation_and_are_a_row():
    columns = Columns(city=str, mm=float | None)
    assert find_columns(Annotated[pd.DataFrame, columns]) is columns
    assert find_columns(pd.DataFrame) is None
    assert columns.make_row_type().__annotations__ == {"city": str, "mm": float | None}


# -- the dtypes that a table has -------------------------------------------------------------------


DAY = dt.datetime(2024, 1, 2)  # noqa: DTZ001
LISTS = {
    "n": ([1, 2], int),
    "gap": ([1, None], int | None),
    "x": ([0.5, None], float | None),
    "ok": ([True, None], bool | None),
    "s": (["a", None], str | None),
    "day": (["2024-01-02", None], dt.date | None),
    "at": (["2024-01-02T00:00:00", None], dt.datetime | None),
    "long": (["P1D", None], dt.timedelta | None),
}


def make(kind, lists):
    columns = Columns({name: hint for name, (_, hint) in lists.items()})
    return accept(Annotated[kind, columns], {name: values for name, (values, _) in lists.items()})


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
    assert read_types(make(kind, LISTS)) == types
    empty = {name: ([], hint) for name, (_, hint) in LISTS.items()}
    assert read_types(make(kind, empty)) == types


def test_dates_in_pandas_are_moments_and_gaps_are_missing():
    table = make(pd.DataFrame, LISTS)
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
        *((dtype, {"int8", "Int8"}) for dtype in (np.int8, np.dtype("int8"))),
        ("uint16", {"uint16", "UInt16"}),
        ("bool", {"bool", "Boolean"}),
        (
            "M8[ms]",
            {
                *("datetime64[ms]", "timestamp[ms]"),
                "Datetime(time_unit='ms', time_zone=None)",
            },
        ),
    ],
)
def test_a_dtype_of_numpy_or_its_name_becomes_the_tables_own(kind, dtype, names):
    table = accept(Annotated[kind, Columns(a=dtype)], {"a": []})
    name = str(table["a"].type if kind is pa.Table else table["a"].dtype)
    assert name in names


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


@pytest.mark.needs("polars", "pyarrow")
@pytest.mark.parametrize(
    ("hint", "values", "of_polars", "of_arrow"),
    [
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
