"""The session of a client that uses ``initialize`` (up to 2025-11-25), and its renewal.

Runs on the event loop of `mcp-notebook connect`. A server that was restarted, or whose session has
expired, answers 404. Then the client's ``initialize`` is sent again with the client's other
settings, and the client is notified that all lists may have changed. It notices nothing else.
"""

import logging
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Any

import anyio

from mcp_notebook.bridge.connect.messages import Message, as_object, make_message
from mcp_notebook.bridge.connect.remote import (
    STEADY,
    Remote,
    Reply,
    StopNotes,
    ask,
    check_session,
    explain_reply,
    list_pauses,
)
from mcp_notebook.errors import NotebookNotOpen, RemoteError, SessionLost
from mcp_notebook.protocol.headers import SESSION_HEADER, VERSION_HEADER

logger = logging.getLogger(__name__)

_GOODBYE_LIMIT = 2.0
"""Seconds that the server has to end the session when the client has disconnected."""
_KINDS = ("tools", "resources", "prompts")
_INITIALIZED = make_message({"method": "notifications/initialized"})
_NO_STREAM = (400, 404, 405, 406, 501)
"""Statuses of a server without a session, or without a stream outside of requests."""


class Session:
    """The session of this process, once the client has opened it.

    Args:
        remote: The server.
        send: Sends a message to the client.
    """

    def __init__(self, remote: Remote, send: Callable[[Message], Awaitable[None]]) -> None:
        self._remote = remote
        self._send = send
        self._initialize: Message | None = None
        self._version = ""
        self._id: str | None = None
        self._capabilities: Any = {}
        self._repeated: dict[str, Message] = {}
        """Requests to repeat in a new session: the log level, the subscribed resources."""
        self._renewing = anyio.Lock()
        self._next = anyio.Event()
        """Set when there is another session."""
        self.number = 0
        """The number of the session; a renewed session has another one."""
        self.is_lost = False

    @property
    def headers(self) -> dict[str, str]:
        """The headers of all its messages."""
        headers = {VERSION_HEADER: self._version} if self._version else {}
        return headers | ({SESSION_HEADER: self._id} if self._id else {})

    def note_opened(self, request: Message, answer: Message, reply: Reply) -> None:
        """Remember the answer to the client's ``initialize``."""
        if "error" not in answer.content:
            self._initialize = request
            self._take(answer, reply)

    def note_request(self, request: Message) -> None:
        """Remember a request to repeat in a new session."""
        if request.method == "logging/setLevel":
            self._repeated[request.method] = request
        elif request.method == "resources/subscribe":
            self._repeated[str(request.params.get("uri"))] = request
        elif request.method == "resources/unsubscribe":
            self._repeated.pop(str(request.params.get("uri")), None)

    def note_lost(self, number: int) -> None:
        """Note that the server does not know the session of this number."""
        if number == self.number and self._initialize is not None:
            self.is_lost = True

    async def renew(self) -> None:
        """Renew a lost session, and notify the client that lists may have changed.

        Raises:
            RemoteError: The session cannot be renewed now.
        """
        async with self._renewing:
            if not self.is_lost:
                return
            assert self._initialize is not None
            answer, reply = await ask(self._remote, self._initialize, {})
            version = answer.result.get("protocolVersion")
            if version != self._version:
                raise RemoteError(
                    f"The server at {self._remote.url} was restarted, and no longer supports the "
                    f"protocol version of this client ({self._version}). Restart the client."
                )
            self._take(answer, reply)
            async with self._remote.post(_INITIALIZED.body, self.headers):
                pass
            for number, request in enumerate(self._repeated.values()):
                content = {**request.content, "id": f"mcp-notebook connect {number}"}
                await ask(self._remote, make_message(content), self.headers)
            self.is_lost = False
        await self._announce_changes()

    async def hear(self) -> None:
        """Forward what the server sends outside of requests; return if it sends nothing."""
        pauses, has_missed = list_pauses(), False
        stops = StopNotes()
        while True:
            number, began = self.number, anyio.current_time()
            try:
                await self.renew()
                async with self._remote.listen(self.headers) as reply:
                    if not await self._has_stream(reply):
                        return
                    stops.forget()
                    if has_missed:
                        await self._announce_changes()
                    has_missed = True
                    async for message in reply.read():
                        if not message.is_answer:  # answers come with their requests
                            await self._send(message)
            except SessionLost:
                self.note_lost(number)
                has_missed = False  # `renew` notifies the client
            except RemoteError as error:
                stops.note(error)
                logger.debug("no stream: %s", error)
                await self._wait_if_closed(error)
            if anyio.current_time() - began > STEADY:
                pauses = list_pauses()
            await anyio.sleep(next(pauses))

    async def _wait_if_closed(self, error: RemoteError) -> None:
        """Wait for another session if the notebook is closed: the client's next request opens it.

        Asking again would keep an idle server alive.
        """
        if isinstance(error, NotebookNotOpen) and self._remote.ends_when_idle:
            await self._next.wait()

    async def _has_stream(self, reply: Reply) -> bool:
        """Return whether a reply is a stream; False if the server supports none.

        Raises:
            RemoteError: It may be one later.
        """
        check_session(reply, self.headers, self._remote)
        if reply.status != HTTPStatus.OK and reply.status not in _NO_STREAM:
            raise await explain_reply(self._remote, reply)
        return reply.status == HTTPStatus.OK

    async def close(self) -> None:
        """End the session when the client has disconnected."""
        if self._id is not None and not self.is_lost:
            with anyio.move_on_after(_GOODBYE_LIMIT, shield=True):
                try:
                    await self._remote.delete(self.headers)
                except RemoteError as error:
                    logger.debug("the session was not ended: %s", error)

    def _take(self, answer: Message, reply: Reply) -> None:
        self._id = reply.headers.get(SESSION_HEADER)
        self._version = str(answer.result.get("protocolVersion", ""))
        self._capabilities = as_object(answer.result.get("capabilities"))
        self.number += 1
        self._next.set()
        self._next = anyio.Event()

    async def _announce_changes(self) -> None:
        for kind in _KINDS:
            if as_object(self._capabilities.get(kind)).get("listChanged"):
                await self._send(make_message({"method": f"notifications/{kind}/list_changed"}))
