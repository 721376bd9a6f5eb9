"""An assistant outside the browser: the official MCP client, over HTTP."""

import re
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from contextlib import ExitStack
from pathlib import Path
from threading import Event
from typing import Any

import anyio
from anyio.from_thread import start_blocking_portal
from clients import Changes, over_http, text_of
from listing import list_tools
from live import TIMEOUT
from mcp import Client
from mcp_types import Implementation

ERA = "auto"
PROGRAM = Implementation(name="assistant", version="1.0")
"""What it says that it is."""


class Assistant:
    """Connects for each thing that it does, on a thread of its own: Playwright has a loop here.

    Args:
        url: Where the bridge is.
        token: Lets it in.
    """

    def __init__(self, url: str, token: str) -> None:
        self.program = PROGRAM
        self.url = url
        self.token = token
        self._thread = ExitStack()
        self._portal = self._thread.enter_context(start_blocking_portal())

    def call(self, tool: str, **arguments: Any) -> str:
        """Call a tool, and return the text of its result."""
        return self.start_call(tool, **arguments).result(TIMEOUT)

    def start_call(self, tool: str, **arguments: Any) -> Future[str]:
        """Call a tool; its text comes later."""

        async def call(client: Client) -> str:
            return text_of(await client.call_tool(tool, arguments))

        return self._start(call)

    def call_often(self, number: int, tool: str, **arguments: Any) -> None:
        """Call a tool again and again, over one connection."""

        async def call(client: Client) -> None:
            for _ in range(number):
                await client.call_tool(tool, arguments)

        self._start(call).result(TIMEOUT)

    def stay(self) -> None:
        """Connect, and stay connected."""
        is_there = Event()

        async def stay(_client: Client) -> None:
            is_there.set()
            await anyio.sleep_forever()

        self._start(stay)
        assert is_there.wait(TIMEOUT)

    def wait_for_tools(self, *names: str) -> None:
        """Wait until these are the tools that it sees."""
        changes = Changes()

        async def wait(client: Client) -> None:
            async with changes.watch(client, ERA):
                while {tool.name for tool in await list_tools(client)} != set(names):
                    await changes.wait()

        self._start(wait, message_handler=changes.handle).result(TIMEOUT)

    def close(self) -> None:
        """End its thread, and whatever it still does."""
        self._portal.call(self._portal.stop, True)
        self._thread.close()

    def _start(self, act: Callable[[Client], Awaitable[Any]], **options: Any) -> Future[Any]:
        async def connect() -> Any:
            async with over_http(
                self.url, ERA, token=self.token, client_info=self.program, **options
            ) as client:
                return await act(client)

        return self._portal.start_task_soon(connect)


def find_assistant(said: str, home: Path) -> Assistant:
    """Return an assistant that knows what ``%mcp serve`` says."""
    url = re.search(r"http://127\.0\.0\.1:\d+/mcp", said)
    assert url, said
    (token,) = home.joinpath(".mcp-notebook").glob("*token*")
    return Assistant(url[0], token.read_text(encoding="utf-8").strip())
