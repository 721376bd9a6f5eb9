"""Whose the folders of headless kernels are, and the removal of those whose bridge was killed.

Runs on the bridge's event loop; the work on the disk takes milliseconds. A bridge that is killed
leaves its folders behind, so each folder says which process it belongs to, and the next start of a
kernel removes those whose process has ended.
"""

import logging
import os
import shutil
import socket
import stat
from pathlib import Path

from mcp_notebook.bridge.headless.kernel_folder import PREFIX
from mcp_notebook.discovery.records import Process, is_alive, read_start_time
from mcp_notebook.private_files import is_own, read_private, write_private

logger = logging.getLogger(__name__)

_OWNER = "owner.json"


class _Owner(Process):
    """The process that a folder belongs to."""

    host: str
    """Name of its machine: several machines may share a temporary folder."""


def claim_folder(folder: Path) -> None:
    """Note that a folder belongs to this process, and remove those of processes that have ended."""
    started = read_start_time(os.getpid())
    assert started is not None
    owner = _Owner(pid=os.getpid(), started=started, host=socket.gethostname())
    write_private(folder / _OWNER, owner.model_dump_json())
    _remove_leftovers(folder.parent)


def _remove_leftovers(place: Path) -> None:
    try:
        folders = [path for path in place.iterdir() if path.name.startswith(PREFIX)]
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
