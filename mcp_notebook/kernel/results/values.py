"""The table of values: an ordered list of rules; the first match applies.

Pure data; the documentation's table of values is generated from it.
"""

import io
from typing import Any

from mcp_notebook.content import Message, Result, Text
from mcp_notebook.kernel.results import library_values
from mcp_notebook.kernel.results.blocks.author_blocks import BLOCK_TYPES
from mcp_notebook.kernel.results.blocks.piece import Piece, make_text_piece
from mcp_notebook.kernel.results.displays import render_mime_bundle
from mcp_notebook.kernel.results.files.returned_files import is_path
from mcp_notebook.kernel.results.iterators import is_result
from mcp_notebook.kernel.results.plots import detect
from mcp_notebook.kernel.results.self_shown import (
    displays_itself,
    leave_out_generated_repr,
    shows_itself,
)
from mcp_notebook.kernel.results.tables import table_text
from mcp_notebook.kernel.results.tables.frame import CELLS
from mcp_notebook.kernel.results.value_renderer import (
    PLAIN_TYPES,
    Rule,
    ValueRenderer,
    find_figures,
)
from mcp_notebook.kernel.safe.foreign_code import guard
from mcp_notebook.kernel.safe.libraries import is_instance
from mcp_notebook.kernel.safe.sequences import is_mapping
from mcp_notebook.kernel.safe.stand_ins import holds_rows, prints_itself, read_rows
from mcp_notebook.kernel.safe.tabular_data import is_array_like
from mcp_notebook.kernel.safe.text import is_written, list_notes, safe_repr, str_says_more
from mcp_notebook.kernel.safe.to_json import is_jsonable


def _render_self_shown(renderer: ValueRenderer, value: Any, _depth: int) -> list[Piece] | None:
    """Render data by its own display methods; None if they show nothing, nor does its repr."""
    data, _ = guard(renderer.format, value)
    if not data.keys() - {"text/plain"}:
        if data and is_written(type(value), "__repr__") and not is_mapping(value):
            return [Piece(Text(safe_repr(value, renderer.budget.chars)))]
        return [] if not data and displays_itself(value) else None
    return render_mime_bundle(leave_out_generated_repr(value, data), renderer.budget)


def _render_styler(renderer: ValueRenderer, value: Any, _depth: int) -> list[Piece] | None:
    """Render a long Styler as its data; None for a short one, which shows itself."""
    if value.data.size <= CELLS * renderer.budget.table_rows:
        return None
    shown, (height, width) = value.data, value.data.shape
    if len(value.hidden_rows):  # else its index stays a range, also with older pandas
        shown = shown.iloc[sorted(set(range(height)).difference(value.hidden_rows))]
    shown = shown.iloc[:, sorted(set(range(width)).difference(value.hidden_columns))]
    if all(value.hide_index_):
        shown = shown.reset_index(drop=True)
    return table_text.render_table(shown, renderer.budget)


def _render_object(renderer: ValueRenderer, value: Any, _depth: int) -> list[Piece]:
    """Render any object, as IPython represents it."""
    if isinstance(value, BaseException) and list_notes(value):
        return [Piece(Text(safe_repr(value, renderer.budget.chars)))]
    data, _ = guard(renderer.format, value)
    if data.keys() == {"text/plain"} and str_says_more(value, str(data["text/plain"])):
        return [make_text_piece(guard(str, value))]
    if data:
        return render_mime_bundle(leave_out_generated_repr(value, data), renderer.budget)
    # No data: the object displayed itself, so it is among the outputs; or its repr failed.
    return [] if displays_itself(value) else [Piece(Text(safe_repr(value)))]


_BUILT_IN = frozenset({list, tuple, dict, set, frozenset})
# fireducks replaces the classes of pandas by its own.
_TABLES = frozenset({"pandas", "fireducks", "polars", "pyarrow", "modin", "cudf"})
_PLOTS = frozenset({"plotly", "altair", "bokeh"})


def _is_any(value: Any, *paths: str) -> bool:
    return any(is_instance(value, path) for path in paths)


def _is_array(value: Any) -> bool:
    return is_instance(value, "numpy.ndarray") and not prints_itself(value)


def _is_data(value: Any) -> bool:
    """Return whether a later rule would read a value as data."""
    is_collection = isinstance(value, (list, tuple))
    return is_collection or is_jsonable(value) or is_instance(value, "numpy.ndarray")


RULES: tuple[Rule, ...] = (
    Rule(
        values="`None`",
        content="nothing; if there is no output either, a sentence that the tool is done",
        accepts=lambda value: value is None,
        render=ValueRenderer.render_nothing,
    ),
    Rule(
        values="`Message` of `mcp_notebook`",
        content="what its content becomes; in a prompt, messages of its role",
        accepts=lambda value: isinstance(value, Message),
        render=ValueRenderer.render_message,
        is_rich=True,
    ),
    Rule(
        values="`Text`, `Image`, `Audio`, `Resource`, `ResourceLink`, `Result` of `mcp_notebook`",
        content="exactly that; around another value (`Image(array)`, "
        "`Text(frame)`), what that value becomes",
        accepts=lambda value: isinstance(value, (*BLOCK_TYPES, Result)),
        render=ValueRenderer.render_block,
        is_rich=True,
        replaces_display=True,
    ),
    Rule(
        values="generator, async generator, `map`, `zip` and other iterators",
        content="the list of its items, at most the first 1,000",
        # Never reached: `converter` collects the items, which structured content also needs.
        accepts=lambda _: False,
        render=ValueRenderer.render_nothing,
    ),
    Rule(
        values="`str`, `int`, `float`, `bool`",
        content="the text, without a terminal's colors; numbers and bools as JSON",
        accepts=lambda value: type(value) in PLAIN_TYPES,
        render=ValueRenderer.render_plain,
    ),
    Rule(
        values="`pathlib.Path` and other paths",
        content="the content of the file, by its type, within the notebook's folder and the "
        "allowed roots",
        accepts=is_path,
        render=ValueRenderer.render_path,
    ),
    Rule(
        values="PIL image",
        content="an image, downsized if it is too large, with a link to the original",
        libraries=frozenset({"PIL"}),
        accepts=lambda value: is_instance(value, "PIL.Image.Image"),
        render=ValueRenderer.render_pil_image,
        is_rich=True,
    ),
    Rule(
        values="`bytes`, `bytearray`, `memoryview`",
        content="an image if they are PNG, JPEG, WebP or GIF; else their text, or their number and "
        "the first of them",
        accepts=lambda value: isinstance(value, (bytes, bytearray, memoryview)),
        render=ValueRenderer.render_bytes,
    ),
    Rule(
        values="`io.BytesIO`, `io.StringIO`",
        content="what was written to it, by these rules",
        libraries=frozenset({"_io"}),
        accepts=lambda value: isinstance(value, (io.BytesIO, io.StringIO)),
        render=library_values.render_parts(library_values.read_buffer),
        is_rich=True,
    ),
    Rule(
        values="matplotlib figure, axes, artists; seaborn grid; lists of such",
        content="an image of the whole figure, once, drawn as the notebook draws it",
        # What plotting functions return may be a list, a tuple, a dict or an array.
        libraries=frozenset({"matplotlib", "seaborn", "numpy", "builtins"}),
        accepts=lambda value: find_figures(value) is not None,
        render=ValueRenderer.render_figures,
        is_rich=True,
    ),
    Rule(
        values="pandas `DataFrame`, `Series`; tables and series of polars, pyarrow, modin, cuDF",
        content="shape, types and a CSV table, in which a missing value is an empty cell (`null` "
        "in a row of one cell) and a text like `NaN` is in quotes; of a long table a summary of "
        "each column and some rows, and a link to the whole. A polars `LazyFrame` is described, "
        "not run",
        libraries=_TABLES,
        accepts=table_text.is_table,
        render=ValueRenderer.render_table,
        is_rich=True,
        replaces_display=True,
    ),
    Rule(
        values="pandas `Styler`",
        content="the table as it shows it; of a long one the data that it does not hide, "
        "without what was concatenated to it",
        libraries=frozenset({"pandas"}),
        accepts=lambda value: is_instance(value, "pandas.io.formats.style.Styler"),
        render=_render_styler,
        is_rich=True,
        replaces_display=True,
    ),
    Rule(
        values="pandas `groupby`",
        content="a table of the rows in each group",
        libraries=frozenset({"pandas"}),
        accepts=lambda value: is_instance(value, "pandas.core.groupby.groupby.GroupBy"),
        render=library_values.render_parts(library_values.list_groups),
        is_rich=True,
    ),
    Rule(
        values="plot of plotly, altair or bokeh",
        content="an image, if a library that draws it is installed; else its data, shortened; and "
        "a link to the whole",
        libraries=_PLOTS,
        accepts=detect.is_plot_object,
        render=ValueRenderer.render_plot,
    ),
    Rule(
        values="DuckDB relation",
        content="a table of its rows, at most the first 100,000",
        libraries=frozenset({"duckdb", "_duckdb"}),
        accepts=lambda value: is_instance(value, "duckdb.DuckDBPyRelation"),
        render=library_values.render_parts(library_values.read_relation),
        is_rich=True,
        replaces_display=True,
    ),
    Rule(
        values="geometry of shapely",
        content="its coordinates as WKT; on its own also its picture",
        libraries=frozenset({"shapely"}),
        accepts=lambda value: is_instance(value, "shapely.geometry.base.BaseGeometry"),
        render=library_values.render_geometry,
        is_rich=True,
        replaces_display=True,
    ),
    Rule(
        values="networkx graph",
        content="its size, and its edges and nodes as tables",
        libraries=frozenset({"networkx"}),
        accepts=lambda value: is_instance(value, "networkx.Graph"),
        render=library_values.render_parts(library_values.list_graph),
        is_rich=True,
        replaces_display=True,
    ),
    Rule(
        values="sparse matrix or array of scipy",
        content="its kind and its elements, as scipy prints them",
        libraries=frozenset({"scipy"}),
        accepts=lambda value: _is_any(value, "scipy.sparse.spmatrix", "scipy.sparse.sparray"),
        render=library_values.render_parts(lambda value: [str(value)]),
        is_rich=True,
        replaces_display=True,
    ),
    Rule(
        values="fitted model of statsmodels",
        content="its summary",
        libraries=frozenset({"statsmodels"}),
        accepts=lambda value: callable(getattr(value, "summary", None)),
        render=library_values.render_parts(lambda value: [str(value.summary())]),
        is_rich=True,
    ),
    Rule(
        values="estimator of scikit-learn",
        content="its parameters, and what it has learned: its attributes like `coef_`",
        libraries=frozenset({"sklearn"}),
        accepts=lambda value: is_instance(value, "sklearn.base.BaseEstimator"),
        render=library_values.render_parts(library_values.describe_estimator),
        is_rich=True,
        replaces_display=True,
    ),
    Rule(
        values="result of SQLAlchemy that has not been fetched",
        content="a table of its rows, at most the first 100,000",
        libraries=frozenset({"sqlalchemy"}),
        accepts=is_result,
        render=library_values.render_parts(library_values.fetch_rows),
        is_rich=True,
    ),
    Rule(
        values="list of rows of SQLite or SQLAlchemy, or of objects that SQLAlchemy maps",
        content="what a list of dicts becomes, by the names of the columns",
        libraries=frozenset({"builtins"}),
        accepts=holds_rows,
        render=library_values.render_parts(lambda value: [read_rows(value)]),
    ),
    Rule(
        values="array of another class than numpy's, such as one with a unit or on a device",
        content="its shape, type and a summary if it is long, and its own text",
        accepts=is_array_like,
        render=ValueRenderer.render_array_like,
        is_rich=True,
    ),
    Rule(
        values="mapping, dataclass, model, list, tuple, set or array of a class with a `_repr_*_` "
        "of its own, such as `xarray.Dataset`",
        content="as it shows itself",
        accepts=lambda value: shows_itself(value) and _is_data(value),
        render=_render_self_shown,
    ),
    Rule(
        values="list, tuple, dict or record with any of the above, a plot or a large array in it, "
        "also one level deeper",
        content="each item by these rules, in order",
        render=ValueRenderer.render_mixed,
    ),
    Rule(
        values="list, tuple, dict, set",
        content="JSON, long lists in it shortened and summarized, a set sorted; a table, if it is "
        "a list of dicts or records with the same keys and that is shorter",
        accepts=lambda value: type(value) in _BUILT_IN,
        render=ValueRenderer.render_built_in,
    ),
    Rule(
        values="numpy array",
        content="a table, if it is structured or small and two-dimensional; else its shape, its "
        "type, a summary, and values as numpy abbreviates them",
        libraries=frozenset({"numpy"}),
        accepts=_is_array,
        render=ValueRenderer.render_array,
        replaces_display=True,
    ),
    Rule(
        values="pandas `Index`",
        content="a table",
        libraries=frozenset({"pandas"}),
        accepts=lambda value: is_instance(value, "pandas.Index"),
        render=ValueRenderer.render_table,
        replaces_display=True,
    ),
    Rule(
        values="dataclass, pydantic model, named tuple, enum, date, `Decimal`, numpy scalar, "
        "range, deque, view of a dict, other mappings; object of a class of the notebook without a "
        "repr of its own",
        content="JSON, unless a formatter is registered for it: without fields with `repr=False`, "
        "long lists shortened and summarized",
        accepts=is_jsonable,
        render=ValueRenderer.render_jsonable,
    ),
    Rule(
        values="anything else",
        content="the representation that IPython shows, with formatters that you registered: "
        "image, plot, Markdown, JSON, LaTeX, SVG, HTML or plain text",
        render=_render_object,
    ),
)
"""The rules for rendering values; the first matching row applies."""
