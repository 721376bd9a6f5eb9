"""Answers the plain messages of a stdio client; all others are passed on to the SDK.

Runs on the bridge's event loop, which reads the lines. Most clients send only plain messages, and
the SDK is not even loaded for them. Before the SDK handles any other message, it has to know the
client: its first request determines its era, and in the handshake era it opens the session. So that
request is repeated to the SDK (`make_missed`), and the SDK's answer is dropped. From then on, the
SDK also gets the notifications.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Protocol

import anyio
from mcp_types import jsonrpc
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, LATEST_HANDSHAKE_VERSION
from pydantic_core import to_json

from mcp_notebook.bridge.server.listing.pages import LIST_METHODS
from mcp_notebook.bridge.server.server import NotebookServer
from mcp_notebook.bridge.server.sessions.client_profile import read_profile
from mcp_notebook.bridge.server.sessions.client_request import ClientRequest
from mcp_notebook.bridge.server.sessions.client_sessions import (
    MAX_INITIALIZE,
    ClientSession,
    EndReason,
)
from mcp_notebook.bridge.server.sessions.protocol_error import (
    CONNECTION_CLOSED,
    INTERNAL_ERROR,
    ProtocolError,
)
from mcp_notebook.bridge.transports.fast_path.plain_answers import (
    Answer,
    Piece,
    PlainAnswers,
    PlainChannel,
    write_error,
)
from mcp_notebook.bridge.transports.fast_path.plain_requests import (
    CALL,
    DISCOVER,
    INITIALIZE,
    PING,
    PlainRequest,
    has_envelope,
    read_envelope,
    read_plain_notification,
    read_plain_request,
    select_envelope,
)
from mcp_notebook.bridge.transports.open_requests import OpenRequests

if TYPE_CHECKING:
    from mcp_notebook.bridge.server.sessions.client_profile import ClientProfile

_CLOSE_LIMIT = 1.0
"""Seconds that a client has to take the answers to what still runs when it closes stdin."""
_INITIALIZED, _CANCELLED = "notifications/initialized", "notifications/cancelled"
_METHODS = {
    True: {CALL, *LIST_METHODS, DISCOVER},
    False: {CALL, *LIST_METHODS, PING},
    None: {CALL, *LIST_METHODS, DISCOVER, INITIALIZE},
}
"""The methods of plain requests of a client of 2026-07-28, of the handshake era, and before the
first request."""
_WORDS = (
    *(f'"{method}"'.encode() for method in (CALL, *LIST_METHODS, INITIALIZE, DISCOVER, PING)),
    b'"notifications/',
)
"""Every plain message contains one of these."""
_CLOSED = ProtocolError(CONNECTION_CLOSED, "Connection closed")


class SendLine(Protocol):
    """Writes a message to the client."""

    async def __call__(self, *pieces: Piece) -> None:
        """Write the message, given in pieces."""


class PlainStdio:
    """Answers the plain messages of the one client.

    Args:
        server: Answers requests.
        send_line: Writes a message to the client.
        requests: The open requests.
        open_sdk: Connects the SDK to the client, and returns when it knows the client's session.
    """

    def __init__(
        self,
        server: NotebookServer,
        send_line: SendLine,
        requests: OpenRequests,
        open_sdk: Callable[[], Awaitable[None]],
    ) -> None:
        self._server = server
        self._answers = PlainAnswers(server)
        self._send_line = send_line
        self._requests = requests
        self._open_sdk = open_sdk
        self._is_modern: bool | None = None
        """Whether the client is of 2026-07-28 or later; None before its first request."""
        self._uses_sdk = False
        """Whether the SDK has received a message of the client."""
        self._first: PlainRequest | None = None
        """The client's first request if it was answered here."""
        self._session: ClientSession | None = None
        """The client's session if it was opened here."""
        self._is_initialized = False
        """Whether the client has confirmed that session."""
        self._running: set[asyncio.Task[None]] = set()
        self._unwanted: set[asyncio.Task[None]] = set()
        """The tasks whose requests the client has cancelled."""
        self._answering: set[asyncio.Task[None]] = set()
        """The tasks that are no longer cancelled, because their answers are about to be written."""

    def note_message(self, message: jsonrpc.JSONRPCMessage) -> None:
        """Note a message that is passed on to the SDK.

        The first request determines the era. Cancellations are handled here as well: on the way
        through the SDK, the next plain request would overtake them.
        """
        self._uses_sdk = True
        if self._is_modern is None and isinstance(message, jsonrpc.JSONRPCRequest):
            self._is_modern = message.method != INITIALIZE and has_envelope(message.params)
        elif isinstance(message, jsonrpc.JSONRPCNotification) and message.method == _CANCELLED:
            self._server.sessions.cancel(None, message.params)

    def make_missed(self, request_id: str) -> list[dict[str, Any]]:
        """Return the messages from which the SDK learns about the client, to be sent first.

        Args:
            request_id: The id for the request among them, whose answer is not for the client.
        """
        self._uses_sdk = True
        if self._first is None:
            return []
        request: dict[str, Any] = {"jsonrpc": "2.0", "id": request_id}
        if self._is_modern:
            params = {"_meta": select_envelope(self._first.meta)}
            return [request | {"method": DISCOVER, "params": params}]
        missed = [request | {"method": INITIALIZE, "params": dict(self._first.params)}]
        if self._is_initialized:
            missed.append({"jsonrpc": "2.0", "method": _INITIALIZED})
        return missed

    def take(self, line: bytes) -> bool:
        """Begin to answer the message in a line, or return False if it is not plain."""
        if not any(word in line for word in _WORDS):
            return False
        if self._is_modern is None and self._uses_sdk:
            return False  # the SDK has to see the first request
        plain = read_plain_request(line, _METHODS[self._is_modern])
        if plain is None:
            return not self._uses_sdk and self._take_notification(line)
        request = self._recognise(plain)
        if request is None:
            return False
        self._start(plain, request)
        return True

    def _start(self, plain: PlainRequest, request: ClientRequest) -> None:
        """Begin to answer a request."""
        self._requests.open(plain.id)
        task = asyncio.get_running_loop().create_task(self._serve(plain, request))
        self._running.add(task)
        if plain.method in (INITIALIZE, DISCOVER):
            # Answered within a second, even to a client that has closed stdin. MCP forbids clients
            # to cancel `initialize`.
            self._answering.add(task)

        def cancel(reason: EndReason) -> None:
            if reason == "cancelled" and task not in self._answering:
                self._unwanted.add(task)
                task.cancel()

        # Now, as the next line may cancel it; and until the task has ended, as that ends tasks that
        # have not begun.
        registration = ExitStack()
        registration.enter_context(self._server.sessions.run(None, plain.id, cancel))

        def forget(_: asyncio.Task[None]) -> None:
            registration.close()
            if task.cancelled():  # before it had begun
                self._requests.close(plain.id)
            for tasks in (self._running, self._unwanted, self._answering):
                tasks.discard(task)

        task.add_done_callback(forget)

    async def close(self) -> None:
        """Cancel the running requests, tell the client, and end its session."""
        for task in self._running - self._answering:
            task.cancel()
        if self._running:
            with anyio.move_on_after(_CLOSE_LIMIT, shield=True):
                await asyncio.wait(self._running)
        if self._session is not None:
            self._session.end()

    def _take_notification(self, line: bytes) -> bool:
        """Handle a plain notification, or return False if the SDK has to."""
        if self._is_modern is None:
            return False
        notification = read_plain_notification(line, (_INITIALIZED, _CANCELLED))
        if notification is None or has_envelope(notification.params):
            return False
        if notification.method == _CANCELLED:
            request_id = notification.params.get("requestId")
            if not isinstance(request_id, int | str) or isinstance(request_id, bool):
                return False
            self._server.sessions.cancel(None, notification.params)
            self._requests.close(request_id)
            return True
        if self._session is None or self._session.profile is None:
            return False
        self._is_initialized = True
        self._server.clients.add_session(self._session.profile)
        self._server.changes.add_session(self._session.profile, self._server.default_caller)
        return True

    def _recognise(self, plain: PlainRequest) -> ClientRequest | None:
        """Return a plain request of the client's era, or None if the SDK has to answer it."""
        is_modern = self._is_modern
        profile: ClientProfile | None
        if plain.method == INITIALIZE:
            is_modern, profile = False, self._open_session(plain)
        elif is_modern is None or is_modern:
            is_modern, profile = True, read_envelope(plain.meta)
        else:
            session = self._server.sessions.find(None)
            profile = None if session is None or has_envelope(plain.params) else session.profile
        if profile is None:
            return None
        if self._is_modern is None:
            self._is_modern, self._first = is_modern, plain
        return ClientRequest(
            profile=profile,
            id=plain.id,
            caller=self._server.default_caller,
            meta=plain.meta,
            headers=None,
            channel=PlainChannel(
                self._send_line, plain.meta.get("progressToken"), profile.connection
            ),
        )

    def _open_session(self, plain: PlainRequest) -> ClientProfile | None:
        """Open the client's session, or return None if the SDK has to."""
        params = plain.params
        if len(plain.text) > MAX_INITIALIZE or params.get("clientInfo") is None:
            return None
        wanted = params["protocolVersion"]
        version = wanted if wanted in HANDSHAKE_PROTOCOL_VERSIONS else LATEST_HANDSHAKE_VERSION
        profile = read_profile(version, params["clientInfo"], params.get("capabilities"))
        if profile is None:
            return None
        self._session = self._server.sessions.open(None, profile)
        self._session.open_connection = self._open_sdk
        self._session.send_notification = self._notify
        return self._session.profile

    async def _notify(self, method: str, params: dict[str, Any] | None) -> None:
        message = {"jsonrpc": "2.0", "method": method} | (
            {} if params is None else {"params": params}
        )
        await self._send_line(to_json(message))

    async def _serve(self, plain: PlainRequest, request: ClientRequest) -> None:
        task = asyncio.current_task()
        assert task is not None
        try:
            answer = await self._find_answer(plain, request)
            if plain.method == INITIALIZE and answer.error_code is not None:
                self._refuse_session()
            self._answering.add(task)
            await self._send_line(*answer.pieces)
        except asyncio.CancelledError:
            if task not in self._unwanted | self._answering:
                await self._send_line(_CLOSED.write_answer(plain.id))
        finally:
            self._requests.close(plain.id)

    async def _find_answer(self, plain: PlainRequest, request: ClientRequest) -> Answer:
        """Return the answer to a request, unless the client has made too many."""
        excess = self._server.request_rates.take(request.caller)
        if excess is not None:
            return write_error(plain.id, ProtocolError(INTERNAL_ERROR, excess.reason))
        return await self._answers.find(plain, request)

    def _refuse_session(self) -> None:
        """Forget the client's session, which the bridge has refused to open."""
        assert self._session is not None
        self._session.end()
        self._session = self._first = None
