"""Listens for bridges, on a thread in the kernel with its own event loop.

Runs in one daemon thread, so that bridges are answered while a cell keeps the main thread busy.
That thread owns everything in here. Other threads may call `Endpoint.start`, `stop`,
`announce_tools` and `abandon_in_child`, which use ``call_soon_threadsafe``.
"""

import asyncio
import contextlib
import hmac
import logging
import os
import secrets
import socket
import stat
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from msgspec import Struct

from mcp_notebook._version import __version__
from mcp_notebook.errors import FrameError, LinkError, VersionMismatch
from mcp_notebook.kernel.calls.invoker import Invoker
from mcp_notebook.kernel.link.conversation import Conversation, NotebookPrompts
from mcp_notebook.kernel.link.own_log import log_loop_failure
from mcp_notebook.kernel.link.resource_reader import ResourceReader
from mcp_notebook.kernel.link.side_panel_updates import NotebookView, Watchers
from mcp_notebook.kernel.link.tool_changes import ToolChanges
from mcp_notebook.kernel.tasks.task_store import TaskStore
from mcp_notebook.kernel.tools.context import Update, describe_program
from mcp_notebook.settings.private_files import make_private_folder
from mcp_notebook.wire import messages
from mcp_notebook.wire.frames import FrameProtocol

logger = logging.getLogger(__name__)

START_TIMEOUT = 5.0
"""Seconds to wait until the thread listens."""
STOP_TIMEOUT = 2.0
"""Seconds to wait until the thread has said goodbye and ended."""
HELLO_TIMEOUT = 5.0
"""Seconds that a new connection has to send its hello."""
MAX_SOCKET_PATH = 100
"""Bytes of a Unix socket's path; the lowest limit of any system is 104."""


class Address(Struct, frozen=True):
    """Where the endpoint listens, as published in the record."""

    socket: str | None = None
    port: int | None = None
    token: str | None = None


class Endpoint:
    """Listens for bridges from `start` to `stop`.

    Args:
        calls: Runs the calls.
        tools: Returns the current tools, and why others are missing; called on the endpoint's
            thread. Its argument says whether the bridge offers the notebook's variables.
        reader: Lists and reads resources.
        prompts: Asks in the notebook whether calls may run; None if no person sees it.
        tasks: Holds the calls that outlive their bridges.
        path: The socket's file. If the path is too long for a socket, a file of the same name in
            another folder is used.
        tcp: Listen on loopback TCP with a token, as on systems without Unix sockets.
    """

    def __init__(  # noqa: PLR0913 - one for each part that it uses
        self,
        calls: Invoker,
        tools: Callable[[bool], messages.Tools],
        reader: ResourceReader,
        *,
        tasks: TaskStore,
        path: Path,
        prompts: NotebookPrompts | None = None,
        tcp: bool = sys.platform == "win32",
    ) -> None:
        self._calls = calls
        self._tools = tools
        self._reader = reader
        self._tasks = tasks
        self._path = path
        self._prompts = prompts
        self.view: NotebookView | None = None
        """The notebook's state for side panels on later connections; None: no side panels."""
        self._watchers: Watchers | None = None
        self.on_clients: Callable[[], None] = lambda: None
        """Called on the endpoint's thread when `clients` or `listed_names` has changed; for later
        bridges."""
        self.on_moved: Callable[[str], None] = lambda _: None
        """Called on the endpoint's thread with the new path of the notebook's file; for later
        connections."""
        self._tcp = tcp
        self._last_refusal: str | None = None
        self._conversations: set[Conversation] = set()
        self._changes = ToolChanges(self._send_tools)
        self._listener: socket.socket | None = None
        self._token: str | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping: asyncio.Event | None = None
        self._listening = threading.Event()
        self._goodbye = messages.Goodbye(reason="The notebook's kernel ended.")
        self._thread = threading.Thread(target=self._run, name="mcp-notebook-endpoint", daemon=True)

    @property
    def last_refusal(self) -> str | None:
        """Why the last bridge was refused; None if it was accepted, or if none has connected."""
        return self._last_refusal

    @property
    def clients(self) -> tuple[messages.ClientCount, ...]:
        """The clients of all bridges, as reported by the bridges; on any thread."""
        return tuple(
            client for conversation in tuple(self._conversations) for client in conversation.clients
        )

    @property
    def listed_names(self) -> dict[str, messages.ListedName]:
        """The tools that clients see under other names, by their names here; on any thread."""
        return {
            name.tool: name
            for conversation in tuple(self._conversations)
            for name in conversation.listed_names
        }

    def start(self) -> Address:
        """Start listening; returns when bridges can connect.

        Raises:
            LinkError: The socket cannot be created.
        """
        try:
            self._listener, address = self._listen()
        except OSError as error:
            place = f" in {error.filename}" if error.filename else ""
            raise LinkError(
                f"The notebook cannot listen for clients{place}: {error.strerror or error}. Set "
                "MCP_NOTEBOOK_HOME to a folder on a local disk that you can write to, here and for "
                "the clients; then load the extension again."
            ) from error
        self._thread.start()
        if not self._listening.wait(START_TIMEOUT):
            raise LinkError(
                f"The thread that listens for clients did not start within {START_TIMEOUT:.0f} s. "
                "Restart the kernel and load the extension again."
            )
        return address

    def stop(self, reason: str, *, is_unload: bool = False) -> None:
        """Say goodbye to all bridges and end the thread, within a bounded time; idempotent."""
        loop, stopping = self._loop, self._stopping
        if loop is None or stopping is None or not self._thread.is_alive():
            return
        self._goodbye = messages.Goodbye(reason=reason, is_unload=is_unload)
        with contextlib.suppress(RuntimeError):  # the loop has ended since the check
            loop.call_soon_threadsafe(stopping.set)
        self._thread.join(STOP_TIMEOUT)

    def announce_tools(self) -> None:
        """Send the tools to all bridges, after a moment for further changes; on any thread."""
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop is closed: there are no bridges
                self._changes.announce(self._loop)

    def announce_resource_changes(self, message: messages.ResourcesChanged) -> None:
        """Tell all bridges that declared resources may have changed; on any thread."""
        if self._loop is not None and self._conversations:
            with contextlib.suppress(RuntimeError):  # the loop is closed: there are no bridges
                self._loop.call_soon_threadsafe(self._send_resource_changes, message)

    @property
    def is_inspected(self) -> bool:
        """Whether a bridge offers the notebook's variables; on any thread."""
        return any(conversation.inspects for conversation in tuple(self._conversations))

    def note_change(self) -> None:
        """Update the notebook's side panels soon; from any thread."""
        if self._watchers is not None:
            self._watchers.note_change()

    def show_side_panel(self) -> bool:
        """Ask the pages of the notebook to open their side panels; on any thread.

        Returns:
            Whether a page is there.
        """
        return self._watchers is not None and self._watchers.show_panel()

    def abandon_in_child(self) -> None:
        """In a forked child: detach from the sockets, so that bridges notice the kernel's death.

        The descriptors are redirected to the null device instead of being closed: the child's
        copies of the asyncio objects may close them again, when the numbers have been reused.
        """
        sockets: list[Any] = [self._listener]
        for conversation in tuple(self._conversations):
            sockets += conversation.sockets
        nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        for item in sockets:
            if item is not None and item.fileno() >= 0:
                os.dup2(nothing, item.fileno(), inheritable=False)
        os.close(nothing)

    # -- the endpoint's thread ---------------------------------------------------------------------

    def _listen(self) -> tuple[socket.socket, Address]:
        if self._tcp:
            listener = socket.create_server(("127.0.0.1", 0))
            self._token = secrets.token_urlsafe(32)
            return listener, Address(port=listener.getsockname()[1], token=self._token)
        path = _socket_path(self._path)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            listener.bind(str(path))
            path.chmod(stat.S_IRUSR | stat.S_IWUSR)
            listener.listen()
        except OSError:
            listener.close()
            raise
        return listener, Address(socket=str(path))

    def _run(self) -> None:
        # Not the policy's loop: the user may have set one that only works on the main thread.
        with asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._loop.set_exception_handler(log_loop_failure)
        self._stopping = asyncio.Event()
        assert self._listener is not None
        loop = self._loop
        start = loop.create_server if self._tcp else loop.create_unix_server
        server = await start(lambda: FrameProtocol(self._converse), sock=self._listener)
        self._listening.set()
        try:
            await self._stopping.wait()
        finally:
            server.close()
            for conversation in tuple(self._conversations):
                conversation.close(self._goodbye)
            if not self._tcp:
                with contextlib.suppress(OSError):
                    os.unlink(self._listener.getsockname())  # noqa: PTH108 - a path as bytes or str

    async def _converse(self, connection: FrameProtocol) -> None:
        if self.view is not None and self._watchers is None:
            self._watchers = Watchers(self.view, self.read_progress)
        conversation = Conversation(
            self._calls,
            self._reader,
            connection,
            self._changes,
            watchers=self._watchers,
            tasks=self._tasks,
            prompts=self._prompts,
        )
        conversation.on_clients = self.on_clients
        conversation.on_moved = self.on_moved
        self._conversations.add(conversation)
        try:
            await self._talk(conversation, connection)
        except FrameError as error:
            logger.warning("A bridge was disconnected: %s", error)
        except asyncio.CancelledError:
            # The loop ends. Python 3.11 would print a traceback into the user's cell.
            logger.debug("a conversation ended with the endpoint")
        finally:
            self._conversations.discard(conversation)
            conversation.close()
            if conversation.clients or conversation.listed_names:
                self.on_clients()

    async def _talk(self, conversation: Conversation, connection: FrameProtocol) -> None:
        """Welcome a bridge, and handle its messages until it disconnects."""
        hello = await _read_hello(connection)
        if hello is None:
            return
        refusal = self._refuse(hello)
        if refusal is not None:
            self._last_refusal = refusal.message
            conversation.close(refusal)
            return
        conversation.inspects = hello.inspects
        self._changes.send()  # the other bridges know the same tools from now on
        self._last_refusal = None
        conversation.send(self._build_welcome(hello.inspects))
        await conversation.listen()

    def _refuse(self, hello: messages.Hello) -> messages.Refused | None:
        """Return why a bridge is refused; None if it is accepted."""
        if self._token is not None and not hmac.compare_digest(
            self._token.encode(), (hello.token or "").encode()
        ):
            return messages.Refused(message="The token is not this kernel's.")
        if hello.protocol != messages.PROTOCOL_VERSION:
            mismatch = VersionMismatch(kernel=messages.PROTOCOL_VERSION, bridge=hello.protocol)
            return messages.Refused(message=str(mismatch))
        return None

    def _build_welcome(self, inspects: bool) -> messages.Welcome:  # noqa: FBT001 - as `_tools`
        calls = [
            messages.CallInfo(
                number=call.number,
                tool=call.tool,
                client=describe_program(call.client.program),
                doing=self._calls.describe(call),
            )
            for call in self._calls.calls
        ]
        tools = self._tools(inspects)
        return messages.Welcome(
            version=__version__,
            tools=tools.tools,
            calls=calls,
            consent=self._prompts is not None,
            missing=tools.missing,
            modified=tools.modified,
        )

    def read_progress(self) -> dict[int, Update]:
        """Return the progress of open calls, by their numbers in the log; on any thread."""
        return {
            number: progress
            for conversation in tuple(self._conversations)
            for number, progress in conversation.progress.items()
        }

    def _send_resource_changes(self, message: messages.ResourcesChanged) -> None:
        for conversation in tuple(self._conversations):
            conversation.send(message)

    def _send_tools(self) -> None:
        conversations = tuple(self._conversations)
        lists = {
            inspects: self._tools(inspects) for inspects in {c.inspects for c in conversations}
        }
        for conversation in conversations:
            message = lists[conversation.inspects]
            # Not if the bridge already knows these tools: from its welcome, or because they changed
            # back.
            if conversation.last_tools not in (None, message):
                try:
                    conversation.send(message)
                except FrameError as error:
                    logger.warning("The list of tools could not be sent: %s", error)


async def _read_hello(connection: FrameProtocol) -> messages.Hello | None:
    """Read a bridge's first message; None if it is late, or the bridge disconnects.

    Raises:
        FrameError: The first message is not a hello.
    """
    try:
        async with asyncio.timeout(HELLO_TIMEOUT):
            frame = await connection.read()
    except TimeoutError:
        return None
    if frame is None:
        return None
    message = frame[0]
    if not isinstance(message, messages.Hello):
        raise FrameError(f"The first message was a {message.type!r}, not a 'hello'.")
    return message


def _socket_path(path: Path) -> Path:
    """Return the path for the socket; in another private folder if the path is too long."""
    if len(os.fsencode(path)) <= MAX_SOCKET_PATH:
        make_private_folder(path.parent)
        return path
    short = Path(tempfile.gettempdir()) / f"mcp-notebook-{os.getuid()}"
    if len(os.fsencode(short / path.name)) > MAX_SOCKET_PATH:
        short = Path("/tmp") / short.name  # noqa: S108 - checked below to be the user's own
    short.mkdir(mode=0o700, exist_ok=True)
    status = short.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid():
        raise OSError(f"{short} is not a folder that the user owns")
    make_private_folder(short)
    return short / path.name
