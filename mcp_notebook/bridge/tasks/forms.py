"""The JSON of tasks, as the extension ``io.modelcontextprotocol/tasks`` has it for 2026-07-28.

Runs on the bridge's event loop; pure. The SDK's own types of tasks are of an older protocol.
"""

import time
from datetime import UTC, datetime
from typing import Any, TypeAlias

import mcp_types as types

from mcp_notebook.wire import task_messages

EXTENSION = "io.modelcontextprotocol/tasks"
"""The extension's name."""
TaskForm: TypeAlias = dict[str, Any]
"""A task, or the answer to a request about one, as the JSON that clients get."""
MIN_POLL_INTERVAL, MAX_POLL_INTERVAL = 1.0, 10.0
"""Seconds between two looks of a client: of a short task, and of a long one."""
_SHARE = 0.05
"""Of the time that a task has run, in between."""


def make_created_form(task: task_messages.TaskInfo) -> TaskForm:
    """Return the answer to a call that has become a task."""
    return {"resultType": "task", **_make_form(task)}


def make_task_form(task: task_messages.TaskInfo, result: dict[str, Any] | None = None) -> TaskForm:
    """Return a task as it is now, with all that there is of it.

    Args:
        task: The task.
        result: The call's result, if the task has ended.
    """
    form = _make_form(task)
    match task.status:
        case "input_required":
            form["inputRequests"] = {
                key: _make_request(question) for key, question in task.questions.items()
            }
        case "completed":
            form["result"] = result
        case "failed":
            form["error"] = {
                "code": types.MISSING_REQUIRED_CLIENT_CAPABILITY,
                "message": task.message or "",
                "data": {"requiredCapabilities": {task.lacks: {}}},
            }
    return form


def make_error_form(task: task_messages.TaskInfo, code: int, text: str) -> TaskForm:
    """Return a task that has failed in the protocol's sense.

    Args:
        task: The task as it was.
        code: Of JSON-RPC.
        text: Why, for people and models.
    """
    error = {"code": code, "message": text}
    return _make_form(task) | {"status": "failed", "statusMessage": text, "error": error}


def _make_form(task: task_messages.TaskInfo) -> TaskForm:
    form: TaskForm = {
        "taskId": task.id,
        "status": task.status,
        "createdAt": _format_time(task.created),
        "lastUpdatedAt": _format_time(task.updated),
        "ttlMs": None if task.ends is None else round((task.ends - task.created) * 1000),
        "pollIntervalMs": _find_interval(task),
    }
    if task.message is not None:
        form["statusMessage"] = task.message
    return form


def _find_interval(task: task_messages.TaskInfo) -> int:
    age = time.time() - task.created
    return round(1000 * min(max(age * _SHARE, MIN_POLL_INTERVAL), MAX_POLL_INTERVAL))


def _format_time(seconds: float) -> str:
    # "Z" as in all of the extension's examples: some validators of dates take no "+00:00".
    text = datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
    return text.removesuffix("+00:00") + "Z"


def _make_request(question: task_messages.TaskQuestion) -> TaskForm:
    params = {"mode": "form", "message": question.message, "requestedSchema": question.form}
    return {"method": "elicitation/create", "params": params}
