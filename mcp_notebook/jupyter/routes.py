"""The routes of the extension, each with its handler.

Runs in the process of Jupyter Server.
"""

from typing import TypeAlias

from tornado.web import RequestHandler

from mcp_notebook.jupyter.mcp_handler import McpHandler
from mcp_notebook.jupyter.stop_handler import StopHandler

Route: TypeAlias = tuple[str, type[RequestHandler]]
"""A pattern of paths below the server's base URL, without the first slash, and its handler."""

ROUTES: tuple[Route, ...] = (
    (r"mcp/?", McpHandler),
    (r"mcp/(.+?)/?", McpHandler),
    (r"mcp-notebook/calls/stop", StopHandler),
)
"""All routes. A group in a pattern becomes an argument of the handler's methods."""


def list_routes(base_url: str) -> list[Route]:
    """Return the routes as the server's application takes them.

    Args:
        base_url: Of the server; begins and ends with a slash.
    """
    return [(base_url.rstrip("/") + "/" + pattern, handler) for pattern, handler in ROUTES]
