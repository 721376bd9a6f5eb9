"""The private folder of a headless kernel: its sockets, its connection file with the key, its log.

Runs on the bridge's event loop; the work on the disk takes milliseconds. A bridge that is killed
leaves its folders behind, so each folder says which process it belongs to, and the next start of a
kernel removes those whose process has ended.
"""

import logging
import os
import shutil
import socket
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mcp_notebook.discovery import Process, is_alive, read_start_time
from mcp_notebook.private_files import is_own, read_private, write_private

logger = logging.getLogger(__name__)

_PREFIX = "mcpnb-"
_OWNER = "owner.json"
_LONGEST_TMP = 60
"""Characters. Sockets live in the temporary folder, and a socket's path has at most about 100."""


class _Owner(Process):
    """The process that a folder belongs to."""

    host: str
    """Name of its machine: several machines may share a temporary folder."""


@contextmanager
def make_kernel_folder() -> Iterator[Path]:
    """Create a private folder for the block, and remove those of processes that have ended."""
    place = _find_short_folder()
    _remove_leftovers(place)
    with tempfile.TemporaryDirectory(prefix=_PREFIX, dir=place, ignore_cleanup_errors=True) as name:
        started = read_start_time(os.getpid())
        assert started is not None
        owner = _Owner(pid=os.getpid(), started=started, host=socket.gethostname())
        write_private(Path(name) / _OWNER, owner.model_dump_json())
        yield Path(name)


def _find_short_folder() -> Path:
    """Return the folder for sockets: the usual temporary one, unless its path is too long."""
    usual, short = Path(tempfile.gettempdir()), Path("/tmp")  # noqa: S108 - mkdtemp in it is private
    return short if len(str(usual)) > _LONGEST_TMP and short.is_dir() else usual


def _remove_leftovers(place: Path) -> None:
    try:
        folders = [path for path in place.iterdir() if path.name.startswith(_PREFIX)]
    except OSError as error:
        logger.debug("%s cannot be searched for leftovers: %s", place, error)
        return
    for folder in folders:
        try:
            status = folder.lstat()
            if not stat.S_ISDIR(status.st_mode) or not is_own(status):
                continue
            owner = _Owner.model_validate_json(read_private(folder / _OWNER))
            if owner.host == socket.gethostname() and not is_alive(owner):
                shutil.rmtree(folder)
        # Another kind of folder, or another process was quicker.
        except (OSError, ValueError) as error:
            logger.debug("%s is left alone: %s", folder, error)
