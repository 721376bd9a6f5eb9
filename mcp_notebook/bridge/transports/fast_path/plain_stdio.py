"""Answers the plain requests of a stdio client; all other messages go on to the SDK.

Runs on the bridge's event loop, where lines come in. The SDK decides by the first request which era
its client is of, so that one always goes on, and in the older era everything does until the client
has a session.
"""

import asyncio
from typing import Protocol

import anyio
import mcp_types as types

from mcp_notebook.bridge.server.protocol.base64_text import Piece
from mcp_notebook.bridge.server.protocol.client_request import ClientRequest
from mcp_notebook.bridge.server.protocol.client_sessions import EndReason
from mcp_notebook.bridge.server.server import NotebookServer
from mcp_notebook.bridge.transports.fast_path.plain_answers import PlainAnswers, write_error
from mcp_notebook.bridge.transports.fast_path.plain_channel import PlainChannel
from mcp_notebook.bridge.transports.fast_path.plain_requests import (
    METHODS,
    PlainRequest,
    has_envelope,
    read_envelope,
    read_plain_request,
)
from mcp_notebook.bridge.transports.open_requests import OpenRequests

_CLOSE_LIMIT = 1.0
"""Seconds that a client has to take the answers to what still runs when it closes stdin."""
_CANCEL = "notifications/cancelled"
_CLOSED = types.ErrorData(code=types.CONNECTION_CLOSED, message="Connection closed")


class SendLine(Protocol):
    """Writes a message to the client."""

    async def __call__(self, *pieces: Piece) -> None:
        """Write it."""


class PlainStdio:
    """The plain requests of the one client.

    Args:
        server: Knows the answers.
        send_line: Writes a message to the client.
        requests: Notes which requests are open.
    """

    def __init__(self, server: NotebookServer, send_line: SendLine, requests: OpenRequests) -> None:
        self._server = server
        self._answers = PlainAnswers(server)
        self._send_line = send_line
        self._requests = requests
        self._is_modern: bool | None = None
        """Of which era the client is; None before its first request."""
        self._running: set[asyncio.Task[None]] = set()
        self._unwanted: set[asyncio.Task[None]] = set()
        """Those whose answer the client does not want any more."""
        self._answering: set[asyncio.Task[None]] = set()
        """Those whose answer is being written."""

    def note_message(self, message: types.JSONRPCMessage) -> None:
        """Note a message that goes on to the SDK.

        The first request decides about the era. A cancellation is passed on here, because the next
        plain request would overtake it on its way through the SDK.
        """
        if self._is_modern is None and isinstance(message, types.JSONRPCRequest):
            self._is_modern = message.method != "initialize" and has_envelope(message.params)
        elif isinstance(message, types.JSONRPCNotification) and message.method == _CANCEL:
            self._server.sessions.cancel(None, message.params)

    def take(self, line: bytes) -> bool:
        """Begin to answer the request in a line, or return False if it is not plain."""
        if self._is_modern is None or not any(method in line for method in METHODS):
            return False
        plain = read_plain_request(line)
        request = None if plain is None else self._recognise(plain)
        if plain is None or request is None:
            return False
        self._requests.open(plain.id)
        task = asyncio.get_running_loop().create_task(self._serve(plain, request))
        self._running.add(task)
        task.add_done_callback(self._forget)
        return True

    async def close(self) -> None:
        """Cancel what still runs, and tell the client."""
        for task in self._running - self._answering:
            task.cancel()
        if self._running:
            with anyio.move_on_after(_CLOSE_LIMIT, shield=True):
                await asyncio.wait(self._running)

    def _recognise(self, plain: PlainRequest) -> ClientRequest | None:
        """Return a plain request of the client's era, or None if it is of the other one."""
        if self._is_modern:
            profile = read_envelope(plain.meta)
            if profile is None:
                return None
        else:
            session = self._server.sessions.find(None)
            if session is None or has_envelope(plain.params):
                return None
            profile = session.profile
        return ClientRequest(
            profile=profile,
            id=plain.id,
            caller=self._server.default_caller,
            meta=plain.meta,
            text=plain.long_text,
            headers=None,
            channel=PlainChannel(
                self._send_line, plain.meta.get("progressToken"), profile.connection
            ),
        )

    async def _serve(self, plain: PlainRequest, request: ClientRequest) -> None:
        task = asyncio.current_task()
        assert task is not None

        def end(reason: EndReason) -> None:
            if reason == "cancelled":
                self._unwanted.add(task)
                task.cancel()

        try:
            with self._server.sessions.run(None, plain.id, end):
                answer = await self._answers.find(plain, request)
            self._answering.add(task)
            await self._send_line(*answer.pieces)
        except asyncio.CancelledError:
            if task not in self._unwanted | self._answering:
                await self._send_line(*write_error(plain.id, _CLOSED).pieces)
        finally:
            self._requests.close(plain.id)

    def _forget(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        self._unwanted.discard(task)
        self._answering.discard(task)
