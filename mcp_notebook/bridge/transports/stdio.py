"""MCP over stdin and stdout, for the one client that started this process.

Runs on the bridge's event loop. A message is a line. The client's first request decides the era
of all its messages (https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/stdio):

============  ====================================  =============================================
era           decided by                            then refused
============  ====================================  =============================================
unknown       -                                     -
2026-07-28    a request with the version in its     ``initialize``
              ``_meta``
handshake     any other request, as ``initialize``  a request with the version in its ``_meta``;
                                                    before ``initialize`` all but a ping
============  ====================================  =============================================
"""

from __future__ import annotations

import asyncio
import os
import stat
import sys
from collections.abc import AsyncIterator, Coroutine, Mapping
from contextlib import asynccontextmanager
from typing import Any, Protocol, cast

import anyio
import anyio.to_thread

from mcp_notebook.bridge.server.requests import Answer, Piece, expand, write_error
from mcp_notebook.bridge.server.server import NotebookServer
from mcp_notebook.bridge.server.sessions.client_profile import (
    ClientProfile,
    has_envelope,
    read_envelope,
    refuse_version,
)
from mcp_notebook.bridge.server.sessions.client_request import make_request
from mcp_notebook.bridge.server.sessions.client_sessions import (
    MAX_INITIALIZE,
    TOO_LONG,
    ClientSession,
    EndReason,
)
from mcp_notebook.bridge.transports.blocking_descriptors import ReadingThread, WritingThread
from mcp_notebook.protocol import messages
from mcp_notebook.protocol.errors import (
    CONNECTION_CLOSED,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    ProtocolError,
)
from mcp_notebook.protocol.methods import CANCELLED, DISCOVER, INITIALIZE, INITIALIZED
from mcp_notebook.settings.limits import DEFAULT_LIMITS, Limits

LARGE = 2**20
"""Bytes from which a message is parsed in a thread, also over HTTP. The parser holds the
interpreter, so what bounds the time is `Limits.max_request_bytes`."""
ANSWER_GRACE = 2.0
"""Seconds that clients have to take the last answers when the bridge stops, also over HTTP."""
_CLOSE_LIMIT = 1.0
"""Seconds that a client has to take the answers to what still runs when it closes stdin."""
_AT_ONCE = 16
"""Messages that are taken before control returns to the event loop."""
_CLOSED = ProtocolError(CONNECTION_CLOSED, "Connection closed")


async def serve_stdio(
    server: NotebookServer, *, stop: anyio.Event, limits: Limits = DEFAULT_LIMITS
) -> None:
    """Serve one client over stdin and stdout, until it closes stdin or `stop` is set.

    Only the protocol goes to stdout. Meanwhile, anything else that prints writes to stderr, and
    anything else that reads stdin finds it empty.

    Args:
        server: The server; closed when `stop` is set.
        stop: When it is set, the running calls are answered, and then the streams are closed.
        limits: How large a message may be.
    """
    async with (
        _open_streams(server, limits.max_request_bytes) as incoming,
        anyio.create_task_group() as tasks,
    ):

        async def end() -> None:
            await stop.wait()
            server.close()
            with anyio.move_on_after(ANSWER_GRACE):  # the client may not read
                await incoming.client.wait_until_answered()
            tasks.cancel_scope.cancel()

        tasks.start_soon(end)
        try:
            await incoming.read()
        finally:
            await incoming.client.close()
        tasks.cancel_scope.cancel()


@asynccontextmanager
async def _open_streams(server: NotebookServer, max_bytes: int) -> AsyncIterator[_Incoming]:
    """Reserve stdin and stdout for the block: other code gets substitutes."""
    wire_in, wire_out = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    outgoing = _Outgoing()
    client = StdioClient(server, outgoing.send)
    incoming = _Incoming(asyncio.StreamReader(limit=max_bytes), client, max_bytes)
    reading = await _connect_reader(wire_in, _LineProtocol(incoming))
    writing = await _connect_writer(wire_out, outgoing)
    try:
        yield incoming
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


class _Outgoing(asyncio.Protocol):
    """Messages to stdout, one per line; at most one of them waits in memory for the client."""

    def __init__(self) -> None:
        self._turn = asyncio.Lock()
        self._writable = asyncio.Event()
        self._writable.set()
        self._transport: asyncio.WriteTransport | None = None

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

    async def send(self, *pieces: Piece) -> None:
        """Write a message, which is in pieces, and wait until the client's pipe has it.

        Does nothing when the client is gone: stdin ends as well.
        """
        async with self._turn:
            await self._writable.wait()  # the sender of the last message may have been cancelled
            if self._transport is not None:
                self._transport.writelines([*expand(pieces), b"\n"])  # one system call
                await self._writable.wait()


class SendPieces(Protocol):
    """Sends a message."""

    async def __call__(self, *pieces: Piece) -> None:
        """Send the message, which is in pieces."""


class StdioClient:
    """The client: its era, its session and its running requests.

    Args:
        server: Answers requests.
        send: Sends the client a message, which is in pieces.
    """

    def __init__(self, server: NotebookServer, send: SendPieces) -> None:
        self._server = server
        self._send = send
        self._session = ClientSession(send)
        self._is_modern: bool | None = None
        """Whether the client is of 2026-07-28 or later; None before its first request."""
        self._running: set[asyncio.Task[None]] = set()
        self._unwanted: set[asyncio.Task[None]] = set()
        """The tasks whose requests the client has cancelled."""
        self._answering: set[asyncio.Task[None]] = set()
        """The tasks that are no longer cancelled, because their answers are about to be written."""
        self._all_answered = asyncio.Event()

    def take(self, message: messages.Message) -> None:
        """Take a message; a request is answered in a task."""
        match message:
            case messages.Request():
                try:
                    profile = self._find_profile(message)
                except ProtocolError as error:
                    self._start(message, error)
                else:
                    self._start(message, profile)
            case messages.Answer():
                self._session.take_answer(message)
            case messages.Notification(method=method, params=params):
                self._take_notification(method, params)

    def refuse(self, error: messages.InvalidMessage) -> None:
        """Begin to answer the requests in a line that is not a message."""
        self._run(self._refuse(error))

    async def _refuse(self, error: messages.InvalidMessage) -> None:
        for request_id in error.ids:
            await self._send(error.write_answer(request_id))

    def _run(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._running.add(task)
        task.add_done_callback(self._forget)
        return task

    def _forget(self, task: asyncio.Task[None]) -> None:
        for tasks in (self._running, self._unwanted, self._answering):
            tasks.discard(task)
        if not self._running:
            self._all_answered.set()

    async def wait_until_answered(self) -> None:
        """Wait until no request runs."""
        while self._running:
            self._all_answered.clear()
            await self._all_answered.wait()

    async def close(self) -> None:
        """Cancel the running requests, tell the client, and end its session."""
        for task in self._running - self._answering:
            task.cancel()
        if self._running:
            with anyio.move_on_after(_CLOSE_LIMIT, shield=True):
                await asyncio.wait(self._running)
        self._session.end()

    def _find_profile(self, message: messages.Request) -> ClientProfile:
        """Return the profile of a request's client; see the table at the top.

        Called when the request arrives: the next line may belong to the session that it opens.

        Raises:
            ProtocolError: The request is refused, also because there are too many.
        """
        excess = self._server.request_rates.take(self._server.default_caller)
        if excess is not None:
            raise ProtocolError(INTERNAL_ERROR, excess.reason)
        is_enveloped = message.method != INITIALIZE and has_envelope(message.params)
        if self._is_modern is None:
            self._is_modern = is_enveloped
        if self._is_modern and message.method == INITIALIZE:
            raise refuse_version(str((message.params or {}).get("protocolVersion")))
        if self._is_modern:
            return read_envelope(message.params)
        self._session.check(message)
        profile = self._session.find_profile(message)
        if message.method == INITIALIZE:
            self._session.open(profile)
        return profile

    def _take_notification(self, method: str, params: Mapping[str, Any] | None) -> None:
        profile = self._session.profile
        if method == CANCELLED:
            self._session.cancel(params)
        elif method == INITIALIZED and profile is not None:
            self._server.clients.add_session(profile)
            self._server.changes.add_session(profile, self._server.default_caller)

    def _start(self, message: messages.Request, profile: ClientProfile | ProtocolError) -> None:
        """Begin to answer a request."""
        task = self._run(self._serve(message, profile))
        if message.method in (INITIALIZE, DISCOVER):
            # Answered within a second, even to a client that has closed stdin. MCP forbids clients
            # to cancel `initialize`.
            self._answering.add(task)

        def cancel(reason: EndReason) -> None:
            if reason == "cancelled" and task not in self._answering:
                self._unwanted.add(task)
                task.cancel()

        # Register now, because the next line may cancel the request, and unregister only when the
        # task is done, because a task can be cancelled before it starts.
        task.add_done_callback(self._session.run(message.id, cancel).__exit__)

    async def _serve(
        self, message: messages.Request, profile: ClientProfile | ProtocolError
    ) -> None:
        task = asyncio.current_task()
        assert task is not None
        try:
            answer = await self._find_answer(message, profile)
            self._answering.add(task)
            await self._send(*answer.pieces)
        except asyncio.CancelledError:
            if task not in self._unwanted | self._answering:
                await self._send(_CLOSED.write_answer(message.id))

    async def _find_answer(
        self, message: messages.Request, profile: ClientProfile | ProtocolError
    ) -> Answer:
        """Return the answer to a request, or why it is refused."""
        if isinstance(profile, ProtocolError):
            return write_error(message.id, profile)
        caller = self._server.default_caller
        request = make_request(message, profile, caller, self._send, is_stdio=True)
        return await self._server.requests.answer(message, request)


class _Incoming:
    """Messages from stdin, one per line.

    A line that is not a message is answered with an error: its sender may wait for one.
    """

    def __init__(self, lines: asyncio.StreamReader, client: StdioClient, max_bytes: int) -> None:
        self.lines = lines
        """The input that has not been read."""
        self.is_waiting = False
        """Whether the reader waits for a whole line; part of one may be there already."""
        self.client = client
        """Takes the messages."""
        self._max_bytes = max_bytes
        self._max_quick = min(max_bytes + len(b"\n"), LARGE - 1)

    async def read(self) -> None:
        """Hand over all messages, until the client closes stdin."""
        while True:
            try:
                line = await self._read_line()
            except anyio.EndOfStream:
                return
            if line is None:
                reason = f"A message can have at most {self._max_bytes} bytes."
                self.client.refuse(messages.InvalidMessage(INVALID_REQUEST, reason))
            elif not self.take_quickly(line) and line.strip():
                await self._take(line)
            await asyncio.sleep(0)  # it begins now, however many lines have come in

    async def _take(self, line: bytes) -> None:
        """Take the message in a line, or refuse it."""
        read = messages.read_message
        try:
            is_large = len(line) >= LARGE
            message = await anyio.to_thread.run_sync(read, line) if is_large else read(line)
            self._check_size(message, line)
        except messages.InvalidMessage as error:
            self.client.refuse(error)
        else:
            self.client.take(message)

    def take_quickly(self, line: bytes) -> bool:
        """Take the message in a line; return False if the line is invalid or large."""
        if len(line) > self._max_quick:
            return False
        try:
            message = messages.read_message(line)
            self._check_size(message, line)
        except messages.InvalidMessage:
            return False
        self.client.take(message)
        return True

    def _check_size(self, message: messages.Message, line: bytes) -> None:
        if (
            isinstance(message, messages.Request)
            and message.method == INITIALIZE
            and len(line) > MAX_INITIALIZE
        ):
            raise messages.InvalidMessage(INVALID_PARAMS, TOO_LONG, [message.id])

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


class _LineProtocol(asyncio.StreamReaderProtocol):
    """Reads stdin; no task is woken up for whole messages, unless part of one comes first."""

    def __init__(self, incoming: _Incoming) -> None:
        super().__init__(incoming.lines)
        self._incoming = incoming
        self._is_in_line = False
        """Whether the next data continues a line."""

    def data_received(self, data: bytes) -> None:
        for _ in range(_AT_ONCE):
            end = data.find(b"\n") + 1
            is_next = self._incoming.is_waiting and not self._is_in_line
            if not (end and is_next and self._incoming.take_quickly(data[:end])):
                break
            data = data[end:]
        if data:
            self._incoming.is_waiting = False
            self._is_in_line = not data.endswith(b"\n")
            super().data_received(data)
