"""Which file the notebook of this kernel is, also after it was renamed.

Runs on the kernel's main thread. Jupyter tells a kernel the path once, when it starts; a file that
is renamed within its folder keeps its inode, so that the kernel finds it there under its new name.
A notebook that is moved to another folder keeps the name that it had.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any


class NotebookFile:
    """The notebook's file, followed when it is renamed.

    Args:
        namespace: The notebook's variables.
    """

    def __init__(self, namespace: Mapping[str, Any]) -> None:
        self._namespace = namespace
        self._first_path = _find_path(namespace)
        self._inode = _read_inode(self._first_path)
        self.path = self._first_path
        """Where it is now; None if the kernel cannot know it."""

    def follow(self) -> bool:
        """Look where the file is now, and return whether its path has changed."""
        before = self.path
        first_path = _find_path(self._namespace)
        if first_path != self._first_path:  # VS Code says so later, and again
            self.path = self._first_path = first_path
            self._inode = None
        inode = _read_inode(self.path)
        if inode is None and self._inode is not None and self.path is not None:
            self.path = _find_inode(self.path.parent, self._inode) or self.path
            inode = _read_inode(self.path)
        self._inode = inode  # without one, the folder is not searched again before every cell
        return self.path != before


def _find_path(namespace: Mapping[str, Any]) -> Path | None:
    # VS Code sets the variable; Jupyter Server and our bridge set JPY_SESSION_NAME.
    path = namespace.get("__vsc_ipynb_file__") or os.environ.get("JPY_SESSION_NAME")
    return Path(path) if isinstance(path, str) else None


def _read_inode(path: Path | None) -> tuple[int, int] | None:
    """Return what a file keeps when it is renamed; None if there is no such file."""
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
