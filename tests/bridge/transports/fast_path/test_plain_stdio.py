"""Which lines of a stdio client are answered without the SDK; the kernel never answers a call."""

import asyncio
import json
from contextlib import asynccontextmanager

import anyio
import mcp_types as types
import pytest
from endpoints import call, called, modern
from kernel_stand_ins import peer, welcome
from linked_servers import make_server
from live import TIMEOUT
from mcp.server.connection import Connection
from mcp.server.runner import ServerRunner
from msgspec import structs

from mcp_notebook.bridge.kernels.catalog import Catalog
from mcp_notebook.bridge.kernels.links import Links
from mcp_notebook.bridge.transports.fast_path.plain_stdio import PlainStdio
from mcp_notebook.bridge.transports.open_requests import OpenRequests
from mcp_notebook.bridge.transports.stdio import _Incoming, _LineProtocol, _Outgoing
from mcp_notebook.settings.limits import Limits
from mcp_notebook.text.missing_tools import READ_RESOURCE
from mcp_notebook.wire import messages

pytestmark = pytest.mark.anyio
LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
ABOUT = {"name": "c", "version": "1"}
PARAMS = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": ABOUT}
INITIALIZE = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": PARAMS}
INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}
CANCELLED = {"jsonrpc": "2.0", "method": "notifications/cancelled"}


def line_of(message, era):
    return json.dumps(modern(message)[0] if era == "modern" else message).encode() + b"\n"


class Client:
    """A stdio client of one era; what it sends besides plain requests comes to the SDK at once."""

    def __init__(self, server, era):
        self.requests = OpenRequests()
        self.plain = PlainStdio(server, self.take_answer, self.requests, self.open_sdk)
        self.era = era
        self._server = server
        self.answers = asyncio.Queue()
        self.is_written = anyio.Event()
        self.turn = asyncio.Lock()
        """Held by a client that does not read."""
        self.connection = Connection.for_loop(None)
        if era == "modern":
            self.connection = Connection.from_envelope("2026-07-28", None, {})

    async def take_answer(self, *pieces):
        await self.answers.put(json.loads(b"".join(pieces)))
        self.is_written.set()
        async with self.turn:
            pass

    async def open_sdk(self):
        raise AssertionError("no tool asks a question")

    async def begin(self):
        method = "tools/list" if self.era == "modern" else "initialize"
        first = json.loads(line_of(LIST | {"method": method}, self.era))
        self.plain.note_message(types.jsonrpc_message_adapter.validate_python(first))
        if self.era != "modern":
            runner = ServerRunner(self._server.mcp, self.connection, None)
            about = {"name": "c", "version": "1"}
            params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": about}
            await runner.on_request(_Context(), "initialize", params)

    def cancel(self, request_id):
        notice = CANCELLED | {"params": {"requestId": request_id}}
        self.plain.note_message(types.jsonrpc_message_adapter.validate_python(notice))

    def ask(self, message):
        return self.plain.take(line_of(message, self.era))

    async def hear(self):
        with anyio.fail_after(TIMEOUT):
            return await self.answers.get()


class _Context:
    """What the SDK hands a handler of a notification."""

    request_id = None
    message_metadata = None


@asynccontextmanager
async def client_of(home, era, limits=None):
    catalog = Catalog()
    tool = messages.ToolInfo(name="top", input_schema={"type": "object"})
    async with (
        peer(home, structs.replace(welcome(), tools=[tool])) as kernel,
        Links(catalog) as links,
    ):
        await links.connect(kernel.record)
        client = Client(make_server(catalog, links, limits=limits or Limits()), era)
        await client.begin()
        yield client, kernel


@pytest.mark.parametrize("era", ["handshake", "modern"])
async def test_a_list_is_answered_in_the_clients_era(home, era):
    async with client_of(home, era) as (client, _):
        assert client.ask(LIST)
        answer = await client.hear()
        assert answer["id"] == 1
        assert [tool["name"] for tool in answer["result"]["tools"]] == ["top", READ_RESOURCE]
        assert ("resultType" in answer["result"]) == (era == "modern")
        assert not client.requests.open_ids


@pytest.mark.parametrize("era", ["handshake", "modern"])
async def test_what_is_of_the_other_era_is_for_the_sdk(home, era):
    other = "handshake" if era == "modern" else "modern"
    async with client_of(home, era) as (client, _):
        assert not client.plain.take(line_of(LIST, other))


async def test_a_session_is_opened_without_the_sdk(home):
    async with Links(Catalog()) as links:
        client = Client(make_server(Catalog(), links), "handshake")
        assert client.ask(INITIALIZE)
        assert (await client.hear())["result"]["protocolVersion"] == "2025-06-18"
        assert client.ask(INITIALIZED)
        assert client.ask(LIST | {"method": "ping", "id": "p"})
        assert await client.hear() == {"jsonrpc": "2.0", "id": "p", "result": {}}
        assert client.ask(CANCELLED | {"params": {"requestId": "p"}})
        assert client.ask(LIST)
        assert (await client.hear())["result"] == {"tools": []}
        assert not client.requests.open_ids
        assert client.plain.make_missed("m") == [INITIALIZE | {"id": "m"}, INITIALIZED]


@pytest.mark.parametrize("method", ["tools/list", "server/discover"])
async def test_the_first_request_of_a_newer_client_needs_no_sdk(home, method):
    async with Links(Catalog()) as links:
        client = Client(make_server(Catalog(), links), "modern")
        assert client.ask(LIST | {"method": method})
        assert (await client.hear())["result"]["resultType"] == "complete"
        (missed,) = client.plain.make_missed("m")
        assert (missed["id"], missed["method"]) == ("m", "server/discover")
        assert missed["params"]["_meta"] == modern(LIST)[0]["params"]["_meta"]


@pytest.mark.parametrize(
    "first",
    [
        LIST,
        INITIALIZED,
        LIST | {"method": "ping"},
        LIST | {"method": "server/discover"},
        INITIALIZE | {"params": PARAMS | {"protocolVersion": 1}},
        INITIALIZE | {"params": PARAMS | {"capabilities": {"elicitation": None}}},
        INITIALIZE | {"params": PARAMS | {"capabilities": {"roots": {"listChanged": 1}}}},
        INITIALIZE | {"params": PARAMS | {"clientInfo": {"name": "c"}}},
        INITIALIZE | {"params": PARAMS | {"clientInfo": None}},
        INITIALIZE | {"params": PARAMS | {"clientInfo": ABOUT | {"title": "t" * 20_000}}},
        INITIALIZE | {"params": PARAMS | {"_meta": {}}},
    ],
)
async def test_a_client_that_begins_in_an_unusual_way_is_for_the_sdk(home, first):
    async with Links(Catalog()) as links:
        client = Client(make_server(Catalog(), links), "handshake")
        assert not client.ask(first)
        assert client.plain.make_missed("m") == []
        assert not client.ask(INITIALIZE)  # the SDK has to see the first request


async def test_a_session_that_is_refused_is_none(home):
    limits = Limits(max_caller_calls_per_minute=1)
    async with Links(Catalog()) as links:
        server = make_server(Catalog(), links, limits=limits)
        for _ in range(2):
            server.request_rates.take(server.default_caller)
        client = Client(server, "handshake")
        assert client.ask(INITIALIZE)
        assert "requests" in (await client.hear())["error"]["message"]
        assert not client.ask(LIST)
        assert client.plain.make_missed("m") == []


@pytest.mark.parametrize("era", ["handshake", "modern"])
async def test_a_call_that_its_client_cancels_is_not_answered(home, era):
    async with client_of(home, era) as (client, kernel):
        assert client.ask(call(7))
        await called(kernel)
        client.cancel("7")
        with anyio.fail_after(TIMEOUT):
            await kernel.cancelled.wait()
            await client.requests.wait_until_answered()
        assert client.ask(LIST)
        assert (await client.hear())["id"] == 1


@pytest.mark.parametrize("era", ["handshake", "modern"])
async def test_a_kernel_receives_a_cancel_before_the_next_call(home, era):
    async with client_of(home, era) as (client, kernel):
        assert client.ask(call(7))
        await called(kernel)
        client.cancel(7)
        assert client.ask(call(8))
        with anyio.fail_after(TIMEOUT):
            await called(kernel, 2)
        heard = [type(message) for message in kernel.heard]
        assert heard[-3:] == [messages.Call, messages.Cancel, messages.Call]


@pytest.mark.parametrize("era", ["handshake", "modern"])
async def test_a_call_that_runs_when_the_client_leaves_is_told_so(home, era):
    async with client_of(home, era) as (client, kernel):
        assert client.ask(call(7))
        await called(kernel)
        await client.plain.close()
        answer = await client.hear()
        assert (answer["id"], answer["error"]["message"]) == (7, "Connection closed")
        with anyio.fail_after(TIMEOUT):
            await kernel.cancelled.wait()


async def test_an_answer_that_the_client_takes_late_is_not_followed_by_another(home):
    async with client_of(home, "modern") as (client, _):
        await client.turn.acquire()
        assert client.ask(LIST)
        with anyio.fail_after(TIMEOUT):
            await client.is_written.wait()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(client.plain.close())
            await asyncio.sleep(0)
            client.turn.release()
        assert (await client.hear())["result"]
        assert client.answers.empty()


async def test_progress_and_logs_come_before_the_answer(home):
    async with client_of(home, "handshake") as (client, kernel):
        assert client.ask(call(7, progress=True))
        (running,) = await called(kernel)
        kernel.say(messages.Progress(id=running.id, progress=1, message="on"))
        progress = await client.hear()
        assert progress["params"] == {"progressToken": 7, "progress": 1.0, "message": "on"}
        kernel.say(messages.Log(id=running.id, level="warning", text="Ouch"))
        log = await client.hear()
        assert (log["method"], log["params"]["data"]) == ("notifications/message", "Ouch")
        kernel.say(messages.Returned(id=running.id, content=[]))
        assert (await client.hear())["result"] == {"content": [], "isError": False}


class Refusals(_Outgoing):
    """The errors that the client gets for invalid lines."""

    def __init__(self):
        super().__init__()
        self.count = 0

    async def send_line(self, *pieces):
        assert "error" in json.loads(b"".join(pieces))
        self.count += 1


@asynccontextmanager
async def pipe_of(client, limit, refusals):
    """Read for the block what is put into a client's pipe, in these pieces."""
    incoming = _Incoming(asyncio.StreamReader(limit=limit), refusals, limit)
    incoming.plain = client.plain
    protocol = _LineProtocol(incoming)

    async def put(*pieces):
        for piece in pieces:
            await anyio.wait_all_tasks_blocked()
            protocol.data_received(piece)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(incoming.read)
        yield put
        tasks.cancel_scope.cancel()


def list_line(number):
    return line_of(LIST | {"id": number}, "modern")


@pytest.mark.parametrize(
    ("pieces", "refused"),
    [
        ([list_line(1) + b"and ", list_line(2), list_line(3)], 1),
        ([list_line(1) + list_line(3)[:9], list_line(3)[9:]], 0),
        ([list_line(1), b"x" * 3_000, list_line(2) + list_line(3)], 1),
        ([list_line(1), b" " * 2_000 + list_line(2), list_line(3)], 1),
    ],
    ids=["a line in two", "a request in two", "too long in two", "too long in one"],
)
async def test_lines_are_the_same_however_they_come_in(home, pieces, refused):
    refusals = Refusals()
    async with client_of(home, "modern") as (client, _), pipe_of(client, 2_000, refusals) as put:
        await put(*pieces)
        assert [(await client.hear())["id"] for _ in range(2)] == [1, 3]
    assert refusals.count == refused
