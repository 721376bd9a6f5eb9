"""The catalogue as one caller sees it: only the tools that this caller may call.

Runs on the bridge's event loop; no I/O.
"""

from collections import OrderedDict

from mcp_notebook.bridge.access.caller import Caller, Permissions
from mcp_notebook.bridge.kernels.catalog import Catalog, CatalogEntry
from mcp_notebook.errors import AmbiguousTool, KernelGone, ToolGone, UnknownTool

MAX_LISTS = 64
"""Lists that are kept, one for each kind of permissions; the least recently used ones go."""


class PermittedTools:
    """The tools that callers may call, out of all tools of the catalogue.

    Args:
        catalog: All tools.
    """

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._lists: OrderedDict[
            Permissions, tuple[tuple[CatalogEntry, ...], tuple[CatalogEntry, ...]]
        ] = OrderedDict()
        """The catalogue's list and what of it is allowed."""

    def list_entries(self, caller: Caller) -> tuple[CatalogEntry, ...]:
        """Return the tools that a caller sees, in the catalogue's order.

        The result is the same object until something changes.
        """
        permissions = caller.permissions
        entries = self._catalog.entries()
        if permissions.is_everything():
            return entries
        latest = self._lists.get(permissions)
        if latest is None or latest[0] is not entries:
            latest = (entries, tuple(filter(permissions.allow, entries)))
            self._lists[permissions] = latest
            if len(self._lists) > MAX_LISTS:
                self._lists.popitem(last=False)
        self._lists.move_to_end(permissions)
        return latest[1]

    def find(self, caller: Caller, name: str) -> CatalogEntry:
        """Return the tool that a caller means by this name.

        Raises:
            AmbiguousTool: Several tools that the caller may call have this name.
            KernelGone: Its kernel is away.
            ToolGone: There was a tool of this name some minutes ago.
            UnknownTool: There is none that the caller may call.
        """
        permissions = caller.permissions
        if permissions.is_everything():
            return self._catalog.find(name)
        names = tuple(entry.name for entry in self.list_entries(caller))
        try:
            entry = self._catalog.find(name)
        except AmbiguousTool as error:
            allowed = tuple(candidate for candidate in error.candidates if candidate in names)
            if allowed:
                raise AmbiguousTool(name, allowed) from None
        except (KernelGone, ToolGone):
            if permissions.allow_name(name):
                raise
        except UnknownTool as error:
            raise UnknownTool(name, tuple(n for n in error.names if n in names)) from None
        else:
            if permissions.allow(entry):
                return entry
        raise UnknownTool(name, names)
