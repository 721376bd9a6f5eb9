"""Asks one server: opens a session if the version has one, lists its tools, and calls them.

Runs on a command's event loop.
"""

import itertools
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Protocol

import anyio

from mcp_notebook._version import __version__
from mcp_notebook.protocol.errors import INTERNAL_ERROR, INVALID_REQUEST, ProtocolError
from mcp_notebook.protocol.methods import CALL, CANCELLED, INITIALIZE, INITIALIZED, LIST_TOOLS
from mcp_notebook.protocol.versions import (
    CLIENT_CAPABILITIES_KEY,
    CLIENT_INFO_KEY,
    HANDSHAKE_VERSIONS,
    PROTOCOL_VERSION_KEY,
)

_MAX_PAGES = 1_000
"""Maximum pages read of a list."""
_CANCEL_LIMIT = 1.0
"""Seconds to tell the server that an answer is no longer needed."""


class Transport(Protocol):
    """A way to a server."""

    async def ask(self, message: Mapping[str, Any]) -> Mapping[str, Any]:
        """Send a request, and return the message that answers it.

        Raises:
            ProtocolError: The server cannot be reached, or its reply is invalid.
        """

    async def notify(self, message: Mapping[str, Any]) -> None:
        """Send a notification."""


class McpClient:
    """A client of one server.

    Args:
        transport: The way to it.
        name: The name of the program that asks.
        version: The version of MCP: one with a handshake, which `open` does, or one without.
    """

    def __init__(self, transport: Transport, name: str, version: str) -> None:
        self._transport = transport
        self._info = {"name": name, "version": __version__}
        self._version = version
        self._ids = itertools.count(1)
        self.server: Mapping[str, Any] = {}
        """The server's ``serverInfo``, after `open`."""

    async def open(self) -> None:
        """Open a session, if the version has one.

        Raises:
            ProtocolError: The server refuses it, or speaks another version.
        """
        if self._version not in HANDSHAKE_VERSIONS:
            return
        params = {
            "protocolVersion": self._version,
            "capabilities": {},
            "clientInfo": self._info,
        }
        result = await self._ask(INITIALIZE, params)
        version = result.get("protocolVersion")
        if version not in HANDSHAKE_VERSIONS:
            raise ProtocolError(
                INVALID_REQUEST, f"The server answers in version {version!r} of MCP."
            )
        info = result.get("serverInfo")
        self.server = info if isinstance(info, Mapping) else {}
        await self._transport.notify({"jsonrpc": "2.0", "method": INITIALIZED})

    async def list_tools(self) -> list[Mapping[str, Any]]:
        """Return all tools, in MCP's form.

        Raises:
            ProtocolError: The server answers with an error.
        """
        tools: list[Mapping[str, Any]] = []
        params: dict[str, Any] = {}
        for _ in range(_MAX_PAGES):
            page = await self._ask(LIST_TOOLS, params)
            listed = page.get("tools")
            tools += listed if isinstance(listed, list) else []
            cursor = page.get("nextCursor")
            if not isinstance(cursor, str):
                break
            params = {"cursor": cursor}
        return tools

    async def call_tool(self, name: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """Call a tool, and return its result in MCP's form.

        Raises:
            ProtocolError: The server answers with an error.
        """
        return await self._ask(CALL, {"name": name, "arguments": arguments})

    async def _ask(self, method: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
        if self._version not in HANDSHAKE_VERSIONS:
            meta = {
                PROTOCOL_VERSION_KEY: self._version,
                CLIENT_INFO_KEY: self._info,
                CLIENT_CAPABILITIES_KEY: {},
            }
            params = {**params, "_meta": meta}
        number = next(self._ids)
        request = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        try:
            answer = await self._transport.ask(request)
        except anyio.get_cancelled_exc_class():
            await self._cancel(number)
            raise
        result, error = answer.get("result"), answer.get("error")
        if isinstance(result, Mapping):
            return result
        error = error if isinstance(error, Mapping) else {}
        code = error.get("code")
        raise ProtocolError(
            code if isinstance(code, int) else INTERNAL_ERROR,
            str(error.get("message", "The answer is neither a result nor an error.")),
            error.get("data"),
        )

    async def _cancel(self, request_id: int) -> None:
        """Cancel a request; since 2026-07-28, the end of the connection does."""
        if self._version in HANDSHAKE_VERSIONS:
            message = {
                "jsonrpc": "2.0",
                "method": CANCELLED,
                "params": {"requestId": request_id, "reason": "The answer is no longer needed."},
            }
            with (
                anyio.move_on_after(_CANCEL_LIMIT, shield=True),
                suppress(ProtocolError),
            ):
                await self._transport.notify(message)
