"""``/mcp-notebook`` and ``/mcp-notebook/NOTEBOOK``: relays MCP between a client and a bridge.

Runs on the event loop of Jupyter Server, which has a bridge of its own. Answers are streamed: the
head and each chunk are sent as they arrive, and a client that disconnects cancels the request to
the bridge. A call may take hours. MCP messages are not parsed here.

Only a token in the header is accepted, not a cookie, which browsers send with every request.
"""

import re
from collections.abc import Iterator
from http import HTTPStatus
from typing import Any, cast
from urllib.parse import quote, urlsplit

import anyio
from tornado.http1connection import HTTP1Connection
from tornado.iostream import StreamClosedError
from tornado.web import HTTPError

from mcp_notebook.jupyter.authorized_handler import AuthorizedHandler
from mcp_notebook.jupyter.bridge_connections import BridgeLost, Field
from mcp_notebook.jupyter.bridge_process import SETTINGS_KEY, BridgeProcess

_REQUEST_HEADERS = {"accept", "content-type", "user-agent"}
"""The relayed headers of a request, besides MCP's. The bridge must not get the server's token."""
_OWN_HEADERS = {"connection", "date", "keep-alive", "server", "transfer-encoding"}
"""Headers of the connection to the bridge, which are not relayed."""
_ONLY_A_COOKIE = (
    "Send the header `Authorization: token TOKEN`. A browser's cookie is not enough, because other "
    "pages could send it as well."
)
_WITHOUT_LOGIN = (
    "This Jupyter Server has no token, but MCP clients need one. Start it with a token "
    "(`IdentityProvider.token`, or the variable JUPYTER_TOKEN); a password can be set as well."
)
_FOREIGN_ORIGIN = (
    "Pages of this Origin may not use mcp-notebook. To allow them, set `ServerApp.allow_origin` or "
    "MCP_NOTEBOOK_ALLOWED_HOSTS."
)
_LOST = "mcp-notebook's bridge has ended. Connect again to restart it."


class McpHandler(AuthorizedHandler):
    """The route for MCP clients."""

    def initialize(self) -> None:
        """Disable compression, which tornado would do on the event loop."""
        self.request.headers.pop("Accept-Encoding", None)
        self._relaying = anyio.CancelScope()

    async def prepare(self) -> None:  # type: ignore[override] # as in APIHandler
        """Admit the request, or raise.

        Raises:
            HTTPError: 401 without a valid login, 403 if the user lacks the permission.
        """
        try:
            await super().prepare()
        except HTTPError as error:
            # Without a token, the server asks for an XSRF token, which is not accepted here.
            if error.status_code == HTTPStatus.FORBIDDEN and self.current_user:
                self._check_token()
            raise
        if self.request.method == "OPTIONS":
            return
        self._check_token()
        if not self._has_allowed_origin():
            raise HTTPError(HTTPStatus.FORBIDDEN, _FOREIGN_ORIGIN)
        self.update_api_activity()

    def update_api_activity(self) -> None:
        """Count a message as activity, but not a stream.

        Its client opens it again whenever it ends, which must not keep an idle server from stopping
        (``ServerApp.shutdown_no_activity_timeout``).
        """
        is_listening = self.request.headers.get("Mcp-Method") == "subscriptions/listen"
        if self.request.method == "POST" and not is_listening:
            super().update_api_activity()

    def set_signed_cookie(self, *args: Any, **kwargs: Any) -> None:
        """Set no cookie: Jupyter would sign one for each call, and none is accepted here."""

    set_secure_cookie = set_signed_cookie  # the name that Jupyter calls

    async def post(self, notebook: str = "") -> None:
        """Relay a message of a client, and the answer."""
        await self._relay(notebook)

    async def get(self, notebook: str = "") -> None:
        """Relay the bridge's messages that are not answers."""
        await self._relay(notebook)

    async def delete(self, notebook: str = "") -> None:
        """Relay the end of a client's session."""
        await self._relay(notebook)

    def on_connection_close(self) -> None:
        """Cancel the request to the bridge when the client disconnects."""
        self._relaying.cancel()

    def _check_token(self) -> None:
        if not self.token_authenticated:
            raise HTTPError(HTTPStatus.FORBIDDEN, _ONLY_A_COOKIE if self.token else _WITHOUT_LOGIN)

    def _has_allowed_origin(self) -> bool:
        """Return whether the request comes from an allowed web page, or from no page."""
        origin = self.get_origin()
        if origin is None or self.allow_origin in ("*", origin):
            return True
        if (urlsplit(origin).hostname or "") in map(str.lower, self._bridge.settings.allowed_hosts):
            return True
        if self.allow_origin_pat and re.fullmatch(self.allow_origin_pat, origin):
            return True
        return urlsplit(origin).netloc == self.request.host

    @property
    def _bridge(self) -> BridgeProcess:
        return cast("BridgeProcess", self.settings[SETTINGS_KEY])

    async def _relay(self, notebook: str) -> None:
        with self._relaying:
            try:
                await self._exchange(notebook)
            except BridgeLost:
                if not self._headers_written:
                    raise HTTPError(HTTPStatus.BAD_GATEWAY, _LOST) from None
                # The client must not mistake a truncated answer for the whole.
                cast("HTTP1Connection", self.request.connection).close()
            except StreamClosedError:
                self._relaying.cancel()

    async def _exchange(self, notebook: str) -> None:
        connections = await self._bridge.connect()
        fields = list(self._list_fields())
        # Whatever the name of the notebook is: the bridge resolves no dots.
        path = f"/mcp/{quote(notebook)}" if notebook else "/mcp"
        async with connections.exchange(
            self.request.method or "", path, fields, self.request.body
        ) as answer:
            self.set_status(answer.status)
            self.clear_header("Content-Type")
            for name, value in answer.fields:
                text = name.decode("latin-1")
                if text.lower() not in _OWN_HEADERS:
                    self.set_header(text, value.decode("latin-1"))
            self.set_header("X-Accel-Buffering", "no")
            if not answer.has_part:
                await self.flush()  # a stream may have nothing to say for a long time
            while part := await answer.take():
                self.write(part)
                await self.flush()

    def _list_fields(self) -> Iterator[Field]:
        for name, value in self.request.headers.get_all():
            if name.lower() in _REQUEST_HEADERS or name.lower().startswith("mcp-"):
                yield name.encode("latin-1"), value.encode("latin-1")  # as tornado decodes them
