"""Objects of libraries that are shown as the data in them: graphs, sparse matrices, groups...

Runs in the user's kernel, on the thread of the call. Each function reads one kind of object and
returns its parts, which are rendered as if they had been returned. No library is imported: where
there is an object of one, it is loaded. This module bounds how many rows of a part are read; how
many are shown is the business of `tables`.
"""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from importlib.util import find_spec
from itertools import islice
from typing import Any, TypeAlias

from mcp_notebook.kernel.results.blocks.piece import Piece, join_texts, make_text_piece
from mcp_notebook.kernel.results.displays import render_mime_bundle
from mcp_notebook.kernel.results.value_renderer import ValueRenderer
from mcp_notebook.kernel.results.value_rules import Position
from mcp_notebook.kernel.safe.deadline import run_bounded
from mcp_notebook.kernel.safe.tabular_data import find_free_name, name_fields

MAX_EDGES = 100_000
"""Edges and nodes of a graph that are read, and rows that are read one by one."""
MAX_ROWS = 1_000_000
"""Rows of a relation that are read as columns."""
MAX_STORED = 10_000_000
"""Stored elements of a sparse matrix that are read."""
MAX_DENSE = 400
"""Elements of the largest sparse matrix that is written as a dense one."""
Render: TypeAlias = Callable[[ValueRenderer, Any, Position], list[Piece]]


def render_parts(list_parts: Callable[[Any], Iterable[Any]]) -> Render:
    """Return what renders an object by its parts.

    Args:
        list_parts: Returns the parts of an object.
    """

    def render(renderer: ValueRenderer, value: Any, position: Position) -> list[Piece]:
        parts = run_bounded(lambda value: list(list_parts(value)), value)
        within = replace(position, depth=position.depth + 1)
        pieces = [piece for part in parts for piece in renderer.render(part, within)]
        return join_texts(pieces)

    return render


def read_buffer(value: Any) -> list[Any]:
    """Return what was written to a ``BytesIO`` or ``StringIO``, from its beginning."""
    return [value.getvalue()]


def read_rows(value: Any) -> list[Any]:
    """Return a row of SQLite, or a list of them, as dicts."""
    return [list(map(name_fields, value)) if isinstance(value, list) else name_fields(value)]


def read_relation(value: Any) -> list[Any]:
    """Return the rows of a DuckDB relation, whose query runs now, as an Arrow table."""
    if find_spec("pyarrow") is None:
        rows = value.limit(MAX_EDGES).fetchall()
        return [[dict(zip(value.columns, row, strict=True)) for row in rows]]
    table = value.limit(MAX_ROWS + 1).to_arrow_table()
    if table.num_rows <= MAX_ROWS:
        return [table]
    return [f"The first {MAX_ROWS:,} rows of a DuckDB relation:", table.slice(0, MAX_ROWS)]


def count_groups(value: Any) -> list[Any]:
    """Return how many rows each group has of a ``GroupBy`` or ``Resampler``."""
    is_pandas = hasattr(value, "size")
    sizes = value.size() if is_pandas else value.agg(sys.modules["polars"].len())
    title = f"{type(value).__name__}, of which nothing is computed yet. Its groups:"
    return [title, sizes.rename("rows") if getattr(sizes, "ndim", 2) == 1 else sizes]


def list_windowed(value: Any) -> list[Any]:
    """Return what a window of pandas is, such as ``Rolling``, and the rows that it goes over."""
    return [f"{value!r}, of which nothing is computed yet. Its rows:", value.obj]


def summarize_fit(value: Any) -> list[Any]:
    """Return the summary of a fitted model of statsmodels."""
    return [str(value.summary())]


def list_graph(value: Any) -> Iterator[Any]:
    """Yield the size of a networkx graph, its edges, and its nodes if these have attributes."""
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
    """Yield the kind and the elements of a sparse matrix of scipy: by position if it is large."""
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


def render_geometry(renderer: ValueRenderer, value: Any, position: Position) -> list[Piece]:
    """Render a geometry of shapely: its coordinates as WKT, and by itself its picture, too."""
    pieces = [make_text_piece(run_bounded(str, value))]
    if position.depth == 0:
        svg = run_bounded(lambda value: value._repr_svg_(), value)
        pieces += render_mime_bundle({"image/svg+xml": svg}, renderer.budget) if svg else []
    return pieces
