"""Tool calls with large arguments: the bridge forwards these to the kernel without parsing them.

Runs on the bridge's event loop. A transport takes the arguments out of the text of a large request
(`detach_arguments`), gives the SDK the rest, and attaches them to the request's scope, where the
server finds them (`find_arguments`). Only the kernel parses them. No other message may be large.

Answers are parsed and serialized on the loop: the limits of results keep them small. The largest
with the default settings is the content of a resource (`result_forms.MAX_READ`): 0.05 to 0.15 s of
CPU time, in one or two steps between which the loop does other work. Authors who raise the limits
make other clients wait: for an answer of 40 MB, 0.3 s if it is pictures or text, and 2.5 s in three
steps, the longest 1.1 s, if it is structured content. A thread would not help, because parsers hold
the GIL.
"""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import anyio.to_thread
from pydantic_core import from_json, to_json

from mcp_notebook.bridge.server.protocol.json_spans import NotJson, find_members
from mcp_notebook.errors import InvalidArguments, McpNotebookError

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext

LARGE = 2**18
"""Bytes from which a message is not parsed as a whole: that would take tens of milliseconds."""
MAX_REST = 2**20
"""Maximum bytes of a message without the arguments of a call."""
MAX_SMALL = 1_000
"""Maximum bytes of an argument that stays in the message, to check the HTTP headers that repeat
arguments."""
ARGUMENTS_KEY = "mcp_notebook.arguments"
"""The key of the detached arguments in a request's scope."""

_STAND_IN = secrets.token_hex(16)
"""A placeholder for arguments that no client can guess."""
_NOT_JSON = "The arguments are not a valid JSON object."


class MessageTooLarge(McpNotebookError):
    """A message is too large without the arguments of a call.

    Args:
        request_id: The message's id, if it is valid.
    """

    def __init__(self, request_id: str | int | None) -> None:
        self.request_id = request_id
        super().__init__(
            f"Only a tool call may have more than {MAX_REST:,} bytes, and only because of its "
            "arguments, which are one JSON object."
        )


@dataclass(frozen=True)
class StdioRequest:
    """Stands for the HTTP request of a request over stdio."""

    scope: dict[str, Any]


async def detach_arguments(
    text: bytes, *, with_small: bool = False
) -> tuple[bytes, dict[str, Any]]:
    """Take a call's arguments out of a large message.

    Args:
        text: The message.
        with_small: Whether to leave short arguments in the message as well.

    Returns:
        The rest of the message, and what to add to the request's scope.

    Raises:
        NotJson: The message is not a JSON object, or has arguments twice.
        MessageTooLarge: The rest is still too large.
    """
    members = await find_members(text, within=(b"params",))
    request_id = _read(text, members, b"id")
    span = members.get((b"params", b"arguments"))
    scope: dict[str, Any] = {}
    if span is None or _read(text, members, b"method") != b'"tools/call"':
        before, arguments, after = text, b"", b""
    else:
        before, arguments, after = text[: span[0]], text[span[0] : span[1]], text[span[1] :]
    is_call = arguments.startswith(b"{")
    short = arguments
    if is_call:
        short = await _copy_small(arguments) if with_small else b"{}"
        scope[ARGUMENTS_KEY] = arguments
    if len(before) + len(short) + len(after) > MAX_REST:
        raise MessageTooLarge(_read_id(request_id) if len(request_id) <= MAX_SMALL else None)
    if is_call:
        _check_place(before, after)
    return b"".join((before, short, after)), scope


def find_arguments(ctx: ServerRequestContext[Any]) -> bytes | None:
    """Return the arguments that a transport has detached from a call, or None."""
    arguments: bytes | None = getattr(ctx.request, "scope", {}).get(ARGUMENTS_KEY)
    return arguments


async def identify_arguments(arguments: bytes) -> dict[str, Any]:
    """Return a short stand-in for large arguments: equal arguments have equal ones."""
    digest = await anyio.to_thread.run_sync(lambda: hashlib.sha256(arguments).hexdigest())
    return {"sha256": digest}


async def outline_arguments(arguments: bytes) -> tuple[dict[str, Any], dict[str, int]]:
    """Return the short ones among large arguments, and the sizes of the others, by name.

    Of arguments with the same name, the last one counts, as it does for the kernel.

    Raises:
        NotJson: They are not a JSON object, or it has too many members.
    """
    short: dict[str, Any] = {}
    sizes: dict[str, int] = {}
    try:
        for name, (start, end) in (await _find_by_name(arguments)).items():
            if end - start <= MAX_SMALL:
                short[name] = from_json(arguments[start:end])
            else:
                sizes[name] = end - start
    except ValueError:
        raise NotJson from None
    return short, sizes


async def split_arguments(arguments: bytes) -> tuple[dict[str, Any], bytes]:
    """Separate the arguments of a tool from those of the meta tool that calls it.

    Returns:
        The arguments of the meta tool, with an empty object in place of those of the tool; and
        those of the tool.

    Raises:
        InvalidArguments: They are not JSON, or those of the meta tool are too large.
    """
    try:
        members = await find_members(arguments)
        start, end = members.get((b"arguments",), (0, 0))
        if arguments[start : start + 1] != b"{" or len(arguments) - (end - start) > MAX_REST:
            raise InvalidArguments("'arguments' must be an object, and nothing else may be large.")
        return from_json(arguments[:start] + b"{}" + arguments[end:]), arguments[start:end]
    except (NotJson, ValueError):
        raise InvalidArguments(_NOT_JSON) from None


async def _copy_small(arguments: bytes) -> bytes:
    try:
        small = [
            b"%b:%b" % (to_json(name), arguments[start:end])
            for name, (start, end) in (await _find_by_name(arguments)).items()
            if end - start <= MAX_SMALL
        ]
    except ValueError:
        raise NotJson from None
    return b"{%b}" % b",".join(small)


async def _find_by_name(arguments: bytes) -> dict[str, tuple[int, int]]:
    """Return where the value of each argument is; of equal names, the last one counts.

    Raises:
        NotJson: They are not a JSON object, or it has too many members.
        ValueError: A name is not JSON.
    """
    members = await find_members(arguments)
    # A name may be written in several ways: "a" and "\u0061".
    in_order = sorted(members.items(), key=lambda member: member[1])
    return {from_json(b'"%b"' % path[0]): span for path, span in in_order}


def _check_place(before: bytes, after: bytes) -> None:
    """Check that a parser finds the arguments in the place from which they were taken.

    If the arguments, or the parameters around them, were in the message twice, the headers of the
    request would be compared with other arguments than the tool gets.

    Args:
        before: The message before the arguments.
        after: The message after them.

    Raises:
        NotJson: A parser would find other arguments.
    """
    try:
        params = from_json(b"".join((before, to_json(_STAND_IN), after)))["params"]
    except (ValueError, TypeError, KeyError):
        raise NotJson from None
    if not isinstance(params, dict) or params.get("arguments") != _STAND_IN:
        raise NotJson


def _read(text: bytes, members: dict[tuple[bytes, ...], tuple[int, int]], name: bytes) -> bytes:
    start, end = members.get((name,), (0, 0))
    return text[start:end]


def _read_id(text: bytes) -> str | int | None:
    try:
        request_id = from_json(text)
    except ValueError:
        return None
    return request_id if isinstance(request_id, str) or type(request_id) is int else None
