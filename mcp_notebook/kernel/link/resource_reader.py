"""Resources as clients get them: what is listed, and the making of what is read.

Runs in the user's kernel. Listing is instant and done on the endpoint's thread. Making a content
may take long (a table of a million rows as CSV), and is the user's objects' code in part: it is
done on worker threads of its own, a few at a time, never on the endpoint's or the main one, so that
it works while a cell runs. The threads are daemons: one whose making never ends does not hold up
the kernel's end. What is kept, and for how long, is `kernel.link.resource_store`' business.
"""

import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress

from mcp_notebook.content import Resource
from mcp_notebook.errors import UnknownResource
from mcp_notebook.kernel.link.resource_store import ResourceStore
from mcp_notebook.kernel.safe.text import describe_error
from mcp_notebook.wire import content_blocks, messages

logger = logging.getLogger(__name__)

MAX_READERS = 4
"""Contents that are made at a time."""
MAX_WAITING = 64
"""Further ones that may wait for that."""
MAX_CONTENT = 100 * 2**20
"""Bytes of one content: a bridge holds several copies of it on its way to the client."""

Reply = Callable[[messages.Contents, Sequence[bytes]], None]
"""Takes a content or what went wrong, on any thread."""


class ResourceReader:
    """Lists and reads what a store keeps; any thread may ask.

    Args:
        store: Keeps the originals.
    """

    def __init__(self, store: ResourceStore) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._waiting: deque[tuple[messages.ReadResource, Reply]] = deque()
        self._readers = 0
        self._closed = False

    def list_resources(self, after: int, limit: int) -> list[messages.ResourceInfo]:
        """Return what can be read now: up to so many with a higher number than `after`."""
        return [
            messages.ResourceInfo(
                number=number,
                uri=link.uri,
                name=link.name,
                title=link.title,
                description=link.description,
                mime_type=link.mime_type,
                size=link.size,
            )
            for number, link in self._store.list_links(after, limit)
        ]

    def read(self, request: messages.ReadResource, reply: Reply) -> None:
        """Have a content made; replied to exactly once, unless `close` comes first."""
        with self._lock:
            full = len(self._waiting) >= MAX_WAITING
            if not full and not self._closed:
                self._waiting.append((request, reply))
                if self._readers < MAX_READERS:
                    self._readers += 1
                    threading.Thread(
                        target=self._work, name="mcp-notebook-read", daemon=True
                    ).start()
        if full:
            busy = f"The notebook is busy with {MAX_WAITING} other reads. Try again later."
            reply(messages.Contents(id=request.id, error=busy), ())

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
                request, reply = self._waiting.popleft()
            with suppress(RuntimeError):  # the endpoint's loop is closed: nobody listens
                reply(*self._contents(request))

    def _contents(
        self, request: messages.ReadResource
    ) -> tuple[messages.Contents, Sequence[bytes]]:
        uri = request.uri
        most = MAX_CONTENT if request.most is None else min(request.most, MAX_CONTENT)
        try:
            return content_blocks.pack_resource(request.id, self._made(uri, most))
        except UnknownResource as error:
            return messages.Contents(id=request.id, error=str(error), unknown=True), ()
        except _TooLarge as error:
            other = (
                "Read a smaller form of it, ask the tool for less, or save it with `mcp-notebook "
                "call TOOL --save DIR`."
                if most < MAX_CONTENT
                else "Ask the tool for less, or have it write a file."
            )
            said = (
                f"The resource {uri!r} is too large to be read: {error} bytes, at most {most:,} "
                f"are sent. {other}"
            )
            return messages.Contents(id=request.id, error=said), ()
        except BaseException as error:  # noqa: BLE001 - the user's objects may raise anything
            said = (
                f"The resource {uri!r} cannot be read: making its content failed with "
                f"{describe_error(error)}. Another form of it, if one is listed, or another call "
                "of the tool may do."
            )
            return messages.Contents(id=request.id, error=said), ()

    def _made(self, uri: str, most: int) -> Resource:
        form = self._store.find_form(uri)
        if form.size is not None and form.size > most:
            raise _TooLarge(f"{form.size:,}")
        data = form.content()
        if not isinstance(data, str | bytes | bytearray | memoryview):
            raise TypeError(f"it is {type(data).__name__}, neither str nor bytes")
        size = len(data)
        if isinstance(data, str) and size <= most:  # or it is known without a copy
            size = len(data.encode("utf-8", "surrogatepass"))
        if size > most:
            raise _TooLarge(f"{size:,}")
        return Resource(uri, data if isinstance(data, str) else bytes(data), form.mime_type)


class _TooLarge(Exception):
    """A content has more bytes than are sent; says how many, at least."""
