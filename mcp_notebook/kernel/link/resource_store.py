"""Keeps the originals that results show only in part, so that clients can read them.

Any thread may use it: calls keep originals on their own threads, the endpoint's thread lists them,
and worker threads read them. Above `max_bytes`, which the results of tasks share, the least
recently used originals expire.
"""

import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Sequence
from urllib.parse import quote

from msgspec import Struct

from mcp_notebook.content import ResourceLink
from mcp_notebook.errors import UnknownResource
from mcp_notebook.kernel.results.blocks.originals import FileFormat, Original
from mcp_notebook.kernel.results.views.table_view import TableView
from mcp_notebook.wire import resource_uris

MAX_ORIGINALS = 1_000
"""Originals that are kept at the same time, however small."""
MAX_NAME, MAX_EXTENSION = 100, 20
"""Characters of a file's name, which may come from the author's data: bridges refuse long URIs."""
MAX_EXPIRED = 10_000
"""Expired originals that are remembered, to distinguish them from those that never existed."""


class _Entry(Struct, frozen=True):
    """An original that is kept, with its links."""

    first: int
    """Number of the first of its links; the others follow."""
    original: Original
    links: tuple[ResourceLink, ...]
    view: TableView | None
    """Answers the queries of its live view, if it is a table."""
    kept_at: float
    """When it was kept, in seconds since the epoch."""


class ResourceStore:
    """Keeps originals within bounds; safe to use from any thread.

    Args:
        kernel_id: Id of the kernel's record. It is part of each URI, so that bridges know which
            kernel to ask.
        max_bytes: Bytes of memory for all originals together, including the reserved bytes.
    """

    def __init__(self, kernel_id: str, max_bytes: int) -> None:
        self._prefix = resource_uris.make_prefix(kernel_id)
        self._max_bytes = max_bytes
        self._reserved = 0
        self._lock = threading.Lock()
        self._entries: OrderedDict[str, _Entry] = OrderedDict()
        """By key, in the order of their last use."""
        self._last = 0
        """The highest number of a link."""
        self._expired: OrderedDict[str, None] = OrderedDict()
        self._last_view: TableView | None = None
        """The view that was asked last. Only it keeps what it has read of its table."""

    def keep(self, original: Original) -> tuple[ResourceLink, ...]:
        """Keep an original, and return a link for each of its formats; none if it is too large.

        An original without formats has only a live view, and a link to that.
        """
        if original.cost > self._max_bytes - self._reserved:
            return ()
        key = secrets.token_hex(8)
        links = tuple(self._link(key, original, file_format) for file_format in original.formats)
        with self._lock:
            first = self._last + 1
            self._last += len(links)
            view = None if original.read_table is None else TableView(original.read_table)
            self._entries[key] = _Entry(first, original, links, view, time.time())
            expired = self._expire_excess()
        # Without the lock: finalizers of the user's objects may take long, or call this method.
        del expired
        uri = resource_uris.make_view_uri(f"{self._prefix}{key}/")
        return links or (ResourceLink(uri=uri, name=original.name),)

    def reserve(self, size: int) -> None:
        """Reserve bytes for something else; originals expire to make room."""
        with self._lock:
            self._reserved = size
            expired = self._expire_excess()
        del expired  # without the lock, as in `keep`

    @property
    def links(self) -> Sequence[ResourceLink]:
        """Links to everything that can be read now, in the order of creation."""
        return [link for _, link, _ in self.list_links()]

    def list_links(
        self, after: int = 0, limit: int | None = None
    ) -> list[tuple[int, ResourceLink, float]]:
        """Return links to everything that can be read, with their numbers, which are never reused.

        The last part of each is when it was kept, in seconds since the epoch.

        Args:
            after: Only links with a higher number.
            limit: At most this many; None: all.
        """
        with self._lock:
            entries = sorted(self._entries.values(), key=lambda entry: entry.first)
        numbered = (
            (number, link, entry.kept_at)
            for entry in entries
            for number, link in enumerate(entry.links, entry.first)
        )
        later = [pair for pair in numbered if pair[0] > after]
        return later if limit is None else later[: max(limit, 0)]

    def find_view(self, uri: str) -> TableView | None:
        """Return the live view that a URI names, or None for any other URI; counts as a use.

        Raises:
            UnknownResource: Its original has expired, or never existed.
        """
        if not uri.endswith(f"/{resource_uris.VIEW}"):
            return None
        key = self._key(uri)
        with self._lock:
            entry = self._entries.get(key)
            view = None if entry is None else entry.view
            expired = key in self._expired
            if view is not None:
                self._entries.move_to_end(key)
                previous, self._last_view = self._last_view, view
        if view is None:
            raise UnknownResource(uri, expired=expired)
        if previous is not None and previous is not view:
            previous.forget()
        return view

    def find_format(self, uri: str) -> FileFormat:
        """Return the file format behind a URI; counts as a use.

        Raises:
            UnknownResource: It has expired, or never existed.
        """
        key = self._key(uri)
        with self._lock:
            entry = self._entries.get(key)
            if entry is not None:
                for link, file_format in zip(entry.links, entry.original.formats, strict=True):
                    if link.uri == uri:
                        self._entries.move_to_end(key)
                        return file_format
            expired = key in self._expired
        raise UnknownResource(uri, expired=expired)

    def clear(self) -> None:
        """Let all originals expire."""
        self._last_view = None
        with self._lock:
            expired = [self._expire_oldest() for _ in range(len(self._entries))]
        del expired  # without the lock, as in `keep`

    def _key(self, uri: str) -> str:
        return uri.removeprefix(self._prefix).partition("/")[0]

    def _link(self, key: str, original: Original, file_format: FileFormat) -> ResourceLink:
        # A name may come from the author's data; a lone surrogate in it has no UTF-8.
        name = f"{original.name[:MAX_NAME]}{file_format.extension[:MAX_EXTENSION]}"
        name = name.encode("utf-8", "replace").decode()
        return ResourceLink(
            uri=f"{self._prefix}{key}/{quote(name, safe='')}",
            name=name,
            title=original.title,
            mime_type=file_format.mime_type,
            size=file_format.size,
        )

    def _expire_excess(self) -> list[_Entry]:
        """Expire originals until the rest fits, and return them."""
        # Summed up each time, because a call may be interrupted anywhere in here.
        cost = self._reserved + sum(entry.original.cost for entry in self._entries.values())
        expired: list[_Entry] = []
        while self._entries and (cost > self._max_bytes or len(self._entries) > MAX_ORIGINALS):
            expired.append(self._expire_oldest())
            cost -= expired[-1].original.cost
        return expired

    def _expire_oldest(self) -> _Entry:
        key, entry = self._entries.popitem(last=False)
        if entry.view is self._last_view:
            self._last_view = None
        self._expired[key] = None
        if len(self._expired) > MAX_EXPIRED:
            self._expired.popitem(last=False)
        return entry
