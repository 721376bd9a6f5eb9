"""Names the notebooks of folders, each by its path alone.

Runs in a worker thread of the bridge or the command; pure. Permissions are given to names
(``sales.*``), so no name may depend on which other notebooks there are: in the catalogue, the
second of two with the same name would be ``sales-2``, and after a restart perhaps the first. So two
paths practically never have the same name:

1. A notebook is called as its path below the folder, with ``--`` for each slash: ``a--sales``.
2. If several folders are served, its name begins with that of the folder.
3. If the catalogue would change such a name, or another path could have it, or a notebook that is
   served beside the folders has it, it is cut to the characters that the catalogue allows, to the
   end of the path, and ends in a hash of the path.
"""

import hashlib
import os
import re
from collections.abc import Collection, Sequence
from pathlib import Path

from mcp_notebook.bridge.kernels.catalog import MAX_NOTEBOOK, make_label

SEPARATOR = "--"
"""Stands for a slash."""
_HASH = 10
"""Characters of a hash."""
_SUFFIX = ".ipynb"
_PLAIN = re.compile(r"[A-Za-z0-9_]+(-[A-Za-z0-9_]+)*")
"""A file or folder whose name has no `SEPARATOR`, and adds none at its ends."""
_HASHED = re.compile(rf".*-[0-9a-f]{{{_HASH}}}")


def make_name(
    path: Path, folder: Path, folders: Sequence[Path], taken: Collection[str] = ()
) -> str:
    """Return the name of a notebook in a folder.

    Args:
        path: The notebook's absolute path.
        folder: The folder, which is one of those that are served.
        folders: All folders that are served, as absolute paths.
        taken: The names of notebooks that are served beside the folders.
    """
    below = path.relative_to(folder if len(folders) == 1 else folder.parent)
    parts = below.with_suffix("").parts
    name = SEPARATOR.join(parts)
    is_unique = [other.name for other in folders].count(folder.name) == 1
    if (
        is_unique
        and path.suffix == _SUFFIX
        and all(map(_PLAIN.fullmatch, parts))
        and not _HASHED.fullmatch(name)
        and name == make_label(name)[:MAX_NOTEBOOK]
        and name not in taken
    ):
        return name
    place = os.fsencode((below if is_unique else path).as_posix())
    return f"{_cut(parts)}-{hashlib.sha256(place).hexdigest()[:_HASH]}"


def _cut(parts: Sequence[str]) -> str:
    """Return the last parts of a path, as many as there is room for, or the first words of one."""
    room = MAX_NOTEBOOK - 1 - _HASH
    labels = (make_label(SEPARATOR.join(parts[start:])) for start in range(len(parts)))
    names = [re.sub("_[_-]*_", "_", label) for label in labels]
    short = names[-1][:room]
    if names[-1][room : room + 1].isalnum():  # a word is cut
        short = short.rpartition("_")[0] or short
    return next((name for name in names if len(name) <= room), short)
