"""Moments and durations arrive with all of their digits, or are refused."""

import datetime as dt
import re
import warnings
from typing import Annotated

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
from hints import accept, error_for
from optional_libraries import import_optional

from mcp_notebook import Columns

pl = import_optional("polars")
pa = import_optional("pyarrow")

SENT = "2024-01-01T00:00:00.123456789"
COUNT = pd.Timestamp(SENT).value


@pytest.mark.parametrize(
    ("hint", "sent", "value"),
    [
        (pd.Timestamp, SENT, pd.Timestamp(SENT)),
        (pd.Timestamp, f"{SENT}+02:00", pd.Timestamp(f"{SENT}+02:00")),
        (pd.Timestamp, f"{SENT}000", pd.Timestamp(SENT)),
        (np.datetime64, SENT, np.datetime64(SENT)),
        (pd.Timedelta, "PT0.000000001S", pd.Timedelta(1)),
        (pd.Timedelta, "-PT0.000000001S", pd.Timedelta(-1)),
        (pd.Timedelta, "1 day, 00:00:00.000000001", pd.Timedelta(86400 * 10**9 + 1)),
        (pd.Timedelta, 1e-9, pd.Timedelta(1)),
        (np.timedelta64, "PT0.000000001S", np.timedelta64(1, "ns")),
    ],
)
def test_a_scalar_keeps_its_nanoseconds(hint, sent, value):
    assert accept(hint, sent) == value
    assert type(accept(hint, sent)) is type(value)


def test_an_array_keeps_its_nanoseconds():
    array = accept(npt.NDArray[np.datetime64], [[SENT], ["2024-01-01"]])
    assert array.dtype == "datetime64[ns]"
    assert array.tolist() == [[COUNT], [pd.Timestamp("2024-01-01").value]]
    assert accept(npt.NDArray[np.timedelta64], ["PT0.000000001S"]).tolist() == [1]
    assert "with nanoseconds, years go from 1678 to 2261." in error_for(
        npt.NDArray[np.datetime64], [SENT, "1500-01-01T00:00:00"]
    )


@pytest.mark.parametrize("zone", ["Z", "+02:00"])
def test_numpys_moments_have_no_zone(zone):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for hint, sent in (
            (np.datetime64, f"2024-01-01T00:00:00{zone}"),
            (npt.NDArray[np.datetime64], [f"2024-01-01T00:00:00{zone}"]),
        ):
            assert "no time zone is allowed, '2024-12-31T23:59:00'." in error_for(hint, sent)


@pytest.mark.parametrize(
    ("kind", "dtype", "type_name"),
    [
        (pd.DataFrame, "datetime64[ns]", "datetime64[ns]"),
        (pd.DataFrame, "datetime64[ns, UTC]", "datetime64[ns, UTC]"),
        (pd.DataFrame, pd.Timestamp, "datetime64[ns]"),
        (pl.DataFrame, pl.Datetime("ns"), "Datetime(time_unit='ns', time_zone=None)"),
        (
            pl.DataFrame,
            pl.Datetime("ns", "Europe/Oslo"),
            "Datetime(time_unit='ns', time_zone='Europe/Oslo')",
        ),
        (pl.DataFrame, pd.Timestamp, "Datetime(time_unit='ns', time_zone=None)"),
        (pa.Table, pa.timestamp("ns"), "timestamp[ns]"),
        (pa.Table, pa.timestamp("ns", "UTC"), "timestamp[ns, tz=UTC]"),
        (pa.Table, pd.Timestamp, "timestamp[ns]"),
    ],
)
def test_a_column_of_nanoseconds_keeps_them(kind, dtype, type_name):
    is_aware = any(zone in type_name for zone in ("UTC", "Oslo"))
    sent = f"{SENT}Z" if is_aware else SENT
    table = accept(Annotated[kind, Columns(t=dtype)], [{"t": sent}, {"t": sent.replace("T", " ")}])
    column = table["t"]
    assert str(column.type if kind is pa.Table else column.dtype) == type_name
    if kind is pd.DataFrame:
        assert column[0].value == column[1].value == COUNT
    else:
        counts = column.to_physical() if kind is pl.DataFrame else column.cast("int64").to_pylist()
        assert list(counts) == [COUNT, COUNT]


@pytest.mark.needs("pyarrow")
def test_a_column_of_arrows_nanoseconds_in_pandas_keeps_them():
    dtype = pd.ArrowDtype(pa.timestamp("ns"))
    test_a_column_of_nanoseconds_keeps_them(pd.DataFrame, dtype, "timestamp[ns][pyarrow]")


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame, pa.Table])
def test_a_column_of_durations_keeps_nanoseconds(kind):
    for hint in ("timedelta64[ns]", pd.Timedelta):
        table = accept(Annotated[kind, Columns(t=hint)], {"t": ["PT0.000000001S", "P1D"]})
        first = table["t"][0]
        assert (table["t"].to_physical()[0] if kind is pl.DataFrame else first.value) == 1


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame, pa.Table])
@pytest.mark.parametrize(
    ("dtype", "sent", "words"),
    [
        ("datetime64[s]", "2024-01-01T00:00:00.5", "seconds"),
        ("datetime64[ms]", "2024-01-01T00:00:00.0005", "milliseconds"),
        ("datetime64[us]", SENT, "microseconds"),
        (dt.datetime, SENT, "microseconds"),
        ("datetime64[ns]", f"{SENT}1", "nanoseconds"),
        ("timedelta64[s]", "PT0.5S", "seconds"),
        ("timedelta64[s]", 0.5, "seconds"),
        (dt.timedelta, "PT0.000000001S", "microseconds"),
        (dt.time, "00:00:00.000000001", "microseconds"),
        (list[dt.datetime], [SENT], "microseconds"),
    ],
)
def test_a_column_refuses_the_fractions_that_it_cannot_hold(kind, dtype, sent, words):
    if kind is pl.DataFrame and words == "seconds":  # which polars does not count
        dtype = pl.Datetime("ms") if "datetime" in dtype else pl.Duration("ms")
        sent, words = 0.0005 if sent == 0.5 else sent.replace(".5", ".0005"), "milliseconds"
    hint = Annotated[kind, Columns(t=dtype)]
    message = error_for(hint, [{"t": sent}])
    assert message.startswith("value[0].t")
    assert message.endswith(f"it is kept in whole {words}, without fractions.")
    if isinstance(sent, str):
        assert len(accept(hint, [{"t": re.sub(r"[.]\d+", ".000000000", sent)}])) == 1
