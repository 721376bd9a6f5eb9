"""mcp-notebook and FastMCP with the functions of the evals, over stdio, with the same client."""

import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
from call_repair import Reply
from forked_command import list_words
from mcp import Client, StdioServerParameters
from mcp_types import Implementation
from pool_functions import FUNCTIONS

HERE = Path(__file__).parent
CELL = f"""
import sys
sys.path.insert(0, {str(HERE)!r})
from pool_functions import FUNCTIONS, echo
from mcp_notebook import mcp_tool
for function in FUNCTIONS:
    mcp_tool(echo(function))
"""
NAMES = frozenset(function.__name__ for function in FUNCTIONS)
_INFO = Implementation(name="evals", version="1")


@dataclass(frozen=True)
class EvalServer:
    """A server with the functions of the evals."""

    name: str
    listing: Client
    """Gets all tools."""
    searching: Client
    """Gets the tool that searches."""
    search_tool: str
    found: re.Pattern[str]
    """The names of tools in an answer of the search."""

    async def list_entries(self) -> list[dict[str, Any]]:
        """Return the functions' entries as clients get them."""
        listed = await self.listing.list_tools()
        return [
            tool.model_dump(mode="json", by_alias=True, exclude_none=True)
            for tool in listed.tools
            if tool.name in NAMES
        ]

    async def call(self, tool: str, arguments: dict[str, Any]) -> Reply:
        """Call a function."""
        answer = await self.listing.call_tool(tool, arguments)
        text = "\n".join(block.text for block in answer.content if block.type == "text")
        return Reply(text, None if answer.is_error else json.loads(text))

    async def find(self, query: str) -> list[str]:
        """Return the names of the functions that the server's search finds, the best first."""
        answer = await self.searching.call_tool(self.search_tool, {"query": query})
        return self.found.findall("\n".join(block.text for block in answer.content))


@asynccontextmanager
async def serve_notebook(folder: Path) -> AsyncIterator[EvalServer]:
    """Serve a notebook with the functions, which is written into a folder."""
    cells = [nbformat.v4.new_code_cell(each) for each in ("%load_ext mcp_notebook", CELL.strip())]
    path = folder / "pool.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=cells), path)
    words, env = list_words("stdio", str(path)), {"HOME": str(folder)}
    found = re.compile(r"^(\w+) \(notebook ", re.MULTILINE)
    async with (
        _connect(words, env) as client,
        _connect([*words, "--meta-tools=only"], env) as searching,
    ):
        name = min(NAMES)
        await client.call_tool(name, {})  # waits until the cells have run: what is listed is theirs
        await searching.call_tool("call_notebook_tool", {"name": name})
        yield EvalServer("mcp-notebook", client, searching, "search_notebook_tools", found)


@asynccontextmanager
async def serve_fastmcp(python: str) -> AsyncIterator[EvalServer]:
    """Serve the functions with FastMCP, which is installed for another Python."""
    words = [python, str(HERE / "fastmcp_pool.py")]
    found = re.compile(r'\{"name":"(\w+)"')
    async with _connect(words, {}) as client, _connect([*words, "search"], {}) as searching:
        yield EvalServer("FastMCP", client, searching, "search_tools", found)


@asynccontextmanager
async def _connect(words: list[str], env: dict[str, str]) -> AsyncIterator[Client]:
    program, *arguments = words
    server = StdioServerParameters(command=program, args=arguments, env=env)
    async with Client(server, client_info=_INFO) as client:
        yield client
