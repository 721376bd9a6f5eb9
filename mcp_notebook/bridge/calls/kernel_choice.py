"""Which kernel gets a call, where several run its notebook: what ties a call to one of them.

Runs on the bridge's event loop; no I/O. The rest of the choice is that of
`bridge.kernels.replicas`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from mcp_notebook.bridge.kernels.catalog import CatalogEntry
from mcp_notebook.bridge.kernels.link import Link
from mcp_notebook.bridge.kernels.links import Links
from mcp_notebook.bridge.kernels.running_call import RunningCall
from mcp_notebook.bridge.protocol.client_request import ClientRequest
from mcp_notebook.bridge.questions.request_states import identify_request
from mcp_notebook.wire import task_messages


@dataclass(frozen=True)
class KernelChoice:
    """The kernel for a call."""

    link: Link
    """Leads to it."""
    revision: str | None
    """What it calls the declaration of the tool."""
    forget_soon: Callable[[Callable[[], bool]], None] | None = None
    """Lets the same call go to any kernel in a moment if that is true then; None: it can anyway."""

    def note_end(self, call: RunningCall) -> None:
        """Note that the call has ended: when its client has the result, the same call is new."""
        if self.forget_soon is not None:
            self.forget_soon(lambda: not call.is_cancelled and call.task is None)


def choose_kernel(
    links: Links,
    request: ClientRequest,
    entry: CatalogEntry,
    arguments: dict[str, Any] | bytes,
    keep: task_messages.Keep | None,
) -> KernelChoice:
    """Return the kernel for a call.

    A client of the older eras is its session. At 2026-07-28, where requests stand for themselves,
    nothing but the token tells clients apart: those with the same one are one client.

    Args:
        links: To the kernels.
        request: The client's.
        entry: The tool.
        arguments: The arguments; if large, as the client's JSON.
        keep: What lets the call outlive its client.

    Raises:
        KernelGone: The kernel is gone or away.
    """
    replicas = links.replicas
    if not replicas.has(entry):
        return KernelChoice(links.find_link(entry), entry.tool.revision)
    client = None
    if entry.tool.stateful:
        client = request.connection if request.is_handshake else request.caller.owns
    if keep is None or keep.how != "give_up":
        link = links.find_link(entry, client)
        return KernelChoice(link, replicas.find_revision(entry, link.record.id))
    key = identify_request(request.caller.owns, entry.tool.name, arguments=arguments)
    link = links.find_link(entry, client, key)
    revision = replicas.find_revision(entry, link.record.id)
    return KernelChoice(link, revision, partial(replicas.forget_kept, entry, key))
