"""What a client lists, without the tool that each bridge adds."""

from typing import Any

from mcp import Client
from mcp_types import CallToolResult, Implementation, Tool

from mcp_notebook.text.missing_tools import READ_RESOURCE

KNOWN = Implementation(name="claude-code", version="2.1.330")
"""A client that is known to take every kind of content block."""


async def list_tools(client: Client, **options: Any) -> list[Tool]:
    """Return the notebooks' tools, and those of `--meta-tools`."""
    tools = (await client.list_tools(**options)).tools
    return [tool for tool in tools if tool.name != READ_RESOURCE]


def is_unknown(result: CallToolResult) -> bool:
    """Tell whether a call was answered with the sentence for a tool that does not exist."""
    return result.is_error and result.content[0].text.startswith("Unknown tool: ")
