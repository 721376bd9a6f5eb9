"""The records of the audit log: one JSON object per line, in ASCII.

Runs on the writing thread, and on the event loop while that thread is behind; pure. Control
characters, direction marks and lone surrogates are JSON escapes, so that the lines are safe to
print on a terminal. Texts that clients choose are cut to a bounded length, and secrets are masked
(`redaction`).
"""

import json
from hashlib import sha256
from typing import Any, TypeAlias

import msgspec

from mcp_notebook.bridge.telemetry.call_events import (
    CallEnd,
    CallRefusal,
    CallStart,
    Event,
    ViewRead,
)
from mcp_notebook.settings.settings import Audit
from mcp_notebook.text.redaction import has_secrets, redact_arguments
from mcp_notebook.text.wording import format_moment
from mcp_notebook.wire.resource_uris import find_kernel_id

Record: TypeAlias = dict[str, Any]
"""The members of a line."""

MAX_NAME = 200
"""Characters of a name that a client chose."""
MAX_ERROR = 500
"""Characters of an error."""
MAX_ARGUMENTS = 2**14
"""Bytes of the arguments' JSON; longer arguments are only hashed."""


def describe_start(start: CallStart, mode: Audit) -> Record:
    """Return the record of a call that has begun.

    Args:
        start: The call.
        mode: How its arguments are recorded.
    """
    return {
        "time": format_moment(start.at),
        "kind": "start",
        "id": start.id,
        **_describe_caller(start),
        "kernel": start.kernel,
        "notebook": start.notebook,
        "tool": start.tool,
        **_describe_kind(start),
        **({"by": "view"} if start.is_from_view else {}),
        **_describe_arguments(start.arguments, start.input_schema, mode),
    }


def describe_end(record: Record, end: CallEnd) -> Record:
    """Return the record of a call that has ended.

    Args:
        record: The record of its start.
        end: How it ended.
    """
    ended = record | {
        "kind": "call",
        "outcome": end.outcome,
        "seconds": round(end.seconds, 6),
    }
    if end.queue_seconds is not None:
        ended["queue_seconds"] = round(end.queue_seconds, 6)
    if end.run_seconds is not None:
        ended["run_seconds"] = round(end.run_seconds, 6)
    if end.task is None:
        ended["result_size"] = end.size
    else:
        ended["task"] = end.task
    if end.error is not None:
        ended["error"] = _cut(end.error, MAX_ERROR)
    return ended


def describe_refusal(refusal: CallRefusal, mode: Audit) -> Record:
    """Return the record of a call that was refused."""
    place: Record = {}
    arguments: Record = {}
    if refusal.kernel is not None:
        place = {"kernel": refusal.kernel, "notebook": refusal.notebook}
    if refusal.arguments is not None:
        arguments = _describe_arguments(refusal.arguments, refusal.input_schema, mode)
    return {
        "time": format_moment(refusal.at),
        "kind": "call",
        "outcome": "refused",
        **_describe_caller(refusal),
        **place,
        "tool": _cut(refusal.tool, MAX_NAME),
        **_describe_kind(refusal),
        **arguments,
        "error": _cut(refusal.reason, MAX_ERROR),
    }


def describe_view(read: ViewRead, call: CallStart | None, mode: Audit) -> Record:
    """Return the record of a query of a live view.

    Args:
        read: The query.
        call: The call whose result the view shows; None if it was before the bridge's time.
        mode: How the query is recorded: like arguments.
    """
    place: Record = {"kernel": find_kernel_id(read.uri)}
    if call is not None:
        place |= {"notebook": call.notebook, "tool": call.tool}
    record: Record = {
        "time": format_moment(read.at),
        "kind": "view",
        "outcome": "ok" if read.error is None else "error",
        **_describe_caller(read),
        **place,
        "uri": _cut(read.uri, MAX_NAME),
        **_describe_arguments({"query": read.query}, {}, mode),
        "seconds": round(read.seconds, 6),
    }
    return record if read.error is None else record | {"error": _cut(read.error, MAX_ERROR)}


def _describe_kind(call: CallStart | CallRefusal) -> Record:
    return {} if call.tool_kind == "tool" else {"tool_kind": call.tool_kind}


def _describe_caller(event: Event) -> Record:
    user = {"user": _cut(event.alias, MAX_NAME)} if event.alias else {}
    return {
        "caller": _cut(event.caller, MAX_NAME),
        **user,
        "client": _cut(event.client, MAX_NAME),
    }


def describe_request(at: float, address: str, reason: str, count: int) -> Record:
    """Return the record of requests that were refused before their content was read."""
    return {
        "time": format_moment(at),
        "kind": "request",
        "outcome": "refused",
        "address": address,
        "count": count,
        "error": reason,
    }


def describe_gap(at: float, missing: int) -> Record:
    """Return the record that replaces lines that could not be written."""
    return {"time": format_moment(at), "kind": "gap", "missing": missing}


def encode(record: Record) -> bytes:
    """Return a record as a line."""
    line = json.dumps(record, separators=(",", ":")).encode("ascii")
    return line.replace(b"\x7f", b"\\u007f") + b"\n"  # JSON leaves only DEL unescaped


def _describe_arguments(arguments: dict[str, Any], schema: dict[str, Any], mode: Audit) -> Record:
    try:
        if has_secrets(schema, schema):
            arguments = redact_arguments(schema, arguments)
        # Sorted, so that equal arguments have equal hashes.
        text = msgspec.json.encode(arguments, order="sorted")
        if b"null" in text:  # which infinity, as a client's 1e400 is read, would become
            json.dumps(arguments, allow_nan=False)
    except Exception as error:  # noqa: BLE001 - every call gets a line, whatever its client sends
        # For example, an integer with too many digits.
        return {"arguments_problem": type(error).__name__}
    record: Record = {"arguments_size": len(text)}
    if mode == "none":
        return record
    if mode == "full" and len(text) <= MAX_ARGUMENTS:
        return {"arguments": arguments} | record
    return {"arguments_sha256": sha256(text).hexdigest()} | record


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 3]}..."
