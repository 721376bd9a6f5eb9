"""A client's request as the rest of the bridge sees it, with or without the SDK.

Runs on the bridge's event loop; no I/O. `read_request` makes one from the SDK's context; the short
way makes one from a plain request. All code that handles requests knows only this form.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import mcp_types as types
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

from mcp_notebook import meta_keys
from mcp_notebook.bridge.access.caller import SCOPE_KEY, Caller
from mcp_notebook.bridge.server.sessions.client_profile import ClientProfile, profile_from_sdk
from mcp_notebook.bridge.server.sessions.client_sessions import find_session
from mcp_notebook.bridge.server.sessions.protocol_error import ProtocolError

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext


class Channel(Protocol):
    """Messages to a request's client before the answer."""

    @property
    def can_ask(self) -> bool:
        """Whether the client can be sent requests now."""

    async def ask(self, form: types.ElicitRequestFormParams) -> types.ElicitResult:
        """Have the client show its user a form, and return the user's response.

        Raises:
            ProtocolError: The client cannot be asked, or answers with an error.
        """

    async def send_progress(
        self, progress: float, total: float | None, message: str | None
    ) -> None:
        """Send progress, if the client wants it."""

    async def send_log(self, level: str, logger: str | None, text: str) -> None:
        """Send a log message."""


@dataclass(frozen=True, kw_only=True)
class ClientRequest:
    """A request of a client."""

    profile: ClientProfile
    """The client's description of itself."""
    id: types.RequestId | None
    """None if it is a notification."""
    caller: Caller
    """Who makes the request."""
    meta: Mapping[str, Any]
    """The request's ``_meta``, with MCP's own keys."""
    headers: Mapping[str, str] | None
    """The headers of the HTTP request; None over stdio."""
    channel: Channel
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


def read_request(ctx: ServerRequestContext[Any], default_caller: Caller) -> ClientRequest:
    """Return the request that the SDK hands a handler.

    Args:
        ctx: The SDK's context.
        default_caller: The caller if the transport does not name one.
    """
    is_handshake = ctx.protocol_version in HANDSHAKE_PROTOCOL_VERSIONS
    profile = profile_from_sdk(
        ctx.protocol_version,
        ctx.session.client_params,
        ctx.session.client_capabilities,
        find_session(ctx) if is_handshake else None,
    )
    return ClientRequest(
        profile=profile,
        id=ctx.request_id,
        caller=find_caller(ctx, default_caller),
        meta=_read_meta(ctx),
        headers=getattr(ctx.request, "headers", None),
        channel=_SessionChannel(ctx),
    )


def find_caller(ctx: ServerRequestContext[Any], default: Caller) -> Caller:
    """Return the caller of a request.

    Args:
        ctx: The request.
        default: The caller if the transport does not name one: over stdio, the bridge's user.
    """
    scope = getattr(ctx.request, "scope", None) or {}
    caller = scope.get(SCOPE_KEY, default)
    assert isinstance(caller, Caller)
    return caller


def _read_meta(ctx: ServerRequestContext[Any]) -> Mapping[str, Any]:
    """Return a request's ``_meta``, with the original name of a key that the SDK renames."""
    meta: dict[str, Any] = dict(ctx.meta or {})
    if "progress_token" in meta:
        meta["progressToken"] = meta.pop("progress_token")
    return meta


class _SessionChannel:
    """The SDK's session of one request."""

    def __init__(self, ctx: ServerRequestContext[Any]) -> None:
        self._session = ctx.session
        self._request_id = ctx.request_id

    @property
    def can_ask(self) -> bool:
        return self._session.can_send_request

    async def ask(self, form: types.ElicitRequestFormParams) -> types.ElicitResult:
        from mcp.shared.exceptions import MCPError  # noqa: PLC0415 - see `postponed_sdk`

        try:
            return await self._session.elicit_form(
                form.message, form.requested_schema, self._request_id
            )
        except MCPError as error:
            raise ProtocolError(error.code, error.message, error.data) from error

    async def send_progress(
        self, progress: float, total: float | None, message: str | None
    ) -> None:
        await self._session.report_progress(progress, total, message)

    async def send_log(self, level: str, logger: str | None, text: str) -> None:
        params = types.LoggingMessageNotificationParams.model_validate(
            {"level": level, "logger": logger, "data": text}
        )
        # Not `send_log_message`: it warns at every message that MCP deprecates logging.
        await self._session.send_notification(
            types.LoggingMessageNotification(params=params), self._request_id
        )
