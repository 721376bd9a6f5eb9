"""The events of calls and of live views, for the audit log.

Runs on the bridge's event loop; pure. `server` reports a start and then exactly one end, or a
refusal and nothing else. A query of a view is one event.
"""

from typing import Any, Literal, TypeAlias

from msgspec import Struct, field

from mcp_notebook.wire import messages

Outcome: TypeAlias = Literal["ok", "error", "cancelled", "timed out", "lost"]
"""How a call ended: with a result, with an error (of the tool or its arguments), stopped by the
client or the user, stopped by its time limit, or not at all, because its kernel is gone."""


class Event(Struct, frozen=True, kw_only=True):
    """What a client did, and when."""

    at: float
    """When, in seconds since the epoch."""
    caller: str
    """The name of the caller: see `access.caller.Caller`."""
    alias: str = ""
    """The caller's name for people."""
    client: str
    """The name and version that the client's program reports; may be empty."""


class CallStart(Event, frozen=True, kw_only=True):
    """A call that is sent to its kernel."""

    id: str
    """Unique among all calls of the bridge."""
    kernel: str
    """The id of the kernel's record."""
    notebook: str
    """The notebook's part of the tool's full name."""
    tool: str
    """The tool's name in the kernel."""
    tool_kind: messages.Kind = "tool"
    """Whether `tool` is the name of a tool, or of a prompt or a resource."""
    arguments: dict[str, Any]
    """The arguments."""
    input_schema: dict[str, Any]
    """The tool's input schema, which marks secrets."""
    is_from_view: bool = False
    """Whether a person made the call in a live view, as its page says."""


class CallEnd(Struct, frozen=True, kw_only=True):
    """A call that has ended."""

    start: CallStart
    outcome: Outcome
    seconds: float
    """The duration of the call, as measured by the bridge."""
    queue_seconds: float | None = None
    """How long it waited for its turn in the kernel; None if it did not wait, or if the kernel is
    gone."""
    run_seconds: float | None = None
    """How long it then ran, including waits for an executor's worker or for an answer."""
    error: str | None = None
    """The error's text; None if there is none."""
    size: int = 0
    """Characters and bytes of all content blocks together."""
    task: str | None = None
    """The id of the task that it became; the result went to those who requested it."""
    view: str | None = None
    """The URI that the live view of its result reads; None if it has none."""


class CallRefusal(Event, frozen=True, kw_only=True):
    """A call that the bridge did not send to any kernel."""

    tool: str
    """The tool's name in its kernel; if none was found, the name in the client's request."""
    tool_kind: messages.Kind = "tool"
    """As what it was requested."""
    reason: str
    """The error that the client gets."""
    kernel: str | None = None
    """The id of the kernel's record; None if no tool was found."""
    notebook: str | None = None
    """The notebook's part of the tool's full name."""
    arguments: dict[str, Any] | None = None
    """See `CallStart.arguments`; None if no tool was found."""
    input_schema: dict[str, Any] = field(default_factory=dict)
    """See `CallStart.input_schema`."""


class ViewRead(Event, frozen=True, kw_only=True):
    """A query of a table's live view: what a person did in it."""

    uri: str
    """The URI that the view reads, without the query."""
    query: str
    """The query, as the client sent it."""
    seconds: float
    error: str | None = None
    """Why it was not answered; None if it was."""
