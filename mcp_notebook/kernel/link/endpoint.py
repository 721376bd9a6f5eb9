"""The kernel's end of the link: a thread with an event loop of its own that bridges connect to.

Runs in the user's kernel, in one daemon thread, so that listing, cancelling and status are answered
while a cell keeps the main thread busy. It speaks `wire` and hands calls to an `Invoker`, and what
is asked about resources to `Reading`; it runs no user code and knows nothing of tools but their
`ToolInfo`.

Who may write: everything in `Endpoint` and `_Conversation` belongs to the endpoint's thread, apart
from `start`, `stop`, `announce_tools` and the `reply` given to the invoker, which hand over with
``call_soon_threadsafe``.
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
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from mcp_notebook._version import __version__
from mcp_notebook.content import Result, Text
from mcp_notebook.discovery import private_folder
from mcp_notebook.errors import (
    CallError,
    CannotElicit,
    FrameError,
    LinkError,
    VersionMismatch,
)
from mcp_notebook.kernel.calls.call import Call as KernelCall
from mcp_notebook.kernel.link.progress_notices import Notices
from mcp_notebook.kernel.link.resource_reader import Reading
from mcp_notebook.kernel.tools.context import LEVELS, Client, LogMessage
from mcp_notebook.kernel.tools.elicitation import Question, Questions, Reply, Withdrawal, undeclared
from mcp_notebook.wire import (
    PROTOCOL_VERSION,
    Answer,
    AnyMessage,
    Ask,
    Call,
    CallInfo,
    Cancel,
    Contents,
    Goodbye,
    Hello,
    ListResources,
    Log,
    Progress,
    ReadResource,
    Refused,
    Resources,
    ToolInfo,
    Tools,
    Welcome,
    Withdraw,
    encode,
    pack,
    read_message,
)

logger = logging.getLogger(__name__)

START_TIMEOUT = 5.0
"""Seconds to wait until the thread listens."""
STOP_TIMEOUT = 2.0
"""Seconds to wait until the thread has said goodbye and ended."""
HELLO_TIMEOUT = 5.0
"""Seconds that a new connection has to say who it is."""
CHANGE_DELAY = 0.05
"""Seconds without a further change of the tools after which bridges are told."""
CHANGE_DELAY_MAX = 0.5
"""Seconds after which they are told although changes keep coming."""
MAX_BACKLOG = 8 * 2**20
"""Bytes that wait for a bridge that does not read; from then on it gets no progress and no logs."""
MAX_SOCKET_PATH = 100
"""Bytes: the shortest limit of a Unix socket's path among systems is 104."""


class Calls(Protocol):
    """What the endpoint needs of `kernel.calls.invoker.Invoker`."""

    @property
    def calls(self) -> Sequence[KernelCall]:
        """Those that wait or run."""

    def submit(
        self,
        tool: str,
        arguments: dict[str, Any],
        reply: Callable[[Result], None],
        client: Client,
    ) -> KernelCall:
        """Take a call and return it."""

    def cancel(self, call: Any, reason: str) -> None:
        """Stop a call."""

    def describe(self, call: Any) -> str:
        """Say what a call does now."""


@dataclass(frozen=True)
class Address:
    """Where the endpoint listens, as the record tells it."""

    socket: str | None = None
    port: int | None = None
    token: str | None = None


class Endpoint:
    """Listens for bridges from `start` to `stop`.

    Args:
        calls: Runs the calls.
        tools: Returns the tools as they are now; called on the endpoint's thread.
        reading: Lists and reads resources.
        path: Of the socket's file; one of this name elsewhere, if it is too long for a socket.
        tcp: Listen on loopback TCP with a token, as where there are no Unix sockets.
    """

    def __init__(
        self,
        calls: Calls,
        tools: Callable[[], Sequence[ToolInfo]],
        reading: Reading,
        *,
        path: Path,
        tcp: bool = sys.platform == "win32",
    ) -> None:
        self._calls = calls
        self._tools = tools
        self._reading = reading
        self._path = path
        self._tcp = tcp
        self._conversations: set[_Conversation] = set()
        self._change_due: asyncio.TimerHandle | None = None
        self._change_latest = 0.0
        self._listener: socket.socket | None = None
        self._token: str | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping: asyncio.Event | None = None
        self._listening = threading.Event()
        self._goodbye = "The notebook's kernel ended."
        self._thread = threading.Thread(target=self._run, name="mcp-notebook-endpoint", daemon=True)

    def start(self) -> Address:
        """Start to listen; returns when bridges can connect.

        Raises:
            LinkError: Nothing could be listened on.
        """
        try:
            self._listener, address = self._listen()
        except OSError as error:
            raise LinkError(
                f"The notebook cannot listen for clients: {error}. Set MCP_NOTEBOOK_HOME to a "
                "folder on a local disk, restart the kernel and load the extension again."
            ) from error
        self._thread.start()
        if not self._listening.wait(START_TIMEOUT):
            raise LinkError(
                f"The thread that listens for clients did not start within {START_TIMEOUT:.0f} s. "
                "Restart the kernel and load the extension again."
            )
        return address

    def stop(self, reason: str) -> None:
        """Say goodbye to all bridges and end the thread; bounded, harmless when it has ended."""
        loop, stopping = self._loop, self._stopping
        if loop is None or stopping is None or not self._thread.is_alive():
            return
        self._goodbye = reason
        with contextlib.suppress(RuntimeError):  # the loop ended between the check and now
            loop.call_soon_threadsafe(stopping.set)
        self._thread.join(STOP_TIMEOUT)

    def announce_tools(self) -> None:
        """Tell all bridges the tools, after a moment in which more changes may come; any thread."""
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody is there to tell
                self._loop.call_soon_threadsafe(self._schedule_change)

    def abandon_in_child(self) -> None:
        """In a forked child: let go of the sockets, so that the kernel's death can be seen.

        Their numbers point to nothing afterwards instead of being closed: the child's copies of the
        asyncio objects may close them once more, by when a number may be somebody else's.
        """
        sockets: list[Any] = [self._listener]
        sockets += [conversation.socket for conversation in tuple(self._conversations)]
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
        self._stopping = asyncio.Event()
        assert self._listener is not None
        start = asyncio.start_server if self._tcp else asyncio.start_unix_server
        server = await start(self._converse, sock=self._listener)
        self._listening.set()
        try:
            await self._stopping.wait()
        finally:
            server.close()
            for conversation in tuple(self._conversations):
                conversation.close(Goodbye(reason=self._goodbye))
            if not self._tcp:
                with contextlib.suppress(OSError):
                    os.unlink(self._listener.getsockname())  # noqa: PTH108 - a path as bytes or str

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        conversation = _Conversation(self._calls, self._reading, writer)
        self._conversations.add(conversation)
        try:
            if await self._greet(reader, conversation):
                await conversation.listen(reader)
        except FrameError as error:
            logger.warning("A bridge was disconnected: %s", error)
        except asyncio.CancelledError:
            # The loop ends. Python 3.11 would print a traceback into the user's cell.
            logger.debug("a conversation ended with the endpoint")
        finally:
            self._conversations.discard(conversation)
            conversation.close()

    async def _greet(self, reader: asyncio.StreamReader, conversation: "_Conversation") -> bool:
        try:
            async with asyncio.timeout(HELLO_TIMEOUT):
                frame = await read_message(reader)
        except TimeoutError:
            return False
        if frame is None:
            return False
        hello = frame[0]
        if not isinstance(hello, Hello):
            raise FrameError(f"The first message was a {hello.type!r}, not a 'hello'.")
        if self._token is not None and not hmac.compare_digest(
            self._token.encode(), (hello.token or "").encode()
        ):
            conversation.close(Refused(message="The token is not this kernel's."))
            return False
        if hello.protocol != PROTOCOL_VERSION:
            mismatch = VersionMismatch(kernel=PROTOCOL_VERSION, bridge=hello.protocol)
            conversation.close(Refused(message=str(mismatch)))
            return False
        calls = [
            CallInfo(tool=call.tool, doing=self._calls.describe(call)) for call in self._calls.calls
        ]
        conversation.send(
            Welcome(version=__version__, tools=list(self._tools()), calls=calls, resources=True)
        )
        return True

    def _schedule_change(self) -> None:
        assert self._loop is not None
        now = self._loop.time()
        if self._change_due is None:
            self._change_latest = now + CHANGE_DELAY_MAX
        else:
            self._change_due.cancel()
        due = min(now + CHANGE_DELAY, self._change_latest)
        self._change_due = self._loop.call_at(due, self._send_tools)

    def _send_tools(self) -> None:
        self._change_due = None
        message = Tools(tools=list(self._tools()))
        for conversation in tuple(self._conversations):
            # Not to one that was welcomed with them, or has been told before they changed back.
            if conversation.told_tools not in (None, message.tools):
                conversation.send(message)


class _Conversation:
    """The conversation with one bridge; lives on the endpoint's thread."""

    def __init__(self, calls: Calls, reading: Reading, writer: asyncio.StreamWriter) -> None:
        self._calls = calls
        self._reading = reading
        self._writer = writer
        self._loop = asyncio.get_running_loop()
        self._active: dict[int, KernelCall] = {}
        self._notices: dict[int, Notices] = {}
        self._questions: dict[int, Questions] = {}
        self.told_tools: list[ToolInfo] | None = None
        """The tools as the bridge knows them; None: it was not welcomed."""

    @property
    def socket(self) -> Any:
        """The connection's socket."""
        return self._writer.get_extra_info("socket")

    async def listen(self, reader: asyncio.StreamReader) -> None:
        """Take messages until the bridge is gone; its calls run on, as it cancels them itself."""
        while (frame := await read_message(reader)) is not None:
            message = frame[0]
            if isinstance(message, Call):
                self._take(message)
            elif isinstance(message, Cancel):
                if message.id in self._active:
                    reason = message.reason or "The client cancelled the call."
                    self._calls.cancel(self._active[message.id], reason)
            elif isinstance(message, Answer):
                self._answer(message)
            elif isinstance(message, ListResources):
                infos = self._reading.infos(message.after, message.limit)
                self.send(Resources(id=message.id, resources=infos))
            elif isinstance(message, ReadResource):
                self._reading.read(message, self._send_contents)
            else:
                raise FrameError(f"A bridge does not send {message.type!r}.")

    def send(self, message: AnyMessage, attachments: Sequence[bytes] = ()) -> None:
        """Send a message; does nothing when the bridge is gone."""
        if isinstance(message, Welcome | Tools):
            self.told_tools = message.tools
        if self._writer.is_closing() or (isinstance(message, Progress | Log) and self._is_behind):
            return
        for buffer in encode(message, attachments):
            # As bytes, Python 3.11 would copy what the socket does not take once more.
            self._writer.write(memoryview(buffer))

    @property
    def _is_behind(self) -> bool:
        """Whether the bridge does not read: it hangs, or its process is halted."""
        return self._writer.transport.get_write_buffer_size() > MAX_BACKLOG

    def _send_contents(self, message: Contents, attachments: Sequence[bytes]) -> None:
        self._loop.call_soon_threadsafe(self.send, message, attachments)

    def close(self, last_words: Refused | Goodbye | None = None) -> None:
        """End the conversation; what was written still goes out."""
        if last_words is not None:
            self.send(last_words)
        for notices in self._notices.values():
            notices.close()
        self._notices.clear()
        for questions in self._questions.values():
            questions.close(CannotElicit("The client that called the tool is gone."))
        self._questions.clear()
        self._writer.close()

    def _take(self, message: Call) -> None:
        def reply(result: Result) -> None:
            self._loop.call_soon_threadsafe(self._return, message.id, result)

        notices = None
        if message.progress:
            notices = Notices(message.id, self._loop, self.send)
        questions = Questions(
            self._asker(message.id) if message.can_elicit else None, undeclared(message.tool)
        )
        client = Client(
            report=None if notices is None else notices.report,
            send_log=self._logger(message),
            questions=questions,
        )
        call = self._calls.submit(message.tool, message.arguments, reply, client)
        self._active[message.id] = call
        self._questions[message.id] = questions
        if notices is not None:
            self._notices[message.id] = notices
            notices.start(call, self._calls.describe)

    def _logger(self, message: Call) -> Callable[[LogMessage], None] | None:
        """Return what sends log messages that are severe enough for the client, on any thread."""
        if message.log_level is None:
            return None
        least = {str(level): number for level, number in LEVELS.items()}.get(message.log_level, 0)

        def send_log(said: LogMessage) -> None:
            if LEVELS[said.level] >= least:
                log = Log(id=message.id, level=said.level, logger=said.logger, text=said.text)
                with contextlib.suppress(RuntimeError):  # the loop is closed: nobody listens
                    self._loop.call_soon_threadsafe(self._send_of_call, message.id, log)

        return send_log

    def _asker(self, call_id: int) -> Callable[[Question | Withdrawal], None]:
        """Return what sends a call's questions, on any thread."""

        def ask(said: Question | Withdrawal) -> None:
            message: AnyMessage
            if isinstance(said, Withdrawal):
                message = Withdraw(id=call_id, question=said.number)
            else:
                message = Ask(
                    id=call_id,
                    question=said.number,
                    key=said.key,
                    message=said.message,
                    form=said.schema,
                )
            with contextlib.suppress(RuntimeError):  # the loop is closed: the kernel ends
                self._loop.call_soon_threadsafe(self._send_question, call_id, said.number, message)

        return ask

    def _send_question(self, call_id: int, number: int, message: AnyMessage) -> None:
        try:
            self._send_of_call(call_id, message)
        except FrameError as error:
            self._answer(Answer(id=call_id, question=number, error=str(error)))

    def _answer(self, message: Answer) -> None:
        questions = self._questions.get(message.id)
        if questions is not None:
            reply: Reply | CallError = Reply(message.action, message.content)
            if message.error is not None:
                reply = CannotElicit(message.error)
            questions.answer(message.question, reply)

    def _send_of_call(self, call_id: int, message: AnyMessage) -> None:
        if call_id in self._active:
            self.send(message)

    def _return(self, call_id: int, result: Result) -> None:
        call = self._active.pop(call_id, None)
        self._questions.pop(call_id, None)
        notices = self._notices.pop(call_id, None)
        if notices is not None:
            notices.close()
        try:
            returned, attachments = pack(call_id, result)
            if call is not None and call.lacks is not None:
                returned = returned.model_copy(update={"lacks": call.lacks})
            self.send(returned, attachments)
        except Exception as error:
            logger.exception("a result could not be sent")
            text = f"The result could not be sent: {type(error).__name__}: {error}"
            self.send(*pack(call_id, Result([Text(text)], is_error=True)))


def _socket_path(path: Path) -> Path:
    """Return where the socket goes: there, or in a short private folder if the path is too long."""
    if len(os.fsencode(path)) <= MAX_SOCKET_PATH:
        private_folder(path.parent)
        return path
    short = Path(tempfile.gettempdir()) / f"mcp-notebook-{os.getuid()}"
    if len(os.fsencode(short / path.name)) > MAX_SOCKET_PATH:
        short = Path("/tmp") / short.name  # noqa: S108 - checked below to be the user's own
    short.mkdir(mode=0o700, exist_ok=True)
    status = short.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid():
        raise OSError(f"{short} is not a folder of the user's own")
    private_folder(short)
    return short / path.name
