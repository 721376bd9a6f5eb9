"""What the log keeps of one call: `LoggedCall`, made of a call that is open, or that has a result.

Runs in the user's kernel, on any thread; pure. What may be large is measured with an early end.
"""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from time import monotonic
from typing import Any

from mcp_notebook.content import Audio, ContentBlock, Image, Resource, ResourceLink, Result, Text
from mcp_notebook.kernel.calls.active_call import ActiveCall
from mcp_notebook.kernel.calls.call import ENDED, CallState
from mcp_notebook.kernel.schemas.secrets import scrub
from mcp_notebook.kernel.tools.context import ClientProgram, describe_program
from mcp_notebook.meta_keys import CACHED

MAX_ARGUMENTS = 10_000
"""About how many bytes of arguments an entry keeps; larger ones are named, not kept."""
MAX_ERROR = 2_000
"""Characters of an error."""
_OVERHEAD = 50
"""Bytes that stand for each JSON value, besides its characters."""


@dataclass(frozen=True, kw_only=True)
class LoggedCall:
    """A call as it was at one moment."""

    number: int
    """Its number in this kernel, from 1."""
    came: float
    """When it came, in seconds since the epoch."""
    client: ClientProgram | None
    """The program that called, as it says itself; None: the notebook, by ``%mcp call``."""
    tool: str
    """The tool's name in this kernel."""
    source_hash: str | None
    """SHA-256 of the source of the tool that ran, or would have; None if it has none."""
    function_schema: Mapping[str, Any] | None = field(default=None, repr=False)
    """The tool's, as `DeclaredTool.function_schema` was when it was called."""
    arguments: Mapping[str, Any]
    """As the client sent them, with `redaction.MASK` in place of secrets."""
    is_complete: bool = True
    """Whether the arguments are all there; large ones are left out when the call has ended."""
    state: CallState
    """Where it is, or how it ended."""
    never_ran: bool = False
    """It was refused or stopped before the tool's function began."""
    task_id: str | None = None
    """The id of the task that it has become; None: its client waits for it."""
    is_cached: bool = False
    """It was answered with the result of an equal call, and nothing ran."""
    queue_seconds: float
    """How long it waited for its turn."""
    run_seconds: float
    """How long it ran then, or has been running."""
    size: int = 0
    """Bytes and characters of the result's content."""
    kinds: tuple[str, ...] = ()
    """What the content is, each kind once: "text", "structured", "link" or a MIME type."""
    error: str | None = None
    """What the client was told if the call failed or was stopped, without secrets."""

    @property
    def client_label(self) -> str:
        """Who called, for people."""
        return describe_program(self.client)

    @property
    def has_failed(self) -> bool:
        """Whether it ended in any other way than with a value."""
        return self.error is not None


def make_entry(call: ActiveCall, came: float, result: Result | None = None) -> LoggedCall:
    """Return a call as it is now.

    Args:
        call: The call.
        came: When it came, in seconds since the epoch.
        result: Its result, if it has one.
    """
    with call.lock:
        state, since, began, now = call.state, call.since, call.began, monotonic()
    end = since if state in ENDED else now
    content: Sequence[ContentBlock] = () if result is None else result.content
    return LoggedCall(
        number=call.number,
        came=came,
        client=call.client.program,
        tool=call.tool,
        source_hash=None if call.target is None else call.target.source_hash,
        function_schema=None if call.target is None else call.target.function_schema,
        arguments=call.shown_arguments,
        state=state,
        never_ran=result is not None and result.is_error and not call.has_run,
        task_id=call.task_id,
        is_cached=result is not None and CACHED in result.meta,
        queue_seconds=(end if began is None else began) - call.arrived,
        run_seconds=0.0 if began is None else end - began,
        size=sum(map(_measure, content)),
        kinds=() if result is None else _list_kinds(result),
        error=_find_error(call, result) if result is not None and result.is_error else None,
    )


def _find_error(call: ActiveCall, result: Result) -> str:
    text = next((block.text for block in result.content if isinstance(block, Text)), "")
    text = scrub(text, call.capture.secrets)
    return text if len(text) <= MAX_ERROR else f"{text[:MAX_ERROR]}..."


def _list_kinds(result: Result) -> tuple[str, ...]:
    """Return what the content of a result is, each kind once."""
    kinds: dict[str, None] = {}
    for block in result.content:
        match block:
            case Text():
                kinds["text"] = None
            case ResourceLink():
                kinds["link"] = None
            case _:
                kinds[block.mime_type] = None
    if result.structured is not None:
        kinds["structured"] = None
    return tuple(kinds)


def _measure(block: ContentBlock) -> int:
    """Return the characters or bytes of a block's content."""
    match block:
        case Text():
            return len(block.text)
        case Image() | Audio() | Resource():
            return len(block.data)
        case ResourceLink():
            return len(block.uri)


def measure_result(result: Result) -> int:
    """Return about how many bytes a result takes."""
    return sum(map(_measure, result.content)) + measure_structured(result, sys.maxsize)


def measure_structured(result: Result, most: int) -> int:
    """Return about how many bytes structured content takes; any number above `most` if more."""
    return 0 if result.structured is None else _measure_value(result.structured, most)


def copy_small(arguments: dict[str, Any]) -> dict[str, Any] | None:
    """Return arguments that a tool cannot change; None if they are so large that none are kept."""
    try:
        copy: dict[str, Any] = _copy(arguments, [MAX_ARGUMENTS])
    except (_TooLargeError, RecursionError):
        return None
    return copy


class _TooLargeError(Exception):
    """There is no room for all of a value."""


def _copy(value: Any, room: list[int]) -> Any:
    """Return a copy of a JSON value, and take its bytes from the room that is left."""
    room[0] -= _OVERHEAD
    if isinstance(value, str):
        room[0] -= len(value)
    if room[0] < 0:
        raise _TooLargeError
    if isinstance(value, dict):
        room[0] -= sum(map(len, value))
        return {name: _copy(item, room) for name, item in value.items()}
    if isinstance(value, list):
        return [_copy(item, room) for item in value]
    return value


def leave_out_large(call: LoggedCall) -> LoggedCall:
    """Return a call with the large ones among its arguments named only."""
    most = MAX_ARGUMENTS // max(len(call.arguments), 10)
    arguments = {
        name[:100]: value if _measure_value(value, most) <= most else f"<large {_name(value)}>"
        for name, value in islice(call.arguments.items(), 100)
    }
    return replace(call, arguments=arguments, is_complete=False)


def _name(value: Any) -> str:
    match value:
        case str():
            return "text"
        case list():
            return "array"
        case dict():
            return "object"
    return "number"


def _measure_value(value: Any, most: int) -> int:
    """Return about how many bytes a JSON value takes; any number above `most` if it is more."""
    size, waiting = 0, [value]
    while waiting and size <= most:
        item = waiting.pop()
        size += _OVERHEAD
        if isinstance(item, str):
            size += len(item)
        elif isinstance(item, dict):
            size += sum(map(len, item))
            waiting += item.values()
        elif isinstance(item, list):
            waiting += item
    return size
