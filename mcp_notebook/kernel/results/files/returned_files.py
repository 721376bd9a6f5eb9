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
from mcp_notebook.kernel.results.files.file_contents import FileInfo, render_file
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


class Files:
    """Renders the files in shared folders; it never changes.

    Args:
        folders: The folders and what may be opened in them.
    """

    def __init__(self, folders: SharedFolders) -> None:
        self._folders = folders

    def render(self, path: Any, budget: Budget) -> list[Piece]:
        """Render the content of a file, or a sentence on why it is not shown.

        Args:
            path: A value for which `is_path` is true.
            budget: The limits of the result.
        """

        def render(opened: OpenPath) -> list[Piece]:
            if opened.is_folder:
                return [Piece(Text(_FOLDER.format(opened.name)))]
            return self._render_file(opened, budget)

        try:
            return self._folders.read(path, render)
        except Unreadable as error:
            is_refusal = not isinstance(error, NoSuchFile)
            return [Piece(Text(f"[{error}]"), is_refusal=is_refusal)]

    def _render_file(self, opened: OpenPath, budget: Budget) -> list[Piece]:
        info = _describe(opened)
        assert opened.descriptor is not None
        with os.fdopen(opened.descriptor, "rb", closefd=False) as file:
            return render_file(file, info, budget, partial(self._describe_original, info))

    def _describe_original(self, info: FileInfo, encoding: str | None) -> Original:
        """Describe a whole file, to be read on demand; with an encoding, as text."""

        def read(opened: OpenPath) -> str | bytes:
            if opened.is_folder:
                raise Unreadable(f"{info.name} is not shared: it is a folder now.")
            if _describe(opened).identity != info.identity:
                raise Unreadable(
                    f"The file {info.name} has changed since it was linked: call the tool again."
                )
            assert opened.descriptor is not None
            with os.fdopen(opened.descriptor, "rb", closefd=False) as file:
                data = file.read(info.size)
            return data.decode(encoding, "replace") if encoding else data

        mime_type = info.mime_type or ("text/plain" if encoding else BINARY)
        stem = clean_text(info.path.stem) or "file"
        title = f"The file {info.name} ({mime_type}, {format_size(info.size)})"
        content = partial(self._folders.read, info.path, read, info.name)
        file_format = FileFormat(clean_text(info.path.suffix), mime_type, content, info.size)
        return Original(stem, title, (file_format,), cost=0)


def _describe(opened: OpenPath) -> FileInfo:
    status = opened.status
    identity = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)
    return FileInfo(opened.name, opened.path, status.st_size, identity)
