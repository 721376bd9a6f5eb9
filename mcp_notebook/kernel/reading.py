"""Resources as clients get them: what is listed, and the making of what is read.

Runs in the user's kernel. Listing is instant and done on the endpoint's thread. Making a content
may take long (a table of a million rows as CSV), and is the user's objects' code in part: it is
done on worker threads of its own, a few at a time, never on the endpoint's or the main one, so that
it works while a cell runs. The threads are daemons: one whose making never ends does not hold up
the kernel's end. What is kept, and for how long, is `kernel.resources`' business.
"""

import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress

from mcp_notebook.content import Resource
from mcp_notebook.errors import UnknownResource
from mcp_notebook.kernel.resources import ResourceStore
from mcp_notebook.kernel.texts import safe_message
from mcp_notebook.wire import Contents, ResourceInfo, pack_contents

logger = logging.getLogger(__name__)

MAX_READERS = 4
"""Contents that are made at a time."""
MAX_WAITING = 64
"""Further ones that may wait for that."""
MAX_CONTENT = 100 * 2**20
"""Bytes of one content: a bridge holds several copies of it on its way to the client."""

Reply = Callable[[Contents, Sequence[bytes]], None]
"""Takes a content or what went wrong, on any thread."""


class Reading:
    """Lists and reads what a store keeps; any thread may ask.

    Args:
        store: Keeps the originals.
    """

    def __init__(self, store: ResourceStore) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._waiting: deque[tuple[int, str, Reply]] = deque()
        self._readers = 0
        self._closed = False

    def infos(self, after: int, limit: int) -> list[ResourceInfo]:
        """Return what can be read now: up to so many with a higher number than `after`."""
        return [
            ResourceInfo(
                number=number,
                uri=link.uri,
                name=link.name,
                title=link.title,
                description=link.description,
                mime_type=link.mime_type,
                size=link.size,
            )
            for number, link in self._store.listed(after, limit)
        ]

    def read(self, request_id: int, uri: str, reply: Reply) -> None:
        """Have a content made; replied to exactly once, unless `close` comes first."""
        with self._lock:
            full = len(self._waiting) >= MAX_WAITING
            if not full and not self._closed:
                self._waiting.append((request_id, uri, reply))
                if self._readers < MAX_READERS:
                    self._readers += 1
                    threading.Thread(
                        target=self._work, name="mcp-notebook-read", daemon=True
                    ).start()
        if full:
            busy = f"The notebook is busy with {MAX_WAITING} other reads. Try again later."
            reply(Contents(id=request_id, error=busy), ())

    def close(self) -> None:
        """Begin to make no more contents; what is being made is nobody's any more."""
        with self._lock:
            self._closed = True
            self._waiting.clear()

    def _work(self) -> None:
        while True:
            with self._lock:
                if not self._waiting:
                    self._readers -= 1
                    return
                request_id, uri, reply = self._waiting.popleft()
            with suppress(RuntimeError):  # the endpoint's loop is closed: nobody listens
                reply(*self._contents(request_id, uri))

    def _contents(self, request_id: int, uri: str) -> tuple[Contents, Sequence[bytes]]:
        try:
            message, attachments = pack_contents(request_id, self._made(uri))
        except UnknownResource as error:
            return Contents(id=request_id, error=str(error), unknown=True), ()
        except BaseException as error:  # noqa: BLE001 - the user's objects may raise anything
            said = (
                f"The resource {uri!r} cannot be read: making its content failed with "
                f"{safe_message(error)}. Another form of it, if one is listed, or another call of "
                "the tool may do."
            )
            return Contents(id=request_id, error=said), ()
        size = sum(map(len, attachments))
        if size > MAX_CONTENT:
            said = (
                f"The resource {uri!r} is too large to be read: {size:,} bytes, at most "
                f"{MAX_CONTENT:,} can be sent. Ask the tool for less, or have it write a file."
            )
            return Contents(id=request_id, error=said), ()
        return message, attachments

    def _made(self, uri: str) -> Resource:
        form = self._store.form(uri)
        data = form.content()
        if not isinstance(data, str | bytes | bytearray | memoryview):
            raise TypeError(f"it is {type(data).__name__}, neither str nor bytes")
        return Resource(uri, data if isinstance(data, str) else bytes(data), form.mime_type)
