"""Names of dtypes, whichever library writes them."""

import numpy as np
import pandas as pd
import pytest
from optional_libraries import import_optional

from mcp_notebook.kernel.schemas.tables.dtypes import find_common_name, find_dtype_name

pl = import_optional("polars")
pa = import_optional("pyarrow")


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("f8", "float64"),
        ("<i4", "int32"),
        ("M8[ns]", "datetime[ns]"),
        ("float", "float64"),
        (np.int8, "int8"),
        (np.dtype("float32"), "float32"),
        (pd.BooleanDtype(), "bool"),
        ("Int64", "int64"),
        ("category", "category"),
        (pl.UInt16, "uint16"),
        (pl.Datetime("ms"), "datetime[ms]"),
        (pl.Duration, "duration[us]"),
        (pl.Date, "date"),
        (pa.float32(), "float32"),
        (pa.float64(), "float64"),
        (pa.timestamp("ns"), "datetime[ns]"),
        (pa.date32(), "date"),
        (pa.dictionary(pa.int8(), pa.int16()), "int16"),
        (pl.Datetime("us", "UTC"), None),
        (pl.Enum(["x"]), None),
    ],
)
def test_a_dtype_that_several_libraries_have_has_one_name(kind, name):
    assert find_common_name(find_dtype_name(kind)) == name


@pytest.mark.parametrize("kind", [int, None, object(), dict[str, int]])
def test_what_is_no_dtype_has_no_name(kind):
    assert find_dtype_name(kind) is None
