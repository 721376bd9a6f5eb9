"""How a call is stopped, without a kernel: what is asked of its code, and when it is answered."""

import threading

import pytest

from mcp_notebook.errors import Cancelled
from mcp_notebook.kernel.calls.active_call import ActiveCall, StopRequest
from mcp_notebook.kernel.calls.call import CallState
from mcp_notebook.kernel.calls.call_queue import CallQueue
from mcp_notebook.kernel.calls.outcome import CallConverter
from mcp_notebook.kernel.calls.stopping import STOP_LIMIT, Stopper
from mcp_notebook.kernel.tools.declared_tool import make_tool
from mcp_notebook.kernel.tools.options import ToolOptions

LIMIT = 30
UNWANTED = StopRequest(CallState.CANCELLED, Cancelled("No longer wanted."))


class Caller:
    """Takes one result."""

    def __init__(self):
        self.results = []
        self.replied = threading.Event()

    def reply(self, result):
        self.results.append(result)
        self.replied.set()

    @property
    def text(self):
        [result] = self.results
        return "".join(block.text for block in result.content)


@pytest.fixture
def started():
    """Names of the tools whose waiting calls may begin."""
    return []


@pytest.fixture
def queue(started):
    """A queue that only notes whose turn has come."""
    return CallQueue(10, started.append)


@pytest.fixture
def stopper(queue, converter):
    return Stopper(queue, CallConverter(converter), None)


def add(queue, run="main"):
    caller = Caller()
    call = ActiveCall("a", run=run, reply=caller.reply, lock=queue.lock)
    queue.add(call)
    return call, caller


def ring(call):
    """Let the time of a call's last timer be over."""
    timer = call.timers[-1]
    timer.cancel()
    timer.join()
    if timer is call.timers[-1]:  # else it was over already
        timer.function(*timer.args)


def test_a_call_that_waits_is_answered_at_once_and_makes_room(queue, stopper, started):
    call, caller = add(queue)
    behind, _ = add(queue)
    stopper.stop(call, UNWANTED)
    stopper.stop(call, UNWANTED)
    assert "No longer wanted." in caller.text
    assert (call.state, started) == (CallState.CANCELLED, [behind])


def test_the_code_of_a_call_on_the_main_thread_is_asked_once_and_has_time(queue, stopper):
    call, caller = add(queue)
    asked = []
    call.begin(lambda: asked.append(True))
    stopper.stop(call, UNWANTED)
    stopper.stop(call, StopRequest(CallState.TIMED_OUT, Cancelled("Something else.")))
    assert asked == [True]
    assert caller.results == []
    assert call.stop_request is UNWANTED
    queue.finish(call)  # ends the timer


@pytest.mark.parametrize(
    ("general", "own", "limit"),
    [(600, "60s", 60), (60, "600s", 600), (600, None, 600), (None, "60s", 60)],
)
def test_a_tools_own_limit_counts_before_that_of_all_tools(queue, converter, general, own, limit):
    call, _ = add(queue)
    call.declared = make_tool(lambda: None, ToolOptions(name="a", timeout=own))
    Stopper(queue, CallConverter(converter), general).limit_time(call)
    (timer,) = call.timers
    queue.finish(call)
    assert timer.interval == limit
    assert timer.daemon  # it keeps no kernel from ending


def test_a_call_in_a_thread_is_answered_at_once_with_what_it_printed(queue, stopper):
    call, caller = add(queue, run="thread")
    call.begin(lambda: None)
    call.capture.write("as far as this\n")
    stopper.stop(call, UNWANTED)
    assert caller.text.startswith("as far as this")
    assert "No longer wanted." in caller.text
    assert call.is_stopping


def test_code_that_does_not_react_is_answered_and_asked_again(queue, stopper):
    call, caller = add(queue)
    asked = []
    call.begin(lambda: asked.append(True))
    stopper.stop(call, UNWANTED)
    ring(call)
    assert caller.replied.is_set()
    assert call.is_stopping
    assert len(asked) == 2
    ring(call)
    ring(call)
    assert len(asked) == 4
    queue.finish(call)


def test_a_thread_that_does_not_react_is_asked_again_after_longer_and_longer_pauses(queue, stopper):
    """So code that cleans up, and begins anew when it is interrupted, comes to its end."""
    call, caller = add(queue, run="thread")
    asked = []
    call.begin(lambda: asked.append(True))
    stopper.stop(call, UNWANTED)
    assert caller.replied.is_set(), "at once"
    for _ in range(4):
        ring(call)
    queue.finish(call)
    assert len(asked) == 5
    pauses = [timer.interval / STOP_LIMIT for timer in call.timers]
    assert pauses == [2, 1, 2, 4, 8]


def test_a_step_that_does_not_react_is_interrupted_again(queue, stopper):
    interrupted = []

    class Step:
        def interrupt(self):
            interrupted.append(True)
            return True

    call, caller = add(queue)
    call.capture.steps = Step()
    call.begin(lambda: None)
    stopper.stop(call, UNWANTED)
    ring(call)
    assert (len(interrupted), caller.results) == (1, [])
    ring(call)
    assert len(interrupted) == 2
    assert caller.replied.is_set()
    queue.finish(call)


def test_a_call_is_stopped_by_the_limit_of_the_settings(queue, converter):
    stopper = Stopper(queue, CallConverter(converter), 0.01)
    call, caller = add(queue, run="thread")
    call.begin(lambda: None)
    stopper.limit_time(call)
    assert caller.replied.wait(LIMIT)
    assert "longer than 0.01 s" in caller.text
    assert call.state is CallState.TIMED_OUT


def test_a_call_goes_on_without_a_limit_where_there_are_no_more_threads(
    queue, converter, monkeypatch
):
    def refuse(_thread):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    stopper = Stopper(queue, CallConverter(converter), LIMIT)
    call, caller = add(queue)
    asked = []
    call.begin(lambda: asked.append(True))
    stopper.limit_time(call)
    stopper.stop(call, UNWANTED)
    assert asked == [True]
    assert caller.results == []
    queue.finish(call)
