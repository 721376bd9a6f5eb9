"""Publishes, updates and removes the record by which bridges find this kernel.

Runs on the kernel's main thread; `forget` also on the control thread, when the kernel is shut down,
and `update` on the endpoint's, when Jupyter has renamed the notebook.
"""

import logging
import os
import socket
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

from msgspec import structs

from mcp_notebook._version import __version__
from mcp_notebook.discovery.records import Record, forget_record, read_start_time, write_record
from mcp_notebook.errors import LinkError
from mcp_notebook.kernel.link.endpoint import Address
from mcp_notebook.settings.settings import Settings
from mcp_notebook.wire import messages

logger = logging.getLogger(__name__)


class PublishedRecord:
    """The record of one kernel, from `publish` to `forget`.

    Args:
        record_id: Its id.
        settings: Names the folder of the records.
        describe_notebook: Returns the fields that describe the notebook.
        is_headless: Whether a bridge started the kernel.
    """

    def __init__(
        self,
        record_id: str,
        settings: Settings,
        describe_notebook: Callable[[], Mapping[str, Any]],
        *,
        is_headless: bool,
    ) -> None:
        self._id = record_id
        self._folder = settings.records_folder
        self._owner: Literal["user", "bridge"] = "bridge" if is_headless else "user"
        self._describe_notebook = describe_notebook
        self._record: Record | None = None
        self._lock = threading.Lock()
        """Held while the record is replaced, so that none is written after `forget`."""

    def publish(self, address: Address, kernel: Any) -> None:
        """Let bridges find the kernel.

        Args:
            address: Where its endpoint listens.
            kernel: IPython's kernel.

        Raises:
            LinkError: The record cannot be written: the disk is full, for example.
        """
        pid = os.getpid()
        started = read_start_time(pid)
        assert started is not None
        self._record = Record(
            id=self._id,
            pid=pid,
            started=started,
            host=socket.gethostname(),
            version=__version__,
            protocol=messages.PROTOCOL_VERSION,
            **self._describe_notebook(),
            jupyter_id=_read_jupyter_id(kernel),
            python=sys.executable or None,
            owner=self._owner,
            socket=address.socket,
            port=address.port,
            token=address.token,
        )
        try:
            write_record(self._folder, self._record)
        except OSError as error:
            self._record = None
            raise LinkError(
                f"Clients cannot find the notebook, because no file can be written in "
                f"{self._folder}: {error.strerror}. Free some space, or set MCP_NOTEBOOK_HOME to "
                "another folder, here and for the clients; then load the extension again."
            ) from error

    def update(self) -> None:
        """Publish the notebook's current name; does nothing without a record."""
        with self._lock:
            if self._record is not None:
                try:
                    self._record = structs.replace(self._record, **self._describe_notebook())
                    write_record(self._folder, self._record)
                except OSError:
                    logger.exception("the notebook's new name could not be published")

    def forget(self, reason: str) -> None:
        """Remove the record, and leave a note with the reason; idempotent."""
        with self._lock:
            if self._record is not None:
                forget_record(self._folder, self._record, reason)
                self._record = None


def _read_jupyter_id(kernel: Any) -> str | None:
    """Return the id in the name of the connection file, which the frontend chose."""
    app = getattr(kernel, "parent", None)
    name = Path(getattr(app, "connection_file", None) or "").stem
    return name.removeprefix("kernel-") if name.startswith("kernel-") else None
