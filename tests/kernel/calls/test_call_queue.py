"""Which call may begin, and which is withdrawn."""

import pytest

from mcp_notebook.errors import Cancelled
from mcp_notebook.kernel.calls.active_call import ActiveCall, StopRequest
from mcp_notebook.kernel.calls.call import CallState
from mcp_notebook.kernel.calls.call_queue import CallQueue
from mcp_notebook.kernel.tools.declared_tool import make_tool
from mcp_notebook.kernel.tools.options import ToolOptions

WITHDRAWN = StopRequest(CallState.CANCELLED, Cancelled("No longer wanted."))


def work() -> None:
    """Work."""


@pytest.fixture
def queue():
    return CallQueue(3)


def add(queue, tool="a", **options):
    declared = make_tool(work, ToolOptions(**options)) if options else None
    call = ActiveCall(tool, reply=lambda _: None, lock=queue.lock, declared=declared)
    assert queue.add(call)
    return call


def test_calls_of_a_tool_begin_in_the_order_in_which_they_came(queue):
    first, other, second = add(queue), add(queue, "b"), add(queue)
    assert queue.calls == (first, other, second)
    assert [queue.start_next("a") for _ in range(3)] == [first, second, None]
    assert queue.start_next("b") is other


def test_no_more_calls_of_a_tool_begin_than_it_allows(queue):
    first, second = add(queue, max_concurrency=1), add(queue, max_concurrency=1)
    assert queue.start_next("a") is first
    assert queue.start_next("a") is None
    queue.finish(first)
    assert queue.start_next("a") is second


def test_a_full_queue_takes_no_call_but_one_that_runs_at_once(queue):
    for _ in range(3):
        add(queue)
    call = ActiveCall("a", reply=lambda _: None, lock=queue.lock)
    assert queue.add(call) is False
    queue.add_started(call)
    assert call in queue.calls
    assert call.is_started


def test_a_call_that_waits_is_withdrawn_and_does_not_begin(queue):
    call = add(queue)
    assert queue.withdraw(call, WITHDRAWN)
    assert call.state is CallState.CANCELLED
    assert queue.calls == ()
    assert queue.start_next("a") is None
    assert call.begin(lambda: None) is False


def test_a_call_that_has_begun_is_not_withdrawn(queue):
    call = add(queue)
    assert call.begin(lambda: None)
    assert queue.withdraw(call, WITHDRAWN) is False
    assert call.state is CallState.RUNNING
    assert queue.calls == (call,)


def test_a_call_that_has_ended_is_forgotten_with_what_stops_it(queue):
    call = add(queue)
    call.begin(lambda: None)
    queue.finish(call)
    queue.finish(call)
    assert queue.calls == ()
    assert call.interrupt is None
