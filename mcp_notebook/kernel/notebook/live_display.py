"""An output of the notebook that any thread can update, also while a cell runs.

Runs in the user's kernel. `LiveDisplay.show` puts it below the running cell, or the cell that ran
last; `LiveDisplay.update` replaces it in its place. Only standard kernel messages are used,
so that no frontend needs an extension.
"""

import logging
import secrets
from collections.abc import Mapping
from typing import Any

from mcp_notebook.kernel.notebook.loaded_extension import find_request

logger = logging.getLogger(__name__)

_TOPIC = b"display_data"
"""The topic of ipykernel's own displays."""


class LiveDisplay:
    """One output, below one cell.

    Frontends identify it by an id that no other kernel uses, so that outputs of earlier kernels
    stay unchanged.

    Args:
        shell: The notebook's IPython.
    """

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._id = f"mcp-notebook-{secrets.token_hex(8)}"

    def show(self, data: Mapping[str, str]) -> None:
        """Show a MIME bundle below the running cell, or the cell that ran last."""
        self._publish("display_data", data)

    def update(self, data: Mapping[str, str]) -> None:
        """Show another MIME bundle wherever this output is shown."""
        self._publish("update_display_data", data)

    def _publish(self, kind: str, data: Mapping[str, str]) -> None:
        content = {"data": dict(data), "metadata": {}, "transient": {"display_id": self._id}}
        kernel = self._shell.kernel
        try:
            # Not `display_pub.publish`: it flushes streams that may belong to others, calls hooks,
            # and would be captured by a running `%%capture` cell.
            kernel.session.send(
                kernel.iopub_socket, kind, content, parent=find_request(), ident=_TOPIC
            )
        except Exception:  # the kernel shuts down, or is not ipykernel
            logger.exception("an output could not be shown")
