"""The messages about calls that outlive the conversation in which they began: tasks.

Runs on both sides; pure. What they mean is in `wire`'s docstring.
"""

from typing import Any, Literal, TypeAlias

from pydantic import Field

from mcp_notebook.wire.message_base import Message, PackedResult

TaskSupport: TypeAlias = Literal["optional", "required"]
"""What a tool says of clients that cannot follow a task: they wait for the result, or are
refused."""
TaskStatus: TypeAlias = Literal["working", "input_required", "completed", "failed", "cancelled"]
"""Where a task is, in MCP's words."""
MAX_WAIT = 30.0
"""Seconds that a kernel waits for a change of a task before it answers all the same."""
HOLD_SECONDS = 5.0
"""Seconds after the result of a kept call was sent in which it may come back: its client had given
the call up while the result was on its way."""


class Keep(Message):
    """Let a call outlive its conversation."""

    owner: str
    """Whose it is: only requests with the same owner find it."""
    how: Literal["task", "give_up"] = "task"
    """"task": it becomes a task. "give_up": it becomes one when the bridge cancels it or leaves,
    and the same call (tool, arguments, owner) does not run then, but gets its result."""
    after: float = 0.0
    """Of "give_up": only if it came so many seconds ago."""


class KeepCall(Message):
    """Let a call that runs become a task; ignored if it has ended."""

    type: Literal["keep_call"] = "keep_call"
    id: int
    """Of the call."""
    keep: Keep


class LeaveCall(Message):
    """Tell the kernel that nobody waits for a call.

    It becomes a task if its `keep` says "give_up" and it came long enough ago; else it runs on. If
    its result was sent a moment ago, nobody has read that: the same call gets it.
    """

    type: Literal["leave_call"] = "leave_call"
    id: int
    """Of the call."""


class AskTask(Message):
    """Ask where a task is."""

    type: Literal["ask_task"] = "ask_task"
    id: int
    task: str
    owner: str
    after: int | None = None
    """Answer only when the task has another version than this one, or after `MAX_WAIT`."""


class AnswerTask(Message):
    """Answer open questions of a task; answers to closed ones are ignored."""

    type: Literal["answer_task"] = "answer_task"
    id: int
    task: str
    owner: str
    answers: dict[str, "TaskAnswer"]
    """By the questions' keys."""


class TaskAnswer(Message):
    """What became of one question."""

    action: Literal["accept", "decline", "cancel"] = "cancel"
    content: dict[str, Any] = Field(default_factory=dict)


class CancelTask(Message):
    """Stop a task; nothing happens if it has ended."""

    type: Literal["cancel_task"] = "cancel_task"
    id: int
    task: str
    owner: str


class FollowTask(Message):
    """Wait for a task as for a call of this conversation."""

    type: Literal["follow_task"] = "follow_task"
    id: int
    """As of a call: what the task reports and asks comes with it, and one `Returned` at the end."""
    task: str
    owner: str
    progress: bool = True
    can_elicit: bool = False


class TaskQuestion(Message):
    """An open question of a task."""

    message: str
    form: dict[str, Any]
    """What can be entered: MCP's restricted JSON Schema of an object."""


class TaskInfo(Message):
    """A task as it is now."""

    id: str
    tool: str
    status: TaskStatus
    message: str | None = None
    """What it does, or how it ended, in a few words."""
    created: float
    """In seconds since the epoch, as all times here."""
    updated: float
    ends: float | None = None
    """When it will be forgotten; None: not while it runs."""
    version: int
    """Differs after each change."""
    questions: dict[str, TaskQuestion] = Field(default_factory=dict)
    """The open ones; no key ever stands for two questions of a task."""
    lacks: str | None = None
    """It failed because its client has not declared this capability (MCP's name for it)."""


class TaskState(Message):
    """A call has become a task, or the answer to a request about one."""

    type: Literal["task_state"] = "task_state"
    id: int
    """Of the call, or of the request."""
    task: TaskInfo | None = None
    """None: this owner has no such task in the kernel, or it was forgotten."""
    result: PackedResult | None = None
    """Of a task that has ended."""


TaskRequest: TypeAlias = AskTask | AnswerTask | CancelTask
"""What a bridge asks about a task; the kernel answers each with one `TaskState`."""
FromBridge: TypeAlias = KeepCall | LeaveCall | FollowTask | TaskRequest
"""What bridges send about tasks."""
