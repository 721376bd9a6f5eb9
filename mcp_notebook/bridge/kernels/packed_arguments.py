"""How the arguments of a call travel to one kernel: in its message, or as JSON beside it.

Runs on the bridge's event loop; pure.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mcp_notebook.errors import CallError
from mcp_notebook.wire import messages

PATH = ("params", "arguments")
"""Where the arguments are in the JSON of a client's request."""
_TOO_LARGE = (
    "The arguments are too large for the mcp-notebook in the kernel of {name!r}, which is older "
    "than the bridge. Upgrade it there and restart the kernel."
)


@dataclass(frozen=True)
class PackedArguments:
    """The arguments of a call, as a kernel gets them."""

    arguments: dict[str, Any]
    """Those in the message."""
    path: Sequence[str] = ()
    """Where they are in the attachment."""
    attachments: Sequence[bytes] = ()


class ArgumentPacker:
    """Knows what one kernel takes.

    Args:
        notebook: The notebook's name, for messages.
        welcome: What the kernel said.
    """

    def __init__(self, notebook: str, welcome: messages.Welcome) -> None:
        self._notebook = notebook
        self._takes_attached = welcome.attached_arguments
        self._finds = welcome.finds_arguments

    def pack(self, arguments: dict[str, Any] | bytes, request: bytes | None) -> PackedArguments:
        """Return the arguments of a call as they are to be sent.

        Args:
            arguments: The arguments; if large, as the client's JSON.
            request: The client's request, if it has the arguments in it and they are not short:
                it is sent as it came, because to write them anew would take longer.

        Raises:
            CallError: The kernel is of an older version, which takes no JSON of clients.
        """
        if isinstance(arguments, bytes):
            if not self._takes_attached:
                raise CallError(_TOO_LARGE.format(name=self._notebook))
            return PackedArguments({}, attachments=[arguments])
        if request is not None and self._finds:
            return PackedArguments({}, PATH, [request])
        return PackedArguments(arguments)
