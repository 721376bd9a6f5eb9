"""The notebook behind ``--package``: two cells that offer the tools of an installed package.

Runs in the process of the command, before the bridge starts. The notebook is a private file of the
user's, so that its kernel is started, watched and restarted like that of any other notebook. What a
package is, and whether there is one of that name, is left to the kernel, whose environment it is.
"""

import hashlib
import json
import re
from collections.abc import Iterable
from pathlib import Path

from mcp_notebook.errors import NotebookError
from mcp_notebook.settings.private_files import write_private
from mcp_notebook.settings.settings import Settings

_LOAD = "%load_ext mcp_notebook"
_NAME = re.compile(r"\w[\w.-]*")


def write_package_notebooks(names: Iterable[str], settings: Settings) -> list[Path]:
    """Write a notebook for each package, and return their paths.

    Args:
        names: The names of the packages' entry points.
        settings: Where the files are.

    Raises:
        NotebookError: A name is not that of an entry point, or its file cannot be written.
    """
    return [_write(name, settings) for name in dict.fromkeys(names)]


def _write(name: str, settings: Settings) -> Path:
    if not _NAME.fullmatch(name):
        raise NotebookError(
            f"--package takes the name of an entry point, such as acme, not {name!r}."
        )
    here = str(Path.cwd())
    # The kernel starts in the notebook's folder, where tools should neither read nor write.
    cells = [f"import os\nos.chdir({here!a})", _LOAD, f"%mcp_tool --package {name}"]
    # A file for each folder: another process may serve the package elsewhere.
    digest = hashlib.sha256(here.encode("utf-8", "surrogateescape")).hexdigest()
    path = settings.packages_folder / digest[:16] / f"{name}.ipynb"
    try:
        write_private(path, json.dumps(_make_document(cells)))
    except OSError as error:
        raise NotebookError(f"{path} cannot be written: {error.strerror}.") from None
    return path


def _make_document(sources: list[str]) -> dict[str, object]:
    cells: list[dict[str, object]] = [
        {
            "cell_type": "code",
            "id": f"cell-{number}",
            "source": source,
            "metadata": {},
            "execution_count": None,
            "outputs": [],
        }
        for number, source in enumerate(sources)
    ]
    return {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells}
