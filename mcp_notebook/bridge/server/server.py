"""The MCP server of a bridge: builds its parts, and answers what comes through the SDK.

Runs on the bridge's event loop. One low-level ``Server`` of the SDK serves both eras of the
protocol: the handshake up to 2025-11-25, and 2026-07-28. Clients always get valid messages: a call
that fails in any way is a result with ``isError``, and a tool that MCP does not accept is left out
of the list instead of breaking it.
"""

import logging
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, cast

import anyio
import anyio.to_thread
import mcp_types as types
from mcp.server.caching import CacheableMethod, CacheHint
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel.server import NotificationOptions, Server
from mcp.server.models import InitializationOptions

from mcp_notebook._version import __version__
from mcp_notebook.bridge.access.caller import CURRENT_CALLER, OWNER, Caller
from mcp_notebook.bridge.access.permitted_tools import PermittedTools
from mcp_notebook.bridge.kernels.catalog import Catalog
from mcp_notebook.bridge.kernels.links import Links
from mcp_notebook.bridge.server.calls.call_starter import CallStarter
from mcp_notebook.bridge.server.calls.gates import (
    RateGate,
    Room,
    SizeGate,
    StartGate,
    TaskGate,
    ToolGate,
)
from mcp_notebook.bridge.server.calls.tool_calls import ToolCalls
from mcp_notebook.bridge.server.connected_clients import ConnectedClients, tell_kernels
from mcp_notebook.bridge.server.consent.consent import Consent
from mcp_notebook.bridge.server.consent.policy import ASK_FOR_CONFIRM, ConsentPolicy
from mcp_notebook.bridge.server.lists import meta_tools
from mcp_notebook.bridge.server.lists.change_notices import ChangeNotices
from mcp_notebook.bridge.server.lists.news_streams import OpenStreams
from mcp_notebook.bridge.server.lists.resource_notices import ResourceNotices
from mcp_notebook.bridge.server.lists.resources import ResourceRequests
from mcp_notebook.bridge.server.lists.tool_lists import ToolLists
from mcp_notebook.bridge.server.protocol.accommodations import (
    NewTools,
)
from mcp_notebook.bridge.server.protocol.client_request import (
    find_caller,
    get_connection,
    read_request,
)
from mcp_notebook.bridge.server.protocol.client_sessions import ClientSessions
from mcp_notebook.bridge.server.protocol.result_forms import (
    make_call_result,
)
from mcp_notebook.bridge.server.request_rates import RequestRates
from mcp_notebook.bridge.server.tasks.forms import TaskForm
from mcp_notebook.bridge.server.tasks.notices import TaskNotices
from mcp_notebook.bridge.server.tasks.tasks import NO_TASKS, TaskPolicy, Tasks
from mcp_notebook.bridge.telemetry.call_events import CallObserver
from mcp_notebook.errors import CallError
from mcp_notebook.settings.limits import DEFAULT_LIMITS, Limits

logger = logging.getLogger(__name__)

_CACHEABLE: tuple[CacheableMethod, ...] = (
    "tools/list",
    "resources/list",
    "resources/templates/list",
    "resources/read",
)
"""Methods whose results tell clients how long to cache them: not at all."""

ABOUT = (
    "The tools of the user's live Jupyter notebooks: each runs in the notebook's kernel and sees "
    "its variables as they are now. A call may wait while the user runs a cell. Tools come and go "
    "with the notebooks; list them again if one is missing."
)
NO_TOOLS = (
    "No notebook offers a tool at the moment. The user can open a Jupyter notebook, run "
    "`%load_ext mcp_notebook`, and put `%%mcp_tool` as the first line of a cell with a function."
)


class NotebookServer:
    """The MCP server of one bridge.

    Args:
        catalog: The tools, kept up to date by the links.
        links: Run the calls and read the resources.
        ready: Waits until the first tools can be expected, if they need time to appear.
        can_list: Waits until the first list can be answered, perhaps before that; None: `ready`.
        default_caller: Who makes a request if the transport does not say.
        observers: Hear what happens to calls.
        consent: Which calls need a person's consent.
        with_meta_tools: Also offer the tools of `bridge.lists.meta_tools`, under reserved names.
        page_size: Tools, or resources, on one page of a list. None: all tools, and the default
            number of resources.
        limits: Of requests and calls.
        tasks: Which calls outlive their clients.
    """

    def __init__(  # noqa: PLR0913 - one for each option
        self,
        catalog: Catalog,
        links: Links,
        *,
        ready: Callable[[], Awaitable[None]] | None = None,
        can_list: Callable[[], Awaitable[None]] | None = None,
        default_caller: Caller = OWNER,
        observers: Sequence[CallObserver] = (),
        consent: ConsentPolicy = ASK_FOR_CONFIRM,
        with_meta_tools: bool = False,
        page_size: int | None = None,
        limits: Limits = DEFAULT_LIMITS,
        tasks: TaskPolicy = NO_TASKS,
    ) -> None:
        if with_meta_tools:
            catalog.reserve(meta_tools.NAMES)
        self._links = links
        self._default_caller = default_caller
        self._tools = PermittedTools(catalog)
        self.request_rates = RequestRates(limits, default_caller)
        """Asked by transports that count requests before they read them."""
        self._about = f"{ABOUT} {meta_tools.ABOUT}" if with_meta_tools else ABOUT
        self._changes = ChangeNotices(self._tools.list_entries, default_caller)
        all_tasks = Tasks(links, tasks, default_caller=default_caller, ready=ready)
        task_notices = TaskNotices(all_tasks, self._changes.listen, default_caller)
        self.open_streams = OpenStreams(task_notices.listen, limits, default_caller)
        self.resource_notices = ResourceNotices(self._changes)
        """Told when a kernel was linked, or its link has ended."""
        self.clients = ConnectedClients(default_caller, partial(tell_kernels, links))
        self.sessions = ClientSessions()
        new_tools = NewTools(with_meta_tools=with_meta_tools)
        first = meta_tools.TOOLS if with_meta_tools else ()
        self.lists = ToolLists(self._tools, new_tools, first, page_size, can_list or ready)
        """Asked for the list of tools."""
        resources = ResourceRequests(
            links,
            self.resource_notices,
            default_caller=default_caller,
            ready=ready,
            page_size=page_size,
        )
        self._consent = Consent(consent, links, self._tools)
        self._room = room = Room(limits)
        self._tool_gate = ToolGate(self._tools, ready, NO_TOOLS if with_meta_tools else None)
        gates = (
            RateGate(limits),
            self._tool_gate,
            StartGate(self._tools, links),
            TaskGate(all_tasks.find_keep),
            SizeGate(limits),
            room,  # before a person is asked, and again, as the answer takes its time
            self._consent,
            room,
        )
        self.calls = ToolCalls(
            CallStarter(links, gates, room, observers),
            self._tool_gate,
            new_tools,
            self._changes,
            resources,
            all_tasks,
            self.sessions,
        )
        """Asked to call tools."""
        self.mcp = self._build_server(resources)

    def _build_server(self, resources: ResourceRequests) -> Server[Any]:
        server = _DeclaringServer(
            "mcp-notebook",
            version=__version__,
            title="Jupyter notebooks",
            instructions=self._about,
            cache_hints=dict.fromkeys(_CACHEABLE, CacheHint(ttl_ms=0, scope="private")),
            get_tool_input_schema=self._find_input_schema,
            on_list_tools=self._list_tools,
            on_call_tool=cast("Any", self._call_tool),  # the SDK has no type for a task
            on_list_resources=resources.list,
            on_list_resource_templates=resources.list_templates,
            on_read_resource=resources.read,
            on_subscriptions_listen=self.open_streams.listen,
        )
        # Without the default middleware: its spans take a tenth of a call's time, and know neither
        # notebook nor outcome. `CallTracer` makes those of calls.
        server.middleware[:] = [self.request_rates, self.sessions, self.clients, self._fill_in]
        server.add_notification_handler(
            "notifications/initialized", types.NotificationParams, self._changes.add_client
        )
        # Not as an argument: the SDK would warn that logging is deprecated. Older clients use it.
        server.add_request_handler(
            "logging/setLevel", types.SetLevelRequestParams, self._set_log_level
        )
        self.calls.tasks.add_to(server, self.calls.adapt_result)
        return server

    @property
    def default_caller(self) -> Caller:
        """Who makes a request if the transport does not say."""
        return self._default_caller

    def note_change(self) -> None:
        """Note that the list of tools has changed; clients are notified soon."""
        self._changes.note_change()

    async def announce_changes(self) -> None:
        """Notify clients of new lists and kernels of clients, once for each burst; runs forever."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._changes.run)
            tasks.start_soon(self.resource_notices.run)
            tasks.start_soon(self.clients.run)

    def close(self) -> None:
        """End subscriptions gracefully, cancel and answer the open calls, and start no more."""
        self._room.close()
        self._consent.close()
        self.calls.close()
        self._changes.close()
        self._links.end_calls()

    # -- handlers ----------------------------------------------------------------------------------

    async def _list_tools(
        self, _ctx: ServerRequestContext[Any], _params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[])

    async def _fill_in(self, ctx: ServerRequestContext[Any], call_next: CallNext) -> HandlerResult:
        """Add what depends on the caller: the list of tools, and the instructions."""
        result = await call_next(ctx)
        if isinstance(result, dict):
            if "instructions" in result:  # which clients read first
                entries = self._tools.list_entries(find_caller(ctx, self._default_caller))
                result["instructions"] = self._about if entries else f"{self._about} {NO_TOOLS}"
            elif ctx.method == "tools/list":
                await self._fill_in_tools(ctx, result)
        return result

    async def _fill_in_tools(self, ctx: ServerRequestContext[Any], result: dict[str, Any]) -> None:
        """Complete the answer to a request for the list of tools.

        The SDK validates the request and builds the answer around an empty list. The tools are
        added here in their final form: converting a thousand of them at every request would take
        longer than everything else.
        """
        cursor = (ctx.params or {}).get("cursor")
        page = await self.lists.find_page(read_request(ctx, self._default_caller), cursor)
        result["tools"] = list(page.tools)
        if page.next_cursor is not None:
            result["nextCursor"] = page.next_cursor

    def _find_input_schema(self, name: str) -> dict[str, Any] | None:
        if self._tool_gate.is_own(name):
            return meta_tools.INPUT_SCHEMAS[name]
        try:
            caller = CURRENT_CALLER.get() or self._default_caller
            return self._tools.find(caller, name).tool.input_schema
        except CallError:
            return None

    async def _call_tool(
        self, ctx: ServerRequestContext[Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult | TaskForm:
        request = read_request(ctx, self._default_caller)
        return await self.calls.answer(request, params, make_call_result)

    async def _set_log_level(
        self, ctx: ServerRequestContext[Any], params: types.SetLevelRequestParams
    ) -> types.EmptyResult:
        self.calls.set_log_level(get_connection(ctx), params.level)
        return types.EmptyResult()


class _DeclaringServer(Server[Any]):
    """The SDK's server, declaring exactly the capabilities that this one has.

    Clients of the handshake era are told that the lists change, which the SDK's HTTP transport
    offers no way to declare. No client can subscribe to a resource, which the SDK declares for
    every server with subscriptions: the content of a resource never changes.
    """

    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
    ) -> InitializationOptions:
        """Return what the server says of itself, with lists that change."""
        return super().create_initialization_options(
            notification_options or NotificationOptions(tools_changed=True),
            experimental_capabilities,
            extensions,
        )

    def get_capabilities(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
        *,
        protocol_version: str | None = None,
    ) -> types.ServerCapabilities:
        """Return what the server can do."""
        capabilities = super().get_capabilities(
            notification_options,
            experimental_capabilities,
            extensions,
            protocol_version=protocol_version,
        )
        resources = types.ResourcesCapability(list_changed=True)
        return capabilities.model_copy(update={"resources": resources})
