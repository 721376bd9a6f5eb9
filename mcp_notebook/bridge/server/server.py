"""The MCP server of a bridge: builds its parts.

Runs on the bridge's event loop. The parts do not depend on how a request arrives: plain requests
are answered without the SDK (`transports.fast_path`), all others by the SDK's server
(`sdk_server`), which is built when it is first needed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import anyio

from mcp_notebook.bridge.access.caller import CURRENT_CALLER, OWNER, Caller
from mcp_notebook.bridge.access.caller_limits import RateLimits
from mcp_notebook.bridge.access.permitted_tools import PermittedTools
from mcp_notebook.bridge.kernels.catalog import Catalog
from mcp_notebook.bridge.kernels.links import Links
from mcp_notebook.bridge.server.calls.call_starter import CallStarter
from mcp_notebook.bridge.server.calls.gates import (
    CapabilityGate,
    Gate,
    Gates,
    RateGate,
    Room,
    SizeGate,
    StartGate,
    TaskGate,
    ToolGate,
)
from mcp_notebook.bridge.server.calls.tool_calls import ToolCalls
from mcp_notebook.bridge.server.completion import Completion
from mcp_notebook.bridge.server.connected_clients import ConnectedClients, tell_kernels
from mcp_notebook.bridge.server.consent.ask_consent import Consent
from mcp_notebook.bridge.server.consent.policy import ASK_FOR_CONFIRM, ConsentPolicy
from mcp_notebook.bridge.server.declaration import ABOUT, NO_TOOLS
from mcp_notebook.bridge.server.lists import meta_tools
from mcp_notebook.bridge.server.lists.call_progress import CallProgress
from mcp_notebook.bridge.server.lists.change_notices import ChangeNotices
from mcp_notebook.bridge.server.lists.notification_streams import OpenStreams
from mcp_notebook.bridge.server.lists.pages import Page
from mcp_notebook.bridge.server.lists.resource_notices import ResourceNotices
from mcp_notebook.bridge.server.lists.resource_subscriptions import ResourceSubscriptions
from mcp_notebook.bridge.server.lists.resources import ResourceRequests
from mcp_notebook.bridge.server.lists.tool_lists import ToolLists
from mcp_notebook.bridge.server.lists.tool_search import ToolSearch
from mcp_notebook.bridge.server.protocol.accommodations import ResultAdapter
from mcp_notebook.bridge.server.protocol.client_request import ClientRequest
from mcp_notebook.bridge.server.protocol.client_sessions import ClientSessions
from mcp_notebook.bridge.server.tasks.tasks import NO_TASKS, TaskPolicy, Tasks
from mcp_notebook.bridge.telemetry.call_events import CallObserver
from mcp_notebook.errors import CallError
from mcp_notebook.settings.limits import DEFAULT_LIMITS, Limits
from mcp_notebook.settings.settings import MetaTools
from mcp_notebook.wire import messages

if TYPE_CHECKING:
    from mcp.server.lowlevel.server import Server


class NotebookServer:
    """The MCP server of one bridge.

    Args:
        catalog: The tools, kept up to date by the links.
        links: The links to the kernels, which run the calls and read the resources.
        ready: Waits until the first tools can be expected, if they need time to appear.
        settled: Waits a moment for the first tools, and returns whether they are known now; None:
            they are.
        can_list: Waits until the first list can be answered, perhaps earlier; None: `ready`.
        default_caller: The caller if the transport does not name one.
        observers: Notified of the start and the end of each call.
        consent: Which calls need a person's consent.
        runs_notebooks: Whether notebooks may be listed that have to run first.
        with_meta_tools: Also offer the tools of `bridge.lists.meta_tools`, under reserved names;
            "only": list no others.
        page_size: Tools, or resources, on one page of a list. None: all tools, and the default
            number of resources.
        limits: Limits of requests and calls.
        tasks: Which calls outlive their clients.
    """

    def __init__(  # noqa: PLR0913 - one for each option
        self,
        catalog: Catalog,
        links: Links,
        *,
        ready: Callable[[], Awaitable[None]] | None = None,
        settled: Callable[[], Awaitable[bool]] | None = None,
        can_list: Callable[[], Awaitable[None]] | None = None,
        default_caller: Caller = OWNER,
        observers: Sequence[CallObserver] = (),
        consent: ConsentPolicy = ASK_FOR_CONFIRM,
        runs_notebooks: bool = False,
        with_meta_tools: MetaTools = False,
        page_size: int | None = None,
        limits: Limits = DEFAULT_LIMITS,
        tasks: TaskPolicy = NO_TASKS,
    ) -> None:
        own = meta_tools.list_offered(with_meta_tools)
        own_names = {tool.name for tool in (*own, meta_tools.READER)}
        if runs_notebooks:
            own_names.add(meta_tools.RUN)
        catalog.reserve(own_names)
        self._links = links
        self._settled = settled
        self.default_caller = default_caller
        """The caller if the transport does not name one."""
        self.tools = PermittedTools(catalog)
        """The tools, as callers see them."""
        self.request_rates = RateLimits(
            "requests",
            per_caller=limits.max_caller_requests_per_minute,
            in_all=limits.max_requests_per_minute,
        )
        """Used by transports to count requests: over HTTP before reading them."""
        self._about = f"{ABOUT} {meta_tools.describe_offered(with_meta_tools)}".rstrip()
        list_seen = self._list_others if with_meta_tools == "only" else self.tools.list_entries
        self.changes = ChangeNotices(list_seen, default_caller)
        """Notifies clients that the list of tools has changed."""
        self.open_streams = OpenStreams(limits, default_caller)
        self.resource_notices = ResourceNotices(self.changes)
        """Notifies clients of resources; told when a kernel was linked or unlinked."""
        self.completion = Completion(self.tools, links, default_caller, ready)
        """Completes arguments of prompts and of templates."""
        self.clients = ConnectedClients(default_caller, partial(tell_kernels, links))
        self.sessions = ClientSessions()
        progress = CallProgress(links)
        self.resources = ResourceRequests(
            links,
            self.resource_notices,
            self.tools,
            default_caller=default_caller,
            ready=ready,
            page_size=page_size,
            progress=progress,
            observers=observers,
        )
        """Answers requests for resources."""
        self.subscriptions = ResourceSubscriptions(
            self.changes, self.resources.declared, default_caller, links.replicas.find_entry_id
        )
        """Tells clients of changes of single resources."""
        self.changes.on_subscription = self.subscriptions.note_declaration
        links.on_resource_changes = self.subscriptions.note_kernel_change
        results = ResultAdapter(
            self.tools, self.resources.note_result, with_meta_tools=with_meta_tools
        )
        self.lists = ToolLists(
            self.tools,
            results,
            own,
            page_size,
            can_list or ready,
            lists_others=with_meta_tools != "only",
        )
        """Answers requests for the list of tools."""
        self.tasks = Tasks(
            links, tasks, results.adapt, ready=ready, with_meta_tools=with_meta_tools
        )
        """The tasks of the clients."""
        self._consent = Consent(consent, links, self.tools)
        self._room = Room(limits)
        self._tool_gate = ToolGate(
            self.tools, ready, ToolSearch(self.tools), frozenset(own_names), NO_TOOLS
        )
        gates = (
            RateGate(limits),
            self._tool_gate,
            StartGate(self.tools, links),
            SizeGate(limits),
            self._room,
        )
        self.calls = ToolCalls(
            CallStarter(links, self.tools, Gates(gates, self._choose_gates), self._room, observers),
            results=results,
            changes=self.changes,
            tasks=self.tasks,
            resources=self.resources,
            progress=progress,
            sessions=self.sessions,
        )
        """Answers calls of tools."""

    def _list_others(self, caller: Caller, kind: messages.Kind) -> Sequence[object]:
        """Return the prompts or resources that a caller sees; no tools: that list never changes."""
        return () if kind == "tool" else self.tools.list_entries(caller, kind)

    def _choose_gates(self, tool: messages.ToolInfo) -> Sequence[Gate]:
        """Return the gates that only calls of some tools pass, this tool's among them."""
        gates: list[Gate] = []
        if tool.requires:
            gates.append(CapabilityGate())
        if self.tasks.may_keep(tool):
            gates.append(TaskGate(self.tasks.find_keep))
        if self._consent.applies_to(tool):
            gates += [self._consent, self._room]  # again, because the answer takes its time
        return gates

    @cached_property
    def mcp(self) -> Server[Any]:
        """The SDK's server; asking for it loads the SDK."""
        from mcp_notebook.bridge.server import sdk_server  # noqa: PLC0415 - see `postponed_sdk`

        return sdk_server.build(self)

    async def write_instructions(self, caller: Caller) -> str:
        """Return the instructions for a caller's model: the purpose of the server."""
        are_known = self._settled is None or await self._settled()
        has_any = self.tools.list_entries(caller) or self.tools.list_entries(caller, "notebook")
        return self._about if has_any or not are_known else f"{self._about} {NO_TOOLS}"

    def find_input_schema(self, name: str) -> dict[str, Any] | None:
        """Return the input schema of a tool that the current caller may call, or None."""
        if self._tool_gate.is_own(name):
            return meta_tools.INPUT_SCHEMAS[name]
        try:
            caller = CURRENT_CALLER.get() or self.default_caller
            return self.tools.find(caller, name).tool.input_schema
        except CallError:
            return None

    async def find_page(
        self, method: str, request: ClientRequest, cursor: str | None
    ) -> tuple[str, Page]:
        """Return a page of the list that a method requests, and the name of its items.

        Args:
            method: The method, such as ``prompts/list``.
            request: The request.
            cursor: From the previous page; None for the first page.

        Raises:
            ProtocolError: There is no such page.
        """
        if method == "resources/list":
            return "resources", await self.resources.find_page(request, cursor)
        if method == "resources/templates/list":
            return "resourceTemplates", await self.resources.find_template_page(request, cursor)
        if method == "prompts/list":
            return "prompts", await self.lists.find_page(request, cursor, "prompt")
        return "tools", await self.lists.find_page(request, cursor)

    def note_change(self) -> None:
        """Note that the list of tools has changed; clients are notified soon."""
        self.changes.note_change()
        self.subscriptions.note_declarations()

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
        self._room.close()
        self._consent.close()
        self.calls.close()
        self.changes.close()
        self._links.end_calls()
