"""Shared by the transports: messages to a request's client, and the start of a session.

Runs on the bridge's event loop, for all transports.
"""

from collections.abc import Mapping
from typing import Any

from mcp_notebook.bridge.server.sessions.client_profile import ClientProfile, read_profile
from mcp_notebook.bridge.server.sessions.client_sessions import (
    ClientSession,
    SendMessage,
)
from mcp_notebook.protocol.elicitation import ELICIT, ElicitForm, ElicitResult, read_elicit_result
from mcp_notebook.protocol.errors import INVALID_PARAMS, INVALID_REQUEST, ProtocolError
from mcp_notebook.protocol.messages import Request, write_notification
from mcp_notebook.protocol.methods import INITIALIZE, InitializeParameters, read_parameters
from mcp_notebook.protocol.versions import HANDSHAKE_VERSIONS, LATEST_HANDSHAKE


class RequestChannel:
    """Progress, log messages and questions to the client of a request, before its answer.

    Args:
        send: Sends the client a message, within the response to the request.
        params: The request's parameters, whose meta may ask for progress.
        session: The client's session, through which its user can be asked; None since 2026-07-28.
    """

    def __init__(
        self,
        send: SendMessage,
        params: Mapping[str, Any] | None,
        session: ClientSession | None = None,
    ) -> None:
        meta = (params or {}).get("_meta")
        self._send = send
        self._session = session
        self._progress_token = meta.get("progressToken") if isinstance(meta, Mapping) else None

    @property
    def can_ask(self) -> bool:
        """Whether the client can be sent requests."""
        return self._session is not None

    async def ask(self, form: ElicitForm) -> ElicitResult:
        """Have the client show its user a form.

        Raises:
            ProtocolError: The client cannot be asked, or answers with an error.
        """
        if self._session is None:
            raise ProtocolError(INVALID_REQUEST, "The client cannot be asked.")
        answer = read_elicit_result(await self._session.ask(ELICIT, form.params, self._send))
        if answer is None:
            raise ProtocolError(INVALID_PARAMS, "The client's answer is not an elicitation result.")
        return answer

    async def send_progress(
        self, progress: float, total: float | None, message: str | None
    ) -> None:
        """Send progress, if the client wants it."""
        if self._progress_token is None:
            return
        params = {"progressToken": self._progress_token, "progress": progress}
        params |= {} if total is None else {"total": total}
        params |= {} if message is None else {"message": message}
        await self.notify("notifications/progress", params)

    async def send_log(self, level: str, logger: str | None, text: str) -> None:
        """Send a log message."""
        params = {"level": level, "data": text}
        params |= {} if logger is None else {"logger": logger}
        await self.notify("notifications/message", params)

    async def notify(self, method: str, params: Mapping[str, Any]) -> None:
        """Send a notification."""
        await self._send(write_notification(method, params))


def open_session(session: ClientSession, message: Request) -> ClientProfile:
    """Return the profile of a request's client: that of its session, or of its ``initialize``.

    Raises:
        ProtocolError: The parameters of ``initialize`` are invalid.
    """
    if message.method != INITIALIZE:
        # Before the handshake, only a ping gets here.
        return session.profile or read_profile(LATEST_HANDSHAKE, None, {}, session)
    params = read_parameters(INITIALIZE, LATEST_HANDSHAKE, message.params)
    assert isinstance(params, InitializeParameters)
    wanted = params.protocol_version
    version = wanted if wanted in HANDSHAKE_VERSIONS else LATEST_HANDSHAKE
    return read_profile(version, params.client_info, params.capabilities, session)
