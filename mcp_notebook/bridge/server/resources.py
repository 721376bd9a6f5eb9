"""MCP's requests for resources: the pages of the list over all linked kernels, and the contents.

Runs on the bridge's event loop.

*Cursors.* Resources are listed in the order of the links, and within a kernel by number, which only
grows. A cursor holds the position after which its page begins. It therefore stays right while
resources appear and expire: none is listed twice, and none that remains is skipped. A cursor is
signed by its bridge; one that a client made up, or kept from before a restart, is unknown.
"""

import hashlib
import hmac
import secrets
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import anyio
import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from mcp_notebook.bridge.access.caller import Caller
from mcp_notebook.bridge.kernels.link import Link
from mcp_notebook.bridge.kernels.links import Links
from mcp_notebook.bridge.server.callers import find_caller
from mcp_notebook.bridge.server.mcp_types import make_contents, replace_surrogates
from mcp_notebook.bridge.server.resource_notices import ResourceNotices
from mcp_notebook.bridge.server.resource_owners import ResourceOwners
from mcp_notebook.bridge.server.versions import has_feature
from mcp_notebook.errors import CallError, UnknownResource
from mcp_notebook.wire import messages

PAGE_SIZE = 100
"""Resources on a page if the settings do not set a size."""
MAX_URI = 2_000
"""Characters of a URI that are read and echoed; real ones are far shorter."""
MAX_READ = 16 * 2**20
"""Bytes of one resource's content. Over stdio the SDK's own client needs a time that grows with the
square of it: 6 s for 8 MB, minutes for 60."""
LEGACY_NOT_FOUND = -32002
"""The error code for unknown resources before 2026-07-28, which dropped it."""


class ResourceRequests:
    """Answers requests for resources.

    Args:
        links: The links to the kernels.
        notices: Told whose resources clients have seen.
        owners: Know who may see which resources.
        default_caller: Who makes a request if the transport does not say.
        ready: Waits until the first notebooks can be expected, if they need time to start.
        page_size: Resources on a page; None: `PAGE_SIZE`.
    """

    def __init__(  # noqa: PLR0913 - what it needs to know
        self,
        links: Links,
        notices: ResourceNotices,
        owners: ResourceOwners,
        *,
        default_caller: Caller,
        ready: Callable[[], Awaitable[None]] | None = None,
        page_size: int | None = None,
    ) -> None:
        self._links = links
        self._notices = notices
        self._owners = owners
        self._default_caller = default_caller
        self._ready = ready
        self._page_size = page_size or PAGE_SIZE
        self._key = secrets.token_bytes(32)

    async def list(
        self, ctx: ServerRequestContext[Any], params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        """Answer ``resources/list``."""
        cursor = None if params is None else params.cursor
        place, number = (0, 0) if cursor is None else self._read_cursor(cursor)
        if self._ready is not None:
            await self._ready()
        caller = find_caller(ctx, self._default_caller)
        resources = await self._list_after(caller, place, number)
        page = resources[: self._page_size]
        next_cursor = None
        if len(resources) > len(page):
            last_place, last = page[-1]
            next_cursor = self._make_cursor(last_place, last.number)
        return types.ListResourcesResult(
            resources=[_make_resource(info, ctx.protocol_version) for _, info in page],
            next_cursor=next_cursor,
        )

    async def list_templates(
        self, _ctx: ServerRequestContext[Any], params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        """Answer ``resources/templates/list``, which is always empty."""
        if params is not None and params.cursor is not None:
            raise _make_cursor_error()
        return types.ListResourceTemplatesResult(resource_templates=[])

    async def read(
        self, ctx: ServerRequestContext[Any], params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        """Answer ``resources/read``."""
        uri = str(params.uri)
        modern = ctx.protocol_version in MODERN_PROTOCOL_VERSIONS
        try:
            if self._ready is not None:
                await self._ready()
            if not self._owners.may_see(find_caller(ctx, self._default_caller), uri):
                raise UnknownResource(uri[:MAX_URI])  # noqa: TRY301 - as for one that never was
            resource = await self._links.read_resource(uri[:MAX_URI], MAX_READ)
            # In a thread: encoding a large one would block all other clients.
            read = await anyio.to_thread.run_sync(make_contents, resource)
        except UnknownResource as error:
            code = types.INVALID_PARAMS if modern else LEGACY_NOT_FOUND
            data = {"uri": replace_surrogates(error.uri)}
            raise MCPError(code, replace_surrogates(str(error)), data) from None
        except CallError as error:
            data = {"uri": replace_surrogates(uri[:MAX_URI])}
            raise MCPError(types.INTERNAL_ERROR, replace_surrogates(str(error)), data) from None
        return types.ReadResourceResult(contents=[read])

    async def _list_after(
        self, caller: Caller, place: int, number: int
    ) -> Sequence[tuple[int, messages.ResourceInfo]]:
        """Ask all kernels from this position on, concurrently, for more than the caller's page."""
        links = sorted(
            (link for link in self._links.open_links if link.place >= place), key=_get_place
        )
        answers: dict[int, Sequence[messages.ResourceInfo]] = {}

        async def ask(link: Link) -> None:
            after = number if link.place == place else 0
            resources: list[messages.ResourceInfo] = []
            while len(resources) <= self._page_size:
                batch = await link.resources.list_resources(after, self._page_size + 1)
                resources += [info for info in batch if self._owners.may_see(caller, info.uri)]
                if len(batch) <= self._page_size:
                    break
                after = batch[-1].number
            answers[link.place] = resources
            if resources:
                self._notices.note_list(caller, link.record.id)

        async with anyio.create_task_group() as tasks:
            for link in links:
                tasks.start_soon(ask, link)
        return [(link.place, info) for link in links for info in answers[link.place]]

    def _make_cursor(self, place: int, number: int) -> str:
        position = f"{place}.{number}"
        return f"{position}.{self._sign(position)}"

    def _read_cursor(self, cursor: str) -> tuple[int, int]:
        position, _, signature = cursor.rpartition(".")
        if not hmac.compare_digest(self._sign(position).encode(), _encode(signature)):
            raise _make_cursor_error()
        place, _, number = position.partition(".")
        return int(place), int(number)

    def _sign(self, position: str) -> str:
        return hmac.new(self._key, _encode(position), hashlib.sha256).hexdigest()[:32]


def _get_place(link: Link) -> int:
    return link.place


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _make_cursor_error() -> MCPError:
    return MCPError(
        types.INVALID_PARAMS,
        "Unknown cursor: it is not from this server. Ask for the list from the beginning without a "
        "cursor.",
    )


def _make_resource(info: messages.ResourceInfo, version: str) -> types.Resource:
    has_title = has_feature(version, "title")
    return types.Resource(
        uri=info.uri,
        name=info.name,
        title=info.title if has_title else None,
        description=info.description if has_title else info.description or info.title,
        mime_type=info.mime_type,
        size=info.size,
    )
