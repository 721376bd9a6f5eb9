"""What a Styler shows, and where pandas' tables differ from others; with real pandas."""

import pytest

from mcp_notebook.kernel.results.blocks.budget import Budget
from mcp_notebook.kernel.results.tables.exports import write_csv
from mcp_notebook.kernel.results.tables.pandas_frame import wrap_pandas_table
from mcp_notebook.kernel.results.tables.table_text import render_table

pd = pytest.importorskip("pandas")
pytest.importorskip("jinja2")


def lines(value, rows=50):
    [block] = render_table(value, Budget(table_rows=rows))
    return block.text.split("\n")


@pytest.fixture
def frame():
    return pd.DataFrame({"price": [1.234, None, 3.0], "n": [1, 2, 3]}, index=["a", "b", "c"])


def test_a_styler_is_shown_as_its_author_formats_it(frame, to_text):
    styler = frame.style.format({"price": "{:.1f} EUR"}, na_rep="-").hide(["n"], axis="columns")
    assert "| a | 1.2 EUR |" in to_text(styler)
    assert "n" not in to_text(styler)


def test_a_long_styler_hides_rows_and_labels_as_a_short_one_does(convert):
    styler = pd.DataFrame({"n": range(1_000)}).style.hide([0, 1], axis="index").hide(axis="index")
    text = convert(styler)[0].text
    assert "998 rows" in text
    assert "\n2\n3\n" in text
    assert "\n0\n" not in text


def test_a_long_styler_is_its_data_without_the_columns_that_it_hides(convert, store):
    styler = pd.DataFrame({"n": range(1_000), "key": "secret"}).style.hide(["key"], axis="columns")
    text, csv, *_ = convert(styler)
    assert text.text.startswith("DataFrame: 1,000 rows x 1 column\nn int64: 0 to 999")
    assert "secret" not in store.find_format(csv.uri).content()


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


def test_a_snapshot_does_not_follow_its_table():
    frame = pd.DataFrame({"a": [1, 2], "b": ["x", "y"]})
    kept = wrap_pandas_table(frame).snapshot()
    frame.loc[0, "a"] = 9
    frame["b"] = "z"
    frame.columns = ["p", "q"]
    assert not kept.is_live
    assert write_csv(kept) == "a,b\n1,x\n2,y\n"


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
