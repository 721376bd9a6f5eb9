"""`Columns`: which columns a table has that clients send, and what is in them.

Runs in the user's kernel, at definition.
"""

from __future__ import annotations

import types
from collections.abc import Mapping
from typing import Annotated, Any, Union, cast, get_args, get_origin

from pydantic_core import core_schema
from typing_extensions import TypedDict

from mcp_notebook.errors import DefinitionError
from mcp_notebook.kernel.schemas.tables.column_types import read_column
from mcp_notebook.kernel.schemas.tables.table_parameters import make_table_schema


class Columns:
    """Says which columns a table has that clients send.

    ::

        def add_rain(
            days: Annotated[pd.DataFrame, Columns(city=str, mm=float, note=str | None)],
        ): ...

    Clients are told the columns and send a list of rows, or an object of columns. Each value is
    checked, and the function gets a table with exactly these columns, in this order. A column may
    have missing values, or be left out, if its type allows None. For DataFrames of pandas and
    polars, and for Tables of pyarrow.

    Args:
        columns: The columns by name, for names that are no keywords: ``{"max temp": float}``.
        more: Further columns. A type hint (``float``, ``date``, ``Literal["a", "b"]``...) or a
            dtype (``"float32"``, ``np.int8``, ``"category"``, ``pl.Int16``,
            ``pa.dictionary(pa.int32(), pa.string())``).

    Raises:
        DefinitionError: There are none, or one is neither a type hint nor a dtype.
    """

    def __init__(self, columns: Mapping[str, Any] | None = None, /, **more: Any) -> None:
        is_mapping = columns is None or isinstance(columns, Mapping)
        listed = {**(columns or {}), **more} if is_mapping else {}
        if not listed or not all(isinstance(name, str) and name for name in listed):
            raise DefinitionError(
                "`Columns` needs the table's columns by name: `Columns(city=str, mm=float)`."
            )
        self.columns = tuple(read_column(name, kind) for name, kind in listed.items())

    def make_row_type(self) -> Any:
        """Return the type of a row as pydantic knows it."""
        fields = {column.name: column.hint for column in self.columns}
        return cast("Any", TypedDict)("Row", fields)

    def __repr__(self) -> str:
        return f"Columns({', '.join(column.name for column in self.columns)})"

    def __get_pydantic_core_schema__(self, source: Any, _handler: Any) -> Any:
        """Return the schema of such a table, wherever pydantic finds it."""
        options = get_args(source) if get_origin(source) in (Union, types.UnionType) else (source,)
        tables = [option for option in options if option is not type(None)]
        schema = make_table_schema(tables[0] if len(tables) == 1 else source, self.columns)
        return schema if len(tables) == len(options) else core_schema.nullable_schema(schema)


def find_columns(annotation: Any) -> Columns | None:
    """Return what an annotation says of a table's columns, if it is one of a table."""
    extras = get_args(annotation)[1:] if get_origin(annotation) is Annotated else ()
    return next((extra for extra in extras if isinstance(extra, Columns)), None)
