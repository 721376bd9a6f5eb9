"""Objects of libraries that are the data in them, with the real libraries."""

import io
import sqlite3

import pytest

from mcp_notebook.content import Image, ResourceLink

np = pytest.importorskip("numpy")


@pytest.fixture
def pl():
    return pytest.importorskip("polars")


def table_of(text):
    """Return the lines of the last table of a text."""
    return text.rpartition("\n\n")[2].split("\n")


# -- buffers and rows ------------------------------------------------------------------------------


def test_a_buffer_with_a_picture_is_that_picture_wherever_it_is_read(convert, plt):
    buffer = io.BytesIO()
    plt.figure().savefig(buffer, format="png")
    [block] = convert(buffer)
    assert (type(block), block.mime_type, block.data) == (Image, "image/png", buffer.getvalue())
    buffer.seek(0)
    assert type(convert([buffer, 1])[0]) is Image
    [block] = convert(memoryview(buffer.getvalue()))
    assert type(block) is Image


def test_a_buffer_with_text_is_that_text(to_text):
    assert to_text(io.StringIO("hello\nthere")) == "hello\nthere"
    assert to_text(io.BytesIO(b"abc")) == "abc"
    assert to_text(io.BytesIO()) == "[no bytes]"


def test_a_closed_buffer_says_so(to_text):
    buffer = io.BytesIO(b"abc")
    buffer.close()
    assert "I/O operation on closed file" in to_text(buffer)


@pytest.fixture
def select():
    connection = sqlite3.connect(":memory:")
    connection.row_factory = sqlite3.Row
    yield lambda query: connection.execute(query).fetchall()
    connection.close()


def test_a_row_of_sqlite_is_a_dict_and_many_are_a_table(to_text, select):
    [row] = select("select 1 as city, 'x' as name")
    assert to_text(row) == '{"city": 1, "name": "x"}'
    assert to_text({"rows": [row]}) == '{"rows": [{"city": 1, "name": "x"}]}'
    numbers = "with recursive n(i) as (select 1 union all select i + 1 from n where i < 20)"
    rows = select(f"{numbers} select i as number, 'name ' || i as name from n")
    assert to_text(rows).startswith("list of dicts: 20 rows x 2 columns; number int, name str\n")


def test_columns_of_the_same_name_are_told_apart(to_text, select):
    assert to_text(select("select 1 as id, 2 as id")) == '[{"id": 1, "id_2": 2}]'


# -- groups, relations, fits -----------------------------------------------------------------------


def test_groups_are_counted(to_text, pandas):
    frame = pandas.DataFrame({"city": ["Rome", "Rome", "Oslo"], "mm": [1, 2, 3]})
    text = to_text(frame.groupby("city"))
    assert text.startswith("DataFrameGroupBy, of which nothing is computed yet. Its groups:\n")
    assert table_of(text) == ["city,rows", "Oslo,1", "Rome,2"]
    assert table_of(to_text(frame.groupby("city").mm)) == ["city,rows", "Oslo,1", "Rome,2"]
    assert "Oslo,1" in to_text(frame.groupby("city", as_index=False))


def test_groups_of_polars_are_counted(to_text, pl):
    text = to_text(pl.DataFrame({"city": ["Rome", "Rome"]}).group_by("city"))
    assert table_of(text) == ["city,len", "Rome,2"]
    frame = pl.DataFrame({"n": [1, 2, 3]})
    assert table_of(to_text(frame.rolling("n", period="2i"))) == ["n,len", "1,1", "2,2", "3,2"]
    assert table_of(to_text(frame.group_by_dynamic("n", every="2i"))) == ["n,len", "0,1", "2,2"]


def test_rows_of_a_resampler_are_counted(to_text, pandas):
    days = pandas.date_range("2020-01-01", periods=3, freq="12h", name="day")
    for value in (pandas.DataFrame({"mm": [1, 2, 3]}, days), pandas.Series([1, 2, 3], days)):
        text = to_text(value.resample("D"))
        assert text.startswith("DatetimeIndexResampler, of which nothing is computed yet.")
        assert table_of(text) == ["day,rows", "2020-01-01,2", "2020-01-02,1"]


def test_a_window_shows_its_settings_and_its_rows(to_text, pandas):
    frame = pandas.DataFrame({"mm": [1, 2]})
    for window in (frame.rolling(2), frame.mm.expanding(), frame.ewm(1)):
        text = to_text(window)
        assert text.startswith(f"{type(window).__name__} [")
        assert "], of which nothing is computed yet. Its rows:\n" in text
        assert table_of(text) == ["mm", "1", "2"]


def test_a_relation_of_duckdb_is_a_table_with_links(convert):
    duckdb = pytest.importorskip("duckdb")
    relation = duckdb.sql("select i, 'x' || i as s, null as n from range(100) t(i)")
    text, *links = convert(relation)
    assert text.text.startswith("pyarrow Table: 100 rows x 3 columns; i Int64, s String,")
    assert table_of(text.text)[-1] == "99,x99,"
    assert [type(link) for link in links] == [ResourceLink, ResourceLink]
    [failure] = convert(duckdb.sql("select ('x' || i)::int as s from range(1) t(i)"))
    assert "Could not convert string 'x0' to INT32" in failure.text


def test_only_the_beginning_of_a_huge_relation_is_read(convert):
    duckdb = pytest.importorskip("duckdb")
    first, text, *_ = convert(duckdb.sql("select i from range(1000000000) t(i)"))
    assert first.text == "The first 1,000,000 rows of a DuckDB relation:"
    assert text.text.startswith("pyarrow Table: 1,000,000 rows x 1 column")


def test_a_fitted_model_of_statsmodels_is_its_summary(to_text):
    statsmodels = pytest.importorskip("statsmodels.api")
    fit = statsmodels.OLS(np.arange(20.0) ** 2, statsmodels.add_constant(np.arange(20.0))).fit()
    for shown in (to_text(fit), to_text(fit.summary())):
        assert "OLS Regression Results" in shown
        assert "tabular" not in shown
        assert "R-squared:" in shown


# -- geometries, graphs, sparse matrices -----------------------------------------------------------


def test_a_geometry_is_its_coordinates_and_by_itself_a_picture(convert, to_text):
    shapely = pytest.importorskip("shapely")
    triangle = shapely.Polygon([(0, 0), (1, 0), (1, 1)])
    text, picture, *_ = convert(triangle)
    assert text.text == "POLYGON ((0 0, 1 0, 1 1, 0 0))"
    assert isinstance(picture, Image) or "<svg" in picture.text
    assert to_text([shapely.Point(1, 2), shapely.Point(3.5, 4)]) == "POINT (1 2)\nPOINT (3.5 4)"
    assert to_text({"a": {"b": {"at": shapely.Point(1, 2)}}}) == (
        '{"a": {"b": {"at": "POINT (1 2)"}}}'
    )


def test_a_graph_is_its_edges_and_the_attributes_of_its_nodes(to_text):
    networkx = pytest.importorskip("networkx")
    graph = networkx.Graph()
    graph.add_edges_from([("a", "b", {"weight": 2, "node": "x"})])
    assert to_text(graph).endswith(
        'Edges:\n\n[{"node": "a", "other node": "b", "weight": 2, "node_2": "x"}]'
    )
    graph.add_node("c")
    assert to_text(graph).endswith('Nodes without edges:\n\n["c"]')
    graph.nodes["c"]["size"] = 3
    assert '{"node": "c", "size": 3}' in to_text(graph)
    directed = networkx.path_graph(3, create_using=networkx.DiGraph)
    assert '[{"from": 0, "to": 1}, {"from": 1, "to": 2}]' in to_text(directed)
    assert to_text(networkx.Graph()) == "Graph with 0 nodes and 0 edges"


def test_a_long_graph_is_a_table_with_links(convert):
    networkx = pytest.importorskip("networkx")
    _, text, *links = convert(networkx.karate_club_graph())[:4]
    assert text.text.startswith("list of dicts: 78 rows x 3 columns; node int, other node int")
    assert all(isinstance(link, ResourceLink) for link in links)


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "lil", "dok", "dia", "bsr"])
def test_a_sparse_matrix_is_its_elements(convert, kind):
    sparse = pytest.importorskip("scipy.sparse")
    small = convert(sparse.eye(2, format=kind))[-1].text
    assert small.endswith("1.0,0.0\n0.0,1.0")
    large = sparse.eye(1_000, format=kind)
    for matrix in (large, sparse.csr_array(large)):
        name, table, *_ = convert(matrix)
        assert "1000 stored elements" in name.text or "1000)" in name.text
        assert table_of(table.text)[:2] == ["row,column,value", "0,0,1.0"]
        assert table_of(table.text)[-1] == "999,999,1.0"
