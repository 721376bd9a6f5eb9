"""Subscriptions to single resources: who has them, and who is told of a change.

Runs on the bridge's event loop. Clients of the handshake era subscribe by ``resources/subscribe``,
those of 2026-07-28 by a stream (`notification_streams`). Subscribers are notified when the kernel
reports a change (`messages.ResourcesChanged`), when the declaration changes, and when the resource
appears or disappears; once for each burst of changes.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import anyio
from msgspec import structs

from mcp_notebook.bridge.access.caller import Caller
from mcp_notebook.bridge.access.caller_limits import Shares
from mcp_notebook.bridge.server.listing.change_notices import SEND_LIMIT, ChangeNotices
from mcp_notebook.bridge.server.resources.declared_resources import DeclaredResources, FoundResource
from mcp_notebook.bridge.server.sessions.client_request import ClientRequest
from mcp_notebook.bridge.server.sessions.client_sessions import ClientSession
from mcp_notebook.errors import UnknownResource
from mcp_notebook.protocol.errors import INTERNAL_ERROR, INVALID_PARAMS, ProtocolError
from mcp_notebook.protocol.methods import UriParameters
from mcp_notebook.wire import messages

logger = logging.getLogger(__name__)

MAX_SUBSCRIPTIONS = 4_000
"""Maximum subscriptions of all clients of one caller in the handshake era."""
MAX_URI = 2_000
"""Maximum length of a URI in a subscription."""
MIN_FORGOTTEN = 1_000
"""Declarations that are kept, whether or not their subscriptions have ended."""
CHANGE_DELAY = 0.05
"""Seconds within which several changes become one notification."""


@dataclass(frozen=True)
class _Change:
    kernel_id: str
    """The id in the catalogue."""
    message: messages.ResourcesChanged


class ResourceSubscriptions:
    """Tells the clients of one bridge of changes of the resources that they subscribe to.

    Args:
        changes: Knows the streams of the clients of 2026-07-28.
        declared: The resources.
    """

    def __init__(self, changes: ChangeNotices, declared: DeclaredResources) -> None:
        self._changes = changes
        self._declared = declared
        self._sessions: dict[ClientSession, tuple[Caller, dict[str, None]]] = {}
        """The subscriptions of clients of the handshake era."""
        self._shares = Shares("subscriptions to resources", per_caller=MAX_SUBSCRIPTIONS)
        """Counts them for each caller."""
        self._tools: dict[tuple[str, str], messages.ToolInfo | None] = {}
        """The declaration behind each subscription, by the caller and the URI, as last told."""
        self._most_tools = MIN_FORGOTTEN
        """How many of these make those without a subscription be forgotten."""
        self._pending: list[_Change] = []
        self._change = anyio.Event()

    async def subscribe(self, request: ClientRequest, params: UriParameters) -> dict[str, Any]:
        """Answer ``resources/subscribe``."""
        session, uri = request.profile.connection, params.uri
        if len(uri) > MAX_URI:
            raise ProtocolError(INVALID_PARAMS, f"The URI is longer than {MAX_URI:,} characters.")
        if session.has_ended:
            return {}
        if session not in self._sessions:
            self._sessions[session] = request.caller, {}
            session.call_at_end(self._forget, session)
        caller, uris = self._sessions[session]
        if uri not in uris:
            lack = self._shares.explain_lack(caller)
            if lack is not None:
                raise ProtocolError(INTERNAL_ERROR, lack)
            self._shares.add(caller)
            uris[uri] = None
        self.note_declaration(caller, uri)
        return {}

    async def unsubscribe(self, request: ClientRequest, params: UriParameters) -> dict[str, Any]:
        """Answer ``resources/unsubscribe``; a URI without a subscription is ignored."""
        caller, uris = self._sessions.get(request.profile.connection, (request.caller, {}))
        if params.uri in uris:
            del uris[params.uri]
            self._shares.remove(caller)
        return {}

    def _forget(self, session: ClientSession) -> None:
        """Forget a client that has left, with its subscriptions."""
        if session in self._sessions:
            caller, uris = self._sessions.pop(session)
            for _ in uris:
                self._shares.remove(caller)

    def note_kernel_change(self, entry_id: str, message: messages.ResourcesChanged) -> None:
        """Note that a kernel's resources may have changed; clients are told soon."""
        self._pending.append(_Change(entry_id, message))
        self._change.set()

    def note_declarations(self) -> None:
        """Note that the catalogue has changed; clients are told soon."""
        self._change.set()

    async def run(self) -> None:
        """Tell clients, once for each burst of changes; runs forever."""
        while True:
            await self._change.wait()
            await anyio.sleep(CHANGE_DELAY)
            self._change = anyio.Event()
            pending, self._pending = self._pending, []
            await self._tell(pending)

    async def _tell(self, pending: list[_Change]) -> None:
        known, told = {}, set()
        for caller, uri in self._list_subscriptions():
            found = self._find(caller, uri)
            key, tool = (caller.owns, uri), _get_declaration(found)
            known[key] = tool
            is_new = key in self._tools and self._tools[key] != tool
            if is_new or any(_concerns(change, found, uri) for change in pending):
                told.add(key)
        self._tools = known
        self._most_tools = 2 * len(known) + MIN_FORGOTTEN
        for owner, uri in told:
            await self._changes.publish_update(uri, partial(_is, owner))
        async with anyio.create_task_group() as tasks:
            for session, (caller, uris) in tuple(self._sessions.items()):
                changed = [uri for uri in uris if (caller.owns, uri) in told]
                if changed:
                    tasks.start_soon(self._notify, session, changed)

    async def _notify(self, session: ClientSession, uris: list[str]) -> None:
        try:
            with anyio.move_on_after(SEND_LIMIT):
                for uri in uris:
                    await session.notify("notifications/resources/updated", {"uri": uri})
        except Exception:
            # The client left without closing.
            logger.debug("a client could not be told of a resource", exc_info=True)
            self._forget(session)

    def _list_subscriptions(self) -> Iterator[tuple[Caller, str]]:
        """Yield the subscriptions of all clients, each with its caller."""
        yield from self._changes.list_subscriptions()
        for caller, uris in tuple(self._sessions.values()):
            yield from ((caller, uri) for uri in tuple(uris))

    def note_declaration(self, caller: Caller, uri: str) -> None:
        """Note the declaration that a new subscription is for."""
        found = self._find(caller, uri)
        self._tools.setdefault((caller.owns, uri), _get_declaration(found))
        if len(self._tools) > self._most_tools:
            self._change.set()

    def _find(self, caller: Caller, uri: str) -> FoundResource | None:
        try:
            return self._declared.find(caller, uri)
        except UnknownResource:  # several notebooks have it
            return None


def _get_declaration(found: FoundResource | None) -> messages.ToolInfo | None:
    """Return what a resource is declared by, without what else its template has."""
    return None if found is None else structs.replace(found.entry.tool, items=[])


def _is(owner: str, caller: Caller) -> bool:
    return caller.owns == owner


def _concerns(change: _Change, found: FoundResource | None, uri: str) -> bool:
    """Return whether a kernel's change concerns the resource of a subscription."""
    if found is None or found.entry.kernel_id != change.kernel_id:
        return False
    message, own_uri = change.message, found.own_uri
    return (
        found.entry.tool.name in message.resources
        or not {*message.variables}.isdisjoint(map(str, found.arguments.values()))
        or own_uri in message.uris
        or uri in message.uris
    )
