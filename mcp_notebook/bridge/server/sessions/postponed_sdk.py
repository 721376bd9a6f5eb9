"""Postpones the import of the MCP SDK until a bridge first needs it.

Imported before the SDK, in the process of a bridge. Most stdio bridges never need it: handshake,
lists and calls of tools are answered without (`transports.fast_path`), and the SDK is more than
half of what a bridge imports. After this, ``import mcp_types as types`` costs nothing until one of
its names is used, and `mcp_types.jsonrpc` is loaded without the rest. Our modules import the SDK's
other modules within functions.
"""

from mcp_notebook.lean_imports import postpone_names

for package in ("mcp", "mcp.server", "mcp_types", "mcp_types.jsonrpc"):
    postpone_names(package)
