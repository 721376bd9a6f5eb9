"""Tables that clients send as rows or as columns, and what is said of those that are wrong."""

import datetime as dt
import re
from typing import Annotated, Any

import numpy as np
import pandas as pd
import pytest
from hints import accept, error_for, schema_of
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from optional_libraries import import_optional

from mcp_notebook import Columns
from mcp_notebook.errors import DefinitionError, InvalidArguments
from mcp_notebook.kernel.schemas.parameters.signature_to_schema import read_function_schema
from mcp_notebook.kernel.schemas.tables.columns import find_columns

pl = import_optional("polars")
pa = import_optional("pyarrow")

SENT = "2024-01-01T00:00:00.123456789"
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


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame, pa.Table])
def test_no_rows_are_an_empty_table_with_these_columns(kind):
    table = accept(Annotated[kind, COLUMNS], [])
    names = table.column_names if kind is pa.Table else list(table.columns)
    assert (names, len(table)) == (["city", "mm", "day"], 0)


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
            "value[0].cit: got 2 (integer); there is no such column (did you mean 'city'?).",
        ),
        (
            [{"city": "a", "mm": 1, "zzzzz": 2}],
            "there is no such column (there are: city, mm, day).",
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
        (5, "allowed: array of object with city, mm, day (rows) | object with"),
        ("[{", "value: got '[{' (string); it is not valid JSON ("),
    ],
)
@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame, pa.Table])
def test_what_is_wrong_is_told_with_its_row_and_column(kind, sent, said):
    assert said in error_for(Annotated[kind, COLUMNS], sent)


def test_what_a_dtype_cannot_hold_is_told_with_its_row_and_column():
    hint = Annotated[pd.DataFrame, Columns(n=int, small=np.int8)]
    assert accept(hint, [{"n": 2**60, "small": 3}]).small.dtype == np.int8
    rows = [{"n": 1, "small": 1}] * 5 + [{"n": 10**30, "small": 1}]
    assert error_for(hint, rows).startswith(
        "value[5].n: got 1000000000000000000000000000000 (integer)"
    )
    assert "value[0].small: got 300 (integer); allowed: integer from -128 to 127" in error_for(
        hint, [{"n": 1, "small": 300}]
    )


@pytest.mark.smoke
def test_many_wrong_cells_are_counted():
    message = error_for(Annotated[pd.DataFrame, COLUMNS], [{"city": 1, "mm": "x"}] * 500)
    assert "value[7].city: got 1 (integer); allowed: string." in message
    assert "value: 985 more of its values are wrong." in message
    assert "None" not in message
    assert len(message) < 2_000


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame, pa.Table])
@pytest.mark.parametrize(
    ("dtype", "value", "said"),
    [
        ("uint64", -1, "got -1 (integer); allowed: integer at least 0."),
        (np.uint64, -1, "got -1 (integer); allowed: integer at least 0."),
        ("UInt64", -1, "got -1 (integer); allowed: integer at least 0 | null."),
        ("uint64", 2**64, "less than or equal to 18446744073709551615."),
        (int, 10**30, "whole numbers go from -9223372036854775808 to 9223372036854775807."),
        ("float32", 1e300, "got 1e+300 (number); the column's dtype would change it to inf."),
        # Old pandas wraps around, and newer raises: either is refused, in words of its own.
        ("M8[ns]", "1500-01-01T00:00:00", "got '1500-01-01T00:00:00' (string); "),
    ],
)
def test_no_dtype_changes_a_value(kind, dtype, value, said):
    message = error_for(Annotated[kind, Columns(a=dtype)], [{"a": value}])
    assert message.startswith("value[0].a: got ")
    assert said in message
    assert "C long" not in message
    assert "strict" not in message


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame, pa.Table])
@pytest.mark.parametrize(
    ("dtype", "value", "largest"),
    [
        (float, 2**53 + 1, 2**53),
        (float | None, -(2**53) - 1, 2**53),
        (float, str(2**53 + 1), 2**53),
        ("float64", 2**53 + 1, 2**53),
        ("float32", 2**24 + 1, 2**24),
        (list[float], [2**53 + 1], 2**53),
    ],
)
def test_a_column_of_floats_rounds_no_whole_number(kind, dtype, value, largest):
    hint = Annotated[kind, Columns(a=dtype)]
    message = error_for(hint, [{"a": value}])
    assert message.startswith("value[0].a")
    assert "would be rounded: floats" in message or "would change it to 16777216.0" in message
    exact = [largest * 4] if isinstance(value, list) else largest * 4
    assert len(accept(hint, [{"a": exact}, {"a": [0.1] if isinstance(value, list) else 0.1}])) == 2


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame, pa.Table])
@pytest.mark.parametrize("dtype", ["uint64", np.uint64, "UInt64"])
def test_an_unsigned_column_takes_all_of_its_values(kind, dtype):
    table = accept(Annotated[kind, Columns(a=dtype)], {"a": [0, 2**63, 2**64 - 1]})
    assert list(map(int, table["a"].to_numpy())) == [0, 2**63, 2**64 - 1]


def test_a_category_that_the_author_does_not_list_is_refused():
    hint = Annotated[pd.DataFrame, Columns(c=pd.CategoricalDtype(["x", "y"]))]
    assert accept(hint, [{"c": "x"}, {"c": None}]).c.isna().tolist() == [False, True]
    assert error_for(hint, [{"c": "x"}, {"c": "z"}]) == (
        "value[1].c: got 'z' (string); it is not a value of this column's dtype."
    )


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
        "value[0].at: got '2024-01-01T00:00:00Z' (string); "
        "no time zone is allowed, '2024-12-31T23:59:00'."
    )


@pytest.mark.parametrize(
    ("kind", "dtype"),
    [
        (pd.DataFrame, "datetime64[ns, UTC]"),
        (pl.DataFrame, pl.Datetime("us", "UTC")),
        (pa.Table, pa.timestamp("us", "UTC")),
    ],
)
def test_a_dtype_with_a_time_zone_needs_moments_with_one(kind, dtype):
    hint = Annotated[kind, Columns(at=dtype)]
    assert len(accept(hint, [{"at": "2024-01-01T00:00:00+02:00"}])) == 1
    assert "it needs a time zone, '2024-12-31T23:59:00Z'." in error_for(
        hint, [{"at": "2024-01-01T00:00:00"}]
    )
    assert "outside the years 1 to 9999" in error_for(hint, [{"at": "9999-12-31T23:59:00-05:00"}])


def test_a_table_may_be_none():
    hint = Annotated[pd.DataFrame | None, Columns(a=int)]
    assert accept(hint, None) is None
    assert accept(hint, [{"a": 1}]).a.tolist() == [1]
    assert {"type": "null"} in schema_of(hint).input_schema["properties"]["value"]["anyOf"]
    assert error_for(hint, [{"a": "x"}]).startswith("value[0].a: got 'x' (string); allowed")


@pytest.mark.needs("polars", "pyarrow")
def test_a_dtype_that_the_library_does_not_have_is_refused_at_definition():
    for kind, dtype in ((pa.Table, pl.Enum(["x"])), (pd.DataFrame, pl.Datetime("us", "UTC"))):
        with pytest.raises(
            DefinitionError, match=r"^`without`: `Columns`: the type of `a`, .* does not exist"
        ):
            schema_of(Annotated[kind, Columns(a=dtype)])


def test_pandas_rounds_no_whole_number_beside_a_gap_or_a_fraction():
    exact, large = 2**53 + 1, 10**400
    hint = Annotated[pd.DataFrame, Columns(id=Any)]
    for gap in (None, 0.5):
        for kind in (pd.DataFrame, hint):
            assert int(accept(kind, [{"id": exact}, {"id": gap}]).id[0]) == exact
        assert int(accept(pd.Series, [large, gap])[0]) == large
        assert int(accept(pd.Series, [exact, gap])[0]) == exact


@pytest.mark.needs("polars")
@pytest.mark.parametrize(
    "values",
    [[{"b": 1}, 3], [1, "x"], [True, 2], [[1], ["x"]], [10**50, None], [2**53 + 1, 0.5]],
)
def test_polars_drops_and_changes_no_value(values):
    assert error_for(pl.DataFrame, {"a": values}).startswith("value.a[")
    assert "its values are of several types, or too large" in error_for(pl.Series, values)


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


@pytest.mark.needs("pyarrow")
@pytest.mark.parametrize(
    ("values", "row", "reason"),
    [
        ([1, None, "x", 4, 5], 2, "got 'x' (string); allowed: integer, as in the rows before."),
        (
            [1, 2.5, "x"],
            2,
            "got 'x' (string); allowed: integer | number, as in the rows before.",
        ),
        ([[1], 2], 1, "got 2 (integer); allowed: array, as in the rows before."),
        ([{"b": 1}, "x"], 1, "got 'x' (string); allowed: object, as in the rows before."),
        (
            [[1], ["x"]],
            1,
            (
                "got ['x'] (array); all values of a column have one type, also within arrays and "
                "objects."
            ),
        ),
        (
            [2**53 + 1, 0.5],
            1,
            (
                "got 0.5 (number); with fractions, whole numbers go from -9007199254740992 to "
                "9007199254740992."
            ),
        ),
        (
            ["\ud800"],
            0,
            "got '\\ud800' (string); it is not valid Unicode: half of a surrogate pair.",
        ),
    ],
)
def test_what_arrow_does_not_take_is_said_in_our_words(values, row, reason):
    for hint in (pa.Table, Annotated[pa.Table, Columns(a=Any)]):
        assert error_for(hint, {"a": values}) == f"value.a[{row}]: {reason}"
        assert error_for(hint, [{"a": item} for item in values]) == f"value[{row}].a: {reason}"


@pytest.mark.needs("pyarrow")
def test_a_dictionary_of_arrow_is_a_column_of_its_values():
    hint = Annotated[pa.Table, Columns(a=pa.dictionary(pa.int8(), pa.string()))]
    column = accept(hint, {"a": ["x", None, "x"]})["a"]
    assert str(column.type) == "dictionary<values=string, indices=int8, ordered=0>"
    assert column.to_pylist() == ["x", None, "x"]
    assert error_for(hint, {"a": [5]}).startswith("value.a[0]: got 5 (integer); ")


def test_a_table_of_any_columns_takes_any():
    assert accept(pd.DataFrame, [{"a": 1}, {"b": "x"}]).isna().sum().tolist() == [1, 1]
    assert accept(pd.DataFrame, {"a": [1, 10**30]}).a[1] == 10**30
    assert "different lengths" in error_for(pd.DataFrame, {"a": [1], "b": []})
    assert error_for(pd.DataFrame, [[1]]).startswith("value[0]: got [1] (array)")


@pytest.mark.needs("polars", "pyarrow")
def test_a_table_of_any_columns_of_polars_or_arrow_takes_any():
    assert accept(pl.DataFrame, []).shape == (0, 0)
    assert accept(pa.Table, '{"a": [1]}').to_pydict() == {"a": [1]}


def test_a_series_of_pandas_is_a_list_or_an_object_of_labels():
    assert accept(pd.Series, [1, 2.5]).tolist() == [1, 2.5]
    assert accept(pd.Series, {"a": 1}).to_dict() == {"a": 1}


@pytest.mark.needs("polars")
def test_a_series_of_polars_is_a_list():
    assert accept(pl.Series, ["a", None]).to_list() == ["a", None]
    assert error_for(pl.Series, {"a": 1}) == "value: got {'a': 1} (object); allowed: array."


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


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame, pa.Table])
@pytest.mark.parametrize(
    ("dtype", "sent", "words"),
    [
        ("datetime64[s]", "2024-01-01T00:00:00.5", "seconds"),
        ("datetime64[ms]", "2024-01-01T00:00:00.0005", "milliseconds"),
        ("datetime64[us]", SENT, "microseconds"),
        (dt.datetime, SENT, "microseconds"),
        ("datetime64[ns]", f"{SENT}1", "microseconds"),
        ("timedelta64[s]", "PT0.5S", "seconds"),
        ("timedelta64[s]", 0.5, "seconds"),
        (dt.timedelta, "PT0.000000001S", "microseconds"),
        (dt.time, "00:00:00.000000001", "microseconds"),
        (list[dt.datetime], [SENT], "microseconds"),
    ],
)
def test_a_column_refuses_the_fractions_that_it_cannot_hold(kind, dtype, sent, words):
    if kind is pl.DataFrame and words == "seconds":  # which polars does not count
        dtype = pl.Datetime("ms") if "datetime" in dtype else pl.Duration("ms")
        sent, words = 0.0005 if sent == 0.5 else sent.replace(".5", ".0005"), "milliseconds"
    hint = Annotated[kind, Columns(t=dtype)]
    message = error_for(hint, [{"t": sent}])
    assert message.startswith("value[0].t")
    changed = "the column's dtype would change it to "
    assert (changed if words != "microseconds" else "the smallest unit is") in message
    if isinstance(sent, str):
        assert len(accept(hint, [{"t": re.sub(r"[.]\d+", ".000000000", sent)}])) == 1


def test_columns_have_names():
    assert [item.name for item in Columns({"max temp": float}, city=str).columns] == [
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
