"""Kernels that run the same notebook: their place in the catalogue, and the kernel for each call.

Runs on the bridge's event loop; no I/O. `Links` reports the events of all kernels. Messages from
ordinary kernels go to the catalogue unchanged. For the replicas of a notebook:

1. They share one name and one place in the catalogue, under the id of the notebook.
2. A tool is listed while any serving replica offers it. If replicas declare it differently, for
   example after a call that redeclared it in one of them, the first replica's declaration is
   listed, and calls go only to replicas with the same declaration.
3. A call goes to the replica with the fewest open calls; among equals, to the one whose last call
   was the longest ago. A call that needs the main thread goes to the replica where the fewest calls
   hold or wait for it, regardless of calls in threads.
4. A replica that is away gets no calls. The notebook is away when all its replicas are.
5. Calls of a pinned client go to its replica, and fail while that is away; if it will not return,
   they go to another one. A repetition of a call that its client gave up goes to the replica that
   has the first call, also for a moment after its result was sent.
6. Replicas that do not serve, because they are warming up or being replaced, stay linked: they
   finish their calls, and keep their resources and tasks.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

from msgspec import structs

from mcp_notebook.bridge.kernels.catalog import Catalog, CatalogEntry
from mcp_notebook.bridge.kernels.link import Link
from mcp_notebook.discovery.records import Record
from mcp_notebook.errors import KernelGone
from mcp_notebook.text.missing_tools import DroppedTool
from mcp_notebook.wire import messages

MAX_PINNED = 10_000
"""Size of the LRU cache of pinned names."""
_NO_LINK = "The kernel that offered {name!r} is gone. List the tools again."


@dataclass(eq=False)
class _Replica:
    tools: Mapping[str, messages.ToolInfo] = field(default_factory=dict)
    """The tools, by their names in the kernel."""
    missing: Mapping[str, DroppedTool] = field(default_factory=dict)
    """The tools that it dropped in the last minutes, by name."""
    away: str | None = "Its kernel is being started."
    """Why the kernel is away, as the error for calls of its tools; None if it is not."""
    is_lost: bool = False
    """Whether it is away for good."""
    last_call: int = 0
    """The number of its last call among those of all replicas."""


@dataclass(eq=False)
class _Notebook:
    id: str
    name: str = ""
    replicas: dict[str, _Replica] = field(default_factory=dict)
    """All replicas, by the ids of their kernels."""
    serving: tuple[str, ...] = ()
    """The ids of the kernels that get calls, in order."""
    tools: Mapping[str, messages.ToolInfo] = field(default_factory=dict)
    """The listed tools, by name."""
    offers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The ids of the kernels whose declaration is the listed one, by tool name."""


class Replicas:
    """The replicas of all notebooks of a bridge.

    Args:
        catalog: The tools of all kernels.
    """

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._notebooks: dict[str, _Notebook] = {}
        self._notebook_of: dict[str, _Notebook] = {}
        """The notebook of each kernel, by the kernel's id."""
        self._calls = 0
        self._pins = _Pins()
        self._forgetting: dict[str, asyncio.TimerHandle] = {}
        """Timers that forget the kernels of kept calls that have ended, by the calls' keys."""

    # -- adding and removing -----------------------------------------------------------------------

    def add(self, notebook_id: str, kernel_id: str) -> None:
        """Make a kernel a replica of a notebook before its first link; it does not serve yet."""
        notebook = self._notebooks.setdefault(notebook_id, _Notebook(notebook_id))
        notebook.replicas[kernel_id] = _Replica()
        self._notebook_of[kernel_id] = notebook

    def serve(self, notebook_id: str, kernel_ids: Sequence[str]) -> bool:
        """Send a notebook's calls to these kernels only.

        Returns:
            Whether the list that clients see has changed.
        """
        notebook = self._notebooks[notebook_id]
        notebook.serving = tuple(kernel_ids)
        return self._refresh(notebook)

    def remove(self, kernel_id: str) -> None:
        """Forget a replica that does not serve."""
        del self._notebook_of.pop(kernel_id).replicas[kernel_id]

    def has_other(self, kernel_id: str) -> bool:
        """Return whether another kernel of the same notebook answers its calls."""
        notebook = self._notebook_of.get(kernel_id)
        return notebook is not None and any(
            notebook.replicas[other].away is None
            for other in notebook.serving
            if other != kernel_id
        )

    def find_entry_id(self, kernel_id: str) -> str:
        """Return the id under which the catalogue has a kernel's tools."""
        notebook = self._notebook_of.get(kernel_id)
        return kernel_id if notebook is None else notebook.id

    # -- events of kernels -------------------------------------------------------------------------

    def take_tools(self, record: Record, message: messages.Welcome | messages.Tools) -> bool:
        """Set a kernel's tools, like `Catalog.set_kernel`."""
        notebook = self._notebook_of.get(record.id)
        if notebook is None:
            return self._catalog.set_kernel(
                record.id, notebook=record.name, tools=message.declarations, missing=message.missing
            )
        notebook.name = record.name
        replica = notebook.replicas[record.id]
        replica.tools = {tool.name: tool for tool in message.declarations}
        replica.missing, replica.away = message.missing, None
        return self._refresh(notebook)

    def set_away(self, kernel_id: str, reason: str, *, is_final: bool = False) -> bool:
        """Note that a kernel is away, and whether for good; like `Catalog.set_away`."""
        notebook = self._notebook_of.get(kernel_id)
        if notebook is None:
            return self._catalog.set_away(kernel_id, reason)
        replica = notebook.replicas[kernel_id]
        replica.away, replica.is_lost = reason, is_final
        return self._refresh(notebook)

    def _refresh(self, notebook: _Notebook) -> bool:
        serving = {id_: notebook.replicas[id_] for id_ in notebook.serving}
        present = {id_: replica for id_, replica in serving.items() if replica.away is None}
        if not present:
            replicas = sorted(serving.values(), key=lambda replica: replica.is_lost)  # stable
            reasons = [replica.away for replica in replicas if replica.away is not None]
            return bool(reasons) and self._catalog.set_away(notebook.id, reasons[0])
        tools: dict[str, messages.ToolInfo] = {}
        missing: dict[str, DroppedTool] = {}
        for replica in present.values():
            tools = {**replica.tools, **tools}
            missing = {**replica.missing, **missing}
        first = next(iter(present.values()))
        # In the order of the first replica, followed by tools that only others have.
        notebook.tools = {name: tools[name] for name in {**first.tools, **tools}}
        notebook.offers = {
            name: tuple(
                id_
                for id_, replica in present.items()
                if name in replica.tools and _is_same(replica.tools[name], tool)
            )
            for name, tool in tools.items()
        }
        return self._catalog.set_kernel(
            notebook.id,
            notebook=notebook.name,
            tools=tuple(notebook.tools.values()),
            missing={name: dropped for name, dropped in missing.items() if name not in tools},
        )

    # -- calls -------------------------------------------------------------------------------------

    def choose(
        self,
        entry: CatalogEntry,
        links: Mapping[str, Link],
        client: Any = None,
        call_key: str | None = None,
    ) -> Link:
        """Return the link to the kernel that a call of a tool goes to.

        Args:
            entry: The tool.
            links: The open links, by the ids of their kernels.
            client: The pinned client: a session, or the name of a caller; None if not pinned.
            call_key: Identifies a call that may continue when its client gives it up.

        Raises:
            KernelGone: All kernels that offer the tool are gone.
        """
        notebook = self._notebooks.get(entry.kernel_id)
        if notebook is None:
            link = links.get(entry.kernel_id)
            if link is None:
                raise _explain_absence(entry)
            return link
        earlier = None
        if call_key is not None:
            self._keep_pin(call_key)
            earlier = self._pins.find(call_key, notebook.id)
        if earlier is not None and earlier in links:  # even if it no longer serves
            return links[earlier]
        chosen = None if client is None else self._pins.find(client, notebook.id)
        if chosen not in notebook.serving or notebook.replicas[chosen].is_lost:
            chosen = self._choose_least_busy(notebook, entry, links)
        elif chosen not in links:
            raise KernelGone(notebook.replicas[chosen].away or str(_explain_absence(entry)))
        for who in (client, call_key):
            if who is not None:
                self._pins.set(who, notebook.id, chosen)
        self._calls += 1
        notebook.replicas[chosen].last_call = self._calls
        return links[chosen]

    def forget_kept(self, entry: CatalogEntry, call_key: str, is_taken: Callable[[], bool]) -> None:
        """Unpin a call in a moment, unless the same call arrives before.

        Args:
            entry: The tool.
            call_key: Identifies the call.
            is_taken: Returns, when the time is over, whether the client has taken the result.
        """

        def forget() -> None:
            del self._forgetting[call_key]
            if is_taken():
                self._pins.forget(call_key, entry.kernel_id)

        self._keep_pin(call_key)
        loop = asyncio.get_running_loop()
        self._forgetting[call_key] = loop.call_later(messages.HOLD_SECONDS, forget)

    def _keep_pin(self, call_key: str) -> None:
        if (timer := self._forgetting.pop(call_key, None)) is not None:
            timer.cancel()

    def _choose_least_busy(
        self, notebook: _Notebook, entry: CatalogEntry, links: Mapping[str, Link]
    ) -> str:
        linked = [id_ for id_ in notebook.offers.get(entry.tool.name, ()) if id_ in links]
        if not linked:
            raise _explain_absence(entry)

        needs_main = entry.tool.place != "apart"

        def rank(kernel_id: str) -> tuple[int, int, int]:
            link = links[kernel_id]
            last_call = notebook.replicas[kernel_id].last_call
            return link.main_calls if needs_main else 0, link.open_calls, last_call

        return min(linked, key=rank)

    def find_revision(self, entry: CatalogEntry, kernel_id: str) -> str | None:
        """Return a kernel's revision of the declaration that a person has agreed to.

        Each kernel has its own revision for the same declaration.
        """
        notebook = self._notebooks.get(entry.kernel_id)
        revision, name = entry.tool.revision, entry.tool.name
        if notebook is None or kernel_id not in notebook.offers.get(name, ()):
            return revision
        # Otherwise the entry's declaration is outdated, and the kernel refuses the call.
        is_listed = notebook.tools[name].revision == revision
        return notebook.replicas[kernel_id].tools[name].revision if is_listed else revision


class _Pins:
    """The kernel of a notebook that each pinned client's calls go to, from its first call on.

    A client is a session, held by a weak reference, or a name, held in an LRU cache.
    """

    def __init__(self) -> None:
        self._of_sessions: WeakKeyDictionary[Any, dict[str, str]] = WeakKeyDictionary()
        self._of_names: OrderedDict[tuple[str, str], str] = OrderedDict()

    def find(self, who: Any, notebook_id: str) -> str | None:
        """Return the id of a client's kernel, or None."""
        if not isinstance(who, str):
            return self._of_sessions.get(who, {}).get(notebook_id)
        if (key := (who, notebook_id)) in self._of_names:
            self._of_names.move_to_end(key)
        return self._of_names.get(key)

    def set(self, who: Any, notebook_id: str, kernel_id: str) -> None:
        """Pin a client to a kernel.

        Args:
            who: A session, which this does not keep alive, or a name.
            notebook_id: The id of the notebook.
            kernel_id: The id of the kernel.
        """
        if not isinstance(who, str):
            self._of_sessions.setdefault(who, {})[notebook_id] = kernel_id
            return
        self._of_names[who, notebook_id] = kernel_id
        if len(self._of_names) > MAX_PINNED:
            self._of_names.popitem(last=False)

    def forget(self, name: str, notebook_id: str) -> None:
        """Forget the kernel of a name."""
        self._of_names.pop((name, notebook_id), None)


def _explain_absence(entry: CatalogEntry) -> KernelGone:
    return KernelGone(_NO_LINK.format(name=entry.name))


def _is_same(tool: messages.ToolInfo, other: messages.ToolInfo) -> bool:
    return tool == structs.replace(other, revision=tool.revision, items=tool.items)
