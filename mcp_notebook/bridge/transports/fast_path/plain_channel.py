"""The way to the client of a plain request before its answer: progress, log messages, questions.

Runs on the bridge's event loop.
"""

from collections.abc import Awaitable, Callable
from typing import Any, cast

import mcp_types as types
from mcp.server.connection import Connection
from mcp.server.session import ServerSession
from mcp.shared.exceptions import NoBackChannelError
from pydantic_core import to_json

SendMessage = Callable[[bytes], Awaitable[None]]
"""Sends a client a JSON-RPC message."""


class PlainChannel:
    """The channel.

    Args:
        send: Leads to the client.
        progress_token: Identifies the request in notices of progress; None if it wants none.
        connection: The SDK's of a session whose client can be asked.
        request_id: The id of the request whose response carries questions to the client; None if
            there is only one way to the client.
    """

    def __init__(
        self,
        send: SendMessage,
        progress_token: types.ProgressToken | None,
        connection: Connection | None = None,
        request_id: types.RequestId | None = None,
    ) -> None:
        self._send = send
        self._progress_token = progress_token
        self._connection = connection
        self._request_id = request_id

    @property
    def can_ask(self) -> bool:
        """Whether the client can be sent requests."""
        return self._connection is not None

    async def ask(self, form: types.ElicitRequestFormParams) -> types.ElicitResult:
        """Have the client show its user a form; the SDK awaits what that does.

        Raises:
            NoBackChannelError: The client cannot be asked.
            MCPError: The client answers with an error.
        """
        if self._connection is None:
            raise NoBackChannelError("elicitation/create")
        outbound = cast("Any", _RequestOutbound(self._connection.outbound, self._request_id))
        session = ServerSession(outbound, self._connection)
        return await session.elicit_form(form.message, form.requested_schema, self._request_id)

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

    async def send_log(self, params: types.LoggingMessageNotificationParams) -> None:
        """Send a log message."""
        dumped = params.model_dump(by_alias=True, mode="json", exclude_none=True)
        await self._notify("notifications/message", dumped)

    async def _notify(self, method: str, params: dict[str, Any]) -> None:
        await self._send(to_json({"jsonrpc": "2.0", "method": method, "params": params}))


class _RequestOutbound:
    """Sends requests to a client within the response to one of the client's own requests.

    Args:
        outbound: The SDK's, of a session.
        request_id: That of the client's request.
    """

    def __init__(self, outbound: Any, request_id: types.RequestId | None) -> None:
        self._outbound = outbound
        self._request_id = request_id

    async def send_raw_request(self, *request: Any) -> dict[str, Any]:
        """Send a request, and return its result."""
        answer: dict[str, Any] = await self._outbound.send_raw_request(
            *request, _related_request_id=self._request_id
        )
        return answer
