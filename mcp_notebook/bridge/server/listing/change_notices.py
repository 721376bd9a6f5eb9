"""Notifies clients that a list has changed (tools, prompts...): once per burst, before an answer.

Runs on the bridge's event loop. Clients of the handshake era get a notification in their session,
those of 2026-07-28 through their subscriptions. If a called tool declares another tool, the client
is notified before the answer, so that it can call the new one. A caller is notified only of changes
of what it sees.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import anyio

from mcp_notebook.bridge.access.caller import OWNER, Caller
from mcp_notebook.bridge.server.forms.accommodations import find_accommodation
from mcp_notebook.bridge.server.listing.notification_streams import (
    LIST_NAMES,
    ListName,
    ListsWatcher,
    NotificationStreams,
)
from mcp_notebook.bridge.server.sessions.client_profile import ClientProfile
from mcp_notebook.bridge.server.sessions.client_request import ClientRequest
from mcp_notebook.bridge.server.sessions.client_sessions import ClientSession
from mcp_notebook.protocol.methods import Subscriptions
from mcp_notebook.wire import messages

logger = logging.getLogger(__name__)

CHANGE_DELAY = 0.05
"""Seconds within which several changes of the catalogue become one notification."""
SEND_LIMIT = 1.0
"""Seconds that one client may take to receive a notification."""

LIST_LIMIT, LIST_MARGIN = 1.5, 0.1
"""Seconds that an answer waits until its client lists changed tools, and then until it has them."""
MAX_LISTED = 64
"""Number of clients whose last lists are remembered."""


@dataclass
class _Listener:
    """A client of the handshake era."""

    session: ClientSession
    watcher: ListsWatcher
    last_notice: int
    """The number of the last change that it was notified of."""
    is_busy: bool = False
    """Whether a notification is being sent to it."""


class ChangeNotices:
    """Notifies the clients of one bridge of changes.

    Args:
        list_entries: Returns the tools, prompts or resources that a caller sees: the same object
            until they change.
    """

    def __init__(
        self,
        list_entries: Callable[[Caller, messages.Kind], object],
    ) -> None:
        self._list_entries = list_entries
        self._streams = NotificationStreams()
        self._listeners: dict[ClientSession, _Listener] = {}
        self._last_change = 0
        self._last_published = 0
        self._change = anyio.Event()
        self.on_subscription: Callable[[Caller, str], object] = lambda _caller, _uri: None
        """Called when a stream subscribes to a resource."""
        self._seen = self._list_all()
        self._unpublished: set[ListName] = set()
        self._listed: dict[tuple[str, str], object] = {}
        """The tools that clients that list late listed last, by their callers and programs."""
        self._new_list = anyio.Event()

    def _list_all(self) -> dict[messages.Kind, object]:
        return {kind: self._list_entries(OWNER, kind) for kind in messages.KINDS}

    def note_change(self) -> None:
        """Note that a list has changed; clients are notified soon."""
        before, self._seen = self._seen, self._list_all()
        self._unpublished |= {
            LIST_NAMES[kind] for kind in before if self._seen[kind] is not before[kind]
        }
        self._last_change += 1
        self._change.set()

    def add_session(self, profile: ClientProfile, caller: Caller) -> None:
        """Notify a client of the handshake era from now on."""
        session = profile.connection
        if session in self._listeners or not find_accommodation(profile).hears_of_changes:
            return
        watcher = self._make_watcher(caller)
        self._listeners[session] = _Listener(session, watcher, self._last_published)
        session.call_at_end(self._listeners.pop, session, None)

    async def listen(self, request: ClientRequest, wanted: Subscriptions) -> None:
        """Serve a notification stream until its client or `close` closes it."""
        watcher = self._make_watcher(request.caller)
        for uri in wanted.resource_subscriptions or ():
            self.on_subscription(request.caller, uri)
        await self._streams.serve(request, wanted, watcher)

    def list_subscriptions(self) -> list[tuple[Caller, str]]:
        """Return the resources that streams are subscribed to, each with its caller."""
        return self._streams.list_subscriptions()

    async def publish_update(self, uri: str, is_for: Callable[[Caller], bool]) -> None:
        """Notify the streams that are subscribed to a resource that it has changed."""
        await self._streams.publish_update(uri, is_for)

    def _make_watcher(self, caller: Caller) -> ListsWatcher:
        return ListsWatcher(caller, self._list_entries, self._unpublished)

    def close(self) -> None:
        """End the subscriptions gracefully."""
        self._streams.close()

    async def run(self, first: Callable[[], Awaitable[None]] | None = None) -> None:
        """Notify all clients, once for each burst of changes; runs forever.

        Args:
            first: Waits until clients can get their first list. They are not told of what changed
                before: while Gemini CLI 0.61 waits for its first list of prompts, a notice makes
                it list them twice, and it shows each prompt under two names (2026-11-27).
        """
        if first is not None:
            await first()
            self._forget()
        async with anyio.create_task_group() as tasks:
            while True:
                await self._change.wait()
                await anyio.sleep(CHANGE_DELAY)
                self._change = anyio.Event()
                await self._publish()
                for connection in tuple(self._listeners):
                    # One task each: a client that does not read delays no other.
                    tasks.start_soon(self._notify, connection)

    def _forget(self) -> None:
        """Forget the changes that nobody has been notified of."""
        self._last_published = self._last_change
        self._unpublished.clear()
        self._streams.forget_changes()
        for listener in self._listeners.values():
            listener.last_notice = self._last_change
            listener.watcher.take_changes()

    async def notify_caller(self, request: ClientRequest) -> None:
        """Notify a client of new changes at once, before its answer; let it list the new tools."""
        await self._publish()
        if self._listeners:
            await self._notify(request.connection)
        if not self._listed:
            return
        client = (request.caller.name, request.profile.program)
        tools = self._list_entries(request.caller, "tool")
        if self._listed.get(client, tools) != tools:
            with anyio.move_on_after(LIST_LIMIT):
                while self._listed.get(client) != tools:
                    await self._new_list.wait()
                await anyio.sleep(LIST_MARGIN)
            self._listed[client] = tools

    def note_list(self, request: ClientRequest) -> None:
        """Note that a client is sent the list of tools."""
        if not find_accommodation(request.profile).lists_late:
            return
        client = (request.caller.name, request.profile.program)
        if client not in self._listed and len(self._listed) >= MAX_LISTED:
            self._listed.clear()
        self._listed[client] = self._list_entries(request.caller, "tool")
        self._new_list.set()
        self._new_list = anyio.Event()

    async def broadcast(self, changed: ListName, is_for: Callable[[Caller], bool]) -> None:
        """Notify clients that another list has changed, each for at most a second.

        Args:
            changed: The list.
            is_for: Whose clients are notified.
        """
        await self._streams.publish(changed, is_for)

        async def notify(session: ClientSession) -> None:
            try:
                with anyio.move_on_after(SEND_LIMIT):
                    await session.notify(f"notifications/{changed}/list_changed")
            except Exception:
                logger.debug("a client could not be notified", exc_info=True)
                self._listeners.pop(session, None)

        async with anyio.create_task_group() as tasks:
            for session, listener in tuple(self._listeners.items()):
                if is_for(listener.watcher.caller):
                    tasks.start_soon(notify, session)

    async def _publish(self) -> None:
        if self._last_published != self._last_change:
            self._last_published = self._last_change
            self._unpublished.clear()
            await self._streams.publish_changes()

    async def _notify(self, connection: Any) -> None:
        listener = self._listeners.get(connection)
        if listener is None or listener.is_busy:
            return
        listener.is_busy = True
        try:
            while listener.last_notice != self._last_change:
                listener.last_notice = self._last_change
                for changed in listener.watcher.take_changes():
                    with anyio.move_on_after(SEND_LIMIT):
                        await listener.session.notify(f"notifications/{changed}/list_changed")
        except Exception:
            # The client left without closing.
            logger.debug("a client could not be notified of a change", exc_info=True)
            self._listeners.pop(connection, None)
        finally:
            listener.is_busy = False
