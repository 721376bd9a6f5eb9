"""The server's description of itself: its program, its capabilities, its instructions.

Runs on the bridge's event loop; pure.
"""

from typing import Any

from mcp_notebook._version import __version__
from mcp_notebook.bridge.server.resources.skills import SKILL_SETTINGS
from mcp_notebook.bridge.server.sessions.client_profile import (
    SKILLS_EXTENSION,
    TASKS_EXTENSION,
    VIEW_EXTENSION,
)
from mcp_notebook.protocol.versions import MODERN_VERSIONS, SERVER_NAME

SERVER_INFO = {"name": SERVER_NAME, "title": "Notebooks", "version": __version__}
"""The server's ``serverInfo``."""
ABOUT = (
    "The tools of the user's live Jupyter notebooks: each runs in the notebook's kernel and sees "
    "its variables as they are now. A call may wait while the user runs a cell. Tools come and go "
    "with the notebooks; list them again if one is missing."
)
PROPOSALS = (
    "With `propose_cell`, you propose cells to the person at the notebook, who decides about each. "
    "A cell with a tool (kind `tool`) looks like this:\n\n"
    "%%mcp_tool\n"
    "def rain(city: str) -> float:\n"
    '    """Rain in a city (a name in `weather.city`) in a year, in mm."""\n'
    "    return weather[weather.city == city].rain.sum()"
)
"""Added to `ABOUT` for callers that may propose cells, while one notebook lets them."""


def list_capabilities(
    protocol_version: str | None = None, *, hears_of_changes: bool = True
) -> dict[str, Any]:
    """Return the capabilities that the server declares, in MCP's form.

    Args:
        protocol_version: The client's; None: a version of the handshake era.
        hears_of_changes: Whether the client is notified of changes of lists.
    """
    lists = {"listChanged": hears_of_changes}
    resources = {**lists, "subscribe": True}
    capabilities: dict[str, Any] = {"logging": {}, "prompts": lists, "resources": resources}
    capabilities |= {"tools": lists, "completions": {}}
    if protocol_version in MODERN_VERSIONS:
        capabilities["extensions"] = {
            SKILLS_EXTENSION: SKILL_SETTINGS,
            TASKS_EXTENSION: {},
            VIEW_EXTENSION: {},
        }
    return capabilities
