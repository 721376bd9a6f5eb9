"""A task says where its call is, in MCP's words."""

import pytest

from mcp_notebook.content import Result, Text
from mcp_notebook.kernel.calls.call import Call, CallState
from mcp_notebook.kernel.tasks.task import Task
from mcp_notebook.kernel.tools.open_questions import Elicitations, Reply
from mcp_notebook.wire import messages


@pytest.fixture
def task():
    call = Call("train")
    call.move(CallState.RUNNING)
    return Task("train-1-2", "owner", call, Elicitations(lambda _: None))


def ask(task, number, key):
    task.take_question(messages.Ask(id=1, question=number, key=key, message="?", form={}))


def test_a_task_works_until_its_call_has_a_result(task):
    assert task.describe().status == "working"
    task.call.move(CallState.DONE)
    task.end(Result([Text("done")]))
    info = task.describe()
    assert (info.status, info.message) == ("completed", None)
    assert info.updated >= info.created


@pytest.mark.parametrize(
    ("state", "status"),
    [
        (CallState.FAILED, "completed"),
        (CallState.TIMED_OUT, "completed"),
        (CallState.CANCELLED, "cancelled"),
    ],
)
def test_a_failure_of_the_tool_is_a_result(task, state, status):
    task.call.move(state)
    task.end(Result([Text("went wrong")], is_error=True))
    assert (task.status, task.describe().message) == (status, "went wrong")


def test_a_call_that_needs_what_its_client_cannot_has_failed(task):
    task.call.missing_capability = "elicitation"
    task.call.move(CallState.FAILED)
    task.end(Result([Text("cannot ask")], is_error=True))
    assert (task.describe().status, task.describe().lacks) == ("failed", "elicitation")


@pytest.mark.parametrize(
    ("progress", "text"),
    [
        ({"message": "epoch 3"}, "epoch 3"),
        ({"progress": 3, "total": 10}, "3 of 10"),
        ({"progress": 0.5, "total": 1, "message": "half"}, "half (0.5 of 1)"),
        ({"progress": 3}, None),
        ({"message": "x" * 1_000}, "x" * 499 + "…"),
    ],
)
def test_progress_is_what_a_task_says_of_itself(task, progress, text):
    task.take_progress(messages.Progress(id=1, **progress))
    assert task.describe().message == text


def test_a_task_with_open_questions_needs_input_and_a_key_stands_for_one_of_them(task):
    for number, key in enumerate(["a", "b", "a", "a"], 1):
        ask(task, number, key)
    assert list(task.describe().questions) == ["a", "b", "a-3", "a-4"]
    assert task.status == "input_required"
    task.answer("a", Reply("accept"))
    task.answer("a", Reply("accept"))
    task.answer("never", Reply("accept"))
    task.withdraw_question(2)
    assert list(task.describe().questions) == ["a-3", "a-4"]
    task.withdraw_question(3)
    task.withdraw_question(4)
    assert task.status == "working"


def test_no_key_ever_stands_for_two_questions_whatever_the_tool_calls_them(task):
    for number, key in enumerate(["a-3", "a", "a"], 1):
        ask(task, number, key)
    assert {key: question.question for key, question in task.questions.items()} == {
        "a-3": 1,
        "a": 2,
        "a-3-3": 3,
    }


def test_a_watcher_is_notified_of_each_change_until_it_stops(task):
    versions = []

    def note():
        versions.append(task.version)

    task.watch(note)
    task.take_progress(messages.Progress(id=1, message="a"))
    task.take_progress(messages.Progress(id=1, message="a"))  # no change
    ask(task, 1, "q")
    task.unwatch(note)
    task.unwatch(note)
    ask(task, 2, "r")
    assert versions == [1, 2]
