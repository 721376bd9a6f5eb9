"""What a long table's summary says about its columns, with real libraries."""

import datetime as dt
import math
import re
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_notebook.kernel.results.tables import summary
from mcp_notebook.kernel.results.tables.narwhals_frame import wrap_narwhals_table
from mcp_notebook.kernel.results.tables.pandas_frame import wrap_pandas_table
from mcp_notebook.kernel.results.tables.row_frame import wrap_array, wrap_dicts
from mcp_notebook.kernel.results.tables.summary import (
    MAX_LABELED,
    MAX_NUMBERS,
    summarize_array,
    summarize_columns,
)

np = pytest.importorskip("numpy")
pd = pytest.importorskip("pandas")


def lines(value, positions=None):
    frame = (
        wrap_pandas_table(value) or wrap_narwhals_table(value) or wrap_array(value)
        if not isinstance(value, list)
        else wrap_dicts(value)
    )
    return summarize_columns(frame, positions or range(frame.width)).lines


def line(values, **options):
    """Return the line of a column of pandas, without its name."""
    [only] = lines(pd.DataFrame({"c": pd.Series(values, **options)}))
    return only.removeprefix("c ")


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (range(100), "int64: 0 to 99, mean 49.5, all distinct"),
        ([1, 2, 2] * 20, "int64: 1 to 2, mean 1.6667, 2 distinct, 2 (40), 1 (20)"),
        ([0.25, math.nan, 4], "float64: 1 missing, 0.25 to 4.0, mean 2.125"),
        ([math.nan] * 3, "float64: all missing"),
        ([1.5, math.inf], "float64: 1.5 to inf"),
        ([True, False, True], "bool: 2 distinct, True (2), False (1)"),
        ([7, 7], "int64: always 7"),
        ([12345678.25, 12345680.75], "float64: 12345678.25 to 12345680.75, mean 12345679.5"),
    ],
)
def test_numbers_have_their_ends_and_their_mean(values, said):
    assert line(values) == said


def test_texts_have_those_that_are_frequent():
    assert line(["EU"] * 3 + ["US", None], dtype=object) == (
        "object: 1 missing, 2 distinct, EU (3), US (1)"
    )
    many = [f"n{n}" for n in range(50)]
    assert line(many, dtype=object) == "object: all distinct"
    assert line([*many, "n3", "n3", "n4"], dtype=object) == (
        "object: 50 distinct, most often n3 (3), n4 (2), n0 (1)"
    )
    assert line(["", "nan"] * 2, dtype=object) == 'object: 2 distinct, "" (2), "nan" (2)'
    assert line(["x" * 99] * 2, dtype=object) == f"object: always {'x' * 37}..."


def test_times_have_their_ends():
    hours = pd.date_range("2024-01-01", periods=60, freq="h", unit="ns")
    assert line(hours) == "datetime64[ns]: 2024-01-01 00:00:00 to 2024-01-03 11:00:00"
    assert line(hours.normalize()) == "datetime64[ns]: 2024-01-01 to 2024-01-03"
    assert line(hours.tz_localize("UTC")).endswith("00:00:00+00:00 to 2024-01-03 11:00:00+00:00")
    assert line([hours[0], pd.NaT]) == "datetime64[ns]: 1 missing, always 2024-01-01"
    days = [dt.date(2024, 1, day) for day in range(1, 20)]
    assert line(days, dtype=object) == "object: 2024-01-01 to 2024-01-19"
    assert line(hours - hours[0]).endswith("0 days 00:00:00 to 2 days 11:00:00")


@pytest.mark.parametrize(
    ("dtype", "said"),
    [
        ("Int64", "Int64: 1 missing, 1 to 2, mean 1.5, all distinct"),
        ("Float32", "Float32: 1 missing, 1.0 to 2.0, mean 1.5"),
        ("boolean", "boolean: 1 missing, always True"),
        ("category", "category (1.0, 2.0): 1 missing, 1.0 to 2.0, mean 1.5"),
    ],
)
def test_the_other_types_of_pandas_have_the_same_facts(dtype, said):
    values = [1, 1, None] if dtype == "boolean" else [1, 2, None]
    assert line(pd.Series(values, dtype="float64"), dtype=dtype) == said


def test_labels_are_summarized_too():
    days = pd.date_range("2024-01-01", periods=60, name="day")
    frame = pd.DataFrame({"n": range(60)}, index=days)
    assert lines(frame)[0].startswith("day (index) datetime64[")
    assert lines(frame)[0].endswith("]: 2024-01-01 to 2024-02-29")
    by_two = pd.MultiIndex.from_product([["a", "b"], range(30)], names=["k", None])
    assert [text.partition(":")[0].split(" ")[0] for text in lines(frame.set_index(by_two))] == [
        *("k", "index", "n")
    ]
    index = wrap_pandas_table(days)
    assert summarize_columns(index, [0]).lines[0].endswith(": 2024-01-01 to 2024-02-29")


SAME_COLUMN = {
    "pandas": lambda values: pd.DataFrame({"c": values}),
    "pandas nullable": lambda values: pd.DataFrame({"c": pd.Series(values, dtype="Float64")}),
    "pandas objects": lambda values: pd.DataFrame({"c": pd.Series(values, dtype=object)}),
    "polars": lambda values: pytest.importorskip("polars").DataFrame({"c": values}),
    "arrow": lambda values: pytest.importorskip("pyarrow").table({"c": values}),
    "numpy": lambda values: np.array(values).reshape(-1, 1),
    "dicts": lambda values: [{"c": value} for value in values],
    "decimals": lambda values: [{"c": Decimal(repr(value))} for value in values],
}


@pytest.mark.needs("polars", "pyarrow")
@pytest.mark.parametrize("library", SAME_COLUMN)
@given(
    st.sampled_from([0, 1, 10432.5, 2024, -122.4194, 1e9, 1e15, 1e-5, 1e300]),
    st.lists(st.floats(-1, 1), min_size=2, max_size=9, unique=True),
    st.integers(-13, 3),
)
def test_the_mean_is_close_and_never_outside_the_range(library, center, parts, exponent):
    values = [center + part * max(abs(center), 1e-6) * 10.0**exponent for part in parts]
    [said] = lines(SAME_COLUMN[library](values))
    found = re.search(r"mean ([-\d.e+]+)", said)
    assert found or len(set(values)) == 1
    if found:
        mean, true = Fraction(float(found[1])), sum(map(Fraction, values)) / len(values)
        least, most = Fraction(min(values)), Fraction(max(values))
        rounding = max(abs(least), abs(most)) / 2**50
        assert least <= mean <= most
        assert abs(mean - true) <= (most - least) / 5_000 + rounding


@pytest.mark.needs("polars", "pyarrow")
@pytest.mark.parametrize(
    "library", ["pandas", "pandas objects", "polars", "arrow", "numpy", "dicts", "decimals"]
)
def test_integers_whose_mean_no_float_can_tell_have_none(library):
    identifiers = [1234567890123456789 + number for number in range(101)]
    [said] = lines(SAME_COLUMN[library](identifiers))
    assert "1234567890123456789 to 1234567890123456889" in said
    assert "mean" not in said
    [said] = lines(SAME_COLUMN[library]([0, 2**60]))
    assert re.search(r"mean 5\.?76", said)


@pytest.mark.needs("polars", "pyarrow")
@pytest.mark.parametrize("to_library", [lambda frame: frame, lambda frame: frame.to_arrow()])
def test_polars_and_arrow_tell_nan_from_missing_values(to_library):
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame(
        {
            "n": [1, 2, None],
            "f": [0.5, math.nan, None],
            "all": pl.Series([None, None, None], dtype=pl.Float64),
            "b": [True, True, None],
            "t": ["x", "x", None],
            "d": [dt.date(2024, 1, 2), dt.date(2024, 1, 1), None],
            "short": pl.Series([0.1, 0.2, 0.2], dtype=pl.Float32),
        }
    )
    facts = {text.split(" ")[0]: text.partition(": ")[2] for text in lines(to_library(frame))}
    assert facts == {
        "n": "1 missing, 1 to 2, mean 1.5, all distinct",
        "f": "1 missing, 1 NaN, always 0.5",
        "all": "all missing",
        "b": "1 missing, always True",
        "t": "1 missing, always x",
        "d": "1 missing, 2024-01-01 to 2024-01-02",
        "short": "0.1 to 0.2, mean 0.16667",
    }


def test_rows_of_dicts_and_structured_arrays_have_a_line_for_each_field():
    rows = [{"n": n, "t": "x" if n % 2 else None, "d": Decimal(n)} for n in range(60)]
    assert lines(rows) == [
        "n int: 0 to 59, mean 29.5, all distinct",
        "t null or str: 30 missing, always x",
        "d Decimal: 0 to 59, mean 29.5",
    ]
    fields = np.array([(1, 2.5), (2, 3.5)], dtype=[("a", "i4"), ("b", "f8")])
    assert lines(fields) == [
        "a int32: 1 to 2, mean 1.5, all distinct",
        "b float64: 2.5 to 3.5, mean 3.0",
    ]


@pytest.mark.parametrize(
    ("array", "said"),
    [
        (np.arange(12).reshape(3, 4), "0 to 11, mean 5.5, all distinct"),
        (np.array([1, math.nan, 3]), "1 NaN, 1.0 to 3.0, mean 2.0"),
        (np.ma.array([1, 2, 3], mask=[0, 1, 0]), "1 missing, 1 to 3, mean 2.0, all distinct"),
        (np.ma.masked_all(3), "all missing"),
        (np.array([1j]), ""),
        (np.array([object()]), ""),
        (np.array(["2024-01-01", "NaT"], "M8[D]"), "1 missing, always 2024-01-01"),
        (np.array([-128, 127], "i1"), "-128 to 127, mean -0.5, all distinct"),
        (
            np.array([0, 2**64 - 1], "u8"),
            "0 to 18446744073709551615, mean 9.22337e+18, all distinct",
        ),
        (np.array([0.1], "f4"), "always 0.1"),
    ],
)
def test_an_array_is_summarized_as_a_whole(array, said):
    assert summarize_array(array) == said


# -- bounds ----------------------------------------------------------------------------------------

AS_ONE_OF_MANY = [0] * 500
"""A table's first column, read as one of 500: they share the cells that may be read."""


def test_of_very_many_rows_it_is_said_that_some_were_read():
    frame = pd.DataFrame({"n": range(100_000), "t": ["a", "b", "b", None] * 25_000})
    told = summarize_columns(wrap_pandas_table(frame), [0, 1])
    assert told.lines[0].startswith("n int64: 0 to 99999, mean 50000.0")  # numbers are exact
    assert ": 25,000 missing, at least 2 distinct, b (" in told.lines[1]  # so are gaps
    assert told.note.startswith('"about", "at least", %: of 50,000 rows spread over the table')
    told = summarize_columns(wrap_pandas_table(frame), AS_ONE_OF_MANY)
    assert re.match(r"n int64: about \d+ to \d+, mean", told.lines[0])
    names = pd.DataFrame({"t": ["a", "b"] * 100_000})
    [only] = summarize_columns(wrap_pandas_table(names), [0]).lines
    assert only.startswith(f"t {names.t.dtype}: at least 2 distinct, ")
    assert all(4 <= float(share) / 10 <= 6 for share in re.findall(r"\((\d+)%\)", only))
    long = np.zeros(MAX_NUMBERS + 1, "i1")
    assert summarize_array(long).endswith("(of 100,000 elements spread over it)")


BITS = np.array([0, 1], "i1")
PAIRS = MAX_NUMBERS // 2 + 1
"""So many pairs are more elements than are read."""


@pytest.mark.parametrize(
    ("array", "share_of_zeros"),
    [
        (lambda: np.tile(BITS, PAIRS), 50),
        (lambda: np.repeat(BITS, PAIRS).reshape(2, -1), 50),
        (lambda: np.tile(BITS[[0, 0, 0, 1]], (1, PAIRS // 2 + 1)), 75),
        (lambda: np.tile(BITS, (40, PAIRS // 40 + 1)).T, 50),
        (lambda: np.ma.masked_equal(np.tile(np.arange(3, dtype="i1"), PAIRS), 2), 33),
    ],
)
def test_a_large_array_is_read_all_over(array, share_of_zeros):
    said = summarize_array(array())
    assert "0 to 1" in said
    [share] = re.findall(r"\b0 \((\d+)%\)", said)
    assert abs(int(share) - share_of_zeros) < 5


@given(st.integers(1_000, 10**9), st.integers(3, 1_000))
def test_the_rows_that_are_read_are_spread_over_the_table(size, count):
    rows = summary.spread(size, count)
    assert len(rows) == len({*rows}) == count
    assert rows == sorted(rows)
    assert 0 <= rows[0] < size / count
    assert size - size / count - 1 < rows[-1] < size


@pytest.mark.needs("polars", "pyarrow")
@pytest.mark.parametrize("library", ["pandas", "polars", "arrow", "numpy"])
def test_the_rows_at_the_ends_weigh_no_more_than_others(library):
    values = [1e9, *([1.0, 2.0] * 100_000), 1e9]
    said = lines(SAME_COLUMN[library](values), AS_ONE_OF_MANY)[0]
    assert re.fullmatch(r"(c )?\w+: about 1.0 to 2.0, mean 1.\d+", said)


def test_exact_numbers_have_no_note_on_rows_that_were_read():
    frame = pd.DataFrame({"n": range(MAX_LABELED + 1)})
    assert summarize_columns(wrap_pandas_table(frame), [0]).note == ""
    minutes = pd.date_range("2024-01-01", periods=len(frame), freq="min", unit="ns")
    told = summarize_columns(wrap_pandas_table(frame.set_index(minutes)), [0])
    assert told.lines[0] == "index datetime64[ns]: 2024-01-01 00:00:00 to 2025-11-25 10:40:00"
    assert told.note == ""


def test_shares_of_some_rows_are_not_rounded_to_all_of_them():
    ones = ["a"] * 99_990 + ["b"] * 10
    [said] = lines(pd.DataFrame({"c": ones * 2}))
    assert "100%" not in said
    assert "e+" not in said


@pytest.mark.needs("polars", "pyarrow")
@pytest.mark.parametrize("library", ["pandas", "polars", "arrow"])
def test_the_columns_that_a_wide_table_leaves_out_tell_their_gaps(library):
    columns = {f"c{n}": [float(n), *map(float, range(199))] for n in range(40)}
    columns["c20"] = [None] * 6 + columns["c20"][6:]
    columns["c22"] = ["x", *"ab" * 99, "y"]
    if library == "pandas":
        table = pd.DataFrame(columns)
    elif library == "polars":
        table = pytest.importorskip("polars").DataFrame(columns)
    else:
        table = pytest.importorskip("pyarrow").table(columns)
    frame = wrap_pandas_table(table) or wrap_narwhals_table(table)
    alike, other = summary.summarize_left_out(frame, range(15, 25))
    assert re.fullmatch(r"9 \w+ columns: 0.0 to 198.0; missing: c20 \(6\)", alike)
    assert other.startswith("c22 ")
    assert other.endswith(": 4 distinct, a (99), b (99), x (1), y (1)")


def test_the_columns_left_out_of_a_wide_table_are_read_within_bounds():
    frame = wrap_pandas_table(pd.DataFrame(np.ones((20, 5_000))))
    assert summary.summarize_left_out(frame, range(15, 4_985)) == [
        "of the first 1,000 of them:",
        "1,000 float64 columns: always 1.0; none missing",
    ]


def test_no_code_of_objects_runs():
    class Rude:
        def __hash__(self):
            raise SystemExit

        def __eq__(self, other):
            raise SystemExit

        def __lt__(self, other):
            raise SystemExit

    class RudeNumber(float):
        __hash__ = float.__hash__

        def __eq__(self, other):
            raise SystemExit

        def __ne__(self, other):
            raise SystemExit

    class Named(str):
        __slots__ = ()

        def __hash__(self):
            raise SystemExit

    class Zone(dt.tzinfo):
        def utcoffset(self, _when):
            raise SystemExit

    moments = [dt.datetime(2024, 1, 1, tzinfo=zone) for zone in (Zone(), dt.UTC)]
    assert line(moments, dtype=object) == "object: values of type datetime"
    assert line(moments[1:] * 2, dtype=object) == "object: always 2024-01-01 00:00:00+00:00"
    assert line([Rude(), Rude(), 1], dtype=object) == "object: values of type Rude, int"
    assert line([Rude(), 1.5, math.nan], dtype=object) == (
        "object: 1 missing, values of type Rude, float"
    )
    assert line([RudeNumber(1), RudeNumber("nan"), 1.5], dtype=object) == (
        "object: 1 missing, values of type RudeNumber, float"
    )
    assert line([Named("x")], dtype=object) == "object: values of type Named"
    assert line([[1], {"a": 1}], dtype=object) == "object: values of type dict, list"


def test_a_column_that_cannot_be_read_has_its_type_only(monkeypatch):
    frame = wrap_pandas_table(pd.DataFrame({"n": range(9)}))

    def fail(*_arguments):
        raise SystemExit

    monkeypatch.setattr(frame, "find_facts", fail)
    assert summarize_columns(frame, [0]).lines == [
        "n int64: 0 to 8, mean 4.0, all distinct"  # its values are read one by one
    ]
    monkeypatch.setattr(frame, "column_values", fail)
    assert summarize_columns(frame, [0]).lines == ["n int64"]


@given(st.lists(st.floats(width=64) | st.none(), min_size=1))
def test_the_ends_of_numbers_are_those_of_python(values):
    present = [value for value in values if value is not None and value == value]  # noqa: PLR0124
    facts = wrap_pandas_table(pd.Series(values, dtype="float64")).find_facts(0)
    assert facts.missing == len(values) - len(present)
    if present:
        assert (facts.least, facts.most) == (min(present), max(present))
