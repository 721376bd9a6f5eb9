"""The private folder of a headless kernel: its sockets, its connection file with the key, its log.

Runs on the bridge's event loop; its disk access takes milliseconds. A bridge that is killed leaves
its folders behind, so each folder names the process that owns it, and the next start of a kernel
removes the folders of processes that have ended.
"""

import json
import logging
import os
import shutil
import socket
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mcp_notebook.settings.private_files import is_own, read_private, write_private

logger = logging.getLogger(__name__)

_PREFIX = "mcpnb-"
"""Prefix of the folders' names."""
_LONGEST_TMP = 60
"""Characters. Sockets live in the temporary folder, and a socket's path has at most about 100."""
_OWNER = "owner.json"


@contextmanager
def make_kernel_folder() -> Iterator[Path]:
    """Create a private folder for the block."""
    place = _find_short_folder()
    with tempfile.TemporaryDirectory(prefix=_PREFIX, dir=place, ignore_cleanup_errors=True) as name:
        yield Path(name)


def _find_short_folder() -> Path:
    """Return the folder for sockets: the usual temporary one, unless its path is too long."""
    usual, short = Path(tempfile.gettempdir()), Path("/tmp")  # noqa: S108 - mkdtemp in it is private
    return short if len(str(usual)) > _LONGEST_TMP and short.is_dir() else usual


def claim_folder(folder: Path) -> None:
    """Mark a folder as owned by this process, and remove those of processes that have ended.

    Called while the kernel starts, because the imports take a fifth of the bridge's loading time.
    """
    from mcp_notebook.discovery.records import read_start_time  # noqa: PLC0415 - see above

    # Several machines may share a temporary folder.
    started = read_start_time(os.getpid())
    owner = {"pid": os.getpid(), "started": started, "host": socket.gethostname()}
    write_private(folder / _OWNER, json.dumps(owner))
    _remove_leftovers(folder.parent)


def _remove_leftovers(place: Path) -> None:
    try:
        folders = [path for path in place.iterdir() if path.name.startswith(_PREFIX)]
    except OSError as error:
        logger.debug("%s cannot be searched for leftovers: %s", place, error)
        return
    for folder in folders:
        try:
            if _is_left_over(folder):
                shutil.rmtree(folder)
        # Another kind of folder, or another process has removed it.
        except (KeyError, OSError, TypeError, ValueError) as error:
            logger.debug("%s is left alone: %s", folder, error)


def _is_left_over(folder: Path) -> bool:
    """Return whether the process that owns a folder has ended."""
    from mcp_notebook.discovery.records import Process, is_alive  # noqa: PLC0415 - see above

    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or not is_own(status):
        return False
    owner = json.loads(read_private(folder / _OWNER))
    process = Process(pid=owner["pid"], started=owner["started"])
    return bool(owner["host"] == socket.gethostname()) and not is_alive(process)
