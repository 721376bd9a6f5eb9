"""Tells kernels that Jupyter has renamed or moved their notebooks.

Runs on the event loop of Jupyter Server, which passes a kernel its notebook's path only at its
start. A message to the kernel works while a cell or a call holds the kernel's main thread. The
kernel publishes the new name in its record, where bridges see it; pages get it with its state.
"""

import asyncio
import logging
from pathlib import Path
from typing import Any

from jupyter_server.services.kernels.kernelmanager import MappingKernelManager
from jupyter_server.utils import to_os_path

from mcp_notebook.discovery.greeting import greet
from mcp_notebook.discovery.records import list_live_records
from mcp_notebook.errors import LinkError
from mcp_notebook.wire import messages

CONTENTS_ACTIONS = "https://events.jupyter.org/jupyter_server/contents_service/v1"
"""Jupyter Server's events about files, such as their renaming."""


class NotebookRenames:
    """Follows the files of one server.

    Args:
        kernels: The server's kernels; they have its root folder.
        folder: The folder with the records of live kernels.
        log: The server's log.
    """

    def __init__(self, kernels: MappingKernelManager, folder: Path, log: logging.Logger) -> None:
        self._kernels = kernels
        self._folder = folder
        self._log = log

    async def hear(self, logger: Any, schema_id: str, data: dict[str, Any]) -> None:  # noqa: ARG002 - as Jupyter Server calls it
        """Take an event about a file or a folder."""
        if data.get("action") != "rename":
            return
        old, new = (
            Path(to_os_path(data[part], self._kernels.root_dir)) for part in ("source_path", "path")
        )
        for record in await asyncio.to_thread(list_live_records, self._folder):
            notebook = Path(record.notebook or "")
            if not notebook.is_relative_to(old):
                continue
            try:
                connection = (await greet(record)).connection
            except LinkError as error:
                self._log.warning("mcp-notebook has not renamed %s: %s", record.name, error)
                continue
            path = new / notebook.relative_to(old)  # `old` may be a folder
            connection.send(messages.NotebookMoved(path=str(path)))
            connection.transport.close()  # sends what waits
