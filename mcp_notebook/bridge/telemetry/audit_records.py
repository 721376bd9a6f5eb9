"""What the audit log says about a call: one JSON object on a line of ASCII.

Runs on the thread that writes, and on the event loop while that one is behind; pure. Control
characters, direction marks and lone surrogates are escaped, as JSON can: whoever shows the log's
lines as they are shows nothing to a terminal but text. What clients choose is cut to a bounded
length, and secrets (`redaction`) are not in it.
"""

import json
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from functools import cached_property, lru_cache
from hashlib import sha256
from typing import Any, TypeAlias

from pydantic_core import to_json

from mcp_notebook.bridge.telemetry.call_events import CallEnd, CallRefusal, CallStart
from mcp_notebook.settings.settings import ArgumentsInAudit
from mcp_notebook.text.redaction import has_secrets, redact_arguments

Record: TypeAlias = dict[str, Any]
"""The members of a line."""

MAX_NAME = 200
"""Characters of a name that a client chose."""
MAX_ERROR = 500
"""Characters of an error."""
MAX_ARGUMENTS = 2**14
"""Characters of the arguments' JSON; of longer ones there is the hash only."""
MAX_SCHEMAS = 256
"""Size of the cache of schemas that mark no argument as secret."""
_ARGUMENTS = json.JSONEncoder(allow_nan=False, sort_keys=True, separators=(",", ":"))
"""Sorted, so that equal arguments have equal hashes."""
_LONG = 2**10
"""Characters of a text that is worth a closer look."""
_LARGE = 2**53
"""From this integer on, libraries may write numbers differently."""
_LOST = "The bridge was killed before it could write down how the call ended."


class LargeHash:
    """The hash of large arguments, which is computed when it is written.

    Args:
        arguments: The client's JSON.
    """

    def __init__(self, arguments: bytes) -> None:
        self._arguments: bytes | None = arguments

    @cached_property
    def text(self) -> str:
        """The hash; for the thread that writes."""
        assert self._arguments is not None
        digest = sha256(self._arguments).hexdigest()
        self._arguments = None
        return digest


class PlainSchemas:
    """Remembers input schemas that mark no secret, so that they are searched once.

    Both threads may ask.
    """

    def __init__(self) -> None:
        self._schemas: OrderedDict[int, dict[str, Any]] = OrderedDict()
        """By their ids, which no others have as long as they are here."""

    def has_secrets(self, schema: dict[str, Any]) -> bool:
        """Tell whether a schema marks anything as a secret."""
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
    """Return the record of a call that runs.

    Args:
        start: The call.
        mode: What is written of its arguments.
        schemas: Remembers what is known of schemas.
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
        record: That of its start.
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
    """Return the record of a call of a bridge that was killed, given the last that is known."""
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
        **arguments,
        "error": _cut(refusal.reason, MAX_ERROR),
    }


def _describe_caller(call: CallStart | CallRefusal) -> Record:
    user = {"user": _cut(call.alias, MAX_NAME)} if call.alias else {}
    return {
        "caller": _cut(call.caller, MAX_NAME),
        **user,
        "client": _cut(call.client, MAX_NAME),
    }


def describe_request(at: float, address: str, reason: str, count: int) -> Record:
    """Return the record of requests that were refused before they were calls of anybody."""
    return {
        "time": format_time(at),
        "kind": "request",
        "outcome": "refused",
        "address": address,
        "count": count,
        "error": reason,
    }


def describe_gap(at: float, missing: int) -> Record:
    """Return the record that stands for lines that could not be written."""
    return {"time": format_time(at), "kind": "gap", "missing": missing}


def encode(record: Record) -> bytes:
    """Return a record as a line."""
    try:
        line = to_json(record, fallback=_get_hash)
        if not line.isascii():  # seldom, and it takes longer
            line = to_json(record, ensure_ascii=True, fallback=_get_hash)
    except ValueError:  # there is a lone surrogate in it
        line = json.dumps(record, separators=(",", ":"), default=_get_hash).encode("ascii")
    return line.replace(b"\x7f", b"\\u007f") + b"\n"  # the one control character that JSON may have


def format_time(at: float) -> str:
    """Return a time as in ISO 8601, in UTC."""
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
    except Exception as error:  # noqa: BLE001 - whatever a client sends, its call has a line
        # An integer of too many digits, for example.
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
    """Yield the arguments' JSON in pieces: together, a long text would be copied once more."""
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
    # All three write the same, but for DEL. json takes eight times as long as pydantic, and stops
    # the bridge meanwhile; to ask of each character whether it needs an escape takes longer than
    # the hash.
    if type(value) is str and len(value) >= _LONG and value.isascii() and "\x7f" not in value:
        if not may_have_escapes:
            return b'"', value.encode("ascii"), b'"'
        return [to_json(value)]
    return [_ARGUMENTS.encode(value).encode("ascii")]


def _is_plain(value: Any) -> bool:
    """Tell whether pydantic, which is faster, writes a small value exactly as `json` does."""
    if type(value) is str:
        return len(value) < _LONG and value.isascii() and "\x7f" not in value
    return value is None or type(value) is bool or (type(value) is int and abs(value) < _LARGE)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 3]}..."
