"""Lists resources and reads their contents for clients, and completes arguments.

Listing is instant and runs on the endpoint's thread. Creating a content may take long (a table of a
million rows as CSV), and may run code of the user's objects; so may the completion of an argument.
Both happen on a few worker threads, which need neither the main thread nor block the endpoint. They
are daemon threads, so one that never returns does not keep the kernel from exiting.

A guest (a caller other than the user) has one worker at a time, and one is kept for the user. A
read ends with its request and after a limit of time; code that does not return to Python keeps its
worker, and only its own caller waits for that.
"""

import logging
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial

from mcp_notebook.content import Resource
from mcp_notebook.errors import ResourceFailed, UnknownResource
from mcp_notebook.kernel.link.resource_store import ResourceStore
from mcp_notebook.kernel.results.views.plot_libraries import read_library
from mcp_notebook.kernel.safe.interrupter import REPEAT_AFTER, AsyncInterrupter
from mcp_notebook.kernel.safe.text import describe_error
from mcp_notebook.wire import content_blocks, messages, resource_uris

logger = logging.getLogger(__name__)

MAX_READERS = 4
"""Worker threads; all guests together may have one less."""
QUERY_LIMIT = 5.0
"""Seconds for the answer to a live view's query: a person waits for it."""
READ_LIMIT = 60.0
"""Seconds for anything else; a bridge waits no longer."""
MAX_WAITING = 64
"""Requests that may wait for a worker thread."""
MAX_CONTENT = 100 * 2**20
"""Bytes of one content: a bridge holds several copies of it on its way to the client."""

Reply = Callable[[messages.Contents, Sequence[bytes]], None]
"""Receives a content, or an error; called on any thread."""


class Read:
    """A read or completion from its request to the end of its code; safe to use from any thread.

    Args:
        guest: Who asks, unless it is the user.
        seconds: How long it may run.
        work: Makes the answer, on a worker thread, and returns a function that sends it.
        fail: Sends the answer when the time is over.
    """

    def __init__(
        self,
        guest: str,
        seconds: float,
        work: Callable[[], Callable[[], None]],
        fail: Callable[[], None] = lambda: None,
    ) -> None:
        self.guest = guest
        self._seconds = seconds
        self._work = work
        self._fail = fail
        self._lock = threading.Lock()
        self._is_answered = False
        self._has_ended = threading.Event()
        """Set when its code has ended."""
        self._thread = 0
        self._interrupter: AsyncInterrupter | None = None
        """Made on the worker thread, which it interrupts; None before it runs."""

    def end(self) -> None:
        """Stop it: its answer is no longer wanted."""
        self._answer(lambda: None)
        self._stop()

    def run(self) -> None:
        """Make the answer, on a worker thread."""
        self._thread = threading.get_ident()
        interrupter = self._interrupter = AsyncInterrupter(KeyboardInterrupt)
        timer = _start_timer(self._seconds, self._end_late)
        try:
            if not self._is_answered:
                self._answer(interrupter.run(self._work))
        except KeyboardInterrupt:
            logger.debug("a read was stopped")
        finally:
            interrupter.remove()
            self._has_ended.set()
            timer.cancel()

    def _end_late(self) -> None:
        self._answer(self._fail)
        self._stop()

    def _answer(self, send: Callable[[], None]) -> None:
        with self._lock:
            is_first, self._is_answered = not self._is_answered, True
        if is_first:
            with suppress(RuntimeError):  # the endpoint's loop is closed
                send()

    def _stop(self) -> None:
        """Interrupt its code until it has ended: it may catch exceptions, or not listen yet."""
        if not self._has_ended.is_set():
            # Not while it imports: half a module would stay broken.
            if self._interrupter is not None and not _is_importing(self._thread):
                self._interrupter.interrupt()
            _start_timer(REPEAT_AFTER, self._stop)


def _start_timer(seconds: float, function: Callable[[], None]) -> threading.Timer:
    timer = threading.Timer(seconds, function)
    timer.daemon = True
    timer.start()
    return timer


def _is_importing(thread: int) -> bool:
    frame = sys._current_frames().get(thread)  # noqa: SLF001 - there is no public way
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


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
        self._waiting: list[Read] = []
        self._running: list[Read] = []
        """The reads that have a worker thread."""
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

    def read(self, request: messages.ReadResource, reply: Reply) -> Read:
        """Read a content; `reply` is called once, unless the read or this reader is ended first."""
        is_query = resource_uris.is_view_uri(request.uri)
        seconds = QUERY_LIMIT if is_query else READ_LIMIT
        late = (
            f"The notebook has not answered within {seconds:g} s, the time limit, and was stopped. "
            + ("Ask for less: filter by one column." if is_query else "Ask the tool for less.")
        )
        read = Read(
            request.guest,
            seconds,
            lambda: partial(reply, *self._answer(request)),
            lambda: reply(messages.Contents(id=request.id, error=late), ()),
        )
        if not self._start(read):
            busy = f"The notebook is busy with {MAX_WAITING} other reads. Try again later."
            reply(messages.Contents(id=request.id, error=busy), ())
        return read

    def complete(
        self, request: messages.Complete, reply: Callable[[messages.Completed], None]
    ) -> Read:
        """Complete an argument; `reply` is called as by `read`, without values if that fails."""

        def answer() -> Callable[[], None]:
            try:
                values, total = self._complete(request)
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # noqa: BLE001 - the author's code may raise anything
                what = request.argument
                logger.info("%r could not be completed: %s", what, describe_error(error))
                values, total = [], 0
            return partial(reply, messages.Completed(id=request.id, values=values, total=total))

        read = Read(
            request.guest, READ_LIMIT, answer, lambda: reply(messages.Completed(id=request.id))
        )
        if not self._start(read):
            reply(messages.Completed(id=request.id))
        return read

    def forget(self, read: Read) -> None:
        """End a read whose request is over."""
        with self._lock:
            if read in self._waiting:
                self._waiting.remove(read)
                return
        read.end()

    def _start(self, read: Read) -> bool:
        """Have a worker thread do a read when it may; return False if too many are waiting."""
        with self._lock:
            is_full = len(self._waiting) >= MAX_WAITING
            if not is_full and not self._closed:
                self._waiting.append(read)
                if (next_read := self._take_next()) is not None:
                    threading.Thread(
                        target=self._run, args=(next_read,), name="mcp-notebook-read", daemon=True
                    ).start()
        return not is_full

    def _take_next(self) -> Read | None:
        """Return the next read that may run: the user's first; while the lock is held."""
        if len(self._running) == MAX_READERS:
            return None
        guests = {read.guest for read in self._running if read.guest}
        for read in sorted(self._waiting, key=lambda read: bool(read.guest)):
            is_free = read.guest not in guests and len(guests) < MAX_READERS - 1
            if is_free or not read.guest:
                self._waiting.remove(read)
                self._running.append(read)
                return read
        return None

    def close(self) -> None:
        """Start no more reads, and end those that run; their results are dropped."""
        with self._lock:
            self._closed = True
            self._waiting.clear()
            running = tuple(self._running)
        for read in running:
            read.end()

    def _run(self, read: Read | None) -> None:
        while read is not None:
            read.run()
            with self._lock:
                self._running.remove(read)
                read = self._take_next()

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
