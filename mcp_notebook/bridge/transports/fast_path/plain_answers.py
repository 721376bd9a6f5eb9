"""Answers to plain requests, written straight to JSON, and the messages that precede them.

Runs on the bridge's event loop. The SDK validates and converts an answer twice, and copies a
picture three times. Here, its bytes become base64 piece by piece, while the answer is sent.
"""

from __future__ import annotations

import logging
from base64 import b64encode
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic_core import to_json

from mcp_notebook.bridge.server.calls.gates import CallParams
from mcp_notebook.bridge.server.declaration import SERVER_INFO, list_capabilities
from mcp_notebook.bridge.server.forms.accommodations import find_accommodation
from mcp_notebook.bridge.server.forms.result_forms import (
    choose_structured,
    make_block_forms,
    replace_surrogates,
)
from mcp_notebook.bridge.server.listing.pages import LIST_METHODS
from mcp_notebook.bridge.server.server import NotebookServer
from mcp_notebook.bridge.server.sessions.client_profile import SERVER_INFO_META_KEY
from mcp_notebook.bridge.server.sessions.client_request import ClientRequest
from mcp_notebook.bridge.server.sessions.client_sessions import ClientSession
from mcp_notebook.bridge.server.sessions.protocol_error import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    ProtocolError,
)
from mcp_notebook.bridge.server.tasks.forms import TaskForm
from mcp_notebook.bridge.transports.fast_path.plain_requests import (
    CALL,
    DISCOVER,
    INITIALIZE,
    PlainRequest,
)
from mcp_notebook.content import Result

if TYPE_CHECKING:
    import mcp_types as types

logger = logging.getLogger(__name__)

SendMessage = Callable[[bytes], Awaitable[None]]
"""Sends a client a JSON-RPC message."""
_PIECE = 3 * 2**16
"""Bytes that are encoded at a time; a multiple of three, so that the pieces can be joined. New
memory for all of a picture would take as long as to encode it."""
_COMPLETE: dict[str, Any] = {
    "ttlMs": 0,
    "cacheScope": "private",
    "resultType": "complete",
    "_meta": {SERVER_INFO_META_KEY: SERVER_INFO},
}
"""Members of all lists and descriptions since 2026-07-28."""


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


def expand(pieces: Iterable[Piece]) -> Iterator[bytes]:
    """Yield the bytes of an answer, each part when it is asked for."""
    for piece in pieces:
        if isinstance(piece, bytes):
            yield piece
        else:
            yield from piece


@dataclass(frozen=True)
class Answer:
    """The answer to a request."""

    pieces: list[Piece]
    """The JSON-RPC message."""
    error_code: int | None = None
    """None if it is a result."""


def is_short_way_open(missing: Sequence[str]) -> bool:
    """Return whether plain requests can be answered without the SDK, and say so if they cannot.

    Args:
        missing: The SDK's private members that the transport needs and does not find.
    """
    if missing:
        from importlib.metadata import version  # noqa: PLC0415 - costs a bridge 2 MB

        logger.warning(
            "MCP's SDK in its release %s has no %s, so all requests are left to it, which is "
            "slower. Upgrade mcp-notebook, or install an older release of `mcp`.",
            version("mcp"),
            " and no ".join(missing),
        )
    return not missing


class PlainAnswers:
    """Answers the plain requests of one bridge.

    Args:
        server: Answers requests.
    """

    def __init__(self, server: NotebookServer) -> None:
        self._server = server

    async def find(self, plain: PlainRequest, request: ClientRequest) -> Answer:
        """Return the answer to a request.

        Args:
            plain: The JSON-RPC request.
            request: The same with its client and caller.
        """
        try:
            with self._server.clients.visit(request):
                result = await self._find_result(plain, request)
        except ProtocolError as error:
            return write_error(request.id, error)
        except Exception as error:
            logger.exception("a plain request %r failed", plain.method)
            text = f"Internal error in mcp-notebook: {type(error).__name__}: {error}."
            failure = ProtocolError(INTERNAL_ERROR, replace_surrogates(text))
            return write_error(request.id, failure)
        head = b'{"jsonrpc":"2.0","id":%b,"result":' % to_json(request.id)
        return Answer([head, *result, b"}"])

    async def _find_result(self, plain: PlainRequest, request: ClientRequest) -> Sequence[Piece]:
        """Return the result of a request, as JSON in pieces."""
        if plain.method == CALL:
            return await self._call(plain, request)
        if plain.method in LIST_METHODS:
            return await self._list(plain, request)
        if plain.method == INITIALIZE:
            return [to_json(await self._initialize(request))]
        if plain.method == DISCOVER:
            return [to_json(await self._discover(request))]
        return [b"{}"]  # to a ping

    async def _call(self, plain: PlainRequest, request: ClientRequest) -> list[Piece]:
        params = CallParams(plain.params["name"], plain.params.get("arguments"))
        result = await self._server.calls.answer(request, params, self.write_result)
        if isinstance(result, list):
            return result
        return [to_json(_make_other_form(request.protocol_version, result))]

    async def _initialize(self, request: ClientRequest) -> dict[str, Any]:
        return {
            "protocolVersion": request.protocol_version,
            "capabilities": list_capabilities(
                hears_of_changes=find_accommodation(request.profile).hears_of_changes
            ),
            "serverInfo": SERVER_INFO,
            "instructions": await self._server.write_instructions(request.caller),
        }

    async def _discover(self, request: ClientRequest) -> dict[str, Any]:
        return _COMPLETE | {
            "supportedVersions": MODERN_PROTOCOL_VERSIONS,
            "capabilities": list_capabilities(request.protocol_version),
            "instructions": await self._server.write_instructions(request.caller),
        }

    async def _list(self, plain: PlainRequest, request: ClientRequest) -> list[bytes]:
        cursor = plain.params.get("cursor")
        name, page = await self._server.find_page(plain.method, request, cursor)
        rest: dict[str, Any] = {}
        if page.next_cursor is not None:
            rest["nextCursor"] = page.next_cursor
        if request.protocol_version in MODERN_PROTOCOL_VERSIONS:
            rest |= _COMPLETE
        return [b'{"%b":' % name.encode(), page.text, b"," if rest else b"", to_json(rest)[1:]]

    def write_result(self, result: Result, protocol_version: str) -> list[Piece]:
        """Return a call's result as JSON, in pieces."""
        structured = choose_structured(result, protocol_version)
        rest: dict[str, Any] = {"isError": result.is_error}
        meta = dict(result.meta)
        if structured is not None:
            rest["structuredContent"] = structured
        if protocol_version in MODERN_PROTOCOL_VERSIONS:
            rest["resultType"] = "complete"
            meta = _add_server_info(meta)
        if meta:
            rest["_meta"] = meta
        text: list[Piece] = [b'{"content":[']
        for form in make_block_forms(result, protocol_version):
            text += _write_block(form)
            text.append(b",")
        if result.content:
            text.pop()
        # Like the SDK, encode NaN and infinities as null.
        text += b"],", to_json(rest, inf_nan_mode="null")[1:]
        return text


def write_error(request_id: int | str | None, error: ProtocolError) -> Answer:
    """Return an error as the answer to a request."""
    return Answer([error.write_answer(request_id)], error.code)


def _make_other_form(version: str, result: types.InputRequiredResult | TaskForm) -> dict[str, Any]:
    """Return the answer of 2026-07-28 that replaces a result: a question, or a task."""
    if isinstance(result, dict):
        form = dict(result)
    else:
        from mcp_types.methods import serialize_server_result  # noqa: PLC0415 - few tools ask

        dumped = result.model_dump(mode="json", by_alias=True, exclude_none=True)
        form = serialize_server_result(CALL, version, dumped)
    form["_meta"] = _add_server_info(form.get("_meta") or {})
    return form


def _add_server_info(meta: dict[str, Any]) -> dict[str, Any]:
    if meta.get(SERVER_INFO_META_KEY) is not None:
        return meta
    return meta | {SERVER_INFO_META_KEY: SERVER_INFO}


def _write_block(form: dict[str, Any]) -> list[Piece]:
    """Return a content block as JSON, in pieces; its bytes become base64."""
    match form:
        case {"data": bytes() as data, **rest}:
            return [to_json(rest)[:-1], b',"data":"', Base64Text(data), b'"}']
        case {"resource": {"blob": bytes() as data, **resource}, **rest}:
            head = to_json(rest)[:-1] + b',"resource":' + to_json(resource)[:-1] + b',"blob":"'
            return [head, Base64Text(data), b'"}}']
    return [to_json(form)]


# -- before the answer -----------------------------------------------------------------------------


class PlainChannel:
    """Progress, log messages and questions to the client of a plain request, before its answer.

    Args:
        send: Sends the client a message.
        progress_token: Identifies the request in progress notifications; None: it wants none.
        session: The client's session, through which its user can be asked; None if not.
        request_id: The id of the request whose response carries questions to the client; None if
            the client has only one stream.
    """

    def __init__(
        self,
        send: SendMessage,
        progress_token: int | str | None,
        session: ClientSession | None = None,
        request_id: int | str | None = None,
    ) -> None:
        self._send = send
        self._progress_token = progress_token
        self._session = session
        self._request_id = request_id

    @property
    def can_ask(self) -> bool:
        """Whether the client can be sent requests."""
        return self._session is not None

    async def ask(self, form: types.ElicitRequestFormParams) -> types.ElicitResult:
        """Have the client show its user a form, through the SDK.

        Raises:
            ProtocolError: The client cannot be asked, or answers with an error.
        """
        if self._session is None:
            raise ProtocolError(INVALID_REQUEST, "The client cannot be asked.")
        connection = await self._session.find_connection()
        # Only now: over stdio, the SDK may not have been loaded.
        from mcp.server.session import ServerSession  # noqa: PLC0415
        from mcp.shared.exceptions import MCPError  # noqa: PLC0415

        outbound = cast("Any", _RequestOutbound(connection.outbound, self._request_id))
        session = ServerSession(outbound, connection)
        try:
            return await session.elicit_form(form.message, form.requested_schema, self._request_id)
        except MCPError as error:
            raise ProtocolError(error.code, error.message, error.data) from error

    async def send_progress(
        self, progress: float, total: float | None, message: str | None
    ) -> None:
        """Send progress, if the client wants it."""
        if self._progress_token is None:
            return
        params = {"progressToken": self._progress_token, "progress": progress}
        params |= {} if total is None else {"total": total}
        params |= {} if message is None else {"message": message}
        await self._notify("notifications/progress", params)

    async def send_log(self, level: str, logger: str | None, text: str) -> None:
        """Send a log message."""
        params = {"level": level, "data": text}
        params |= {} if logger is None else {"logger": logger}
        await self._notify("notifications/message", params)

    async def _notify(self, method: str, params: dict[str, Any]) -> None:
        await self._send(to_json({"jsonrpc": "2.0", "method": method, "params": params}))


class _RequestOutbound:
    """Sends requests to a client within the response to one of the client's own requests.

    Args:
        outbound: The SDK's outbound channel of the session.
        request_id: The id of the client's request.
    """

    def __init__(self, outbound: Any, request_id: int | str | None) -> None:
        self._outbound = outbound
        self._request_id = request_id

    async def send_raw_request(self, *request: Any) -> dict[str, Any]:
        """Send a request, and return its result."""
        answer: dict[str, Any] = await self._outbound.send_raw_request(
            *request, _related_request_id=self._request_id
        )
        return answer
