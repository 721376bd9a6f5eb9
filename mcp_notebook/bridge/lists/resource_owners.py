"""Which callers may see which resources: those that results of their own calls have linked to.

Runs on the bridge's event loop; no I/O. Whoever may call all tools may see all resources, and
nothing is remembered for it. For others, a resource is as good as the result that it completes:
what another caller's call has left behind does not exist, even if the tool is allowed, because the
arguments were the other's. A restart of the bridge forgets all of this, and calling again helps.
"""

from collections import OrderedDict

from mcp_notebook.bridge.access.caller import Caller
from mcp_notebook.content import ResourceLink, Result
from mcp_notebook.wire import resource_uris

MAX_RESOURCES = 10_000
"""Resources that are remembered for one caller; the oldest ones are forgotten."""
MAX_CALLERS = 1_000
"""Callers for whom any are remembered; those who have not got one for longest are forgotten."""


class ResourceOwners:
    """Remembers whose results have linked to which resources."""

    def __init__(self) -> None:
        self._uris: OrderedDict[str, OrderedDict[str, None]] = OrderedDict()
        """By caller."""

    def note_result(self, caller: Caller, result: Result) -> None:
        """Note that a caller gets a result."""
        if caller.permissions.is_everything():
            return
        for block in result.content:
            if isinstance(block, ResourceLink) and resource_uris.find_kernel_id(block.uri):
                uris = self._uris.setdefault(caller.owns, OrderedDict())
                self._uris.move_to_end(caller.owns)
                uris[block.uri] = None
                uris.move_to_end(block.uri)
                if len(uris) > MAX_RESOURCES:
                    uris.popitem(last=False)
                if len(self._uris) > MAX_CALLERS:
                    self._uris.popitem(last=False)

    def may_see(self, caller: Caller, uri: str) -> bool:
        """Return whether a resource exists as far as a caller can see."""
        return caller.permissions.is_everything() or uri in self._uris.get(caller.owns, ())
