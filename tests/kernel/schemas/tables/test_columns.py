"""`Columns`: names, and what it means in an annotation."""

from typing import Annotated

import pandas as pd
import pytest

from mcp_notebook import Columns
from mcp_notebook.errors import DefinitionError
from mcp_notebook.kernel.schemas.tables.columns import find_columns


def test_columns_have_names():
    assert [item.name for item in Columns({"max temp": float}, city=str).columns] == [
        "max temp",
        "city",
    ]
    for wrong in ({}, {5: float}, {"": float}, ["city", "mm"]):
        with pytest.raises(DefinitionError, match="needs the table's columns by name"):
            Columns(wrong)


def test_columns_are_found_in_an_annotation_and_are_a_row():
    columns = Columns(city=str, mm=float | None)
    assert find_columns(Annotated[pd.DataFrame, columns]) is columns
    assert find_columns(pd.DataFrame) is None
    assert columns.make_row_type().__annotations__ == {"city": str, "mm": float | None}
