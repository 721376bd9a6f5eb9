"""A bridge's server twice, for the same kernel: one with the short way, one with the SDK alone.

Everything runs on the test's own event loop, but for the kernel. Over HTTP, the whole application
is called as uvicorn would call it; over stdio, there are two pipes. What the two servers answer
must be equal once `normalise` has taken out what differs between any two servers.
"""

import asyncio
import json
import os
import re
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, fields, is_dataclass
from itertools import count
from pathlib import Path
from typing import Any
from unittest.mock import patch

import anyio
from generated_requests import (
    CAPABILITIES,
    EITHER,
    MODERN_VERSION,
    PASSED_ON,
    PLAIN,
    SESSIONS,
    VERSION,
    Request,
)
from linked_servers import make_server
from live import TIMEOUT

from mcp_notebook.bridge.access.caller import OWNER, Caller, Permissions
from mcp_notebook.bridge.access.gate import Gate
from mcp_notebook.bridge.access.refusals import RefusalLog
from mcp_notebook.bridge.access.token_check import OwnToken
from mcp_notebook.bridge.kernels.catalog import Catalog
from mcp_notebook.bridge.kernels.links import Links
from mcp_notebook.bridge.server.server import NotebookServer
from mcp_notebook.bridge.transports import endpoint as endpoint_module
from mcp_notebook.bridge.transports import stdio as stdio_module
from mcp_notebook.bridge.transports.connections import Connections
from mcp_notebook.bridge.transports.endpoint import Endpoint
from mcp_notebook.bridge.transports.health_check import answer_health
from mcp_notebook.bridge.transports.open_requests import OpenRequests
from mcp_notebook.bridge.transports.sessions import Sessions
from mcp_notebook.bridge.transports.stdio import serve_stdio
from mcp_notebook.discovery.records import Record
from mcp_notebook.settings.settings import Settings

WAYS = ("SDK", "short")
TOKENS = {
    "owner": "token-of-the-owner-0123456789abcdef",
    "reader": "token-of-the-reader-0123456789abcdef",
    "nobody": "token-of-nobody-0123456789abcdef",
}
READER = Caller(
    name="reader", permissions=Permissions(tools=("add", "echo", "fail", "region", "rep*"))
)
"""A caller who may call some of the tools."""


class ReadersToken(OwnToken):
    """The token of the reader."""

    async def authenticate(self, token: str) -> Caller | None:
        """Return the reader if this is the token."""
        return READER if await super().authenticate(token) == OWNER else None


AUTHENTICATORS = (OwnToken(TOKENS["owner"]), ReadersToken(TOKENS["reader"]))


# -- what differs between any two servers ----------------------------------------------------------

_VARIABLE_HEADERS = {"date"}
_WAIT = re.compile(r"Try again in \d+ seconds?")
_TASK = re.compile(r"\b[0-9a-f]{12}-[0-9a-f]{32}\b")
_RESOURCE = re.compile(r"notebook://\w+/\w+/")
_VARIABLE_KEYS = {
    "requestState": "<state>",
    "taskId": "<task>",
    "createdAt": "<time>",
    "lastUpdatedAt": "<time>",
    "lastModified": "<time>",
}


def normalise(status: int | None, headers: Iterable[tuple[bytes, bytes]], body: bytes) -> Any:
    """Return an answer over HTTP without what differs between any two servers."""
    listed, kind = [], ""
    for raw_name, raw_value in headers:
        name, value = raw_name.decode("latin-1").lower(), raw_value.decode("latin-1")
        if name == "content-type":
            kind = value
        elif name == "content-length":
            value = "right" if int(value) == len(body) else f"{value}, but it has {len(body)}"
        elif name == "mcp-session-id":
            value = "<session>"
        elif name == "retry-after":
            value = "<seconds>"
        if name not in _VARIABLE_HEADERS:
            listed.append((name, value))
    if kind.startswith("text/event-stream"):
        content: Any = [_normalise_event(event) for event in body.split(b"\r\n\r\n")]
    else:
        content = normalise_message(body)
    return status, sorted(listed), content


def normalise_message(text: bytes) -> Any:
    """Return a message with its keys in order, and texts and numbers in one way of writing them."""
    try:
        value = json.loads(text, object_pairs_hook=_take_members)
    except (ValueError, RecursionError):
        return text
    if isinstance(value, dict) and "method" in value and "id" in value:
        value["id"] = "<of the server>"
    result = value.get("result") if isinstance(value, dict) else None
    if isinstance(result, dict) and "resources" in result and "nextCursor" in result:
        result["nextCursor"] = "<of these addresses>"
    text = _WAIT.sub("Try again later", json.dumps(value, sort_keys=True))
    return _RESOURCE.sub("notebook://kernel/result/", text)


def _normalise_event(event: bytes) -> Any:
    lines = [line.partition(b": ") for line in event.split(b"\r\n")]
    return [
        (name, normalise_message(value) if name == b"data" else value) for name, _, value in lines
    ]


def _take_members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    assert len(members) == len(pairs), f"a key twice: {pairs}"
    return {
        key: _VARIABLE_KEYS.get(key, value) if isinstance(value, str) else value
        for key, value in members.items()
    }


class Watch:
    """An observer that notes what happens to calls, but for ids and times."""

    def __init__(self) -> None:
        self.noted: list[Any] = []
        self._news = anyio.Event()

    def note_start(self, start: Any) -> None:
        self._note(start)

    def note_end(self, end: Any) -> None:
        self._note(end)

    def note_refusal(self, refusal: Any) -> None:
        self._note(refusal)

    def note_view(self, read: Any) -> None:
        self._note(read)

    def _note(self, event: Any) -> None:
        self.noted.append(_describe(event))
        self._news.set()

    async def wait_for(self, kind: str, count: int) -> None:
        """Wait until so much of this kind was noted that was not taken."""
        with anyio.fail_after(TIMEOUT):
            while sum(each[0] == kind for each in self.noted) < count:
                self._news = anyio.Event()
                await self._news.wait()

    def take(self) -> list[Any]:
        """Return what was noted since the last time."""
        noted, self.noted = self.noted, []
        return noted


def _normalise_text(text: str) -> str:
    return _TASK.sub("<task>", _WAIT.sub("Try again later", text))


def _describe(event: Any) -> Any:
    left_out = {"id", "at", "kernel", "seconds", "queue_seconds", "run_seconds", "input_schema"}
    return (
        type(event).__name__,
        *(
            (item.name, _describe(value) if is_dataclass(value) else _normalise_text(repr(value)))
            for item in fields(event)
            if item.name not in left_out
            for value in [getattr(event, item.name)]
        ),
    )


# -- one of the two servers ------------------------------------------------------------------------


@dataclass
class Side:
    """One of the two servers, and a client of it."""

    way: str
    server: NotebookServer
    catalog: Catalog
    watch: Watch
    settings: Settings
    passed_on: int = 0
    """How many requests the SDK got."""
    sessions: dict[str, str] = field(default_factory=dict)
    """Ids of sessions, by their names."""
    body: bytes = b""
    """Of the last answer over HTTP, as it came."""
    open_exchanges: "list[Exchange]" = field(default_factory=list)
    """The requests over HTTP that are not answered."""
    endpoint: Endpoint | None = None
    answers_questions: bool = True
    """Whether its client answers, over HTTP."""
    _app: Any = None

    @asynccontextmanager
    async def serve_http(self) -> AsyncIterator[None]:
        """Be ready for requests over HTTP within the block."""
        side = self

        class CountingSessions(Sessions):
            async def handle_request(self, *arguments: Any) -> None:
                side.passed_on += 1
                await super().handle_request(*arguments)

        with patch.object(endpoint_module, "Sessions", CountingSessions):
            self.endpoint = Endpoint(self.server, self.settings, **make_options(self.way))
        refusals = RefusalLog()
        gate = Gate(
            self.endpoint,
            authenticators=AUTHENTICATORS,
            host=self.settings.host,
            allowed_hosts=self.settings.allowed_hosts,
            refusals=refusals,
            on_admission=Connections(refusals).admit,
        )
        self._app = answer_health(gate)
        async with self.endpoint.run():
            for name in SESSIONS:
                await self.open_session(name)
            yield

    async def ask(self, request: Request, leaving: asyncio.Event | None = None) -> Any:
        """Send a request, and return the answer, normalised.

        Args:
            request: The request.
            leaving: The client hangs up when it is set.
        """
        headers = [("host", "127.0.0.1"), *request.headers]
        if request.caller in TOKENS:
            headers.append(("authorization", f"Bearer {TOKENS[request.caller]}"))
        if request.has_length and request.body:
            headers.append(("content-length", str(len(request.body))))
        if request.session is not None:
            headers.append(("mcp-session-id", self.sessions.get(request.session, "unknown")))
        scope = make_scope(request.method, request.path, headers)
        exchange = Exchange(self, request, leaving or asyncio.Event())
        self.open_exchanges.append(exchange)
        try:
            with anyio.fail_after(TIMEOUT):
                await self._app(scope, exchange.receive, exchange.send)
        except TimeoutError:
            raise AssertionError(f"not answered in time: {request}") from None
        finally:
            self.open_exchanges.remove(exchange)
        if request.session and request.method == "DELETE" and exchange.status == 200:
            self.sessions["ended"] = self.sessions.pop(request.session)
            await self.open_session(request.session)
        return exchange.find_answer()

    async def open_session(self, name: str) -> None:
        """Initialize a session of this name."""
        params = SESSIONS[name]
        caller = params["caller"]
        message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params["params"]}
        request = make_request(message, caller=caller)
        status, headers, _ = await self.ask(request)
        assert status == 200, (status, headers)
        self.sessions[name] = self.sessions.pop("opened")
        initialized = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        await self.ask(make_request(initialized, caller=caller, session=name))


def make_request(message: Any, **options: Any) -> Request:
    """Return a request of the handshake era with a message, as it should be."""
    headers = [
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
    ]
    return Request(
        "handshake", message, body=json.dumps(message).encode(), headers=headers, **options
    )


def make_scope(method: str, path: str, headers: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """Return what uvicorn would."""
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "server": ("127.0.0.1", 1),
        "client": ("127.0.0.1", 2),
        "scheme": "http",
        "root_path": "",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": [
            (name.encode(), value.encode("latin-1", "replace").strip(b" \t"))
            for name, value in headers
        ],
        "state": {"connection": 1},
    }


class Exchange:
    """The body of one request, and its answer."""

    def __init__(self, side: Side, request: Request, leaving: asyncio.Event) -> None:
        self._side, self._request, self._leaving = side, request, leaving
        size = max(1, -(-len(request.body) // request.chunks))
        self._pieces = [
            request.body[start : start + size] for start in range(0, len(request.body), size)
        ] or [b""]
        self.status: int | None = None
        self._headers: list[tuple[bytes, bytes]] = []
        self.body = b""
        """Of the answer, as far as it has come."""
        self.is_complete = False
        self._is_endless = b'"subscriptions/listen"' in request.body

    async def receive(self) -> dict[str, Any]:
        """Return the next piece of the body, and then that the client has gone when it has."""
        if self._pieces:
            piece = self._pieces.pop(0)
            return {"type": "http.request", "body": piece, "more_body": bool(self._pieces)}
        if not self.is_complete:
            await self._leaving.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: dict[str, Any]) -> None:
        """Take a part of the answer, in the order that ASGI demands."""
        assert not self.is_complete, message
        if message["type"] == "http.response.start":
            assert self.status is None, message
            self.status, self._headers = message["status"], list(message.get("headers", ()))
            if self._request.method == "GET":
                self._leaving.set()
            for name, value in self._headers:
                if name.lower() == b"mcp-session-id":
                    self._side.sessions["opened"] = value.decode()
            return
        assert self.status is not None, message
        body = bytes(message.get("body", b""))
        self.body += body
        self.is_complete = not message.get("more_body", False)
        if self.is_complete or self._is_endless:
            self._leaving.set()
        is_question = body.startswith(b"event: message") and b'"elicitation/create"' in body
        if is_question and self._side.answers_questions:
            await self._answer_question(body)

    async def _answer_question(self, event: bytes) -> None:
        question = json.loads(event.partition(b"data: ")[2])
        result = {"action": "accept", "content": {"name": "a", "size": 2}}
        answer = {"jsonrpc": "2.0", "id": question["id"], "result": result}
        request = make_request(answer, caller=self._request.caller, session=self._request.session)
        request.headers += [item for item in self._request.headers if item[0] == "mcp-session-id"]
        task = asyncio.ensure_future(self._side.ask(request))
        _ANSWERING.add(task)
        task.add_done_callback(_ANSWERING.discard)

    def find_answer(self) -> Any:
        """Return the answer as far as it has come."""
        if not (self._request.method == "POST" and self._request.session is None):
            self._side.sessions.pop("opened", None)
        self._side.body = self.body
        return normalise(self.status, self._headers, self._side.body)


_ANSWERING: "set[asyncio.Future[Any]]" = set()


# -- over stdio ------------------------------------------------------------------------------------


_END = b"end\n"


class Pipes:
    """The client's ends of a stdio bridge's pipes."""

    def __init__(self, reader: asyncio.StreamReader, descriptor: int) -> None:
        self._lines = reader
        self._descriptor = descriptor
        self.requests = OpenRequests()
        """What the bridge has not answered."""
        self._numbers = count(1)

    async def send(self, line: bytes) -> None:
        """Write a line."""
        data = line + b"\n"
        while data:
            try:
                data = data[os.write(self._descriptor, data) :]
            except BlockingIOError:
                await anyio.wait_writable(self._descriptor)

    async def exchange(self, line: bytes) -> list[str]:
        """Send a line, and return all messages that the bridge has for it."""
        await self.send(line)
        # When the first one is answered, the line has been read; when the second one is, and there
        # was nothing open before, all of its answers have come.
        messages = await self._take_until_read()
        await self.requests.wait_until_answered()
        return messages + await self._take_until_read()

    async def _take_until_read(self) -> list[str]:
        number = f"read until here: {next(self._numbers)}"
        request = {"jsonrpc": "2.0", "id": number, "method": "nobody/knows"}
        await self.send(json.dumps(request).encode())
        messages = []
        while number.encode() not in (message := await self.receive()):
            # When news of resources come is a matter of time; test_short_way_around_calls has them.
            if b'"notifications/resources/list_changed"' not in message:
                messages.append(normalise_message(message))
        return messages

    async def receive(self) -> bytes:
        """Return the next line."""
        return await self._lines.readuntil(b"\n")

    def close(self) -> None:
        """Send nothing more: as clients do when they leave."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    async def receive_rest(self) -> list[bytes]:
        """Return all lines that still come until the bridge has ended."""
        lines = []
        while (line := await self.receive()) != _END:
            lines.append(line)
        return lines


@asynccontextmanager
async def serve_pipes(side: Side) -> AsyncIterator[Pipes]:
    """Serve a client over stdio within the block."""
    run = side.server.mcp.run

    async def counted_run(incoming: Any, *rest: Any) -> None:
        await run(_Counted(incoming, side), *rest)

    (their_in, our_out), (our_in, their_out) = os.pipe(), os.pipe()
    os.set_blocking(our_out, False)
    reader = asyncio.StreamReader(limit=2**26)
    loop = asyncio.get_running_loop()
    transport, _ = await loop.connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(our_in, "rb", 0)
    )
    pipes = Pipes(reader, our_out)
    stop = anyio.Event()
    own = os.dup(0), os.dup(1)
    try:
        with (
            patch.object(side.server.mcp, "run", counted_run),
            patch.object(stdio_module, "OpenRequests", lambda: pipes.requests),
        ):
            async with anyio.create_task_group() as tasks:
                os.dup2(their_in, 0)
                os.dup2(their_out, 1)

                async def serve() -> None:
                    await serve_stdio(
                        side.server, stop=stop, limits=side.settings, **make_options(side.way)
                    )
                    os.write(their_out, _END)

                tasks.start_soon(serve)
                await pipes.send(b"?")  # answered with an error when it has taken the pipes
                await pipes.receive()
                os.dup2(own[0], 0)
                os.dup2(own[1], 1)
                side.passed_on = 0
                yield pipes
                stop.set()
    finally:
        os.dup2(own[0], 0)
        os.dup2(own[1], 1)
        transport.close()
        pipes.close()
        for descriptor in (their_in, their_out, *own):
            os.close(descriptor)


FIRST = {
    "handshake": {
        "jsonrpc": "2.0",
        "id": "first",
        "method": "initialize",
        "params": SESSIONS["usual"]["params"],
    },
    "modern": {
        "jsonrpc": "2.0",
        "id": "first",
        "method": "server/discover",
        "params": {"_meta": {VERSION: MODERN_VERSION, CAPABILITIES: {}}},
    },
}
"""The request with which a client of each era begins."""


@asynccontextmanager
async def opened_pipes(side: Side, era: str) -> AsyncIterator[Pipes]:
    """Serve a client over stdio within the block that has begun as those of an era do."""
    async with serve_pipes(side) as pipes:
        await pipes.send(json.dumps(FIRST[era]).encode())
        await pipes.receive()
        if era == "handshake":
            await pipes.send(b'{"jsonrpc":"2.0","method":"notifications/initialized"}')
        side.passed_on = 0
        yield pipes


class _Counted(anyio.abc.ObjectReceiveStream[Any]):
    def __init__(self, stream: Any, side: Side) -> None:
        self._stream, self._side = stream, side

    async def receive(self) -> Any:
        item = await self._stream.receive()
        self._side.passed_on += 1
        return item

    async def aclose(self) -> None:
        await self._stream.aclose()


# -- both ------------------------------------------------------------------------------------------


def make_options(way: str) -> dict[str, Any]:
    """Return the arguments that turn the short way on or off."""
    return {"short_way": way == "short"}


@asynccontextmanager
async def _alone() -> AsyncIterator[None]:
    """Raise an error of the block by itself, without the groups that task groups wrap it in."""
    try:
        yield
    except BaseExceptionGroup as group:
        error: BaseException = group
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        raise error from None


@asynccontextmanager
async def both_sides(
    records: Sequence[Record], home: Path, *, with_http: bool = True, **options: Any
) -> AsyncIterator[list[Side]]:
    """Yield a server with the SDK alone and one with the short way, linked to kernels.

    Args:
        records: Of the one kernel, or of the two.
        home: A folder for the servers.
        with_http: Whether to serve them over HTTP.
        **options: Settings, arguments of the servers, and what makes their other observers.
    """
    make_observers = options.pop("make_observers", list)
    arguments = {
        name: options.pop(name)
        for name in ("consent", "meta_tools", "page_size", "ready", "default_caller")
        if name in options
    }
    usual = {"max_caller_calls_per_minute": 10**8}
    settings = Settings(home=home, port=0, **usual | options)
    async with _alone(), AsyncExitStack() as stack:
        tasks = await stack.enter_async_context(anyio.create_task_group())
        stack.callback(tasks.cancel_scope.cancel)
        sides = []
        for way, record in zip(WAYS, [*records, *records], strict=False):
            catalog = Catalog()
            links = await stack.enter_async_context(Links(catalog))
            await links.connect(record)
            watch = Watch()
            server = make_server(
                catalog,
                links,
                observers=[watch, *make_observers()],
                limits=settings,
                **arguments,
            )
            tasks.start_soon(server.announce_changes)
            side = Side(way, server, catalog, watch, settings)
            if with_http:
                await stack.enter_async_context(side.serve_http())
            sides.append(side)
        yield sides


_ENOUGH = 5
"""Differences after which a test ends."""
_WRONG_WAYS = {(PASSED_ON, "the short way"), (PLAIN, "the SDK's way")}


class Comparison:
    """What was asked, whether the answers were alike, and which way they came."""

    def __init__(self, sides: list[Side]) -> None:
        self.sides = sides
        self.differences: list[str] = []
        self.ways: Counter[tuple[str, str]] = Counter()
        """How many requests of each kind were answered on each way."""
        self.on_wrong_way: list[str] = []
        self._passed_on = [side.passed_on for side in sides]

    def note(self, request: Any, answers: Sequence[Any]) -> None:
        """Compare the answers of both sides, and what their observers have heard."""
        noted = [side.watch.take() for side in self.sides]
        before, self._passed_on = self._passed_on, [side.passed_on for side in self.sides]
        alone, with_short = (now - then for now, then in zip(self._passed_on, before, strict=True))
        way = "the short way" if with_short < alone else "the SDK's way"
        kind = getattr(request, "kind", EITHER)
        self.ways[kind, way] += 1
        if (kind, way) in _WRONG_WAYS:
            self.on_wrong_way.append(str(request))
        if answers[0] != answers[1] or noted[0] != noted[1]:
            self.differences.append("\n".join(map(str, (request, *answers, *noted))))
            assert len(self.differences) < _ENOUGH, "\n\n".join(self.differences)

    def check(self, record_property: Any) -> None:
        """Demand that nothing differed, and that each request went its way."""
        for (kind, way), number in self.ways.items():
            record_property(f"{kind} requests were answered on {way}", number)
        assert not self.differences, "\n\n".join(self.differences)
        assert not self.on_wrong_way, self.on_wrong_way[0]
