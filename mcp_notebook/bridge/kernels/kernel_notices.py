"""What a bridge tells kernels of its clients: which there are, and which names of tools they see.

Runs on the bridge's event loop. Kernels show it to people; nothing else depends on it.
"""

from collections.abc import Callable, Sequence

from mcp_notebook.wire import messages


class KernelNotices:
    """What one kernel is told, if it is new, and if the kernel is not too old for it.

    Args:
        send: Sends a message to the kernel.
    """

    def __init__(self, send: Callable[[messages.AnyMessage], None]) -> None:
        self._send = send
        self._last = messages.Clients(clients=[])
        self.are_possible = False
        """Whether the kernel takes them."""

    def send_clients(self, clients: Sequence[messages.ClientCount]) -> None:
        """Say which clients the bridge has now."""
        self._send_new(messages.Clients(clients=list(clients), names=self._last.names))

    def send_names(self, names: Sequence[messages.ListedName]) -> None:
        """Say which of the kernel's tools clients see under other names now."""
        self._send_new(messages.Clients(clients=self._last.clients, names=list(names)))

    def _send_new(self, message: messages.Clients) -> None:
        if self.are_possible and message != self._last:
            self._last = message
            self._send(message)
