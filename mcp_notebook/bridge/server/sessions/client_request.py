"""A client's request as the rest of the bridge sees it, over any transport.

Runs on the bridge's event loop; no I/O. A transport makes one for each request. All code that
handles requests knows only this form.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from msgspec import Struct

from mcp_notebook import meta_keys
from mcp_notebook.bridge.access.caller import Caller
from mcp_notebook.bridge.server.sessions.client_profile import ClientProfile
from mcp_notebook.protocol.elicitation import ElicitForm, ElicitResult
from mcp_notebook.protocol.messages import RequestId


class Channel(Protocol):
    """Messages to a request's client before the answer."""

    @property
    def can_ask(self) -> bool:
        """Whether the client can be sent requests now."""

    async def ask(self, form: ElicitForm) -> ElicitResult:
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

    async def notify(self, method: str, params: Mapping[str, Any]) -> None:
        """Send a notification."""


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
