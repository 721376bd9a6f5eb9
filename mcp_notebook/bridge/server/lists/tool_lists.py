"""The lists of tools and prompts as clients get them: in MCP's form, cached, divided into pages.

Runs on the bridge's event loop. A list is built once for each change and version of the protocol,
and unchanged tools are reused: if one tool of a thousand changes, one is converted.

*Cursors.* A cursor is a hash of the whole list and a position in it. It identifies its page as long
as the list stays the same, even after a restart of the bridge. After a change it is unknown, so no
client ever combines pages of different lists. Cursors are looked up and never parsed.
"""

import hashlib
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from mcp_notebook.bridge.access.caller import EVERYTHING, Permissions
from mcp_notebook.bridge.access.permitted_tools import PermittedTools
from mcp_notebook.bridge.kernels.catalog import CatalogEntry
from mcp_notebook.bridge.server.lists.meta_tools import READER, describe_run
from mcp_notebook.bridge.server.lists.pages import Page
from mcp_notebook.bridge.server.protocol.accommodations import ResultAdapter, find_accommodation
from mcp_notebook.bridge.server.protocol.client_request import ClientRequest
from mcp_notebook.bridge.server.protocol.protocol_error import INVALID_PARAMS, ProtocolError
from mcp_notebook.bridge.server.protocol.tool_form import (
    make_plain_tool_form,
    make_prompt_form,
    make_tool_form,
    serialize_tool_form,
)
from mcp_notebook.wire import messages

logger = logging.getLogger(__name__)

MAX_LISTS = 64
"""Size of the LRU cache of lists: one for each version of the protocol and set of permissions."""


class MakeForm(Protocol):
    """Makes the JSON object of a tool, as `tool_form.make_tool_form` does.

    Raises ``ValueError`` (like pydantic) if the version does not accept the tool.
    """

    def __call__(
        self, name: str, info: messages.ToolInfo, protocol_version: str, *, shows_views: bool
    ) -> dict[str, Any]:
        """Return the JSON object."""


@dataclass(frozen=True)
class ListVariant:
    """What a client's list depends on, besides the tools or prompts."""

    protocol_version: str
    permissions: Permissions = EVERYTHING
    """The caller's."""
    shows_views: bool = False
    """Whether the client shows live views of results."""


@dataclass(frozen=True)
class _Conversion:
    """A tool and its form."""

    tool: messages.ToolInfo
    form: dict[str, Any] | None = None
    """None if the protocol's version does not accept the tool."""
    digest: bytes = b""


@dataclass(frozen=True)
class _List:
    """The list in one version of the protocol."""

    entries: Sequence[CatalogEntry]
    notebooks: Sequence[CatalogEntry]
    conversions: Mapping[str, _Conversion]
    pages: Mapping[str | None, Page]
    """By cursor; the first page has None."""


class ToolLists:
    """The lists of tools and prompts as each client of one bridge sees them.

    Args:
        tools: The tools, as callers see them.
        results: Notes which tools a client has listed.
        first: Tools to list before all others.
        page_size: Tools or prompts on a page; None for all.
        ready: Waits until the first tools can be expected, if they need time to appear.
        lists_others: Whether to list the notebooks' tools.
    """

    def __init__(  # noqa: PLR0913 - what a list depends on
        self,
        tools: PermittedTools,
        results: ResultAdapter,
        first: Sequence[messages.ToolInfo],
        page_size: int | None,
        ready: Callable[[], Awaitable[None]] | None,
        *,
        lists_others: bool = True,
    ) -> None:
        self._tools = tools
        self._results = results
        self._pages = ToolPages(make_tool_form, first, page_size, last=[READER])
        self._plain_pages = ToolPages(make_plain_tool_form, first, page_size, last=[READER])
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
            if self._ready is not None:
                await self._ready()
            entries = self._tools.list_entries(request.caller, kind)
        if self._lists_others and kind == "tool":
            notebooks = self._tools.list_entries(request.caller, "notebook")
        pages = self._find_pages(request, kind)
        profile, permissions = request.profile, request.caller.permissions
        variant = ListVariant(profile.protocol_version, permissions, profile.shows_views)
        page = pages.find_page(entries, variant, cursor, notebooks)
        if page is None:
            raise ProtocolError(
                INVALID_PARAMS,
                f"Unknown cursor: it is not from this server, or the list of {kind}s has changed "
                "since. Request the list again without a cursor.",
            )
        if kind == "tool":
            self._results.note_list(request, (tool["name"] for tool in page.items))
        return page

    def _find_pages(self, request: ClientRequest, kind: messages.Kind) -> "ToolPages":
        if kind == "prompt":
            return self._prompt_pages
        takes_structured = find_accommodation(request.profile).takes_structured
        return self._pages if takes_structured else self._plain_pages


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
    ) -> Page | None:
        """Return a page of the list.

        Args:
            entries: The tools that the caller sees; the same object as long as nothing changes.
            variant: Of the client's list.
            cursor: From the previous page; None for the first page.
            notebooks: The notebooks that the caller may run; as for `entries`.

        Returns:
            The page, or None if this list does not have the cursor.
        """
        listed = self._lists.get(variant)
        if listed is None or listed.entries is not entries or listed.notebooks is not notebooks:
            previous = {} if listed is None else listed.conversions
            listed = self._build_list(entries, notebooks, variant, previous)
            self._lists[variant] = listed
            if len(self._lists) > MAX_LISTS:
                self._lists.popitem(last=False)
        self._lists.move_to_end(variant)
        return listed.pages.get(cursor)

    def _build_list(
        self,
        entries: Sequence[CatalogEntry],
        notebooks: Sequence[CatalogEntry],
        variant: ListVariant,
        previous: Mapping[str, _Conversion],
    ) -> _List:
        tools = [(tool.name, tool) for tool in self._first]
        if notebooks:
            run = describe_run(notebooks)
            tools.append((run.name, run))
        tools += [(entry.name, entry.tool) for entry in entries]
        tools += [(tool.name, tool) for tool in self._last if tools]
        conversions: dict[str, _Conversion] = {}
        for name, tool in tools:
            old = previous.get(name)
            # A kernel sends its whole list after each change, so equal tools are different objects.
            if old is not None and (old.tool is tool or old.tool == tool):
                conversions[name] = old
            else:
                conversions[name] = self._convert(name, tool, variant)
        return _List(entries, notebooks, conversions, self._divide(list(conversions.values())))

    def _convert(self, name: str, tool: messages.ToolInfo, variant: ListVariant) -> _Conversion:
        version = variant.protocol_version
        try:
            form = self._make_form(name, tool, version, shows_views=variant.shows_views)
            # A tool that cannot be serialised would cost the client the whole list.
            body = serialize_tool_form(form)
        except (ValueError, RecursionError) as error:
            what = f"{tool.kind} {name!r}"
            logger.warning("The %s is left out of the list (MCP %s): %s", what, version, error)
            return _Conversion(tool)
        return _Conversion(tool, form, hashlib.sha256(body).digest())

    def _divide(self, conversions: Sequence[_Conversion]) -> dict[str | None, Page]:
        accepted = [item for item in conversions if item.form is not None]
        forms = tuple(item.form for item in accepted if item.form is not None)
        if self._page_size is None or len(forms) <= self._page_size:
            return {None: Page(forms, None)}
        list_digest = hashlib.sha256(b"".join(item.digest for item in accepted))
        starts = range(0, len(forms), self._page_size)
        cursors = [None, *(_make_cursor(list_digest, start) for start in starts[1:]), None]
        return {
            cursors[number]: Page(forms[start : start + self._page_size], cursors[number + 1])
            for number, start in enumerate(starts)
        }


def _make_cursor(list_digest: Any, start: int) -> str:
    digest = list_digest.copy()
    digest.update(b"%d" % start)
    return str(digest.hexdigest()[:32])
