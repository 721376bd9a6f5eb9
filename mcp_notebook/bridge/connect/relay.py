"""Forwards messages between the client and the remote server, for all protocol versions.

Runs on the event loop of `mcp-notebook connect`; each request of the client is a task. A message
with the version in its ``_meta`` (2026-07-28) stands alone; all others belong to the client's
`session`. A request that did not reach the server is retried for a while; one that reached it but
was not answered is retried only if it is idempotent. After that the client gets an error, so no
request waits forever. A subscription is reopened when the server is back.

A server on a JupyterHub or Binder ends when it is not used. The user is told on stderr, and a call
that was running gets an error. The next request did not reach the server: it has it started again
(`starter`), and is then forwarded.
"""

import contextlib
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus

import anyio
import anyio.abc

from mcp_notebook.bridge.connect.addresses import find_hub
from mcp_notebook.bridge.connect.client_lines import ClientLines
from mcp_notebook.bridge.connect.messages import (
    InvalidMessage,
    Message,
    RequestId,
    as_object,
    make_error,
    make_message,
    make_progress,
    read_line,
    replace_id,
)
from mcp_notebook.bridge.connect.remote import (
    STEADY,
    Remote,
    Reply,
    StopNotes,
    ask,
    check_session,
    exchange,
    explain_reply,
    find_stop,
    list_pauses,
)
from mcp_notebook.bridge.connect.session import Session
from mcp_notebook.bridge.connect.starter import Tell
from mcp_notebook.errors import (
    ConnectionLost,
    LaunchEnded,
    NotebookNotOpen,
    RemoteError,
    ServerStopped,
    SessionLost,
    Unavailable,
    Unreachable,
)
from mcp_notebook.protocol.errors import HEADER_MISMATCH
from mcp_notebook.protocol.parameter_headers import ParameterHeaders
from mcp_notebook.protocol.versions import SUBSCRIPTION_ID_KEY
from mcp_notebook.text.terminal import print_note

logger = logging.getLogger(__name__)

RETRY_LIMIT = 20.0
"""Seconds for which a request is retried. Most clients wait for a minute."""
LOOK_INTERVAL = 5.0
"""Seconds between two questions whether the server of a running request still exists."""
_NEXT_STARTS = " The next request tries to start it."
_LISTEN = "subscriptions/listen"
_MAX_PAGES = 100
"""Pages of a list of tools to read."""
_CANCELLED = "notifications/cancelled"
_INITIALIZED = "notifications/initialized"
_ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
_KINDS = ("tools", "prompts", "resources")
_REPEATABLE = frozenset(
    {"initialize", "ping", "server/discover", "completion/complete", "logging/setLevel"}
    | {"tools/list", "prompts/list", "prompts/get", "resources/list", "resources/read"}
    | {"resources/templates/list", "resources/subscribe", "resources/unsubscribe", "tasks/get"}
)
"""Idempotent requests."""


class _HeadersMissing(Exception):
    """The server requires headers for arguments of a call, and they are not known yet."""


@dataclass
class _OpenRequest:
    """A request that the client waits for."""

    is_modern: bool
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    is_cancelled: bool = False
    """Whether the client has cancelled it."""
    questions: set[RequestId] = field(default_factory=set)
    """Ids of the server's requests in its reply that the client has not answered."""


class Relay:
    """Forwards messages until the client closes stdin.

    Args:
        lines: The client's lines.
        remote: The server.
        max_bytes: Size limit of a message, for error messages.
        restart: Starts the server again; takes what tells a step. None: it cannot be started.
        retry_limit: Seconds for which a request is retried.
        look_interval: Seconds between two questions whether the server of a request still exists.
    """

    def __init__(  # noqa: PLR0913 - what it uses
        self,
        lines: ClientLines,
        remote: Remote,
        max_bytes: int,
        restart: Callable[[Tell], Awaitable[None]] | None = None,
        *,
        retry_limit: float = RETRY_LIMIT,
        look_interval: float = LOOK_INTERVAL,
    ) -> None:
        self._retry_limit, self._look_interval = retry_limit, look_interval
        self._restart = restart
        self._restarts = 0
        """How often the server was started again, or that was tried."""
        self._restarting = anyio.Lock()
        self._lines = lines
        self._remote = remote
        self._max_bytes = max_bytes
        self._session = Session(remote, lines.send)
        self._parameters = ParameterHeaders()
        self._open: dict[RequestId, _OpenRequest] = {}
        self._next_answer = anyio.Event()
        """Set when the server has answered another request."""

    async def run(self) -> None:
        """Forward messages."""
        try:
            async with anyio.create_task_group() as tasks:
                while (line := await self._lines.receive()) is not None:
                    await self._take(line, tasks)
                tasks.cancel_scope.cancel()
        finally:
            await self._session.close()

    async def _take(self, line: bytes, tasks: anyio.abc.TaskGroup) -> None:
        """Start to handle a line of the client."""
        try:
            message = read_line(line, self._max_bytes)
        except InvalidMessage as error:
            await self._lines.send(make_error(None, str(error), error.code))
            return
        if message.is_request:
            assert message.id is not None
            request = _OpenRequest(is_modern=message.version is not None)
            self._open[message.id] = request
            tasks.start_soon(self._answer, message, request)
        elif message.method == _INITIALIZED:
            await self._send_note(message)  # before the next message
            tasks.start_soon(self._session.hear)
        elif message.method != _CANCELLED or self._pass_on_cancel(message):
            tasks.start_soon(self._send_note, message)

    def _pass_on_cancel(self, message: Message) -> bool:
        """Cancel a request, and return whether to send the server the notification."""
        number = message.params.get("requestId")
        request = self._open.get(number) if isinstance(number, str | int) else None
        if request is None:
            return not message.version and bool(self._session.headers)
        request.is_cancelled = True
        if request.is_modern:  # closing the stream cancels it
            request.scope.cancel()
        return not request.is_modern

    async def _answer(self, message: Message, request: _OpenRequest) -> None:
        """Answer a request of the client, with an error if necessary."""
        assert message.id is not None
        try:
            with request.scope:
                await self._persist(message, request)
        except RemoteError as error:
            for question in request.questions:
                params = {"requestId": question, "reason": "The connection was lost."}
                await self._lines.send(make_message({"method": _CANCELLED, "params": params}))
            if not request.is_cancelled:
                await self._lines.send(make_error(message.id, _explain(error, message)))
        finally:
            if self._open.get(message.id) is request:
                del self._open[message.id]

    async def _persist(self, message: Message, request: _OpenRequest) -> None:
        """Forward a request, and retry it if that is useful and safe."""
        limit = anyio.current_time() + self._retry_limit
        subscription = _Subscription(message, self._lines.send, self._wait_for_answer)
        may_restart = self._restart is not None
        for pause in list_pauses():
            number, restarts = self._session.number, self._restarts
            try:
                if request.is_modern and message.method == _LISTEN:
                    await subscription.keep_open(self._remote, message.headers)
                else:
                    await self._exchange_watched(message, request)
            except (NotebookNotOpen, ServerStopped):
                if not may_restart:
                    raise
                may_restart = False
                await self._start_again(message, restarts)
                limit = anyio.current_time() + self._retry_limit
            except (ConnectionLost, SessionLost, Unreachable) as error:
                if isinstance(error, SessionLost):
                    self._session.note_lost(number)
                is_safe = not isinstance(error, ConnectionLost) or message.method in _REPEATABLE
                if may_restart and isinstance(error, Unavailable) and find_hub(self._remote.url):
                    # The server may have died without its JupyterHub knowing it.
                    may_restart = False
                    with contextlib.suppress(RemoteError):
                        await self._start_again(message, restarts)
                        limit = anyio.current_time() + self._retry_limit
                elif not is_safe or anyio.current_time() + pause > limit:
                    stopped = await find_stop(self._remote)
                    raise error if stopped is None else self._explain_stop(stopped) from error
            else:
                self._next_answer.set()
                self._next_answer = anyio.Event()
                return
            await anyio.sleep(pause)

    async def _wait_for_answer(self) -> None:
        await self._next_answer.wait()

    async def _start_again(self, message: Message, before: int) -> None:
        """Start the server again, unless another request has done so meanwhile.

        Args:
            message: The request, whose client gets the progress.
            before: How often it had been started when the request was sent.

        Raises:
            RemoteError: It does not start.
        """
        assert self._restart is not None
        steps = 0

        def tell(text: str) -> None:
            nonlocal steps
            steps += 1
            print_note(text)
            if message.progress_token is not None:
                self._lines.send_soon(make_progress(message.progress_token, steps, text))

        async with self._restarting:
            if self._restarts == before:
                self._restarts += 1
                try:
                    await self._restart(tell)
                except ConnectionLost as error:  # that of the start; the request was not sent
                    raise RemoteError(str(error)) from error

    async def _exchange_watched(self, message: Message, request: _OpenRequest) -> None:
        """Forward a request, and end it if its server ends without closing the connection.

        A proxy between keeps the connection open if the machine of the server has gone. So the
        JupyterHub or Binder is asked whether the server exists, but only while a request runs:
        asking keeps an idle server alive.
        """
        remote = self._remote
        if not remote.ends_when_idle:
            await self._exchange(message, request)
            return
        failure: RemoteError | None = None

        async def watch() -> None:
            nonlocal failure
            stopped = None
            while stopped is None:
                await anyio.sleep(self._look_interval)
                stopped = await find_stop(remote)
            failure = self._explain_stop(stopped)
            tasks.cancel_scope.cancel()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(watch)
            try:
                await self._exchange(message, request)
            except RemoteError as error:  # the task group would raise a group
                failure = error
            tasks.cancel_scope.cancel()
        if failure is not None:
            raise failure

    def _explain_stop(self, stopped: ServerStopped) -> ConnectionLost:
        """Return the error of a request that was running when its server ended."""
        is_told = self._restart is None or isinstance(stopped, LaunchEnded)
        return ConnectionLost(f"{stopped}{'' if is_told else _NEXT_STARTS}")

    async def _exchange(self, message: Message, request: _OpenRequest) -> None:
        async def forward(incoming: Message, reply: Reply) -> None:
            if incoming.is_request:
                assert incoming.id is not None
                request.questions.add(incoming.id)
            if incoming.is_answer:
                if may_list and incoming.error_code == HEADER_MISMATCH:
                    raise _HeadersMissing
                request.questions.clear()
                self._learn(message, incoming, reply)
                if request.is_cancelled:
                    return
            await self._lines.send(incoming)

        headers = message.headers
        if not request.is_modern and message.method != "initialize":
            await self._session.renew()
            headers = self._session.headers
        may_list = request.is_modern and message.method == "tools/call"
        try:
            arguments = self._parameters.list_headers(message.method, message.params)
            await exchange(self._remote, message, headers | arguments, forward)
        except _HeadersMissing:  # the client has an old list of tools
            may_list = False
            await self._list_tools(message)
            arguments = self._parameters.list_headers(message.method, message.params)
            await exchange(self._remote, message, headers | arguments, forward)

    async def _list_tools(self, call: Message) -> None:
        """Learn which arguments headers repeat."""
        meta = {"_meta": call.params["_meta"]}
        cursor: dict[str, str] = {}
        for _ in range(_MAX_PAGES):
            content = {"id": "mcp-notebook connect", "method": "tools/list"}
            request = make_message({**content, "params": {**meta, **cursor}})
            answer, _reply = await ask(self._remote, request, request.headers)
            self._parameters.learn(answer.result)
            if not isinstance(answer.result.get("nextCursor"), str):
                break
            cursor = {"cursor": answer.result["nextCursor"]}

    def _learn(self, request: Message, answer: Message, reply: Reply) -> None:
        """Remember what later messages depend on."""
        if request.method == "initialize":
            self._session.note_opened(request, answer, reply)
        elif request.version is None:
            self._session.note_request(request)
        elif request.method == "tools/list":
            self._parameters.learn(answer.result)

    async def _send_note(self, message: Message) -> None:
        """Send a notification, or an answer to the server's own request."""
        if message.is_answer and message.id is not None:
            for request in self._open.values():
                request.questions.discard(message.id)
        number = self._session.number
        try:
            headers = message.headers or self._session.headers
            async with self._remote.post(message.body, headers) as reply:
                if reply.status == 404:  # noqa: PLR2004
                    self._session.note_lost(number)
        except RemoteError as error:
            logger.warning("%s was not sent. %s", message.method or "An answer", error)


class _Subscription:
    """A client's ``subscriptions/listen`` (2026-07-28), kept open across restarts of the server.

    The request stays open for the client. When its stream ends, it is sent again. The client does
    not get another acknowledgement, but notifications that everything it listens to may have
    changed.

    Args:
        request: The client's request.
        send: Sends a message to the client.
        wait_for_answer: Waits until the server has answered another request of the client.
    """

    def __init__(
        self,
        request: Message,
        send: Callable[[Message], Awaitable[None]],
        wait_for_answer: Callable[[], Awaitable[None]],
    ) -> None:
        self._request = request
        self._send = send
        self._wait_for_answer = wait_for_answer
        self._stops = StopNotes()
        self.is_open = False
        """Whether a server has acknowledged it."""

    async def keep_open(self, remote: Remote, headers: Mapping[str, str]) -> None:
        """Forward messages until the server refuses; the caller cancels it for the client.

        Raises:
            RemoteError: The server refuses, or has never been reached.
        """
        pauses = list_pauses()
        while True:
            began = anyio.current_time()
            try:
                if await self._hear(remote, headers):
                    return
            except (ConnectionLost, NotebookNotOpen, ServerStopped, Unreachable) as error:
                if not self.is_open:
                    raise
                self._stops.note(error)
                if isinstance(error, NotebookNotOpen) and remote.ends_when_idle:
                    # The client's next request opens it. Asking would keep the server alive.
                    await self._wait_for_answer()
            if anyio.current_time() - began > STEADY:
                pauses = list_pauses()
            await anyio.sleep(next(pauses))

    async def _hear(self, remote: Remote, headers: Mapping[str, str]) -> bool:
        """Forward the messages of one stream, and return whether the client has its answer."""
        async with remote.post(self._request.body, headers) as reply:
            check_session(reply, headers, remote)
            async for message in reply.read():
                if message.is_answer:
                    if not message.is_answer_to(self._request):
                        continue
                    if self.is_open and "error" not in message.content:
                        return False  # the server is stopping
                    await self._send(replace_id(message, self._request.id))
                    return True
                self._stops.forget()
                if message.method == _ACKNOWLEDGED and self.is_open:
                    await self._announce_changes()
                else:
                    self.is_open = self.is_open or message.method == _ACKNOWLEDGED
                    await self._send(message)
            if reply.status != HTTPStatus.OK:
                raise await explain_reply(remote, reply)
        if not self.is_open:
            raise ConnectionLost(f"The connection to {remote.url} ended before the answer came.")
        return False

    async def _announce_changes(self) -> None:
        kinds = as_object(self._request.params.get("notifications"))
        meta = {"_meta": {SUBSCRIPTION_ID_KEY: self._request.id}}
        for kind in _KINDS:
            if kinds.get(f"{kind}ListChanged"):
                method = f"notifications/{kind}/list_changed"
                await self._send(make_message({"method": method, "params": meta}))
        uris = kinds.get("resourceSubscriptions")
        for uri in uris if isinstance(uris, list) else ():
            method = "notifications/resources/updated"
            await self._send(make_message({"method": method, "params": {"uri": uri, **meta}}))


def _explain(error: RemoteError, request: Message) -> str:
    """Return the error message for a request without an answer."""
    if request.method == "tools/call" and isinstance(error, ConnectionLost):
        return (
            f"{error} The tool {request.params.get('name')!r} may have run, or may still run: call "
            "it again only if that does no harm."
        )
    return str(error)
