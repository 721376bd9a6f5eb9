"""Calls that outlive their conversation: seen by the bridge that started them, and by others."""

import itertools
import threading

import pytest
from live import Link, text_of
from msgspec import structs

from mcp_notebook.content import Result, Text
from mcp_notebook.kernel.tools.context import Update
from mcp_notebook.wire import content_blocks, messages

KEEP = messages.Keep(owner="ann")


@pytest.fixture
def link(listening):
    with Link(listening[1]) as link:
        assert link.welcome.tasks
        yield link


@pytest.fixture
def other(listening):
    with Link(listening[1]) as other:
        yield other


def start(link, *, at_once=True):
    """Start a call that ends when the test says so, and return the task that it becomes."""
    call = messages.Call(id=1, tool="never", arguments={}, progress=at_once)
    link.send(structs.replace(call, keep=KEEP) if at_once else call)
    if not at_once:
        link.send(messages.KeepCall(id=1, keep=KEEP))
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


def test_who_waits_for_a_change_is_told_after_a_while_that_there_was_none(link, other, monkeypatch):
    monkeypatch.setattr(messages, "MAX_TASK_WAIT", 0.01)
    task = start(link)
    ask(other, task, after=task.version)
    assert other.receive().task == task


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


def test_a_call_that_has_ended_becomes_no_task(link):
    assert text_of(link.call("echo")) == "echo {}"
    link.send(messages.KeepCall(id=1, keep=KEEP))
    link.send(messages.KeepCall(id=99, keep=KEEP))
    assert text_of(link.call("echo")) == "echo {}"


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
    link.send(messages.KeepCall(id=101, keep=KEEP))
    state = link.receive()
    assert state.task.status == "input_required"
    assert state.task.questions["sure"].message == "Sure?"
    answers = {"sure": messages.TaskAnswer(action="accept")}
    link.send(messages.AnswerTask(id=7, task=state.task.id, owner="ann", answers=answers))
    assert link.receive().task.status == "working"
    assert reply.result(30).action == "accept"


# -- calls that are given up -----------------------------------------------------------------------


def kept_call(call_id=1, *, owner="ann", **fields):
    keep = messages.Keep(owner=owner, how="give_up")
    fields = {"arguments": {"b": 1, "a": [2]}} | fields
    return messages.Call(id=call_id, tool="never", keep=keep, **fields)


def tool_runs(echo, link):
    """Return whether a call has begun since the last time."""
    link.send(messages.AskTask(id=99, task="none", owner="ann"))
    link.receive_until(lambda message: isinstance(message, messages.TaskState))
    reply, echo.reply = echo.reply, None
    return reply


@pytest.mark.parametrize("way", ["cancel", "leave"])
def test_a_call_that_was_given_up_goes_on_and_the_same_call_gets_its_result(
    listening, other, echo, way
):
    with Link(listening[1]) as link:
        link.send(kept_call())
        reply = tool_runs(echo, link)
        if way == "cancel":
            link.send(messages.Cancel(id=1))
            tool_runs(echo, link)
    other.send(kept_call(2, arguments={"a": [2], "b": 1}))
    assert tool_runs(echo, other) is None
    assert not echo.cancelled.is_set()
    reply(Result([Text("done")], structured={"n": 1}))
    assert other.receive() == Result((Text("done"),), {"n": 1})
    other.send(kept_call(3))  # somebody has the result: this is a new call
    assert tool_runs(echo, other)


def test_a_result_that_came_too_late_waits_for_the_same_call(link, other, echo):
    link.send(kept_call())
    reply = tool_runs(echo, link)
    link.send(messages.Cancel(id=1))
    tool_runs(echo, link)
    reply(Result([Text("done")]))
    assert link.receive() == Result(())  # for the bridge's log
    other.send(kept_call(2))
    assert text_of(other.receive()) == "done"


GIVE_UP = {"cancel": messages.Cancel, "leave": messages.LeaveCall}


@pytest.mark.parametrize("order", sorted(itertools.permutations(["result", "give up", "again"])))
@pytest.mark.parametrize("way", GIVE_UP)
def test_a_call_that_is_given_up_around_its_end_runs_once(link, other, echo, way, order):
    """The same call that comes before the client's word finds the call, or is a new one."""
    link.send(kept_call())
    take_all(link)
    reply = echo.reply
    received = []
    for event in order:
        match event:
            case "result":
                reply(Result([Text("done")]))
            case "give up":
                link.send(GIVE_UP[way](id=1))
            case "again":
                other.send(kept_call(2))
                received += take_all(other)
        take_all(link)
    received += take_all(other)
    if order == ("result", "again", "give up"):  # nobody could know that it was not taken
        assert echo.reply is not reply
    else:
        assert echo.reply is reply
        assert [text_of(message) for message in received] == ["done"]


def take_all(link):
    """Wait until the kernel has taken all messages, and return what it has said before."""
    link.send(messages.AskTask(id=99, task="none", owner="ann"))
    return link.receive_until(
        lambda message: isinstance(message, messages.TaskState) and message.id == 99
    )[:-1]


@pytest.mark.parametrize("way", GIVE_UP)
def test_a_result_and_the_word_that_its_call_is_given_up_cross_on_the_link(link, other, echo, way):
    """Whichever thread is first: the result is there for the same call."""
    for number in range(60):
        call = kept_call(2 * number + 1, arguments={"n": number})
        link.send(call)
        reply = tool_runs(echo, link)
        start = threading.Barrier(2)

        def answer(reply=reply, start=start):
            start.wait()
            reply(Result([Text("done")]))

        thread = threading.Thread(target=answer)
        thread.start()
        start.wait()
        link.send(GIVE_UP[way](id=call.id))
        thread.join()
        tool_runs(echo, link)
        other.send(structs.replace(call, id=call.id + 1))
        assert tool_runs(echo, other) is None
    assert not echo.cancelled.is_set()


def test_who_has_joined_a_call_and_gives_it_up_around_its_end_finds_the_result(link, other, echo):
    link.send(kept_call())
    reply = tool_runs(echo, link)
    other.send(kept_call(2))
    tool_runs(echo, other)
    reply(Result([Text("done")]))
    assert text_of(other.receive()) == "done"
    other.send(messages.Cancel(id=2))
    other.send(kept_call(3))
    (result,) = take_all(other)
    assert text_of(result) == "done"


def test_a_result_that_was_sent_a_while_ago_was_taken(link, other, echo, monkeypatch):
    monkeypatch.setattr(messages, "HOLD_SECONDS", 0.0)
    link.send(kept_call())
    tool_runs(echo, link)(Result([Text("done")]))
    assert text_of(link.receive()) == "done"
    tool_runs(echo, link)
    link.send(messages.Cancel(id=1))
    tool_runs(echo, link)
    other.send(kept_call(2))
    assert tool_runs(echo, other)
    assert len(echo.tasks.list_tasks()) == 0


def test_what_may_be_given_back_counts_with_the_results_of_tasks(link, other, echo):
    link.send(kept_call())
    large = Result([Text("x" * 2_000_000)])
    tool_runs(echo, link)(large)
    assert text_of(link.receive()) == text_of(large)
    link.send(messages.Cancel(id=1))
    tool_runs(echo, link)
    other.send(kept_call(2))
    assert tool_runs(echo, other)  # there was no room for it


def test_two_clients_that_make_the_same_call_wait_for_one(link, other, echo):
    link.send(kept_call(progress=True))
    reply = tool_runs(echo, link)
    other.send(kept_call(2, progress=True))
    assert tool_runs(echo, other) is None
    echo.report(Update(None, None, "half"))
    assert link.receive().message == other.receive().message == "half"
    other.send(messages.Cancel(id=2))
    left = other.receive()
    assert left.is_error
    assert "repeat the call to get its result" in text_of(left)
    reply(Result([Text("done")]))
    assert text_of(link.receive()) == "done"
    assert not echo.cancelled.is_set()


def test_who_has_joined_a_call_and_can_follow_a_task_is_told_which_one_it_is(link, other, echo):
    link.send(kept_call())
    assert tool_runs(echo, link)
    for bridge, call_id in ((other, 2), (link, 3)):
        bridge.send(kept_call(call_id))
        bridge.send(messages.KeepCall(id=call_id, keep=KEEP))
    state = other.receive()
    assert state.task.status == "working"
    assert other.receive().is_error  # nobody waits for this call any more
    assert link.receive().task == state.task


def test_a_client_with_a_tasks_id_waits_for_it_as_for_its_own_call(link, other, echo):
    task = start(link)
    follow = messages.FollowTask(id=5, task=task.id, owner="ann")
    other.send(follow)
    echo.report(Update(1, 4, "step"))
    assert (message := other.receive()).message == "step (1 of 4)"
    assert message.id == 5
    other.send(messages.KeepCall(id=5, keep=KEEP))  # that takes too long
    assert other.receive().task.message == "step (1 of 4)"
    assert other.receive().is_error
    other.send(structs.replace(follow, id=6))
    assert other.receive().id == 6
    echo.reply(Result([Text("done")]))
    assert text_of(other.receive()) == "done"
    other.send(structs.replace(follow, id=7))
    assert text_of(other.receive()) == "done"
    for stranger in ({"task": "never-1-2"}, {"owner": "bob"}):
        other.send(structs.replace(follow, **stranger))
        assert text_of(other.receive()).startswith("The call has ended, and its result was forg")


@pytest.mark.parametrize(
    "fields", [{"owner": "bob"}, {"arguments": {}}, {"arguments": {"a": [2], "b": 1.5}}]
)
def test_other_calls_and_those_of_others_run(link, other, echo, fields):
    link.send(kept_call())
    assert tool_runs(echo, link)
    other.send(kept_call(2, **fields))
    assert tool_runs(echo, other)


def test_a_call_of_a_tool_that_was_changed_since_runs(link, other, echo):
    link.send(kept_call())
    assert tool_runs(echo, link)
    echo.tasks.kept_calls.find_declaration = lambda _tool: object()
    other.send(kept_call(2))
    assert tool_runs(echo, other)


def test_a_kept_call_that_is_given_up_as_it_becomes_a_task_goes_on(link, other, echo):
    link.send(kept_call())
    reply = tool_runs(echo, link)
    link.send(messages.KeepCall(id=1, keep=KEEP))
    link.send(messages.Cancel(id=1))
    assert link.receive().task.status == "working"
    other.send(kept_call(2))
    assert tool_runs(echo, other) is None
    assert not echo.cancelled.is_set()
    reply(Result([Text("done")]))
    assert text_of(other.receive()) == "done"


def test_who_has_the_result_by_the_news_of_a_task_and_calls_again_wants_a_new_one(
    link, other, echo
):
    link.send(kept_call())
    reply = tool_runs(echo, link)
    link.send(messages.KeepCall(id=1, keep=KEEP))
    task = link.receive().task
    ask(other, task, after=task.version)
    tool_runs(echo, other)  # the request has come
    reply(Result([Text("done")]))
    assert other.receive().result is not None
    other.send(kept_call(2))
    assert tool_runs(echo, other)


@pytest.mark.parametrize("way", ["cancel", "leave"])
def test_a_call_that_is_to_go_on_only_after_a_while_does_not_before(listening, other, echo, way):
    keep = messages.Keep(owner="ann", how="give_up", after=3600)
    with Link(listening[1]) as link:
        link.send(structs.replace(kept_call(), keep=keep))
        assert tool_runs(echo, link)
        if way == "cancel":
            link.send(messages.Cancel(id=1))
            assert echo.cancelled.wait(30)
    other.send(kept_call(2))
    assert tool_runs(echo, other)


def test_who_joins_a_call_is_asked_what_it_asks(listening, other, echo):
    with Link(listening[1]) as link:
        link.send(kept_call(can_elicit=True))
        tool_runs(echo, link)
        _, reply = echo.elicitations.ask("Sure?", {"type": "object"}, "sure")
        assert link.receive().message == "Sure?"
    other.send(kept_call(2, can_elicit=True))
    question = other.receive()
    assert (question.id, question.message) == (2, "Sure?")
    other.send(messages.Answer(id=2, question=question.question, action="accept"))
    assert reply.result(30).action == "accept"


@pytest.mark.parametrize("after", [0, 3600])
def test_a_call_whose_client_has_hung_up_goes_on_as_a_task_or_as_before(link, other, echo, after):
    keep = messages.Keep(owner="ann", how="give_up", after=after)
    link.send(structs.replace(kept_call(), keep=keep))
    reply = tool_runs(echo, link)
    link.send(messages.LeaveCall(id=1))
    tool_runs(echo, link)
    reply(Result([Text("done")]))
    goes_to_bridge = link.receive()
    assert not echo.cancelled.is_set()
    other.send(kept_call(2))
    if after:
        assert text_of(goes_to_bridge) == "done"
        assert tool_runs(echo, other)
    else:
        assert goes_to_bridge == Result(())  # for its log
        assert text_of(other.receive()) == "done"


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
        link.send(messages.KeepCall(id=call_id, keep=KEEP))
        answer = link.receive()
        if isinstance(answer, messages.TaskState):
            answer = link.receive()
        assert isinstance(answer, Result)
    assert threading.active_count() < 50
