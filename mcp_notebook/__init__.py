"""A Jupyter notebook whose cells are tools for an AI assistant.

Run ``%load_ext mcp_notebook`` and a ``%%mcp_tool`` cell with a function, and any MCP client can
call that function in the live kernel. Importing this package loads neither IPython nor mcp: public
names are loaded when they are first used.
"""

import gc
import importlib
import sys
from typing import TYPE_CHECKING, Any

from mcp_notebook._version import __version__

if TYPE_CHECKING:
    from mcp_notebook.content import Audio, Image, Message, Resource, ResourceLink, Result, Text
    from mcp_notebook.errors import CannotElicit, ToolError
    from mcp_notebook.kernel.extension import load_ipython_extension, unload_ipython_extension
    from mcp_notebook.kernel.notebook.decorators import (
        mcp_prompt,
        mcp_resource,
        mcp_skill,
        mcp_tool,
        mcp_tools,
    )
    from mcp_notebook.kernel.notebook.registry import Tool, registry, resource_changed
    from mcp_notebook.kernel.notebook.shared_path import SharedPath
    from mcp_notebook.kernel.schemas.parameters.markers import Header, Hidden
    from mcp_notebook.kernel.schemas.public_url import PublicUrl
    from mcp_notebook.kernel.schemas.secrets import Secret
    from mcp_notebook.kernel.schemas.tables.columns import Columns
    from mcp_notebook.kernel.tools.context import Context
    from mcp_notebook.kernel.tools.icons import Icon

__all__ = [
    "Audio",
    "CannotElicit",
    "Columns",
    "Context",
    "Header",
    "Hidden",
    "Icon",
    "Image",
    "Message",
    "PublicUrl",
    "Resource",
    "ResourceLink",
    "Result",
    "Secret",
    "SharedPath",
    "Text",
    "Tool",
    "ToolError",
    "__version__",
    "load_ipython_extension",
    "mcp_prompt",
    "mcp_resource",
    "mcp_skill",
    "mcp_tool",
    "mcp_tools",
    "registry",
    "resource_changed",
    "unload_ipython_extension",
]

_HOMES = {
    "content": ("Audio", "Image", "Message", "Resource", "ResourceLink", "Result", "Text"),
    "errors": ("CannotElicit", "ToolError"),
    "kernel.tools.context": ("Context",),
    "kernel.extension": ("load_ipython_extension", "unload_ipython_extension"),
    "kernel.notebook.decorators": (
        *("mcp_prompt", "mcp_resource", "mcp_skill", "mcp_tool", "mcp_tools"),
    ),
    "kernel.tools.icons": ("Icon",),
    "kernel.schemas.tables.columns": ("Columns",),
    "kernel.schemas.parameters.markers": ("Header", "Hidden"),
    "kernel.schemas.public_url": ("PublicUrl",),
    "kernel.schemas.secrets": ("Secret",),
    "kernel.notebook.registry": ("Tool", "registry", "resource_changed"),
    "kernel.notebook.shared_path": ("SharedPath",),
}


def __getattr__(name: str) -> Any:
    home = next((module for module, names in _HOMES.items() if name in names), None)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    path = f"{__name__}.{home}"
    if name != "load_ipython_extension" or path in sys.modules or not gc.isenabled():
        return getattr(importlib.import_module(path), name)
    # Only for the import by %load_ext: threads that did this at once could leave it disabled.
    gc.disable()  # collections would take a tenth of the time, and find nothing
    try:
        return getattr(importlib.import_module(path), name)
    finally:
        gc.enable()


def __dir__() -> list[str]:
    return sorted(__all__)


def _jupyter_server_extension_points() -> list[dict[str, str]]:
    """Return the module of the Jupyter Server extension; Jupyter Server calls this by name."""
    return [{"module": f"{__name__}.jupyter.extension"}]
