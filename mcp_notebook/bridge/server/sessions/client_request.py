"""A client's request as the rest of the bridge sees it, over any transport.

Runs on the bridge's event loop; no I/O. A transport makes one for each request. All code that
handles requests knows only this form.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from mcp_notebook import meta_keys
from mcp_notebook.bridge.access.caller import Caller
from mcp_notebook.bridge.server.sessions.client_profile import ClientProfile
from mcp_notebook.bridge.server.sessions.client_sessions import ClientSession, SendMessage
from mcp_notebook.protocol.elicitation import ELICIT, ElicitForm, ElicitResult, read_elicit_result
from mcp_notebook.protocol.errors import INVALID_PARAMS, INVALID_REQUEST, ProtocolError
from mcp_notebook.protocol.messages import Request, RequestId, write_notification


class RequestChannel:
    """Progress, log messages and questions to the client of a request, before its answer.

    Args:
        send: Sends the client a message, within the response to the request.
        meta: The request's metadata, which may ask for progress.
        session: The client's session, through which its user can be asked; None since 2026-07-28.
    """

    def __init__(
        self,
        send: SendMessage,
        meta: Mapping[str, Any],
        session: ClientSession | None = None,
    ) -> None:
        self._send = send
        self._session = session
        self._progress_token = meta.get("progressToken")

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


class ClientRequest(Struct, frozen=True, kw_only=True):
    """A request of a client."""

    profile: ClientProfile
    """The client's description of itself."""
    id: RequestId
    caller: Caller
    """Who makes the request."""
    meta: Mapping[str, Any]
    """The request's ``_meta``, with MCP's own keys."""
    is_stdio: bool
    """Whether it came over stdio, and not over HTTP."""
    channel: RequestChannel
    """Sends the client messages before the answer."""

    @property
    def protocol_version(self) -> str:
        """The version of MCP that the request is in."""
        return self.profile.protocol_version

    @property
    def connection(self) -> Any:
        """See `ClientProfile.connection`."""
        return self.profile.connection

    @property
    def is_handshake(self) -> bool:
        """See `ClientProfile.is_handshake`."""
        return self.profile.is_handshake

    @property
    def is_from_view(self) -> bool:
        """Whether a person calls from a live view, as its page says."""
        return self.profile.shows_views and bool(self.meta.get(meta_keys.VIEW))

    @property
    def can_elicit(self) -> bool:
        """Whether the client can show its user a form now."""
        return self.profile.shows_forms and (not self.profile.is_handshake or self.channel.can_ask)


def make_request(
    message: Request,
    profile: ClientProfile,
    caller: Caller,
    send: SendMessage,
    *,
    is_stdio: bool = False,
) -> ClientRequest:
    """Return a message of a client as its request.

    Args:
        message: The message.
        profile: The client's description of itself.
        caller: Who sent it.
        send: Sends the client a message, within the response to the request.
        is_stdio: As in `ClientRequest`.
    """
    meta = (message.params or {}).get("_meta")
    meta = meta if isinstance(meta, Mapping) else {}
    return ClientRequest(
        profile=profile,
        id=message.id,
        caller=caller,
        meta=meta,
        is_stdio=is_stdio,
        channel=RequestChannel(send, meta, profile.connection),
    )
