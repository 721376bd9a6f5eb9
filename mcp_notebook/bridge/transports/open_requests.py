"""The unanswered requests of a stdio client, which a shutdown waits for.

Runs on the bridge's event loop, between a transport's streams and the SDK.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import anyio
import anyio.abc
from mcp_types import jsonrpc

if TYPE_CHECKING:
    from mcp.shared.message import SessionMessage


class Outgoing(Protocol):
    """A stream of messages to a client."""

    async def send(self, item: SessionMessage, /) -> None:
        """Send a message."""

    async def aclose(self) -> None:
        """Close the stream."""


class OpenRequests:
    """The unanswered requests; belongs to the event loop."""

    def __init__(self) -> None:
        self.open_ids: set[jsonrpc.RequestId] = set()
        """Their ids."""
        self._all_answered = anyio.Event()

    async def wait_until_answered(self) -> None:
        """Wait until no request is open."""
        while self.open_ids:
            self._all_answered = anyio.Event()
            await self._all_answered.wait()

    def count_outgoing(self, stream: Outgoing) -> anyio.abc.ObjectSendStream[SessionMessage]:
        """Return a stream that sends the same messages and notes answers."""
        return _CountedOutgoing(stream, self)

    def note_incoming(self, message: jsonrpc.JSONRPCMessage) -> None:
        """Note a request, or its cancellation, after which it may get no answer."""
        match message:
            case jsonrpc.JSONRPCRequest():
                self.open(message.id)
            case jsonrpc.JSONRPCNotification(method="notifications/cancelled"):
                request_id = (message.params or {}).get("requestId")
                if isinstance(request_id, int | str):
                    self.close(request_id)

    def note_outgoing(self, message: jsonrpc.JSONRPCMessage) -> None:
        """Note an answer that has been sent."""
        if (
            isinstance(message, jsonrpc.JSONRPCResponse | jsonrpc.JSONRPCError)
            and message.id is not None
        ):
            self.close(message.id)

    def open(self, request_id: jsonrpc.RequestId) -> None:
        """Note a request."""
        self.open_ids.add(request_id)

    def close(self, request_id: jsonrpc.RequestId) -> None:
        """Note that a request is answered, or will not be."""
        self.open_ids.discard(request_id)
        if not self.open_ids:
            self._all_answered.set()


class _CountedOutgoing(anyio.abc.ObjectSendStream["SessionMessage"]):
    def __init__(self, stream: Outgoing, requests: OpenRequests) -> None:
        self._stream = stream
        self._requests = requests

    async def send(self, item: SessionMessage) -> None:
        await self._stream.send(item)
        self._requests.note_outgoing(item.message)

    async def aclose(self) -> None:
        await self._stream.aclose()
