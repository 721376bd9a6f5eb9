"""Imports the MCP SDK's server without its client, and without optional packages.

Imported before anything else of the SDK. The client is a third of the SDK's import. Starlette reads
forms with python_multipart, but a bridge has no forms; sse_starlette asks uvicorn whether a signal
has stopped it, but `bridge.app` handles signals.
"""

from mcp_notebook.bridge.server.sessions import postponed_sdk  # noqa: F401
from mcp_notebook.lean_imports import leave_out

with leave_out("multipart", "python_multipart", "uvicorn"):
    import mcp.server.lowlevel.server  # noqa: F401
