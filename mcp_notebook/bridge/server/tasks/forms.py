"""Writes and reads the JSON of tasks, as the extension ``io.modelcontextprotocol/tasks`` has it.

Runs on the bridge's event loop; pure. The extension is that of 2026-07-28;
the tasks of 2025-11-25 are others, which are not served.
"""

from __future__ import annotations

import time
from typing import Any, TypeAlias

from mcp_notebook.protocol.elicitation import ElicitForm, read_elicit_result
from mcp_notebook.protocol.errors import (
    INVALID_PARAMS,
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    ProtocolError,
)
from mcp_notebook.text.wording import format_moment
from mcp_notebook.wire import messages

TaskForm: TypeAlias = dict[str, Any]
"""A task, or the answer to a request about one, as the JSON that clients get."""
MIN_POLL_INTERVAL, MAX_POLL_INTERVAL = 1.0, 10.0
"""Bounds of the seconds after which a client should poll a task again."""
_SHARE = 0.05
"""The share of a task's age that the poll interval is between these bounds."""


def make_created_form(task: messages.TaskInfo) -> TaskForm:
    """Return the answer to a call that has become a task."""
    return {"resultType": "task", **_make_form(task)}


def make_task_form(task: messages.TaskInfo, result: dict[str, Any] | None = None) -> TaskForm:
    """Return a task with its open questions, result or error.

    Args:
        task: The task.
        result: The call's result, if the task is completed.
    """
    form = _make_form(task)
    match task.status:
        case "input_required":
            forms = {
                key: ElicitForm(each.message, each.form) for key, each in task.questions.items()
            }
            form["inputRequests"] = {key: each.request for key, each in forms.items()}
        case "completed":
            form["result"] = result
        case "failed":
            form["error"] = {
                "code": MISSING_REQUIRED_CLIENT_CAPABILITY,
                "message": task.message or "",
                "data": {"requiredCapabilities": {task.lacks: {}}},
            }
    return form


def make_error_form(task: messages.TaskInfo, code: int, text: str) -> TaskForm:
    """Return a task that has failed with a protocol error.

    Args:
        task: The last known state of the task.
        code: The error's code in JSON-RPC.
        text: The reason, for people and models.
    """
    error = {"code": code, "message": text}
    return _make_form(task) | {"status": "failed", "statusMessage": text, "error": error}


def _make_form(task: messages.TaskInfo) -> TaskForm:
    form: TaskForm = {
        "taskId": task.id,
        "status": task.status,
        "createdAt": format_moment(task.created),
        "lastUpdatedAt": format_moment(task.updated),
        "ttlMs": None if task.ends is None else round((task.ends - task.created) * 1000),
        "pollIntervalMs": _find_interval(task),
    }
    if task.message is not None:
        form["statusMessage"] = task.message
    return form


def _find_interval(task: messages.TaskInfo) -> int:
    age = time.time() - task.created
    return round(1000 * min(max(age * _SHARE, MIN_POLL_INTERVAL), MAX_POLL_INTERVAL))


# -- answers to questions --------------------------------------------------------------------------


def read_answer(key: str, response: Any) -> messages.TaskAnswer:
    """Return the answer to a question, which the kernel compares with the question's form.

    Raises:
        ProtocolError: The response is not an answer to an elicitation.
    """
    answer = read_elicit_result(response)
    if answer is None:
        raise ProtocolError(
            INVALID_PARAMS,
            f"The response to {key!r} is not a valid elicitation result: it needs an `action` "
            "(accept, decline or cancel), and `content` if the action is accept.",
        )
    return messages.TaskAnswer(action=answer.action, content=dict(answer.content or {}))
