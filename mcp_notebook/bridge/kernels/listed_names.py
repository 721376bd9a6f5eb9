"""Tells kernels which of their tools clients see under other names, and why.

Runs on the bridge's event loop.
"""

from collections.abc import Callable, Mapping

from mcp_notebook.bridge.kernels.catalog import Catalog
from mcp_notebook.bridge.kernels.link import Link
from mcp_notebook.bridge.kernels.replicas import Replicas
from mcp_notebook.wire import messages


def announce_change(
    on_change: Callable[[], None],
    catalog: Catalog,
    links: Mapping[str, Link],
    replicas: Replicas,
) -> None:
    """Say that the list of tools has changed, and tell kernels the names in it.

    Args:
        on_change: Tells the clients.
        catalog: The tools of all kernels.
        links: By the ids of their kernels.
        replicas: The kernels among them that run the same notebook.
    """
    on_change()
    names = find_listed_names(catalog)
    for kernel_id, link in links.items():
        link.notices.send_names(names.get(replicas.find_entry_id(kernel_id), ()))


def find_listed_names(catalog: Catalog) -> dict[str, list[messages.ListedName]]:
    """Return the tools with another name in the list than their own, by the ids of their kernels.

    Args:
        catalog: The tools of all kernels.
    """
    entries = [entry for entry in catalog.entries() if entry.name != entry.tool.name]
    if not entries:  # as nearly always
        return {}
    reasons = {
        (missing.notebook, missing.tool): missing for missing in catalog.list_missing_tools()
    }
    names: dict[str, list[messages.ListedName]] = {}
    for entry in entries:
        missing = reasons[entry.notebook, entry.tool.name]
        names.setdefault(entry.kernel_id, []).append(
            messages.ListedName(
                tool=entry.tool.name,
                name=entry.name,
                reason=missing.reason,
                next_step=missing.next_step,
            )
        )
    return names
