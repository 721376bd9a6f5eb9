"""An HTTP endpoint of the tests' own process; its kernel is a stand-in that answers no call."""

import json
import socket
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from urllib.parse import urlsplit

import anyio
from bridges import INITIALIZE, LIMIT, TOKEN, ask
from kernel_stand_ins import Peer, peer, welcome
from linked_servers import make_server
from live import TIMEOUT
from msgspec import structs

from mcp_notebook.bridge.access.refusals import RefusalLog
from mcp_notebook.bridge.access.token_check import OwnToken
from mcp_notebook.bridge.kernels.catalog import Catalog
from mcp_notebook.bridge.kernels.links import Links
from mcp_notebook.bridge.transports.connections import ConnectionLimits, Connections
from mcp_notebook.bridge.transports.endpoint import Endpoint
from mcp_notebook.bridge.transports.http import format_url, open_listener, serve_http
from mcp_notebook.protocol.headers import encode_value
from mcp_notebook.settings.settings import Settings
from mcp_notebook.wire import messages

MODERN = "2026-07-28"
OWNERS = (OwnToken(TOKEN),)
LIMITS = ConnectionLimits()


@dataclass
class Served:
    """An endpoint that serves a kernel that is none."""

    url: str
    kernel: Peer
    stop: anyio.Event
    has_ended: anyio.Event
    endpoint: Endpoint | None = None
    refusals: list[tuple[str, str, int]] = field(default_factory=list)
    """The address, the reason and the number of refused requests."""

    async def ask(self, message=None, *, method="POST", **headers):
        """Send a request as another process would: the loop serves it meanwhile."""
        body = None if message is None else json.dumps(message)
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        return await self.send(body, method, headers)

    async def send(self, body, method="POST", headers=None, *, path=None):
        """Send a request with this body."""
        return await anyio.to_thread.run_sync(
            partial(ask, self.url, method, body, path=path, headers=headers),
            abandon_on_cancel=True,
        )

    async def send_call(self, request, session):
        """Send a request of a session, and return the answer."""
        return await self.ask(request, Mcp_Session_Id=session)

    async def open_session(self):
        """Return the id of a new session, ready for requests."""
        answer = await self.ask(INITIALIZE)
        session = answer.headers["Mcp-Session-Id"]
        initialized = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        await self.ask(initialized, Mcp_Session_Id=session)
        return session

    def connect(self, head, body=b"", *, length=None, token=TOKEN):
        """Return a connection on which a request has been sent by hand, perhaps not to its end."""
        parts = urlsplit(self.url)
        client = socket.create_connection((parts.hostname, parts.port), timeout=LIMIT)
        lines = [
            head,
            "Host: localhost",
            f"Authorization: Bearer {token}",
            "Accept: application/json, text/event-stream",
            "Content-Type: application/json",
            f"Content-Length: {len(body) if length is None else length}",
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
async def served(
    home,
    *,
    schema=None,
    authenticators=OWNERS,
    sessions=None,
    connections=LIMITS,
    **limits,
):
    """Serve over HTTP what looks like a kernel with the tool `top`, within limits."""
    catalog = Catalog()
    settings = Settings(home=home, port=0, **limits)
    tool = messages.ToolInfo(name="top", input_schema=schema or {"type": "object"})
    can = {"tools": [tool]}
    async with (
        peer(home, structs.replace(welcome(), **can)) as kernel,
        Links(catalog) as links,
    ):
        await links.connect(kernel.record)
        listener = open_listener(settings)
        here = Served(format_url(listener), kernel, anyio.Event(), anyio.Event())
        server = make_server(catalog, links, limits=settings)
        here.endpoint = Endpoint(server, settings, **sessions or {})

        async def serve():
            async with here.endpoint.run():
                await serve_http(
                    here.endpoint,
                    listener,
                    settings=settings,
                    authenticators=authenticators,
                    stop=here.stop,
                    connections=Connections(
                        RefusalLog(lambda *refusal: here.refusals.append(refusal)),
                        connections,
                    ),
                )
            here.has_ended.set()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(serve)
            with anyio.fail_after(TIMEOUT):
                yield here
                here.stop.set()
                await here.has_ended.wait()


def call(number=1, *, progress=False, arguments=None):
    """Return a request for a call."""
    meta = {"progressToken": number} if progress else {}
    params = {"name": "top", "arguments": arguments or {}, "_meta": meta}
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}


def modern(message):
    """Return a request of the era without sessions, and its headers."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    params = message.get("params", {})
    params = params | {"_meta": params.get("_meta", {}) | meta}
    headers = {"Mcp-Method": encode_value(message["method"]), "Mcp-Protocol-Version": MODERN}
    if "name" in params:
        headers["Mcp-Name"] = params["name"]
    if "uri" in params:
        headers["Mcp-Name"] = params["uri"]
    return message | {"params": params}, headers


async def called(kernel, count=1):
    """Wait until the kernel has so many calls, and return them."""
    while len(calls := [item for item in kernel.heard if isinstance(item, messages.Call)]) < count:
        kernel.called = anyio.Event()
        await kernel.called.wait()
    return calls
