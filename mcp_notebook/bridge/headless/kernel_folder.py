"""The private folder of a headless kernel: its sockets, its connection file with the key, its log.

Runs on the bridge's event loop; the work on the disk takes milliseconds. Loads nothing, because the
kernel cannot start before; whose the folder is, is the business of `folder_owner`.
"""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PREFIX = "mcpnb-"
"""What the names of these folders begin with."""
_LONGEST_TMP = 60
"""Characters. Sockets live in the temporary folder, and a socket's path has at most about 100."""


@contextmanager
def make_kernel_folder() -> Iterator[Path]:
    """Create a private folder for the block."""
    place = _find_short_folder()
    with tempfile.TemporaryDirectory(prefix=PREFIX, dir=place, ignore_cleanup_errors=True) as name:
        yield Path(name)


def _find_short_folder() -> Path:
    """Return the folder for sockets: the usual temporary one, unless its path is too long."""
    usual, short = Path(tempfile.gettempdir()), Path("/tmp")  # noqa: S108 - mkdtemp in it is private
    return short if len(str(usual)) > _LONGEST_TMP and short.is_dir() else usual
