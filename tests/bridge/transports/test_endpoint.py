"""The endpoint's sessions, and how it ends; the kernel is a stand-in that never answers a call."""

import json
import socket
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from urllib.parse import urlsplit

import anyio
import pytest
from bridges import INITIALIZE, LIMIT, PING, TOKEN, ask
from kernel_stand_ins import Peer, keeping, peer
from live import TIMEOUT

from mcp_notebook.bridge.kernels.catalog import Catalog
from mcp_notebook.bridge.kernels.links import Links
from mcp_notebook.bridge.server.server import NotebookServer
from mcp_notebook.bridge.transports.http import format_url, open_listener, serve_http
from mcp_notebook.settings import Settings
from mcp_notebook.wire import messages, resource_uris

pytestmark = pytest.mark.anyio

MODERN = "2026-07-28"
STOPPED = "The bridge was stopped, and the call was cancelled."
SOON = 0.01
"""Minutes after which a session expires, for clients that shall lose it."""


@dataclass
class Served:
    """An endpoint that serves a kernel that is none."""

    url: str
    kernel: Peer
    stop: anyio.Event
    has_ended: anyio.Event

    async def ask(self, message=None, *, method="POST", **headers):
        """Send a request as another process would: the loop serves it meanwhile."""
        body = None if message is None else json.dumps(message)
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        return await anyio.to_thread.run_sync(
            partial(ask, self.url, method, body, headers=headers), abandon_on_cancel=True
        )

    async def open_session(self):
        """Return the id of a new session, ready for requests."""
        answer = await self.ask(INITIALIZE)
        session = answer.headers["Mcp-Session-Id"]
        initialized = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        await self.ask(initialized, Mcp_Session_Id=session)
        return session

    def connect(self, head, body=b""):
        """Return a connection on which a request has been sent by hand."""
        parts = urlsplit(self.url)
        client = socket.create_connection((parts.hostname, parts.port), timeout=LIMIT)
        lines = [
            head,
            "Host: localhost",
            f"Authorization: Bearer {TOKEN}",
            "Accept: application/json, text/event-stream",
            "Content-Type: application/json",
            f"Content-Length: {len(body)}",
        ]
        client.sendall("\r\n".join([*lines, "", ""]).encode() + body)
        return client

    async def open_stream(self):
        """Return a new session and a connection on which its stream of notices has begun."""
        while True:
            session = await self.open_session()
            client = self.connect(f"GET /mcp HTTP/1.1\r\nMcp-Session-Id: {session}")
            if b" 200 " in await anyio.to_thread.run_sync(client.recv, 1_000):
                return session, client
            client.close()  # a slow machine: the session has expired meanwhile

    async def open_call(self):
        """Return a new session and a connection on which a call of it has begun."""
        while True:
            session = await self.open_session()
            head = f"POST /mcp HTTP/1.1\r\nMcp-Session-Id: {session}"
            client = self.connect(head, json.dumps(call()).encode())
            async with anyio.create_task_group() as tasks:

                async def wait_for_refusal(client=client, tasks=tasks):
                    await anyio.wait_readable(client)
                    tasks.cancel_scope.cancel()

                tasks.start_soon(wait_for_refusal)
                await called(self.kernel)
                tasks.cancel_scope.cancel()
                return session, client
            client.close()


@asynccontextmanager
async def served(home, *, minutes=60.0):
    """Serve over HTTP what looks like a kernel with the tool `top`."""
    catalog = Catalog()
    settings = Settings(home=home, port=0, session_idle_minutes=minutes)
    async with peer(home, keeping("top")) as kernel, Links(catalog, on_change=int) as links:
        await links.connect(kernel.record)
        listener = open_listener(settings)
        here = Served(format_url(listener), kernel, anyio.Event(), anyio.Event())
        server = NotebookServer(catalog, links)

        async def serve():
            await serve_http(server, listener, settings=settings, token=TOKEN, stop=here.stop)
            here.has_ended.set()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(serve)
            with anyio.fail_after(TIMEOUT):
                yield here
                here.stop.set()
                await here.has_ended.wait()


def call(number=1, *, tool="top", progress=False, meta=None):
    """Return a request for a call."""
    meta = (meta or {}) | ({"progressToken": number} if progress else {})
    params = {"name": tool, "arguments": {}, "_meta": meta}
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}


def modern(message):
    """Return a request of the era without sessions, and its headers."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    params = message.get("params", {})
    params = params | {"_meta": params.get("_meta", {}) | meta}
    headers = {"Mcp-Method": message["method"], "Mcp-Protocol-Version": MODERN}
    if "name" in params:
        headers["Mcp-Name"] = params["name"]
    if "uri" in params:
        headers["Mcp-Name"] = params["uri"]
    return message | {"params": params}, headers


def read_answer(answer):
    """Return the last message of an answer, as JSON or as the last event of a stream."""
    body = answer.body
    if answer.headers["Content-Type"].startswith("text/event-stream"):
        body = [line[6:] for line in body.splitlines() if line.startswith(b"data: ")][-1]
    return json.loads(body)


async def called(kernel, count=1):
    """Wait until the kernel has so many calls, and return them."""
    while len(calls := [item for item in kernel.heard if isinstance(item, messages.Call)]) < count:
        kernel.called = anyio.Event()
        await kernel.called.wait()
    return calls


# -- sessions --------------------------------------------------------------------------------------


async def gone(here, session):
    """Wait until a session is gone."""
    with anyio.fail_after(TIMEOUT):
        # Nothing tells, and each request keeps it a little longer.
        while (await here.ask(PING, Mcp_Session_Id=session)).status != 404:  # noqa: ASYNC110
            await anyio.sleep(2 * SOON * 60)


async def test_a_session_that_nobody_uses_expires_and_the_client_opens_a_new_one(home):
    async with served(home, minutes=SOON) as here:
        session = await here.open_session()
        await gone(here, session)
        answer = await here.ask(PING, Mcp_Session_Id=session)
        assert (answer.status, answer.error["message"]) == (404, "Session not found")
        assert (await here.ask(INITIALIZE)).status == 200


async def test_a_session_lasts_an_hour_by_default():
    assert Settings().session_idle_minutes == 60
    assert Settings.from_environment({"MCP_NOTEBOOK_SESSION_IDLE_MINUTES": "5"}) == Settings(
        session_idle_minutes=5
    )


async def test_an_open_stream_keeps_its_session(home):
    async with served(home, minutes=SOON) as here:
        kept, stream = await here.open_stream()
        with stream:
            await gone(here, await here.open_session())
            assert (await here.ask(PING, Mcp_Session_Id=kept)).status == 200


@pytest.mark.parametrize("stays", [True, False])
async def test_a_running_call_keeps_its_session_although_its_client_hangs_up(home, stays):
    async with served(home, minutes=SOON) as here:
        kept, client = await here.open_call()
        (running,) = await called(here.kernel)
        if not stays:
            client.close()
        await gone(here, await here.open_session())
        assert (await here.ask(PING, Mcp_Session_Id=kept)).status == 200
        assert not any(isinstance(item, messages.Cancel) for item in here.kernel.heard)
        here.kernel.say(messages.Returned(id=running.id, content=[]))
        await gone(here, kept)
        client.close()


# -- the end ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("streams", [True, False], ids=["a stream", "JSON"])
@pytest.mark.parametrize("era", ["handshake", "modern"])
async def test_a_call_that_runs_when_the_bridge_stops_is_told_so(home, era, streams):
    async with served(home) as here:
        message, headers = call(progress=streams), {}
        if era == "modern":
            message, headers = modern(message)
        else:
            headers = {"Mcp-Session-Id": await here.open_session()}
        answers = []

        async def ask_and_keep():
            answers.append(await here.ask(message, **headers))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask_and_keep)
            (running,) = await called(here.kernel)
            if streams:
                here.kernel.say(messages.Progress(id=running.id, progress=1))
            await here.ask(INITIALIZE)  # what came before has been handled
            here.stop.set()
        (answer,) = answers
        assert answer.status == 200
        assert answer.headers["Content-Type"].startswith("text/event") is streams
        result = read_answer(answer)["result"]
        assert result["isError"] is True
        assert [block["text"] for block in result["content"]] == [STOPPED]
        await here.has_ended.wait()
        await here.kernel.cancelled.wait()


async def test_whoever_reads_a_resource_when_the_bridge_stops_is_told_so(home):
    async with served(home) as here:
        uri = f"{resource_uris.make_prefix(here.kernel.record.id)}1"
        message = {"jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": {"uri": uri}}
        message, headers = modern(message)
        answers = []

        async def ask_and_keep():
            answers.append(await here.ask(message, **headers))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask_and_keep)
            await here.kernel.was_read.wait()
            here.stop.set()
        error = read_answer(answers[0])["error"]
        assert error["message"] == "The bridge was stopped before the resource was read."


async def test_open_sessions_and_streams_do_not_delay_the_end(home):
    async with served(home) as here:
        streams = [(await here.open_stream())[1] for _ in range(3)]
        here.stop.set()
        await here.has_ended.wait()
        for stream in streams:
            with stream:
                stream.settimeout(LIMIT)
                rest = b""
                while chunk := await anyio.to_thread.run_sync(stream.recv, 1_000):
                    rest += chunk
                assert rest.endswith(b"0\r\n\r\n"), "the stream was cut off"
