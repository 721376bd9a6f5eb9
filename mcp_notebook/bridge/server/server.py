"""The MCP server: lists tools from the catalogue, passes calls to the kernels' links.

Runs in the bridge, on its event loop. The door to the MCP SDK, with `bridge.server.elicitation`,
`.blocks`, `.resources` and `.transports`: nothing else knows MCP's types. It serves both eras of
the protocol (the handshake up to 2025-11-25, and 2026-07-28) with one low-level ``Server``; which
bytes carry it is the transports' business, how a running tool asks the user is that of
`bridge.server.elicitation`, what can be read besides results that of `bridge.server.resources`.

What a client gets is always valid: whatever goes wrong with a call is a result with ``isError``,
and a tool that MCP would not accept is left out of the list instead of breaking it
(`bridge.server.tool_pages`, which keeps the list in the form that this module gives the tools).
"""

import logging
import math
from collections.abc import Awaitable, Callable
from typing import Any, Protocol, cast
from weakref import WeakKeyDictionary

import anyio
import mcp_types as types
from mcp.server.caching import CacheableMethod, CacheHint
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel.server import NotificationOptions, Server
from mcp.server.models import InitializationOptions
from mcp.server.session import ServerSession
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged
from mcp.shared.exceptions import MCPError
from mcp_types.methods import serialize_server_result
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, is_version_at_least

from mcp_notebook._version import __version__
from mcp_notebook.bridge.kernels.catalog import Catalog, CatalogEntry
from mcp_notebook.bridge.kernels.running_call import Listener, RunningCall
from mcp_notebook.bridge.server import meta_tools
from mcp_notebook.bridge.server.elicitation import Asking, can_elicit
from mcp_notebook.bridge.server.mcp_types import SINCE, call_result, cleaned, error_result
from mcp_notebook.bridge.server.resources import Kept, Resources
from mcp_notebook.bridge.server.tool_pages import Pages
from mcp_notebook.content import Result
from mcp_notebook.errors import CallError, UnknownState, UnknownTool
from mcp_notebook.wire import messages

logger = logging.getLogger(__name__)

CHANGE_DELAY = 0.05
"""Seconds in which several changes of the catalogue become one notice to clients."""
PROGRESS_STEP = 1e-6
"""What is added to a progress that has not increased: MCP demands that each is more than the last,
but a message alone, or a second loop, does not add to what is done."""
LEGACY_LOG_LEVEL = "info"
"""Level of log messages for clients of the handshake eras that set none."""
_CACHEABLE: tuple[CacheableMethod, ...] = (
    "tools/list",
    "resources/list",
    "resources/templates/list",
    "resources/read",
)
"""Methods whose results say how long they may be kept: not at all, since only we know."""
MAX_CALLS = 1024
"""Calls that one bridge carries at a time, over all clients and kernels."""

ABOUT = (
    "The tools of the user's live Jupyter notebooks: each runs in the notebook's kernel and sees "
    "its variables as they are now. A call may wait while the user runs a cell. Tools come and go "
    "with the notebooks; list them again when one is missing."
)
NO_TOOLS = (
    "No notebook offers a tool at the moment. The user can open a Jupyter notebook and run "
    "`%load_ext mcp_notebook`, then put `%%mcp_tool` on the first line of a cell with a function."
)


class Calls(Kept, Protocol):
    """What the server needs of `Links`, besides what `server.resources` does."""

    def begin(
        self,
        entry: CatalogEntry,
        arguments: dict[str, Any],
        listener: Listener,
        *,
        can_elicit: bool,
    ) -> RunningCall:
        """Begin a call in its kernel."""


class NotebookServer:
    """The MCP server of one bridge.

    Args:
        catalog: The tools, kept up to date by the links.
        calls: Runs the calls.
        ready: Waits until the first tools can be expected, where they take a while to come.
        with_meta_tools: Offer `bridge.server.meta_tools`, too, under names that are theirs alone.
        page_size: Tools on a page of the list; None: the list is one page. Of the list of
            resources, too, whose pages have a size in any case.
    """

    def __init__(
        self,
        catalog: Catalog,
        calls: Calls,
        *,
        ready: Callable[[], Awaitable[None]] | None = None,
        with_meta_tools: bool = False,
        page_size: int | None = None,
    ) -> None:
        if with_meta_tools:
            catalog.reserve(meta_tools.NAMES)
        self._catalog = catalog
        self._calls = calls
        self._ready = ready
        self._meta_tools = meta_tools.TOOLS if with_meta_tools else ()
        self._pages = Pages(_wire_form, self._meta_tools, page_size)
        self._about = f"{ABOUT} {meta_tools.ABOUT}" if with_meta_tools else ABOUT
        self._running = 0
        self._asking = Asking()
        self._bus = InMemorySubscriptionBus()
        self._listen = ListenHandler(self._bus)
        self._sessions: set[ServerSession] = set()
        self._changed = anyio.Event()
        self._log_levels: WeakKeyDictionary[Any, str] = WeakKeyDictionary()
        resources = Resources(calls, ready, page_size)
        self.mcp = _HonestServer(
            "mcp-notebook",
            version=__version__,
            title="Jupyter notebooks",
            instructions=self._about,
            cache_hints=dict.fromkeys(_CACHEABLE, CacheHint(ttl_ms=0, scope="private")),
            get_tool_input_schema=self._input_schema,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_resources=resources.list,
            on_list_resource_templates=resources.list_templates,
            on_read_resource=resources.read,
            on_subscriptions_listen=self._listen,
        )
        # Spans nobody collects cost a tenth of a call.
        self.mcp.middleware[:] = [self._fill_in_tools]
        self.mcp.add_notification_handler(
            "notifications/initialized", types.NotificationParams, self._initialized
        )
        # Not as an argument: the SDK warns that MCP gives logging up. Older clients have it.
        self.mcp.add_request_handler(
            "logging/setLevel", types.SetLevelRequestParams, self._set_log_level
        )
        self.update_instructions()

    def update_instructions(self) -> None:
        """Say in the instructions what to do while there is no tool; clients read them first."""
        about = self._about
        self.mcp.instructions = about if self._catalog.entries() else f"{about} {NO_TOOLS}"

    def tools_changed(self) -> None:
        """Note that the catalogue changed; clients are told soon."""
        self.update_instructions()
        self._changed.set()

    async def announce_changes(self) -> None:
        """Tell clients about changes of the catalogue, once for a burst; runs for ever."""
        while True:
            await self._changed.wait()
            await anyio.sleep(CHANGE_DELAY)
            self._changed = anyio.Event()
            await self._bus.publish(ToolsListChanged())
            for session in tuple(self._sessions):
                try:
                    with anyio.move_on_after(1):
                        await session.send_tool_list_changed()
                except Exception:
                    # A client that went without a goodbye; the SDK raises what its stream raised.
                    logger.debug("a client could not be told of a change", exc_info=True)
                    self._sessions.discard(session)

    def close(self) -> None:
        """End the clients' subscriptions gracefully, and the calls that wait for a client."""
        self._listen.close()
        self._asking.close()

    # -- handlers ----------------------------------------------------------------------------------

    async def _initialized(self, ctx: ServerRequestContext[Any], _params: object) -> None:
        if ctx.protocol_version in HANDSHAKE_PROTOCOL_VERSIONS:
            session = ctx.session
            self._sessions.add(session)
            # The SDK tells the end of a connection nowhere else.
            _connection(ctx).exit_stack.callback(self._sessions.discard, session)

    async def _list_tools(
        self, _ctx: ServerRequestContext[Any], _params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[])

    async def _fill_in_tools(
        self, ctx: ServerRequestContext[Any], call_next: CallNext
    ) -> HandlerResult:
        """Answer requests for the list; the rest passes through.

        The SDK checks the request and makes the answer's frame, around no tools. Those are put in
        here, each already in the form that the SDK gives it: doing that with a thousand at each
        request would take longer than all the rest.
        """
        result = await call_next(ctx)
        if ctx.method != "tools/list" or not isinstance(result, dict):
            return result
        if self._ready is not None:
            await self._ready()
        cursor = (ctx.params or {}).get("cursor")
        page = self._pages.page(self._catalog.entries(), ctx.protocol_version, cursor)
        if page is None:
            raise MCPError(
                types.INVALID_PARAMS,
                "Unknown cursor: the list of tools has changed since it was given, or it never "
                "was. Ask without a cursor for the list as it is now.",
            )
        result["tools"] = list(page.tools)
        if page.next_cursor is not None:
            result["nextCursor"] = page.next_cursor
        return result

    def _input_schema(self, name: str) -> dict[str, Any] | None:
        if self._is_meta_tool(name):
            return meta_tools.INPUT_SCHEMAS[name]
        try:
            return self._catalog.find(name).tool.input_schema
        except CallError:
            return None

    def _is_meta_tool(self, name: str) -> bool:
        return bool(self._meta_tools) and name in meta_tools.NAMES

    async def _call_tool(
        self, ctx: ServerRequestContext[Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        try:
            result = await self._answer(ctx, params)
            if isinstance(result, types.InputRequiredResult):
                return result
            return call_result(result, ctx.protocol_version)
        except MCPError:
            raise
        except UnknownState as error:
            raise MCPError(types.INVALID_PARAMS, str(error)) from None
        except UnknownTool as error:
            if self._is_meta_tool(params.name):  # what is unknown is one of its arguments
                return error_result(str(error))
            raise MCPError(types.INVALID_PARAMS, cleaned(str(error))) from None
        except CallError as error:
            return error_result(str(error))
        except Exception as error:
            logger.exception("a call of %r failed in the bridge", params.name)
            return error_result(
                f"Internal error of mcp-notebook: {type(error).__name__}: {error}. "
                "The tool may have run; its result is lost."
            )

    async def _answer(
        self, ctx: ServerRequestContext[Any], params: types.CallToolRequestParams
    ) -> Result | types.InputRequiredResult:
        listener = self._listener(ctx)
        call = self._asking.resumed(params)
        if call is None:
            begun = await self._begin(ctx, params.name, params.arguments or {}, listener)
            if isinstance(begun, Result):
                return begun
            call = begun
        self._running += 1
        try:
            return await self._asking.follow(ctx, params, call, listener)
        finally:
            self._running -= 1

    async def _begin(
        self,
        ctx: ServerRequestContext[Any],
        name: str,
        arguments: dict[str, Any],
        listener: Listener,
    ) -> RunningCall | Result:
        """Begin a call; what the bridge itself knows is its result at once."""
        if self._is_meta_tool(name):
            if self._ready is not None:
                await self._ready()
            answer = meta_tools.answer(name, arguments, self._catalog, no_tools=NO_TOOLS)
            if isinstance(answer, Result):
                return answer
            entry, arguments = answer.entry, answer.arguments
        else:
            entry = await self._find(name)
        if self._running >= MAX_CALLS:
            raise CallError(f"The bridge is busy with {MAX_CALLS} calls. Try again later.")
        return self._calls.begin(entry, arguments, listener, can_elicit=can_elicit(ctx))

    async def _find(self, name: str) -> CatalogEntry:
        try:
            return self._catalog.find(name)
        except UnknownTool:
            if self._ready is None:
                raise
        await self._ready()  # a client may know the tool from the day before
        return self._catalog.find(name)

    def _listener(self, ctx: ServerRequestContext[Any]) -> Listener:
        """Return what the client of this request wants to hear while its call runs."""
        meta = ctx.meta or {}
        wants_progress = meta.get("progress_token", meta.get("progressToken")) is not None
        if ctx.protocol_version in HANDSHAKE_PROTOCOL_VERSIONS:
            level: str | None = self._log_levels.get(_connection(ctx), LEGACY_LOG_LEVEL)
        else:
            asked = meta.get(types.LOG_LEVEL_META_KEY)
            level = asked if isinstance(asked, str) else None
        return Listener(
            progress=_progress_to(ctx) if wants_progress else None,
            log=None if level is None else _log_to(ctx),
            log_level=level,
        )

    async def _set_log_level(
        self, ctx: ServerRequestContext[Any], params: types.SetLevelRequestParams
    ) -> types.EmptyResult:
        self._log_levels[_connection(ctx)] = params.level
        return types.EmptyResult()


def _connection(ctx: ServerRequestContext[Any]) -> Any:
    # A session is made anew for each request; what lasts has no public name.
    return ctx.session._connection  # noqa: SLF001


class _HonestServer(Server[Any]):
    """The SDK's server, declaring what this one does, and nothing else.

    Clients of the handshake eras are told that the list of tools changes: the SDK's HTTP transport
    asks for the options without a way to say so. No client is told that it hears of changed
    resources, as the SDK says of every server that has subscriptions: what can be read changes
    with each large result, never in itself, and whoever needs it has its link in that result.
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
        return capabilities.model_copy(update={"resources": types.ResourcesCapability()})


# -- from our types to MCP's -----------------------------------------------------------------------


def _wire_form(name: str, info: messages.ToolInfo, protocol_version: str) -> dict[str, Any]:
    """Return a tool as clients get it, under the name that it is served by.

    Raises:
        ValueError: This version of the protocol does not take it.
    """
    said = {
        "name": name,
        "title": info.title,
        "description": info.description,
        "inputSchema": info.input_schema,
        "outputSchema": info.output_schema,
        "annotations": info.annotations,
        "icons": info.icons,
        "_meta": info.meta,
    }
    if info.title is not None and not is_version_at_least(protocol_version, SINCE["title"]):
        said["annotations"] = {**(info.annotations or {}), "title": info.title}
    unknown = [
        field
        for field, version in SINCE.items()
        if not is_version_at_least(protocol_version, version)
    ]
    said |= dict.fromkeys(unknown)
    alone = {"tools": [said], "resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
    (form,) = serialize_server_result("tools/list", protocol_version, alone)["tools"]
    types.Tool.model_validate(form)  # as clients made with the SDK do with each tool of a list
    return cast("dict[str, Any]", form)


def _progress_to(ctx: ServerRequestContext[Any]) -> Callable[[messages.Progress], Awaitable[None]]:
    """Return what tells the client progress, always increasing."""
    last = 0.0

    async def forward(progress: messages.Progress) -> None:
        nonlocal last
        done = progress.progress
        if done is None or done <= last:
            done = max(last + PROGRESS_STEP, math.nextafter(last, math.inf))
        last = done
        message = None if progress.message is None else cleaned(progress.message)
        await ctx.session.report_progress(done, progress.total, message)

    return forward


def _log_to(ctx: ServerRequestContext[Any]) -> Callable[[messages.Log], Awaitable[None]]:
    """Return what sends log messages to the client."""

    async def forward(log: messages.Log) -> None:
        params = types.LoggingMessageNotificationParams.model_validate(
            {"level": log.level, "logger": log.logger, "data": cleaned(log.text)}
        )
        # Not `send_log_message`: it warns that MCP gives logging up, at each message.
        await ctx.session.send_notification(
            types.LoggingMessageNotification(params=params), ctx.request_id
        )

    return forward
