"""What clients can read besides results: the originals of what results show only in part.

Runs in the user's kernel. Calls keep originals from whichever thread they run on; the endpoint's
thread lists them and has them read. They are kept as long as the kernel lives and there is room:
beyond `max_bytes` those that nobody has read or made for the longest time expire. What an original
is, is made by who knows it (`kernel.results.tables.render`, `kernel.results.blocks.images`...); how
a client gets it is `kernel.link.resource_reader`'s and `bridge.server.resources`' business.
"""

import secrets
import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from urllib.parse import quote

from mcp_notebook.content import ResourceLink, Result
from mcp_notebook.errors import UnknownResource
from mcp_notebook.kernel.results.blocks.originals import FileFormat, Original
from mcp_notebook.wire import resource_uris

MAX_ORIGINALS = 1_000
"""Originals that are kept at a time, however small."""
MAX_NAME, MAX_EXTENSION = 100, 20
"""Characters of a file's name, which the author's data may give: bridges read short URIs only."""
MAX_EXPIRED = 10_000
"""Expired originals that are remembered, to be told from those that never were."""


@dataclass(frozen=True)
class _Kept:
    first: int
    """Number of the first of the links; the others follow."""
    original: Original
    links: tuple[ResourceLink, ...]


class ResourceStore:
    """Keeps originals within bounds; safe to use from any thread.

    Args:
        kernel_id: Of the kernel's record: the first part of each URI, which tells a bridge whom to
            ask.
        max_bytes: Bytes of memory that originals may hold together.
    """

    def __init__(self, kernel_id: str, max_bytes: int) -> None:
        self._prefix = resource_uris.make_prefix(kernel_id)
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, _Kept] = OrderedDict()
        """By key; the one that was made or read last is the last."""
        self._last = 0
        """The highest number of a link."""
        self._expired: OrderedDict[str, None] = OrderedDict()

    def keep(self, original: Original) -> tuple[ResourceLink, ...]:
        """Keep an original, see `originals.OriginalSink`."""
        if original.cost > self._max_bytes:
            return ()
        key = secrets.token_hex(8)
        links = tuple(self._link(key, original, form) for form in original.formats)
        with self._lock:
            first = self._last + 1
            self._last += len(links)
            self._kept[key] = _Kept(first, original, links)
            # Counted anew each time: a call may be stopped anywhere in here.
            held = sum(item.original.cost for item in self._kept.values())
            gone = []
            while held > self._max_bytes or len(self._kept) > MAX_ORIGINALS:
                gone.append(self._expire_oldest())
                held -= gone[-1].original.cost
        # Out of the lock: what the user's objects do at their end may take long, or end up here.
        del gone
        return links

    def has_originals_of(self, result: Result) -> bool:
        """Tell whether nothing that a result links to has expired; it counts as used just now."""
        links = [block.uri for block in result.content if isinstance(block, ResourceLink)]
        keys = {self._key(uri) for uri in links if uri.startswith(self._prefix)}
        with self._lock:
            for key in keys & self._kept.keys():
                self._kept.move_to_end(key)
            return keys <= self._kept.keys()

    @property
    def links(self) -> Sequence[ResourceLink]:
        """All that can be read now, in the order in which it was made."""
        return [link for _, link in self.list_links()]

    def list_links(
        self, after: int = 0, limit: int | None = None
    ) -> list[tuple[int, ResourceLink]]:
        """Return what can be read now, each with its number, which no other ever has.

        Args:
            after: Only those with a higher number.
            limit: At most so many.
        """
        with self._lock:
            kept = sorted(self._kept.values(), key=lambda item: item.first)
        numbered = (pair for item in kept for pair in enumerate(item.links, item.first))
        return list(islice((pair for pair in numbered if pair[0] > after), limit))

    def find_form(self, uri: str) -> FileFormat:
        """Find what a URI stands for; it counts as used just now.

        Raises:
            UnknownResource: It has expired, or never was.
        """
        key = self._key(uri)
        with self._lock:
            kept = self._kept.get(key)
            if kept is not None:
                for link, form in zip(kept.links, kept.original.formats, strict=True):
                    if link.uri == uri:
                        self._kept.move_to_end(key)
                        return form
            expired = key in self._expired
        raise UnknownResource(uri, expired=expired)

    def clear(self) -> None:
        """Let everything go."""
        with self._lock:
            gone = [self._expire_oldest() for _ in range(len(self._kept))]
        del gone  # as in `keep`

    def _key(self, uri: str) -> str:
        return uri.removeprefix(self._prefix).partition("/")[0]

    def _link(self, key: str, original: Original, form: FileFormat) -> ResourceLink:
        # A name may come from the author's data; a lone surrogate in it has no UTF-8.
        name = f"{original.name[:MAX_NAME]}{form.extension[:MAX_EXTENSION]}"
        name = name.encode("utf-8", "replace").decode()
        return ResourceLink(
            uri=f"{self._prefix}{key}/{quote(name, safe='')}",
            name=name,
            title=original.title,
            mime_type=form.mime_type,
            size=form.size,
        )

    def _expire_oldest(self) -> _Kept:
        key, gone = self._kept.popitem(last=False)
        self._expired[key] = None
        if len(self._expired) > MAX_EXPIRED:
            self._expired.popitem(last=False)
        return gone
