"""The way to the client of a plain request before its answer: progress, log messages, questions.

Runs on the bridge's event loop.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, cast

from pydantic_core import to_json

from mcp_notebook.bridge.server.protocol.client_sessions import ClientSession
from mcp_notebook.bridge.server.protocol.protocol_error import INVALID_REQUEST, ProtocolError

if TYPE_CHECKING:
    import mcp_types as types

SendMessage = Callable[[bytes], Awaitable[None]]
"""Sends a client a JSON-RPC message."""


class PlainChannel:
    """The channel.

    Args:
        send: Leads to the client.
        progress_token: Identifies the request in notices of progress; None if it wants none.
        session: That of a client that can be asked; None if it cannot.
        request_id: The id of the request whose response carries questions to the client; None if
            there is only one way to the client.
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
        """Have the client show its user a form; the SDK awaits what that does.

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
        outbound: The SDK's, of a session.
        request_id: That of the client's request.
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
