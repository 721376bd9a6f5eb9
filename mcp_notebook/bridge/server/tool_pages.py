"""The list of tools as clients get it: in MCP's own form, kept between requests, cut into pages.

Runs in the bridge, on its event loop; no I/O. What is listed is `bridge.kernels.catalog`'s
business, what MCP's form of a tool is `bridge.server.server`'s, which gives this module the
function that makes it.

A list is put together once for each change and version of the protocol, and what has not changed is
taken over: of a thousand tools with one change, one is made anew.

*Cursors.* A cursor is made of the whole list and a position in it, so it means its page as long as
the list stays as it is, also after a restart of the bridge; after a change it is unknown, and no
client puts together pages of different lists. The cursors of a list are looked up, never read: what
was not given out is unknown, whatever it looks like.
"""

import hashlib
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from pydantic_core import to_json

from mcp_notebook.bridge.kernels.catalog import CatalogEntry
from mcp_notebook.wire import messages

logger = logging.getLogger(__name__)

WireForm: TypeAlias = Callable[[str, messages.ToolInfo, str], dict[str, Any]]
"""Makes MCP's form of a tool: served name, tool, protocol version -> JSON object; raises
``ValueError`` (pydantic's errors are) for one that this version does not take."""


@dataclass(frozen=True)
class Page:
    """Some tools of the list, in order."""

    tools: tuple[dict[str, Any], ...]
    """In MCP's form; shared by all who ask, not to be changed."""
    next_cursor: str | None
    """Names the page that follows; None: this is the last."""


@dataclass(frozen=True)
class _Made:
    """A tool, with what became of it."""

    tool: messages.ToolInfo
    form: dict[str, Any] | None = None
    """None: the protocol's version does not take it."""
    digest: bytes = b""


@dataclass(frozen=True)
class _View:
    """One list in one version of the protocol."""

    entries: Sequence[CatalogEntry]
    made: Mapping[str, _Made]
    pages: Mapping[str | None, Page]
    """By the cursor that asks for it; the first page by None."""


class Pages:
    """The pages of the list of tools; belongs to the bridge's event loop.

    Args:
        wire_form: Makes MCP's form of a tool.
        first: Tools that come before all others: clients that take only so many cut the end.
        page_size: Tools on a page; None: all.
    """

    def __init__(
        self,
        wire_form: WireForm,
        first: Sequence[messages.ToolInfo] = (),
        page_size: int | None = None,
    ) -> None:
        self._wire_form = wire_form
        self._first = tuple(first)
        self._page_size = page_size
        self._views: dict[str, _View] = {}

    def page(
        self, entries: Sequence[CatalogEntry], protocol_version: str, cursor: str | None
    ) -> Page | None:
        """Return a page of the list.

        Args:
            entries: What the catalogue lists; the same object as long as nothing changes.
            protocol_version: The client's.
            cursor: As the page before gave it; None: the first page.

        Returns:
            The page, or None if the cursor is none of this list's.
        """
        view = self._views.get(protocol_version)
        if view is None or view.entries is not entries:
            view = self._view(entries, protocol_version, {} if view is None else view.made)
            self._views[protocol_version] = view
        return view.pages.get(cursor)

    def _view(
        self, entries: Sequence[CatalogEntry], version: str, before: Mapping[str, _Made]
    ) -> _View:
        named = [(tool.name, tool) for tool in self._first]
        named += [(entry.name, entry.tool) for entry in entries]
        made: dict[str, _Made] = {}
        for name, tool in named:
            old = before.get(name)
            # A kernel sends its whole list at each change: equal tools are not the same objects.
            same = old is not None and (old.tool is tool or old.tool == tool)
            made[name] = old if same and old is not None else self._make(name, tool, version)
        return _View(entries, made, self._cut(list(made.values())))

    def _make(self, name: str, tool: messages.ToolInfo, version: str) -> _Made:
        try:
            form = self._wire_form(name, tool, version)
            # What cannot be written would cost the client the whole list.
            written = to_json(form)
        except (ValueError, RecursionError) as error:
            logger.warning("The tool %r is left out of the list (MCP %s): %s", name, version, error)
            return _Made(tool)
        return _Made(tool, form, hashlib.sha256(written).digest())

    def _cut(self, made: Sequence[_Made]) -> dict[str | None, Page]:
        listed = [item for item in made if item.form is not None]
        forms = tuple(item.form for item in listed if item.form is not None)
        if self._page_size is None or len(forms) <= self._page_size:
            return {None: Page(forms, None)}
        whole = hashlib.sha256(b"".join(item.digest for item in listed))
        starts = range(0, len(forms), self._page_size)
        cursors = [None, *(_cursor(whole, start) for start in starts[1:]), None]
        return {
            cursors[number]: Page(forms[start : start + self._page_size], cursors[number + 1])
            for number, start in enumerate(starts)
        }


def _cursor(whole: Any, start: int) -> str:
    digest = whole.copy()
    digest.update(b"%d" % start)
    return str(digest.hexdigest()[:32])
