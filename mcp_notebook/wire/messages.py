"""The messages of the link between a bridge and a kernel, with those about tasks at the end.

Runs on both sides; pure. The package's docstring is their specification.
"""

from typing import Any, Literal, TypeAlias, get_args

from msgspec import Struct, field, structs

from mcp_notebook.text.missing_tools import DroppedTool

PROTOCOL_VERSION = 1
"""Increased when a message changes its meaning; both sides must have the same."""
MAX_TASK_WAIT = 30.0
"""Seconds that a kernel waits for a task to change before it answers anyway."""

ConsentDecision: TypeAlias = Literal["once", "session", "deny"]
"""A person's answer: allow this call, allow calls of the tool for a while, or refuse."""
ConsentSession: TypeAlias = Literal["hour", "connection"]
"""How long a person's answer "session" holds: an hour, or until the client disconnects."""
TaskSupport: TypeAlias = Literal["optional", "required"]
"""How a tool treats clients that cannot follow a task: they wait, and get a handle if it takes long
("optional"), or are refused ("required")."""
TaskStatus: TypeAlias = Literal["working", "input_required", "completed", "failed", "cancelled"]
"""The status of a task, in MCP's terms."""


Kind: TypeAlias = Literal["tool", "prompt", "resource", "notebook"]
"""What a declaration is in MCP; "resource" includes templates of resources. A "notebook" is one
that a bridge can run, to learn what it declares; kernels declare none."""
KINDS: tuple[Kind, ...] = get_args(Kind)
CAPABILITIES = ("elicitation", "roots", "sampling")
"""MCP's capabilities of clients, besides extensions."""


class Message(Struct, frozen=True):
    """Base of all messages and of their parts. A message has a tag, and a part has none."""

    @property
    def type(self) -> str:
        """The message's tag, which is its ``type`` in JSON."""
        return str(self.__struct_config__.tag)


class ClientInfo(Message, frozen=True):
    """The program that calls a tool, as it describes itself."""

    name: str = ""
    version: str = ""
    is_view: bool = False
    """A person called, in a live view that the program shows."""


class PackedResult(Message, frozen=True):
    """A `content.Result`; `content_blocks` packs and unpacks it."""

    content: list[dict[str, Any]]
    structured: Any = None
    is_error: bool = False
    meta: dict[str, Any] = field(default_factory=dict)


class ListedItem(Message, frozen=True):
    """A resource that a template is known to have."""

    value: str
    """The value of the template's only variable; the resource's name."""
    description: str = ""
    meta: dict[str, Any] | None = None


class ToolInfo(Message, frozen=True):
    """A kernel's description of a tool, a prompt or a resource: all that clients may learn."""

    name: str
    input_schema: dict[str, Any]
    title: str | None = None
    description: str = ""
    output_schema: dict[str, Any] | None = None
    annotations: dict[str, Any] | None = None
    """MCP tool annotations, under MCP's own names (``readOnlyHint``...)."""
    icons: list[dict[str, Any]] | None = None
    meta: dict[str, Any] | None = None
    revision: str | None = None
    """Set if a person must confirm calls; differs each time the tool is declared."""
    task: TaskSupport | None = None
    """Its calls become tasks at once for clients that can follow tasks."""
    requires: list[str] = field(default_factory=list)
    """What a client must have declared to call it: `CAPABILITIES`, identifiers of extensions."""
    view: str | None = None
    """The page that clients show beside its results: "result", or "own" for a page of its author's.
    Unknown ones are ignored."""
    kind: Kind = "tool"
    uri: str | None = None
    """Of a resource: its URI, or a URI template (RFC 6570)."""
    mime_type: str | None = None
    """Of a resource: its MIME type, if it is always the same."""
    text: str | None = None
    """Of a resource that is a fixed text: the text."""
    front_matter: dict[str, Any] | None = None
    """Of a skill's ``SKILL.md``: the values of its front matter."""
    examples: list[dict[str, Any]] = field(default_factory=list)
    """Arguments of example calls, which the description also has as text."""
    items: list[ListedItem] = field(default_factory=list)
    """The resources of a template that clients list."""
    proposes: bool = False
    """It is of the extension itself, and only for clients that may propose cells."""


class NotebookMoved(Message, frozen=True, tag="notebook_moved"):
    """Reports that the notebook's file was renamed or moved; sent by its Jupyter server."""

    path: str
    """Its new path on the kernel's machine."""


class Hello(Message, frozen=True, tag="hello"):
    """First message of a bridge."""

    version: str
    """Version of the bridge's mcp-notebook, for messages to people."""
    protocol: int = PROTOCOL_VERSION
    token: str | None = None
    """The record's token; needed on TCP only."""
    inspects: bool = False
    """The bridge offers the notebook's variables to its clients."""


class ClientCount(ClientInfo, frozen=True):
    """The number of clients of one program."""

    number: int = 1


class Call(Message, frozen=True, tag="call"):
    """Run a tool, or the function of a prompt or a resource."""

    id: int
    tool: str
    arguments: dict[str, Any]
    progress: bool = False
    """The client asked for progress."""
    log_level: str | None = None
    """The client asked for log messages of this level (one of MCP's) and above."""
    can_elicit: bool = False
    """The client's user can be asked."""
    shows_views: bool = False
    """The client shows live views of results (MCP Apps)."""
    client: ClientInfo = ClientInfo()
    """The calling program; empty if unknown."""
    confirmed: str | None = None
    """The revision of the tool that a person has agreed to; None if nobody was asked."""
    task_owner: str | None = None
    """Make the call a task of this owner at once."""
    guest: str = ""
    """The caller, unless it is the user. The kernel limits the calls of one guest and of all guests
    together."""
    errors: Literal["full", "short", "masked"] = "full"
    """What the caller gets of the error of a failing tool that does not say so itself."""
    is_trial: bool = False
    """Run it in a copy of the kernel, whatever the tool says, without a log entry, and tell in the
    result's ``_meta`` what it changed there."""


class Cancel(Message, frozen=True, tag="cancel"):
    """Stop a call; unknown and ended ids are ignored."""

    id: int
    reason: str = ""


class Answer(Message, frozen=True, tag="answer"):
    """The answer to a question; ignored if the question is no longer open."""

    id: int
    """The call's id."""
    question: int
    action: Literal["accept", "decline", "cancel"] = "cancel"
    content: dict[str, Any] = field(default_factory=dict)
    """The user's input, as the client sent it."""
    error: str | None = None
    """Why the question could not be asked, as a sentence for the model; else None."""


class AskConsent(Message, frozen=True, tag="ask_consent"):
    """Ask the people at the notebook whether a call that has not been sent may run."""

    id: int
    tool: str
    """The tool's name as the client sees it."""
    text: str
    """The question: the tool, the arguments and who asks, safe to show as lines of text."""
    seconds: float
    """How long the bridge waits."""
    session: ConsentSession
    """How long "session" allows further calls of the tool by the same client."""


class WithdrawConsent(Message, frozen=True, tag="withdraw_consent"):
    """Withdraw a question; unknown ids are ignored."""

    id: int


class ListedName(Message, frozen=True):
    """A tool that clients see under another name than its own."""

    tool: str
    name: str
    reason: str
    next_step: str
    """What the author can do about it, as a sentence."""


class Clients(Message, frozen=True, tag="clients"):
    """The clients connected to the bridge, and the tools that they see under other names."""

    clients: list[ClientCount]
    """Each program once, the most frequent first."""
    names: list[ListedName] = field(default_factory=list)
    """The kernel's tools that clients see under other names."""


class UnknownCall(Message, frozen=True, tag="unknown_call"):
    """A client called a tool that no notebook has."""

    client: ClientInfo
    tool: str
    arguments: list[str]
    """Their names: nobody can tell which values are secret."""
    error: str
    """What the client was told."""


class StopCall(Message, frozen=True, tag="stop_call"):
    """Stop a call of any bridge, or of the notebook itself, for the user."""

    id: int
    number: int
    """The call's number in the kernel's log."""
    reason: str
    """A sentence for the client that made the call."""
    by: str = "you"
    """Who stops it, and how, for the notebook's author: "you, in the side panel"."""


class ListResources(Message, frozen=True, tag="list_resources"):
    """Ask for a page of the resources; pages stay stable while resources come and go."""

    id: int
    limit: int
    """The greatest number of resources to return."""
    after: int = 0
    """Return only resources with a higher number."""


class ReadResource(Message, frozen=True, tag="read_resource"):
    """Ask for a resource's content."""

    id: int
    uri: str
    most: int | None = None
    """The most bytes that the client takes; None for no limit."""
    guest: str = ""
    """The caller, unless it is the user: each has readers of his own."""


class Complete(Message, frozen=True, tag="complete"):
    """Ask for the values that an argument of a prompt or a resource may have."""

    id: int
    declaration: str
    """The name of the prompt or resource."""
    argument: str
    value: str
    """What was typed so far."""
    arguments: dict[str, str] = field(default_factory=dict)
    """The other arguments, as far as they are known."""
    guest: str = ""
    """See `ReadResource.guest`."""


class EndRead(Message, frozen=True, tag="end_read"):
    """Stop a `ReadResource` or `Complete`; unknown ids are ignored."""

    id: int


class CallInfo(Message, frozen=True):
    """A call in a kernel, from any bridge."""

    tool: str
    doing: str
    """What the call is doing or waiting for, in a few words."""
    number: int = 0
    """Its number in the kernel's log, from 1."""
    client: str = ""
    """The calling program, on one line."""


class Welcome(Message, frozen=True, tag="welcome"):
    """The kernel accepts the conversation."""

    version: str
    tools: list[ToolInfo]
    """All declarations, in the order of their definition."""
    protocol: int = PROTOCOL_VERSION
    calls: list[CallInfo] = field(default_factory=list)
    """The calls that run or wait, oldest first."""
    consent: bool = False
    """A person may see the notebook, and answer an `AskConsent`."""
    missing: dict[str, DroppedTool] = field(default_factory=dict)
    """Tools that were dropped in the last minutes, by name."""
    modified: dict[str, float] = field(default_factory=dict)
    """See `Tools.modified`."""


class Refused(Message, frozen=True, tag="refused"):
    """The kernel refuses the conversation."""

    message: str
    protocol: int = PROTOCOL_VERSION


class Tools(Message, frozen=True, tag="tools"):
    """The current declarations, in the order of their definition."""

    tools: list[ToolInfo]
    missing: dict[str, DroppedTool] = field(default_factory=dict)
    """See `Welcome.missing`."""
    modified: dict[str, float] = field(default_factory=dict)
    """When declared resources were last modified, by their URIs as the notebook knows them, in
    seconds since the epoch; those of templates are missing."""


class Consent(Message, frozen=True, tag="consent"):
    """The answer to an `AskConsent`."""

    id: int
    decision: ConsentDecision


CallActivity: TypeAlias = Literal["waiting", "running"]
"""What a call does whose tool reports nothing."""


class Progress(Message, frozen=True, tag="progress"):
    """How far a call is."""

    id: int
    progress: float | None = None
    """How much is done; None if unknown, when there is only a message."""
    total: float | None = None
    message: str | None = None
    state: CallActivity | None = None
    """What the message says of a call whose tool reports nothing; None: it is the tool's."""

    def follow(self, last: "Progress | None") -> "Progress":
        """Return what is shown after `last`: while a call runs silently, its tool's last words."""
        if self.state != "running":
            return self
        message = None if last is None or last.state is not None else last.message
        return structs.replace(self, message=message, state=None)


class Log(Message, frozen=True, tag="log"):
    """A log message of a call."""

    id: int
    level: str
    """One of MCP's log levels."""
    text: str
    logger: str | None = None


class Ask(Message, frozen=True, tag="ask"):
    """A call's question to its client's user."""

    id: int
    """The call's id."""
    question: int
    """Its number among the call's questions."""
    key: str
    """A name for it, unique among the call's open questions."""
    message: str
    form: dict[str, Any]
    """The form's schema, in MCP's subset of JSON Schema."""


class Withdraw(Message, frozen=True, tag="withdraw"):
    """The call no longer waits for the answer to a question."""

    id: int
    question: int


class Returned(PackedResult, frozen=True, tag="returned", kw_only=True):
    """The answer to a call."""

    id: int
    lacks: str | None = None
    """The call failed because its client has not declared this capability (MCP's name for it)."""
    queue_seconds: float | None = None
    """How long the call waited for its turn in the kernel; None if it did not."""
    run_seconds: float | None = None
    """How long it then ran, including waits for an executor's worker or for an answer."""
    stopped: str | None = None
    """"cancelled" or "timed out" if the call was stopped; None if not."""
    details: str | None = None
    """The whole error, for the bridge's log, if the result has only a part of it for the client."""
    refuses_arguments: bool = False
    """The call failed because its arguments do not fit."""


class ResourceInfo(Message, frozen=True):
    """A kernel's description of one resource."""

    number: int
    """Its place in the list, from 1; later resources have higher numbers."""
    uri: str
    name: str
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None
    size: int | None = None
    """Bytes, if known."""
    modified: float | None = None
    """When it was made, in seconds since the epoch; None if unknown."""


class Resources(Message, frozen=True, tag="resources"):
    """The requested resources, in the order of their numbers."""

    id: int
    resources: list[ResourceInfo]


class Contents(Message, frozen=True, tag="contents"):
    """A resource's content, or the error; see `content_blocks.pack_resource`."""

    id: int
    uri: str = ""
    mime_type: str = ""
    is_text: bool = False
    """The attachment is UTF-8."""
    error: str | None = None
    """A sentence for the client; there is no content then."""
    unknown: bool = False
    """The error is that the resource does not exist, or has expired."""


class Completed(Message, frozen=True, tag="completed"):
    """The answer to a `Complete`."""

    id: int
    values: list[str] = field(default_factory=list)
    """The best ones, at most 100."""
    total: int = 0
    """How many there are."""


class ResourcesChanged(Message, frozen=True, tag="resources_changed"):
    """Declared resources may have other contents than before."""

    resources: list[str] = field(default_factory=list)
    """Their names."""
    variables: list[str] = field(default_factory=list)
    """Variables that may have other values: those of templates whose arguments name one."""
    uris: list[str] = field(default_factory=list)
    """URIs, as the notebook knows them, of resources that the author has reported."""
    modified: dict[str, float] = field(default_factory=dict)
    """The times of these changes, as in `Tools.modified`."""


class CallStopped(Message, frozen=True, tag="call_stopped"):
    """The result of a `StopCall`, sent when the call has ended for its client."""

    id: int
    tool: str | None = None
    """The call's tool; None if no call of this number waits or runs."""
    state: str = ""
    """How the call ended; "cancelled" if the `StopCall` ended it."""
    is_stopping: bool = False
    """The tool's code is still running."""


class Goodbye(Message, frozen=True, tag="goodbye"):
    """The kernel ends the conversation on purpose."""

    reason: str
    """A sentence for the user: "The kernel was restarted."."""
    is_unload: bool = False
    """Whether the kernel runs on without mcp_notebook."""


# -- tasks -----------------------------------------------------------------------------------------


class KeepCall(Message, frozen=True, tag="keep_call"):
    """Turn a running call into a task; ignored if it has ended."""

    id: int
    """The call's id."""
    owner: str
    """The task's owner; only requests with the same owner find it."""


class AskTask(Message, frozen=True, tag="ask_task"):
    """Ask for the state of a task."""

    id: int
    task: str
    owner: str
    after: int | None = None
    """Wait until the task has another version than this one, for `MAX_TASK_WAIT` at most."""


class TaskAnswer(Message, frozen=True):
    """The answer to one question."""

    action: Literal["accept", "decline", "cancel"] = "cancel"
    content: dict[str, Any] = field(default_factory=dict)
    error: str | None = None
    """Why the user could not be asked."""


class AnswerTask(Message, frozen=True, tag="answer_task"):
    """Answer open questions of a task; answers to closed ones are ignored."""

    id: int
    task: str
    owner: str
    answers: dict[str, TaskAnswer]
    """The answers, by the keys of the questions."""


class CancelTask(Message, frozen=True, tag="cancel_task"):
    """Stop a task; ignored if it has ended."""

    id: int
    task: str
    owner: str


class TaskQuestion(Message, frozen=True):
    """An open question of a task."""

    message: str
    form: dict[str, Any]
    """The form's schema, in MCP's subset of JSON Schema."""


class TaskInfo(Message, frozen=True):
    """The current state of a task."""

    id: str
    tool: str
    status: TaskStatus
    created: float
    """In seconds since the epoch, like all times here."""
    updated: float
    version: int
    """Changes with each change of the task."""
    message: str | None = None
    """A few words on its progress, or on how it ended."""
    latest: Progress | None = None
    """Its newest progress."""
    ends: float | None = None
    """When it will be forgotten; None while it runs."""
    questions: dict[str, TaskQuestion] = field(default_factory=dict)
    """The open questions; no key is used for two questions of a task."""
    lacks: str | None = None
    """It failed because its client has not declared this capability (MCP's name for it)."""


class TaskState(Message, frozen=True, tag="task_state"):
    """Announces that a call has become a task, or answers a request about a task."""

    id: int
    """The id of the call or request."""
    task: TaskInfo | None = None
    """None if this owner has no such task in the kernel, or it was forgotten."""
    result: PackedResult | None = None
    """Set if the task has ended."""


TaskRequest: TypeAlias = AskTask | AnswerTask | CancelTask
"""Requests about a task; the kernel answers each with one `TaskState`."""
AboutTasks: TypeAlias = KeepCall | TaskRequest
"""The messages about tasks that bridges send."""

# -- side panels -----------------------------------------------------------------------------------
# These messages hold texts of clients and tools unchanged: show them as text only. Times are in
# seconds since the epoch.


Frontend: TypeAlias = Literal["Jupyter", "VS Code", ""]
"""Where a person sees a notebook's questions: in pages of a Jupyter server, which need not show
this notebook; in a window of VS Code that has it open; or nowhere, for one that has not."""


class WatchNotebook(Message, frozen=True, tag="watch_notebook"):
    """Requests the notebook's state, now and after each change; repeated if `frontend` changes."""

    frontend: Frontend = "Jupyter"


class SwitchTool(Message, frozen=True, tag="switch_tool"):
    """Hides a tool from clients, or shows it again; its declaration does not change."""

    id: int
    tool: str
    on: bool


class RemoveTool(Message, frozen=True, tag="remove_tool"):
    """Removes a tool; its function stays defined. Sent only of tools with ``cell_deleted`` set."""

    id: int
    tool: str


class LockTool(Message, frozen=True, tag="lock_tool"):
    """Writes a tool as it is now into the notebook's lock. Sent only of tools with ``changes``."""

    id: int
    tool: str


class AnswerConsent(Message, frozen=True, tag="answer_consent"):
    """Answers an open question whether a call may run."""

    id: int
    number: int
    """The question's number."""
    decision: ConsentDecision


class SwitchProposals(Message, frozen=True, tag="switch_proposals"):
    """Lets clients propose cells, or no longer."""

    id: int
    on: bool


class TakeProposal(Message, frozen=True, tag="take_proposal"):
    """Claims an open proposal for one page, which inserts its cell and reports a `SettleProposal`.

    The proposal is open again if the page does not report anything for half a minute.
    """

    id: int
    number: int
    digest: str
    """`OpenProposal.digest` of what the person saw."""
    run: bool
    """Whether the page will run the cell."""
    source: str | None = None
    """The cell's source as the person has edited it."""


class SettleProposal(Message, frozen=True, tag="settle_proposal"):
    """Reports what became of a taken proposal."""

    id: int
    number: int
    outcome: Literal["inserted", "ran", "stale"]
    """The cell is inserted; it was run, after that; its place has changed, so that it was not
    inserted, and the person is asked again."""
    cell: str = ""
    """The id of the inserted cell."""
    replaced: str | None = None
    """What the cell held until then, which need not be what the kernel ran; None for a new one."""
    message: str = ""
    """What has changed, as a sentence."""
    outputs: list[dict[str, Any]] | None = None
    """The outputs of the cell that ran, in nbformat's form; each text in `data` is one string."""


class RejectProposal(Message, frozen=True, tag="reject_proposal"):
    """Rejects an open proposal."""

    id: int
    number: int
    word: str = ""
    """The person's reason, for the client."""


class UndoProposal(Message, frozen=True, tag="undo_proposal"):
    """Takes back the tool and the variables that an accepted cell has defined.

    The page then removes the cell, or puts the replaced source back.
    """

    id: int
    number: int


AboutProposals: TypeAlias = (
    SwitchProposals | TakeProposal | SettleProposal | RejectProposal | UndoProposal
)
"""The requests about cells that clients propose."""


class AskCall(Message, frozen=True, tag="ask_call"):
    """Requests the details of a call."""

    id: int
    number: int
    """The call's number in the kernel's log."""
    as_cell: bool = False
    """Request the call as a cell, with its result."""
    picture: int | None = None
    """Request a picture of the result: its index. Without that, none is attached."""
    is_small: bool = False
    """Request a thumbnail of the picture, of a few kilobytes."""


class SeenClient(Message, frozen=True):
    """The connected clients of one program."""

    name: str
    """Name and version, as reported by the program."""
    since: float
    """When the first of them was seen."""
    number: int = 1


class SeenTool(Message, frozen=True):
    """A tool, and the number of its calls."""

    name: str
    description: str = ""
    """Its first line."""
    kind: Literal[Kind, "skill"] = "tool"
    listed_as: str | None = None
    """The name that clients see, if it differs."""
    on: bool = True
    """Whether clients see it."""
    effect: Literal["read-only", "destructive", ""] = ""
    """Its effect, as declared by the author."""
    calls: int = 0
    """Calls that ended since the extension was loaded."""
    errors: int = 0
    """Calls among them that ended with an error."""
    cell: str | None = None
    """The id of the cell that declares it, if the frontend gave one."""
    cell_deleted: bool = False
    """Whether the frontend has reported that cell as deleted."""
    changes: list[str] = field(default_factory=list)
    """How it differs from the notebook's lock: in a line, then change by change."""


class OpenCall(Message, frozen=True):
    """A call that waits or runs."""

    number: int
    tool: str
    client: str
    call: str
    """The call as Python source, shortened and without secrets."""
    came: float
    kind: Kind = "tool"
    began: float | None = None
    """When its function started; None while it waits for its turn."""
    waits_for: str = ""
    """The reason why it waits; empty while it runs."""
    task: str | None = None
    """The id of its task; None if its client waits for the call itself."""
    is_stopping: bool = False
    """Whether it was asked to stop."""
    progress: float | None = None
    total: float | None = None
    message: str = ""
    """The last progress message."""


class OpenQuestion(Message, frozen=True):
    """A question whether a call may run."""

    number: int
    """Identifies it in the answer."""
    tool: str
    """The tool's name as the client sees it."""
    text: str
    """The call and the client, as lines that are safe to show as text."""
    asked: float
    ends: float
    """When the bridge stops waiting and denies the call."""
    session: ConsentSession
    """See `AskConsent.session`."""


class OpenProposal(Message, frozen=True):
    """A cell that a client proposes, and that nobody has decided about."""

    number: int
    client: str
    """Name and version, as reported by the program."""
    reason: str
    kind: Literal["code", "markdown", "tool"]
    source: str
    """Exactly what would be inserted."""
    digest: str
    """SHA-256 of the source in UTF-8, in hex."""
    asked: float
    ends: float
    """When the kernel stops waiting; 0 if it waits for as long as it lives: the call is a task."""
    after: str | None = None
    """The id of the cell below which it would stand; None: at the end of the notebook."""
    replaces: str | None = None
    """The id of the cell whose place it would take."""
    tool: str = ""
    """The tool that it replaces."""
    base: str | None = None
    """The source of the replaced cell, as the kernel ran it."""
    warnings: list[str] = field(default_factory=list)
    """What a person may miss in the source, or what has changed since; a sentence each."""
    state: Literal["open", "taken"] = "open"
    """"taken": a page is about to insert it."""


class AcceptedProposal(Message, frozen=True):
    """A proposal whose cell was inserted."""

    number: int
    cell: str
    """The cell's id; "" if no page told it."""
    client: str
    tool: str = ""
    """The tool that its run has declared."""
    replaced: str | None = None
    """The source that it has replaced."""
    names: list[str] = field(default_factory=list)
    """The variables that its run has defined, and that still have these values."""
    ran: bool = False
    """Whether it was run as it was accepted."""


class EndedCall(Message, frozen=True):
    """A call that was answered."""

    number: int
    tool: str
    client: str
    call: str
    """See `OpenCall.call`."""
    came: float
    """When it arrived."""
    state: str
    """How it ended, in words: "done", "failed", "stopped"; the result says by whom."""
    seconds: float
    """How long it ran."""
    kind: Kind = "tool"
    is_error: bool = False
    result: str = ""
    """The result in one short line."""
    has_picture: bool = False


class NotebookState(Message, frozen=True, tag="notebook_state"):
    """The state of a notebook; None for each part that has not changed."""

    name: str | None = None
    """The notebook's name."""
    kernel: str | None = None
    """The id of the kernel's record."""
    addresses: list[str] | None = None
    """Where clients reach the notebook over HTTP, in words."""
    problems: list[str] | None = None
    """Why clients miss tools, a sentence or two each."""
    clients: list[SeenClient] | None = None
    tools: list[SeenTool] | None = None
    counts: dict[str, tuple[int, int]] | None = None
    """New values of `calls` and `errors` of the tools with these names, which are as they were."""
    open_calls: list[OpenCall] | None = None
    """Oldest first."""
    questions: list[OpenQuestion] | None = None
    """Oldest first."""
    ended_calls: list[EndedCall] | None = None
    """The most recent calls, newest first."""
    number_of_calls: int | None = None
    """Calls that ended since the extension was loaded."""
    proposes: bool | None = None
    """Whether clients may propose cells."""
    proposals: list[OpenProposal] | None = None
    """Oldest first."""
    accepted: list[AcceptedProposal] | None = None
    """The most recent ones, newest first."""


class CallDetails(Message, frozen=True, tag="call_details"):
    """The details of a call; the requested picture or cell is attached."""

    id: int
    is_known: bool = True
    """Whether the kernel still has the call."""
    source: str = ""
    """Source of a cell that repeats the call."""
    gap: Literal["", "secret", "large"] = ""
    """Why `source` lacks an argument, which its user must add: it was not recorded."""
    arguments: str = ""
    """The arguments as JSON, without secrets."""
    result: str = ""
    """The texts of its result, or its error."""
    is_kept: bool = True
    """Whether the result is still there: large and old ones are dropped."""
    pictures: list[str] = field(default_factory=list)
    """The MIME types of the result's pictures, or of the attached one."""
    has_cell: bool = False
    """The attachment is a notebook's cell, as JSON, with the call and its result."""


class PanelAnswer(Message, frozen=True, tag="panel_answer"):
    """The outcome of a `PanelAction`."""

    id: int
    message: str
    """A sentence for the person."""
    is_error: bool = False
    """Whether the request failed."""


class ShowPanel(Message, frozen=True, tag="show_panel"):
    """Asks the pages that show the notebook to open their side panels."""


PanelAction: TypeAlias = SwitchTool | RemoveTool | LockTool | AnswerConsent | AboutProposals
"""Actions of a person in a side panel; the kernel answers each with one `PanelAnswer`."""
AboutPanel: TypeAlias = WatchNotebook | AskCall | PanelAction
"""Requests of side panels."""


AnyMessage: TypeAlias = (
    Hello
    | Call
    | Cancel
    | Answer
    | AskConsent
    | WithdrawConsent
    | Clients
    | UnknownCall
    | NotebookMoved
    | StopCall
    | ListResources
    | ReadResource
    | Complete
    | EndRead
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
    | Completed
    | ResourcesChanged
    | CallStopped
    | Goodbye
    | AboutTasks
    | TaskState
    | AboutPanel
    | NotebookState
    | CallDetails
    | PanelAnswer
    | ShowPanel
)
