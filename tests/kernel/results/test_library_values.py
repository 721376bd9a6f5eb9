"""Objects of libraries that are the data in them, with the real libraries."""

import io
import sqlite3

import pytest

from mcp_notebook.content import Image, ResourceLink
from mcp_notebook.kernel.schemas.output.output_schema import make_output_schema

np = pytest.importorskip("numpy")


def table_of(text):
    """Return the lines of the last table of a text."""
    return text.rpartition("\n\n")[2].split("\n")


def test_groups_of_pandas_are_the_rows_in_each(to_text, pandas):
    frame = pandas.DataFrame({"city": ["Oslo", "Lima", "Oslo"], "n": [1, 2, 3]})
    for groups in (frame.groupby("city"), frame.groupby("city").n):
        text = to_text(groups)
        assert text.startswith("2 groups; rows in each:\n")
        assert table_of(text)[-2:] == ["Lima,1", "Oslo,2"]
    assert table_of(to_text(frame.groupby("city", as_index=False)))[-2:] == ["Lima,1", "Oslo,2"]
    assert "Oslo,2" in to_text({"groups": frame.groupby("city")})


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
    assert to_text(row) == '{"city":1,"name":"x"}'
    assert to_text({"rows": [row]}) == '{"rows":[{"city":1,"name":"x"}]}'
    numbers = "with recursive n(i) as (select 1 union all select i + 1 from n where i < 20)"
    rows = select(f"{numbers} select i as number, 'name ' || i as name from n")
    assert to_text(rows).startswith("list of dicts: 20 rows x 2 columns; number int, name str\n")


def test_columns_of_the_same_name_are_told_apart(to_text, select):
    assert to_text(select("select 1 as id, 2 as id")) == '[{"id":1,"id_2":2}]'


# -- groups, relations, fits -----------------------------------------------------------------------


def test_a_relation_of_duckdb_is_a_table_with_links(convert):
    duckdb = pytest.importorskip("duckdb")
    relation = duckdb.sql("select i, 'x' || i as s, null as n from range(100) t(i)")
    text, *links = convert(relation)
    assert text.text.startswith("list of dicts: 100 rows x 3 columns\ni int: 0 to 99, mean 49.5")
    assert table_of(text.text)[-1] == "99,x99,"
    assert [type(link) for link in links] == [ResourceLink, ResourceLink]
    [failure] = convert(duckdb.sql("select ('x' || i)::int as s from range(1) t(i)"))
    assert "Could not convert string 'x0' to INT32" in failure.text


def test_only_the_beginning_of_a_huge_relation_is_read(convert):
    duckdb = pytest.importorskip("duckdb")
    first, text, *_ = convert(duckdb.sql("select i from range(1000000000) t(i)"))
    assert first.text == "The first 100,000 rows:"
    assert text.text.startswith("list of dicts: 100,000 rows x 1 column")


def test_the_query_of_a_relation_runs_once(convert):
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect() as connection:
        connection.execute("create sequence runs")
        convert(connection.sql("select nextval('runs') as run from range(3)"))
        assert connection.sql("select nextval('runs')").fetchall() == [(4,)]


@pytest.mark.needs("statsmodels")
def test_a_fitted_model_of_statsmodels_is_its_summary(to_text):
    statsmodels = pytest.importorskip("statsmodels.api")
    fit = statsmodels.OLS(np.arange(20.0) ** 2, statsmodels.add_constant(np.arange(20.0))).fit()
    for shown in (to_text(fit), to_text(fit.summary())):
        assert "OLS Regression Results" in shown
        assert "tabular" not in shown
        assert "R-squared:" in shown


# -- geometries, graphs, sparse matrices -----------------------------------------------------------


@pytest.mark.needs("shapely")
def test_a_geometry_is_its_coordinates_and_by_itself_a_picture(convert, to_text):
    shapely = pytest.importorskip("shapely")
    triangle = shapely.Polygon([(0, 0), (1, 0), (1, 1)])
    text, picture, *_ = convert(triangle)
    assert text.text == "POLYGON ((0 0, 1 0, 1 1, 0 0))"
    assert isinstance(picture, Image) or "<svg" in picture.text
    assert to_text([shapely.Point(1, 2), shapely.Point(3.5, 4)]) == "POINT (1 2)\nPOINT (3.5 4)"
    assert to_text({"a": {"b": {"at": shapely.Point(1, 2)}}}) == (
        '{"a":{"b":{"at":"POINT (1 2)"}}}'
    )


@pytest.mark.slow
@pytest.mark.needs("networkx")
def test_a_graph_is_its_edges_and_the_attributes_of_its_nodes(to_text):
    networkx = pytest.importorskip("networkx")
    graph = networkx.Graph()
    graph.add_edges_from([("a", "b", {"weight": 2, "node": "x"})])
    assert to_text(graph).endswith(
        'Edges:\n\n[{"node":"a","other node":"b","weight":2,"node_2":"x"}]'
    )
    graph.add_node("c")
    assert to_text(graph).endswith('Nodes without edges:\n\n["c"]')
    graph.nodes["c"]["size"] = 3
    assert '{"node":"c","size":3}' in to_text(graph)
    directed = networkx.path_graph(3, create_using=networkx.DiGraph)
    assert '[{"from":0,"to":1},{"from":1,"to":2}]' in to_text(directed)
    assert to_text(networkx.Graph()) == "Graph with 0 nodes and 0 edges"


@pytest.mark.needs("networkx")
def test_a_long_graph_is_a_table_with_links(convert):
    networkx = pytest.importorskip("networkx")
    _, text, *links = convert(networkx.karate_club_graph())[:4]
    assert text.text.startswith(
        "list of dicts: 78 rows x 3 columns\nnode int: 0 to 32, mean 11.077, 26 distinct\n"
    )
    assert all(isinstance(link, ResourceLink) for link in links)


@pytest.mark.needs("scipy")
def test_a_sparse_matrix_is_its_elements(to_text):
    sparse = pytest.importorskip("scipy.sparse")
    large = sparse.eye(1_000, format="csr")
    for matrix in (large, sparse.csr_array(large)):
        text = to_text(matrix)
        assert "1000 stored elements" in text
        assert text.split()[-3:] == ["(999,", "999)", "1.0"]


# -- databases, records, estimators, molecules -----------------------------------------------------


@pytest.fixture
def people():
    """A session of SQLAlchemy with two rows, and the class that is mapped to them."""
    sa = pytest.importorskip("sqlalchemy")
    orm = pytest.importorskip("sqlalchemy.orm")
    base = orm.declarative_base()

    class Person(base):
        __tablename__ = "person"
        id = sa.Column(sa.Integer, primary_key=True)
        name = sa.Column(sa.String)
        friend_id = sa.Column(sa.ForeignKey("person.id"))
        friend = orm.relationship("Person", remote_side="Person.id")

        def __repr__(self):
            return f"<Person {self.name}>"

    engine = sa.create_engine("sqlite://")
    base.metadata.create_all(engine)
    with orm.Session(engine) as session:
        session.add_all([Person(id=1, name="Ann"), Person(id=2, name="Bob", friend_id=1)])
        session.commit()
        yield session, Person, sa
    engine.dispose()


ANN = '{"id":1,"name":"Ann","friend_id":null}'
BOTH = f'[{ANN},{{"id":2,"name":"Bob","friend_id":1}}]'


@pytest.mark.slow
def test_rows_of_sqlalchemy_keep_the_names_of_their_columns(to_text, people):
    session, person, sa = people
    query = sa.select(person.id, person.name, person.friend_id).order_by(person.id)
    assert to_text(session.execute(query).first()) == ANN
    assert to_text(session.execute(query).all()) == BOTH
    assert to_text(session.execute(query).mappings().all()) == BOTH
    assert to_text({"rows": session.execute(query).all()}) == f'{{"rows":{BOTH}}}'
    assert to_text(session.execute(sa.text("select 1 as a, 2 as a")).all()) == '[{"a":1,"a_2":2}]'
    assert to_text(query).startswith("SELECT person.id, person.name")


def test_a_result_of_sqlalchemy_is_its_rows(to_text, people):
    session, person, sa = people
    query = sa.select(person.id, person.name, person.friend_id).order_by(person.id)
    result = session.execute(query)
    assert to_text(result) == BOTH
    assert to_text(result) == "No rows are left to fetch; columns: id, name, friend_id"
    assert to_text(session.scalars(sa.select(person.name))) == '["Ann","Bob"]'
    update = sa.update(person).values(name="Eve")
    assert to_text(session.execute(update)) == "The statement returns no rows; it affected 2 rows."
    many = " union all ".join(
        f"select {number} as n, 'name {number}' as name" for number in range(30)
    )
    assert to_text(session.execute(sa.text(many))).startswith("list of dicts: 30 rows x 2 columns;")


def test_mapped_objects_are_their_columns_and_load_nothing_else(to_text, people):
    session, person, sa = people
    statements = []
    sa.event.listen(session.bind, "before_cursor_execute", lambda *args: statements.append(args[2]))
    loaded = session.scalars(sa.select(person).order_by(person.id)).all()
    assert to_text(loaded) == BOTH
    assert to_text(loaded[0]) == ANN
    assert len(statements) == 1  # the friend was not loaded
    session.expire_all()
    assert to_text(loaded[0]) == ANN
    session.expire_all()
    session.expunge_all()
    assert to_text(loaded[0]) == "<Person without loaded columns: its session is closed>"


def test_a_program_gets_rows_as_dicts_and_both_get_all_of_them(people, converter):
    session, person, sa = people
    query = sa.select(person.id, person.name)
    expected = [{"id": 1, "name": "Ann"}, {"id": 2, "name": "Bob"}]

    def people_tool() -> list[dict]:
        """Declare what it returns."""

    schema = make_output_schema(people_tool, "people", schema=True)
    mapped = session.scalars(sa.select(person)).all()
    for value in (
        session.execute(query),
        session.execute(query).all(),
        session.execute(query).mappings(),
    ):
        result = converter.make_result(value, (), schema)
        assert result.structured["result"] == expected
        assert "Ann" in result.content[0].text
    assert converter.make_result(mapped, (), schema).structured["result"][1]["friend_id"] == 1


def test_structs_of_msgspec_are_their_fields(to_text):
    msgspec = pytest.importorskip("msgspec")
    point = msgspec.defstruct("Point", [("x", int), ("name", str)])
    assert to_text([point(1, "a")]) == '[{"x":1,"name":"a"}]'


@pytest.mark.needs("scipy")
def test_results_of_scipy_have_all_their_fields(to_text):
    stats = pytest.importorskip("scipy.stats")
    assert '"df":4.0' in to_text(stats.ttest_ind([1, 2, 3.5], [2, 3, 4.9]))
    assert '"intercept_stderr":0.31' in to_text({"fit": stats.linregress([1, 2, 3], [1, 2, 3.5])})


def test_an_array_of_zarr_says_its_type(to_text):
    zarr = pytest.importorskip("zarr")
    assert "shape=(3,) dtype=int64" in to_text(zarr.array(np.arange(3)))
    assert "shape=(3,) dtype=int64" in to_text({"a": [zarr.array(np.arange(3))]})


@pytest.mark.needs("sklearn")
def test_an_estimator_shows_what_it_learned(to_text):
    linear = pytest.importorskip("sklearn.linear_model")
    pipeline = pytest.importorskip("sklearn.pipeline")
    processing = pytest.importorskip("sklearn.preprocessing")
    model = linear.LinearRegression()
    assert to_text(model) == "LinearRegression()"
    model.fit([[0.0], [1.0]], [1.0, 3.0])
    assert '"coef_":[' in to_text(model)
    assert '"coef_":[' in to_text({"model": model})
    steps = pipeline.make_pipeline(processing.StandardScaler(), "passthrough", linear.Ridge())
    text = to_text(steps.fit([[0.0], [1.0]], [1.0, 3.0]))
    assert text.index("standardscaler learned:") < text.index('"mean_":[0.5]') < text.index("coef_")
