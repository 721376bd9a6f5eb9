"""Moments, durations and times of day keep their nanoseconds."""

import datetime as dt
from zoneinfo import ZoneInfo

import pandas as pd
import pytest

from mcp_notebook.kernel.safe.moments import (
    add_nanosecond,
    count_nanoseconds,
    format_nanoseconds,
    restore_nanoseconds,
    write_nanoseconds,
)

NOON = dt.datetime(2024, 1, 1, 12)  # noqa: DTZ001
OSLO = ZoneInfo("Europe/Oslo")


@pytest.mark.parametrize(
    ("value", "iso", "text"),
    [
        (NOON, "2024-01-01T12:00:00.000000007", "2024-01-01 12:00:00.000000007"),
        (
            NOON.replace(tzinfo=dt.UTC),
            "2024-01-01T12:00:00.000000007Z",
            "2024-01-01 12:00:00.000000007+00:00",
        ),
        (
            NOON.replace(tzinfo=OSLO),
            "2024-01-01T12:00:00.000000007+01:00",
            "2024-01-01 12:00:00.000000007+01:00",
        ),
        (dt.time(1, 2), "01:02:00.000000007", "01:02:00.000000007"),
        (dt.timedelta(1, 2), "P1DT2.000000007S", "1 day, 0:00:02.000000007"),
        (dt.timedelta(hours=1), "PT1H0.000000007S", "1:00:00.000000007"),
    ],
)
def test_nanoseconds_are_written_with_nine_digits(value, iso, text):
    precise = add_nanosecond(value, 7)
    assert (format_nanoseconds(precise), str(precise)) == (iso, text)
    assert repr([precise]).endswith(f"('{text}')]")
    assert isinstance(precise, type(value))
    assert format_nanoseconds(value) is None


def test_pandas_moments_are_written_with_their_nanoseconds():
    assert format_nanoseconds(pd.Timestamp(1)) == "1970-01-01T00:00:00.000000001"
    assert format_nanoseconds(pd.Timedelta(1)) == "PT0.000000001S"
    assert format_nanoseconds(pd.Timedelta(-1)) == "-PT0.000000001S"
    assert format_nanoseconds(pd.Timedelta(1_000)) is None
    assert write_nanoseconds([{"a": (pd.Timedelta(1), 5)}]) == [{"a": ("PT0.000000001S", 5)}]


@pytest.mark.parametrize("count", [1, -1, 10**18 + 1, -(10**18) - 1])
@pytest.mark.parametrize("value", [NOON, NOON.replace(tzinfo=OSLO), dt.timedelta()])
def test_a_value_is_restored_from_the_count_of_its_nanoseconds(count, value):
    precise = restore_nanoseconds(count, value)
    assert count_nanoseconds(precise) == count
    assert getattr(precise, "tzinfo", None) == getattr(value, "tzinfo", None)
    if isinstance(precise, dt.datetime) and precise.tzinfo:
        assert count_nanoseconds(precise.astimezone(dt.UTC)) == count


def test_what_has_no_nanoseconds_stays_as_it_is():
    assert restore_nanoseconds(None, None) is None
    assert restore_nanoseconds(1_000, NOON) is NOON
    assert str(restore_nanoseconds(1, dt.time())) == "00:00:00.000000001"
