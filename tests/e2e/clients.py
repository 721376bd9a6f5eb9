"""The official MCP client against a real bridge, in every era and over every transport."""

import re
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import anyio
import httpx2
from forked_command import list_words
from listing import KNOWN
from live import TIMEOUT, kernel_env
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult, ImageContent, TextContent

COMMAND = [sys.executable, "-m", "mcp_notebook"]
TOKEN = "token-of-the-tests-0123456789abcdef"
ERAS = ("legacy", "auto")  # "auto" finds 2026-07-28
TRANSPORTS = ("stdio", "http")


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
        async with Client(server, mode=era, **{"client_info": KNOWN} | options) as client:
            yield client
        return
    with http_bridge(home, *arguments) as served:
        async with over_http(served.url, era, **options) as client:
            yield client


@asynccontextmanager
async def over_http(
    url: str, era: str, *, token: str = TOKEN, **options: object
) -> AsyncIterator[Client]:
    """Connect the official client to an HTTP bridge that runs, as `connected` does."""
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx2.AsyncClient(headers=headers, timeout=60) as http:
        server = streamable_http_client(url, http_client=http)
        async with Client(server, mode=era, **{"client_info": KNOWN} | options) as client:
            yield client


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
