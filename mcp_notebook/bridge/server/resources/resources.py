"""Requests for resources: the pages of the list over all linked kernels, and the contents.

Runs on the bridge's event loop. Contents are read by ``resources/read``, and in pages by a tool
(`meta_tools.READER`): in most clients only the program can send that request, not the model.

*Cursors.* Resources are listed in the order of the links, and within a kernel by number, which only
grows. A cursor holds the position after which its page begins. It therefore stays valid while
resources appear and expire: none is listed twice, and none that remains is skipped. It also names
its bridge: cursors from before a restart are rejected.
"""

from __future__ import annotations

import re
import secrets
import sys
import time
from array import array
from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import anyio

from mcp_notebook import meta_keys
from mcp_notebook.bridge.access.caller import Caller
from mcp_notebook.bridge.access.caller_limits import Shares
from mcp_notebook.bridge.access.permitted_tools import PermittedTools
from mcp_notebook.bridge.kernels.catalog import CatalogEntry
from mcp_notebook.bridge.kernels.link import Link
from mcp_notebook.bridge.kernels.links import Links
from mcp_notebook.bridge.server.forms.result_forms import (
    MAX_READ,
    make_contents,
    replace_surrogates,
)
from mcp_notebook.bridge.server.listing.pages import Page, divide, find_page
from mcp_notebook.bridge.server.own_tools.meta_tools import RequestedPage
from mcp_notebook.bridge.server.resources.declared_resources import (
    DeclaredResources,
    FoundResource,
)
from mcp_notebook.bridge.server.resources.resource_notices import ResourceNotices
from mcp_notebook.bridge.server.sessions.client_request import ClientRequest
from mcp_notebook.bridge.telemetry.audit_log import AuditLog
from mcp_notebook.bridge.telemetry.call_events import ViewRead
from mcp_notebook.bridge.views import pages
from mcp_notebook.content import Image, Resource, ResourceLink, Result, Text
from mcp_notebook.errors import CallError, ResourceFailed, UnknownResource, UnknownTool
from mcp_notebook.lean_json import from_json
from mcp_notebook.protocol.errors import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    ProtocolError,
)
from mcp_notebook.protocol.versions import MODERN_VERSIONS, has_feature
from mcp_notebook.text.wording import format_moment
from mcp_notebook.wire import messages, resource_uris

PAGE_SIZE = 100
"""Resources on a page if the settings do not set a size."""
MAX_URI = 2_000
"""Maximum length of a URI; longer ones are cut, and real ones are far shorter."""
WHOLE = "whole"
"""The query of a URI by which a live view asks for all of a text."""
MAX_QUERY_URI = 50_000
"""Characters of a URI with the query of a live view; a kernel refuses shorter ones in its own
words, since each character of a query may be written as twelve."""
PAGE_CHARS = 20_000
"""Maximum characters on a page of a text resource."""
PAGE_LIMIT = 15.0
"""Seconds that a kernel has to make the own page of a tool."""
_LINE = re.compile(r"[^\n]*\n|[^\n]+\Z")
_QUOTED = r'"(?:[^"]|"")*+(?:"|\Z)'
_ROW = re.compile(
    rf"(?!\Z)(?:[^\"\n]*+|(?:(?:{_QUOTED})?+[^,\n]*+,)*+(?:{_QUOTED})?+[^,\n]*+)(?:\n|\Z)"
)
"""A row of a CSV, whose quoted cells may have line ends. Rows without quotes, most of them, are
found faster by the first half."""
MAX_KEPT = 2**25
"""Maximum bytes of memory of a content that is kept for its next pages."""
KEPT_SECONDS = 60
"""Seconds for which a content is kept after each page. So the pages that a client reads in a row
are of one content, even if the value has changed, and the kernel makes it only once: a CSV of a
million rows takes a second or two."""
MAX_PICTURE = 2**19
"""Maximum bytes of a picture that is returned as a page; the same as for pictures in results."""
_PICTURES = ("image/png", "image/jpeg", "image/webp", "image/gif")
MAX_READS = 64
"""Maximum number of concurrent reads; the limit of a kernel is the same."""
LEGACY_NOT_FOUND = -32002
"""The error code for unknown resources before 2026-07-28, which dropped it."""


class ResourceOwners:
    """Which callers may see which resources: those to which results of their own calls link.

    A caller who may call all tools sees all resources. Any other caller sees only resources of its
    own results: another caller's result may depend on arguments that are private, even if both may
    call the tool. All of this is forgotten when the bridge restarts; calling the tool again helps.

    Args:
        max_owned: Resources of one caller that are remembered; the least recent are forgotten.
        max_owners: Callers for whom resources are remembered; the least recent are forgotten.
    """

    def __init__(self, *, max_owned: int = 10_000, max_owners: int = 1_000) -> None:
        self._max_owned = max_owned
        self._max_owners = max_owners
        self._uris: OrderedDict[str, OrderedDict[str, None]] = OrderedDict()
        """By caller."""

    def note_result(self, caller: Caller, result: Result) -> None:
        """Note the resources to which a caller's result links."""
        if caller.permissions.is_everything:
            return
        for uri in _list_uris(result):
            uris = self._uris.setdefault(caller.owns, OrderedDict())
            self._uris.move_to_end(caller.owns)
            uris[uri] = None
            uris.move_to_end(uri)
            if len(uris) > self._max_owned:
                uris.popitem(last=False)
            if len(self._uris) > self._max_owners:
                self._uris.popitem(last=False)

    def may_see(self, caller: Caller, uri: str) -> bool:
        """Return whether a caller may see a resource."""
        if caller.permissions.is_everything:
            return True
        address, _ = resource_uris.split_query(uri)
        return address in self._uris.get(caller.owns, ())


def _list_uris(result: Result) -> list[str]:
    """Return the URIs of a kernel's resources that a result names: in links, and for its view."""
    uris: list[Any] = [block.uri for block in result.content if isinstance(block, ResourceLink)]
    view = result.meta.get(meta_keys.VIEW)
    if isinstance(view, dict):
        uris += [view.get("uri"), view.get("library")]
        uris += [file.get("uri") for file in view.get("files", {}).values()]
    return [uri for uri in uris if isinstance(uri, str) and resource_uris.find_kernel_id(uri)]


class ResourceRequests:
    """Answers requests for resources.

    Args:
        links: The links to the kernels.
        notices: Notes which kernels' resources clients have seen.
        tools: The tools, as callers see them.
        ready: Waits until the first notebooks can be expected, if they need time to start.
        can_list: Waits until the first list can be answered, perhaps earlier.
        page_size: Resources on a page; None: `PAGE_SIZE`.
        audit: Notified of the queries of live views.
    """

    def __init__(  # noqa: PLR0913 - one for each thing that it asks
        self,
        links: Links,
        notices: ResourceNotices,
        tools: PermittedTools,
        *,
        ready: Callable[[], Awaitable[None]],
        can_list: Callable[[], Awaitable[None]],
        page_size: int | None = None,
        audit: AuditLog,
    ) -> None:
        self._links = links
        self._notices = notices
        self._tools = tools
        self.declared = DeclaredResources(tools, links.find_modified)
        """The resources that authors declare."""
        self._owners = ResourceOwners()
        self.ready = ready
        """Waits until the first notebooks can be expected, if they need time to start."""
        self._can_list = can_list
        self.page_size = page_size or PAGE_SIZE
        """Resources on a page."""
        self._audit = audit
        self._key = secrets.token_hex(8)
        """Tells its cursors from those of other bridges."""
        self._kept: tuple[Resource, float] | None = None
        """The resource that was last read in pages, and when."""
        self._reads = Shares(
            "reads of resources",
            per_caller=MAX_READS // 2,
            in_all=MAX_READS,
            for_user=MAX_READS,
        )

    async def find_page(self, request: ClientRequest, cursor: str | None) -> Page:
        """Return a page of the list of resources.

        Args:
            request: The request.
            cursor: From the previous page; None for the first page.

        Raises:
            ProtocolError: There is no such page.
        """
        place = None if cursor is None else self._read_cursor(cursor)
        await self._can_list()
        caller, version = request.caller, request.protocol_version
        declared: Sequence[dict[str, Any]] = ()
        if place is None:  # the declared ones come first
            forms = self.declared.list_forms(caller, version)
            first = find_page(divide(forms, self.page_size), cursor)
            if first.next_cursor is not None:
                return first
            declared = first.items
        resources = await self._list_after(caller, *(place or (0, 0)))
        page = resources[: self.page_size]
        next_cursor = None
        if len(resources) > len(page):
            last_place, last = page[-1]
            next_cursor = f"{self._key}.{last_place}.{last.number}"
        kept = (_make_form(info, version) for _, info in page)
        return Page((*declared, *kept), next_cursor)

    async def find_template_page(self, request: ClientRequest, cursor: str | None) -> Page:
        """Return a page of the list of templates; as `find_page`."""
        await self._can_list()
        forms = self.declared.list_template_forms(request.caller, request.protocol_version)
        return find_page(divide(forms, self.page_size), cursor)

    async def find_declared(self, request: ClientRequest, uri: str) -> FoundResource | None:
        """Return the declared resource of a URI, to be read by a call; None if `read` reads it.

        Raises:
            ProtocolError: Resources of several notebooks have the URI.
        """
        await self.ready()
        try:
            found = self.declared.find(request.caller, uri)
        except UnknownResource as error:
            raise _make_unknown_error(error, request.protocol_version) from None
        return None if found is None or found.entry.tool.text is not None else found

    async def read(self, request: ClientRequest, uri: str) -> dict[str, Any]:
        """Answer ``resources/read``."""
        if uri == pages.RESULT_URI:
            return {"contents": [pages.read_result_page()]}
        try:
            await self.ready()
            found = self.declared.find(request.caller, uri)
            if found is not None and found.entry.tool.text is not None:
                return {"contents": [_make_text_contents(found.entry)]}
            tool = pages.find_tool(uri) if request.profile.shows_views else None
            if resource_uris.is_view_uri(uri):
                read = make_contents(await self._read_view(request, uri))
            elif tool is None:
                if resource_uris.find_kernel_id(uri) is None:
                    raise self.declared.explain_unknown(request.caller, uri[:MAX_URI])
                # In a thread: encoding a large one would block all other clients.
                resource = await self._read(request.caller, uri, MAX_READ)
                read = await anyio.to_thread.run_sync(make_contents, resource)
            else:
                read = await self._read_own_page(request, uri, tool)
        except UnknownResource as error:
            raise _make_unknown_error(error, request.protocol_version) from None
        except CallError as error:
            data = {"uri": replace_surrogates(uri[:MAX_URI])}
            raise ProtocolError(INTERNAL_ERROR, replace_surrogates(str(error)), data) from None
        return {"contents": [read]}

    def note_result(self, caller: Caller, result: Result) -> None:
        """Note that a caller gets a result, which may link to resources."""
        if _list_uris(result):
            self._owners.note_result(caller, result)
            self._notices.note_result(caller, result)

    async def read_page(self, request: ClientRequest, page: RequestedPage) -> Result:
        """Return a part of a resource as the result of a call.

        Raises:
            CallError: It cannot be read.
        """
        caller = request.caller
        kept = self._find_kept(caller, page)
        if kept is not None:
            self._kept = kept, anyio.current_time()
            return await anyio.to_thread.run_sync(make_page, kept, page)
        if resource_uris.is_view_uri(page.uri):
            answer = await self._read_view(request, page.uri)
            return Result([Text(str(answer.data))])
        if request.profile.shows_views and resource_uris.split_query(page.uri)[1] == WHOLE:
            answer = await self._read(caller, page.uri, MAX_READ)
            if isinstance(answer.data, str):  # a view's library or file
                return Result([Text(answer.data)])
            return await anyio.to_thread.run_sync(make_page, answer, page)
        if resource_uris.find_kernel_id(page.uri) is None:
            raise self.declared.explain_unknown(caller, page.uri[:MAX_URI])
        # Without a size limit: only a page of it is sent.
        resource = await self._read(caller, page.uri, None)
        is_small = sys.getsizeof(resource.data) <= MAX_KEPT
        self._kept = (resource, anyio.current_time()) if is_small else None
        return await anyio.to_thread.run_sync(make_page, resource, page)

    def _find_kept(self, caller: Caller, page: RequestedPage) -> Resource | None:
        """Return the kept content that a page continues; None if the kernel has to be asked."""
        if self._kept is None or (page.first_line, page.first_character) == (1, 1):
            return None
        resource, last_used = self._kept
        kernel_id = resource_uris.find_kernel_id(page.uri)
        is_current = (
            resource.uri == page.uri
            and anyio.current_time() - last_used < KEPT_SECONDS
            and any(link.record.id == kernel_id for link in self._links.open_links)
        )
        return resource if is_current and self._owners.may_see(caller, page.uri) else None

    async def _read(self, caller: Caller, uri: str, most: int | None) -> Resource:
        """Read a resource that the caller may see."""
        if "?" not in uri:
            uri = uri[:MAX_URI]
        elif len(uri) > MAX_QUERY_URI:
            raise ResourceFailed(
                f"The view asks with {len(uri):,} characters; at most {MAX_QUERY_URI:,} are read. "
                "Remove a filter."
            )
        if not self._owners.may_see(caller, uri):
            raise UnknownResource(uri)  # the same error as for one that never existed
        lack = self._reads.explain_lack(caller)
        if lack is not None:
            raise CallError(lack)
        with self._reads.hold(caller):
            return await self._links.read_resource(uri, most, guest=caller.guest)

    async def _read_own_page(self, request: ClientRequest, uri: str, name: str) -> dict[str, Any]:
        """Have a kernel make the own page of a tool that the caller may call."""
        caller = request.caller
        try:
            entry = self._tools.find(caller, name)
        except UnknownTool:
            entry = None
        if entry is None or entry.tool.view != pages.OWN:
            reason = f"there is no tool {name!r} with a page of its own. List the tools again."
            raise UnknownResource(uri, f"The page {uri!r} does not exist: {reason}")
        await self._links.wait_for_kernel(entry, errors=caller.errors, guest=caller.guest)
        link = self._links.find_link(entry)
        lack = self._reads.explain_lack(caller)
        if lack is not None:
            raise CallError(lack)
        page_uri = resource_uris.make_page_uri(link.record.id, entry.tool.name)
        try:
            with self._reads.hold(caller), anyio.fail_after(PAGE_LIMIT):
                resource = await link.requests.read_resource(page_uri, MAX_READ, guest=caller.guest)
        except TimeoutError:
            raise ResourceFailed(
                f"The view of {name!r} cannot be shown: its page was not ready within "
                f"{PAGE_LIMIT:g} s. Correct its function in the notebook, and open the view again."
            ) from None
        page = from_json(resource.data)
        served = {
            other.tool.name: other.name
            for other in self._tools.list_entries(caller)
            if other.kernel_id == entry.kernel_id and other.name != other.tool.name
        }
        return {
            "uri": uri,
            "mimeType": pages.MIME_TYPE,
            "text": pages.add_helper(page["html"], served),
            "_meta": pages.make_own_meta(page["hosts"]),
        }

    async def _read_view(self, request: ClientRequest, uri: str) -> Resource:
        """Read the answer to a query of a live view, and notify the audit log."""
        at, began = time.time(), time.monotonic()
        error = None
        try:
            return await self._read(request.caller, uri, MAX_READ)
        except CallError as refused:
            error = str(refused)
            raise
        finally:
            address, query = resource_uris.split_query(uri[:MAX_QUERY_URI])
            read = ViewRead(
                at=at,
                caller=request.caller.name,
                alias=request.caller.alias,
                client=request.profile.program,
                uri=address,
                query=query,
                seconds=time.monotonic() - began,
                error=error,
            )
            self._audit.note_view(read)

    async def _list_after(
        self, caller: Caller, place: int, number: int
    ) -> Sequence[tuple[int, messages.ResourceInfo]]:
        """Ask all kernels concurrently for more resources after a position than fit on a page."""
        links = [link for link in self._links.open_links if link.place >= place]
        links.sort(key=lambda link: link.place)
        answers: dict[int, Sequence[messages.ResourceInfo]] = {}

        async def ask(link: Link) -> None:
            after = number if link.place == place else 0
            resources: list[messages.ResourceInfo] = []
            while len(resources) <= self.page_size:
                batch = await link.requests.list_resources(after, self.page_size + 1)
                resources += [info for info in batch if self._owners.may_see(caller, info.uri)]
                if len(batch) <= self.page_size:
                    break
                after = batch[-1].number
            answers[link.place] = resources
            if resources:
                self._notices.note_list(caller, link.record.id)

        async with anyio.create_task_group() as tasks:
            for link in links:
                tasks.start_soon(ask, link)
        return [(link.place, info) for link in links for info in answers[link.place]]

    def _read_cursor(self, cursor: str) -> tuple[int, int] | None:
        """Return the position after which a page begins; None if it is no cursor of this bridge."""
        found = re.fullmatch(rf"{self._key}\.(\d{{1,18}})\.(\d{{1,18}})", cursor, re.ASCII)
        return None if found is None else (int(found[1]), int(found[2]))


def _make_unknown_error(error: UnknownResource, version: str) -> ProtocolError:
    code = INVALID_PARAMS if version in MODERN_VERSIONS else LEGACY_NOT_FOUND
    data = {"uri": replace_surrogates(error.uri)}
    return ProtocolError(code, replace_surrogates(str(error)), data)


def _make_text_contents(entry: CatalogEntry) -> dict[str, Any]:
    return make_contents(Resource(entry.uri, entry.tool.text or "", entry.tool.mime_type or ""))


def make_page(resource: Resource, page: RequestedPage) -> Result:
    """Return a part of a resource as the result of a call."""
    data = resource.data
    if isinstance(data, str):
        return _make_text_page(data, page, is_table=resource.mime_type == "text/csv")
    if resource.mime_type in _PICTURES and len(data) <= MAX_PICTURE:
        return Result([Image(data, resource.mime_type)])
    text = (
        f"The resource {page.uri} ({resource.mime_type}, {len(data):,} bytes) is not text. If it "
        "also has a text form, such as table.csv, read that. A program can read this one with "
        "`resources/read`, and a person can save it with `mcp-notebook call TOOL --save FOLDER`."
    )
    return Result([Text(text)], is_error=True)


def _make_text_page(text: str, page: RequestedPage, *, is_table: bool) -> Result:
    number = page.first_line
    lines = (_ROW if is_table else _LINE).finditer(text)
    ends = array("q", map(re.Match.end, lines)) or array("q", [0])
    if number > len(ends):
        note = f"The resource {page.uri} has {len(ends):,} lines: there is no line {number:,}."
        return Result([Text(note)], is_error=True)
    begin = ends[number - 2] if number > 1 else 0
    start = min(begin + page.first_character - 1, _find_end(text, ends, number))
    stop = ends[min(number - 1 + page.lines, len(ends)) - 1]
    if stop - start > PAGE_CHARS:
        fitting = bisect_right(ends, start + PAGE_CHARS)
        stop = ends[fitting - 1] if fitting else 0
        if stop <= start + PAGE_CHARS // 4:
            stop = _cut_line(text, start)
    last = max(bisect_left(ends, stop) + 1, number)
    notes = [f"{page.uri}: lines {number:,} to {last:,} of {len(ends):,}."]
    if stop < ends[last - 1]:
        begin = ends[last - 2] if last > 1 else 0
        size = _find_end(text, ends, last) - begin
        notes.append(
            f"Line {last:,} has {size:,} characters: continue with first_line={last}, "
            f"first_character={stop - begin + 1}."
        )
    elif last < len(ends):
        notes.append(f"Continue with first_line={last + 1}.")
    if is_table and number > 1:
        notes.append(f"Line 1: {text[: min(_find_end(text, ends, 1), PAGE_CHARS)]}")
    body = text[start:stop].removesuffix("\n")
    return Result([Text(f"[{' '.join(notes)}]\n{body}")])


def _cut_line(text: str, start: int) -> int:
    """Return where a page ends within a line."""
    stop = start + PAGE_CHARS
    gap = max(text.rfind(mark, start + PAGE_CHARS // 2, stop) for mark in (" ", ","))
    return stop if gap < 0 else gap + 1


def _find_end(text: str, ends: array[int], number: int) -> int:
    """Return where a line ends, without its line end."""
    end = ends[number - 1]
    return end - 1 if text[end - 1 : end] == "\n" else end


def _make_form(info: messages.ResourceInfo, version: str) -> dict[str, Any]:
    has_title = has_feature(version, "title")
    modified = info.modified if has_feature(version, "lastModified") else None
    fields = {
        "uri": info.uri,
        "name": info.name,
        "title": info.title if has_title else None,
        "description": info.description if has_title else info.description or info.title,
        "mimeType": info.mime_type,
        "size": info.size,
        "annotations": None if modified is None else {"lastModified": format_moment(modified)},
    }
    return {name: value for name, value in fields.items() if value is not None}
