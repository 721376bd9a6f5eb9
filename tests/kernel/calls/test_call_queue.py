"""Which call may begin, and which is withdrawn."""

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_notebook.content import Result
from mcp_notebook.errors import Cancelled
from mcp_notebook.kernel.calls.active_call import ActiveCall, StopRequest
from mcp_notebook.kernel.calls.call import CallState
from mcp_notebook.kernel.calls.call_queue import CallQueue
from mcp_notebook.kernel.calls.outcome import CallConverter
from mcp_notebook.kernel.calls.stopping import Stopper
from mcp_notebook.kernel.tools.context import Client
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
    assert queue.add(call) is None
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


def call_of(queue, guest=""):
    client = Client(guest=guest)
    return ActiveCall("a", reply=lambda _: None, lock=queue.lock, client=client)


@given(
    st.lists(st.tuples(st.booleans(), st.sampled_from("abc")), max_size=60),
    st.integers(1, 24),
)
def test_guests_leave_places_to_each_other_and_to_the_user_whatever_they_do(moves, places):
    queue = CallQueue(places)
    for is_more, guest in moves:
        calls = [call for call in queue.calls if call.client.guest == guest]
        if is_more:
            has_share = len(calls) >= max(1, places // 2)
            is_added = queue.add(call_of(queue, guest)) is None
            assert not (is_added and has_share)
            assert is_added or has_share or len(queue.calls) >= places * 3 // 4
        elif calls:
            queue.finish(calls[0])
        kept = places - len(queue.calls)
        assert kept >= places // 4
        users = [call_of(queue) for _ in range(kept + 1)]
        assert [queue.add(call) is None for call in users] == [True] * kept + [False]
        for call in users:
            queue.finish(call)


def test_a_full_queue_takes_no_call_but_one_that_runs_at_once(queue):
    for _ in range(3):
        add(queue)
    call = ActiveCall("a", reply=lambda _: None, lock=queue.lock)
    assert queue.add(call) == "3 calls are running or waiting already."
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
    call.is_stopping = True
    call.timers.append(timer := threading.Timer(600, lambda: None))
    timer.daemon = True  # if it is not cancelled, the tests still end
    timer.start()
    queue.finish(call)
    queue.finish(call)
    assert queue.calls == ()
    assert call.interrupt is None
    assert not call.is_stopping
    assert timer.finished.is_set()  # otherwise it would hold the call, and a thread


class GuardedCall(ActiveCall):
    """A call that refuses to be changed without the lock."""

    SHARED = frozenset(
        {"_state", "interrupt", "is_started", "is_stopping", "stop_request", "waits_for"}
    )

    def __setattr__(self, name, value):
        is_made = "timers" in vars(self)
        assert not is_made or name not in self.SHARED or self.lock.locked(), name
        super().__setattr__(name, value)


class GuardedList(list):
    """The calls of a queue, which refuse to be looked at or changed without the lock."""

    def __init__(self, lock):
        super().__init__()
        self.lock = lock

    def __getattribute__(self, name):
        if name in {"append", "remove"}:
            assert self.lock.locked(), name
        return super().__getattribute__(name)

    def __iter__(self):
        assert self.lock.locked()
        return super().__iter__()


def test_what_several_threads_change_is_changed_under_the_lock_only(queue, converter):
    queue._calls = GuardedList(queue.lock)
    stopper = Stopper(queue, CallConverter(converter), None)

    def make_call(run="main"):
        return GuardedCall("a", run=run, reply=lambda _: None, lock=queue.lock)

    waits, runs, stops = make_call(), make_call(), make_call("thread")
    assert queue.add(waits) is None
    assert queue.add(runs) is None
    queue.add_started(stops)
    stopper.stop(waits, WITHDRAWN)
    assert runs.is_started
    for call in (runs, stops):
        assert call.begin(lambda: None)
        call.set_interrupt(lambda: None)
        call.wait_for("a free worker")
        call.resume()
    stopper.stop(stops, WITHDRAWN)
    runs.find_cause(KeyboardInterrupt(), by_user=True)
    runs.answer(CallState.DONE, Result(()))
    assert queue.calls == (runs, stops)
    for call in (runs, stops):
        queue.finish(call)
    assert queue.calls == ()


def test_the_users_next_call_goes_first_and_guests_take_turns():
    queue = CallQueue(20)
    for guest in ("a", "a", "a", "b", "", "b", "c", ""):
        assert queue.add(call_of(queue, guest)) is None
    line = [call.client.guest for call in queue.line]
    assert line == ["", "", "a", "b", "c", "a", "b", "a"]
    waiting = list(queue.calls)
    served = []
    while waiting:
        call = queue.choose(waiting)
        waiting.remove(call)
        served.append(call.client.guest)
    assert served == line


def test_a_guest_who_was_just_served_waits_for_those_who_came_later():
    queue = CallQueue(20)
    first = call_of(queue, "a")
    assert queue.choose([first]) is first
    again, other = call_of(queue, "a"), call_of(queue, "b")
    assert queue.choose([again, other]) is other


def test_the_user_is_the_first_behind_a_tools_limit_too():
    queue = CallQueue(20)
    tool = make_tool(work, ToolOptions(max_concurrency=1))
    calls = [
        ActiveCall(
            "a", reply=lambda _: None, lock=queue.lock, declared=tool, client=Client(guest=guest)
        )
        for guest in ("a", "a", "b", "")
    ]
    for call in calls:
        queue.add(call)
        call.run = "thread"
    begun = []
    for _ in calls:
        begun.append(queue.start_next("a"))
        assert queue.start_next("a") is None
        queue.finish(begun[-1])
    assert [call.client.guest for call in begun] == ["", "a", "b", "a"]
