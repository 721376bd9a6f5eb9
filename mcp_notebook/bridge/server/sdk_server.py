"""The SDK's server of a bridge: passes requests that go through the SDK to our own parts.

Runs on the bridge's event loop. Imported when a bridge first needs the SDK: over HTTP at its start,
over stdio with the first message that the short way does not answer. One low-level ``Server``
serves both eras of the protocol: the handshake up to 2025-11-25, and 2026-07-28.
"""

from contextlib import suppress
from functools import partial
from typing import Any, Protocol, cast

from mcp_notebook.bridge.server.sessions import sdk_import  # noqa: F401

# isort: split
import mcp_types as types
from mcp.server.caching import CacheableMethod, CacheHint
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel.server import NotificationOptions, Server
from mcp.server.models import InitializationOptions
from mcp.shared.exceptions import MCPError

from mcp_notebook.bridge.access.caller import SCOPE_KEY, Caller
from mcp_notebook.bridge.access.caller_limits import RateLimits
from mcp_notebook.bridge.access.permitted_tools import PermittedTools
from mcp_notebook.bridge.server.calls.gates import CallParams
from mcp_notebook.bridge.server.calls.tool_calls import ToolCalls
from mcp_notebook.bridge.server.completion import Completion
from mcp_notebook.bridge.server.declaration import SERVER_INFO, list_capabilities
from mcp_notebook.bridge.server.forms.accommodations import find_accommodation
from mcp_notebook.bridge.server.forms.result_forms import (
    make_call_result,
    make_prompt_result,
    make_resource_result,
)
from mcp_notebook.bridge.server.listing.change_notices import ChangeNotices
from mcp_notebook.bridge.server.listing.notification_streams import OpenStreams
from mcp_notebook.bridge.server.listing.pages import LIST_METHODS, Page
from mcp_notebook.bridge.server.resources.resource_subscriptions import ResourceSubscriptions
from mcp_notebook.bridge.server.resources.resources import ResourceRequests
from mcp_notebook.bridge.server.resources.skill_requests import SkillRequests
from mcp_notebook.bridge.server.sessions.client_profile import read_profile
from mcp_notebook.bridge.server.sessions.client_request import (
    ClientRequest,
    find_caller,
    read_request,
)
from mcp_notebook.bridge.server.sessions.client_sessions import ClientSessions, find_session
from mcp_notebook.bridge.server.sessions.connected_clients import ConnectedClients
from mcp_notebook.bridge.server.sessions.protocol_error import INTERNAL_ERROR, ProtocolError
from mcp_notebook.bridge.server.tasks.forms import TaskForm
from mcp_notebook.bridge.server.tasks.requests import TaskRequests
from mcp_notebook.bridge.server.tasks.tasks import Tasks
from mcp_notebook.errors import CallError

_CACHEABLE: tuple[CacheableMethod, ...] = (*LIST_METHODS, "resources/read")
"""Methods whose results tell clients not to cache them."""


class Parts(Protocol):
    """What the SDK's server needs: the parts of a `NotebookServer`."""

    default_caller: Caller
    tools: PermittedTools
    request_rates: RateLimits
    sessions: ClientSessions
    clients: ConnectedClients
    changes: ChangeNotices
    calls: ToolCalls
    resources: ResourceRequests
    completion: Completion
    subscriptions: ResourceSubscriptions
    tasks: Tasks
    open_streams: OpenStreams

    async def write_instructions(self, caller: Caller) -> str:
        """Return the instructions for a caller's model."""

    async def find_page(
        self, method: str, request: ClientRequest, cursor: str | None
    ) -> tuple[str, Page]:
        """Return a page of the list that a method requests, and the name of its items."""

    def find_input_schema(self, name: str) -> dict[str, Any] | None:
        """Return the input schema of a tool, or None."""


def build(server: Parts) -> Server[Any]:
    """Build the SDK's server from our parts."""
    handlers = _Handlers(server)
    built = _DeclaringServer(
        SERVER_INFO["name"],
        version=SERVER_INFO["version"],
        title=SERVER_INFO["title"],
        instructions="",  # depends on the caller: see `_Handlers.fill_in`
        cache_hints=dict.fromkeys(_CACHEABLE, CacheHint(ttl_ms=0, scope="private")),
        get_tool_input_schema=server.find_input_schema,
        on_list_tools=handlers.list_tools,
        on_call_tool=cast("Any", handlers.call_tool),  # the SDK has no type for a task
        on_list_resources=handlers.list_resources,
        on_list_resource_templates=handlers.list_templates,
        on_read_resource=handlers.read_resource,
        on_subscribe_resource=server.subscriptions.subscribe,
        on_unsubscribe_resource=server.subscriptions.unsubscribe,
        on_list_prompts=handlers.list_prompts,
        on_get_prompt=handlers.get_prompt,
        on_completion=server.completion.complete,
        on_subscriptions_listen=partial(server.open_streams.listen, server.changes.listen),
    )
    # Without the default middleware: its spans take a tenth of a call's time.
    built.middleware[:] = [
        translate_errors,
        handlers.count,
        server.sessions,
        server.clients,
        handlers.fill_in,
    ]
    built.add_notification_handler(
        "notifications/initialized", types.NotificationParams, server.changes.add_client
    )
    # Not as an argument: the SDK would warn that logging is deprecated. Older clients use it.
    built.add_request_handler(
        "logging/setLevel", types.SetLevelRequestParams, handlers.set_log_level
    )
    TaskRequests(server.tasks, server.default_caller).add_to(built)
    resources = server.resources
    SkillRequests(
        resources.declared.list_entries,
        server.default_caller,
        resources.page_size,
        resources.ready,
    ).add_to(built)
    return built


async def translate_errors(ctx: ServerRequestContext[Any], call_next: CallNext) -> HandlerResult:
    """Raise the SDK's error in place of ours; middleware of the SDK's server."""
    try:
        return await call_next(ctx)
    except ProtocolError as error:
        raise MCPError(error.code, error.message, error.data) from error


class _Handlers:
    """The SDK's request handlers.

    Args:
        server: The parts that answer the requests.
    """

    def __init__(self, server: Parts) -> None:
        self._server = server

    async def count(self, ctx: ServerRequestContext[Any], call_next: CallNext) -> HandlerResult:
        """Count a request, unless the HTTP endpoint has done so."""
        if ctx.request_id is not None and SCOPE_KEY not in getattr(ctx.request, "scope", ()):
            excess = self._server.request_rates.take(self._server.default_caller)
            if excess is not None:
                raise ProtocolError(INTERNAL_ERROR, excess.reason)
        return await call_next(ctx)

    async def list_tools(
        self, _ctx: ServerRequestContext[Any], _params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[])

    async def list_prompts(
        self, _ctx: ServerRequestContext[Any], _params: types.PaginatedRequestParams | None
    ) -> types.ListPromptsResult:
        return types.ListPromptsResult(prompts=[])

    async def list_resources(
        self, _ctx: ServerRequestContext[Any], _params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        return types.ListResourcesResult(resources=[])

    async def list_templates(
        self, _ctx: ServerRequestContext[Any], _params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        return types.ListResourceTemplatesResult(resource_templates=[])

    async def get_prompt(
        self, ctx: ServerRequestContext[Any], params: types.GetPromptRequestParams
    ) -> types.GetPromptResult | types.InputRequiredResult:
        request = read_request(ctx, self._server.default_caller)
        call = CallParams(
            params.name,
            cast("dict[str, Any] | None", params.arguments),
            params.input_responses,
            params.request_state,
            "prompt",
        )
        answer = await self._server.calls.answer(request, call, make_prompt_result)
        if isinstance(answer, types.GetPromptResult):
            with suppress(CallError):  # the prompt may have gone since
                prompt = self._server.tools.find(request.caller, params.name, "prompt").tool
                answer.description = prompt.description or None
        return cast("types.GetPromptResult | types.InputRequiredResult", answer)  # never a task

    async def fill_in(self, ctx: ServerRequestContext[Any], call_next: CallNext) -> HandlerResult:
        """Add what the SDK cannot: the lists and the instructions, which depend on the caller."""
        result = await call_next(ctx)
        if isinstance(result, dict):
            if "instructions" in result:
                caller = find_caller(ctx, self._server.default_caller)
                result["instructions"] = await self._server.write_instructions(caller)
                if ctx.method == "initialize" and not _hears_of_changes(ctx.params):
                    result["capabilities"] = list_capabilities(hears_of_changes=False)
            elif ctx.method in LIST_METHODS:
                await self._fill_in_list(ctx, result)
        return result

    async def _fill_in_list(self, ctx: ServerRequestContext[Any], result: dict[str, Any]) -> None:
        """Complete the answer to a request for a list.

        The SDK validates the request and builds the answer around an empty list. The items are
        added here in their final form: converting a thousand of them at every request would take
        longer than everything else.
        """
        cursor = (ctx.params or {}).get("cursor")
        request = read_request(ctx, self._server.default_caller)
        name, page = await self._server.find_page(ctx.method, request, cursor)
        result[name] = list(page.items)
        if page.next_cursor is not None:
            result["nextCursor"] = page.next_cursor

    async def call_tool(
        self, ctx: ServerRequestContext[Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult | TaskForm:
        request = read_request(ctx, self._server.default_caller)
        call = CallParams(
            params.name, params.arguments, params.input_responses, params.request_state
        )
        return await self._server.calls.answer(request, call, make_call_result)

    async def read_resource(
        self, ctx: ServerRequestContext[Any], params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult | types.InputRequiredResult:
        found = await self._server.resources.find_declared(ctx, params.uri)
        if found is None:
            return await self._server.resources.read(ctx, params)
        request = read_request(ctx, self._server.default_caller)
        call = CallParams(
            found.entry.long_name,
            found.arguments,
            params.input_responses,
            params.request_state,
            "resource",
        )
        make_result = partial(make_resource_result, params.uri)
        answer = await self._server.calls.answer(request, call, make_result)
        return cast("types.ReadResourceResult | types.InputRequiredResult", answer)  # never a task

    async def set_log_level(
        self, ctx: ServerRequestContext[Any], params: types.SetLevelRequestParams
    ) -> types.EmptyResult:
        self._server.calls.set_log_level(find_session(ctx), params.level)
        return types.EmptyResult()


def _hears_of_changes(params: Any) -> bool:
    """Return whether a client is notified of changes, by the parameters of its `initialize`."""
    profile = read_profile(params["protocolVersion"], params["clientInfo"], params["capabilities"])
    return profile is None or find_accommodation(profile).hears_of_changes


class _DeclaringServer(Server[Any]):
    """The SDK's server, declaring exactly the capabilities that `list_capabilities` returns."""

    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
    ) -> InitializationOptions:
        """Return the server's description of itself."""
        options = super().create_initialization_options(
            notification_options, experimental_capabilities, extensions
        )
        return options.model_copy(update={"capabilities": self.get_capabilities()})

    def get_capabilities(
        self,
        notification_options: NotificationOptions | None = None,  # noqa: ARG002 - the SDK's signature
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,  # noqa: ARG002
        extensions: dict[str, dict[str, Any]] | None = None,  # noqa: ARG002
        *,
        protocol_version: str | None = None,
    ) -> types.ServerCapabilities:
        """Return the server's capabilities."""
        return types.ServerCapabilities.model_validate(list_capabilities(protocol_version))
