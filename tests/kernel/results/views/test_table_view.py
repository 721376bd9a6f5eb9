"""What the live view of a table is answered: pages in an order, filters, summaries."""

import gc
import json
import math
import warnings
from datetime import date, datetime, timedelta, timezone

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from optional_libraries import import_optional

from mcp_notebook.errors import ResourceFailed
from mcp_notebook.kernel.results.tables.summary import summarize_columns
from mcp_notebook.kernel.results.tables.table_text import describe_table_in_use, find_frame
from mcp_notebook.kernel.results.views.table_view import TableView

pl = import_optional("polars")
pa = import_optional("pyarrow")


def ask(view, **query):
    """Ask a view, and return its answer, which must not be an error."""
    answer = json.loads(view.answer(json.dumps(query)))
    assert "error" not in answer, answer
    return answer


def refusal(view, **query):
    """Ask a view what it cannot answer, and return what it says."""
    return json.loads(view.answer(json.dumps(query)))["error"]


def view_of(value):
    """Return the view of a table."""
    return TableView(find_frame(value).snapshot().renew)


def numbers_of(view, rows, *, count=7):
    """Return the first column of all rows that match, page after page."""
    found, answer = [], None
    while answer is None or len(found) < answer["matching"]:
        answer = ask(view, kind="page", rows=rows, start=len(found), count=count)
        assert answer["rows"], "a page is empty although more rows match"
        found += [int(row[0]) for row in answer["rows"]]
    return found


COLUMNS = {
    "whole": st.integers(-5, 5),
    "real": st.floats(-5, 5, allow_nan=False).map(lambda x: round(x, 2)) | st.just(math.inf),
    "text": st.sampled_from(["", "a", "B", "b", "ä", "<img src=x>", "a b"]),
    "flag": st.booleans(),
    "day": st.dates(date(2020, 1, 1), date(2020, 1, 9)).map(
        lambda day: datetime.fromisoformat(day.isoformat())
    ),
}


def convert_quietly(frame):
    """Return a frame with pandas' nullable types; old versions warn of infinities."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return frame.convert_dtypes()


MAKERS = {
    "pandas": lambda rows: convert_quietly(pd.DataFrame(rows)),
    "pandas with numpy's types": pd.DataFrame,
    "polars": lambda rows: pl.DataFrame(rows, infer_schema_length=None),
    "arrow": pa.table,
    "dicts": lambda columns: [
        dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)
    ],
}

LIBRARIES = [
    pytest.param(name, marks=pytest.mark.needs(needed)) if needed else name
    for name, needed in zip(MAKERS, (None, None, "polars", "pyarrow", None), strict=True)
]


@st.composite
def tables(draw):
    """Columns of one kind of value each, some of them missing, behind one that counts the rows."""
    height = draw(st.integers(2, 30))
    columns = {"number": list(range(height))}
    for name, values in COLUMNS.items():
        cells = st.lists(values | st.none(), min_size=height, max_size=height)
        columns[name] = [draw(values), *draw(cells)[1:]]  # one at least tells its type
    return columns


def order(columns, name, descending):
    """Return the numbers of the rows as Python sorts them: stable, and missing cells last."""
    cells = columns[name]
    present = [row for row, cell in enumerate(cells) if cell is not None]
    present.sort(key=cells.__getitem__, reverse=descending)
    return present + [row for row, cell in enumerate(cells) if cell is None]


@pytest.mark.parametrize("library", LIBRARIES)
@settings(deadline=None)
@given(columns=tables(), descending=st.booleans())
def test_all_pages_together_are_the_table_in_the_order_of_any_column(library, columns, descending):
    view = view_of(MAKERS[library](columns))
    for place, name in enumerate(columns):
        rows = {"sort": place, "descending": descending}
        assert numbers_of(view, rows) == order(columns, name, descending), name


@pytest.mark.parametrize("library", LIBRARIES)
@settings(deadline=None)
@given(columns=tables(), least=st.integers(-5, 5), part=st.sampled_from(["a", "IMG", "ä", "zz"]))
def test_the_rows_that_match_are_those_that_python_finds(library, columns, least, part):
    view = view_of(MAKERS[library](columns))
    whole, text = list(columns).index("whole"), list(columns).index("text")
    conditions = [{"column": whole, "test": "from", "value": str(least)}]
    wanted = {n for n, cell in enumerate(columns["whole"]) if cell is not None and cell >= least}
    if wanted:
        assert numbers_of(view, {"conditions": conditions}) == sorted(wanted)
    conditions.append({"column": text, "test": "contains", "value": part})
    texts = enumerate(columns["text"])
    wanted &= {n for n, cell in texts if cell is not None and part.casefold() in cell.casefold()}
    assert ask(view, kind="page", rows={"conditions": conditions})["matching"] == len(wanted)
    missing = {"conditions": [{"column": text, "test": "missing"}]}
    answer = ask(view, kind="page", rows=missing)
    assert answer["matching"] == sum(cell is None for cell in columns["text"])


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_summary_counts_what_is_missing_and_names_the_most_frequent(library):
    columns = {
        "x": [3, 1, None, 1, 2],
        "s": ["b", "a", "b", None, "b"],
        "t": [datetime.fromisoformat(f"2020-01-0{day}") for day in (1, 2, 3, 4, 5)],
    }
    view = view_of(MAKERS[library](columns))
    numbers = ask(view, kind="summary", column=0)
    assert (numbers["rows"], numbers["missing"]) == (5, 1)
    assert (numbers["min"], numbers["max"], numbers["mean"]) == (1, 3, 1.75)
    assert sum(numbers["histogram"]) == 4
    if library != "dicts":  # whose times are texts
        times = ask(view, kind="summary", column=2)
        assert (times["min"], times["max"]) == ("2020-01-01 00:00:00", "2020-01-05 00:00:00")
    texts = ask(view, kind="summary", column=1)
    assert (texts["distinct"], texts["missing"]) == (2, 1)
    assert texts["top"] == [["b", 3], ["a", 1]]
    of_a = {"conditions": [{"column": 1, "test": "equals", "value": "a"}]}
    assert ask(view, kind="summary", rows=of_a, column=1)["rows"] == 1


def test_the_first_rows_of_a_long_table_are_found_without_sorting_it_and_no_page_repeats_a_row():
    height = 50_000
    values = np.random.default_rng(0).integers(0, 100, height)  # most of them equal
    view = view_of(pd.DataFrame({"number": np.arange(height), "value": values}))
    for descending in (False, True):
        wanted = sorted(range(height), key=lambda row: values[row], reverse=descending)
        for start in (0, 950, 30_000, height - 3):
            rows = {"sort": 1, "descending": descending}
            answer = ask(view, kind="page", rows=rows, start=start, count=100)
            found = [int(row[0]) for row in answer["rows"]]
            assert found == wanted[start : start + 100]


def test_the_index_of_pandas_is_a_column_and_a_page_shows_only_what_is_asked_for():
    frame = pd.DataFrame({"x": [2, 1], "y": ["p", "q"]}, index=pd.Index(["b", "a"], name="key"))
    view = view_of(frame)
    page = ask(view, kind="page", rows={"sort": 0}, columns=[0, 2])
    assert page["columns"]["0"]["label"]
    assert page["rows"] == [["a", "q"], ["b", "p"]]
    assert [column["name"] for column in page["columns"].values()] == ["key", "y"]


def test_times_with_a_zone_are_compared_in_that_zone():
    zone = timezone(timedelta(hours=2))
    times = [datetime(2020, 1, 1, hour, tzinfo=zone) for hour in (0, 6, 12)]
    view = view_of(pd.DataFrame({"number": range(3), "at": times}))
    late = {"conditions": [{"column": 1, "test": "from", "value": "2020-01-01 06:00"}]}
    assert numbers_of(view, late) == [1, 2]


HOURS = [datetime(2024, 5, 30) + timedelta(hours=hour) for hour in range(72)]  # noqa: DTZ001
TIMES = {
    "pandas": lambda: pd.DataFrame({"t": HOURS}),
    "pandas with a zone": lambda: pd.DataFrame({"t": pd.Series(HOURS).dt.tz_localize(PARIS)}),
    "pandas in nanoseconds": lambda: pd.DataFrame({"t": pd.Series(HOURS, dtype="M8[ns]")}),
    "pandas objects": lambda: pd.DataFrame({"t": pd.Series(HOURS, dtype=object)}),
    "pandas index": lambda: pd.DataFrame({"n": range(72)}, index=pd.DatetimeIndex(HOURS)),
    "polars": lambda: pl.DataFrame({"t": HOURS}),
    "arrow": lambda: pa.table({"t": HOURS}),
    "dicts": lambda: [{"t": hour, "n": 1} for hour in HOURS],
    "numpy": lambda: np.array([(hour,) for hour in HOURS], [("t", "M8[s]")]),
}
PARIS = "Europe/Paris"


def count_of(view, test, value):
    """Return how many cells of the first column fulfil a condition."""
    conditions = [{"column": 0, "test": test, "value": value}]
    return ask(view, kind="page", rows={"conditions": conditions})["matching"]


@pytest.mark.needs("polars", "pyarrow")
@pytest.mark.parametrize("library", TIMES)
def test_a_date_without_a_time_is_the_whole_day(library):
    view = view_of(TIMES[library]())
    assert count_of(view, "equals", "2024-05-31") == 24
    assert count_of(view, "to", "2024-05-31") == 48
    assert count_of(view, "from", "2024-05-31") == 48
    assert count_of(view, "to", "2024-05-31 12:00") == 37
    assert count_of(view, "equals", "2024-05") == 48
    assert count_of(view, "equals", "2024") == 72


FLOATS = [0.12, 0.1200004, 1 / 3, 1e-7, 123.4567891, 1e15 / 3, 1.5e300, -2.5, 3.0, math.inf]


@pytest.mark.needs("polars", "pyarrow")
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("library", ["pandas", "polars", "arrow"])
@pytest.mark.filterwarnings("ignore:overflow")
def test_a_float_is_found_by_what_its_cell_shows_alone_and_beside_others(library, dtype):
    values = np.array(FLOATS, dtype)
    view = view_of(MAKERS[library]({"f": values}))
    for start, count in ((0, len(values)), *((place, 1) for place in range(len(values)))):
        for place, row in enumerate(ask(view, kind="page", start=start, count=count)["rows"]):
            rows = {"conditions": [{"column": 0, "test": "equals", "value": row[0]}]}
            found = ask(view, kind="page", rows=rows)
            shown = ask(view, kind="page", start=start + place, count=1)["rows"][0]
            assert shown in found["rows"] or row in found["rows"], row
            assert found["matching"] <= 2


def test_values_that_are_equal_but_of_different_types_are_told_apart():
    view = view_of(pd.DataFrame({"v": pd.Series([True, 1, "a", 1.0], dtype=object)}))
    assert [row[0] for row in ask(view, kind="page")["rows"]] == ["True", "1", "a", "1.0"]
    assert [count_of(view, "equals", text) for text in ("True", "1", "1.0")] == [1, 1, 1]


@pytest.mark.needs("polars", "pyarrow")
def test_missing_means_the_same_as_in_the_summary_of_a_table():
    polars = pl.DataFrame({"f": [1.5, math.nan, None, 0.5, math.nan]})
    numpy = np.array([[1.5], [math.nan], [0.5], [math.nan]])
    masked = np.ma.array(numpy, mask=[[0], [0], [1], [0]])
    for table, missing, present in ((polars, 1, 2), (numpy, 0, 2), (masked, 1, 1)):
        view = view_of(table)
        summary = ask(view, kind="summary", column=0)
        assert (summary["missing"], summary["NaN"]) == (missing, 2)
        assert summary["max"] == 1.5
        assert sum(summary["histogram"]) == present
        assert count_of(view, "missing", "") == missing
        assert count_of(view, "equals", "NaN") == 2
        ordered = ask(view, kind="page", rows={"sort": 0, "descending": True})["rows"]
        assert ordered[0] == ["1.5"]
    of_arrow = pd.arrays.ArrowExtensionArray(pa.array([1.5, math.nan, None]))
    for values, missing in (([1.5, math.nan], 1), (of_arrow, 2)):
        frame = pd.DataFrame({"f": values})
        [line] = summarize_columns(find_frame(frame), [0]).lines
        assert line.endswith(f": {missing} missing, always 1.5")
        pandas = ask(view_of(frame), kind="summary", column=0)
        assert pandas["missing"] == missing
        assert "NaN" not in pandas


def test_odd_tables_have_views_too():
    mixed = pd.DataFrame({"n": [0, 1, 2], "v": [[1, 2], {"a": 1}, "text"]})
    assert sorted(numbers_of(view_of(mixed), {"sort": 1})) == [0, 1, 2]
    repeated = pd.DataFrame([[1, 2], [0, 3]], columns=["x", "x"])
    assert ask(view_of(repeated), kind="page", rows={"sort": 0})["rows"] == [["0", "3"], ["1", "2"]]
    levels = pd.MultiIndex.from_tuples([("a", 1), ("b", 2)], names=["k", None])
    page = ask(view_of(pd.DataFrame({"x": [5, 6]}, index=levels)), kind="page")
    assert page["rows"] == [["a", "1", "5"], ["b", "2", "6"]]
    array = ask(view_of(np.arange(6).reshape(3, 2)), kind="page", rows={"sort": 1})
    assert array["rows"][0] == ["0", "1"]
    empty = ask(view_of(pd.DataFrame({"x": []})), kind="page", rows={"sort": 0})
    assert (empty["rows"], empty["matching"]) == ([], 0)


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ({"kind": "page", "rows": {"sort": 9}}, "no column 10"),
        ({"kind": "summary", "column": 2}, "no column 3"),
        ({"kind": "delete"}, "cannot be read"),
        ({"kind": "page", "count": 10_000}, "count"),
        ({"kind": "page", "shell": "rm"}, "shell"),
        (
            {"kind": "page", "rows": {"conditions": [{"column": 0, "test": "from", "value": "x"}]}},
            "'x' is not a number",
        ),
        (
            {"kind": "page", "rows": {"conditions": [{"column": 1, "test": "to", "value": "1"}]}},
            "Only columns of numbers, dates and times of day have ranges",
        ),
    ],
)
def test_a_query_that_cannot_be_answered_is_told_why(query, said):
    view = view_of(pd.DataFrame({"x": [1, 2], "s": ["a", "b"]}))
    assert said in refusal(view, **query)


def test_nothing_that_a_view_writes_is_evaluated():
    frame = pd.DataFrame({"x": [1, 2], "s": ["a", "@exit()"]})
    view = view_of(frame)
    for value in ("@exit()", "__import__('os')", "x > 0", "%a"):
        rows = {"conditions": [{"column": 1, "test": "equals", "value": value}], "search": value}
        assert ask(view, kind="page", rows=rows)["matching"] == (value == "@exit()")


def test_times_are_compared_with_years_that_nanoseconds_do_not_have():
    times = pd.to_datetime(["2020-01-01", "2021-01-01"]).astype("datetime64[ns]")
    view = view_of(pd.DataFrame({"n": [0, 1], "t": times}))
    until = {"conditions": [{"column": 1, "test": "to", "value": "9999-12-31"}]}
    assert numbers_of(view, until) == [0, 1]
    since = {"conditions": [{"column": 1, "test": "from", "value": "2500-01-01"}]}
    assert ask(view, kind="page", rows=since)["matching"] == 0
    early = {"conditions": [{"column": 1, "test": "from", "value": "1500-01-01"}]}
    assert numbers_of(view, early) == [0, 1]


def test_a_table_too_large_to_keep_is_read_from_the_notebook_while_that_has_it():
    table = pd.DataFrame({"x": [3, 1, 2], "y": 0})
    view = TableView(describe_table_in_use(table, find_frame(table)).read_table)
    by_x = {"kind": "page", "rows": {"sort": 0}}
    assert [row[0] for row in ask(view, **by_x)["rows"]] == ["1", "2", "3"]
    table.loc[0, "x"] = 0  # what was read before is not shown again
    del table["y"]
    answer = ask(view, **by_x)
    assert [row[-1] for row in answer["rows"]] == ["0", "1", "2"]
    assert [column["name"] for column in answer["columns"].values()] == ["x"]
    assert answer["live"]
    del table
    gc.collect()
    with pytest.raises(ResourceFailed, match="no longer has this table"):
        ask(view, **by_x)


def test_rows_that_are_too_many_to_copy_are_read_as_they_are_now():
    rows = [{"x": number, "y": "a"} for number in range(100_000)]
    view = view_of(rows)
    assert ask(view, kind="page")["live"]
    newest = {"kind": "page", "rows": {"sort": 0, "descending": True}, "count": 1}
    assert ask(view, **newest)["rows"] == [["99999", "a"]]
    rows.append({"x": 100_000, "y": "b"})
    assert ask(view, **newest)["rows"] == [["100000", "b"]]
    del rows[1:]
    assert ask(view, **newest)["rows"] == [["0", "a"]]


@pytest.mark.parametrize(
    ("values", "mean"),
    [
        ([1234567890123456789 + number for number in range(101)], None),
        ([0.1] * 3, 0.1),
        ([10432.4997, 10432.5003], 10432.5),
        ([-math.inf, math.inf], "nan"),
    ],
)
def test_the_mean_is_in_the_range_or_not_told(values, mean):
    answer = ask(view_of(pd.DataFrame({"c": values})), kind="summary", column=0)
    assert answer.get("mean") == mean
