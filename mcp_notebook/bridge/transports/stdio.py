"""MCP over stdin and stdout, for the one client that started this process.

Runs on the bridge's event loop. The SDK is loaded, in a thread, when a message comes that
`fast_path` does not answer. Meanwhile, lines are read on: plain requests are answered, and other
messages are queued for the SDK.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import stat
import sys
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import anyio
import anyio.abc
import anyio.to_thread
from mcp_types import jsonrpc
from pydantic_core import ValidationError, from_json

from mcp_notebook.bridge.access.caller import OWNER, SCOPE_KEY, Caller
from mcp_notebook.bridge.server.server import NotebookServer
from mcp_notebook.bridge.server.sessions.protocol_error import (
    CONNECTION_CLOSED,
    INVALID_REQUEST,
    PARSE_ERROR,
    ProtocolError,
)
from mcp_notebook.bridge.transports.blocking_descriptors import ReadingThread, WritingThread
from mcp_notebook.bridge.transports.fast_path.plain_answers import Piece, expand
from mcp_notebook.bridge.transports.fast_path.plain_stdio import PlainStdio
from mcp_notebook.bridge.transports.open_requests import OpenRequests
from mcp_notebook.bridge.transports.request_bodies import LARGE
from mcp_notebook.errors import McpNotebookError
from mcp_notebook.lean_imports import frozen_heap
from mcp_notebook.settings.limits import DEFAULT_LIMITS, Limits

if TYPE_CHECKING:
    from mcp.shared.message import SessionMessage

ANSWER_GRACE = 2.0
"""Seconds that clients have to take the last answers when the bridge stops, also over HTTP."""
_CLOSE_LIMIT = 1.0
"""Seconds that a client has to take the errors for what the SDK has not received at the end."""
_AT_ONCE = 16
"""Plain requests that are started before control returns to the event loop."""
_NO_MESSAGE = "This is not a JSON-RPC 2.0 message."


async def serve_stdio(
    server: NotebookServer,
    *,
    stop: anyio.Event,
    limits: Limits = DEFAULT_LIMITS,
    short_way: bool = True,
) -> None:
    """Serve one client over stdin and stdout, until it closes stdin or `stop` is set.

    Only the protocol goes to stdout. Meanwhile, anything else that prints writes to stderr, and
    anything else that reads stdin finds it empty.

    Args:
        server: The server; closed at the end.
        stop: When it is set, the running calls are answered, and then the streams are closed.
        limits: How large a message may be.
        short_way: Whether plain requests are answered without the SDK.
    """
    async with (
        _open_streams(limits.max_request_bytes) as (incoming, outgoing),
        anyio.create_task_group() as tasks,
    ):
        requests = incoming.requests
        incoming.caller = server.default_caller
        if short_way:
            incoming.plain = PlainStdio(server, outgoing.send_line, requests, incoming.open_sdk)

        async def end() -> None:
            await stop.wait()
            server.close()
            with anyio.move_on_after(ANSWER_GRACE):  # the client may not read
                await requests.wait_until_answered()
            tasks.cancel_scope.cancel()

        tasks.start_soon(end)
        tasks.start_soon(incoming.read)
        try:
            if await incoming.wait_for_sdk():
                await anyio.to_thread.run_sync(_load_sdk, abandon_on_cancel=True)
                incoming.repeat_missed()
                await _run_sdk(server, incoming, requests.count_outgoing(outgoing))
        finally:
            await incoming.close()
        tasks.cancel_scope.cancel()


def _load_sdk() -> None:
    """Import the SDK."""
    with frozen_heap():
        from mcp_notebook.bridge.server import sdk_server  # noqa: F401, PLC0415 - see `postponed_sdk`


async def _run_sdk(
    server: NotebookServer,
    incoming: anyio.abc.ObjectReceiveStream[SessionMessage | Exception],
    outgoing: anyio.abc.ObjectSendStream[SessionMessage],
) -> None:
    """Have the SDK serve the client until it closes stdin."""
    await server.mcp.run(incoming, outgoing, server.mcp.create_initialization_options())


@asynccontextmanager
async def _open_streams(max_bytes: int) -> AsyncIterator[tuple[_Incoming, _Outgoing]]:
    """Reserve stdin and stdout for the block: other code gets substitutes."""
    wire_in, wire_out = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    outgoing = _Outgoing()
    incoming = _Incoming(asyncio.StreamReader(limit=max_bytes), outgoing, max_bytes)
    reading = await _connect_reader(wire_in, _LineProtocol(incoming))
    writing = await _connect_writer(wire_out, outgoing)
    try:
        yield incoming, outgoing
    finally:
        reading.close()
        writing.close()
        os.dup2(wire_in, 0)
        os.dup2(wire_out, 1)


async def _connect_reader(descriptor: int, protocol: asyncio.Protocol) -> asyncio.ReadTransport:
    if not _can_poll(descriptor):
        return ReadingThread(descriptor, protocol)
    # A duplicate: uvloop's transports close their descriptors when the client leaves, whatever
    # `closefd` says (True would close them twice).
    pipe = os.fdopen(os.dup(descriptor), "rb", 0, closefd=False)
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, pipe)
    return transport


async def _connect_writer(descriptor: int, protocol: _Outgoing) -> asyncio.WriteTransport:
    if not _can_poll(descriptor):
        return WritingThread(descriptor, protocol)
    pipe = os.fdopen(os.dup(descriptor), "wb", 0, closefd=False)
    transport, _ = await asyncio.get_running_loop().connect_write_pipe(lambda: protocol, pipe)
    return transport


def _can_poll(descriptor: int) -> bool:
    """Return whether the event loop can wait for a descriptor."""
    mode = os.fstat(descriptor).st_mode
    return sys.platform != "win32" and (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode))


class _Outgoing(asyncio.Protocol, anyio.abc.ObjectSendStream["SessionMessage"]):
    """Messages to stdout, one per line; at most one of them waits in memory for the client."""

    def __init__(self) -> None:
        self._turn = asyncio.Lock()
        self._writable = asyncio.Event()
        self._writable.set()
        self._transport: asyncio.WriteTransport | None = None
        self.dropped_id: str | None = None
        """The id of a request whose answer is discarded."""
        self.is_dropped = asyncio.Event()
        """Set when that answer has come."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.WriteTransport", transport)
        self._transport.set_write_buffer_limits(high=0)  # writable means that all is written

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        self._transport = None
        self._writable.set()

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    async def send(self, item: SessionMessage) -> None:
        """Write a message, and wait until the client's pipe has it.

        Does nothing when the client is gone: stdin ends as well.
        """
        if self.dropped_id is not None and getattr(item.message, "id", None) == self.dropped_id:
            self.dropped_id = None
            self.is_dropped.set()
            return
        # Straight to bytes: as text, a large picture would be copied twice more.
        await self.send_line(
            jsonrpc.jsonrpc_message_adapter.dump_json(
                item.message, by_alias=True, exclude_unset=True
            )
        )

    async def send_line(self, *pieces: Piece) -> None:
        """Write a message, which is in pieces, as `send` does."""
        async with self._turn:
            if self._transport is None:
                return
            self._transport.writelines([*expand(pieces), b"\n"])  # one system call
            await self._writable.wait()

    async def aclose(self) -> None:
        """Do nothing: everything is written already."""


@dataclass(frozen=True)
class _StdioRequest:
    """Stands for the HTTP request of a request over stdio."""

    scope: dict[str, Any]


class _Incoming(anyio.abc.ObjectReceiveStream["SessionMessage | Exception"]):
    """Messages from stdin, one per line.

    A line that is not a message is answered with an error. The SDK would drop it, and its sender
    would wait forever.
    """

    def __init__(self, lines: asyncio.StreamReader, outgoing: _Outgoing, max_bytes: int) -> None:
        self.lines = lines
        """The input that has not been read."""
        self.is_waiting = False
        """Whether the reader waits for a whole line; part of one may be there already."""
        self.outgoing = outgoing
        """Takes the errors."""
        self._max_bytes = max_bytes
        self._max_plain = min(max_bytes + len(b"\n"), LARGE - 1)
        self.plain: PlainStdio | None = None
        """Answers plain messages in place of the SDK; None: the SDK answers all messages."""
        self.caller: Caller = OWNER
        """The caller of all requests."""
        self.requests = OpenRequests()
        """The open requests that were passed on to the SDK."""
        self._needs_sdk = False
        self._is_decided = asyncio.Event()
        """Set when the SDK is needed, or will not be because the client has left."""
        self._queue: asyncio.Queue[jsonrpc.JSONRPCMessage | None] = asyncio.Queue()
        """The messages for the SDK; None when the client has closed stdin."""
        self._missed: deque[SessionMessage] = deque()
        """Messages that the SDK has to get before those."""

    async def read(self) -> None:
        """Answer plain messages and queue all others, until the client closes stdin."""
        try:
            while True:
                received = await self._receive_line()
                if received is None:
                    continue
                self.requests.note_incoming(received)
                if self.plain is not None:
                    self.plain.note_message(received)
                self._queue.put_nowait(received)
                self._need_sdk()
        except anyio.EndOfStream:
            self._queue.put_nowait(None)
            self._is_decided.set()

    def _need_sdk(self) -> None:
        self._needs_sdk = True
        self._is_decided.set()

    async def wait_for_sdk(self) -> bool:
        """Wait until the SDK is needed; return False if the client has left before.

        It is needed when a message comes that is not plain, or when a tool has a question for the
        user.
        """
        await self._is_decided.wait()
        return self._needs_sdk

    async def open_sdk(self) -> None:
        """Have the SDK serve the client, and wait until it knows the client's session."""
        self._need_sdk()
        await self.outgoing.is_dropped.wait()

    def repeat_missed(self) -> None:
        """Have the SDK receive the messages that it needs and has not seen."""
        if self.plain is None:
            return
        from mcp.shared.message import ServerMessageMetadata, SessionMessage  # noqa: PLC0415

        request_id = secrets.token_hex(16)
        for form in self.plain.make_missed(request_id):
            self.outgoing.dropped_id = request_id
            message = jsonrpc.jsonrpc_message_adapter.validate_python(form, by_name=False)
            # Its caller is in the scope, as over HTTP: it is not counted again.
            scope = _StdioRequest({SCOPE_KEY: self.caller})
            self._missed.append(
                SessionMessage(message, ServerMessageMetadata(request_context=scope))
            )

    async def receive(self) -> SessionMessage:
        """Return the next message for the SDK.

        Raises:
            EndOfStream: The client closed stdin.
        """
        from mcp.shared.message import SessionMessage  # noqa: PLC0415

        if self._missed:
            return self._missed.popleft()
        received = await self._queue.get()
        if received is None:
            raise anyio.EndOfStream
        return SessionMessage(received)

    async def close(self) -> None:
        """Cancel the plain requests that still run, and refuse those that the SDK did not get."""
        with anyio.move_on_after(_CLOSE_LIMIT, shield=True):
            while not self._queue.empty():
                received = self._queue.get_nowait()
                if (
                    received is not None  # asked first: without a message nothing is loaded
                    and isinstance(received, jsonrpc.JSONRPCRequest)
                    and received.id in self.requests.open_ids  # else it is cancelled
                ):
                    await self._refuse(CONNECTION_CLOSED, "Connection closed", received.id)
        if self.plain is not None:
            await self.plain.close()

    async def _receive_line(self) -> jsonrpc.JSONRPCMessage | None:
        """Return the message in the next line, or None if it needs nothing more."""
        line = await self._read_line()
        if line is None:
            reason = f"A message can have at most {self._max_bytes} bytes."
            await self._refuse(INVALID_REQUEST, reason)
        elif self.take_plain(line):
            await asyncio.sleep(0)  # it begins now, however many lines have come in
        elif line.strip():
            try:
                if len(line) < LARGE:
                    return _parse(line)
                return await anyio.to_thread.run_sync(_parse, line)
            except _OddRequestId as error:
                await self._refuse(INVALID_REQUEST, str(error))
            except ValidationError as error:
                code, reason, request_ids = _explain_invalid_line(line, error)
                for request_id in request_ids:
                    await self._refuse(code, reason, request_id)
        return None

    async def _refuse(
        self, code: int, reason: str, request_id: jsonrpc.RequestId | None = None
    ) -> None:
        """Answer a message with an error."""
        await self.outgoing.send_line(ProtocolError(code, reason).write_answer(request_id))

    async def aclose(self) -> None:
        """Do nothing: stdin is closed where it was opened."""

    async def _read_line(self) -> bytes | None:
        """Return the next line, or None in place of one that is too long."""
        too_long = False
        while True:
            try:
                self.is_waiting = True
                line = await self.lines.readuntil(b"\n")
            except asyncio.LimitOverrunError as overrun:
                await self.lines.readexactly(overrun.consumed)
                too_long = True
                continue
            except asyncio.IncompleteReadError as end:
                if not end.partial:
                    raise anyio.EndOfStream from None
                line = end.partial
            finally:
                self.is_waiting = False
            return None if too_long else line

    def take_plain(self, line: bytes) -> bool:
        """Begin to answer the plain request in a line, or return False if it is anything else."""
        return self.plain is not None and len(line) <= self._max_plain and self.plain.take(line)


class _LineProtocol(asyncio.StreamReaderProtocol):
    """Reads stdin; no task is woken up for plain requests, unless something else comes first."""

    def __init__(self, incoming: _Incoming) -> None:
        super().__init__(incoming.lines)
        self._incoming = incoming
        self._is_in_line = False
        """Whether the next data continues a line."""

    def data_received(self, data: bytes) -> None:
        for _ in range(_AT_ONCE):
            end = data.find(b"\n") + 1
            is_next = self._incoming.is_waiting and not self._is_in_line
            if not (end and is_next and self._incoming.take_plain(data[:end])):
                break
            data = data[end:]
        if data:
            self._incoming.is_waiting = False
            self._is_in_line = not data.endswith(b"\n")
            super().data_received(data)


class _OddRequestId(McpNotebookError):
    """A request's id has a type that MCP does not allow. Its sender waits for an answer."""

    def __init__(self) -> None:
        super().__init__("A request's id is a text or a whole number.")


def _parse(line: bytes) -> jsonrpc.JSONRPCMessage:
    """Return the message in a line.

    Raises:
        ValidationError: It is not a message.
        _OddRequestId: It is one but for its id, without which the SDK takes it for a notification.
    """
    message = jsonrpc.jsonrpc_message_adapter.validate_json(line, by_name=False)
    if isinstance(message, jsonrpc.JSONRPCNotification) and "id" in from_json(line):
        raise _OddRequestId
    return message


def _explain_invalid_line(
    line: bytes, error: ValidationError
) -> tuple[int, str, list[jsonrpc.RequestId | None]]:
    """Return the code and the text of the error for an invalid line, and the ids of its requests.

    Each request is to be answered with the error; None stands for one without a usable id.
    """
    try:
        # More lenient than the parser that refused the line, for example about lone surrogates.
        content = json.loads(line.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        content = None
    first = error.errors(include_url=False, include_input=False)[0]
    if first["type"] == "json_invalid":
        code, reason = PARSE_ERROR, f"{first['msg']}."
    elif isinstance(content, list):
        code, reason = (
            INVALID_REQUEST,
            "Batches are not supported: send one message per line.",
        )
    else:
        code, reason = INVALID_REQUEST, _NO_MESSAGE
    requests = [
        item
        for item in (content if isinstance(content, list) else [content])
        if isinstance(item, dict) and "method" in item
    ]
    return code, reason, [_read_id(request) for request in requests or [{}]]


def _read_id(request: dict[str, Any]) -> jsonrpc.RequestId | None:
    """Return a request's id, or None if it has none that can be sent back."""
    request_id = request.get("id")
    if isinstance(request_id, str):
        return request_id if request_id.isprintable() else None  # rejects lone surrogates
    return request_id if type(request_id) is int else None
