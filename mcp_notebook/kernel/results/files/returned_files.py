"""Shows the files whose paths tools return.

Runs in the user's kernel, on the thread of the call; a file behind a link is read on a thread of
the resource store. `shared_folders` decides which files may be shown and opens them; their
content is left to `file_contents`.
"""

import os
from functools import partial
from pathlib import Path, PurePath
from typing import Any

from mcp_notebook.content import Text
from mcp_notebook.kernel.results.blocks.budget import Budget
from mcp_notebook.kernel.results.blocks.embedded import BINARY
from mcp_notebook.kernel.results.blocks.originals import FileFormat, Original
from mcp_notebook.kernel.results.blocks.piece import Piece
from mcp_notebook.kernel.results.files.file_contents import find_mime_type, render_file
from mcp_notebook.kernel.results.files.shared_folders import (
    NoSuchFile,
    OpenPath,
    SharedFolders,
    Unreadable,
)
from mcp_notebook.kernel.safe.text import clean_text
from mcp_notebook.text.wording import format_size

MAX_FILES = 8
"""Maximum paths in a list or dict whose files are shown; more are listed as text."""
_FOLDER = (
    "[{} is a folder. The tool's author can return the names in it, "
    "`[path.name for path in folder.iterdir()]`, or one file.]"
)


def is_path(value: Any) -> bool:
    """Return whether a value is a path of this system; strings are not."""
    if isinstance(value, PurePath):
        return isinstance(value, Path)
    return isinstance(value, os.PathLike)


def render_path(path: Any, folders: SharedFolders, budget: Budget) -> list[Piece]:
    """Render the content of a file, or a sentence on why it is not shown.

    Args:
        path: A value for which `is_path` is true.
        folders: The folders and what may be opened in them.
        budget: The limits of the result.
    """

    def render(opened: OpenPath) -> list[Piece]:
        if opened.is_folder:
            return [Piece(Text(_FOLDER.format(opened.name)))]
        with opened.open() as file:
            return render_file(file, opened, budget, partial(_describe_original, folders, opened))

    try:
        return folders.read(path, render)
    except Unreadable as error:
        is_refusal = not isinstance(error, NoSuchFile)
        return [Piece(Text(f"[{error}]"), is_refusal=is_refusal)]


def _describe_original(folders: SharedFolders, linked: OpenPath, encoding: str | None) -> Original:
    """Describe a whole file, to be read on demand; with an encoding, as text."""

    def read(opened: OpenPath) -> str | bytes:
        if opened.is_folder:
            raise Unreadable(f"{linked.name} is not shared: it is a folder now.")
        if opened.identity != linked.identity:
            raise Unreadable(
                f"The file {linked.name} has changed since it was linked: call the tool again."
            )
        with opened.open() as file:
            data = file.read(linked.size)
        return data.decode(encoding, "replace") if encoding else data

    path = linked.path
    mime_type = find_mime_type(path) or ("text/plain" if encoding else BINARY)
    title = f"The file {linked.name} ({mime_type}, {format_size(linked.size)})"
    content = partial(folders.read, path, read, linked.name)
    file_format = FileFormat(clean_text(path.suffix), mime_type, content, linked.size)
    return Original(clean_text(path.stem) or "file", title, (file_format,), cost=0)
