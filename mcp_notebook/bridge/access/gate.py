"""Who may use the HTTP endpoint: the gate in front of everything else.

Runs on the bridge's event loop. The gate checks Host and Origin first (403: a web page may reach
local servers by DNS rebinding), then the bearer token (401). The token never appears in a log, a
response or a URL; where it comes from is the business of `token_file`. What is refused is one line
in the log (`refusals`).
"""

import hmac
import ipaddress
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from mcp_notebook.bridge.access.caller import OWNER, SCOPE_KEY
from mcp_notebook.bridge.access.refusals import RefusalLog

_LOCAL_NAMES = ("127.0.0.1", "localhost", "::1")


def is_loopback(host: str) -> bool:
    """Return whether an address can be reached from this machine only."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


class Gate:
    """ASGI middleware that lets a request through if its origin is allowed and its token right.

    Args:
        app: The application behind the gate.
        token: The bearer token.
        host: The address that the endpoint listens on, allowed as Host besides the local names.
            If it is not a loopback address, any Host is allowed: the endpoint cannot know the names
            that it is reached by, and the token protects it.
        refusals: Gets a line about each refused request.
    """

    def __init__(
        self, app: ASGIApp, *, token: str, host: str, refusals: RefusalLog | None = None
    ) -> None:
        self._app = app
        self._expected = f"Bearer {token}".encode()
        self._any_host = not is_loopback(host)
        self._hosts = {*_LOCAL_NAMES, host.strip("[]")}
        self._refusals = refusals or RefusalLog()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request; whatever is not HTTP, such as a WebSocket, is closed."""
        if scope["type"] != "http":
            if scope["type"] == "websocket":
                await send({"type": "websocket.close", "code": 1008})
            return
        headers = Headers(scope=scope)
        if not self._has_allowed_origin(headers):
            self._refusals.note(scope.get("client"), "its Host or Origin is not allowed")
            refusal = _make_refusal(403, "This Host or Origin may not use mcp-notebook.")
            await refusal(scope, receive, send)
        elif not self._has_token(headers):
            problem = "wrong" if "authorization" in headers else "missing"
            self._refusals.note(scope.get("client"), f"the bearer token is {problem}")
            refusal = _make_refusal(401, "The bearer token is missing or wrong.")
            refusal.headers["WWW-Authenticate"] = "Bearer"
            await refusal(scope, receive, send)
        else:
            await self._app({**scope, SCOPE_KEY: OWNER}, receive, send)

    def _has_allowed_origin(self, headers: Headers) -> bool:
        hosts = headers.getlist("host")
        if len(hosts) != 1 or not (
            self._any_host or _parse_host_name(f"//{hosts[0]}") in self._hosts
        ):
            return False
        origins = headers.getlist("origin")
        if not origins:
            return True
        if self._any_host:
            # A page may only call the server that served it.
            own_origins = (f"http://{hosts[0]}", f"https://{hosts[0]}")
            return all(origin in own_origins for origin in origins)
        return all(
            origin.startswith(("http://", "https://")) and _parse_host_name(origin) in self._hosts
            for origin in origins
        )

    def _has_token(self, headers: Headers) -> bool:
        values = headers.getlist("authorization")
        if len(values) != 1:
            return False
        scheme, _, token = values[0].partition(" ")
        presented = f"{scheme.capitalize()} {token.strip()}".encode("utf-8", "replace")
        return hmac.compare_digest(presented, self._expected)


def _parse_host_name(address: str) -> str | None:
    """Return the host name in an address of a host and perhaps a port; None if it has more."""
    try:
        parts = urlsplit(address)
        _ = parts.port  # raises if it is not a number
    except ValueError:
        return None
    alone = parts.netloc == address.partition("//")[2] and "@" not in parts.netloc
    return parts.hostname if alone else None


def _make_refusal(status: int, message: str) -> JSONResponse:
    return JSONResponse({"error": message}, status_code=status)
