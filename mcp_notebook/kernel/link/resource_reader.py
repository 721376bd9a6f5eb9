"""Lists resources and reads their contents for clients, and completes arguments.

Listing is instant and runs on the endpoint's thread. Creating a content may take long (a table of a
million rows as CSV), and may run code of the user's objects; so may the completion of an argument.
Both happen on a few worker threads, which need neither the main thread nor block the endpoint. They
are daemon threads, so one that never returns does not keep the kernel from exiting.
"""

import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress

from mcp_notebook.content import Resource
from mcp_notebook.errors import ResourceFailed, UnknownResource
from mcp_notebook.kernel.link.resource_store import ResourceStore
from mcp_notebook.kernel.results.views.plot_libraries import read_library
from mcp_notebook.kernel.safe.text import describe_error
from mcp_notebook.wire import content_blocks, messages, resource_uris

logger = logging.getLogger(__name__)

MAX_READERS = 4
"""Worker threads."""
MAX_WAITING = 64
"""Requests that may wait for a worker thread."""
MAX_CONTENT = 100 * 2**20
"""Bytes of one content: a bridge holds several copies of it on its way to the client."""

Reply = Callable[[messages.Contents, Sequence[bytes]], None]
"""Receives a content, or an error; called on any thread."""


def _make_no_page(tool: str) -> str:
    raise ResourceFailed(f"The tool `{tool}` has no page of its own.")


class ResourceReader:
    """Lists and reads what a store keeps; safe to use from any thread.

    Args:
        store: Keeps the originals.
        make_page: Makes the own page of a tool, given its name.
        complete: Returns the values that an argument may have, and how many there are.
    """

    def __init__(
        self,
        store: ResourceStore,
        make_page: Callable[[str], str] = _make_no_page,
        complete: Callable[[messages.Complete], tuple[list[str], int]] = lambda _request: ([], 0),
    ) -> None:
        self._store = store
        self._make_page = make_page
        self._complete = complete
        self._lock = threading.Lock()
        self._waiting: deque[Callable[[], None]] = deque()
        self._readers = 0
        self._closed = False

    def list_resources(self, after: int, limit: int) -> list[messages.ResourceInfo]:
        """Describe what can be read now, in the order of the numbers.

        Args:
            after: Only resources with a higher number.
            limit: At most this many.
        """
        return [
            messages.ResourceInfo(
                number=number,
                uri=link.uri,
                name=link.name,
                title=link.title,
                description=link.description,
                mime_type=link.mime_type,
                size=link.size,
                modified=kept_at,
            )
            for number, link, kept_at in self._store.list_links(after, limit)
        ]

    def read(self, request: messages.ReadResource, reply: Reply) -> None:
        """Read a content; `reply` is called exactly once, unless `close` is called first."""
        if not self._start(lambda: reply(*self._answer(request))):
            busy = f"The notebook is busy with {MAX_WAITING} other reads. Try again later."
            reply(messages.Contents(id=request.id, error=busy), ())

    def complete(
        self, request: messages.Complete, reply: Callable[[messages.Completed], None]
    ) -> None:
        """Complete an argument; `reply` is called as by `read`, without values if that fails."""

        def answer() -> None:
            try:
                values, total = self._complete(request)
            except BaseException as error:  # noqa: BLE001 - the author's code may raise anything
                what = request.argument
                logger.info("%r could not be completed: %s", what, describe_error(error))
                values, total = [], 0
            reply(messages.Completed(id=request.id, values=values, total=total))

        if not self._start(answer):
            reply(messages.Completed(id=request.id))

    def _start(self, job: Callable[[], None]) -> bool:
        """Have a worker thread do a job; return False if too many are waiting."""
        with self._lock:
            is_full = len(self._waiting) >= MAX_WAITING
            if not is_full and not self._closed:
                self._waiting.append(job)
                if self._readers < MAX_READERS:
                    self._readers += 1
                    threading.Thread(
                        target=self._work, name="mcp-notebook-read", daemon=True
                    ).start()
        return not is_full

    def close(self) -> None:
        """Start no more reads; the results of those that run are dropped."""
        with self._lock:
            self._closed = True
            self._waiting.clear()

    def _work(self) -> None:
        while True:
            with self._lock:
                if not self._waiting:
                    self._readers -= 1
                    return
                job = self._waiting.popleft()
            with suppress(RuntimeError):  # the endpoint's loop is closed
                job()

    def _answer(self, request: messages.ReadResource) -> tuple[messages.Contents, Sequence[bytes]]:
        uri = request.uri
        max_bytes = MAX_CONTENT if request.most is None else min(request.most, MAX_CONTENT)
        try:
            return content_blocks.pack_resource(request.id, self._create(uri, max_bytes))
        except UnknownResource as error:
            return messages.Contents(id=request.id, error=str(error), unknown=True), ()
        except _TooLarge as error:
            refusal = _refuse(uri, error, max_bytes)
        except ResourceFailed as error:
            refusal = str(error)
        except BaseException as error:  # noqa: BLE001 - the user's objects may raise anything
            refusal = (
                f"The resource {uri!r} cannot be read: creating its content failed with "
                f"{describe_error(error)}. Read it in another format, if one is listed, or call "
                "the tool again."
            )
        return messages.Contents(id=request.id, error=refusal), ()

    def _create(self, uri: str, max_bytes: int) -> Resource:
        address, query = resource_uris.split_query(uri)
        view = self._store.find_view(address)
        if view is not None:
            return Resource(uri, view.answer(query), "application/json")
        if (library := resource_uris.find_part(address, resource_uris.LIBRARIES)) is not None:
            script = read_library(library)
            if script is not None:
                return Resource(uri, script, "text/javascript")
        if (tool := resource_uris.find_part(address, resource_uris.PAGES)) is not None:
            return Resource(uri, self._make_page(tool), "application/json")
        file_format = self._store.find_format(address)
        if file_format.size is not None and file_format.size > max_bytes:
            raise _TooLarge(file_format.size)
        data = file_format.content()
        if not isinstance(data, str | bytes | bytearray | memoryview):
            raise TypeError(f"it is {type(data).__name__}, neither str nor bytes")
        size = len(data)
        if (
            isinstance(data, str) and size <= max_bytes
        ):  # else it is too large however it is encoded
            size = len(data.encode("utf-8", "surrogatepass"))
        if size > max_bytes:
            raise _TooLarge(size)
        return Resource(uri, data if isinstance(data, str) else bytes(data), file_format.mime_type)


class _TooLarge(Exception):
    """A content has more bytes than may be sent.

    Args:
        size: Bytes that it has, at least.
    """

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self.size = size


def _refuse(uri: str, error: _TooLarge, max_bytes: int) -> str:
    """Return the error for a content that is too large, with the next step."""
    advice = (
        "Read it in a smaller format, ask the tool for less, or save it with `mcp-notebook call "
        "TOOL --save DIR`."
        if max_bytes < MAX_CONTENT
        else "Ask the tool for less, or have it write a file."
    )
    return (
        f"The resource {uri!r} is too large to read: it has {error.size:,} bytes, and at most "
        f"{max_bytes:,} are sent. {advice}"
    )
