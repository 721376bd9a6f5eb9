"""Renders library objects as the data in them: graphs, sparse matrices, groups...

Runs in the user's kernel, on the thread of the call. Each function reads one kind of object and
returns its parts, which are rendered as if they had been returned. No library is imported: if there
is an object of one, it is loaded. This module limits the rows that are read; `tables` limits the
rows that are shown.
"""

import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from itertools import islice
from typing import Any, TypeAlias

from msgspec import structs

from mcp_notebook.content import Text
from mcp_notebook.kernel.results.blocks.piece import (
    Piece,
    describe_text_original,
    join_texts,
    make_text_piece,
)
from mcp_notebook.kernel.results.displays import PICTURES, render_mime_bundle
from mcp_notebook.kernel.results.value_renderer import Position, ValueRenderer
from mcp_notebook.kernel.safe.foreign_code import run_bounded
from mcp_notebook.kernel.safe.libraries import is_instance
from mcp_notebook.kernel.safe.stand_ins import find_reader
from mcp_notebook.kernel.safe.tabular_data import find_free_name
from mcp_notebook.kernel.safe.text import clean_text
from mcp_notebook.kernel.safe.to_json import to_json_value
from mcp_notebook.text.wording import count

MAX_EDGES = 100_000
"""Maximum edges or nodes of a graph, and maximum rows that are read one by one."""
MAX_ROWS = 1_000_000
"""Maximum rows of a relation that are read as columns."""
MAX_RELATION = 2**27
"""Bytes of these rows, in Arrow, after which no more are read."""
_BATCH = 65_536
"""Rows of a relation that are read at a time."""
MAX_STORED = 10_000_000
"""Maximum stored elements of a sparse matrix."""
MAX_DENSE = 300
"""Elements of the largest sparse matrix that is shown as a dense one."""
COORDINATE_DIGITS = 7
"""Significant digits of a coordinate after the first."""
MAX_POINTS, SHOWN_POINTS = 60, 10
"""Points of the largest geometry whose WKT is shown whole; of a larger one, so many are shown."""
_PICTURES = (*PICTURES, "image/svg+xml")
_PLAN = ["explain_key", "explain_value"]
"""The columns of DuckDB's ``explain``, whose values are drawings of plans."""
MAX_LEARNED = 10_000
"""Maximum elements and characters of an estimator's learned attributes."""
_DECOMPOSITION = "statsmodels.tsa.seasonal.DecomposeResult"
_SUMMARIES = ("statsmodels.iolib.summary.Summary", "statsmodels.iolib.summary2.Summary")
_MODEL = "statsmodels.base.model.Model"
Render: TypeAlias = Callable[[ValueRenderer, Any, Position], list[Piece]]


def render_parts(list_parts: Callable[[Any], Iterable[Any]]) -> Render:
    """Return a function that renders an object as its parts.

    Args:
        list_parts: Returns the parts of an object.
    """

    def render(renderer: ValueRenderer, value: Any, position: Position) -> list[Piece]:
        parts = run_bounded(lambda value: list(list_parts(value)), value)
        within = structs.replace(position, depth=position.depth + 1)
        pieces = [piece for part in parts for piece in renderer.render(part, within)]
        return join_texts(pieces)

    return render


def read_buffer(value: Any) -> list[Any]:
    """Return the whole content of a ``BytesIO`` or ``StringIO``."""
    return [value.getvalue()]


def fetch_rows(value: Any) -> list[Any]:
    """Fetch the rows of a SQLAlchemy result."""
    if not getattr(value, "returns_rows", True):
        return [f"The statement returns no rows; it affected {count(value.rowcount, 'row')}."]
    names = value.keys() if hasattr(value, "keys") else []
    return _list_fetched(value.fetchmany(MAX_EDGES + 1), names)


def fetch_last_rows(value: Any) -> list[Any]:
    """Fetch the rows of the last query on a DuckDB connection."""
    if value.description is None:
        return ["A DuckDB connection that has executed nothing: return its `.sql(query)`."]
    names = [column[0] for column in value.description]
    return _show_plan(names, value.fetchmany(MAX_EDGES + 1))


def read_relation(value: Any) -> list[Any]:
    """Run the query of a DuckDB relation; return its rows as an Arrow table."""
    if find_spec("pyarrow") is None or list(value.columns) == _PLAN:
        return _show_plan(value.columns, value.limit(MAX_EDGES + 1).fetchall())
    table, is_whole = _read_first_rows(value)
    if is_whole:
        return [table]
    return [f"The first {table.num_rows:,} rows of a DuckDB relation:", table]


def _read_first_rows(relation: Any) -> tuple[Any, bool]:
    """Run a relation's query once, and stop it when enough is read.

    Returns:
        An Arrow table, and whether it has all rows.
    """
    limited = relation.limit(MAX_ROWS + 1)
    # Before DuckDB 1.4, the method has another name.
    open_reader = getattr(limited, "to_arrow_reader", None) or limited.fetch_record_batch
    batches, rows, size = [], 0, 0
    with open_reader(_BATCH) as reader:
        for batch in reader:
            batches.append(batch)
            rows, size = rows + batch.num_rows, size + batch.nbytes
            if size > MAX_RELATION:
                break
        table = sys.modules["pyarrow"].Table.from_batches(batches, reader.schema)
        is_whole = rows <= MAX_ROWS and (size <= MAX_RELATION or _has_ended(reader))
    return table.slice(0, MAX_ROWS), is_whole


def _has_ended(reader: Any) -> bool:
    return not any(batch.num_rows for batch in islice(reader, 1))


def _show_plan(names: Sequence[str], rows: Sequence[Any]) -> list[Any]:
    if list(names) == _PLAN:
        return [plan for _, plan in rows]
    return _list_fetched([_name_columns(names, row) for row in rows], names)


def _name_columns(names: Sequence[str], row: Sequence[Any]) -> dict[str, Any]:
    named: dict[str, Any] = {}
    for name, value in zip(names, row, strict=True):
        named[find_free_name(name, named)] = value
    return named


def _list_fetched(rows: Sequence[Any], names: Iterable[str]) -> list[Any]:
    if not rows:
        return [f"No rows are left to fetch; columns: {', '.join(names) or '(one)'}"]
    if len(rows) <= MAX_EDGES:
        return [list(rows)]
    return [f"The first {MAX_EDGES:,} rows:", list(rows[:MAX_EDGES])]


def count_groups(value: Any) -> list[Any]:
    """Return the number of rows in each group of a ``GroupBy`` or ``Resampler``."""
    is_pandas = hasattr(value, "size")
    sizes = value.size() if is_pandas else value.agg(sys.modules["polars"].len())
    title = f"{type(value).__name__}, not computed yet. Its groups:"
    return [title, sizes.rename("rows") if getattr(sizes, "ndim", 2) == 1 else sizes]


def list_windowed(value: Any) -> list[Any]:
    """Return the settings of a pandas window such as ``Rolling``, and its rows."""
    return [f"{value!r}, not computed yet. Its rows:", value.obj]


def is_of_statsmodels(value: Any) -> bool:
    """Return whether `summarize_fit` says more about an object than its repr."""
    # Results answer through `__getattribute__`; their classes do not have these methods.
    methods = (getattr(value, name, None) for name in ("summary", "summary_frame"))
    paths = (*_SUMMARIES, _DECOMPOSITION, _MODEL)
    return any(map(callable, methods)) or any(is_instance(value, path) for path in paths)


def summarize_fit(value: Any) -> list[Any]:
    """Return the summary of a fitted model of statsmodels, and its predictions as a table."""
    if is_instance(value, _MODEL):
        name, causes = value.endog_names, ", ".join(map(str, value.exog_names or ()))
        return [f"{type(value).__name__} of {name} by {causes}; not fitted: return its `.fit()`."]
    if any(is_instance(value, path) for path in _SUMMARIES):
        return [str(value)]
    if is_instance(value, _DECOMPOSITION):
        names = ("observed", "trend", "seasonal", "resid")
        return [sys.modules["pandas"].DataFrame({name: getattr(value, name) for name in names})]
    if callable(getattr(value, "summary", None)):
        return [str(value.summary())]
    return [value.summary_frame()]


def describe_estimator(value: Any) -> Iterator[Any]:
    """Yield the parameters of a scikit-learn estimator, and what it or its steps learned."""
    yield repr(value)
    parts = [("", value), *getattr(value, "steps", ())]
    if hasattr(value, "best_estimator_"):
        parts.append(("best_estimator_", value.best_estimator_))
    for name, part in parts:
        # By the library's convention, `fit` sets these.
        attributes = getattr(part, "__dict__", {})  # a step may be the string "passthrough"
        learned = {
            key: item
            for key, item in attributes.items()
            if key.endswith("_") and not key.startswith("_")
        }
        if learned:
            yield f"{name} learned:".lstrip()
            yield to_json_value(learned, MAX_LEARNED)


def list_graph(value: Any) -> Iterator[Any]:
    """Yield the size of a networkx graph, its edges, and its nodes if they have attributes."""
    yield str(value)
    ends = ("from", "to") if value.is_directed() else ("node", "other node")
    edges = [
        _add_attributes(dict(zip(ends, edge[:2], strict=True)), edge[2])
        for edge in islice(value.edges(data=True), MAX_EDGES)
    ]
    if edges:
        yield _describe_rows("Edges", value.number_of_edges())
        yield edges
    nodes = list(islice(value.nodes(data=True), MAX_EDGES))
    if any(attributes for _, attributes in nodes):
        yield _describe_rows("Nodes", value.number_of_nodes())
        yield [_add_attributes({"node": node}, attributes) for node, attributes in nodes]
    elif alone := [node for node, _ in nodes if not value.degree(node)]:
        yield "Nodes without edges:"
        yield alone


def _add_attributes(row: dict[Any, Any], attributes: Mapping[Any, Any]) -> dict[Any, Any]:
    for name, value in attributes.items():
        row[find_free_name(name, row)] = value
    return row


def _describe_rows(name: str, number: int) -> str:
    return f"{name}, the first {MAX_EDGES:,}:" if number > MAX_EDGES else f"{name}:"


def list_sparse(value: Any) -> Iterator[Any]:
    """Yield the kind and the elements of a scipy sparse matrix; by position if it is large."""
    yield repr(value)
    rows, *columns = value.shape
    if rows * (columns[0] if columns else 1) <= MAX_DENSE:
        yield value.toarray()
    elif value.nnz <= MAX_STORED:
        elements = value.tocoo()
        numpy = sys.modules["numpy"]
        places = elements.coords if hasattr(elements, "coords") else (elements.row, elements.col)
        names = ("row", "column")[-len(places) :]
        kinds = [*((name, "i8") for name in names), ("value", elements.data.dtype)]
        table = numpy.empty(len(elements.data), kinds)
        for name, place in zip(names, places, strict=True):
            table[name] = place
        table["value"] = elements.data
        yield table


def render_with_picture(
    renderer: ValueRenderer, value: Any, position: Position
) -> list[Piece] | None:
    """Render an object as text (WKT, SMILES); outside collections also as a picture."""
    reader = find_reader(value)
    if reader is None:
        return None
    if is_instance(value, "shapely.geometry.base.BaseGeometry"):
        pieces = [run_bounded(_describe_geometry, value)]
    else:
        pieces = [make_text_piece(str(run_bounded(reader, value)))]
    if position.depth == 0:
        data, _ = run_bounded(renderer.format, value)
        picture = {kind: data[kind] for kind in _PICTURES if data.get(kind)}
        pieces += render_mime_bundle(picture, renderer.budget) if picture else []
    return pieces


def _describe_geometry(value: Any) -> Piece:
    """Return the WKT of a geometry, rounded; of one with many points a summary and the ends."""
    shapely = sys.modules["shapely"]
    bounds = [float(bound) for bound in value.bounds]
    largest = max(map(abs, bounds), default=0.0)
    size = math.floor(math.log10(largest)) if largest and math.isfinite(largest) else 0
    decimals = min(max(COORDINATE_DIGITS - size, 2), 15)
    text = clean_text(shapely.to_wkt(value, rounding_precision=decimals))
    points = text.split(", ")
    if len(points) <= MAX_POINTS:
        return Piece(Text(text))
    corners = ", ".join(f"{bound:.{decimals}f}".rstrip("0").rstrip(".") for bound in bounds)
    half = SHOWN_POINTS // 2
    gap = f"... {len(points) - SHOWN_POINTS:,} of {len(points):,} points left out ..."
    shown = ", ".join([*points[:half], gap, *points[-half:]])
    facts = f"{value.geom_type} of {len(points):,} points, bounds {corners}"
    if value.area:
        facts += f", area {value.area:.6g}"
    if value.length:
        facts += f", length {value.length:.6g}"
    whole = str(value)
    original = describe_text_original(whole, ".wkt", what="geometry")
    return Piece(Text(f"{facts}\n{shown}"), original, is_partial=True, whole="the geometry")


def draw_lets_plot(renderer: ValueRenderer, value: Any, _position: Position) -> list[Piece]:
    """Render a plot of lets-plot as its own SVG."""
    svg = run_bounded(lambda value: value.to_svg(), value)
    return render_mime_bundle({"image/svg+xml": svg}, renderer.budget)


def is_table_of_holoviews(value: Any) -> bool:
    """Return whether an element of holoviews shows only its data."""
    # Nearly all elements are subclasses of Dataset.
    is_bare = type(value) is getattr(sys.modules.get("holoviews"), "Dataset", None)
    paths = ("holoviews.Table", "holoviews.ItemTable")
    return is_bare or any(is_instance(value, path) for path in paths)


def read_elements(value: Any) -> list[Any]:
    """Return the table of a holoviews element."""
    return [value.dframe()]
