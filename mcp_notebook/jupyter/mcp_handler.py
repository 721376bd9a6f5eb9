"""``/mcp`` and ``/mcp/NOTEBOOK``: passes MCP on between a client and the server's own bridge.

Runs on the event loop of Jupyter Server. Both directions stream: the head of the answer goes out
when it comes, each piece of it at once, and a client that hangs up ends the request to the bridge,
too. A call may take hours. Nothing of MCP is read here.

Only a token in the header opens it: a cookie, which a browser sends with every request, does not.
"""

import re
from collections.abc import Iterator
from http import HTTPStatus
from typing import cast
from urllib.parse import quote, urlsplit

import anyio
import httpx2
from tornado.http1connection import HTTP1Connection
from tornado.iostream import StreamClosedError
from tornado.web import HTTPError

from mcp_notebook.jupyter.authorized_handler import AuthorizedHandler
from mcp_notebook.jupyter.bridge_process import SETTINGS_KEY, BridgeProcess

_REQUEST_HEADERS = {"accept", "baggage", "content-type", "last-event-id", "traceparent"}
_REQUEST_HEADERS |= {"tracestate", "user-agent"}
"""What the bridge gets of a request, besides MCP's own. The server's token is not for it."""
_OWN_HEADERS = {"connection", "date", "keep-alive", "server", "transfer-encoding"}
"""What belongs to the connection with the bridge and not to the answer."""
_ONLY_A_COOKIE = (
    "MCP clients send the header `Authorization: token TOKEN`. The cookie of a browser is not "
    "enough, as other pages could send it, too."
)
_WITHOUT_LOGIN = (
    "This Jupyter Server has no token, and MCP clients need one. Start it with a token "
    "(`IdentityProvider.token`, or the variable JUPYTER_TOKEN); a password can stay beside it."
)
_FOREIGN_ORIGIN = (
    "A page of this Origin may not use mcp-notebook. Jupyter Server's `ServerApp.allow_origin`, or "
    "MCP_NOTEBOOK_ALLOWED_ORIGINS, says which others may."
)
_LOST = "mcp-notebook's bridge has ended. Connect again: it is started anew."


class McpHandler(AuthorizedHandler):
    """The route for MCP clients."""

    def initialize(self) -> None:
        """Take the answer as it is: tornado would compress it on the event loop."""
        self.request.headers.pop("Accept-Encoding", None)
        self._relaying = anyio.CancelScope()

    async def prepare(self) -> None:  # type: ignore[override] # as in APIHandler
        """Let the request in, or raise.

        Raises:
            HTTPError: 401 without a login, 403 if it does not allow this.
        """
        try:
            await super().prepare()
        except HTTPError as error:
            # Without a token, the server wants an XSRF token, which would not do here.
            if error.status_code == HTTPStatus.FORBIDDEN and self.current_user:
                self._check_token()
            raise
        if self.request.method == "OPTIONS":
            return
        self._check_token()
        if not self._has_allowed_origin():
            raise HTTPError(HTTPStatus.FORBIDDEN, _FOREIGN_ORIGIN)
        self.update_api_activity()

    async def post(self, notebook: str = "") -> None:
        """Pass on a message of a client, and the answer."""
        await self._relay(notebook)

    async def get(self, notebook: str = "") -> None:
        """Pass on the messages of the bridge that answer no request."""
        await self._relay(notebook)

    async def delete(self, notebook: str = "") -> None:
        """Pass on that a client ends its session."""
        await self._relay(notebook)

    def on_connection_close(self) -> None:
        """End the request to the bridge: the client has hung up."""
        self._relaying.cancel()

    def _check_token(self) -> None:
        if not self.token_authenticated:
            raise HTTPError(HTTPStatus.FORBIDDEN, _ONLY_A_COOKIE if self.token else _WITHOUT_LOGIN)

    def _has_allowed_origin(self) -> bool:
        """Return whether the request comes from no web page, or from one that may send it."""
        origin = self.get_origin()
        if origin is None or self.allow_origin in ("*", origin):
            return True
        if origin.lower() in map(str.lower, self._bridge.settings.allowed_origins):
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
            except httpx2.HTTPError:
                if not self._headers_written:
                    raise HTTPError(HTTPStatus.BAD_GATEWAY, _LOST) from None
                # The client must not take what it has for the whole answer.
                cast("HTTP1Connection", self.request.connection).close()
            except StreamClosedError:
                self._relaying.cancel()

    async def _exchange(self, notebook: str) -> None:
        http = await self._bridge.connect()
        request = http.build_request(
            self.request.method or "",
            _make_path(notebook),
            headers=[*self._list_headers()],
            content=self.request.body or None,
        )
        answer = await http.send(request, stream=True)
        try:
            self.set_status(answer.status_code)
            self.clear_header("Content-Type")
            for name, value in answer.headers.multi_items():
                if name.lower() not in _OWN_HEADERS:
                    self.set_header(name, value)
            self.set_header("X-Accel-Buffering", "no")
            await self.flush()
            async for chunk in answer.aiter_raw():
                self.write(chunk)
                await self.flush()
        finally:
            with anyio.CancelScope(shield=True):
                await answer.aclose()

    def _list_headers(self) -> Iterator[tuple[bytes, bytes]]:
        for name, value in self.request.headers.get_all():
            if name.lower() in _REQUEST_HEADERS or name.lower().startswith("mcp-"):
                yield name.encode("latin-1"), value.encode("latin-1")  # as tornado decodes them


def _make_path(notebook: str) -> str:
    """Return the bridge's path for a notebook: one word below ``/mcp``, whatever its name.

    httpx2 would resolve "..", which could lead to another path.
    """
    return f"/mcp/{quote(notebook, safe='').replace('.', '%2E')}" if notebook else "/mcp"
