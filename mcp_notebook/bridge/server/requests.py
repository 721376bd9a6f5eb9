"""Answers requests: calls the method's handler, and writes its result as JSON.

Runs on the bridge's event loop, for all transports. `Requests` has the table of handlers;
transports carry messages, and `protocol` defines them. The steps:

1. The parameters are read, before anything is looked up.
2. The handler of the method makes the result: `server`'s parts do the work.
3. Since 2026-07-28, the result says that it is complete, whose it is, and how long it may be kept.

The bytes of a picture become base64 piece by piece, while the answer is sent.
"""

from __future__ import annotations

import logging
from base64 import b64encode
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Protocol, TypeAlias

from msgspec import Struct

from mcp_notebook.bridge.access.caller import Caller
from mcp_notebook.bridge.access.permitted_tools import PermittedTools
from mcp_notebook.bridge.server.calls.gates import CallParams
from mcp_notebook.bridge.server.calls.tool_calls import ToolCalls
from mcp_notebook.bridge.server.completion import Completion
from mcp_notebook.bridge.server.declaration import SERVER_INFO, list_capabilities
from mcp_notebook.bridge.server.forms.accommodations import find_accommodation
from mcp_notebook.bridge.server.forms.result_forms import (
    make_block_forms,
    make_prompt_form,
    make_resource_form,
    make_rest,
    replace_surrogates,
)
from mcp_notebook.bridge.server.listing.change_notices import ChangeNotices
from mcp_notebook.bridge.server.listing.notification_streams import OpenStreams, check_size
from mcp_notebook.bridge.server.listing.pages import LIST_METHODS, Page
from mcp_notebook.bridge.server.listing.tool_lists import ToolLists
from mcp_notebook.bridge.server.resources.resource_subscriptions import ResourceSubscriptions
from mcp_notebook.bridge.server.resources.resources import ResourceRequests
from mcp_notebook.bridge.server.resources.skill_requests import SkillRequests
from mcp_notebook.bridge.server.sessions.client_request import ClientRequest
from mcp_notebook.bridge.server.sessions.connected_clients import ConnectedClients
from mcp_notebook.bridge.server.tasks.tasks import Tasks
from mcp_notebook.content import Result
from mcp_notebook.errors import CallError
from mcp_notebook.lean_json import to_json
from mcp_notebook.protocol.elicitation import InputRequired
from mcp_notebook.protocol.errors import INTERNAL_ERROR, ProtocolError
from mcp_notebook.protocol.messages import Request, RequestId
from mcp_notebook.protocol.methods import (
    CALL,
    DISCOVER,
    INITIALIZE,
    LISTEN,
    PING,
    CallParameters,
    LevelParameters,
    ListParameters,
    Parameters,
    PromptParameters,
    ReadParameters,
    read_parameters,
)
from mcp_notebook.protocol.versions import MODERN_VERSIONS, SERVER_INFO_KEY

logger = logging.getLogger(__name__)

_PIECE = 3 * 2**16
"""Bytes that are encoded at a time; a multiple of three, so that the pieces can be joined.
Allocating a buffer for a whole picture would take as long as encoding it."""
_UNCACHED = {"ttlMs": 0, "cacheScope": "private"}
_CACHEABLE = (*LIST_METHODS, DISCOVER, "resources/read", "skills/list", "skills/get")
"""Methods whose results say since 2026-07-28 how long clients may keep them: not at all."""


class Base64Text:
    """The base64 of some bytes.

    Args:
        data: The bytes.
    """

    def __init__(self, data: bytes) -> None:
        self._data = data

    def __len__(self) -> int:
        return 4 * -(-len(self._data) // 3)

    def __iter__(self) -> Iterator[bytes]:
        view = memoryview(self._data)
        for start in range(0, len(view), _PIECE):
            yield b64encode(view[start : start + _PIECE])


Piece: TypeAlias = bytes | Base64Text
"""A part of an answer."""
Form: TypeAlias = dict[str, Any]
FindPage: TypeAlias = Callable[[ClientRequest, str | None], Awaitable[Page]]
"""Finds the page of a list that a cursor names."""


def expand(pieces: Iterable[Piece]) -> Iterator[bytes]:
    """Yield the bytes of an answer, each part when it is asked for."""
    for piece in pieces:
        if isinstance(piece, bytes):
            yield piece
        else:
            yield from piece


class Answer(Struct, frozen=True):
    """The answer to a request."""

    pieces: Sequence[Piece]
    """The JSON-RPC message."""
    error_code: int | None = None
    """None if it is a result."""


def write_error(request_id: RequestId | None, error: ProtocolError) -> Answer:
    """Return the answer for an error, with lone surrogates in its text replaced."""
    written = ProtocolError(error.code, replace_surrogates(error.message), error.data)
    return Answer([written.write_answer(request_id)], error.code)


class Parts(Protocol):
    """What the requests need: the parts of a `NotebookServer`."""

    tools: PermittedTools
    clients: ConnectedClients
    changes: ChangeNotices
    calls: ToolCalls
    lists: ToolLists
    resources: ResourceRequests
    completion: Completion
    subscriptions: ResourceSubscriptions
    tasks: Tasks
    open_streams: OpenStreams

    async def write_instructions(self, caller: Caller) -> str:
        """Return the instructions for a caller's model."""


class Requests:
    """Answers the requests of one bridge.

    Args:
        server: The parts that do the work.
    """

    def __init__(self, server: Parts) -> None:
        self._server = server
        resources = server.resources
        skills = SkillRequests(
            resources.declared.list_entries, resources.page_size, resources.ready
        )
        listen = partial(server.open_streams.listen, server.changes.listen)
        lists: Mapping[str, tuple[str, FindPage]] = {
            "tools/list": ("tools", server.lists.find_page),
            "prompts/list": ("prompts", partial(server.lists.find_page, kind="prompt")),
            "resources/list": ("resources", resources.find_page),
            "resources/templates/list": ("resourceTemplates", resources.find_template_page),
        }
        self._handlers: Mapping[str, Callable[[ClientRequest, Any], Awaitable[Any]]] = {
            INITIALIZE: self._initialize,
            PING: self._ping,
            DISCOVER: self._discover,
            CALL: self._call,
            **{method: partial(_list, method, *list_) for method, list_ in lists.items()},
            "prompts/get": self._get_prompt,
            "resources/read": self._read,
            "resources/subscribe": server.subscriptions.subscribe,
            "resources/unsubscribe": server.subscriptions.unsubscribe,
            "completion/complete": server.completion.complete,
            "logging/setLevel": self._set_log_level,
            LISTEN: listen,
            "tasks/get": server.tasks.get,
            "tasks/update": server.tasks.update,
            "tasks/cancel": server.tasks.cancel,
            "skills/list": skills.list_skills,
            "skills/get": skills.get_skill,
            "resources/directory/read": skills.read_directory,
        }

    async def answer(self, message: Request, request: ClientRequest) -> Answer:
        """Return the answer to a request.

        Args:
            message: The JSON-RPC request.
            request: The same with its client and caller.
        """
        try:
            params = read_parameters(message.method, request.protocol_version, message.params)
            if message.method == LISTEN:
                check_size(message.params)
            with self._server.clients.visit(request):
                result = await self._handlers[message.method](request, params)
            if isinstance(result, dict):
                result = [_write_form(message.method, request, result)]
        except ProtocolError as error:
            return write_error(request.id, error)
        except Exception as error:
            logger.exception("a request %r failed", message.method)
            text = f"Internal error in mcp-notebook: {type(error).__name__}: {error}."
            return write_error(request.id, ProtocolError(INTERNAL_ERROR, text))
        head = b'{"jsonrpc":"2.0","id":%b,"result":' % to_json(request.id)
        return Answer([head, *result, b"}"])

    # -- the handlers: each returns a JSON object, or its JSON in pieces ---------------------------

    async def _initialize(self, request: ClientRequest, _params: Parameters) -> Form:
        hears = find_accommodation(request.profile).hears_of_changes
        return {
            "protocolVersion": request.protocol_version,
            "capabilities": list_capabilities(hears_of_changes=hears),
            "serverInfo": SERVER_INFO,
            "instructions": await self._server.write_instructions(request.caller),
        }

    async def _ping(self, _request: ClientRequest, _params: Parameters) -> Form:
        return {}

    async def _discover(self, request: ClientRequest, _params: Parameters) -> Form:
        return {
            "supportedVersions": MODERN_VERSIONS,
            "capabilities": list_capabilities(request.protocol_version),
            "instructions": await self._server.write_instructions(request.caller),
        }

    async def _call(self, request: ClientRequest, params: CallParameters) -> Any:
        call = CallParams(
            params.name, params.arguments, params.input_responses, params.request_state
        )
        return _get_form(await self._server.calls.answer(request, call, write_result))

    async def _get_prompt(self, request: ClientRequest, params: PromptParameters) -> Form:
        arguments: dict[str, Any] | None = params.arguments
        call = CallParams(
            params.name, arguments, params.input_responses, params.request_state, "prompt"
        )
        answer = await self._server.calls.answer(request, call, make_prompt_form)
        form: Form = _get_form(answer)
        if "messages" in form:
            with suppress(CallError):  # the prompt may have gone since
                prompt = self._server.tools.find(request.caller, params.name, "prompt").tool
                if prompt.description:
                    form = {"description": prompt.description, **form}
        return form

    async def _read(self, request: ClientRequest, params: ReadParameters) -> Form:
        found = await self._server.resources.find_declared(request, params.uri)
        if found is None:
            return await self._server.resources.read(request, params.uri)
        call = CallParams(
            found.entry.long_name,
            found.arguments,
            params.input_responses,
            params.request_state,
            "resource",
        )
        make_answer = partial(make_resource_form, params.uri)
        form: Form = _get_form(await self._server.calls.answer(request, call, make_answer))
        return form

    async def _set_log_level(self, request: ClientRequest, params: LevelParameters) -> Form:
        self._server.calls.set_log_level(request.connection, params.level)
        return {}


async def _list(
    method: str, name: str, find: FindPage, request: ClientRequest, params: ListParameters
) -> list[Piece]:
    page = await find(request, params.cursor)
    rest = {} if page.next_cursor is None else {"nextCursor": page.next_cursor}
    written = _write_form(method, request, rest)
    comma = b"" if written == b"{}" else b","
    return [b'{"%b":' % name.encode(), page.text, comma, written[1:]]


def _get_form(answer: Any) -> Any:
    """Return the JSON of an answer: a result, a question or a task."""
    return answer.form if isinstance(answer, InputRequired) else answer


def _write_form(method: str, request: ClientRequest, form: Form) -> bytes:
    """Return a result as JSON, with the members that all have since 2026-07-28."""
    if not request.is_handshake:
        cached = _UNCACHED if method in _CACHEABLE and "resultType" not in form else {}
        meta = _add_server_info(form.get("_meta") or {})
        form = {"resultType": "complete", **cached, **form, "_meta": meta}
    return to_json(form)


def write_result(result: Result, protocol_version: str) -> list[Piece]:
    """Return a call's result as JSON, in pieces."""
    rest = make_rest(result, protocol_version)
    if protocol_version in MODERN_VERSIONS:
        rest |= {"resultType": "complete", "_meta": _add_server_info(result.meta)}
    text: list[Piece] = [b'{"content":[']
    for form in make_block_forms(result, protocol_version):
        text += _write_block(form)
        text.append(b",")
    if result.content:
        text.pop()
    text += b"],", to_json(rest)[1:]
    return text


def _add_server_info(meta: Mapping[str, Any]) -> dict[str, Any]:
    return {SERVER_INFO_KEY: SERVER_INFO, **meta}


def _write_block(form: Form) -> list[Piece]:
    """Return a content block as JSON, in pieces; its bytes become base64."""
    match form:
        case {"data": bytes() as data, **rest}:
            return [to_json(rest)[:-1], b',"data":"', Base64Text(data), b'"}']
        case {"resource": {"blob": bytes() as data, **resource}, **rest}:
            head = to_json(rest)[:-1] + b',"resource":' + to_json(resource)[:-1] + b',"blob":"'
            return [head, Base64Text(data), b'"}}']
    return [to_json(form)]
