"""The list of tools: which page of it a client gets, whichever way its request came in.

Runs on the bridge's event loop.
"""

from collections.abc import Awaitable, Callable, Sequence

import mcp_types as types
from mcp.shared.exceptions import MCPError

from mcp_notebook.bridge.access.permitted_tools import PermittedTools
from mcp_notebook.bridge.lists.meta_tools import READER
from mcp_notebook.bridge.lists.tool_pages import Page, ToolPages
from mcp_notebook.bridge.protocol.accommodations import NewTools, find_accommodation
from mcp_notebook.bridge.protocol.client_request import ClientRequest
from mcp_notebook.bridge.protocol.tool_form import make_plain_tool_form, make_tool_form
from mcp_notebook.wire import messages


class ToolLists:
    """The list of tools as each client of one bridge sees it.

    Args:
        tools: The tools, as callers see them.
        new_tools: Notes which tools a client has listed.
        first: Tools to list before all others.
        page_size: Tools on a page; None for all.
        ready: Waits until the first tools can be expected, if they need time to appear.
    """

    def __init__(
        self,
        tools: PermittedTools,
        new_tools: NewTools,
        first: Sequence[messages.ToolInfo],
        page_size: int | None,
        ready: Callable[[], Awaitable[None]] | None,
    ) -> None:
        self._tools = tools
        self._new_tools = new_tools
        self._pages = ToolPages(make_tool_form, first, page_size, last=[READER])
        self._plain_pages = ToolPages(make_plain_tool_form, first, page_size, last=[READER])
        self._ready = ready

    async def find_page(self, request: ClientRequest, cursor: str | None) -> Page:
        """Return a page of the list.

        Args:
            request: The request.
            cursor: From the previous page; None for the first page.

        Raises:
            MCPError: There is no such page.
        """
        if self._ready is not None:
            await self._ready()
        takes_structured = find_accommodation(request).takes_structured
        pages = self._pages if takes_structured else self._plain_pages
        entries = self._tools.list_entries(request.caller)
        permissions = request.caller.permissions
        page = pages.find_page(entries, request.protocol_version, cursor, permissions)
        if page is None:
            raise MCPError(
                types.INVALID_PARAMS,
                "Unknown cursor: it is not from this server, or the list of tools has changed "
                "since. Ask for the list again without a cursor.",
            )
        self._new_tools.note_list(request, (tool["name"] for tool in page.tools))
        return page
