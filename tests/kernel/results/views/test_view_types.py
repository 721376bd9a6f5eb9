"""The live view of a table of every type of its library, and of every shape."""

import gc
import json
import math
import threading
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from datetime import date, datetime, time, timedelta
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from optional_libraries import import_optional

from mcp_notebook.kernel.link.resource_store import ResourceStore
from mcp_notebook.kernel.results.tables.table_text import describe_table, find_frame
from mcp_notebook.kernel.results.views.table_query import MAX_LISTED_COLUMNS, MAX_SHOWN_COLUMNS
from mcp_notebook.kernel.results.views.table_view import MAX_CELL, TableView
from mcp_notebook.wire.resource_uris import make_view_uri

pl = import_optional("polars")
pa = import_optional("pyarrow")
pytestmark = pytest.mark.needs("polars", "pyarrow")

PARIS = "Europe/Paris"
DAYS = [date(2020, 1, 2), None, date(2020, 1, 1), date(2021, 1, 1)]
MOMENTS = [day and datetime(day.year, day.month, day.day) for day in DAYS]  # noqa: DTZ001
SPANS = [timedelta(1), None, timedelta(0), timedelta(2)]
TIMES = [time(1), None, time(0), time(2)]
NUMBERS = [Decimal("1.5"), None, Decimal(-2), Decimal(3)]
LISTS, STRUCTS = [[1], None, [0, 2], [1]], [{"a": 1}, None, {"a": 0}, {"a": 1}]
TEXTS = ["b", None, "a", "b"]


def arrow_array(values, kind):
    return pd.array(values, dtype=pd.ArrowDtype(kind))


PANDAS = {
    "categorical": (lambda: pd.Categorical(TEXTS), "2031"),
    "ordered": (lambda: pd.Categorical(TEXTS, ["b", "a"], ordered=True), "0321"),
    "categorical of numbers": (lambda: pd.Categorical([30, None, 4, 30]), "2031"),
    "Int64": (lambda: pd.array([2**62 + 1, None, 2**62, 2**62 + 2], dtype="Int64"), "2031"),
    "UInt64": (lambda: pd.array([2**63, None, 1, 2**64 - 1], dtype="UInt64"), "2031"),
    "boolean": (lambda: pd.array([True, None, False, True], dtype="boolean"), "2031"),
    "Float32": (lambda: pd.array([1.5, None, -1, 2], dtype="Float32"), "2031"),
    "Period": (lambda: pd.PeriodIndex(["2020-02", None, "2020-01", "2021-01"], freq="M"), "2031"),
    "Interval": (lambda: pd.arrays.IntervalArray.from_breaks([0, 1, 2, 10, 20]), "0123"),
    "timedelta": (lambda: pd.to_timedelta([3, None, 1, 12], "h"), "2031"),
    "complex": (lambda: np.array([1 + 2j, 1, 0, 3j]), "1023"),
    "time zone": (lambda: pd.DatetimeIndex(MOMENTS).tz_localize("America/New_York"), "2031"),
    "offset": (lambda: pd.DatetimeIndex(MOMENTS).tz_localize("+05:30"), "2031"),
    "far dates": (lambda: np.array(["1500", "NaT", "0001", "9999"], "datetime64[s]"), "2031"),
    "sparse": (lambda: pd.arrays.SparseArray([1.0, math.nan, 0, 2]), "2031"),
    "float16": (lambda: np.array([1, math.nan, 0, 2], "float16"), "2031"),
    "infinities": (lambda: np.array([1, math.nan, -math.inf, math.inf]), "2031"),
    "uint64": (lambda: np.array([2**63, 5, 0, 2**64 - 1], "uint64"), "2103"),
    "nothing": (lambda: pd.Series([None] * 4), "0123"),
    "mixed objects": (lambda: pd.Series([1, None, "a", 2.5]), "0321"),
    "objects without hashes": (lambda: pd.Series([[1], None, {"a": 1}, {1, 2}]), "0231"),
    "ints beyond 64 bits": (lambda: pd.Series([2**70, None, -(2**70), 2**71]), "2031"),
    "dates": (lambda: pd.Series(DAYS), "2031"),
    "decimals": (lambda: pd.Series(NUMBERS), "2031"),
    "bytes": (lambda: pd.Series([b"b", None, b"a", b"\xff"]), "2031"),
    "tuples": (lambda: pd.Series([(1, 2), None, (0,), (1, 2)]), "2031"),
    "lone surrogates": (lambda: pd.Series(["b\ud800", None, "a", "c"], dtype=object), "2031"),
    "huge texts": (lambda: pd.Series(["b" * 10**6, None, "a" * 10**6, "c"]), "2031"),
    "string": (lambda: pd.array(TEXTS, dtype="string"), "2031"),
    "string of Arrow": (lambda: pd.array(TEXTS, dtype="string[pyarrow]"), "2031"),
    "Arrow's int64": (lambda: arrow_array([3, None, 1, 2**62 + 1], pa.int64()), "2031"),
    "Arrow's bool": (lambda: arrow_array([True, None, False, True], pa.bool_()), "2031"),
    "Arrow's time zone": (lambda: arrow_array(MOMENTS, pa.timestamp("ns", PARIS)), "2031"),
    "Arrow's date": (lambda: arrow_array(DAYS, pa.date32()), "2031"),
    "Arrow's decimal": (lambda: arrow_array(NUMBERS, pa.decimal128(10, 2)), "2031"),
    "Arrow's dictionary": (
        lambda: arrow_array(TEXTS, pa.dictionary(pa.int32(), pa.string())),
        "2031",
    ),
    "Arrow's list": (lambda: arrow_array(LISTS, pa.list_(pa.int64())), "2031"),
    "Arrow's struct": (lambda: arrow_array(STRUCTS, pa.struct([("a", pa.int64())])), "2031"),
    "Arrow's duration": (lambda: arrow_array(SPANS, pa.duration("us")), "2031"),
    "Arrow's time": (lambda: arrow_array(TIMES, pa.time64("us")), "2031"),
}
POLARS = {
    "Decimal": (lambda: pl.Series(NUMBERS), "2031"),
    "Categorical": (lambda: pl.Series(TEXTS, dtype=pl.Categorical), "2031"),
    "Enum": (lambda: pl.Series(TEXTS, dtype=pl.Enum(["b", "a"])), "0321"),
    "List": (lambda: pl.Series(LISTS), "2031"),
    "Array": (lambda: pl.Series([[1], None, [0], [2]], dtype=pl.Array(pl.Int64, 1)), "2031"),
    "Struct": (lambda: pl.Series(STRUCTS), "2031"),
    "Duration": (lambda: pl.Series(SPANS), "2031"),
    "Time": (lambda: pl.Series(TIMES), "2031"),
    "Date": (lambda: pl.Series(DAYS), "2031"),
    "Null": (lambda: pl.Series([None] * 4), "0123"),
    "Object": (lambda: pl.Series([{1}, None, [1], {2}], dtype=pl.Object), "2031"),
    "Binary": (lambda: pl.Series([b"b", None, b"a", b"\xff"]), "2031"),
    "Boolean": (lambda: pl.Series([True, None, False, True]), "2031"),
    "time zone": (lambda: pl.Series(MOMENTS, dtype=pl.Datetime("ns", PARIS)), "2031"),
    "nanoseconds": (lambda: pl.Series(MOMENTS, dtype=pl.Datetime("ns")), "2031"),
    "Int128": (lambda: pl.Series([5, None, -(2**100), 2**100], dtype=pl.Int128), "2031"),
    "UInt64": (lambda: pl.Series([5, None, 0, 2**64 - 1], dtype=pl.UInt64), "2031"),
    "Int64": (lambda: pl.Series([2**62 + 1, None, 2**62, 2**62 + 2]), "2031"),
    "Float32": (lambda: pl.Series([1.5, None, -math.inf, math.inf], dtype=pl.Float32), "2031"),
}
ARROW = {
    "dictionary": (lambda: pa.array(TEXTS).dictionary_encode(), "2031"),
    "list": (lambda: pa.array(LISTS), "2031"),
    "struct": (lambda: pa.array(STRUCTS), "2031"),
    "map": (
        lambda: pa.array(
            [[("b", 1)], None, [("a", 2)], [("c", 3)]], pa.map_(pa.string(), pa.int64())
        ),
        "2031",
    ),
    "nanoseconds": (lambda: pa.array([3, None, 1, 20], pa.timestamp("ns")), "2031"),
    "offset": (lambda: pa.array([3, None, 1, 20], pa.timestamp("ms", "+02:00")), "2031"),
    "time zone": (lambda: pa.array([3, None, 1, 20], pa.timestamp("s", PARIS)), "2031"),
    "date64": (lambda: pa.array(DAYS, pa.date64()), "2031"),
    "time": (lambda: pa.array(TIMES), "2031"),
    "duration": (lambda: pa.array([3, None, 1, 20], pa.duration("us")), "2031"),
    "decimal": (lambda: pa.array(NUMBERS), "2031"),
    "half": (lambda: pa.array(np.array([2, 1, 0, 3], "float16")), "2103"),
    "null": (lambda: pa.nulls(4), "0123"),
    "binary": (lambda: pa.array([b"b", None, b"a", b"\xff"]), "2031"),
    "large string": (lambda: pa.array(TEXTS, pa.large_string()), "2031"),
    "string view": (lambda: pa.array(TEXTS, pa.string_view()), "2031"),
    "chunks": (lambda: pa.chunked_array([["b"], [None, "a", "b"]]), "2031"),
    "run-end encoded": (
        lambda: pa.RunEndEncodedArray.from_arrays([1, 2, 3, 4], TEXTS),
        "2031",
    ),
}
TABLES = {
    **{
        f"pandas: {name}": (lambda make=make: pd.DataFrame({"row": range(4), "v": make()}), order)
        for name, (make, order) in PANDAS.items()
    },
    **{
        f"polars: {name}": (lambda make=make: pl.DataFrame({"row": range(4), "v": make()}), order)
        for name, (make, order) in POLARS.items()
    },
    **{
        f"pyarrow: {name}": (lambda make=make: pa.table({"row": range(4), "v": make()}), order)
        for name, (make, order) in ARROW.items()
    },
}


def view_of(table):
    """Return the view of a table."""
    return TableView(find_frame(table).snapshot().renew)


def ask(view, **query):
    """Return a view's answer, which has to be strict JSON in UTF-8 and no error."""
    text = view.answer(json.dumps(query)).encode()
    answer = json.loads(text, parse_constant=lambda word: pytest.fail(f"{word} is not JSON"))
    assert "error" not in answer, answer
    return answer


def make_table(make):
    """Make a table, unless this version of its library has no such type."""
    try:
        return make()
    except AttributeError as error:
        pytest.skip(f"this version has none: {error}")
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # of polars
            raise
        pytest.skip(f"this version has none: {error}")


@pytest.mark.parametrize("name", TABLES)
def test_a_column_of_every_type_is_sorted_filtered_searched_and_summarized(name):
    make, wanted = TABLES[name]
    view = view_of(make_table(make))
    cells = [row[1] for row in ask(view, kind="page")["rows"]]
    rows = ask(view, kind="page", rows={"sort": 1})["rows"]
    assert "".join(row[0] for row in rows) == wanted
    assert len(ask(view, kind="page", rows={"sort": 1, "descending": True})["rows"]) == 4
    assert [row[1] for row in rows] == [cells[int(number)] for number in wanted]
    missing = {"conditions": [{"column": 1, "test": "missing"}]}
    assert ask(view, kind="page", rows=missing)["matching"] == cells.count("")
    for position, cell in enumerate(cells):
        if cell and "[+" not in cell and "\ufffd" not in cell:  # shown as a whole
            same = {"conditions": [{"column": 1, "test": "equals", "value": cell}]}
            found = [row[0] for row in ask(view, kind="page", rows=same)["rows"]]
            assert str(position) in found, f"{cell!r} is not found by its own text"
    assert all(len(cell) <= MAX_CELL for cell in cells)
    summary = ask(view, kind="summary", column=1)
    assert summary["missing"] == cells.count("")
    if summary["kind"] == "number":
        assert float(summary["min"]) <= float(summary["max"])
    ask(view, kind="page", rows={"search": "b"})


@pytest.mark.parametrize(
    ("name", "least", "found"),
    [
        ("pandas: decimals", "1.5", "03"),
        ("polars: Decimal", "1.5", "03"),
        ("pyarrow: decimal", "1.5", "03"),
        ("pandas: dates", "2020-01-02", "03"),
        ("polars: Time", "01:00", "03"),
        ("pandas: categorical of numbers", "5", "03"),
        ("pandas: Int64", str(2**62 + 1), "03"),
        ("pandas: time zone", "2020-01-02T05:00:00+00:00", "03"),
        ("pandas: Arrow's time zone", "2020-01-02", "03"),
        ("pyarrow: offset", "1970-01-01T00:00:00.002+00:00", "03"),
    ],
)
def test_numbers_dates_and_times_of_every_kind_have_ranges(name, least, found):
    view = view_of(TABLES[name][0]())
    condition = {"column": 1, "test": "from", "value": least}
    rows = ask(view, kind="page", rows={"conditions": [condition]})["rows"]
    assert "".join(row[0] for row in rows) == found
    wrong = json.dumps({"rows": {"conditions": [{**condition, "value": "soon"}]}, "kind": "page"})
    assert "'soon' is not a" in view.answer(wrong)


@pytest.mark.needs("polars", "pyarrow")
@pytest.mark.parametrize("number", [10**30, -(10**30), -1, 256])
def test_a_number_that_a_type_cannot_hold_is_compared_and_searched_for(number):
    small = pl.Series("n", [1, None, 200], dtype=pl.UInt8)
    table = pl.DataFrame([small, pl.Series("x", [0.5, -1.0, None])])
    for view in map(view_of, (table, table.to_pandas(), table.to_arrow())):
        for test, fits in (("from", number < 0), ("to", number > 0), ("equals", False)):
            condition = {"column": view_width(view) - 2, "test": test, "value": str(number)}
            page = ask(view, kind="page", rows={"conditions": [condition]})
            assert page["matching"] == (2 if fits else 0), (test, page)
        assert ask(view, kind="page", rows={"search": str(number)})["matching"] == (number == -1)


def view_width(view):
    """Return the number of a table's columns, with its labels."""
    return ask(view, kind="page")["width"]


def test_a_table_of_500_columns_is_shown_in_parts_and_searched_as_a_whole():
    wide = pd.DataFrame(np.arange(1_000).reshape(2, 500), columns=[f"c{n}" for n in range(500)])
    view = view_of(wide)
    page = ask(view, kind="page")
    assert (page["width"], len(page["columns"])) == (500, MAX_SHOWN_COLUMNS)
    page = ask(view, kind="page", columns=[499, 0], rows={"sort": 499, "descending": True})
    assert page["rows"] == [["999", "500"], ["499", "0"]]
    assert ask(view, kind="page", rows={"search": "999"})["matching"] == 1
    assert ask(view, kind="columns", find="C49")["columns"] == [
        [number, f"c{number}"] for number in (49, *range(490, 500))
    ]


def test_of_a_table_only_columns_that_are_shown_or_asked_for_are_described(monkeypatch):
    described = []
    frame = find_frame(pd.DataFrame(np.zeros((1, 100_000))))
    monkeypatch.setattr(
        type(frame), "column_type", lambda _, position: described.append(position) or "float64"
    )
    view = TableView(lambda: frame)
    rows = {"sort": 7, "conditions": [{"column": 9, "test": "present"}]}
    page = ask(view, kind="page", rows=rows, columns=[99_999])
    assert page["width"] == 100_000
    assert sorted(described) == [7, 9, 99_999]
    assert len(ask(view, kind="columns")["columns"]) == MAX_LISTED_COLUMNS
    assert sorted(described) == [7, 9, 99_999]


@pytest.mark.parametrize(
    "table",
    [
        lambda: pd.DataFrame({"a": [], "b": []}),
        lambda: pd.DataFrame(index=range(3)),
        pd.DataFrame,
        lambda: pl.DataFrame({"a": []}),
        pl.DataFrame,
        lambda: pa.table({"a": pa.array([], pa.int64())}),
        lambda: pa.table({}),
    ],
)
def test_a_table_without_rows_or_columns_has_a_view(table):
    table = table()
    frame = find_frame(table)
    view = view_of(table)
    page = ask(view, kind="page", rows={"search": "x"})
    assert (page["rows"], page["matching"]) == ([], 0)
    page = ask(view, kind="page")
    assert (page["height"], page["width"]) == (frame.height, frame.width)
    for column in range(frame.width):
        assert ask(view, kind="summary", column=column)["rows"] == 0
        assert ask(view, kind="page", rows={"sort": column})["rows"] == []


def test_labels_of_several_levels_are_columns_that_sort_and_filter():
    rows = pd.MultiIndex.from_product([["b", "a"], [2, 1]], names=["letter", None])
    columns = pd.MultiIndex.from_product([["x", "y"], [1, 2]])
    view = view_of(pd.DataFrame(np.arange(16).reshape(4, 4), index=rows, columns=columns))
    page = ask(view, kind="page", rows={"sort": 1})
    assert [column.get("label") for column in page["columns"].values()] == [True, True, *[None] * 4]
    assert [row[:3] for row in page["rows"]] == [
        ["b", "1", "4"],
        ["a", "1", "12"],
        ["b", "2", "0"],
        ["a", "2", "8"],
    ]
    only = {"conditions": [{"column": 0, "test": "equals", "value": "a"}]}
    assert ask(view, kind="page", rows=only)["matching"] == 2
    assert ask(view, kind="summary", column=0)["distinct"] == 2


def test_several_people_turn_the_pages_of_one_table_at_once():
    height = 2_000
    values = np.random.default_rng(0).permutation(height)
    view = view_of(pd.DataFrame({"v": values, "w": -values}))
    together = threading.Barrier(4)

    def turn(column):
        together.wait(60)
        rows, sign = {"sort": column, "descending": column == 1}, 1 if column == 0 else -1
        pages = [ask(view, kind="page", rows=rows, start=start) for start in range(0, 500, 50)]
        return [sign * int(row[column]) for page in pages for row in page["rows"]]

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(turn, [0, 1, 0, 1]))
    assert found == [list(range(500))] * 4


def test_views_beyond_the_limit_expire_and_their_memory_comes_back():
    height = 100_000
    limit = 20 * height * 8
    store = ResourceStore("0" * 16, limit)

    def open_view(seed):
        values = np.random.default_rng(seed).permutation(height)
        (link, *_) = store.keep(describe_table(find_frame(pd.DataFrame({"v": values}))))
        view = store.find_view(make_view_uri(link.uri))
        ask(view, kind="page", rows={"sort": 0, "search": "7"}, start=100)

    open_view(0)  # what libraries keep from their first use does not count
    gc.collect()
    tracemalloc.start()
    try:
        for seed in range(50):
            open_view(seed)
        gc.collect()
        # A view's columns, matches and order add less than its table's own size.
        assert tracemalloc.get_traced_memory()[0] < 2.2 * limit
        store.clear()
        gc.collect()
        assert tracemalloc.get_traced_memory()[0] < limit / 10
    finally:
        tracemalloc.stop()
