"""The tools of all kernels in one catalogue: the list for clients, and the lookup of names.

Runs on the bridge's event loop; no I/O. The rules for names, in this order:

1. A tool that only one kernel offers is served under its own name.
2. If several kernels offer a tool of the same name, each is served under its long name,
   ``<notebook>_<tool>``, and a call to the bare name is an error that names them all.
3. The long name can always be called, even while the tool is served under its own name, so that a
   client with an old list still reaches the right tool.
4. A kernel's notebook name is shortened and restricted to letters, digits and ``_ -``. It has no
   dots, so that a permission for ``sales.*`` does not reach the tools of ``sales.private.ipynb``.
   It never changes while the kernel lives: the second of two notebooks called ``sales`` is
   ``sales-2`` even after the first has gone.
5. No name that clients have seen moves to another tool while the kernel lives: once a long name
   was listed, a tool whose own name equals it is served under its own long name.
6. Names that would still collide get the suffixes ``-2``, ``-3``...
7. Names of the bridge's own tools (`Catalog.reserve`) are reserved: a kernel's tool with such a
   name is served under its long name.
8. For some minutes, a call to a name that has lost its tool is an error that explains why.
9. A notebook whose kernel is being started again keeps its last tools in the list; calls wait.
10. All of this holds for prompts and for resources as well, each kind for itself: a prompt never
    changes the name of a tool, because clients list and use them apart. Clients know a resource by
    its URI, which has rules of its own (`served_uris`). Its own and its long URI can be found like
    other names of it.
11. A notebook whose tools are unknown until it runs is an entry of the kind "notebook".

Every name in the list fits ``^[a-zA-Z0-9_-]{1,64}$``: the APIs of OpenAI and Anthropic refuse a
whole request for one invalid name, and several clients pass names on unchanged. Most clients add a
prefix, so long names leave room for ``mcp__notebook__``. They contain no ``__``, because programs
split ``mcp__notebook__tool`` there, from either end.

``<notebook>.<tool>`` is the tool's full name, which permissions and logs use. It can be called, but
is never listed.
"""

import itertools
import re
import sys
import time
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from unicodedata import combining, normalize

from msgspec import structs

from mcp_notebook import meta_keys
from mcp_notebook.bridge.kernels.former_tools import FormerTools
from mcp_notebook.bridge.kernels.served_uris import make_long_uri, serve_uris
from mcp_notebook.discovery.departures import is_recent
from mcp_notebook.errors import AmbiguousTool, OtherKind, ToolGone, UnknownTool
from mcp_notebook.text.missing_tools import (
    READ_RESOURCE,
    RESERVED_NAMES,
    DroppedTool,
    MissingTool,
    explain_dropped,
    explain_invalid_name,
    explain_renamed,
    explain_reserved_name,
    explain_shared_name,
    explain_shared_uri,
    explain_taken_name,
    explain_undeclared,
)
from mcp_notebook.text.wording import list_close_words
from mcp_notebook.wire import messages

MAX_NAME = 64
"""Characters of a name in the list; models' APIs reject longer ones."""
MAX_LONG_NAME = MAX_NAME - len("mcp__notebook__")
"""Characters of a long name, unless the tool's own name needs more: clients add a prefix."""
MAX_NOTEBOOK = 24
"""Characters of the notebook's part of a name, to leave room for the tool's part."""
MIN_NOTEBOOK = 8
"""Characters of the notebook's part of a long name if the tool's part is long."""
_NOT_IN_NAME = re.compile(r"[^A-Za-z0-9_-]+")


@dataclass(frozen=True)
class CatalogEntry:
    """One tool, prompt or resource as clients see it."""

    name: str
    """The name that it is served under: 1 to 64 of ``A-Z a-z 0-9 _ -``, unique."""
    kernel_id: str
    """The id of its kernel's record, or of its notebook if the bridge has started that."""
    notebook: str
    """The notebook's part of full names."""
    tool: messages.ToolInfo
    """The kernel's description of it; ``tool.name`` is its name in the kernel."""
    long_name: str
    """A name that always works, even while the tool is served under its own name."""
    uri: str = ""
    """Of a resource: the URI or template that it is served under."""

    @property
    def full_name(self) -> str:
        """The name in permissions and logs, whatever name the tool is served under."""
        return f"{self.notebook}.{self.tool.name}"

    @property
    def is_renamed(self) -> bool:
        """Whether clients see another name than its own; of a resource, another URI."""
        if self.tool.kind == "resource":
            return self.uri != self.tool.uri
        if self.tool.kind == "notebook":
            return False  # its name is that of its notebook, as far as characters allow
        return self.name != self.tool.name


@dataclass(frozen=True)
class _Kernel:
    id: str
    notebook: str
    """The notebook's own name."""
    label: str
    """The notebook's part of full names."""
    tools: tuple[messages.ToolInfo, ...]
    """Its tools, or its last ones while it is started again."""
    missing: Mapping[str, DroppedTool]
    """The tools that it dropped in the last minutes, by name."""


@dataclass(frozen=True)
class _View:
    """Everything of one kind derived from the set of kernels; rebuilt after each change."""

    entries: tuple[CatalogEntry, ...] = ()
    """The tools in the list, in order."""
    by_name: dict[str, CatalogEntry] = field(default_factory=dict)
    """The tools by listed name."""
    by_other_name: dict[str, CatalogEntry] = field(default_factory=dict)
    """The tools by long name and full name, resources also by own and long URI."""
    ambiguous: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Bare names that several tools share, with the names to call instead."""
    listed_long: dict[tuple[str, str, str], str] = field(default_factory=dict)
    """The long names that clients have seen, by kernel, label and bare name."""

    def find(self, name: str) -> CatalogEntry | None:
        """Return the tool with this name, long name or full name."""
        return self.by_name.get(name) or self.by_other_name.get(name)


class Catalog:
    """The tools of all linked kernels; belongs to the bridge's event loop."""

    def __init__(self) -> None:
        self._kernels: dict[str, _Kernel] = {}
        self._reserved = frozenset({READ_RESOURCE})
        self._views: dict[messages.Kind, _View] = {kind: _View() for kind in messages.KINDS}
        self._former: dict[messages.Kind, FormerTools] = {
            kind: FormerTools() for kind in messages.KINDS
        }

    def reserve(self, names: Iterable[str]) -> None:
        """Reserve names for the bridge's own tools."""
        self._reserved = frozenset({READ_RESOURCE, *names})
        self._refresh()

    def set_kernel(
        self,
        kernel_id: str,
        *,
        notebook: str,
        tools: Sequence[messages.ToolInfo],
        missing: Mapping[str, DroppedTool] = MappingProxyType({}),
    ) -> bool:
        """Add a kernel, or replace its tools.

        A kernel without tools keeps its place in the order and its notebook name.

        Args:
            kernel_id: The id of its record.
            notebook: The name of its notebook.
            tools: Its tools, in order.
            missing: The tools that it dropped in the last minutes, by name.

        Returns:
            Whether the list that clients see has changed.
        """
        return self._put(kernel_id, notebook, tools, missing) and self._refresh()

    def set_kernels(
        self,
        kernels: Iterable[tuple[str, str, Sequence[messages.ToolInfo], Mapping[str, DroppedTool]]],
    ) -> bool:
        """Add or replace many kernels at once.

        Args:
            kernels: The id, the notebook's name, the tools and the missing tools of each.

        Returns:
            Whether the list that clients see has changed.
        """
        changed = [self._put(*kernel) for kernel in kernels]
        return any(changed) and self._refresh()

    def _put(
        self,
        kernel_id: str,
        notebook: str,
        tools: Sequence[messages.ToolInfo],
        missing: Mapping[str, DroppedTool],
    ) -> bool:
        """Add or replace a kernel, and return whether the views must be refreshed."""
        previous = self._kernels.get(kernel_id)
        if previous is not None and previous.notebook == notebook:
            label = previous.label
        else:
            others = {kernel.label for kernel in self._kernels.values() if kernel.id != kernel_id}
            label = _make_unique(make_label(notebook), others, MAX_NOTEBOOK)
        named = tuple(
            structs.replace(tool, name=label) if tool.kind == "notebook" else tool for tool in tools
        )
        kernel = _Kernel(kernel_id, notebook, label, named, missing)
        self._kernels[kernel_id] = kernel
        return previous is None or replace(previous, missing=missing) != kernel

    def rename_kernel(self, kernel_id: str, notebook: str) -> bool:
        """Give a kernel the new name of its notebook. Does nothing if the kernel is unknown.

        Returns:
            Whether the list that clients see has changed.
        """
        kernel = self._kernels.get(kernel_id)
        return kernel is not None and self.set_kernel(
            kernel_id, notebook=notebook, tools=kernel.tools, missing=kernel.missing
        )

    def remove_kernel(self, kernel_id: str, why: MissingTool | None = None) -> bool:
        """Remove a kernel and its tools. Does nothing if it is unknown.

        Args:
            kernel_id: The id of its record.
            why: Why its tools are missing, as the error for calls; None if they were never listed.

        Returns:
            Whether the list that clients see has changed.
        """
        return self._kernels.pop(kernel_id, None) is not None and self._refresh(why)

    def explain_removal(self, kernel_id: str, why: MissingTool) -> None:
        """Correct why a removed kernel's tools are missing."""
        for former in self._former.values():
            former.explain_again(kernel_id, why)

    def entries(self, kind: messages.Kind = "tool") -> tuple[CatalogEntry, ...]:
        """Return the tools in the list, those with a higher priority first.

        Tools of equal priority are in the order in which their kernels came, and within a kernel in
        the kernel's order. The result is the same object until something changes.

        Args:
            kind: Return prompts or resources instead.
        """
        return self._views[kind].entries

    @property
    def labels(self) -> dict[str, str]:
        """The notebooks' parts of full names, by kernel id."""
        return {kernel.id: kernel.label for kernel in self._kernels.values()}

    @property
    def all_entries(self) -> Iterator[CatalogEntry]:
        """The listed tools, then the prompts, then the resources."""
        for view in self._views.values():
            yield from view.entries

    def list_missing_tools(self) -> tuple[MissingTool, ...]:
        """Return the linked kernels' tools that are not listed, or listed under another name.

        Each comes with the reason. Tools that MCP itself would reject are not included.
        """
        missing: list[MissingTool] = []
        for kernel in self._kernels.values():
            dropped = (self._explain_dropped(kernel, name) for name in kernel.missing)
            missing += filter(None, dropped)
        missing += [
            self._explain_name(entry)
            for entry in self.all_entries
            if entry.is_renamed or (entry.tool.kind == "tool" and entry.name in RESERVED_NAMES)
        ]
        return tuple(missing)

    def find_listed_names(self) -> dict[str, list[messages.ListedName]]:
        """Return the tools that are not listed under their own name, by kernel id."""
        entries = [entry for entry in self.all_entries if entry.is_renamed]
        if not entries:  # almost always
            return {}
        reasons = {
            (missing.notebook, missing.tool): missing for missing in self.list_missing_tools()
        }
        names: dict[str, list[messages.ListedName]] = {}
        for entry in entries:
            missing = reasons[entry.notebook, entry.tool.name]
            names.setdefault(entry.kernel_id, []).append(
                messages.ListedName(
                    tool=entry.tool.name,
                    name=entry.uri or entry.name,
                    reason=missing.reason,
                    next_step=missing.next_step,
                )
            )
        return names

    def _explain_name(self, entry: CatalogEntry) -> MissingTool:
        name, view = entry.tool.name, self._views[entry.tool.kind]
        if entry.tool.kind == "resource":
            return explain_shared_uri(entry.notebook, name, entry.uri)
        if entry.tool.kind == "tool" and (name in self._reserved or entry.name in RESERVED_NAMES):
            return explain_reserved_name(entry.notebook, name, entry.long_name)
        if name in view.ambiguous:
            return explain_shared_name(entry.notebook, name, entry.name)
        if name in view.by_name or name in view.by_other_name:
            return explain_taken_name(entry.notebook, name, entry.name)
        return explain_invalid_name(entry.notebook, name, entry.name)

    def find(self, name: str, kind: messages.Kind = "tool") -> CatalogEntry:
        """Return the tool that a client means by this name.

        Args:
            name: The name.
            kind: Find a prompt or a resource instead.

        Raises:
            AmbiguousTool: Several kernels offer a tool of this name.
            OtherKind: The name is that of a prompt or a resource.
            ToolGone: There was a tool of this name some minutes ago.
            UnknownTool: No kernel offers a tool of this name.
        """
        view = self._views[kind]
        entry = view.find(name)
        if entry is not None:
            return entry
        if name in view.ambiguous:
            raise AmbiguousTool(name, view.ambiguous[name], kind)
        for other in messages.KINDS:
            if other != kind and self._views[other].find(name) is not None:
                raise OtherKind(name, other, kind)
        missing = self._find_dropped(name) or self._former[kind].find(name)
        if missing is not None:
            explanation = f"{missing.reason} {missing.next_step}"
            raise ToolGone(name, explanation, notebook=missing.notebook, kind=kind)
        if len(name) > 2 * MAX_NAME:  # not a typo, so not worth searching or echoing
            name = f"{name[: 2 * MAX_NAME]}..."
        names = [entry.name for entry in view.entries]
        close = list_close_words(name, names)
        others = (other for other in names if other not in close)
        raise UnknownTool(name, (*close, *others), kind)

    def list_missing_uris(self) -> list[str]:
        """Return the URIs and templates of resources for which `find` explains their absence."""
        return self._former["resource"].list_uris()

    def _find_dropped(self, name: str) -> MissingTool | None:
        for kernel in self._kernels.values():
            for tool in kernel.missing:
                if name in (tool, f"{kernel.label}.{tool}", _compose(kernel.label, tool)) and (
                    missing := self._explain_dropped(kernel, tool)
                ):
                    return missing
        return None

    def _explain_dropped(self, kernel: _Kernel, name: str) -> MissingTool | None:
        """Return a kernel's explanation for a tool that it dropped lately; None for other tools."""
        dropped = kernel.missing.get(name)
        if dropped is None or (dropped.at and not is_recent(dropped.at)):
            return None
        tools = (entry for entry in self.all_entries if entry.kernel_id == kernel.id)
        names = {entry.tool.name: entry.name for entry in tools}
        return explain_dropped(kernel.label, name, dropped, names.get(dropped.new_name or ""))

    def _refresh(self, why: MissingTool | None = None) -> bool:
        kernels = tuple(self._kernels.values())
        has_changed = False
        for kind, before in self._views.items():
            reserved = self._reserved if kind == "tool" else frozenset()
            now = _join(_select_kind(kernels, kind), reserved, before.listed_long)
            if kind == "resource":
                now = replace(now, entries=_add_uris(now.entries))
            if now.entries == before.entries:
                now = replace(now, entries=before.entries)  # the same object: nothing to announce
            has_changed = has_changed or _list_listed(now) != _list_listed(before)
            self._views[kind] = now
            self._remember_lost(kind, before, why)
        return has_changed

    def _remember_lost(self, kind: messages.Kind, before: _View, why: MissingTool | None) -> None:
        """Remember the explanations for names that no longer lead to a tool."""
        now = self._views[kind]
        lost = before.by_name.keys() | before.by_other_name.keys()
        lost -= now.by_name.keys() | now.by_other_name.keys() | now.ambiguous.keys()
        if not lost:
            return
        at = time.time()
        listed = {
            (entry.kernel_id, entry.tool.name): entry.uri or entry.name for entry in now.entries
        }
        for name in lost:
            entry = before.by_name.get(name) or before.by_other_name[name]
            kernel = self._kernels.get(entry.kernel_id)
            tool = entry.tool.name
            if kind == "notebook" and kernel is not None:
                explanation = None  # it has run
            elif kernel is None:
                explanation = why and structs.replace(why, notebook=entry.notebook, tool=tool)
            elif (new_name := listed.get((entry.kernel_id, tool))) is not None:
                explanation = explain_renamed(entry.notebook, tool, new_name, at)
            else:
                undeclared = explain_undeclared(entry.notebook, tool, at)
                explanation = self._explain_dropped(kernel, tool) or undeclared
            if explanation is not None:
                self._former[kind].remember(name, entry.kernel_id, explanation)


def _add_uris(entries: Sequence[CatalogEntry]) -> tuple[CatalogEntry, ...]:
    """Return resources with the URIs that they are served under."""
    uris = serve_uris([(entry.notebook, entry.tool.uri or "") for entry in entries])
    return tuple(replace(entry, uri=uri) for entry, uri in zip(entries, uris, strict=True))


def list_other_names(entry: CatalogEntry) -> list[str]:
    """Return the names that a tool can be found by, besides its listed name."""
    uri = entry.tool.uri
    uris = [] if uri is None else [uri, make_long_uri(entry.notebook, uri)]
    return [entry.long_name, entry.full_name, *uris]


def _list_listed(view: _View) -> list[tuple[str, messages.ToolInfo]]:
    """Return what clients see in the list."""
    return [(entry.uri or entry.name, entry.tool) for entry in view.entries]


def _select_kind(kernels: Sequence[_Kernel], kind: messages.Kind) -> Sequence[_Kernel]:
    """Return kernels with only their tools, prompts or resources."""
    return [
        replace(kernel, tools=tuple(tool for tool in kernel.tools if tool.kind == kind))
        for kernel in kernels
    ]


def _join(
    kernels: Sequence[_Kernel],
    reserved: frozenset[str],
    listed_long: Mapping[tuple[str, str, str], str],
) -> _View:
    offered_tools = [
        (kernel, name, tool)
        for kernel in kernels
        for name, tool in zip(_list_bare_names(kernel.tools), kernel.tools, strict=True)
    ]
    offers = Counter(name for _, name, _ in offered_tools)
    keys = [(kernel.id, kernel.label, name) for kernel, name, _ in offered_tools]
    kept = {key: listed_long[key] for key in keys if key in listed_long}
    taken = reserved | frozenset(kept.values())  # not available as bare names
    used = {*offers, *taken}  # a long name must hide neither a bare nor an ambiguous one
    by_name: dict[str, CatalogEntry] = {}
    by_other_name: dict[str, CatalogEntry] = {}
    ambiguous: dict[str, tuple[str, ...]] = {}
    for key, (kernel, name, tool) in zip(keys, offered_tools, strict=True):
        long_name = kept.get(key) or _make_unique(_compose(kernel.label, name), used, MAX_NAME)
        used.add(long_name)
        served = long_name if offers[name] > 1 or name in taken else name
        entry = CatalogEntry(served, kernel.id, kernel.label, tool, long_name)
        by_name[served] = by_other_name[long_name] = entry
        for other_name in list_other_names(entry):
            by_other_name.setdefault(other_name, entry)
        if served == long_name:
            kept[key] = long_name
        if offers[name] > 1:
            ambiguous[name] = (*ambiguous.get(name, ()), long_name)
    present = by_other_name | by_name
    with_related = {id(entry): _name_related_tools(entry, present) for entry in by_name.values()}
    by_name = {name: with_related[id(entry)] for name, entry in by_name.items()}
    by_other_name = {name: with_related[id(entry)] for name, entry in by_other_name.items()}
    entries = sorted(by_name.values(), key=lambda entry: -_read_priority(entry.tool))  # stable
    return _View(tuple(entries), by_name, by_other_name, ambiguous, kept)


def _name_related_tools(entry: CatalogEntry, present: Mapping[str, CatalogEntry]) -> CatalogEntry:
    """Return a tool whose description names its existing related tools, as they are served."""
    meta = entry.tool.meta or {}
    related = meta.get(meta_keys.RELATED)
    if not related or not isinstance(related, list):
        return entry
    # Prefer the same notebook's tools.
    candidates = [present.get(f"{entry.notebook}.{name}") or present.get(name) for name in related]
    names = [other.name for other in candidates if other is not None]
    meta = {key: value for key, value in meta.items() if key != meta_keys.RELATED}
    if not names:
        return replace(entry, tool=structs.replace(entry.tool, meta=meta or None))
    sections = [entry.tool.description, f"See also: {', '.join(names)}."]
    tool = structs.replace(
        entry.tool,
        description="\n\n".join(section for section in sections if section),
        meta={**meta, meta_keys.RELATED: names},
    )
    return replace(entry, tool=tool)


def _read_priority(tool: messages.ToolInfo) -> float:
    priority = (tool.meta or {}).get(meta_keys.PRIORITY, 0)
    usable = isinstance(priority, int | float) and abs(priority) <= sys.float_info.max
    return priority if usable else 0


def _list_bare_names(tools: Sequence[messages.ToolInfo]) -> list[str]:
    """Return the tools' names, restricted to valid characters and unique within their kernel."""
    names: dict[str, None] = {}
    for tool in tools:
        names[_make_unique(_make_safe(tool.name) or "tool", names, MAX_NAME)] = None
    return list(names)


def make_label(notebook: str) -> str:
    """Return a notebook's name without accents and restricted to valid characters."""
    plain = "".join(c for c in normalize("NFKD", notebook) if not combining(c))
    return _make_safe(plain).strip("_") or "notebook"


def _make_safe(text: str) -> str:
    return _NOT_IN_NAME.sub("_", text)


def _compose(label: str, name: str) -> str:
    """Return the long name of a notebook's tool, before it is made unique."""
    name = _make_safe(name)
    room = max(MAX_LONG_NAME - 1 - len(name), MIN_NOTEBOOK)
    notebook = re.sub("__+", "_", label)[:room].strip("_-") or "notebook"
    return f"{notebook}_{name}"[:MAX_NAME]


def _make_unique(name: str, used: Container[str], limit: int) -> str:
    """Return the name, cut to the limit and with a numeric suffix if it is in use."""
    candidate = name[:limit]
    for number in itertools.count(2):
        if candidate not in used:
            break
        suffix = f"-{number}"
        candidate = name[: limit - len(suffix)] + suffix
    return candidate
