"""The JSON of tasks is that of the extension; who has them is tested in tests/e2e/test_tasks.py."""

import time

import pytest

from mcp_notebook.bridge.server.tasks.forms import (
    make_created_form,
    make_error_form,
    make_task_form,
)
from mcp_notebook.wire import messages

REQUIRED = {"taskId", "status", "createdAt", "lastUpdatedAt", "ttlMs", "pollIntervalMs"}


def make_info(status="working", **fields):
    about = {"id": "train-1-2", "tool": "train", "created": 0.0, "updated": 1.5, "version": 1}
    return messages.TaskInfo(status=status, **about | fields)


def test_a_created_task_has_its_state_and_nothing_of_what_comes_later():
    form = make_created_form(make_info(message="epoch 1"))
    assert form.keys() == REQUIRED | {"resultType", "statusMessage"}
    assert form["resultType"] == "task"
    assert form["createdAt"] == "1970-01-01T00:00:00.000Z"
    assert form["lastUpdatedAt"] == "1970-01-01T00:00:01.500Z"
    assert form["ttlMs"] is None


@pytest.mark.parametrize(
    ("info", "member", "value"),
    [
        (
            make_info(
                "input_required",
                questions={"q": messages.TaskQuestion(message="?", form={"type": "object"})},
            ),
            "inputRequests",
            {
                "q": {
                    "method": "elicitation/create",
                    "params": {
                        "mode": "form",
                        "message": "?",
                        "requestedSchema": {"type": "object"},
                    },
                }
            },
        ),
        (make_info("completed", ends=61.0), "result", {"content": []}),
        (
            make_info("failed", message="cannot ask", lacks="elicitation", ends=61.0),
            "error",
            {
                "code": -32021,
                "message": "cannot ask",
                "data": {"requiredCapabilities": {"elicitation": {}}},
            },
        ),
        (make_info("cancelled", ends=61.0), None, None),
    ],
)
def test_a_task_has_what_belongs_to_its_status_only(info, member, value):
    form = make_task_form(info, {"content": []})
    extra = form.keys() - REQUIRED - {"statusMessage"}
    assert extra == ({member} if member else set())
    assert form.get(member) == value
    assert form["ttlMs"] == (None if info.ends is None else 61_000)


def test_a_task_that_was_lost_has_failed():
    form = make_error_form(make_info("input_required"), -32603, "The kernel died.")
    assert form["status"] == "failed"
    assert form["statusMessage"] == form["error"]["message"] == "The kernel died."
    assert "inputRequests" not in form


@pytest.mark.parametrize(
    ("age", "interval"), [(0, 1_000), (19, 1_000), (100, 5_000), (10_000, 10_000)]
)
def test_clients_look_less_often_at_a_long_task(age, interval):
    form = make_task_form(make_info(created=time.time() - age))
    assert form["pollIntervalMs"] == pytest.approx(interval, rel=0.1)
    assert isinstance(form["pollIntervalMs"], int)
