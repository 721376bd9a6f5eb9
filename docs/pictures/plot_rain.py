"""What an assistant gets from the README's cells: its plot.

The cells run in a kernel, and an MCP client connected to `mcp-notebook stdio` makes the call.
"""

import asyncio
import os
import re
import sys
import tempfile
from base64 import b64decode
from pathlib import Path

from mcp import Client, StdioServerParameters
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook

ROOT = Path(__file__).parents[2]
TOOL, ARGUMENTS = "plot_rain", {"year": 2015}


def plot_rain() -> bytes:
    """Run the README's cells, call their tool as a client, and return the picture that it gets."""
    with tempfile.TemporaryDirectory() as home:  # hidden from the user's own clients
        return asyncio.run(_plot(read_cells(), home))


def read_cells(page: Path = ROOT / "README.md") -> list[str]:
    """Return the cells that a page shows, by default the README."""
    text = page.read_text(encoding="utf-8")
    return re.findall(r"^```python\n(.*?)\n```$", text, re.MULTILINE | re.DOTALL)


async def _plot(cells: list[str], home: str) -> bytes:
    env = os.environ | {"MCP_NOTEBOOK_HOME": home}
    notebook = new_notebook(cells=[new_code_cell(source) for source in cells])
    client = NotebookClient(notebook, kernel_name="python3", timeout=120)
    async with client.async_setup_kernel(env=env):
        for index, cell in enumerate(notebook.cells):
            await client.async_execute_cell(cell, index)
        server = StdioServerParameters(
            command=sys.executable, args=["-m", "mcp_notebook", "stdio"], env=env
        )
        async with Client(server) as assistant:
            result = await assistant.call_tool(TOOL, ARGUMENTS)
    (block,) = [each for each in result.content if each.type == "image"]
    return b64decode(block.data)
