"""Notification streams: how many may be open, and which client gets which notifications.

Runs on the bridge's event loop. Clients of 2026-07-28 open one by a request (`OpenStreams.listen`),
those of the handshake era by a GET of the HTTP endpoint, which asks `OpenStreams.shares` for it.
One handler of the SDK would send all streams of 2026-07-28 the same notifications; here each stream
has its own handler, whose caller is known. `change_notices` and `resource_notices` decide what to
send.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import anyio.lowlevel
from pydantic_core import to_json

from mcp_notebook.bridge.access.caller import Caller
from mcp_notebook.bridge.access.caller_limits import Shares
from mcp_notebook.bridge.server.sessions.client_request import find_caller
from mcp_notebook.bridge.server.sessions.protocol_error import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    ProtocolError,
)
from mcp_notebook.settings.limits import Limits
from mcp_notebook.wire import messages

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext
    from mcp.server.subscriptions import ListenHandler, ServerEvent
    from mcp_types import SubscriptionsListenRequestParams, SubscriptionsListenResult

_Handler: TypeAlias = (
    "Callable[[ServerRequestContext[Any], SubscriptionsListenRequestParams],"
    "Awaitable[SubscriptionsListenResult]]"
)
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
MAX_FILTER = 2**14
"""Maximum bytes of the parameters that open a stream: they are kept as long as it is open."""


class OpenStreams:
    """The open streams of one bridge.

    Args:
        limits: How many may be open.
        default_caller: The caller if the transport does not name one.
    """

    def __init__(self, limits: Limits, default_caller: Caller) -> None:
        self._default_caller = default_caller
        self.shares = Shares(
            "open streams", per_caller=min(limits.max_caller_calls, MAX_STREAMS), in_all=MAX_STREAMS
        )
        """Counts the streams of each caller."""

    async def listen(
        self,
        handler: _Handler,
        ctx: ServerRequestContext[Any],
        params: SubscriptionsListenRequestParams,
    ) -> SubscriptionsListenResult:
        """Have a handler serve a stream until its client closes it.

        Raises:
            ProtocolError: Too many streams are open, or the parameters are too large.
        """
        if len(to_json(ctx.params)) > MAX_FILTER:
            what = (
                f"The parameters of `subscriptions/listen` can have at most {MAX_FILTER:,} bytes."
            )
            raise ProtocolError(INVALID_PARAMS, what)
        caller = find_caller(ctx, self._default_caller)
        lack = self.shares.explain_lack(caller)
        if lack is not None:
            raise ProtocolError(INTERNAL_ERROR, lack)
        with self.shares.hold(caller):
            return await handler(ctx, params)


class ListsWatcher:
    """Knows which of the lists that one caller sees have changed.

    A caller who sees everything is told of each change: it may have read a list that has changed
    back since. Others are told of what differs from the last time.

    Args:
        caller: The caller.
        list_entries: Returns the tools, prompts or resources that a caller sees: the same object
            until they change.
        unpublished: The lists whose changes have not been published yet.
    """

    def __init__(
        self,
        caller: Caller,
        list_entries: Callable[[Caller, messages.Kind], object],
        unpublished: Iterable[ListName] = (),
    ) -> None:
        self.caller = caller
        self._list_entries = list_entries
        self._changed = set(unpublished)
        """The changed lists of a caller who sees everything."""
        self._seen = {} if caller.permissions.is_everything else self._list_all()

    def _list_all(self) -> dict[messages.Kind, object]:
        return {kind: self._list_entries(self.caller, kind) for kind in messages.KINDS}

    def note_changes(self, changed: Iterable[ListName]) -> None:
        """Note that these lists have changed."""
        self._changed.update(changed)

    def take_changes(self) -> list[ListName]:
        """Return the lists that have changed since the last time."""
        if self.caller.permissions.is_everything:
            changed, self._changed = self._changed, set()
        else:
            before, self._seen = self._seen, self._list_all()
            changed = {LIST_NAMES[kind] for kind in before if self._seen[kind] is not before[kind]}
        return [name for name in dict.fromkeys(LIST_NAMES.values()) if name in changed]


class Subscriptions:
    """The notification streams of clients of 2026-07-28."""

    def __init__(self) -> None:
        self._streams: dict[ListenHandler, _Stream] = {}

    async def listen(
        self,
        ctx: ServerRequestContext[Any],
        params: SubscriptionsListenRequestParams,
        watcher: ListsWatcher,
    ) -> SubscriptionsListenResult:
        """Serve a stream until its client or `close` closes it."""
        from mcp.server.subscriptions import ListenHandler  # noqa: PLC0415 - see `postponed_sdk`

        stream = _Stream(watcher, params.notifications.resource_subscriptions or ())
        handler = ListenHandler(stream)
        self._streams[handler] = stream
        try:
            return await handler(ctx, params)
        finally:
            del self._streams[handler]

    def note_changes(self, changed: Iterable[ListName]) -> None:
        """Note that these lists have changed; `publish_changes` notifies the callers."""
        for stream in self._streams.values():
            stream.watcher.note_changes(changed)

    def forget_changes(self) -> None:
        """Forget the noted changes."""
        for stream in self._streams.values():
            stream.watcher.take_changes()

    async def publish_changes(self) -> None:
        """Notify the callers who see a difference in one of their lists."""
        for stream in tuple(self._streams.values()):
            for changed in stream.watcher.take_changes():
                await stream.publish(_make_event(changed))
        await anyio.lowlevel.checkpoint()

    async def publish(self, changed: ListName, is_for: Callable[[Caller], bool]) -> None:
        """Notify callers that a list has changed.

        Args:
            changed: The list.
            is_for: Whose streams get the notification.
        """
        for stream in tuple(self._streams.values()):
            if is_for(stream.watcher.caller):
                await stream.publish(_make_event(changed))
        await anyio.lowlevel.checkpoint()

    def list_subscriptions(self) -> list[tuple[Caller, str]]:
        """Return the resources that streams are subscribed to, each with the stream's caller."""
        return [
            (stream.watcher.caller, uri) for stream in self._streams.values() for uri in stream.uris
        ]

    async def publish_update(self, uri: str, is_for: Callable[[Caller], bool]) -> None:
        """Notify subscribers that a resource has changed.

        Args:
            uri: Its URI, as they have subscribed to it.
            is_for: Whose streams get the notification.
        """
        from mcp.server.subscriptions import ResourceUpdated  # noqa: PLC0415 - see `postponed_sdk`

        for stream in tuple(self._streams.values()):
            if uri in stream.uris and is_for(stream.watcher.caller):
                await stream.publish(ResourceUpdated(uri=uri))
        await anyio.lowlevel.checkpoint()

    def close(self) -> None:
        """End all streams gracefully."""
        for handler in tuple(self._streams):
            handler.close()


class _Stream:
    """The SDK's subscription bus, for one stream: passes events on to it."""

    def __init__(self, watcher: ListsWatcher, uris: Iterable[str] = ()) -> None:
        self.watcher = watcher
        self.uris = frozenset(uris)
        """The resources that it is subscribed to."""
        self._deliver: Callable[[ServerEvent], None] | None = None

    async def publish(self, event: ServerEvent) -> None:
        """Deliver an event; does nothing before the stream begins and after it has ended."""
        if self._deliver is not None:
            self._deliver(event)

    def subscribe(self, listener: Callable[[ServerEvent], None]) -> Callable[[], None]:
        """Connect the stream; return a function that disconnects it."""
        self._deliver = listener
        return self._end

    def _end(self) -> None:
        self._deliver = None


def _make_event(changed: ListName) -> ServerEvent:
    from mcp.server import subscriptions  # noqa: PLC0415 - see `postponed_sdk`

    match changed:
        case "tools":
            return subscriptions.ToolsListChanged()
        case "prompts":
            return subscriptions.PromptsListChanged()
    return subscriptions.ResourcesListChanged()
