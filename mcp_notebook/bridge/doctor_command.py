"""Tries what a client's settings tell it to start or to connect to, as the client would.

Runs in the process of ``mcp-notebook doctor``, on its event loop. A command is started with an
empty PATH, and is given none of this shell's variables but those that say who the user is; what it
prints is kept for the report. What the settings say is read by the caller.
"""

import shlex
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO
from urllib.parse import urlsplit

import anyio
import httpx2
from anyio import to_thread
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

from mcp_notebook.bridge.transports.port_owner import is_own_port
from mcp_notebook.clients.client import Endpoint, Launch, Server
from mcp_notebook.private_files import read_private
from mcp_notebook.settings import Settings
from mcp_notebook.wording import strip_escapes

_START_SECONDS = 60
"""Seconds to wait for a server; clients wait for ten to sixty."""
_NOTEBOOK_SECONDS = 300
"""Seconds to wait for one that runs notebooks first."""
_MOST_LINES = 10
"""Lines of what a command prints that a report has."""


@dataclass(frozen=True, kw_only=True)
class Diagnosis:
    """What became of one server when it was tried."""

    tools: tuple[str, ...] | None = None
    """The tools that it offers; None if it does not work."""
    problem: str | None = None
    """What is wrong, and what to do, as sentences."""


async def diagnose(settings: Settings, server: Server) -> Diagnosis:
    """Try a server, and return its tools or what is wrong.

    Args:
        settings: Where the token of this machine's bridge is.
        server: What the client starts or connects to.
    """
    if isinstance(server, Endpoint):
        return await _try_endpoint(settings, server)
    return await _try_launch(server)


async def _try_launch(launch: Launch) -> Diagnosis:
    line = shlex.join([launch.command, *launch.arguments])
    seconds = _NOTEBOOK_SECONDS if launch.runs_notebooks else _START_SECONDS
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as output:
        try:
            with anyio.fail_after(seconds):
                return Diagnosis(tools=await _start(launch, output))
        except FileNotFoundError:
            problem = f"There is no program {launch.command}: {_REINSTALL}"
        except OSError as error:
            problem = f"{launch.command} cannot be started ({error.strerror}): {_REINSTALL}"
        except TimeoutError:
            problem = f"It does not answer within {seconds} seconds: {line}"
        except (MCPError, ExceptionGroup) as error:
            problem = f"It does not answer as a server does ({_describe(error)}): {line}"
        output.seek(0)
        return Diagnosis(problem=_add_output(problem, output.read()))


_REINSTALL = (
    "the Python that was there when the client was connected has been moved or removed. Run "
    "`mcp-notebook install CLIENT --replace` from the environment where mcp-notebook is now."
)


async def _start(launch: Launch, output: TextIO) -> tuple[str, ...]:
    server = StdioServerParameters(
        command=launch.command,
        args=list(launch.arguments),
        env={"PATH": "", **launch.env},
        cwd=Path(launch.command).anchor or None,  # clients start commands anywhere
    )
    async with Client(stdio_client(server, errlog=output)) as client:
        return await _list_tools(client)


async def _list_tools(client: Client) -> tuple[str, ...]:
    page = await client.list_tools()
    tools = [tool.name for tool in page.tools]
    while page.next_cursor is not None:
        page = await client.list_tools(cursor=page.next_cursor)
        tools += [tool.name for tool in page.tools]
    return tuple(tools)


async def _try_endpoint(settings: Settings, endpoint: Endpoint) -> Diagnosis:
    url = urlsplit(endpoint.url)
    if url.hostname not in ("127.0.0.1", "localhost", "::1"):
        return Diagnosis(
            problem=f"{endpoint.url} is not on this machine, so it was not tried: the token is not "
            f"sent elsewhere. `mcp-notebook connect {endpoint.url}` tries it."
        )
    step = (
        "Run `%mcp serve` in a notebook, or `mcp-notebook serve` in a shell, and compare the "
        "address that it prints, and the token's place."
    )
    # Another user who listens there must not get the token.
    if not await to_thread.run_sync(is_own_port, url.hostname, url.port or 80):
        return Diagnosis(problem=f"You serve nothing at {endpoint.url}. {step}")
    token = _read_token(settings)
    if token is None:
        return Diagnosis(problem=f"There is no token in {settings.token_place}. {step}")
    try:
        headers = {"Authorization": f"Bearer {token}"}
        with anyio.fail_after(_START_SECONDS):
            async with (
                httpx2.AsyncClient(headers=headers) as http,
                Client(streamable_http_client(endpoint.url, http_client=http)) as client,
            ):
                return Diagnosis(tools=await _list_tools(client))
    except (OSError, TimeoutError, httpx2.HTTPError, MCPError, ExceptionGroup) as error:
        return Diagnosis(problem=f"{endpoint.url} does not work ({_describe(error)}). {step}")


def _read_token(settings: Settings) -> str | None:
    """Return the token that a client would have; unlike a bridge, it makes none."""
    if settings.token:
        return settings.token
    try:
        return read_private(settings.token_path).decode("utf-8", "replace").strip()
    except OSError:
        return None


def _describe(error: BaseException) -> str:
    """Return an error's own words; of a group, those of its first error."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return str(error) or type(error).__name__


def _add_output(problem: str, text: str) -> str:
    """Return a problem with the last lines of what the command printed."""
    lines = strip_escapes(text).strip().splitlines()[-_MOST_LINES:]
    if "No module named mcp_notebook" in text:
        problem = f"mcp-notebook is no longer installed there: {_REINSTALL}"
    return "\n".join([problem, *(f"    {line}" for line in lines)])
