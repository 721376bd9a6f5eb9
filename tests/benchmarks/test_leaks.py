"""Calls leave nothing behind, neither in the kernel nor in the bridge."""

import sys

import pytest
from comparison.leaks import calling
from comparison.servers import Ours

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform == "win32", reason="a bridge counts at a signal"),
]
WARM_UP, CALLS = 2_500, 2_500
"""The first ones fill what is kept on purpose, such as the log of the last 1,000 calls."""


@pytest.mark.parametrize(
    "way",
    [
        pytest.param(way, marks=pytest.mark.exhaustive if way.era == "legacy" else (), id=str(way))
        for way in Ours.ways()
    ],
)
def test_calls_leave_no_objects_descriptors_or_threads_behind(way):
    with calling(way) as calls:
        calls.call(WARM_UP)
        before = calls.count()
        calls.call(CALLS)
        for name, now in calls.count().items():
            more = now.more_than(before[name])
            # One object a call would be 2,500.
            assert more.objects.total() < CALLS / 5, (name, str(more))
            assert more.descriptors <= 2, (name, str(more))
            assert more.threads <= 2, (name, str(more))
