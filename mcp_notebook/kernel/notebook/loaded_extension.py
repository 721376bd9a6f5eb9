"""Finds this notebook's extension, an attribute of IPython's shell, and the running cell.

Runs on any thread, also without a notebook.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

from IPython.core.getipython import get_ipython

if TYPE_CHECKING:  # a module with decorated functions must be cheap to import anywhere
    from mcp_notebook.kernel.calls.invoker import Invoker
    from mcp_notebook.kernel.notebook.cell_tools import CellTools
    from mcp_notebook.kernel.results.files.shared_folders import SharedFolders
    from mcp_notebook.kernel.tools.tool_registry import ToolRegistry

EXTENSION = "_mcp_notebook"
"""Attribute of the shell that holds the loaded `kernel.extension.Extension`."""


class LoadedExtension(Protocol):
    """The part of the extension that the decorators, `registry` and `SharedPath` use."""

    registry: "ToolRegistry"
    cell_tools: "CellTools"
    invoker: "Invoker"
    request: Mapping[str, Any]
    """The request for the cell that runs, or ran last."""

    def tell_resource_changed(self, uri: str) -> None:
        """Tell bridges that the author reports a change of a resource."""

    folders: "SharedFolders"


def find_extension() -> LoadedExtension | None:
    """Return the extension of the notebook that this code runs in; None if none is loaded."""
    extension: LoadedExtension | None = getattr(get_ipython(), EXTENSION, None)
    return extension


def find_cell() -> str | None:
    """Return the id of the running cell; None if the frontend did not send one."""
    cell = read_metadata(get_parent(get_ipython())).get("cellId")
    return cell if isinstance(cell, str) else None


def comes_from_jupyter() -> bool:
    """Return whether JupyterLab or Notebook 7 asked for the cell that runs, or ran last."""
    return "deletedCells" in read_metadata(find_request())  # no other frontend sends it


def find_request() -> Mapping[str, Any]:
    """Return the request for the cell that runs, or ran last.

    To IPython, the last request of any kind is the parent, such as one for completions.
    """
    extension = find_extension()
    return get_parent(get_ipython()) if extension is None else extension.request


def get_parent(shell: Any) -> Mapping[str, Any]:
    """Return the request that a shell answers, or answered last; empty if there is none."""
    return (shell.get_parent() if hasattr(shell, "get_parent") else None) or {}


def read_metadata(request: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the metadata of a request."""
    metadata = request.get("metadata")
    return metadata if isinstance(metadata, dict) else {}
