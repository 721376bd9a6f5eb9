"""Token buckets, against a clock that a test turns."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_notebook.bridge.access.caller import Caller
from mcp_notebook.bridge.access.caller_limits import RateLimits

PAUSES = st.lists(
    st.sampled_from([0.0, 0.001, 1.0, 30.0]) | st.floats(0, 90), min_size=1, max_size=80
)
RATES = st.sampled_from([1, 2, 7, 60]) | st.integers(1, 100_000)


def user(name):
    return Caller(name=name, is_user=True)


class Clock:
    """Says what a test says that the time is."""

    def __init__(self, now=1_000_000.0):
        self.now = now

    def __call__(self):
        return self.now


def limit(clock, *, per_caller=10**9, in_all=10**9, **options):
    return RateLimits("calls", per_caller=per_caller, in_all=in_all, clock=clock, **options)


@given(RATES, PAUSES, st.booleans())
def test_no_span_of_time_has_more_than_its_share_and_a_full_bucket(rate, pauses, each):
    clock = Clock()
    limits = limit(clock, **{"per_caller" if each else "in_all": rate})
    times = []
    for pause in pauses:
        clock.now += pause
        times += [clock.now for _ in range(3) if limits.take(user("a")) is None]
    for first, begin in enumerate(times):
        for last in range(first, len(times)):
            share = rate * (times[last] - begin) / 60
            assert last - first + 1 <= rate + share + 1e-3


@given(RATES, PAUSES, st.booleans())
def test_who_waits_as_told_is_let_through(rate, pauses, each):
    clock = Clock()
    limits = limit(clock, **{"per_caller" if each else "in_all": rate})
    for pause in pauses:
        clock.now += pause
        excess = limits.take(user("a"))
        if excess is not None:
            assert 1 <= excess.seconds <= 60
            clock.now += excess.seconds
            assert limits.take(user("a")) is None


@given(st.integers(1, 2_000), st.floats(0, 1e9))
def test_who_keeps_to_the_rate_is_never_refused(rate, start):
    clock = Clock(start)
    limits = limit(clock, per_caller=rate, in_all=rate)
    for _ in range(3 * min(rate, 50)):
        assert limits.take(user("a")) is None
        clock.now += 60 / rate


@pytest.mark.parametrize("rate", [1, 3, 1_000])
def test_what_was_not_used_for_a_minute_can_be_used_at_once_and_no_more(rate):
    clock = Clock()
    limits = limit(clock, per_caller=rate)
    for minutes in (0, 1, 100):
        clock.now += 60 * minutes
        assert all(limits.take(user("a")) is None for _ in range(rate))
        assert limits.take(user("a")) is not None


def test_callers_do_not_use_up_each_others_share_but_that_of_all():
    clock = Clock()
    limits = limit(clock, per_caller=2, in_all=3)
    assert [limits.take(user(caller)) is None for caller in "aaabb"] == [
        True,
        True,
        False,
        True,
        False,
    ]
    assert limits.take(user("a")).reason == (
        "Too many calls: one caller may make 2 per minute. Try again in 30 seconds."
    )
    assert limits.take(user("b")).reason == (
        "Too many calls: all callers together may make 3 per minute. Try again in 20 seconds."
    )
    clock.now += 19.5
    assert limits.take(user("c")).reason.endswith("Try again in 1 second.")


def test_guests_leave_a_quarter_to_the_user():
    clock = Clock()
    limits = limit(clock, per_caller=60, in_all=80)
    guests = [Caller(name=f"guest {number}") for number in range(80)]
    assert [limits.take(guest) is None for guest in guests] == [True] * 60 + [False] * 20
    assert limits.take(guests[0]).reason == (
        "Too many calls: all who have tokens of their own together may make 60 per minute. "
        "Try again in 1 second."
    )
    assert [limits.take(user("a")) is None for _ in range(21)] == [True] * 20 + [False]


def test_what_is_refused_does_not_count():
    clock = Clock()
    limits = limit(clock, per_caller=60)
    for _ in range(60):
        limits.take(user("a"))
    assert {limits.take(user("a")).seconds for _ in range(1_000)} == {1}


def test_remembered_callers_are_limited_and_those_with_an_empty_bucket_go_last():
    clock = Clock()
    limits = limit(clock, per_caller=2, max_callers=3)
    for caller in "aab":
        limits.take(user(caller))
    for number in range(100):
        clock.now += 0.1
        assert limits.take(user(f"new {number}")) is None
        assert len(limits._full_at) <= 3
        assert limits.take(user("a")) is not None
    clock.now += 60
    limits.take(user("last"))
    assert limits._full_at.keys() <= {"last", "new 99", "new 98", "a"}
