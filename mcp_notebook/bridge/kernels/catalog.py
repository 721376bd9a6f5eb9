"""The joined tools of all kernels: what clients see, and what a name they call means.

Runs in the bridge, on its event loop; pure, no I/O. `bridge.kernels.links` fills it,
`bridge.server.server` reads it; who is told about a change is their business.

Names, in the order of the rules:

1. A tool that one kernel offers is served under its own name.
2. A name that several kernels offer is served as ``<notebook>.<tool>`` for each of them; the bare
   name is then an error that names them all.
3. ``<notebook>.<tool>`` may always be called, also while the tool is served under its own name: a
   client whose list is from before the other notebook went still reaches the right one.
4. A kernel's notebook name is made of the characters that MCP clients take, and shortened. It stays
   the same as long as the kernel is there, so that a name never comes to mean another kernel: of
   two notebooks called ``sales`` the second is ``sales-2``, also after the first has gone.
5. What would still be served twice gets ``-2``, ``-3``...
6. A name that the bridge keeps for a tool of its own (`Catalog.reserve`) is the bridge's: a
   kernel's tool of that name is served as ``<notebook>.<tool>``.
7. The tools of a kernel that is away, to come back, are not listed; their names stay theirs, and a
   call by one of them is an error that says why.
"""

import difflib
import itertools
import math
import re
from collections import Counter
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, field, replace

from mcp_notebook import meta_keys
from mcp_notebook.errors import AmbiguousTool, KernelGone, UnknownTool
from mcp_notebook.wire import messages

MAX_NAME = 64
"""Characters of a served name; several clients refuse longer ones."""
MAX_NOTEBOOK = 24
"""Characters of a notebook's part of a name, so that the tool's part has room."""
_NOT_ALLOWED = re.compile(r"[^A-Za-z0-9_.-]+")


@dataclass(frozen=True)
class CatalogEntry:
    """One tool as clients see it."""

    name: str
    """The name it is served under: 1 to 64 of ``A-Z a-z 0-9 _ . -``, unique."""
    kernel_id: str
    """The id of its kernel's record."""
    notebook: str
    """Its notebook's part of names."""
    tool: messages.ToolInfo
    """What the kernel says about it; ``tool.name`` is the kernel's own name."""


@dataclass(frozen=True)
class _Kernel:
    id: str
    notebook: str
    """As given."""
    label: str
    """As used in names."""
    tools: tuple[messages.ToolInfo, ...]
    """Of a kernel that is away: those it had."""
    away: str | None = None
    """What a call is told while the kernel is away."""


@dataclass(frozen=True)
class _View:
    """All that follows from a set of kernels; made new at each change."""

    entries: tuple[CatalogEntry, ...] = ()
    """What is listed."""
    by_name: dict[str, CatalogEntry] = field(default_factory=dict)
    by_full_name: dict[str, CatalogEntry] = field(default_factory=dict)
    ambiguous: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Bare names that mean several tools, with the names to use in their place."""


class Catalog:
    """The tools of all kernels that are served; belongs to the bridge's event loop."""

    def __init__(self) -> None:
        self._kernels: dict[str, _Kernel] = {}
        self._reserved: frozenset[str] = frozenset()
        self._view = _View()

    def reserve(self, names: Iterable[str]) -> None:
        """Keep names for the bridge's own tools."""
        self._reserved = frozenset(names)
        self._refresh()

    def set_kernel(
        self, kernel_id: str, *, notebook: str, tools: Sequence[messages.ToolInfo]
    ) -> bool:
        """Take a kernel in, or take its tools as they are now.

        A kernel without tools keeps its place in the order and its notebook name.

        Returns:
            Whether what clients see has changed.
        """
        known = self._kernels.get(kernel_id)
        if known is not None and known.notebook == notebook:
            if known.tools == tuple(tools) and known.away is None:
                return False
            label = known.label
        else:
            others = {kernel.label for kernel in self._kernels.values() if kernel.id != kernel_id}
            label = _unique(_safe(notebook).strip("_") or "notebook", others, MAX_NOTEBOOK)
        self._kernels[kernel_id] = _Kernel(kernel_id, notebook, label, tuple(tools))
        return self._refresh()

    def set_away(self, kernel_id: str, reason: str) -> bool:
        """Take a kernel's tools off the list until it is set again; calls are told the reason.

        Nothing happens if the kernel is not known.

        Returns:
            Whether what clients see has changed.
        """
        known = self._kernels.get(kernel_id)
        if known is None:
            return False
        self._kernels[kernel_id] = replace(known, away=reason)
        return self._refresh()

    def remove_kernel(self, kernel_id: str) -> bool:
        """Forget a kernel and its tools; nothing happens if it is not known.

        Returns:
            Whether what clients see has changed.
        """
        return self._kernels.pop(kernel_id, None) is not None and self._refresh()

    def entries(self) -> tuple[CatalogEntry, ...]:
        """Return all tools: those of a higher priority first, over all kernels.

        Among equals, kernels in the order they came in, tools in the kernel's order.
        """
        return self._view.entries

    def find(self, name: str) -> CatalogEntry:
        """Return the tool that a client calls by this name.

        Raises:
            AmbiguousTool: Several kernels offer a tool of this name.
            KernelGone: Its kernel is away.
            UnknownTool: No kernel offers such a tool.
        """
        view = self._view
        entry = view.by_name.get(name) or view.by_full_name.get(name)
        if entry is not None:
            away = self._kernels[entry.kernel_id].away
            if away is not None:
                raise KernelGone(away)
            return entry
        if name in view.ambiguous:
            raise AmbiguousTool(name, view.ambiguous[name])
        if len(name) > 2 * MAX_NAME:  # no typing error: not worth the search, nor an echo
            name = f"{name[: 2 * MAX_NAME]}..."
        names = [entry.name for entry in view.entries]
        close = difflib.get_close_matches(name, names)
        raise UnknownTool(name, (*close, *(other for other in names if other not in close)))

    def _refresh(self) -> bool:
        before = [(entry.name, entry.tool) for entry in self._view.entries]
        self._view = _join(tuple(self._kernels.values()), self._reserved)
        return before != [(entry.name, entry.tool) for entry in self._view.entries]


def _join(kernels: Sequence[_Kernel], reserved: frozenset[str]) -> _View:
    named = [
        (kernel, name, tool)
        for kernel in kernels
        for name, tool in zip(_bare_names(kernel.tools), kernel.tools, strict=True)
    ]
    offers = Counter(name for _, name, _ in named)
    taken = {*offers, *reserved}  # a made-up name must not hide a tool's own, nor an ambiguous one
    by_name: dict[str, CatalogEntry] = {}
    by_full_name: dict[str, CatalogEntry] = {}
    ambiguous: dict[str, tuple[str, ...]] = {}
    for kernel, name, tool in named:
        full_name = _unique(f"{kernel.label}.{name}", taken, MAX_NAME)
        taken.add(full_name)
        served = full_name if offers[name] > 1 or name in reserved else name
        entry = CatalogEntry(served, kernel.id, kernel.label, tool)
        by_name[served] = by_full_name[full_name] = entry
        if offers[name] > 1:
            ambiguous[name] = (*ambiguous.get(name, ()), full_name)
    away = {kernel.id for kernel in kernels if kernel.away is not None}
    listed = [entry for entry in by_name.values() if entry.kernel_id not in away]
    listed.sort(key=lambda entry: -_priority(entry.tool))  # stable
    return _View(tuple(listed), by_name, by_full_name, ambiguous)


def _priority(tool: messages.ToolInfo) -> float:
    priority = (tool.meta or {}).get(meta_keys.PRIORITY, 0)
    usable = isinstance(priority, int | float) and math.isfinite(priority)
    return priority if usable else 0


def _bare_names(tools: Sequence[messages.ToolInfo]) -> list[str]:
    """Return the tools' names made valid, and unique within their kernel."""
    names: dict[str, None] = {}
    for tool in tools:
        names[_unique(_safe(tool.name) or "tool", names, MAX_NAME)] = None
    return list(names)


def _safe(text: str) -> str:
    return _NOT_ALLOWED.sub("_", text)


def _unique(name: str, taken: Container[str], limit: int) -> str:
    """Return the name, cut to the limit, with a number behind it if it is taken."""
    candidate = name[:limit]
    for number in itertools.count(2):
        if candidate not in taken:
            break
        suffix = f"-{number}"
        candidate = name[: limit - len(suffix)] + suffix
    return candidate
