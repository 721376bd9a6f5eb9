"""The entry point for Jupyter Server: adds the routes with their handlers.

Runs in the process of Jupyter Server, once at its start.
"""

import os
from collections.abc import Iterable

from jupyter_server.base.handlers import JupyterHandler
from jupyter_server.serverapp import ServerApp

from mcp_notebook.clients.known_clients import find_client
from mcp_notebook.clients.servers import build_launch
from mcp_notebook.clients.snippets import SERVER_NAME
from mcp_notebook.jupyter.bridge_process import SETTINGS_KEY, BridgeProcess
from mcp_notebook.jupyter.client_handlers import ClientsHandler
from mcp_notebook.jupyter.mcp_handler import McpHandler
from mcp_notebook.jupyter.notebook_links import NotebookLinks
from mcp_notebook.jupyter.notebook_renames import CONTENTS_ACTIONS, NotebookRenames
from mcp_notebook.jupyter.notebook_runs import RUNS_KEY, NotebookHandler, NotebookRuns
from mcp_notebook.jupyter.panel_handlers import (
    LINKS_KEY,
    ActionHandler,
    CallHandler,
    ChangesHandler,
    StateHandler,
    end_with_logout,
)
from mcp_notebook.settings.settings import SERVER_PATH, Settings

ROUTES: tuple[tuple[str, type[JupyterHandler]], ...] = (
    (r"mcp-notebook/api/state", StateHandler),
    (r"mcp-notebook/api/changes", ChangesHandler),
    (r"mcp-notebook/api/actions", ActionHandler),
    (r"mcp-notebook/api/clients", ClientsHandler),
    (r"mcp-notebook/api/notebooks", NotebookHandler),
    (
        r"mcp-notebook/api/calls/([\w-]{1,64})/(\d{1,9})(|/cell|/thumbnail|/pictures/(\d))",
        CallHandler,
    ),
    (r"mcp-notebook/?", McpHandler),
    (r"mcp-notebook/(.+?)/?", McpHandler),
)
"""Path patterns below the server's base URL, without the first slash, and their handlers. A group
in a pattern becomes an argument of the handler's methods."""
_SHARED_ROUTES = ((r"mcp/?", McpHandler), (r"mcp/(.+?)/?", McpHandler))
"""Added last, so that another extension keeps the address if it has it."""


def _load_jupyter_server_extension(app: ServerApp) -> None:
    """Add the routes; Jupyter Server calls this by name."""
    kernels = app.kernel_manager
    settings = Settings.from_environment()
    bridge = BridgeProcess(kernels.list_kernel_ids, settings, app.log)
    app.web_app.settings[SETTINGS_KEY] = bridge
    events = getattr(app, "event_logger", None)
    links = NotebookLinks(kernels, settings.records_folder, app.log)
    app.web_app.settings[LINKS_KEY] = links
    renames = NotebookRenames(kernels, settings.records_folder, app.log)
    if events is not None:
        events.add_listener(schema_id=CONTENTS_ACTIONS, listener=renames.hear)
    end_with_logout(app)
    app.web_app.settings[RUNS_KEY] = NotebookRuns(
        app.contents_manager, kernels, app.session_manager, settings
    )
    os.environ[SERVER_PATH] = app.base_url + "mcp-notebook"  # kernels inherit it
    base = app.base_url.rstrip("/")

    def add_routes(routes: Iterable[tuple[str, type[JupyterHandler]]]) -> None:
        app.web_app.add_handlers(".*$", [(f"{base}/{path}", handler) for path, handler in routes])

    def meet_other_extensions() -> None:
        """Add what depends on other extensions, when all are loaded."""
        add_routes(_SHARED_ROUTES)
        manager = app.web_app.settings.get("mcp_manager")
        if manager is not None:  # that of jupyter-mcp-manager
            client = find_client("jupyter-ai")
            entry = client.make_entry(build_launch(client, settings))
            manager.add_server({"name": SERVER_NAME} | entry)

    add_routes(ROUTES)
    app.io_loop.add_callback(meet_other_extensions)
