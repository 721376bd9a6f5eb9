"""The lists of tools and prompts as clients get them: in MCP's form, cached, divided into pages.

Runs on the bridge's event loop. A list is built once for each change and version of the protocol.
"""

import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from mcp_notebook.bridge.access.caller import EVERYTHING, Permissions
from mcp_notebook.bridge.access.permitted_tools import PermittedTools
from mcp_notebook.bridge.kernels.catalog import CatalogEntry
from mcp_notebook.bridge.server.forms.accommodations import ResultAdapter
from mcp_notebook.bridge.server.forms.tool_form import (
    make_prompt_form,
    make_tool_form,
)
from mcp_notebook.bridge.server.listing.change_notices import ChangeNotices
from mcp_notebook.bridge.server.listing.pages import Page, divide, find_page
from mcp_notebook.bridge.server.own_tools.meta_tools import READER, RESULTS, describe_run
from mcp_notebook.bridge.server.sessions.client_request import ClientRequest
from mcp_notebook.wire import messages

logger = logging.getLogger(__name__)

MAX_LISTS = 64
"""Size of the LRU cache of lists: one for each version of the protocol and set of permissions."""
MakeForm: TypeAlias = Callable[..., dict[str, Any]]
"""Makes the JSON object of a tool, as `tool_form.make_tool_form` does."""


@dataclass(frozen=True)
class ListVariant:
    """What a client's list depends on, besides the tools or prompts."""

    protocol_version: str
    permissions: Permissions = EVERYTHING
    """The caller's."""
    shows_views: bool = False
    """Whether the client shows live views of results."""


@dataclass(frozen=True)
class _List:
    """The list in one version of the protocol."""

    entries: Sequence[CatalogEntry]
    notebooks: Sequence[CatalogEntry]
    pages: Mapping[str | None, Page]


class ToolLists:
    """The lists of tools and prompts as each client of one bridge sees them.

    Args:
        tools: The tools, as callers see them.
        results: Notes which tools a client has listed...
        changes: ...and that it has.
        first: Tools to list before all others.
        page_size: Tools or prompts on a page; None for all.
        ready: Waits until the first tools can be expected, if they need time to appear.
        lists_others: Whether to list the notebooks' tools.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - what a list depends on
        self,
        tools: PermittedTools,
        results: ResultAdapter,
        changes: ChangeNotices,
        first: Sequence[messages.ToolInfo],
        page_size: int | None,
        ready: Callable[[], Awaitable[None]],
        *,
        lists_others: bool = True,
    ) -> None:
        self._tools = tools
        self._results = results
        self._changes = changes
        self._pages = ToolPages(make_tool_form, first, page_size, last=[READER])
        self._prompt_pages = ToolPages(make_prompt_form, (), page_size)
        self._ready = ready
        self._lists_others = lists_others

    async def find_page(
        self, request: ClientRequest, cursor: str | None, kind: messages.Kind = "tool"
    ) -> Page:
        """Return a page of the list of tools.

        Args:
            request: The request.
            cursor: From the previous page; None for the first page.
            kind: Return a page of the list of prompts instead.

        Raises:
            ProtocolError: There is no such page.
        """
        entries: Sequence[CatalogEntry] = ()
        notebooks: Sequence[CatalogEntry] = ()
        if self._lists_others or kind != "tool":
            await self._ready()
            entries = self._tools.list_entries(request.caller, kind)
        if self._lists_others and kind == "tool":
            notebooks = self._tools.list_entries(request.caller, "notebook")
        pages = self._prompt_pages if kind == "prompt" else self._pages
        profile, permissions = request.profile, request.caller.permissions
        variant = ListVariant(profile.protocol_version, permissions, profile.shows_views)
        page = pages.find_page(entries, variant, cursor, notebooks)
        if kind == "tool":
            self._changes.note_list(request)
            self._results.note_list(request, (tool["name"] for tool in page.items))
        return page


class ToolPages:
    """The pages of one list in one form, for all callers; used only on the event loop.

    Args:
        make_form: Makes MCP's form of a tool or a prompt.
        first: Tools to list before all others: clients with a limit drop the last ones.
        last: Tools to list after all others; left out if there are no others.
        page_size: Tools on a page; None for all.
    """

    def __init__(
        self,
        make_form: MakeForm,
        first: Sequence[messages.ToolInfo] = (),
        page_size: int | None = None,
        *,
        last: Sequence[messages.ToolInfo] = (),
    ) -> None:
        self._make_form = make_form
        self._first = tuple(first)
        self._last = tuple(last)
        self._page_size = page_size
        self._lists: OrderedDict[ListVariant, _List] = OrderedDict()

    def find_page(
        self,
        entries: Sequence[CatalogEntry],
        variant: ListVariant,
        cursor: str | None,
        notebooks: Sequence[CatalogEntry] = (),
    ) -> Page:
        """Return a page of the list.

        Args:
            entries: The tools that the caller sees; the same object as long as nothing changes.
            variant: Of the client's list.
            cursor: From the previous page; None for the first page.
            notebooks: The notebooks that the caller may run; as for `entries`.

        Raises:
            ProtocolError: The list does not have the cursor.
        """
        listed = self._lists.get(variant)
        if listed is None or listed.entries is not entries or listed.notebooks is not notebooks:
            listed = self._build_list(entries, notebooks, variant)
            self._lists[variant] = listed
            if len(self._lists) > MAX_LISTS:
                self._lists.popitem(last=False)
        self._lists.move_to_end(variant)
        return find_page(listed.pages, cursor)

    def _build_list(
        self,
        entries: Sequence[CatalogEntry],
        notebooks: Sequence[CatalogEntry],
        variant: ListVariant,
    ) -> _List:
        tools = [(tool.name, tool) for tool in self._first]
        if notebooks:
            run = describe_run(notebooks)
            tools.append((run.name, run))
        tools += [(entry.name, entry.tool) for entry in entries]
        tools += [(tool.name, tool) for tool in self._last if tools]
        if RESULTS not in self._first and any(entry.tool.task for entry in entries):
            tools.append((RESULTS.name, RESULTS))
        forms = [self._convert(name, tool, variant) for name, tool in tools]
        pages = divide([form for form in forms if form is not None], self._page_size)
        return _List(entries, notebooks, pages)

    def _convert(
        self, name: str, tool: messages.ToolInfo, variant: ListVariant
    ) -> dict[str, Any] | None:
        """Return the form of a tool; None if the protocol's version does not accept it."""
        version = variant.protocol_version
        try:
            return self._make_form(name, tool, version, shows_views=variant.shows_views)
        except ValueError as error:  # it would cost the client the whole list
            what = f"{tool.kind} {name!r}"
            logger.warning("The %s is left out of the list (MCP %s): %s", what, version, error)
            return None
