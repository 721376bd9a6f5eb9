"""Probes of servers: lists tools over MCP, and sends simple HTTP requests, all with a timeout.

Runs on the command's event loop. The door to the MCP SDK's client and to httpx2 in this room. The
callers interpret the answers.
"""

import logging
import os
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import anyio
import httpx2
from mcp import Client, MCPError, StdioServerParameters
from mcp.client import Transport
from mcp.client.stdio import stdio_client
from mcp_types import Implementation
from pydantic import ValidationError

from mcp_notebook._version import __version__
from mcp_notebook.outgoing_http import open_http_client
from mcp_notebook.text.missing_tools import READ_RESOURCE

BARE_PATH = os.environ.get("PATH", "") if sys.platform == "win32" else os.defpath
"""The PATH of a program that was not started from a shell."""
_HTTP_LIMIT = 10.0
"""Seconds for a simple HTTP request."""


@dataclass(frozen=True, kw_only=True)
class Answer:
    """A server's answer to `tools/list`, or its failure."""

    tools: tuple[str, ...] = ()
    version: str | None = None
    """The version of mcp-notebook that the server reports; None for other servers."""
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
    parameters = StdioServerParameters(
        command=words[0], args=list(words[1:]), env={"PATH": BARE_PATH, **env}, cwd=folder
    )
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as log:
        answer = await _ask(stdio_client(parameters, errlog=log), limit)
        log.seek(0)
        lines = [line.rstrip() for line in log if line.strip()]
    return Answer(**{**vars(answer), "lines": lines})


async def ask_status(method: str, url: str, headers: Mapping[str, str] | None = None) -> int | None:
    """Return the status of the answer to a request without content; None without an answer."""
    async with open_http_client(timeout=_HTTP_LIMIT, headers=headers or {}) as http:
        try:
            async with http.stream(method, url) as response:
                return response.status_code
        except (httpx2.TransportError, httpx2.InvalidURL):
            return None


async def _ask(transport: Transport, limit: float) -> Answer:
    began = time.monotonic()
    sdk = logging.getLogger("mcp.client")
    level = sdk.level
    try:
        # It logs a traceback for each line that is not a message.
        sdk.setLevel(logging.CRITICAL)
        with anyio.fail_after(limit):
            return await _list_tools(transport, began)
    except TimeoutError:
        return Answer(is_late=True, error="It did not answer.", seconds=time.monotonic() - began)
    except (MCPError, OSError, ValueError, httpx2.HTTPError) as error:
        return Answer(error=str(error), seconds=time.monotonic() - began)
    except ExceptionGroup as group:
        expected, others = group.split((MCPError, OSError, ValidationError, httpx2.HTTPError))
        if expected is None or others is not None:
            raise
        return Answer(error=_find_reason(expected), seconds=time.monotonic() - began)
    finally:
        sdk.setLevel(level)


async def _list_tools(transport: Transport, began: float) -> Answer:
    """Return the answers to ``initialize`` and ``tools/list``."""
    info = Implementation(name="mcp-notebook-doctor", version=__version__)
    async with Client(transport, mode="legacy", client_info=info) as client:
        page = await client.list_tools()
        tools = [tool.name for tool in page.tools]
        while page.next_cursor is not None:
            page = await client.list_tools(cursor=page.next_cursor)
            tools += [tool.name for tool in page.tools]
        server = client.server_info
        return Answer(
            tools=tuple(name for name in tools if name != READ_RESOURCE),
            version=server.version
            if server is not None and server.name == "mcp-notebook"
            else None,
            seconds=time.monotonic() - began,
        )


def _find_reason(group: BaseExceptionGroup[Exception]) -> str:
    """Return the message of the first error in a group."""
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return str(error) or type(error).__name__
