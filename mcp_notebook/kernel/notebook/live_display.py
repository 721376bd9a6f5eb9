"""An output of the notebook that is shown anew from any thread, also while a cell runs.

Runs in the user's kernel. `LiveDisplay.show` puts it below the cell that runs, or ran last;
`LiveDisplay.update` replaces it wherever it is. What it looks like is the business of its users.
Nothing but the kernel's own messages is used: no frontend needs an extension for them.
"""

import logging
import secrets
from collections.abc import Mapping
from typing import Any

logger = logging.getLogger(__name__)

_TOPIC = b"display_data"
"""As ipykernel's own displays have."""


class LiveDisplay:
    """One output, shown in as many places as it was asked for.

    Frontends know it by an id that no other kernel ever uses: what an earlier kernel has shown
    stays as it is.

    Args:
        shell: The notebook's IPython.
    """

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self.id = f"mcp-notebook-{secrets.token_hex(8)}"
        """IPython's `display` can show it by this id as a part of the cell that runs."""

    def show(self, data: Mapping[str, str]) -> None:
        """Show a MIME bundle below the cell that runs, or ran last."""
        self._publish("display_data", data)

    def update(self, data: Mapping[str, str]) -> None:
        """Show another MIME bundle wherever this output is."""
        self._publish("update_display_data", data)

    def _publish(self, kind: str, data: Mapping[str, str]) -> None:
        content = {"data": dict(data), "metadata": {}, "transient": {"display_id": self.id}}
        kernel = self._shell.kernel
        try:
            # Not by `display_pub.publish`: it flushes the streams, which may be anybody's, and
            # calls hooks; and while a cell with `%%capture` runs, it keeps what it gets.
            kernel.session.send(
                kernel.iopub_socket, kind, content, parent=self._shell.get_parent(), ident=_TOPIC
            )
        except Exception:  # the kernel shuts down, or is of a kind that we do not know
            logger.exception("an output could not be shown")
