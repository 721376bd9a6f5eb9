"""What Jupyter Server loads: adds the routes to the server, each with its handler.

Runs in the process of Jupyter Server, once at its start.
"""

import os

from jupyter_server.serverapp import ServerApp

from mcp_notebook.jupyter.authorized_handler import AuthorizedHandler
from mcp_notebook.jupyter.bridge_process import SETTINGS_KEY, BridgeProcess
from mcp_notebook.jupyter.mcp_handler import McpHandler
from mcp_notebook.jupyter.stop_handler import StopHandler
from mcp_notebook.settings.settings import SERVER_PATH, Settings

ROUTES: tuple[tuple[str, type[AuthorizedHandler]], ...] = (
    (r"mcp/?", McpHandler),
    (r"mcp/(.+?)/?", McpHandler),
    (r"mcp-notebook/calls/stop", StopHandler),
)
"""Patterns of paths below the server's base URL, without the first slash, and their handlers. A
group in a pattern becomes an argument of the handler's methods."""


def _load_jupyter_server_extension(app: ServerApp) -> None:
    """Add the routes; Jupyter Server calls this by its name."""
    kernels = app.kernel_manager
    bridge = BridgeProcess(kernels.list_kernel_ids, Settings.from_environment(), app.log)
    app.web_app.settings[SETTINGS_KEY] = bridge
    os.environ[SERVER_PATH] = app.base_url + "mcp"  # kernels get the environment of their server
    base = app.base_url.rstrip("/")
    app.web_app.add_handlers(".*$", [(f"{base}/{path}", handler) for path, handler in ROUTES])
