"""Imports the MCP SDK's server without its client, and without what it only uses if it is there.

Imported before the SDK, in the process of a bridge: half of the time that a bridge takes to start
is the SDK's, and a third of that is the client's. Starlette reads forms with python_multipart, and
no bridge has a form; sse_starlette asks uvicorn whether it was stopped by a signal, which
`bridge.app` handles.
"""

from mcp_notebook.lean_imports import leave_out, postpone_names

for package in ("mcp", "mcp.server"):
    postpone_names(package)
with leave_out("multipart", "python_multipart", "uvicorn"):
    import mcp.server.lowlevel.server  # noqa: F401
