"""The official MCP client against a real bridge, in every era and over every transport."""

import json
import re
import ssl
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from forked_command import list_words
from judge import judged
from listing import KNOWN, list_tools
from live import TIMEOUT, LiveKernel, kernel_env, live_kernel, soon
from mcp import Client, StdioServerParameters
from mcp.client.extension import advertise
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult, ImageContent, TextContent, Tool

from mcp_notebook.bridge.views.pages import MIME_TYPE

COMMAND = [sys.executable, "-m", "mcp_notebook"]
TOKEN = "token-of-the-tests-0123456789abcdef"
ERAS = ("legacy", "auto")  # "auto" finds 2026-07-28
TRANSPORTS = ("stdio", "http")
ONE_ERA = ("auto", pytest.param("legacy", marks=pytest.mark.slow))
"""The eras, for what takes long."""
ONE_WAY = (
    ("auto", "http"),
    *(
        pytest.param(era, transport, marks=pytest.mark.slow)
        for era, transport in (("legacy", "stdio"), ("legacy", "http"), ("auto", "stdio"))
    ),
)
"""The pairs of era and transport, for what takes long."""
LOAD = "%load_ext mcp_notebook"
HEADERS = {
    "Authorization": f"Bearer {TOKEN}",
    "Accept": "application/json, text/event-stream",
}
"""Of each request that is written by hand."""
NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""Knows no authorities: to read the usual ones takes 50 ms for each client, and nothing is asked of
any server that needs them."""


VIEW_EXTENSION, VIEW_FORMATS = "io.modelcontextprotocol/ui", {"mimeTypes": [MIME_TYPE]}
SHOWS_VIEWS = (advertise(VIEW_EXTENSION, VIEW_FORMATS),)
"""What a client of 2026-07-28 declares that shows live views."""
VIEW_WAYS = (("auto", "stdio"), ("auto", "http"), ("legacy", "http"))
"""The pairs of era and transport in which the tests' client can show live views."""


@contextmanager
def tool_kernel(
    home: Path, *cells: str, name: str | None = None, env: dict[str, str] | None = None
) -> Iterator[LiveKernel]:
    """Start a kernel, load the extension, and run these cells; `name` is that of its notebook."""
    notebook = None if name is None else str(home / f"{name}.ipynb")
    with live_kernel(home, notebook=notebook, env=env) as kernel:
        for cell in (LOAD, *cells):
            kernel.ok(cell)
        yield kernel


@dataclass(frozen=True)
class Served:
    """An HTTP bridge that runs."""

    url: str
    process: subprocess.Popen[str]


@contextmanager
def http_bridge(
    home: Path,
    *arguments: str,
    env: dict[str, str] | None = None,
    command: Sequence[str] | None = None,
) -> Iterator[Served]:
    """Run `mcp-notebook serve` and end it; a forked process unless a command is given."""
    process = subprocess.Popen(
        [*(command or list_words()), "serve", "--port", "0", *arguments],
        env=kernel_env(home) | {"MCP_NOTEBOOK_TOKEN": TOKEN} | (env or {}),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    said = ""
    try:
        for line in process.stderr:
            said += line
            if found := re.search(r"http://[\d.]+:\d+/mcp", line):
                yield Served(found.group(), process)
                break
        else:
            raise AssertionError(f"the bridge ended: {said}")
    finally:
        process.terminate()
        process.wait(TIMEOUT)
        process.stderr.close()


@asynccontextmanager
async def connected(
    home: Path, era: str, transport: str, *arguments: str, **options: object
) -> AsyncIterator[Client]:
    """Connect the official client; over stdio with the environment that desktop clients give.

    It calls itself as one that takes every kind of content block, unless `options` say otherwise.
    """
    if transport == "stdio":
        program, *words = list_words("stdio", *arguments)
        server = StdioServerParameters(
            command=program,
            args=words,
            env={"HOME": str(home)},
        )
        transport = judged(stdio_client(server))
        async with Client(transport, mode=era, **{"client_info": KNOWN} | options) as client:
            yield client
        return
    with http_bridge(home, *arguments) as served:
        async with over_http(served.url, era, **options) as client:
            yield client


@asynccontextmanager
async def over_http(
    url: str, era: str, *, token: str = TOKEN, shows_views: bool = False, **options: object
) -> AsyncIterator[Client]:
    """Connect the official client to an HTTP bridge that runs, as `connected` does."""
    headers = {"Authorization": f"Bearer {token}"}
    declaring: Any = {}
    if shows_views and era == "legacy":
        declaring = {"transport": DeclaringTransport(verify=NO_TLS)}
    elif shows_views:
        options["extensions"] = SHOWS_VIEWS
    async with http_client(headers=headers, **declaring) as http:
        server = judged(streamable_http_client(url, http_client=http))
        async with Client(server, mode=era, **{"client_info": KNOWN} | options) as client:
            yield client


class DeclaringTransport(httpx2.AsyncHTTPTransport):
    """Declares the extension in `initialize`, as hosts do, and the official client does not."""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request."""
        if b'"initialize"' in request.content:
            message = json.loads(request.content)
            message["params"]["capabilities"]["extensions"] = {VIEW_EXTENSION: VIEW_FORMATS}
            headers = {k: v for k, v in request.headers.items() if k.lower() != "content-length"}
            request = httpx2.Request(request.method, request.url, headers=headers, json=message)
        return await super().handle_async_request(request)


def http_client(**options: Any) -> httpx2.AsyncClient:
    """Return an HTTP client for requests to bridges."""
    return httpx2.AsyncClient(**{"verify": NO_TLS, "timeout": TIMEOUT} | options)


def initialize(version: str, capabilities: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return the request that begins a session of a handshake era."""
    client = {"name": "raw", "version": "1"}
    params = {
        "protocolVersion": version,
        "capabilities": capabilities or {},
        "clientInfo": client,
    }
    return {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}


INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}


@asynccontextmanager
async def raw_session(
    url: str, version: str = "2025-11-25", capabilities: dict[str, Any] | None = None
) -> AsyncIterator[tuple[httpx2.AsyncClient, dict[str, Any]]]:
    """Open a session of a handshake era by hand; yield what posts in it, and what it was told."""
    async with http_client(headers=HEADERS) as http:
        answer = await http.post(url, json=initialize(version, capabilities))
        http.headers["Mcp-Session-Id"] = answer.headers["Mcp-Session-Id"]
        http.headers["MCP-Protocol-Version"] = version
        assert (await http.post(url, json=INITIALIZED)).status_code < 300
        yield http, answer_of(answer)["result"]


def answer_of(response: httpx2.Response) -> dict[str, Any]:
    """Return the message with which a request was answered, alone or as the last of a stream."""
    if response.headers["Content-Type"].startswith("text/event-stream"):
        data = [line for line in response.text.splitlines() if line.startswith("data:")]
        return json.loads(data[-1].removeprefix("data:"))
    return response.json()


async def until_listed(client: Client, name: str) -> dict[str, Tool]:
    """Wait until the bridge knows a tool that has just been declared; return all tools by name."""

    async def look() -> dict[str, Tool] | None:
        tools = {tool.name: tool for tool in await list_tools(client, cache_mode="bypass")}
        return tools if name in tools else None

    return await soon(look)


def text_of(result: CallToolResult) -> str:
    """Return all text of a result."""
    return "\n".join(block.text for block in result.content if isinstance(block, TextContent))


def pictures_of(result: CallToolResult) -> list[ImageContent]:
    """Return the pictures of a result."""
    return [block for block in result.content if isinstance(block, ImageContent)]


class Changes:
    """Counts `list_changed` notices, in whichever way the era sends them."""

    def __init__(self) -> None:
        self.seen = anyio.Event()

    async def handle(self, message: object) -> None:
        """The client's message handler: the handshake eras send plain notifications."""
        if type(message).__name__ == "ToolListChangedNotification":
            self.seen.set()

    async def handle_resources(self, message: object) -> None:
        """The same for changes of the list of resources."""
        if type(message).__name__ == "ResourceListChangedNotification":
            self.seen.set()

    @asynccontextmanager
    async def watch(self, client: Client, era: str, **lists: bool) -> AsyncIterator[None]:
        """Listen for changes within the block; of the list of tools if no other is named."""
        if era == "legacy":
            yield
            return
        async with (
            client.listen(**lists or {"tools_list_changed": True}) as subscription,
            anyio.create_task_group() as tasks,
        ):

            async def follow() -> None:
                async for _ in subscription:
                    self.seen.set()

            tasks.start_soon(follow)
            try:
                yield
            finally:
                tasks.cancel_scope.cancel()

    async def wait(self) -> None:
        """Wait for a notice, within bounds."""
        with anyio.fail_after(TIMEOUT):
            await self.seen.wait()
        self.seen = anyio.Event()
