"""Calls that outlive their conversation: seen by the bridge that started them, and by others."""

import threading

import pytest
from live import Link, text_of
from msgspec import structs

from mcp_notebook.content import Result, Text
from mcp_notebook.kernel.tools.context import Update
from mcp_notebook.wire import content_blocks, messages


@pytest.fixture
def link(listening):
    with Link(listening[1]) as link:
        yield link


@pytest.fixture
def other(listening):
    with Link(listening[1]) as other:
        yield other


def start(link, *, at_once=True):
    """Start a call that ends when the test says so, and return the task that it becomes."""
    call = messages.Call(id=1, tool="never", arguments={}, progress=at_once)
    link.send(structs.replace(call, task_owner="ann") if at_once else call)
    if not at_once:
        link.send(messages.KeepCall(id=1, owner="ann"))
    state = link.receive()
    assert state.id == 1
    assert state.task.status == "working"
    return state.task


def ask(link, task, **request):
    link.send(messages.AskTask(id=7, task=task.id, **{"owner": "ann"} | request))


@pytest.mark.smoke
@pytest.mark.parametrize("at_once", [True, False])
def test_a_task_is_told_to_its_bridge_and_found_by_others_until_and_after_its_end(
    link, other, echo, at_once
):
    task = start(link, at_once=at_once)
    ask(other, task)
    assert other.receive().task == task
    ask(other, task, after=task.version)
    echo.reply(Result([Text("done"), Text("twice")], structured={"n": 1}))
    state = other.receive()
    assert state.task.ends is not None
    result = content_blocks.unpack_result(state.result, [])
    assert (text_of(result), result.structured) == ("done\ntwice", {"n": 1})
    # The bridge that started it hears of the end for its log; the result is the task's.
    assert link.receive() == Result(())


def test_a_task_outlives_the_conversation_that_started_it(listening, other, echo):
    with Link(listening[1]) as link:
        task = start(link)
    echo.reply(Result([Text("boom")], is_error=True))
    ask(other, task, after=task.version)
    assert content_blocks.unpack_result(other.receive().result, []).is_error


def test_only_the_first_text_of_a_failure_goes_to_the_bridge_that_started_it(link, echo):
    start(link)
    echo.reply(Result([Text("boom"), Text("more")], is_error=True))
    assert link.receive() == Result((Text("boom"),), is_error=True)


@pytest.mark.parametrize("owner", ["bob", ""])
@pytest.mark.parametrize("kind", ["ask", "answer", "cancel"])
def test_a_task_of_another_owner_is_not_found(link, other, echo, owner, kind):
    task = start(link)
    about = {"id": 7, "task": task.id, "owner": owner}
    requests = {
        "ask": messages.AskTask(**about),
        "answer": messages.AnswerTask(**about, answers={}),
        "cancel": messages.CancelTask(**about),
    }
    other.send(requests[kind])
    assert other.receive() == messages.TaskState(id=7)
    assert not echo.cancelled.is_set()


def test_a_cancelled_task_is_stopped_and_one_that_has_ended_is_not(link, other, echo):
    task = start(link)
    cancel = messages.CancelTask(id=7, task=task.id, owner="ann")
    other.send(cancel)
    assert other.receive().task.status == "working"  # it ends a moment later
    assert echo.cancelled.wait(30)
    assert echo.cancel_reason == "The client cancelled the task."
    echo.cancelled.clear()
    echo.reply(Result([Text("stopped")], is_error=True))
    ask(other, task, after=task.version)
    other.receive()
    other.send(cancel)
    assert other.receive().result is not None
    assert not echo.cancelled.is_set()


@pytest.mark.parametrize("at_once", [True, False])
def test_a_call_that_is_cancelled_before_its_client_knows_of_the_task_is_stopped(
    link, echo, at_once
):
    """Nobody has the task's id, with which it could be stopped later."""
    start(link, at_once=at_once)  # which the bridge has not read
    link.send(messages.Cancel(id=1))
    assert echo.cancelled.wait(30)
    assert echo.cancel_reason == "The client cancelled the task."


def test_what_a_task_reports_is_its_message_and_goes_to_no_bridge(link, other, echo):
    task = start(link)
    echo.report(Update(1, 2, "half"))
    ask(other, task, after=task.version)
    assert other.receive().task.message == "half (1 of 2)"
    echo.reply(Result())
    assert link.receive() == Result(())


def test_a_question_that_is_open_when_its_call_becomes_a_task_is_asked_through_it(link, echo):
    link.send(messages.Call(id=101, tool="never", arguments={}, can_elicit=True))
    assert text_of(link.call("echo")) == "echo {}"  # so that the other one has begun, too
    _, reply = echo.elicitations.ask("Sure?", {"type": "object"}, "sure")
    assert link.receive().message == "Sure?"
    link.send(messages.KeepCall(id=101, owner="ann"))
    state = link.receive()
    assert state.task.status == "input_required"
    assert state.task.questions["sure"].message == "Sure?"
    answers = {"sure": messages.TaskAnswer(action="accept")}
    link.send(messages.AnswerTask(id=7, task=state.task.id, owner="ann", answers=answers))
    assert link.receive().task.status == "working"
    assert reply.result(30).action == "accept"


def test_a_bridge_that_leaves_while_it_waits_is_not_told(listening, link, echo):
    task = start(link)
    with Link(listening[1]) as leaving:
        ask(leaving, task, after=task.version)
        assert text_of(leaving.call("echo")) == "echo {}"  # the request has come
    echo.reply(Result())
    assert link.receive() == Result(())


def test_a_result_that_cannot_be_sent_says_so(link, other, echo):
    task = start(link)
    echo.reply(Result([Text("x")], structured={"x": {1, 2}, 3: object()}))
    ask(other, task, after=task.version)
    state = other.receive()
    assert state.task.status == "completed"


def test_calls_become_tasks_at_the_moment_of_their_end(listening, link):
    """Whoever wins, there is one result: with the call, or with the task."""
    for call_id in range(100, 200):
        link.send(messages.Call(id=call_id, tool="echo", arguments={}))
        link.send(messages.KeepCall(id=call_id, owner="ann"))
        answer = link.receive()
        if isinstance(answer, messages.TaskState):
            answer = link.receive()
        assert isinstance(answer, Result)
    assert threading.active_count() < 50
