"""The MCP server of a bridge: builds its parts.

Runs on the bridge's event loop. The parts do not depend on how a request arrives: the transports
hand each to `requests`.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import anyio

from mcp_notebook.bridge.access.caller import OWNER, Caller
from mcp_notebook.bridge.access.caller_limits import RateLimits
from mcp_notebook.bridge.access.permitted_tools import PermittedTools
from mcp_notebook.bridge.kernels.catalog import Catalog
from mcp_notebook.bridge.kernels.link import Link
from mcp_notebook.bridge.kernels.links import Links
from mcp_notebook.bridge.server.calls.call_starter import CallStarter
from mcp_notebook.bridge.server.calls.gates import Gates
from mcp_notebook.bridge.server.calls.tool_calls import ToolCalls
from mcp_notebook.bridge.server.completion import Completion
from mcp_notebook.bridge.server.consent.ask_consent import Consent
from mcp_notebook.bridge.server.consent.policy import ASK_FOR_CONFIRM, ConsentPolicy
from mcp_notebook.bridge.server.declaration import ABOUT, PROPOSALS
from mcp_notebook.bridge.server.forms.accommodations import ResultAdapter
from mcp_notebook.bridge.server.listing.change_notices import ChangeNotices
from mcp_notebook.bridge.server.listing.notification_streams import OpenStreams
from mcp_notebook.bridge.server.listing.tool_lists import ToolLists
from mcp_notebook.bridge.server.own_tools import meta_tools
from mcp_notebook.bridge.server.requests import Requests
from mcp_notebook.bridge.server.resources.resource_notices import ResourceNotices
from mcp_notebook.bridge.server.resources.resource_subscriptions import ResourceSubscriptions
from mcp_notebook.bridge.server.resources.resources import ResourceRequests
from mcp_notebook.bridge.server.sessions.connected_clients import ConnectedClients
from mcp_notebook.bridge.server.tasks.tasks import Tasks
from mcp_notebook.bridge.telemetry.audit_log import AuditLog
from mcp_notebook.errors import CallError
from mcp_notebook.settings.limits import DEFAULT_LIMITS, Limits
from mcp_notebook.settings.settings import MetaTools, Settings
from mcp_notebook.wire import messages

_REQUESTS_FOR_CALL = 2
"""A caller may send as many requests of any kind for each call that it may make."""


async def _go_on() -> None:
    """Wait for nothing: the first tools are known."""


async def _are_known() -> bool:
    return True


@dataclass(frozen=True, kw_only=True)
class FirstTools:
    """How requests wait for the first tools, if these need time to appear."""

    ready: Callable[[], Awaitable[None]] = _go_on
    """Waits until they can be expected."""
    can_list: Callable[[], Awaitable[None]] | None = None
    """Waits until the first list can be answered, perhaps earlier; None: `ready`."""
    settled: Callable[[], Awaitable[bool]] = _are_known
    """Waits a moment for them, and returns whether they are known now."""


@dataclass(frozen=True, kw_only=True)
class ServerOptions:
    """What a server offers, and to how many."""

    consent: ConsentPolicy = ASK_FOR_CONFIRM
    """Which calls need a person's consent."""
    runs_notebooks: bool = False
    """Whether notebooks may be listed that have to run first."""
    meta_tools: MetaTools = False
    """Also offer the tools of `own_tools.meta_tools`, under reserved names; "only": list no
    others."""
    page_size: int | None = None
    """Tools, or resources, on one page of a list. None: all tools, and the default number of
    resources."""
    limits: Limits = DEFAULT_LIMITS
    """Limits of requests and calls."""
    task_after: float = math.inf
    """Seconds after which a call that still runs becomes a task."""

    @classmethod
    def from_settings(cls, settings: Settings, *, runs_notebooks: bool = False) -> Self:
        """Return the options in the settings."""
        return cls(
            consent=ConsentPolicy.from_settings(settings),
            runs_notebooks=runs_notebooks,
            meta_tools=settings.meta_tools,
            limits=settings,
            task_after=settings.task_after,
        )


class NotebookServer:
    """The MCP server of one bridge.

    Args:
        catalog: The tools, kept up to date by the links.
        links: The links to the kernels, which run the calls and read the resources.
        options: What it offers.
        first_tools: How requests wait for the first tools.
        default_caller: The caller if the transport does not name one.
        audit: Notified of the start and the end of each call.
    """

    def __init__(  # noqa: PLR0913 - its parts need each
        self,
        catalog: Catalog,
        links: Links,
        options: ServerOptions,
        *,
        first_tools: FirstTools = FirstTools(),
        default_caller: Caller = OWNER,
        audit: AuditLog | None = None,
    ) -> None:
        audit = AuditLog() if audit is None else audit
        ready, limits = first_tools.ready, options.limits
        can_list = first_tools.can_list or ready
        page_size, with_meta_tools = options.page_size, options.meta_tools
        self._catalog = catalog
        self._links = links
        self._client_counts: Sequence[messages.ClientCount] = ()
        self._settled = first_tools.settled
        self.default_caller = default_caller
        """The caller if the transport does not name one."""
        self.tools = PermittedTools(catalog)
        """The tools, as callers see them."""
        self.request_rates = RateLimits(
            "requests",
            per_caller=_REQUESTS_FOR_CALL * limits.max_caller_calls_per_minute,
        )
        """Used by transports to count requests: over HTTP before reading them."""
        self._about = f"{ABOUT} {meta_tools.describe_offered(with_meta_tools)}".rstrip()
        lists_others = with_meta_tools != "only"
        list_seen = self.tools.list_entries if lists_others else self._list_others
        self.changes = ChangeNotices(list_seen)
        """Notifies clients that the list of tools has changed."""
        self.open_streams = OpenStreams(limits)
        self.resource_notices = ResourceNotices(self.changes)
        """Notifies clients of resources."""
        self.completion = Completion(self.tools, links, ready)
        """Completes arguments of prompts and of templates."""
        self.clients = ConnectedClients(self._note_clients)
        self.resources = ResourceRequests(
            links,
            self.resource_notices,
            self.tools,
            ready=ready,
            can_list=can_list,
            page_size=page_size,
            audit=audit,
        )
        """Answers requests for resources."""
        self.subscriptions = ResourceSubscriptions(self.changes, self.resources.declared)
        """Tells clients of changes of single resources."""
        results = ResultAdapter(
            self.tools, self.resources.note_result, with_meta_tools=with_meta_tools
        )
        own = meta_tools.list_offered(with_meta_tools)
        self.lists = ToolLists(
            self.tools,
            results,
            self.changes,
            own,
            page_size,
            can_list,
            lists_others=lists_others,
        )
        """Answers requests for the list of tools."""
        self.tasks = Tasks(links, options.task_after, results.adapt, ready=ready)
        """The tasks of the clients."""
        self._consent = Consent(options.consent, links, self.tools)
        self._own = {tool.name for tool in (*own, meta_tools.READER, meta_tools.RESULTS)}
        if options.runs_notebooks:
            self._own.add(meta_tools.RUN)
        catalog.reserve(self._own)
        self._gates = Gates(
            self.tools, links, ready, self._own, self._consent.ask_if_needed, limits
        )
        self.calls = ToolCalls(
            CallStarter(links, self.tools, self._gates, audit),
            results=results,
            changes=self.changes,
            tasks=self.tasks,
            resources=self.resources,
        )
        """Answers calls of tools."""
        self.requests = Requests(self)
        """Answers all requests."""
        self._hear(links)

    def _hear(self, links: Links) -> None:
        """Have clients notified of what the links report."""
        self.changes.on_subscription = self.subscriptions.note_declaration
        links.on_change = self.note_change
        links.on_link = self._note_link
        links.on_resource_changes = self.subscriptions.note_kernel_change

    def _list_others(self, caller: Caller, kind: messages.Kind) -> Sequence[object]:
        """Return the prompts or resources that a caller sees; no tools: that list never changes."""
        return () if kind == "tool" else self.tools.list_entries(caller, kind)

    async def write_instructions(self, caller: Caller) -> str:
        """Return the instructions for a caller's model: the purpose of the server."""
        are_known = await self._settled()
        tools = self.tools.list_entries(caller)
        has_any = tools or self.tools.list_entries(caller, "notebook")
        if any(entry.tool.proposes for entry in tools):
            return f"{self._about} {PROPOSALS}"
        return self._about if has_any or not are_known else f"{self._about} {meta_tools.NO_TOOLS}"

    def find_input_schema(self, name: str, caller: Caller) -> dict[str, Any] | None:
        """Return the input schema of a tool that a caller may call, or None."""
        if name in self._own:
            return meta_tools.INPUT_SCHEMAS[name]
        try:
            return self.tools.find(caller, name).tool.input_schema
        except CallError:
            return None

    def note_change(self) -> None:
        """Note that the list of tools has changed; clients are notified soon."""
        self.changes.note_change()
        self.subscriptions.note_declarations()
        self._tell_kernels()

    def _note_link(self, link: Link) -> None:
        """Note that a kernel was linked or unlinked."""
        self.resource_notices.note_kernel(link.record.id)
        self._tell_kernels()

    def _note_clients(self, clients: Sequence[messages.ClientCount]) -> None:
        self._client_counts = clients
        self._tell_kernels()

    def _tell_kernels(self) -> None:
        """Tell the kernels, for display, of the clients and of tools that have other names."""
        names = self._catalog.find_listed_names()
        for link in self._links.open_links:
            listed = names.get(link.entry_id, [])
            link.tell_clients(messages.Clients(clients=[*self._client_counts], names=listed))

    async def announce_changes(self, first: Callable[[], Awaitable[None]] | None = None) -> None:
        """Notify clients of new lists and kernels of clients, once for each burst; runs forever.

        Args:
            first: Waits until clients can get their first list.
        """
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self.changes.run, first)
            tasks.start_soon(self.resource_notices.run)
            tasks.start_soon(self.subscriptions.run)
            tasks.start_soon(self.clients.run)

    def close(self) -> None:
        """End subscriptions gracefully, cancel and answer the open calls, and start no more."""
        self._gates.close()
        self._consent.close()
        self.calls.close()
        self.changes.close()
        self._links.end_calls()
