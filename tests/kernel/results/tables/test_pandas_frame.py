"""What a Styler displays, and where pandas' tables differ from others; with real pandas."""

import pytest

from mcp_notebook.kernel.results.blocks.budget import Budget
from mcp_notebook.kernel.results.tables.exports import write_csv
from mcp_notebook.kernel.results.tables.pandas_frame import wrap_pandas_table
from mcp_notebook.kernel.results.tables.table_text import render_table
from mcp_notebook.settings.settings import Settings

pd = pytest.importorskip("pandas")
pytest.importorskip("jinja2")


def lines(value, rows=50):
    [block] = render_table(
        value, Budget.from_settings(Settings(max_table_rows=rows, table_format="csv"))
    )
    return block.text.split("\n")


@pytest.fixture
def frame():
    return pd.DataFrame({"price": [1.234, None, 3.0], "n": [1, 2, 3]}, index=["a", "b", "c"])


def test_a_styler_shows_values_as_its_author_formats_them(frame):
    styler = frame.style.format({"price": "{:.1f} EUR"}, na_rep="-").set_caption("Prices")
    assert lines(styler) == [
        'Styler: 3 rows x 2 columns, "Prices"; price float64, n int64',
        "",
        ",price,n",
        "a,1.2 EUR,1",
        "b,-,2",
        "c,3.0 EUR,3",
    ]


def test_a_styler_shows_its_default_format_where_the_author_gave_none(frame):
    with pd.option_context("styler.format.precision", 2):
        assert lines(frame.style)[3] == "a,1.23,1"


def test_what_a_styler_hides_is_not_shown_and_is_in_its_file(frame):
    styler = frame.style.hide(axis="index").hide(["b"]).hide(["n"], axis="columns")
    styler = styler.format(precision=1)
    assert lines(styler) == ["Styler: 2 rows x 1 column; price float64", "", "price", "1.2", "3.0"]
    assert write_csv(wrap_pandas_table(styler).source).startswith(",price,n\na,1.234,1\n")


def test_a_styler_shows_what_was_concatenated_to_it(frame):
    totals = frame.agg(["sum"]).style.format(precision=0)
    assert lines(frame.style.concat(totals))[-1] == "sum,4,6"
    assert lines(frame.style.concat(totals), rows=2)[-2:] == ["...", "sum,4,6"]


def test_a_styler_formats_labels_and_names(frame):
    styler = frame.style.format_index(str.upper).format_index(str.title, axis=1).format(precision=0)
    assert lines(styler)[2:4] == [",Price,N", "A,1,1"]


def test_a_styler_whose_format_fails_shows_the_value(frame):
    def fail(value):
        raise RuntimeError("no")

    assert lines(frame.style.format(fail, na_rep="-"))[3] == "a,1.234,1"


def test_a_long_styler_is_formatted_where_it_is_shown_only(frame):
    formatted = []
    styler = pd.DataFrame({"n": range(1_000)}).style.format(formatted.append)
    lines(styler, rows=4)
    assert formatted == [0, 1, 998, 999]


def test_the_tail_of_every_index_is_found_without_the_rest():
    indexes = [
        pd.date_range("2024-01-01", periods=1_000, tz="UTC"),
        pd.interval_range(0, 1_000),
        pd.MultiIndex.from_product([range(10), range(100)]),
        pd.CategoricalIndex(["a", "b"] * 500),
        pd.period_range("2024", periods=1_000, freq="D"),
        pd.RangeIndex(5, 2_005, 2),
    ]
    for index in indexes:
        shown = lines(pd.DataFrame({"n": range(1_000)}, index=index), rows=2)
        assert shown[-3].endswith(",0")
        assert shown[-1].endswith(",999")


@pytest.mark.needs("pyarrow")
def test_index_columns_of_a_file_have_names():
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame({"n": [1]}, index=pd.MultiIndex.from_tuples([(1, 2)], names=["n", None]))
    assert write_csv(wrap_pandas_table(frame)) == "n,,n\n1,2,1\n"


def test_a_snapshot_does_not_follow_its_table():
    frame = pd.DataFrame({"a": [1, 2], "b": ["x", "y"]})
    kept = wrap_pandas_table(frame).snapshot()
    frame.loc[0, "a"] = 9
    frame["b"] = "z"
    frame.columns = ["p", "q"]
    assert not kept.is_live
    assert write_csv(kept) == "a,b\n1,x\n2,y\n"


def test_objects_count_as_what_they_take():
    texts = pd.DataFrame({"a": pd.Series(["x" * 1_000] * 100, dtype=object)})
    assert wrap_pandas_table(texts).estimate_bytes() > 100_000
    wide = pd.DataFrame([[0.0] * 1_000] * 10)
    assert 80_000 <= wrap_pandas_table(wide).estimate_bytes() < 100_000


# -- what the types and names of columns say -------------------------------------------------------


def test_a_type_of_categories_names_them_in_their_order(to_text):
    ordered = pd.Categorical(["lo", "hi"], ["lo", "mid", "hi"], ordered=True)
    frame = pd.DataFrame({"level": ordered, "city": pd.Categorical(["b", "a"])})
    assert "level category (lo < mid < hi), city category (a, b)" in to_text(frame)
    assert "category (lo < mid < hi)" in to_text(pd.CategoricalIndex(ordered))
    many = pd.Series(pd.Categorical([3], range(100)))
    assert "category (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, ... 88 more)" in to_text(many)
    long = pd.Series(pd.Categorical(["a"], ["a", "x" * 10_000]))
    assert f"category (a, {'x' * 37}...)\n" in to_text(long)


def test_the_name_of_the_columns_axis_is_told(to_text):
    frame = pd.DataFrame({"city": ["Rome", "Oslo"], "year": [1, 2], "mm": [3, 4]})
    text = to_text(frame.pivot_table(index="city", columns="year", values="mm"))
    assert text.startswith("DataFrame: 2 rows x 2 columns by year; 1 float64, 2 float64\n")
    levels = pd.MultiIndex.from_tuples([("a", "x")], names=["first", None])
    assert to_text(pd.DataFrame([[1]], columns=levels)).startswith(
        "DataFrame: 1 row x 1 column by first; a / x int64"
    )


@pytest.mark.needs("shapely")
def test_a_geometry_says_its_coordinate_system(to_text):
    geopandas = pytest.importorskip("geopandas")
    shapely = pytest.importorskip("shapely")
    frame = geopandas.GeoDataFrame(geometry=[shapely.Point(1, 2)], crs="EPSG:4326")
    assert "geometry geometry (EPSG:4326)" in to_text(frame)
    assert "geometry geometry (EPSG:4326)" in to_text({"places": frame.geometry})
    assert "geometry geometry (no CRS)" in to_text(frame.set_crs(None, allow_override=True))
    described = frame.set_crs(frame.crs.to_wkt(), allow_override=True)
    assert "geometry geometry (WGS 84)" in to_text(described)


def test_floats_of_32_bits_are_written_with_their_own_digits(convert, store):
    frame = pd.DataFrame({"mm": [0.1, 0.7] * 50}, dtype="float32")
    text, csv, *_ = convert(frame)
    assert "\n0.1\n0.7\n" in text.text
    assert store.find_format(csv.uri).content().startswith("mm\n0.1\n0.7\n")
