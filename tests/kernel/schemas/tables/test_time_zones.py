"""All moments of a column have a time zone, or none has."""

import datetime as dt

import pytest
from pydantic import ValidationError

from mcp_notebook.kernel.schemas.tables.time_zones import align_zones

NAIVE = dt.datetime(2024, 1, 1, 12)  # noqa: DTZ001
UTC = NAIVE.replace(tzinfo=dt.UTC)
ROME = NAIVE.replace(tzinfo=dt.timezone(dt.timedelta(hours=1)))


def test_moments_with_zones_are_moved_to_utc():
    aligned = align_zones([ROME, None, UTC], "abc", needs_zone=None)
    assert aligned == [ROME, None, UTC]
    assert [item.tzinfo for item in aligned if item] == [dt.UTC] * 2


def test_moments_without_zones_stay():
    assert align_zones([NAIVE, None], "ab", needs_zone=None) == [NAIVE, None]
    assert align_zones([None], "a", needs_zone=True) == [None]
    assert align_zones([], "", needs_zone=None) == []


@pytest.mark.parametrize(
    ("moments", "needs_zone", "rows"),
    [
        ([None, NAIVE, UTC, ROME], None, [2, 3]),
        ([UTC, NAIVE], None, [1]),
        ([UTC, NAIVE], False, [0]),
        ([NAIVE, UTC], True, [0]),
        ([dt.datetime.max.replace(tzinfo=dt.timezone(dt.timedelta(hours=-5)))], None, [0]),
    ],
)
def test_those_that_differ_are_named_by_their_rows(moments, needs_zone, rows):
    with pytest.raises(ValidationError) as refused:
        align_zones(moments, "abcd", needs_zone=needs_zone)
    errors = refused.value.errors()
    assert [error["loc"] for error in errors] == [(row,) for row in rows]
    assert [error["input"] for error in errors] == ["abcd"[row] for row in rows]
