"""A client over stdio, in this process: its era, its session, its requests; no kernel answers."""

import asyncio
import json
from contextlib import asynccontextmanager

import anyio
import pytest
from bridges import (
    INITIALIZE,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    PING,
    PONG,
)
from endpoints import call, called, modern
from kernel_stand_ins import peer, welcome
from linked_servers import make_server
from live import TIMEOUT

from mcp_notebook.bridge.kernels.catalog import Catalog
from mcp_notebook.bridge.kernels.links import Links
from mcp_notebook.bridge.server.requests import expand
from mcp_notebook.bridge.transports.stdio import StdioClient, _Incoming, _LineProtocol
from mcp_notebook.protocol.errors import (
    CONNECTION_CLOSED,
    INTERNAL_ERROR,
    UNSUPPORTED_PROTOCOL_VERSION,
)
from mcp_notebook.protocol.messages import InvalidMessage, read_message
from mcp_notebook.settings.limits import Limits
from mcp_notebook.wire import messages

pytestmark = pytest.mark.anyio
ERAS = pytest.mark.parametrize("era", ["handshake", "modern"])
LIST = {"jsonrpc": "2.0", "id": "l", "method": "tools/list"}
DISCOVER = {"jsonrpc": "2.0", "id": "d", "method": "server/discover"}
INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}
CANCELLED = {"jsonrpc": "2.0", "method": "notifications/cancelled"}


class Client:
    """A client, and what it hears."""

    def __init__(self, server):
        self.server = server
        self.answers = asyncio.Queue()
        self.turn = asyncio.Lock()
        """Held by a client that does not read."""
        self.is_written = anyio.Event()
        self.ours = StdioClient(server, self._hear)

    async def _hear(self, *pieces):
        await self.answers.put(json.loads(b"".join(expand(pieces))))
        self.is_written.set()
        async with self.turn:
            pass

    def say(self, *said):
        """Send messages, one directly after the other."""
        for message in said:
            self.ours.take(read_message(json.dumps(message).encode()))

    async def hear(self):
        """Return the next message."""
        with anyio.fail_after(TIMEOUT):
            return await self.answers.get()

    async def ask(self, message):
        """Return the answer to a request."""
        self.say(message)
        return await self.hear()


@asynccontextmanager
async def client_of(home, **limits):
    """Yield a client before its first message, and what looks like a kernel."""
    catalog = Catalog()
    async with peer(home, welcome("top")) as kernel, Links(catalog) as links:
        await links.connect(kernel.record)
        client = Client(make_server(catalog, links, limits=Limits(**limits)))
        yield client, kernel
        await client.ours.close()


def of_era(message, era):
    return modern(message)[0] if era == "modern" else message


async def begin(client, era):
    """Begin as a client of an era."""
    if era == "handshake":
        assert "result" in await client.ask(INITIALIZE)
        client.say(INITIALIZED)
    else:
        assert "result" in await client.ask(modern(DISCOVER)[0])


# -- the era ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("first", [DISCOVER, LIST, PING, LIST | {"method": "nobody/knows"}])
async def test_a_first_request_with_a_version_decides_for_the_era_without_sessions(home, first):
    async with client_of(home) as (client, _):
        client.say(INITIALIZED)  # a notification decides nothing
        await client.ask(modern(first)[0])
        refused = await client.ask(INITIALIZE)
        assert refused["error"]["code"] == UNSUPPORTED_PROTOCOL_VERSION
        assert refused["error"]["data"]["supported"] == ["2026-07-28"]
        assert refused["error"]["data"]["requested"] == "2025-06-18"
        without = await client.ask(LIST)
        assert without["error"]["code"] == INVALID_PARAMS
        assert (await client.ask(modern(LIST)[0]))["result"]["resultType"] == "complete"


@pytest.mark.parametrize("first", [INITIALIZE, modern(INITIALIZE)[0], PING, LIST, DISCOVER])
async def test_any_other_first_request_decides_for_sessions(home, first):
    async with client_of(home) as (client, _):
        await client.ask(first)
        refused = await client.ask(modern(LIST)[0])
        assert refused["error"]["code"] == INVALID_REQUEST
        is_open = first["method"] == "initialize"
        assert ("error" if is_open else "result") in await client.ask(INITIALIZE)
        assert "resultType" not in (await client.ask(LIST))["result"]


async def test_a_refused_version_decides_for_the_era_without_sessions_as_well(home):
    async with client_of(home) as (client, _):
        message = modern(DISCOVER)[0]
        message["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = "2099-01-01"
        refused = await client.ask(message)
        assert refused["error"]["code"] == UNSUPPORTED_PROTOCOL_VERSION
        assert refused["error"]["data"] == {"supported": ["2026-07-28"], "requested": "2099-01-01"}
        assert "result" in await client.ask(modern(DISCOVER)[0])


@pytest.mark.parametrize(
    ("message", "code"),
    [
        (LIST, INVALID_PARAMS),
        (call(), INVALID_PARAMS),
        (LIST | {"method": "nobody/knows"}, METHOD_NOT_FOUND),
        (DISCOVER, METHOD_NOT_FOUND),
        (LIST | {"method": "tasks/get"}, METHOD_NOT_FOUND),
    ],
)
async def test_before_initialize_only_a_ping_is_answered(home, message, code):
    async with client_of(home) as (client, kernel):
        assert await client.ask(PING) == PONG
        assert (await client.ask(message))["error"]["code"] == code
        assert kernel.called.is_set() is False
        assert "result" in await client.ask(INITIALIZE)
        assert await client.ask(PING) == PONG


async def test_what_a_client_pipelines_is_answered_as_if_it_had_waited(home):
    async with client_of(home) as (client, kernel):
        client.say(INITIALIZE, INITIALIZED, call(7), LIST)
        answers = [await client.hear() for _ in range(2)]
        assert {answer["id"] for answer in answers} == {"hello", "l"}
        (running,) = await called(kernel)
        kernel.say(messages.Returned(id=running.id, content=[]))
        assert (await client.hear())["id"] == 7


async def test_a_client_that_initializes_again_is_refused_and_stays_who_it_was(home):
    async with client_of(home) as (client, _):
        assert "error" in await client.ask(INITIALIZE | {"params": {}})  # opens nothing
        assert "result" in await client.ask(INITIALIZE)
        for version in ("2024-11-05", "2025-11-25"):
            params = INITIALIZE["params"] | {"protocolVersion": version}
            answer = await client.ask(INITIALIZE | {"params": params})
            assert answer["error"]["code"] == INVALID_REQUEST
            tools = (await client.ask(LIST))["result"]["tools"]
            assert any("annotations" in tool for tool in tools)


async def test_an_initialize_that_is_refused_opens_no_session(home):
    async with client_of(home, max_caller_calls_per_minute=1) as (client, _):
        rates, caller = client.server.request_rates, client.server.default_caller
        while rates.take(caller) is None:
            pass
        refused = await client.ask(INITIALIZE)
        assert refused["error"]["code"] == INTERNAL_ERROR
        assert "requests" in refused["error"]["message"]
        assert client.ours._session.profile is None


# -- requests --------------------------------------------------------------------------------------


@ERAS
@pytest.mark.parametrize("named", [7, "7"])
async def test_a_call_that_its_client_cancels_is_not_answered(home, era, named):
    async with client_of(home) as (client, kernel):
        await begin(client, era)
        client.say(of_era(call(7), era))
        await called(kernel)
        for odd in (None, {}, {"requestId": True}, {"requestId": [7]}, {"requestId": "x"}):
            client.say(CANCELLED | {"params": odd})
        assert not kernel.cancelled.is_set()
        client.say(CANCELLED | {"params": {"requestId": named}})
        with anyio.fail_after(TIMEOUT):
            await kernel.cancelled.wait()
            await client.ours.wait_until_answered()
        assert client.answers.empty()
        assert (await client.ask(of_era(LIST, era)))["id"] == "l"


@ERAS
async def test_a_call_that_is_cancelled_before_it_begins_is_not_answered(home, era):
    async with client_of(home) as (client, _):
        await begin(client, era)
        client.say(of_era(call(7), era), CANCELLED | {"params": {"requestId": 7}})
        with anyio.fail_after(TIMEOUT):
            await client.ours.wait_until_answered()
        assert client.answers.empty()
        assert not client.ours._session._running


@pytest.mark.parametrize("message", [INITIALIZE, modern(DISCOVER)[0]])
async def test_the_first_answer_cannot_be_cancelled(home, message):
    async with client_of(home) as (client, _):
        client.say(message, CANCELLED | {"params": {"requestId": message["id"]}})
        assert "result" in await client.hear()


@ERAS
async def test_a_kernel_receives_a_cancel_before_the_next_call(home, era):
    async with client_of(home) as (client, kernel):
        await begin(client, era)
        client.say(of_era(call(7), era))
        await called(kernel)
        client.say(CANCELLED | {"params": {"requestId": 7}}, of_era(call(8), era))
        with anyio.fail_after(TIMEOUT):
            await called(kernel, 2)
        heard = [type(message) for message in kernel.heard]
        assert heard[-3:] == [messages.Call, messages.Cancel, messages.Call]


@ERAS
async def test_calls_that_run_when_the_client_leaves_are_told_so_and_end(home, era):
    async with client_of(home) as (client, kernel):
        await begin(client, era)
        client.say(*[of_era(call(number), era) for number in (7, 7, "a")])
        await called(kernel, 3)
        await client.ours.close()
        answers = [await client.hear() for _ in range(3)]
        assert {answer["id"] for answer in answers} == {7, "a"}
        assert {answer["error"]["code"] for answer in answers} == {CONNECTION_CLOSED}
        with anyio.fail_after(TIMEOUT):
            while sum(isinstance(item, messages.Cancel) for item in kernel.heard) < 3:
                kernel.cancelled = anyio.Event()
                await kernel.cancelled.wait()
        assert client.server.clients._sessions == {}
        assert client.server.changes._listeners == {}


async def test_an_answer_that_the_client_takes_late_is_not_followed_by_another(home):
    async with client_of(home) as (client, _):
        await begin(client, "modern")
        client.is_written = anyio.Event()
        await client.turn.acquire()
        client.say(of_era(LIST, "modern"))
        with anyio.fail_after(TIMEOUT):
            await client.is_written.wait()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(client.ours.close())
            await asyncio.sleep(0)
            client.turn.release()
        assert (await client.hear())["result"]
        assert client.answers.empty()


@ERAS
async def test_progress_and_logs_come_before_the_answer(home, era):
    async with client_of(home) as (client, kernel):
        await begin(client, era)
        message = of_era(call(7, progress=True), era)
        if era == "modern":
            message["params"]["_meta"]["io.modelcontextprotocol/logLevel"] = "debug"
        client.say(message)
        (running,) = await called(kernel)
        kernel.say(messages.Progress(id=running.id, progress=1, message="on"))
        progress = await client.hear()
        assert progress["params"] == {"progressToken": 7, "progress": 1.0, "message": "on"}
        kernel.say(messages.Log(id=running.id, level="warning", text="Ouch"))
        log = await client.hear()
        assert (log["method"], log["params"]["data"]) == ("notifications/message", "Ouch")
        kernel.say(messages.Returned(id=running.id, content=[]))
        assert (await client.hear())["id"] == 7


# -- lines -----------------------------------------------------------------------------------------


@asynccontextmanager
async def pipe_of(client, limit):
    """Read for the block what is put into a client's pipe, in these pieces."""
    incoming = _Incoming(asyncio.StreamReader(limit=limit), client.ours, limit)
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
    return json.dumps(modern(LIST | {"id": number})[0]).encode() + b"\n"


@pytest.mark.parametrize(
    ("pieces", "codes"),
    [
        ([list_line(1) + list_line(2) + list_line(3)], []),
        ([list_line(1) + b"and ", list_line(2), list_line(3)], [PARSE_ERROR]),
        ([list_line(1) + list_line(3)[:9], list_line(3)[9:]], []),
        ([list_line(1), b"x" * 3_000, list_line(2) + list_line(3)], [INVALID_REQUEST]),
        ([list_line(1), b" " * 2_000 + list_line(2), list_line(3)], [INVALID_REQUEST]),
        ([b"\n \r\n\n", list_line(1) + b"\n", b"\n", list_line(3)], []),
        ([b"".join(map(list_line, range(40)))], []),
        ([bytes([byte]) for byte in list_line(1) + list_line(3)], []),
    ],
    ids=["whole", "two lines", "split", "too long", "too long at once", "blank", "many", "bytes"],
)
async def test_lines_are_the_same_however_they_come_in(home, pieces, codes):
    async with client_of(home) as (client, _), pipe_of(client, 2_000) as put:
        await put(*pieces)
        await anyio.wait_all_tasks_blocked()
        with anyio.fail_after(TIMEOUT):
            await client.ours.wait_until_answered()
        heard = [client.answers.get_nowait() for _ in range(client.answers.qsize())]
        assert [item["error"]["code"] for item in heard if "error" in item] == codes
        answered = [item["id"] for item in heard if "result" in item]
        assert answered == (list(range(40)) if len(answered) > 3 else sorted({*answered, 1, 3}))


async def test_an_initialize_that_is_too_long_is_refused_by_its_id(home):
    long = INITIALIZE | {"params": INITIALIZE["params"] | {"x": "x" * 20_000}}
    async with client_of(home) as (client, _), pipe_of(client, 100_000) as put:
        await put(json.dumps(long).encode() + b"\n", json.dumps(INITIALIZE).encode() + b"\n")
        refused, opened = await client.hear(), await client.hear()
        assert (refused["id"], refused["error"]["code"]) == ("hello", INVALID_PARAMS)
        assert "16,384 bytes" in refused["error"]["message"]
        assert "result" in opened


async def test_refusals_that_a_client_does_not_read_keep_nothing_else_waiting(home):
    async with client_of(home) as (client, _kernel):
        await client.ask(INITIALIZE)
        async with client.turn:
            with pytest.raises(InvalidMessage) as caught:
                read_message(b"[1]")
            for _ in range(3):
                client.ours.refuse(caught.value)
            client.say(PING)
            with anyio.fail_after(TIMEOUT):
                await client.ours.close()
        assert not client.ours._running


async def test_a_refused_batch_is_answered_for_each_of_its_first_requests(home):
    async with client_of(home) as (client, _kernel):
        with pytest.raises(InvalidMessage) as caught:
            read_message(json.dumps([{**PING, "id": number} for number in range(10_000)]).encode())
        client.ours.refuse(caught.value)
        ids = [(await client.hear())["id"] for _ in range(100)]
        assert ids == [*range(100)]
        assert await client.ask(PING) == PONG
