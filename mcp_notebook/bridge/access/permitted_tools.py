"""The catalogue as one caller sees it: only the tools, prompts and resources that it may use.

Runs on the bridge's event loop; no I/O.
"""

from collections import OrderedDict
from dataclasses import dataclass, replace

from msgspec import structs

from mcp_notebook import meta_keys
from mcp_notebook.bridge.access.caller import Caller, Permissions
from mcp_notebook.bridge.kernels.catalog import Catalog, CatalogEntry, list_other_names
from mcp_notebook.errors import (
    AmbiguousTool,
    CallError,
    OtherKind,
    ToolGone,
    UnknownTool,
)
from mcp_notebook.wire import messages


@dataclass(frozen=True)
class _List:
    kind: messages.Kind
    source: tuple[CatalogEntry, ...]
    """The catalogue's list."""
    allowed: tuple[CatalogEntry, ...]
    """The allowed tools in it."""
    names: frozenset[str]
    """Their names."""
    past_names: frozenset[str]
    """All their names, including long and full names and URIs, and those of tools removed since."""

    def unknown(self, name: str) -> UnknownTool:
        """Return the error for a tool that does not exist for the caller."""
        return UnknownTool(name, tuple(entry.name for entry in self.allowed), self.kind)


class PermittedTools:
    """The tools that callers may call, out of all tools of the catalogue.

    Args:
        catalog: All tools.
        max_lists: Size of the LRU cache of lists, one for each set of permissions and kind.
        max_past_names: Names of tools, including removed ones, remembered for each of them.
    """

    def __init__(
        self, catalog: Catalog, *, max_lists: int = 192, max_past_names: int = 5_000
    ) -> None:
        self._catalog = catalog
        self._max_lists = max_lists
        self._max_past_names = max_past_names
        self._lists: OrderedDict[tuple[Permissions, messages.Kind], _List] = OrderedDict()

    def list_entries(
        self, caller: Caller, kind: messages.Kind = "tool"
    ) -> tuple[CatalogEntry, ...]:
        """Return the tools that a caller sees, in the catalogue's order.

        Returns the same object until the caller's list changes.

        Args:
            caller: The caller.
            kind: Return prompts or resources instead.
        """
        permissions = caller.permissions
        if permissions.is_everything and permissions.may_propose:
            return self._catalog.entries(kind)
        return self._list(permissions, kind).allowed

    def find(self, caller: Caller, name: str, kind: messages.Kind = "tool") -> CatalogEntry:
        """Return the tool that a caller means by this name.

        Args:
            caller: The caller.
            name: The name.
            kind: Find a prompt or a resource instead.

        Raises:
            AmbiguousTool: Several tools that the caller may call have this name.
            OtherKind: The name is that of a prompt or a resource.
            ToolGone: A tool of this name was removed some minutes ago.
            UnknownTool: The caller may not call any tool of this name.
        """
        permissions = caller.permissions
        if permissions.is_everything and permissions.may_propose:
            return self._catalog.find(name, kind)
        tools = self._list(permissions, kind)
        try:
            entry = self._catalog.find(name, kind)
        except OtherKind as error:
            others = self._list(permissions, error.kind)
            raise (error if name in others.past_names else tools.unknown(name)) from None
        except CallError as error:
            raise _narrow(error, name, tools) from None
        if permissions.allow(entry):
            return _hide_related(entry, tools.names)
        raise tools.unknown(name)

    def list_missing_uris(self) -> list[str]:
        """Return the URIs of resources for which `find` may explain their absence."""
        return self._catalog.list_missing_uris()

    def _list(self, permissions: Permissions, kind: messages.Kind) -> _List:
        key = permissions, kind
        latest = self._lists.get(key)
        source = self._catalog.entries(kind)
        if latest is None or latest.source is not source:
            if latest is not None and len(latest.past_names) > self._max_past_names:
                latest = replace(latest, past_names=frozenset())
            latest = _make_list(kind, source, permissions, latest)
            self._lists[key] = latest
            if len(self._lists) > self._max_lists:
                self._lists.popitem(last=False)
        self._lists.move_to_end(key)
        return latest


def _make_list(
    kind: messages.Kind,
    source: tuple[CatalogEntry, ...],
    permissions: Permissions,
    previous: _List | None,
) -> _List:
    entries = tuple(filter(permissions.allow, source))
    names = frozenset(entry.name for entry in entries)
    allowed = tuple(_hide_related(entry, names) for entry in entries)
    past_names = names.union(*(list_other_names(entry) for entry in entries))
    if previous is not None:
        if previous.allowed == allowed:
            allowed = previous.allowed
        past_names |= previous.past_names
    return _List(kind, source, allowed, names, past_names)


def _narrow(error: CallError, name: str, tools: _List) -> CallError:
    """Return an error that does not reveal tools that are not allowed."""
    match error:
        case UnknownTool():
            allowed = tuple(other for other in error.names if other in tools.names)
            return UnknownTool(error.name, allowed, tools.kind)
        case AmbiguousTool():
            allowed = tuple(candidate for candidate in error.candidates if candidate in tools.names)
            return AmbiguousTool(name, allowed, tools.kind) if allowed else tools.unknown(name)
        case ToolGone() if name in tools.past_names:
            # The reason may name tools that the caller does not see.
            return ToolGone(error.name, f"List the {tools.kind}s again.", kind=tools.kind)
    return tools.unknown(name)


def _hide_related(entry: CatalogEntry, names: frozenset[str]) -> CatalogEntry:
    """Return a tool that refers only to related tools with these names."""
    meta = dict(entry.tool.meta or {})
    related = meta.pop(meta_keys.RELATED, None)
    if not isinstance(related, list) or names.issuperset(related):
        return entry
    visible = [name for name in related if name in names]
    description = entry.tool.description.removesuffix(_write_related(related)).rstrip()
    if visible:
        description = "\n\n".join(filter(None, (description, _write_related(visible))))
        meta[meta_keys.RELATED] = visible
    tool = structs.replace(entry.tool, description=description, meta=meta or None)
    return replace(entry, tool=tool)


def _write_related(names: list[str]) -> str:
    return f"See also: {', '.join(names)}."
