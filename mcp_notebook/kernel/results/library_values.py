"""Renders library objects as the data in them: graphs, sparse matrices, groups...

Runs in the user's kernel, on the thread of the call. Each function reads one kind of object and
returns its parts, which are rendered as if they had been returned. No library is imported: if there
is an object of one, it is loaded. This module limits the rows that are read; `tables` limits the
rows that are shown.
"""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, TypeAlias

from mcp_notebook.content import Text
from mcp_notebook.kernel.results.blocks.piece import (
    Piece,
    describe_text_original,
    join_texts,
)
from mcp_notebook.kernel.results.displays import render_mime_bundle
from mcp_notebook.kernel.results.value_renderer import ValueRenderer
from mcp_notebook.kernel.safe.foreign_code import guard
from mcp_notebook.kernel.safe.tabular_data import find_free_name, list_records
from mcp_notebook.kernel.safe.text import cut_text
from mcp_notebook.kernel.safe.to_json import to_json_value
from mcp_notebook.text.wording import count

MAX_READ = 100_000
"""Maximum edges or nodes of a graph, and maximum rows that are read one by one."""
MAX_WKT = 500
"""Characters of the WKT of a geometry that are shown."""
MAX_LEARNED = 10_000
"""Maximum elements and characters of an estimator's learned attributes."""
Render: TypeAlias = Callable[[ValueRenderer, Any, int], list[Piece]]


def render_parts(list_parts: Callable[[Any], Iterable[Any]]) -> Render:
    """Return a function that renders an object as its parts.

    Args:
        list_parts: Returns the parts of an object.
    """

    def render(renderer: ValueRenderer, value: Any, depth: int) -> list[Piece]:
        parts = guard(lambda value: list(list_parts(value)), value)
        within = depth + 1
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
    return _list_fetched(value.fetchmany(MAX_READ + 1), names)


def read_relation(value: Any) -> list[Any]:
    """Run the query of a DuckDB relation once; return its first rows as a table."""
    rows = list_records(value.limit(MAX_READ + 1))
    return _list_fetched(rows, value.columns, "The query has no rows")


def _list_fetched(
    rows: Sequence[Any], names: Iterable[str], none: str = "No rows are left to fetch"
) -> list[Any]:
    if not rows:
        return [f"{none}; columns: {', '.join(names) or '(one)'}"]
    if len(rows) <= MAX_READ:
        return [list(rows)]
    return [f"The first {MAX_READ:,} rows:", list(rows[:MAX_READ])]


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


def list_groups(value: Any) -> Iterator[Any]:
    """Yield the number of groups of pandas, and the rows in each."""
    sizes = value.size()
    yield f"{count(len(sizes), 'group')}; rows in each:"
    yield sizes if hasattr(sizes, "columns") else sizes.rename("rows")


def list_graph(value: Any) -> Iterator[Any]:
    """Yield the size of a networkx graph, its edges, and its nodes if they have attributes."""
    yield str(value)
    ends = ("from", "to") if value.is_directed() else ("node", "other node")
    edges = [
        _add_attributes(dict(zip(ends, edge[:2], strict=True)), edge[2])
        for edge in islice(value.edges(data=True), MAX_READ)
    ]
    if edges:
        yield _describe_rows("Edges", value.number_of_edges())
        yield edges
    nodes = list(islice(value.nodes(data=True), MAX_READ))
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
    return f"{name}, the first {MAX_READ:,}:" if number > MAX_READ else f"{name}:"


def render_geometry(renderer: ValueRenderer, value: Any, depth: int) -> list[Piece]:
    """Render a geometry as WKT; outside collections also as a picture."""
    pieces = [guard(_write_geometry, value)]
    if depth == 0:
        data, _ = guard(renderer.format, value)
        if picture := data.get("image/svg+xml"):
            pieces += render_mime_bundle({"image/svg+xml": picture}, renderer.budget)
    return pieces


def _write_geometry(value: Any) -> Piece:
    """Return the WKT of a geometry; of a long one its measures and both ends."""
    text = sys.modules["shapely"].to_wkt(value)
    if len(text) <= MAX_WKT:
        return Piece(Text(text))
    bounds = ", ".join(f"{bound:.7g}" for bound in value.bounds)
    facts = f"{value.geom_type}, bounds {bounds}, area {value.area:.6g}, length {value.length:.6g}"
    original = describe_text_original(str(value), ".wkt", what="geometry")
    return Piece(Text(f"{facts}\n{cut_text(text, MAX_WKT)}"), original, is_partial=True)
