"""What Jupyter Server loads: adds the routes to the server.

Runs in the process of Jupyter Server, once at its start. What the routes do is the business of
their handlers.
"""

import os

from jupyter_server.serverapp import ServerApp

from mcp_notebook.jupyter.bridge_process import SETTINGS_KEY, BridgeProcess
from mcp_notebook.jupyter.routes import list_routes
from mcp_notebook.settings.settings import SERVER_PATH, Settings


def _load_jupyter_server_extension(app: ServerApp) -> None:
    """Add the routes; Jupyter Server calls this by its name."""
    kernels = app.kernel_manager
    bridge = BridgeProcess(kernels.list_kernel_ids, Settings.from_environment(), app.log)
    app.web_app.settings[SETTINGS_KEY] = bridge
    os.environ[SERVER_PATH] = app.base_url + "mcp"  # kernels get the environment of their server
    app.web_app.add_handlers(".*$", list_routes(app.base_url))
