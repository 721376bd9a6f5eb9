"""Notification streams: how many may be open, and which client gets which notifications.

Runs on the bridge's event loop. Clients of 2026-07-28 open one by a request (`OpenStreams.listen`),
those of the handshake era by a GET of the HTTP endpoint, which asks `OpenStreams.shares` for it.
`change_notices` and `resource_notices` decide what to send.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Literal, TypeAlias

import anyio.lowlevel

from mcp_notebook.bridge.access.caller import Caller
from mcp_notebook.bridge.access.caller_limits import Shares
from mcp_notebook.bridge.server.sessions.client_request import ClientRequest
from mcp_notebook.lean_json import to_json
from mcp_notebook.protocol.errors import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    ProtocolError,
)
from mcp_notebook.protocol.methods import ListenParameters, Subscriptions
from mcp_notebook.protocol.versions import SUBSCRIPTION_ID_KEY
from mcp_notebook.settings.limits import Limits
from mcp_notebook.wire import messages

logger = logging.getLogger(__name__)

Serve: TypeAlias = "Callable[[ClientRequest, Subscriptions], Awaitable[None]]"
"""Serves a stream."""
ListName: TypeAlias = Literal["tools", "prompts", "resources"]
"""A list of whose changes clients are notified."""
LIST_NAMES: Mapping[messages.Kind, ListName] = {
    "tool": "tools",
    "prompt": "prompts",
    "resource": "resources",
    "notebook": "tools",
}
MAX_STREAMS = 512
"""Streams of all callers together. Over HTTP, each takes a connection, and many systems allow a
process only 1,024 files and connections."""
MAX_EVENTS = 1_024
"""Events that wait in a stream for its client to read."""
_MEMBERS: Mapping[ListName, str] = {
    "tools": "tools_list_changed",
    "prompts": "prompts_list_changed",
    "resources": "resources_list_changed",
}
"""By list: the member of a filter that asks for its changes."""
MAX_FILTER = 2**14
"""Maximum bytes of the parameters that open a stream: they are kept as long as it is open."""


def check_size(params: Mapping[str, Any] | None) -> None:
    """Check the size of the parameters that open a stream, with those that are not read.

    Raises:
        ProtocolError: They are too large.
    """
    if len(to_json(params)) > MAX_FILTER:
        what = f"The parameters of `subscriptions/listen` can have at most {MAX_FILTER:,} bytes."
        raise ProtocolError(INVALID_PARAMS, what)


class OpenStreams:
    """The open streams of one bridge.

    Args:
        limits: How many may be open.
    """

    def __init__(self, limits: Limits) -> None:
        self.shares = Shares(
            "open streams", per_caller=min(limits.max_caller_calls, MAX_STREAMS), in_all=MAX_STREAMS
        )
        """Counts the streams of each caller."""

    async def listen(
        self, serve: Serve, request: ClientRequest, params: ListenParameters
    ) -> dict[str, Any]:
        """Answer ``subscriptions/listen``: have a stream served until its client closes it.

        Raises:
            ProtocolError: Too many streams are open.
        """
        lack = self.shares.explain_lack(request.caller)
        if lack is not None:
            raise ProtocolError(INTERNAL_ERROR, lack)
        with self.shares.hold(request.caller):
            await serve(request, params.notifications)
        return {"_meta": {SUBSCRIPTION_ID_KEY: request.id}}


class ListsWatcher:
    """Knows which of the lists that one caller sees have changed.

    Args:
        caller: The caller.
        list_entries: Returns the tools, prompts or resources that a caller sees: the same object
            until they change.
        unpublished: The lists whose changes have not been published yet: the client may have read
            one before. Only for a caller who sees everything, as others may not have seen them.
    """

    def __init__(
        self,
        caller: Caller,
        list_entries: Callable[[Caller, messages.Kind], object],
        unpublished: Iterable[ListName] = (),
    ) -> None:
        self.caller = caller
        self._list_entries = list_entries
        self._changed = set(unpublished) if caller.permissions.is_everything else set()
        self._seen = self._list_all()

    def _list_all(self) -> dict[messages.Kind, object]:
        return {kind: self._list_entries(self.caller, kind) for kind in messages.KINDS}

    def take_changes(self) -> list[ListName]:
        """Return the lists that have changed since the last time."""
        before, self._seen = self._seen, self._list_all()
        changed, self._changed = self._changed, set()
        changed |= {LIST_NAMES[kind] for kind in before if self._seen[kind] is not before[kind]}
        return [name for name in dict.fromkeys(LIST_NAMES.values()) if name in changed]


class NotificationStreams:
    """The open notification streams of clients of 2026-07-28."""

    def __init__(self) -> None:
        self._streams: set[_Stream] = set()
        self._is_closed = False

    async def serve(
        self, request: ClientRequest, wanted: Subscriptions, watcher: ListsWatcher
    ) -> None:
        """Serve a stream until its client or `close` closes it."""
        stream = _Stream(request, wanted, watcher)
        self._streams.add(stream)
        if self._is_closed:
            stream.close()  # after its first message
        try:
            await stream.serve()
        finally:
            self._streams.remove(stream)

    def forget_changes(self) -> None:
        """Take the lists as they are now for known."""
        for stream in self._streams:
            stream.watcher.take_changes()

    async def publish_changes(self) -> None:
        """Notify the callers who see a difference in one of their lists."""
        for stream in self._streams:
            for changed in stream.watcher.take_changes():
                stream.publish(changed)
        await anyio.lowlevel.checkpoint()

    async def publish(self, changed: ListName, is_for: Callable[[Caller], bool]) -> None:
        """Notify callers that a list has changed.

        Args:
            changed: The list.
            is_for: Whose streams get the notification.
        """
        for stream in self._streams:
            if is_for(stream.watcher.caller):
                stream.publish(changed)
        await anyio.lowlevel.checkpoint()

    def list_subscriptions(self) -> list[tuple[Caller, str]]:
        """Return the resources that streams are subscribed to, each with the stream's caller."""
        return [(stream.watcher.caller, uri) for stream in self._streams for uri in stream.uris]

    async def publish_update(self, uri: str, is_for: Callable[[Caller], bool]) -> None:
        """Notify subscribers that a resource has changed.

        Args:
            uri: Its URI, as they have subscribed to it.
            is_for: Whose streams get the notification.
        """
        for stream in self._streams:
            if uri in stream.uris and is_for(stream.watcher.caller):
                stream.put("notifications/resources/updated", {"uri": uri})
        await anyio.lowlevel.checkpoint()

    def close(self) -> None:
        """End all streams, also new ones: each sends what it has, and then its answer."""
        self._is_closed = True
        for stream in self._streams:
            stream.close()


class _Stream:
    """One stream: what it tells, and the events that its client has not read yet.

    The steps are those of "Subscriptions" in the specification of 2026-07-28.
    """

    def __init__(
        self, request: ClientRequest, wanted: Subscriptions, watcher: ListsWatcher
    ) -> None:
        self.watcher = watcher
        self.uris = frozenset(wanted.resource_subscriptions or ())
        """The resources that it is subscribed to."""
        self._channel = request.channel
        self._meta = {SUBSCRIPTION_ID_KEY: request.id}
        self._wanted = {
            name: True for name, key in _MEMBERS.items() if getattr(wanted, key) is True
        }
        self._events: deque[tuple[str, dict[str, Any]]] = deque()
        self._is_open = True
        self._change = asyncio.Event()

    async def serve(self) -> None:
        # 1. The first message says what the stream will tell.
        told: dict[str, Any] = {f"{name}ListChanged": True for name in self._wanted}
        if self.uris:
            told["resourceSubscriptions"] = sorted(self.uris)
        acknowledgement = {"notifications": told, "_meta": self._meta}
        await self._channel.notify("notifications/subscriptions/acknowledged", acknowledgement)
        # 2. Each event is a notification with the id of the request.
        while self._events or self._is_open:
            self._change.clear()
            while self._events:
                method, params = self._events.popleft()
                await self._channel.notify(method, {**params, "_meta": self._meta})
            if self._is_open:
                await self._change.wait()

    def publish(self, changed: ListName) -> None:
        """Tell of a changed list, if the client wants that."""
        if changed in self._wanted:
            self.put(f"notifications/{changed}/list_changed", {})

    def put(self, method: str, params: dict[str, Any]) -> None:
        """Add an event; a stream whose client does not read ends, and the client lists again."""
        if self._is_open:
            self._events.append((method, params))
            if len(self._events) >= MAX_EVENTS:
                logger.warning("a notification stream has ended: its client does not read it")
                self._is_open = False
            self._change.set()

    def close(self) -> None:
        """End the stream after its last event."""
        self._is_open = False
        self._change.set()
