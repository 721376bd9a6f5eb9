"""Probes of servers: lists tools over MCP, and sends simple HTTP requests, all with a timeout.

Runs on the command's event loop. The door to httpx2 in this room. The callers interpret the
answers.
"""

import os
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any

import anyio
import httpx2

from mcp_notebook.mcp_client.client import McpClient
from mcp_notebook.mcp_client.http import HttpTransport
from mcp_notebook.mcp_client.stdio import open_command
from mcp_notebook.outgoing_http import open_http_client
from mcp_notebook.protocol.errors import ProtocolError
from mcp_notebook.protocol.versions import LATEST_HANDSHAKE
from mcp_notebook.text.missing_tools import READ_RESOURCE

BARE_PATH = os.environ.get("PATH", "") if sys.platform == "win32" else os.defpath
"""The PATH of a program that was not started from a shell."""
_HTTP_LIMIT = 10.0
"""Seconds for a simple HTTP request."""


@dataclass(frozen=True, kw_only=True)
class Answer:
    """A server's answer to `tools/list`, or its failure."""

    tools: tuple[str, ...] = ()
    server: Mapping[str, Any] = field(default_factory=dict)
    """The server's ``serverInfo``."""
    seconds: float = 0.0
    """How long it took."""
    error: str | None = None
    """The error of the protocol or the system; None if tools were listed."""
    is_late: bool = False
    """Whether the timeout expired."""
    lines: Sequence[str] = ()
    """The lines that a command wrote to stderr."""


async def ask_command(
    words: Sequence[str], env: Mapping[str, str], folder: Path, limit: float
) -> Answer:
    """Start a command as a desktop client does, and list its tools.

    Args:
        words: The command and its arguments.
        env: Its variables besides HOME, LOGNAME, SHELL, TERM, USER and a bare PATH.
        folder: Its working directory.
        limit: The timeout in seconds.
    """
    began = time.monotonic()
    options = {"env": {"PATH": BARE_PATH, **env}, "folder": folder}
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as log:
        try:
            with anyio.fail_after(limit):
                answer = await _list_tools(words, log, began, **options)
        except TimeoutError:
            late = time.monotonic() - began
            answer = Answer(is_late=True, error="It did not answer.", seconds=late)
        except (ProtocolError, OSError, ValueError) as error:
            answer = Answer(error=str(error), seconds=time.monotonic() - began)
        log.seek(0)
        lines = [line.rstrip() for line in log if line.strip()]
    return replace(answer, lines=lines)


async def ask_status(method: str, url: str, headers: Mapping[str, str] | None = None) -> int | None:
    """Return the status of the answer to a request without content; None without an answer."""
    async with open_http_client(timeout=_HTTP_LIMIT, headers=headers or {}) as http:
        try:
            async with http.stream(method, url) as response:
                return response.status_code
        except (httpx2.TransportError, httpx2.InvalidURL):
            return None


async def ask_name(url: str, headers: Mapping[str, str]) -> str | None:
    """Return the name of the MCP server at an address; None if it does not say it in time."""
    # The client's own timeout starts anew with each comment of an event stream.
    with suppress(ProtocolError), anyio.move_on_after(_HTTP_LIMIT):
        async with (
            open_http_client(timeout=_HTTP_LIMIT, headers=headers) as http,
            HttpTransport.open(http, url) as transport,
        ):
            client = McpClient(transport, "mcp-notebook-doctor", LATEST_HANDSHAKE)
            await client.open()
            return str(client.server.get("name"))
    return None


async def _list_tools(words: Sequence[str], log: IO[str], began: float, **options: Any) -> Answer:
    """Return the answers to ``initialize`` and ``tools/list``."""
    async with open_command(words, errors=log, **options) as transport:
        client = McpClient(transport, "mcp-notebook-doctor", LATEST_HANDSHAKE)
        await client.open()
        names = [str(tool.get("name")) for tool in await client.list_tools()]
    return Answer(
        tools=tuple(name for name in names if name != READ_RESOURCE),
        server=client.server,
        seconds=time.monotonic() - began,
    )
