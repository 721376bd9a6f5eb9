"""MCP's requests for resources: what all linked kernels keep, in pages, and each one's content.

Runs in the bridge, on its event loop. With `bridge.server.server` a door to the MCP SDK's types.
What is kept is the kernels' business, how they are asked that of `bridge.kernels.links`.

*Cursors.* The order is that of the links, and within a kernel that of the resources' numbers,
which only grow. A cursor names the place after which its page begins, so it stays right when
resources come and expire meanwhile: none is listed twice, and none that stays is left out. It is
signed by the bridge that gave it: what a client made up, or kept from before the bridge's restart,
is unknown.
"""

import hashlib
import hmac
import secrets
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol

import anyio
import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from mcp_notebook.bridge.kernels.link import Link
from mcp_notebook.bridge.server.mcp_types import cleaned, contents, knows
from mcp_notebook.content import Resource
from mcp_notebook.errors import CallError, UnknownResource
from mcp_notebook.wire import messages

PAGE_SIZE = 100
"""Resources on a page where the settings name no size."""
MAX_URI = 2_000
"""Characters of a URI that are looked at, and echoed; those that are given out are far shorter."""
MAX_READ = 16 * 2**20
"""Bytes of one content that are sent to a client. Over stdio the SDK's own client takes a time that
grows with the square of it: 6 s for 8 MB, minutes for 60."""
LEGACY_NOT_FOUND = -32002
"""What the versions before 2026-07-28 say of an unknown resource; that one has taken it back."""


class Kept(Protocol):
    """What this module needs of `bridge.kernels.links.Links`."""

    @property
    def current(self) -> Sequence[Link]:
        """The links that there are now, in the order in which they were made."""

    async def read_resource(self, uri: str, most: int | None = None) -> Resource:
        """Return the content of a resource."""


class Resources:
    """Answers requests for resources.

    Args:
        kept: Asks the kernels.
        ready: Waits until the first notebooks can be expected, where they take a while to come.
        page_size: Resources on a page; None: `PAGE_SIZE`.
    """

    def __init__(
        self,
        kept: Kept,
        ready: Callable[[], Awaitable[None]] | None = None,
        page_size: int | None = None,
    ) -> None:
        self._kept = kept
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
        found = await self._after(place, number)
        page = found[: self._page_size]
        following = None
        if len(found) > len(page):
            last_place, last = page[-1]
            following = self._cursor(last_place, last.number)
        listed = [_resource(info, ctx.protocol_version) for _, info in page]
        return types.ListResourcesResult(resources=listed, next_cursor=following)

    async def list_templates(
        self, _ctx: ServerRequestContext[Any], params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        """Answer ``resources/templates/list``: there are none."""
        if params is not None and params.cursor is not None:
            raise _unknown_cursor()
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
            resource = await self._kept.read_resource(uri[:MAX_URI], MAX_READ)
            # Encoding a large one would keep all other clients waiting.
            read = await anyio.to_thread.run_sync(contents, resource)
        except UnknownResource as error:
            code = types.INVALID_PARAMS if modern else LEGACY_NOT_FOUND
            data = {"uri": cleaned(error.uri)}
            raise MCPError(code, cleaned(str(error)), data) from None
        except CallError as error:
            data = {"uri": cleaned(uri[:MAX_URI])}
            raise MCPError(types.INTERNAL_ERROR, cleaned(str(error)), data) from None
        return types.ReadResourceResult(contents=[read])

    async def _after(self, place: int, number: int) -> Sequence[tuple[int, messages.ResourceInfo]]:
        """Ask all kernels from this place on, at the same time, for more than a page."""
        links = sorted((link for link in self._kept.current if link.place >= place), key=_place_of)
        answers: dict[int, Sequence[messages.ResourceInfo]] = {}

        async def ask(link: Link) -> None:
            after = number if link.place == place else 0
            answers[link.place] = await link.list_resources(after, self._page_size + 1)

        async with anyio.create_task_group() as tasks:
            for link in links:
                tasks.start_soon(ask, link)
        return [(link.place, info) for link in links for info in answers[link.place]]

    def _cursor(self, place: int, number: int) -> str:
        said = f"{place}.{number}"
        return f"{said}.{self._signature(said)}"

    def _read_cursor(self, cursor: str) -> tuple[int, int]:
        said, _, signature = cursor.rpartition(".")
        if not hmac.compare_digest(self._signature(said).encode(), _bytes(signature)):
            raise _unknown_cursor()
        place, _, number = said.partition(".")
        return int(place), int(number)

    def _signature(self, said: str) -> str:
        return hmac.new(self._key, _bytes(said), hashlib.sha256).hexdigest()[:32]


def _place_of(link: Link) -> int:
    return link.place


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _unknown_cursor() -> MCPError:
    return MCPError(
        types.INVALID_PARAMS,
        "Unknown cursor: this bridge has not given it. Ask without a cursor for the list from its "
        "beginning.",
    )


def _resource(info: messages.ResourceInfo, version: str) -> types.Resource:
    titled = knows(version, "title")
    return types.Resource(
        uri=info.uri,
        name=info.name,
        title=info.title if titled else None,
        description=info.description if titled else info.description or info.title,
        mime_type=info.mime_type,
        size=info.size,
    )
