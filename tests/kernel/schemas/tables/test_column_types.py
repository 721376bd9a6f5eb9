"""What `Columns` takes as a column, what is told of it, and how its values are checked."""

import datetime as dt
from typing import Annotated, Any, Literal

import numpy as np
import pandas as pd
import pytest
from hints import Shade
from optional_libraries import import_optional
from pydantic import BaseModel, Field, ValidationError

from mcp_notebook import Columns
from mcp_notebook.errors import DefinitionError
from mcp_notebook.kernel.schemas.tables.column_types import read_column

pl = import_optional("polars")

SHADE = {"type": "string", "enum": ["red", "blue"], "title": "Shade"}


class Node(BaseModel):
    next: "Node | None"


@pytest.mark.parametrize(
    ("kind", "schema", "is_optional"),
    [
        (float, {"type": "number"}, False),
        (str | None, {"anyOf": [{"type": "string"}, {"type": "null"}]}, True),
        (dt.date, {"type": "string", "format": "date"}, False),
        (Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}, False),
        (Annotated[int, Field(ge=0)], {"type": "integer", "minimum": 0}, False),
        ("float32", {"type": "number"}, False),
        (np.int8, {"type": "integer", "minimum": -128, "maximum": 127}, False),
        (np.dtype("datetime64[ns]"), {"type": "string", "format": "date-time"}, False),
        ("Int64", {"anyOf": [{"type": "integer"}, {"type": "null"}]}, True),
        (pl.Date, {"anyOf": [{"type": "string", "format": "date"}, {"type": "null"}]}, True),
        ("uint64", {"type": "integer", "minimum": 0}, False),
        (np.uint64, {"type": "integer", "minimum": 0}, False),
        ("UInt64", {"anyOf": [{"type": "integer", "minimum": 0}, {"type": "null"}]}, True),
        ("boolean", {"anyOf": [{"type": "boolean"}, {"type": "null"}]}, True),
        (pd.BooleanDtype(), {"anyOf": [{"type": "boolean"}, {"type": "null"}]}, True),
        (pl.Boolean, {"anyOf": [{"type": "boolean"}, {"type": "null"}]}, True),
        ("f8", {"type": "number"}, False),
        ("i1", {"type": "integer", "minimum": -128, "maximum": 127}, False),
        ("M8[ns]", {"type": "string", "format": "date-time"}, False),
        (pd.Timestamp, {"type": "string", "format": "date-time"}, False),
        (Any, {}, True),
        (
            Shade | None,
            {"anyOf": [SHADE, {"type": "null"}]},
            True,
        ),
        (
            list[Node],
            {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {"next": {"anyOf": [{}, {"type": "null"}]}},
                    "required": ["next"],
                    "title": "Node",
                },
            },
            False,
        ),
    ],
)
def test_a_column_is_a_type_hint_or_a_dtype(kind, schema, is_optional):
    column = read_column("a", kind)
    assert (column.schema, column.is_optional) == (schema, is_optional)


@pytest.mark.parametrize(
    "kind", ["no dtype", object(), np.complex128, "complex64", type("C", (), {})]
)
def test_what_is_neither_is_refused(kind):
    with pytest.raises(DefinitionError, match=r"the type of `a`, .* is neither a dtype nor"):
        Columns(a=kind)


def test_a_column_is_checked_with_the_row_of_what_is_wrong():
    column = read_column("a", int)
    assert column.check([1, "2"]) == [1, 2]
    with pytest.raises(ValidationError) as refused:
        column.check([1, True, "x"])
    assert [problem["loc"] for problem in refused.value.errors()] == [(1,), (2,)]
