"""The records of the audit log: one JSON object per line, in ASCII.

Runs on the writing thread, and on the event loop while that thread is behind; pure. Control
characters, direction marks and lone surrogates are JSON escapes, so that the lines are safe to
print on a terminal. Texts that clients choose are cut to a bounded length, and secrets are masked
(`redaction`).
"""

import json
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from functools import cached_property, lru_cache
from hashlib import sha256
from typing import Any, TypeAlias

from pydantic_core import to_json

from mcp_notebook.bridge.telemetry.call_events import (
    CallEnd,
    CallRefusal,
    CallStart,
    ViewRead,
)
from mcp_notebook.settings.settings import ArgumentsInAudit
from mcp_notebook.text.redaction import has_secrets, redact_arguments
from mcp_notebook.wire.resource_uris import find_kernel_id

Record: TypeAlias = dict[str, Any]
"""The members of a line."""

MAX_NAME = 200
"""Characters of a name that a client chose."""
MAX_ERROR = 500
"""Characters of an error."""
MAX_ARGUMENTS = 2**14
"""Characters of the arguments' JSON; longer arguments are only hashed."""
MAX_SCHEMAS = 256
"""Size of the cache of schemas that mark no argument as secret."""
_ARGUMENTS = json.JSONEncoder(allow_nan=False, sort_keys=True, separators=(",", ":"))
"""Sorted, so that equal arguments have equal hashes."""
_LONG = 2**10
"""Characters from which a string is written separately."""
_LARGE = 2**53
"""From this integer on, libraries may write numbers differently."""
_LOST = "The bridge was killed before it could write down how the call ended."


class LargeHash:
    """The hash of large arguments, computed when the record is written.

    Args:
        arguments: The client's JSON.
    """

    def __init__(self, arguments: bytes) -> None:
        self._arguments: bytes | None = arguments

    @cached_property
    def text(self) -> str:
        """The hash; only for the writing thread."""
        assert self._arguments is not None
        digest = sha256(self._arguments).hexdigest()
        self._arguments = None
        return digest


class PlainSchemas:
    """A cache of input schemas that mark no secret, so that they are searched only once.

    Both threads may use it.
    """

    def __init__(self) -> None:
        self._schemas: OrderedDict[int, dict[str, Any]] = OrderedDict()
        """The schemas by `id`, which is unique while the schema is kept here."""

    def has_secrets(self, schema: dict[str, Any]) -> bool:
        """Return whether a schema marks anything as a secret."""
        if self._schemas.get(id(schema)) is schema:
            return False
        if has_secrets(schema, schema):
            return True
        self._schemas[id(schema)] = schema
        if len(self._schemas) > MAX_SCHEMAS:
            self._schemas.popitem(last=False)
        return False


def describe_start(
    start: CallStart, mode: ArgumentsInAudit, schemas: PlainSchemas | None = None
) -> Record:
    """Return the record of a running call.

    Args:
        start: The call.
        mode: How its arguments are recorded.
        schemas: The cache of schemas without secrets.
    """
    return {
        "time": format_time(start.at),
        "kind": "call",
        "id": start.id,
        "outcome": "running",
        **_describe_caller(start),
        "kernel": start.kernel,
        "notebook": start.notebook,
        "tool": start.tool,
        **_describe_kind(start),
        **({"by": "view"} if start.is_from_view else {}),
        **_describe_arguments(
            start.arguments,
            start.input_schema,
            mode,
            schemas,
            may_have_escapes=start.may_have_escapes,
        ),
    }


def describe_end(record: Record, end: CallEnd) -> Record:
    """Return the record of a call that has ended.

    Args:
        record: The record of its start.
        end: How it ended.
    """
    ended = {**record, "outcome": end.outcome, "seconds": round(end.seconds, 6)}
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


def complete(record: Record) -> Record:
    """Return the final record of a killed bridge's call, given its last known record."""
    if record.get("outcome") != "running":
        return record
    return record | {"outcome": "lost", "error": _LOST}


def describe_refusal(refusal: CallRefusal, mode: ArgumentsInAudit) -> Record:
    """Return the record of a call that was refused."""
    place: Record = {}
    arguments: Record = {}
    if refusal.kernel is not None:
        place = {"kernel": refusal.kernel, "notebook": refusal.notebook}
    if refusal.arguments is not None:
        arguments = _describe_arguments(refusal.arguments, refusal.input_schema, mode)
    return {
        "time": format_time(refusal.at),
        "kind": "call",
        "outcome": "refused",
        **_describe_caller(refusal),
        **place,
        "tool": _cut(refusal.tool, MAX_NAME),
        **_describe_kind(refusal),
        **arguments,
        "error": _cut(refusal.reason, MAX_ERROR),
    }


def describe_view(read: ViewRead, call: CallStart | None, mode: ArgumentsInAudit) -> Record:
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
        "time": format_time(read.at),
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


def _describe_caller(call: CallStart | CallRefusal | ViewRead) -> Record:
    user = {"user": _cut(call.alias, MAX_NAME)} if call.alias else {}
    return {
        "caller": _cut(call.caller, MAX_NAME),
        **user,
        "client": _cut(call.client, MAX_NAME),
    }


def describe_request(at: float, address: str, reason: str, count: int) -> Record:
    """Return the record of requests that were refused before their content was read."""
    return {
        "time": format_time(at),
        "kind": "request",
        "outcome": "refused",
        "address": address,
        "count": count,
        "error": reason,
    }


def describe_gap(at: float, missing: int) -> Record:
    """Return the record that replaces lines that could not be written."""
    return {"time": format_time(at), "kind": "gap", "missing": missing}


def encode(record: Record) -> bytes:
    """Return a record as a line."""
    try:
        line = to_json(record, fallback=_get_hash)
        if not line.isascii():  # rare, and slower
            line = to_json(record, ensure_ascii=True, fallback=_get_hash)
    except ValueError:  # it contains a lone surrogate
        line = json.dumps(record, separators=(",", ":"), default=_get_hash).encode("ascii")
    return line.replace(b"\x7f", b"\\u007f") + b"\n"  # JSON leaves only DEL unescaped


def format_time(at: float) -> str:
    """Return a time in ISO 8601 format, in UTC."""
    seconds, microseconds = divmod(round(at * 1e6), 1_000_000)
    return f"{_format_second(seconds)}.{microseconds // 1_000:03}Z"


@lru_cache(maxsize=8)
def _format_second(at: int) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def _get_hash(value: Any) -> str:
    assert isinstance(value, LargeHash)
    return value.text


def _describe_arguments(
    arguments: dict[str, Any] | bytes,
    schema: dict[str, Any],
    mode: ArgumentsInAudit,
    schemas: PlainSchemas | None = None,
    *,
    may_have_escapes: bool = True,
) -> Record:
    try:
        if (schemas or PlainSchemas()).has_secrets(schema):
            if isinstance(arguments, bytes):
                return {"arguments_size": len(arguments)}  # a hash would confirm a guess
            arguments = redact_arguments(schema, arguments)
        if isinstance(arguments, bytes):
            return _describe_large(arguments, mode)
        return _describe_small(arguments, mode, may_have_escapes=may_have_escapes)
    except Exception as error:  # noqa: BLE001 - every call gets a line, whatever its client sends
        # For example, an integer with too many digits.
        return {"arguments_problem": type(error).__name__}


def _describe_large(arguments: bytes, mode: ArgumentsInAudit) -> Record:
    size = {"arguments_size": len(arguments)}
    if mode == "none":
        return size
    return {"arguments_sha256": LargeHash(arguments)} | size


def _describe_small(
    arguments: dict[str, Any], mode: ArgumentsInAudit, *, may_have_escapes: bool
) -> Record:
    pieces = list(_write_arguments(arguments, may_have_escapes=may_have_escapes))
    total = sum(map(len, pieces))
    size = {"arguments_size": total}
    if mode == "none":
        return size
    if mode == "full" and total <= MAX_ARGUMENTS:
        return {"arguments": arguments} | size
    digest = sha256()
    for piece in pieces:
        digest.update(piece)
    return {"arguments_sha256": digest.hexdigest()} | size


def _write_arguments(arguments: dict[str, Any], *, may_have_escapes: bool) -> Iterator[bytes]:
    """Yield the arguments' JSON in pieces, which saves a copy of long strings."""
    if all(map(_is_plain, arguments)) and all(map(_is_plain, arguments.values())):
        yield to_json(dict(sorted(arguments.items())))
        return
    if not any(type(value) is str and len(value) >= _LONG for value in arguments.values()):
        yield _ARGUMENTS.encode(arguments).encode("ascii")
        return
    before = b"{"
    for name in sorted(arguments):
        yield b"%b%b:" % (before, b"".join(_write_value(name)))
        yield from _write_value(arguments[name], may_have_escapes=may_have_escapes)
        before = b","
    yield b"}"


def _write_value(value: Any, *, may_have_escapes: bool = True) -> Sequence[bytes]:
    # All three ways write the same, except for DEL. json takes eight times as long as pydantic, and
    # blocks the bridge meanwhile; checking each character for escapes takes longer than hashing.
    if type(value) is str and len(value) >= _LONG and value.isascii() and "\x7f" not in value:
        if not may_have_escapes:
            return b'"', value.encode("ascii"), b'"'
        return [to_json(value)]
    return [_ARGUMENTS.encode(value).encode("ascii")]


def _is_plain(value: Any) -> bool:
    """Return whether pydantic, which is faster, writes a small value exactly like `json`."""
    if type(value) is str:
        return len(value) < _LONG and value.isascii() and "\x7f" not in value
    return value is None or type(value) is bool or (type(value) is int and abs(value) < _LARGE)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 3]}..."
