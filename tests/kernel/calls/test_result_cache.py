"""Which results are given again, and for how long."""

import pytest

from mcp_notebook.content import Image, Result, Text
from mcp_notebook.kernel.calls import result_cache
from mcp_notebook.kernel.calls.result_cache import ResultCache
from mcp_notebook.meta_keys import CACHED

MINUTE = 60.0


class Clock:
    now = 100.0

    def __call__(self):
        return self.now


def stored(cache, tool, text="r", **arguments):
    ticket = cache.make_ticket(tool, arguments, MINUTE)
    cache.store(ticket, Result([Text(text)]))
    return ticket


@pytest.mark.smoke
def test_a_result_is_given_again_with_its_age_until_its_time_is_over():
    clock, tool = Clock(), object()
    cache = ResultCache(clock)
    ticket = stored(cache, tool, a=1)
    clock.now += 59.5
    result = cache.find(ticket)
    assert result.content == [Text("r")]
    assert result.meta == {CACHED: {"age": 59.5, "ttl": 60.0}}
    clock.now += 0.5
    assert cache.find(ticket) is None
    assert len(cache) == 0


def test_a_result_with_an_expired_link_is_not_given_again():
    whole, tool = [True], object()
    cache = ResultCache(is_whole=lambda result: whole[0] and result.content == [Text("r")])
    ticket = stored(cache, tool)
    assert cache.find(ticket) is not None
    whole[0] = False
    assert cache.find(ticket) is None
    assert len(cache) == 0


def test_it_is_of_its_tool_and_of_equal_arguments_in_any_order():
    cache, tool = ResultCache(), object()
    stored(cache, tool, a=1, b={"x": 1, "y": 2})
    assert cache.find(cache.make_ticket(tool, {"b": {"y": 2, "x": 1}, "a": 1}, MINUTE))
    assert not cache.find(cache.make_ticket(tool, {"a": 1}, MINUTE))
    for other in (1.0, True, "1"):
        same = {"a": other, "b": {"x": 1, "y": 2}}
        assert not cache.find(cache.make_ticket(tool, same, MINUTE))
    assert not cache.find(cache.make_ticket(object(), {"a": 1, "b": {"x": 1, "y": 2}}, MINUTE))


def test_clearing_also_forgets_what_runs_now():
    cache, tool = ResultCache(), object()
    ticket = cache.make_ticket(tool, {}, MINUTE)
    assert cache.clear() == 0
    cache.store(ticket, Result([Text("old")]))
    assert cache.find(cache.make_ticket(tool, {}, MINUTE)) is None
    stored(cache, tool)
    assert cache.clear() == 1


def test_the_least_recently_used_go_first(monkeypatch):
    monkeypatch.setattr(result_cache, "MAX_ENTRIES", 2)
    cache, tool = ResultCache(), object()
    first, second = stored(cache, tool, a=1), stored(cache, tool, a=2)
    assert cache.find(first)
    third = stored(cache, tool, a=3)
    assert cache.find(first)
    assert cache.find(third)
    assert cache.find(second) is None


def test_bytes_are_bounded(monkeypatch):
    monkeypatch.setattr(result_cache, "MAX_BYTES", 1000)
    cache, tool = ResultCache(), object()
    huge = cache.make_ticket(tool, {"a": 0}, MINUTE)
    cache.store(huge, Result([Image(b"x" * 300)]))
    assert cache.find(huge) is None
    for number in range(1, 9):
        stored(cache, tool, "x" * 200, a=number)
    assert len(cache) == 4


def test_the_results_of_tools_that_went_are_forgotten():
    cache, stays, goes = ResultCache(), object(), object()
    stored(cache, stays)
    stored(cache, goes)
    cache.keep([stays])
    assert len(cache) == 1


def test_arguments_too_deep_to_be_compared_are_not_kept():
    deep = {}
    for _ in range(100_000):
        deep = {"a": deep}
    assert ResultCache().make_ticket(object(), deep, MINUTE) is None
