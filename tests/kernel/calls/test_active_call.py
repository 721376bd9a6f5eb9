"""A call is answered once, and knows why it ends."""

import asyncio
import threading

import pytest

from mcp_notebook.content import Result, Text
from mcp_notebook.errors import Cancelled
from mcp_notebook.kernel.calls.active_call import INTERRUPTED, ActiveCall, StopRequest
from mcp_notebook.kernel.calls.call import CallState

RESULT = Result([Text("a result")])
UNWANTED = StopRequest(CallState.CANCELLED, Cancelled("No longer wanted."))


@pytest.fixture
def replies():
    return []


@pytest.fixture
def call(replies):
    return ActiveCall("a", reply=replies.append)


def test_a_call_is_answered_once(call, replies):
    call.begin(lambda: None)
    call.answer(CallState.DONE, RESULT)
    call.answer(CallState.FAILED, Result([Text("too late")], is_error=True))
    assert replies == [RESULT]
    assert call.state is CallState.DONE


def test_a_call_that_was_answered_does_not_begin(call):
    call.answer(CallState.FAILED, RESULT)
    assert call.begin(lambda: None) is False
    assert call.state is CallState.FAILED


def test_the_answer_of_a_call_that_the_user_interrupted_is_held_back():
    replied = threading.Event()
    call = ActiveCall("a", reply=lambda _: replied.set(), restart_delay=0.05)
    call.begin(lambda: None)
    call.is_interrupted = True
    call.answer(CallState.CANCELLED, RESULT)
    assert not replied.is_set()
    assert replied.wait(30)


def test_an_answer_after_the_loop_has_closed_is_not_an_error():
    def reply(_result):
        raise RuntimeError("the loop is closed")

    call = ActiveCall("a", reply=reply)
    call.answer(CallState.FAILED, RESULT)
    assert call.has_ended


def test_the_first_request_to_stop_gets_what_interrupts_the_code(call):
    interrupts = []
    call.begin(lambda: interrupts.append("gate"))
    call.set_interrupt(lambda: interrupts.append("task"))
    interrupt = call.request_stop(UNWANTED)
    interrupt()
    assert interrupts == ["task"]
    assert call.request_stop(UNWANTED) is None
    assert call.get_stop_reason() == "No longer wanted."


def test_a_call_that_has_ended_is_not_stopped(call):
    call.begin(lambda: None)
    call.answer(CallState.DONE, RESULT)
    assert call.request_stop(UNWANTED) is None
    assert call.get_stop_reason() is None


@pytest.mark.parametrize("error", [KeyboardInterrupt(), asyncio.CancelledError(), Cancelled("x")])
def test_an_interrupt_stands_for_who_asked_for_it(call, error):
    assert call.find_cause(error, by_user=False) is error
    call.begin(lambda: None)
    call.request_stop(UNWANTED)
    assert call.find_cause(error, by_user=True) is UNWANTED.error
    assert not call.is_interrupted


def test_an_interrupt_that_nobody_else_asked_for_is_the_users(call):
    call.begin(lambda: None)
    assert str(call.find_cause(KeyboardInterrupt(), by_user=True)) == INTERRUPTED
    assert call.is_interrupted
    assert call.stop_request.state is CallState.CANCELLED


def test_a_call_waits_and_resumes_only_while_it_runs(call):
    call.wait_for("the user's answer")
    assert call.state is CallState.QUEUED
    call.begin(lambda: None)
    call.wait_for("the user's answer")
    assert (call.state, call.waits_for) == (CallState.WAITING, "the user's answer")
    call.resume()
    call.resume()
    assert call.state is CallState.RUNNING


def test_the_context_of_a_call_knows_when_it_has_to_stop(call):
    context = call.make_context()
    assert context.tool == "a"
    assert not context.cancelled
    call.begin(lambda: None)
    call.request_stop(UNWANTED)
    with pytest.raises(Cancelled, match="No longer wanted"):
        context.raise_if_cancelled()
