"""The MCP server: lists the catalogue's tools and passes calls to the kernels' links.

Runs on the bridge's event loop. One low-level ``Server`` of the SDK serves both eras of the
protocol: the handshake up to 2025-11-25, and 2026-07-28. Clients always get valid messages: a call
that fails in any way is a result with ``isError``, and a tool that MCP does not accept is left out
of the list instead of breaking it.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

import anyio
import anyio.to_thread
import mcp_types as types
from mcp.server.caching import CacheableMethod, CacheHint
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel.server import NotificationOptions, Server
from mcp.server.models import InitializationOptions
from mcp.shared.exceptions import MCPError
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

from mcp_notebook._version import __version__
from mcp_notebook.bridge.access.caller import CURRENT_CALLER, OWNER, Caller
from mcp_notebook.bridge.access.consent_policy import ASK_FOR_CONFIRM, ConsentPolicy
from mcp_notebook.bridge.access.permitted_tools import PermittedTools
from mcp_notebook.bridge.kernels.catalog import Catalog
from mcp_notebook.bridge.kernels.links import Links
from mcp_notebook.bridge.kernels.running_call import Listener, RunningCall
from mcp_notebook.bridge.server import meta_tools
from mcp_notebook.bridge.server.accommodations import (
    NewTools,
    adapt_result,
    find_accommodation,
)
from mcp_notebook.bridge.server.call_starter import CallStarter
from mcp_notebook.bridge.server.callers import find_caller
from mcp_notebook.bridge.server.change_notices import ChangeNotices, get_connection
from mcp_notebook.bridge.server.connected_clients import ConnectedClients, tell_kernels
from mcp_notebook.bridge.server.consent import Consent
from mcp_notebook.bridge.server.elicitation import Elicitation
from mcp_notebook.bridge.server.large_calls import find_arguments, identify_arguments
from mcp_notebook.bridge.server.mcp_types import (
    make_call_result,
    make_error_result,
    make_log_sender,
    make_progress_sender,
    replace_surrogates,
)
from mcp_notebook.bridge.server.open_streams import OpenStreams
from mcp_notebook.bridge.server.request_rates import RequestRates
from mcp_notebook.bridge.server.resource_notices import ResourceNotices
from mcp_notebook.bridge.server.resource_owners import ResourceOwners
from mcp_notebook.bridge.server.resources import ResourceRequests
from mcp_notebook.bridge.server.tool_form import make_plain_tool_form, make_tool_form
from mcp_notebook.bridge.server.tool_pages import ToolPages
from mcp_notebook.bridge.telemetry.call_events import CallObserver
from mcp_notebook.content import Result
from mcp_notebook.errors import CallError, UnknownState, UnknownTool
from mcp_notebook.limits import DEFAULT_LIMITS, Limits
from mcp_notebook.missing_tools import MissingTool

logger = logging.getLogger(__name__)

LEGACY_LOG_LEVEL = "info"
"""Log level of clients of the handshake era that have not set one."""
_CACHEABLE: tuple[CacheableMethod, ...] = (
    "tools/list",
    "resources/list",
    "resources/templates/list",
    "resources/read",
)
"""Methods whose results tell clients how long to cache them: not at all."""
_MAX_DEPARTURES = 5
"""Notebooks that have left lately that a client hears of when it calls an unknown tool."""
_DEPARTURES = "Notebooks that have left lately:"

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
        default_caller: Who makes a request if the transport does not say.
        observers: Hear what happens to calls.
        consent: Which calls need a person's consent.
        with_meta_tools: Also offer the tools of `bridge.server.meta_tools`, under reserved names.
        page_size: Tools, or resources, on one page of a list. None: all tools, and the default
            number of resources.
        limits: Of requests and calls.
    """

    def __init__(  # noqa: PLR0913 - one for each option
        self,
        catalog: Catalog,
        links: Links,
        *,
        ready: Callable[[], Awaitable[None]] | None = None,
        default_caller: Caller = OWNER,
        observers: Sequence[CallObserver] = (),
        consent: ConsentPolicy = ASK_FOR_CONFIRM,
        with_meta_tools: bool = False,
        page_size: int | None = None,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        if with_meta_tools:
            catalog.reserve(meta_tools.NAMES)
        self._catalog = catalog
        self._links = links
        self._ready = ready
        self._default_caller = default_caller
        self._tools = PermittedTools(catalog)
        self.request_rates = RequestRates(limits, default_caller)
        """Asked by transports that count requests before they read them."""
        self._starter = CallStarter(
            self._tools,
            links,
            observers=observers,
            limits=limits,
            consent=Consent(consent, links),
            ready=ready,
            meta_tools_hint=NO_TOOLS if with_meta_tools else None,
        )
        self.find_departed_notebooks: Callable[[], Sequence[MissingTool]] = tuple
        """Returns the notebooks that have left lately, latest first; called in a thread."""
        first = meta_tools.TOOLS if with_meta_tools else ()
        self._pages = ToolPages(make_tool_form, first, page_size)
        self._plain_pages = ToolPages(make_plain_tool_form, first, page_size)
        self._about = f"{ABOUT} {meta_tools.ABOUT}" if with_meta_tools else ABOUT
        self._elicitation = Elicitation()
        self._changes = ChangeNotices(self._tools.list_entries, default_caller)
        self.open_streams = OpenStreams(self._changes.listen, limits, default_caller)
        self.resource_notices = ResourceNotices(self._changes)
        """Told when a kernel was linked, or its link has ended."""
        self._clients = ConnectedClients(default_caller, partial(tell_kernels, links))
        self._new_tools = NewTools(with_meta_tools=with_meta_tools)
        self._log_levels: WeakKeyDictionary[Any, str] = WeakKeyDictionary()
        self._owners = ResourceOwners()
        self.mcp = self._build_server(page_size)

    def _build_server(self, page_size: int | None) -> Server[Any]:
        resources = ResourceRequests(
            self._links,
            self.resource_notices,
            self._owners,
            default_caller=self._default_caller,
            ready=self._ready,
            page_size=page_size,
        )
        server = _Server(
            "mcp-notebook",
            version=__version__,
            title="Jupyter notebooks",
            instructions=self._about,
            cache_hints=dict.fromkeys(_CACHEABLE, CacheHint(ttl_ms=0, scope="private")),
            get_tool_input_schema=self._find_input_schema,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_resources=resources.list,
            on_list_resource_templates=resources.list_templates,
            on_read_resource=resources.read,
            on_subscriptions_listen=self.open_streams.listen,
        )
        # Without the default middleware: its spans take a tenth of a call's time, and know neither
        # notebook nor outcome. `CallTracer` makes those of calls.
        server.middleware[:] = [self.request_rates, self._clients, self._fill_in]
        server.add_notification_handler(
            "notifications/initialized", types.NotificationParams, self._changes.add_client
        )
        # Not as an argument: the SDK would warn that logging is deprecated. Older clients use it.
        server.add_request_handler(
            "logging/setLevel", types.SetLevelRequestParams, self._set_log_level
        )
        return server

    def note_change(self) -> None:
        """Note that the list of tools has changed; clients are notified soon."""
        self._changes.note_change()

    async def announce_changes(self) -> None:
        """Notify clients of new lists and kernels of clients, once for each burst; runs forever."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._changes.run)
            tasks.start_soon(self.resource_notices.run)
            tasks.start_soon(self._clients.run)

    def close(self) -> None:
        """End subscriptions gracefully, cancel and answer the open calls, and start no more."""
        self._starter.close()
        self._changes.close()
        self._elicitation.close()
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
        if self._ready is not None:
            await self._ready()
        cursor = (ctx.params or {}).get("cursor")
        takes_structured = find_accommodation(ctx).takes_structured
        pages = self._pages if takes_structured else self._plain_pages
        caller = find_caller(ctx, self._default_caller)
        entries = self._tools.list_entries(caller)
        page = pages.find_page(entries, ctx.protocol_version, cursor, caller.permissions)
        if page is None:
            raise MCPError(
                types.INVALID_PARAMS,
                "Unknown cursor: it is not from this server, or the list of tools has changed "
                "since. Ask for the list again without a cursor.",
            )
        result["tools"] = list(page.tools)
        self._new_tools.note_list(ctx, (tool["name"] for tool in page.tools))
        if page.next_cursor is not None:
            result["nextCursor"] = page.next_cursor

    def _find_input_schema(self, name: str) -> dict[str, Any] | None:
        if self._starter.is_meta_tool(name):
            return meta_tools.INPUT_SCHEMAS[name]
        try:
            caller = CURRENT_CALLER.get() or self._default_caller
            return self._tools.find(caller, name).tool.input_schema
        except CallError:
            return None

    async def _call_tool(
        self, ctx: ServerRequestContext[Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        caller = find_caller(ctx, self._default_caller)
        try:
            large = find_arguments(ctx)
            if large is not None:
                params = params.model_copy(update={"arguments": await identify_arguments(large)})
            result = await self._answer(ctx, caller, params, large)
            await self._changes.notify_caller(ctx)  # the call may have made them
            if isinstance(result, types.InputRequiredResult):
                return result
            self._owners.note_result(caller, result)
            self.resource_notices.note_result(caller, result)
            names = (entry.name for entry in self._tools.list_entries(caller))
            return make_call_result(
                adapt_result(ctx, self._new_tools.add_note(ctx, result, names)),
                ctx.protocol_version,
                takes_structured=find_accommodation(ctx).takes_structured,
            )
        except MCPError:
            raise
        except UnknownState as error:
            raise MCPError(types.INVALID_PARAMS, str(error)) from None
        except UnknownTool as error:
            text = await self._explain_unknown(error, caller)
            if self._starter.is_meta_tool(params.name):  # the unknown name is one of its arguments
                return make_error_result(text)
            raise MCPError(types.INVALID_PARAMS, replace_surrogates(text)) from None
        except CallError as error:
            return make_error_result(str(error))
        except Exception as error:
            logger.exception("a call to %r failed in the bridge", params.name)
            return make_error_result(
                f"Internal error in mcp-notebook: {type(error).__name__}: {error}. "
                "The tool may have run, but its result is lost."
            )

    async def _explain_unknown(self, error: UnknownTool, caller: Caller) -> str:
        """Return the error, and below it the notebooks that may have had the tool."""
        if not caller.permissions.is_everything():
            return str(error)
        notebooks = await anyio.to_thread.run_sync(self.find_departed_notebooks)
        if not notebooks:
            return str(error)
        return "\n".join([str(error), _DEPARTURES, *map(str, notebooks[:_MAX_DEPARTURES])])

    async def _answer(
        self,
        ctx: ServerRequestContext[Any],
        caller: Caller,
        params: types.CallToolRequestParams,
        large: bytes | None,
    ) -> Result | types.InputRequiredResult:
        """Start the call, or resume it, and follow it; `large` are its detached arguments."""
        listener = _make_listener(ctx, self._log_levels)
        with self._starter.note_refusals(ctx, caller, params.name):
            call = self._elicitation.resume(caller, params)
        if call is None:
            arguments = params.arguments or {} if large is None else large
            outcome = await self._starter.start(ctx, caller, params, arguments, listener)
            if not isinstance(outcome, RunningCall):
                return outcome
            call = outcome
        return await self._elicitation.follow(ctx, caller, params, call, listener)

    async def _set_log_level(
        self, ctx: ServerRequestContext[Any], params: types.SetLevelRequestParams
    ) -> types.EmptyResult:
        self._log_levels[get_connection(ctx)] = params.level
        return types.EmptyResult()


def _make_listener(ctx: ServerRequestContext[Any], log_levels: Mapping[Any, str]) -> Listener:
    """Return a listener for what the client of this request wants while its call runs."""
    meta = ctx.meta or {}
    wants_progress = meta.get("progress_token", meta.get("progressToken")) is not None
    if ctx.protocol_version in HANDSHAKE_PROTOCOL_VERSIONS:
        level: str | None = log_levels.get(get_connection(ctx), LEGACY_LOG_LEVEL)
    else:
        value = meta.get(types.LOG_LEVEL_META_KEY)
        level = value if isinstance(value, str) else None
    return Listener(
        progress=make_progress_sender(ctx) if wants_progress else None,
        log=None if level is None else make_log_sender(ctx),
        log_level=level,
    )


class _Server(Server[Any]):
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
        capabilities = super().get_capabilities(
            notification_options,
            experimental_capabilities,
            extensions,
            protocol_version=protocol_version,
        )
        resources = types.ResourcesCapability(list_changed=True)
        return capabilities.model_copy(update={"resources": resources})
