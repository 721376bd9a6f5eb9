"""The messages of the link between a bridge and a kernel, with those about tasks at the end.

Runs on both sides; pure. The package's docstring is their specification.
"""

import math
from typing import Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, field_validator

from mcp_notebook.text.missing_tools import DroppedTool

PROTOCOL_VERSION = 1
"""Raised when a message changes its meaning; both ends must have the same."""
MAX_TASK_WAIT = 30.0
"""Seconds that a kernel waits for a change of a task before it answers all the same."""
HOLD_SECONDS = 5.0
"""Seconds after the result of a kept call was sent in which it may come back: its client had given
the call up while the result was on its way."""

ConsentDecision: TypeAlias = Literal["once", "session", "deny"]
"""What a person can answer: this call, calls of the tool for a while, or no."""
TaskSupport: TypeAlias = Literal["optional", "required"]
"""What a tool says of clients that cannot follow a task: they wait for the result, or are
refused."""
TaskStatus: TypeAlias = Literal["working", "input_required", "completed", "failed", "cancelled"]
"""Where a task is, in MCP's words."""


class Message(BaseModel):
    """Base of all messages."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class ClientInfo(Message):
    """The program that calls a tool, as it says itself."""

    name: str = ""
    version: str = ""


class PackedResult(Message):
    """A `content.Result`; `content_blocks` packs and unpacks it."""

    content: list[dict[str, Any]]
    structured: Any = None
    is_error: bool = False
    meta: dict[str, Any] = Field(default_factory=dict)


class ToolInfo(Message):
    """What a kernel says about one tool: all that a client may be told."""

    name: str
    title: str | None = None
    description: str = ""
    input_schema: dict[str, Any]
    output_schema: dict[str, Any] | None = None
    annotations: dict[str, Any] | None = None
    """MCP tool annotations, under MCP's own names (``readOnlyHint``...)."""
    icons: list[dict[str, Any]] | None = None
    meta: dict[str, Any] | None = None
    revision: str | None = None
    """Of a tool that a person has to confirm: differs each time that the tool is declared."""
    task: TaskSupport | None = None
    """Its calls become tasks at once, for clients that can follow one."""
    keep: bool = False
    """Its calls go on when clients give them up."""
    stateful: bool = False
    """All calls of a client go to the same one of the notebook's kernels."""
    place: Literal["main", "loop", "apart"] = "apart"
    """Where calls run: on the main thread, one at a time; on its event loop; apart from both."""


class Keep(Message):
    """Let a call outlive its conversation."""

    owner: str
    """Whose it is: only requests with the same owner find it."""
    how: Literal["task", "give_up"] = "task"
    """"task": it becomes a task. "give_up": it becomes one when the bridge cancels it or leaves,
    and the same call (tool, arguments, owner) does not run then, but gets its result."""
    after: float = 0.0
    """Of "give_up": only if it came so many seconds ago."""


class Hello(Message):
    """First message of a bridge."""

    type: Literal["hello"] = "hello"
    protocol: int = PROTOCOL_VERSION
    version: str
    """Version of the bridge's mcp-notebook, for messages to people."""
    token: str | None = None
    """The record's token; needed on TCP only."""


class ClientCount(ClientInfo):
    """The number of clients of one program."""

    number: int = 1


class Call(Message):
    """Run a tool."""

    type: Literal["call"] = "call"
    id: int
    tool: str
    arguments: dict[str, Any]
    """Empty if they are attached, as JSON."""
    arguments_at: list[str] = Field(default_factory=list)
    """Names of the members of the attached JSON that lead to the arguments; none: it is these."""
    progress: bool = False
    """The client asked for progress."""
    log_level: str | None = None
    """The client asked for log messages of this level (one of MCP's) and above."""
    can_elicit: bool = False
    """The client's user can be asked."""
    client: ClientInfo = ClientInfo()
    """The program that calls; empty if the bridge does not say, or cannot."""
    trace: dict[str, str] = Field(default_factory=dict)
    """The trace that the call belongs to, as W3C's headers: those that are known."""
    confirmed: str | None = None
    """The revision of the tool that a person has agreed to; None: nobody was asked."""
    keep: Keep | None = None
    """Let the call outlive its conversation."""
    guest: str = ""
    """Who makes it, if not the user: as much as one caller, and all guests, may have of the kernel
    is less than all of it."""


class Cancel(Message):
    """Stop a call; unknown and ended ids are ignored."""

    type: Literal["cancel"] = "cancel"
    id: int
    reason: str = ""


class Answer(Message):
    """The answer to a question; ignored if the question is no longer open."""

    type: Literal["answer"] = "answer"
    id: int
    """Of the call."""
    question: int
    action: Literal["accept", "decline", "cancel"] = "cancel"
    content: dict[str, Any] = Field(default_factory=dict)
    """What the user entered, as the client says it."""
    error: str | None = None
    """Why the question could not be asked: a sentence for the model; the rest is nothing then."""


class AskConsent(Message):
    """Ask whoever sees the notebook whether a call may run that has not been sent."""

    type: Literal["ask_consent"] = "ask_consent"
    id: int
    tool: str
    """Its name, as the client sees it."""
    text: str
    """The question: the tool, the arguments and who asks, safe to show as lines of text."""
    seconds: float
    """How long the bridge waits."""
    scope: str
    """What "for this session" allows besides the call, in words."""


class WithdrawConsent(Message):
    """Withdraw a question; unknown ids are ignored."""

    type: Literal["withdraw_consent"] = "withdraw_consent"
    id: int


class ListedName(Message):
    """A tool that clients see under another name than its own."""

    tool: str
    name: str
    reason: str
    next_step: str
    """What its author can do about it, as a sentence; like the reason."""


class Clients(Message):
    """The clients that are connected to the bridge now, and what they see otherwise."""

    type: Literal["clients"] = "clients"
    clients: list[ClientCount]
    """Each program once, the most frequent first."""
    names: list[ListedName] = Field(default_factory=list)
    """The kernel's tools that they see under other names."""


class StopCall(Message):
    """Stop a call of any bridge, or of the notebook itself, for the user."""

    type: Literal["stop_call"] = "stop_call"
    id: int
    number: int
    """Of the call, in the kernel's log."""
    reason: str
    """A sentence for the client that made the call."""


class ListResources(Message):
    """Ask which resources can be read; what is gone or new meanwhile moves no other."""

    type: Literal["list_resources"] = "list_resources"
    id: int
    after: int = 0
    """Only those with a higher number."""
    limit: int
    """At most so many."""


class ReadResource(Message):
    """Ask for a resource's content."""

    type: Literal["read_resource"] = "read_resource"
    id: int
    uri: str
    most: int | None = None
    """Bytes that a client takes; None: as many as the kernel sends."""


class CallInfo(Message):
    """A call that a kernel has, of any bridge."""

    number: int = 0
    """Its number in the kernel's log, from 1; 0: an older kernel does not say."""
    tool: str
    client: str = ""
    """The program that made it, on one line."""
    doing: str
    """What it does or waits for, in a few words."""


class Welcome(Message):
    """The kernel takes the conversation up."""

    type: Literal["welcome"] = "welcome"
    protocol: int = PROTOCOL_VERSION
    version: str
    tools: list[ToolInfo]
    """In the order of their definition."""
    calls: list[CallInfo] = Field(default_factory=list)
    """Those that run or wait, oldest first."""
    resources: bool = False
    """The kernel answers `ListResources` and `ReadResource`."""
    attached_arguments: bool = False
    """The kernel takes a `Call` with its arguments as an attachment."""
    finds_arguments: bool = False
    """The kernel takes a `Call` with ``arguments_at``."""
    consent: bool = False
    """The kernel takes an `AskConsent`, and its notebook may be seen by somebody."""
    clients: bool = False
    """The kernel takes `Clients`."""
    stops_calls: bool = False
    """The kernel takes a `StopCall`."""
    tasks: bool = False
    """The kernel has tasks."""
    panel: bool = False
    """The kernel takes `WatchNotebook` and the other messages of side panels."""
    missing: dict[str, DroppedTool] = Field(default_factory=dict)
    """Tools that were there some minutes ago, by name."""


class Refused(Message):
    """The kernel does not talk to this bridge."""

    type: Literal["refused"] = "refused"
    protocol: int = PROTOCOL_VERSION
    message: str


class Tools(Message):
    """The tools as they are now, in the order of their definition."""

    type: Literal["tools"] = "tools"
    tools: list[ToolInfo]
    missing: dict[str, DroppedTool] = Field(default_factory=dict)
    """As in `Welcome`."""


class Consent(Message):
    """The answer to an `AskConsent`."""

    type: Literal["consent"] = "consent"
    id: int
    decision: ConsentDecision


class Progress(Message):
    """How far a call is."""

    type: Literal["progress"] = "progress"
    id: int
    progress: float | None = None
    """How much is done; None: nobody can tell, but there is something to say."""
    total: float | None = None
    message: str | None = None

    @field_validator("progress", "total")
    @classmethod
    def _is_a_number(cls, value: float | None) -> float | None:
        # JSON has no NaN.
        return value if value is not None and math.isfinite(value) else None


class Log(Message):
    """A log message of a call."""

    type: Literal["log"] = "log"
    id: int
    level: str
    """One of MCP's."""
    logger: str | None = None
    text: str


class Ask(Message):
    """A question of a call to its client's user."""

    type: Literal["ask"] = "ask"
    id: int
    """Of the call."""
    question: int
    """Its number among the call's questions."""
    key: str
    """A name for it, unique among the call's open questions."""
    message: str
    form: dict[str, Any]
    """What can be entered: MCP's restricted JSON Schema of an object."""


class Withdraw(Message):
    """The call no longer waits for the answer to a question."""

    type: Literal["withdraw"] = "withdraw"
    id: int
    question: int


class Returned(PackedResult):
    """The answer to a call."""

    type: Literal["returned"] = "returned"
    id: int
    lacks: str | None = None
    """The call failed because its client has not declared this capability (MCP's name for it)."""
    queue_seconds: float | None = None
    """How long the call waited for its turn in the kernel; None: an older kernel does not say."""
    run_seconds: float | None = None
    """How long it ran then; waiting for an executor's worker or for an answer is part of it."""
    stopped: str | None = None
    """"cancelled" or "timed out" if the call was stopped; None if not, or if nobody says."""


class ResourceInfo(Message):
    """What a kernel says about one resource."""

    number: int
    """Its place in the list: from 1, those made later have higher ones."""
    uri: str
    name: str
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None
    size: int | None = None
    """Bytes, where known."""


class Resources(Message):
    """The resources that were asked for, in the order of their numbers."""

    type: Literal["resources"] = "resources"
    id: int
    resources: list[ResourceInfo]


class Contents(Message):
    """A resource's content, or why there is none; `pack_contents` and `unpack_contents`."""

    type: Literal["contents"] = "contents"
    id: int
    uri: str = ""
    mime_type: str = ""
    is_text: bool = False
    """The attachment is UTF-8."""
    error: str | None = None
    """A sentence for the client; there is no content then."""
    unknown: bool = False
    """The error is that the resource does not exist, or has expired."""


class CallStopped(Message):
    """What became of a call that was to be stopped, once it has ended for its client."""

    type: Literal["call_stopped"] = "call_stopped"
    id: int
    tool: str | None = None
    """The call's tool; None: no call of this number waits or runs."""
    state: str = ""
    """How the call ended: "cancelled" if by this."""
    is_stopping: bool = False
    """Its code has not ended yet."""


class Goodbye(Message):
    """The kernel ends the conversation on purpose."""

    type: Literal["goodbye"] = "goodbye"
    reason: str
    """A sentence for the user: "The kernel was restarted."."""


# -- tasks -----------------------------------------------------------------------------------------


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
    """Answer only when the task has another version than this one, or after `MAX_TASK_WAIT`."""


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
AboutTasks: TypeAlias = KeepCall | LeaveCall | FollowTask | TaskRequest
"""What bridges send about tasks."""
# -- side panels ---------------------------------------------------------------------------------
# Texts of clients and tools are in these messages as they came; who shows them shows them as text.
# Times are seconds since the epoch.


class WatchNotebook(Message):
    """Tell the sender what there is to see, now and after each change."""

    type: Literal["watch_notebook"] = "watch_notebook"


class SwitchTool(Message):
    """Take a tool away from clients, or give it back; its declaration stays as it is."""

    type: Literal["switch_tool"] = "switch_tool"
    id: int
    tool: str
    on: bool


class AnswerConsent(Message):
    """Answer an open question whether a call may run."""

    type: Literal["answer_consent"] = "answer_consent"
    id: int
    number: int
    """Of the question."""
    decision: ConsentDecision


class AskCall(Message):
    """Ask for all that is known of a call."""

    type: Literal["ask_call"] = "ask_call"
    id: int
    number: int
    """Of the call, in the kernel's log."""


class SeenClient(Message):
    """The connected clients of one program."""

    name: str
    """Name and version, as the program says."""
    number: int = 1
    since: float
    """When the first of them was seen."""


class SeenTool(Message):
    """A tool, and what became of its calls."""

    name: str
    description: str = ""
    """Its first line."""
    listed_as: str | None = None
    """The name that clients see, if it is another one."""
    on: bool = True
    """Clients have it."""
    effect: Literal["read-only", "destructive", ""] = ""
    """What its author says of its effect."""
    calls: int = 0
    """Those that have ended since the extension was loaded."""
    errors: int = 0
    """Those of them that were answered with an error."""
    cell: str | None = None
    """The id of the cell that declares it, if the frontend gave one."""


class OpenCall(Message):
    """A call that waits or runs."""

    number: int
    tool: str
    client: str
    call: str
    """As one would write it in Python, short and without secrets."""
    came: float
    began: float | None = None
    """When its function began to run; None: it waits for its turn."""
    waits_for: str = ""
    """Whom it waits for; empty: it runs."""
    is_stopping: bool = False
    """It was asked to stop."""
    progress: float | None = None
    total: float | None = None
    message: str = ""
    """What it says of its progress."""


class OpenQuestion(Message):
    """A question whether a call may run."""

    number: int
    """By which it is answered."""
    tool: str
    """Its name, as the client sees it."""
    text: str
    """The call as it will run and who asks, safe to show as lines of text."""
    asked: float
    ends: float
    """When the bridge stops waiting, and the answer is no."""
    scope: str
    """What "session" allows besides the call, in words."""


class EndedCall(Message):
    """A call that was answered."""

    number: int
    tool: str
    client: str
    call: str
    """As in `OpenCall`."""
    at: float
    """When it was answered."""
    state: str
    """How it ended: "done", "failed", "cancelled", "timed out" or "lost"."""
    seconds: float
    """How long it ran."""
    is_error: bool = False
    result: str = ""
    """What its client got, on one line and short."""
    has_picture: bool = False


class NotebookState(Message):
    """What there is to see of a notebook; None: this part is as it was told before."""

    type: Literal["notebook_state"] = "notebook_state"
    name: str | None = None
    """Of the notebook."""
    kernel: str | None = None
    """The id of the kernel's record."""
    addresses: list[str] | None = None
    """Where clients reach the notebook over HTTP, in words."""
    problems: list[str] | None = None
    """Why clients miss tools, a sentence or two each."""
    clients: list[SeenClient] | None = None
    tools: list[SeenTool] | None = None
    open_calls: list[OpenCall] | None = None
    """Oldest first."""
    questions: list[OpenQuestion] | None = None
    """Oldest first."""
    ended_calls: list[EndedCall] | None = None
    """The last ones, latest first."""
    number_of_calls: int | None = None
    """Calls that have ended since the extension was loaded."""


class CallDetails(Message):
    """All that is known of a call; its pictures are attached."""

    type: Literal["call_details"] = "call_details"
    id: int
    is_known: bool = True
    """False: the kernel never had the call, or has dropped it."""
    source: str = ""
    """A cell that makes the call again."""
    arguments: str = ""
    """As JSON, without secrets."""
    result: str = ""
    """The texts of its result, or its error."""
    is_kept: bool = True
    """False: the result was too large or too old to be kept."""
    pictures: list[str] = Field(default_factory=list)
    """The MIME types of the attached pictures."""


class PanelAnswer(Message):
    """What became of a `SwitchTool` or an `AnswerConsent`."""

    type: Literal["panel_answer"] = "panel_answer"
    id: int
    message: str
    """A sentence for the person."""
    is_error: bool = False
    """Nothing was done."""


AboutPanel: TypeAlias = WatchNotebook | SwitchTool | AnswerConsent | AskCall
"""What those who show a notebook send."""


AnyMessage: TypeAlias = (
    Hello
    | Call
    | Cancel
    | Answer
    | AskConsent
    | WithdrawConsent
    | Clients
    | StopCall
    | ListResources
    | ReadResource
    | Welcome
    | Refused
    | Tools
    | Consent
    | Progress
    | Log
    | Ask
    | Withdraw
    | Returned
    | Resources
    | Contents
    | CallStopped
    | Goodbye
    | AboutTasks
    | TaskState
    | AboutPanel
    | NotebookState
    | CallDetails
    | PanelAnswer
)
