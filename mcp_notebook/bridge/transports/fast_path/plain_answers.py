"""The answers to plain requests: found like all others, and written straight to JSON.

Runs on the bridge's event loop. The SDK validates and converts an answer twice, and copies a
picture three times on its way. Here, its bytes become base64 in the text that leaves.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import metadata
from typing import Any

import mcp_types as types
from mcp.server.runner import ServerRunner
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic_core import to_json

from mcp_notebook.bridge.server.protocol.base64_text import Base64Text, Piece
from mcp_notebook.bridge.server.protocol.client_request import ClientRequest
from mcp_notebook.bridge.server.protocol.result_forms import (
    choose_structured,
    make_block_forms,
    replace_surrogates,
)
from mcp_notebook.bridge.server.server import NotebookServer
from mcp_notebook.bridge.transports.fast_path.plain_requests import CALL, PlainRequest
from mcp_notebook.content import Result

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Answer:
    """The answer to a request."""

    pieces: list[Piece]
    """The JSON-RPC message."""
    error_code: int | None = None
    """None if it is a result."""


def is_short_way_open(missing: Sequence[str] = ()) -> bool:
    """Return whether plain requests can be answered without the SDK, and say so if they cannot.

    Args:
        missing: What the transport needs of the SDK's private members, and does not find.
    """
    needed = ("_serialize",)
    missing = (*missing, *(name for name in needed if not hasattr(ServerRunner, name)))
    if missing:
        logger.warning(
            "MCP's SDK in its release %s has no %s, so all requests are left to it, which is "
            "slower. Upgrade mcp-notebook, or install an older release of `mcp`.",
            metadata.version("mcp"),
            " and no ".join(missing),
        )
    return not missing


class PlainAnswers:
    """Answers the plain requests of one bridge.

    Args:
        server: Knows the answers.
    """

    def __init__(self, server: NotebookServer) -> None:
        self._server = server
        self._runner = ServerRunner(server.mcp, connection=None, lifespan_state=None)  # type: ignore[arg-type]
        self._server_info = {types.SERVER_INFO_META_KEY: server.mcp.server_info_stamp}

    async def find(self, plain: PlainRequest, request: ClientRequest) -> Answer:
        """Return the answer to a request.

        Args:
            plain: What it says.
            request: Of whom and how.
        """
        try:
            self._server.request_rates.check(request)
            result: Sequence[Piece]
            with self._server.clients.visit(request):
                if plain.method == CALL:
                    result = await self._call(plain, request)
                else:
                    result = await self._list(plain, request)
        except MCPError as error:
            return write_error(request.id, error.error)
        except Exception as error:
            logger.exception("a plain request %r failed", plain.method)
            text = f"Internal error in mcp-notebook: {type(error).__name__}: {error}."
            failure = types.ErrorData(code=types.INTERNAL_ERROR, message=replace_surrogates(text))
            return write_error(request.id, failure)
        head = b'{"jsonrpc":"2.0","id":%b,"result":' % to_json(request.id)
        return Answer([head, *result, b"}"])

    async def _call(self, plain: PlainRequest, request: ClientRequest) -> list[Piece]:
        params = types.CallToolRequestParams(
            name=plain.params["name"], arguments=plain.params.get("arguments")
        )
        result = await self._server.calls.answer(request, params, self.write_result)
        if isinstance(result, list):
            return result
        shape = self._runner._serialize  # noqa: SLF001 - a question to the user: not worth a way of its own
        return [to_json(shape(CALL, request.protocol_version, result))]

    async def _list(self, plain: PlainRequest, request: ClientRequest) -> list[bytes]:
        page = await self._server.lists.find_page(request, plain.params.get("cursor"))
        rest: dict[str, Any] = {}
        if page.next_cursor is not None:
            rest["nextCursor"] = page.next_cursor
        if request.protocol_version in MODERN_PROTOCOL_VERSIONS:
            rest |= {"ttlMs": 0, "cacheScope": "private", "resultType": "complete"}
            rest["_meta"] = self._server_info
        return [b'{"tools":', page.text, b"," if rest else b"", to_json(rest)[1:]]

    def write_result(
        self, result: Result, protocol_version: str, *, takes_structured: bool = True
    ) -> list[Piece]:
        """Return a call's result as JSON, in pieces."""
        structured = choose_structured(result, protocol_version, takes_structured=takes_structured)
        rest: dict[str, Any] = {"isError": result.is_error}
        meta = dict(result.meta)
        if structured is not None:
            rest["structuredContent"] = structured
        if protocol_version in MODERN_PROTOCOL_VERSIONS:
            rest["resultType"] = "complete"
            if meta.get(types.SERVER_INFO_META_KEY) is None:
                meta |= self._server_info
        if meta:
            rest["_meta"] = meta
        text: list[Piece] = [b'{"content":[']
        for form in make_block_forms(result, protocol_version, structured):
            text += _write_block(form)
            text.append(b",")
        if result.content:
            text.pop()
        # Like the SDK, encode NaN and infinities as null.
        text += b"],", to_json(rest, inf_nan_mode="null")[1:]
        return text


def write_error(request_id: types.RequestId | None, error: types.ErrorData) -> Answer:
    """Return an error as the answer to a request."""
    message = {"jsonrpc": "2.0", "id": request_id, "error": error.model_dump(exclude_none=True)}
    return Answer([to_json(message)], error.code)


def _write_block(form: dict[str, Any]) -> list[Piece]:
    """Return a content block as JSON, in pieces; its bytes become base64."""
    match form:
        case {"data": bytes() as data, **rest}:
            return [to_json(rest)[:-1], b',"data":"', Base64Text(data), b'"}']
        case {"resource": {"blob": bytes() as data, **resource}, **rest}:
            head = to_json(rest)[:-1] + b',"resource":' + to_json(resource)[:-1] + b',"blob":"'
            return [head, Base64Text(data), b'"}}']
    return [to_json(form)]
