"""Finds the file of this kernel's notebook, also after it was renamed.

Runs on the kernel's main thread, and `NotebookFile.move` on the endpoint's. Jupyter passes the path
only when the kernel starts. When it renames or moves a notebook, its server extension reports the
new path. Without that (other frontends, a shell), a file that is renamed within its folder keeps
its inode, by which the kernel finds it again before the next cell; one that is moved to another
folder keeps its old name here. A restarted kernel gets the original path; the previous kernel left
the new path in a departure note or, if it was killed, in its record.
"""

import json
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from mcp_notebook.discovery.departures import Departure
from mcp_notebook.discovery.records import Record

_MAX_SIZE = 2**24
"""Bytes; a larger file takes too long to read within a cell."""


class NotebookFile:
    """The notebook's file, followed when it is renamed.

    Args:
        namespace: The notebook's variables.
        read_traces: Returns notes and records of this notebook's earlier kernels, latest first.
    """

    def __init__(
        self,
        namespace: Mapping[str, Any],
        read_traces: Callable[[], Iterable[Departure | Record]] = tuple,
    ) -> None:
        self._namespace = namespace
        self.first_path = _find_path(namespace)
        """The path from the frontend; None if it gave none."""
        self.path = self.first_path
        """The current path; None if it is unknown."""
        self._inode = _read_inode(self.path)
        if self.path is not None and self._inode is None:
            self.path = _find_renamed(self.path, read_traces()) or self.path
            self._inode = _read_inode(self.path)

    def follow(self) -> bool:
        """Update the path, and return whether it has changed."""
        before = self.path
        first_path = _find_path(self._namespace)
        if first_path != self.first_path:  # VS Code sets it late, and may change it
            self.path = self.first_path = first_path
            self._inode = None
        inode = _read_inode(self.path)
        if inode is None and self._inode is not None and self.path is not None:
            self.path = _find_inode(self.path.parent, self._inode) or self.path
            inode = _read_inode(self.path)
        self._inode = inode  # without one, the folder is not searched again before every cell
        return self.path != before

    def move(self, path: str) -> bool:
        """Take a path that was reported, and return whether there is such a file here."""
        inode = _read_inode(Path(path))
        if inode is not None:
            self.path, self._inode = Path(path), inode
        return inode is not None

    def read_cells(self) -> list[str]:
        """Return the code cells, as saved; empty if they are not known."""
        return [cell["source"] for cell in self.read_saved() if cell["type"] == "code"]

    def read_saved(self) -> list[dict[str, Any]]:
        """Return the id, type (in nbformat's word) and source of all cells, as saved.

        Empty if they are not known; the id is None in files of nbformat before 4.5.
        """
        try:
            if self.path is None or self.path.stat().st_size > _MAX_SIZE:
                return []
            return [
                {"id": each.get("id"), "type": each["cell_type"], "source": "".join(each["source"])}
                for each in json.loads(self.path.read_bytes())["cells"]
            ]
        except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
            return []

    def describe(self, pid: int) -> dict[str, Any]:
        """Return the fields of a kernel's record that describe its notebook.

        Args:
            pid: The kernel's PID, which names it if the file is unknown.
        """
        path = self.path
        return {
            "notebook": _write_path(path),
            "first_notebook": _write_path(self.first_path),
            "name": path.stem.encode(errors="replace").decode() if path else f"kernel-{pid}",
        }


def _write_path(path: Path | None) -> str | None:
    """Return a path as text for a record; None if it is not UTF-8."""
    try:
        return None if path is None else os.fspath(path).encode().decode()
    except UnicodeEncodeError:
        return None


def _find_path(namespace: Mapping[str, Any]) -> Path | None:
    # VS Code sets the variable; Jupyter Server and our bridge set JPY_SESSION_NAME.
    path = namespace.get("__vsc_ipynb_file__") or os.environ.get("JPY_SESSION_NAME")
    return Path(path) if path and isinstance(path, str) else None


def _find_renamed(first_path: Path, traces: Iterable[Departure | Record]) -> Path | None:
    for trace in traces:
        if trace.first_notebook == str(first_path) and trace.notebook:
            path = Path(trace.notebook)
            return path if _read_inode(path) else None
    return None


def _read_inode(path: Path | None) -> tuple[int, int] | None:
    """Return a file's device and inode, which a rename keeps; None if there is no such file."""
    try:
        status = None if path is None else path.stat()
    except (OSError, ValueError):
        return None
    return status and (status.st_dev, status.st_ino)


def _find_inode(folder: Path, inode: tuple[int, int]) -> Path | None:
    try:
        paths = sorted(folder.glob("*.ipynb"))
    except OSError:
        return None
    return next((path for path in paths if _read_inode(path) == inode), None)
