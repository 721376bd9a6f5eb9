"""A repeated call finds the one that still runs, or the result that no client has received."""

import time

import pytest

from mcp_notebook.content import Result
from mcp_notebook.kernel.calls.call import Call, CallState
from mcp_notebook.kernel.tasks.task import Task
from mcp_notebook.kernel.tasks.task_store import KeptCalls
from mcp_notebook.kernel.tools.open_questions import Elicitations
from mcp_notebook.wire import messages


@pytest.fixture
def calls():
    return KeptCalls()


@pytest.fixture
def task():
    call = Call("train")
    call.move(CallState.RUNNING)
    return Task("train-1-2", "ann", call, Elicitations())


def add(calls, task, **arguments):
    calls.add("ann", arguments, task.call, lambda: task)


def test_the_same_call_finds_a_task_as_long_as_it_runs_and_its_result_once(calls, task):
    add(calls, task, a=1, b="x")
    for _ in range(2):
        assert calls.find("ann", "train", {"b": "x", "a": 1}) is task
    task.end(Result())
    assert calls.find("ann", "train", {"b": "x", "a": 1}) is task
    calls.note_taken(task)
    assert calls.find("ann", "train", {"b": "x", "a": 1}) is None


def test_a_result_that_is_given_back_is_found_unless_the_same_call_has_run_since(calls, task):
    add(calls, task)
    assert calls.find("ann", "train", {}) is task
    task.end(Result())
    calls.note_taken(task)
    calls.give_back(task)
    assert calls.find("ann", "train", {}) is task
    calls.note_taken(task)
    newer = Call("train")
    calls.add("ann", {}, newer, lambda: None)
    calls.give_back(task)
    assert calls.find("ann", "train", {}) is None


@pytest.mark.parametrize(
    ("owner", "tool", "arguments"),
    [("bob", "train", {"a": 1}), ("ann", "other", {"a": 1}), ("ann", "train", {"a": 2})],
)
def test_another_call_does_not(calls, task, owner, tool, arguments):
    add(calls, task, a=1)
    assert calls.find(owner, tool, arguments) is None


def test_a_call_of_a_tool_that_was_declared_anew_is_not_found(calls, task):
    declarations = {"train": object()}
    calls.find_declaration = declarations.get
    for _ in range(2):
        add(calls, task)
        assert calls.find("ann", "train", {}) is task
        declarations["train"] = object()
        assert calls.find("ann", "train", {}) is None
    del declarations["train"]
    assert calls.find("ann", "train", {}) is None


def test_a_call_whose_client_has_the_result_is_not_found(calls, task):
    for _ in range(2):
        calls.add("ann", {}, task.call, lambda: None)
        assert calls.find("ann", "train", {}) is None


def test_calls_that_ended_without_a_client_who_may_give_them_up_are_not_kept(calls, monkeypatch):
    monkeypatch.setattr(messages, "HOLD_SECONDS", 0.0)
    for number in range(100):
        call = Call("train")
        call.move(CallState.RUNNING)
        calls.add("ann", {"n": number}, call, lambda: None)
        call.move(CallState.DONE)
    assert len(calls._calls) == 1


def test_a_result_that_a_client_has_got_by_the_task_s_id_is_not_found(calls, task):
    add(calls, task)
    calls.note_task(task)
    calls.note_taken(task)
    assert calls.find("ann", "train", {}) is None


def test_a_task_is_found_no_longer_than_it_is_there(calls, task):
    add(calls, task)
    calls.note_task(task)
    task.end(Result())
    task.ends = time.time() - 1
    assert calls.find("ann", "train", {}) is None


def test_arguments_may_be_any_json(calls, task):
    arguments = {"\ud800": [float("nan"), None, {"é": 10**400}]}
    add(calls, task, **arguments)
    assert calls.find("ann", "train", arguments) is task
