"""Finds the notebooks in a folder and the folders below it.

Runs in a worker thread of the bridge or the command; reads no file. Hidden files and folders are
left out, as Jupyter does, and with them its checkpoints; so are environments, whose packages bring
notebooks of their own. Links are not followed: what they lead to is either in the folder anyway, or
was not meant to be served.
"""

import os
import stat
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mcp_notebook.bridge.headless.notebook_code import Look, describe_look
from mcp_notebook.errors import NotebookError

_LEFT_OUT = frozenset({"node_modules", "site-packages", "__pycache__"})
_ENVIRONMENT = "pyvenv.cfg"
"""A folder with this file is a virtual environment..."""
_CONDA = "conda-meta"
"""...and one with this folder is conda's."""


@dataclass(frozen=True)
class NotebookFile:
    """A notebook's file."""

    path: Path
    folder: Path
    """The served folder in which it was found."""
    look: Look


@dataclass
class Findings:
    """What was found in folders."""

    files: dict[Path, NotebookFile] = field(default_factory=dict)
    """The notebooks, in the order of their paths."""
    skipped: dict[Path, str] = field(default_factory=dict)
    """Why other notebooks and folders are left out, as the end of a sentence."""
    unseen: set[Path] = field(default_factory=set)
    """Those of them that could not be looked at: what was there may still be there."""
    entries: int = 0
    """Files and folders that were looked at."""
    known: frozenset[Path] = frozenset()
    """Notebooks that are served already, and keep their places."""
    new: int = 0
    """Notebooks that are not among them."""
    max_notebooks: int = 1_000
    """Notebooks of all folders; further ones are left out."""
    max_depth: int = 10
    """Levels of folders below the one that is served."""
    max_entries: int = 100_000
    """Files and folders that are looked at; a home folder has more."""

    def may_have(self, path: Path) -> bool:
        """Return whether a notebook is there, or may be: it, or a folder above, is unseen."""
        return path in self.files or not self.unseen.isdisjoint((path, *path.parents))


def find_notebooks(
    folders: Sequence[Path], known: Collection[Path] = (), **limits: Any
) -> Findings:
    """Find the notebooks in folders, which are absolute paths.

    Args:
        folders: The folders.
        known: Notebooks that are served already: others do not take their places.
        **limits: Those of `Findings`.

    Raises:
        NotebookError: One of the folders cannot be read.
    """
    found = Findings(known=frozenset(known), **limits)
    for folder in folders:
        try:
            _search(folder, folder, found)
        except OSError as error:
            raise NotebookError(f"The folder {folder} cannot be read: {error.strerror}.") from error
    return found


def _search(folder: Path, root: Path, found: Findings) -> None:
    """Search a folder and those below it.

    Raises:
        OSError: The folder cannot be read.
    """
    with os.scandir(folder) as scan:
        entries = sorted(scan, key=lambda entry: (entry.name.lower(), entry.name))
    if folder != root and any(entry.name in (_ENVIRONMENT, _CONDA) for entry in entries):
        found.skipped[folder] = "it is an environment with installed packages"
        return
    found.entries += len(entries)
    folders = []
    for entry in entries:
        if entry.name.startswith(".") or entry.name in _LEFT_OUT:
            continue
        path = folder / entry.name
        if entry.is_symlink():
            if (reason := _explain_link(path, root)) is not None:
                found.skipped[path] = reason
        elif entry.is_dir():
            folders.append(path)
        elif entry.name.lower().endswith(".ipynb"):
            _take(path, root, found)
    for below in folders:
        _descend(below, root, found)


def _descend(folder: Path, root: Path, found: Findings) -> None:
    if len(folder.relative_to(root).parts) > found.max_depth:
        found.skipped[folder] = f"it is more than {found.max_depth} levels deep"
    elif found.entries > found.max_entries:
        found.skipped[folder] = f"more than {found.max_entries:,} files are not searched"
        found.unseen.add(folder)
    else:
        try:
            _search(folder, root, found)
        except OSError as error:
            found.skipped[folder] = f"it cannot be read: {error.strerror}"
            found.unseen.add(folder)


def _take(path: Path, root: Path, found: Findings) -> None:
    try:
        status = path.lstat()
    except OSError as error:
        found.skipped[path] = f"it cannot be read: {error.strerror}"
        found.unseen.add(path)
        return
    if not stat.S_ISREG(status.st_mode):
        found.skipped[path] = "it is not a regular file"
    elif path not in found.files:  # the folders may overlap
        is_new = path not in found.known
        if is_new and len(found.known) + found.new >= found.max_notebooks:
            found.skipped[path] = f"only {found.max_notebooks:,} notebooks are served"
            return
        found.new += is_new
        found.files[path] = NotebookFile(path, root, describe_look(status))


def _explain_link(path: Path, root: Path) -> str | None:
    """Return why a link is left out; None if that needs no explanation."""
    target = Path(os.path.realpath(path))
    is_notebook = path.suffix.lower() == ".ipynb" or target.is_dir()
    if not is_notebook or target.is_relative_to(os.path.realpath(root)):
        return None
    return "it is a link to a place outside the folder"
