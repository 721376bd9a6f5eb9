"""Who may use the HTTP endpoint: the token, and the gate in front of everything else.

Runs on the bridge's event loop. The gate checks Host and Origin first (403: a web page may reach
local servers by DNS rebinding), then the bearer token (401). The token never appears in a log, a
response or a URL.
"""

import contextlib
import hmac
import ipaddress
import logging
import os
import secrets
import stat
import tempfile
from pathlib import Path
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from mcp_notebook.errors import SettingsError
from mcp_notebook.private_files import make_private_folder
from mcp_notebook.settings import Settings

logger = logging.getLogger(__name__)

MIN_TOKEN = 16
"""Characters. A token that mcp-notebook generates has 43 (256 bits)."""
_LOCAL_NAMES = ("127.0.0.1", "localhost", "::1")


def is_loopback(host: str) -> bool:
    """Return whether an address can be reached from this machine only."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def read_token(settings: Settings) -> str:
    """Return the endpoint's token: from the settings, or from its file, created if necessary.

    Raises:
        SettingsError: The token is too short to protect anything, or its file cannot be used.
    """
    if settings.token is not None:
        return _check_token(settings.token, "MCP_NOTEBOOK_TOKEN")
    path = settings.token_path
    try:
        if not path.exists():
            make_private_folder(settings.home)
            _make_token(path)
        token = _check_token(_read_file(path).strip(), str(path))
        # Only now that it is known to be a token file: another path may be a typing error.
        if path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            logger.warning("%s was readable by other users; now it is readable by you only.", path)
            path.chmod(stat.S_IRUSR | stat.S_IWUSR)
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(
            f"The token file {path} cannot be used: {error}. Choose another with --token-file."
        ) from None
    return token


def _read_file(path: Path) -> str:
    # The shell's `<(...)` is a pipe that is written to; another one might be waited for forever.
    if path.is_fifo() and path.parent != Path("/dev/fd"):
        raise OSError("it is a pipe")
    return path.read_text(encoding="utf-8")


def _make_token(path: Path) -> None:
    # An existing folder keeps its mode: others may use it, too.
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")  # is 0600
    try:
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(secrets.token_urlsafe(32) + "\n")
        # If two bridges start at once, one of them wins, and both read its token.
        with contextlib.suppress(FileExistsError):
            path.hardlink_to(temporary)
    finally:
        Path(temporary).unlink()


def _check_token(token: str, source: str) -> str:
    if len(token) < MIN_TOKEN or not token.isascii() or any(c.isspace() for c in token):
        raise SettingsError(
            f"The token in {source} cannot be used: it must have at least {MIN_TOKEN} ASCII "
            "characters and no spaces. Remove it to have one generated."
        )
    return token


class Gate:
    """ASGI middleware that lets a request through if its origin is allowed and its token right.

    Args:
        app: The application behind the gate.
        token: The bearer token.
        host: The address that the endpoint listens on, allowed as Host besides the local names.
            If it is not a loopback address, any Host is allowed: the endpoint cannot know the names
            that it is reached by, and the token protects it.
    """

    def __init__(self, app: ASGIApp, *, token: str, host: str) -> None:
        self._app = app
        self._expected = f"Bearer {token}".encode()
        self._any_host = not is_loopback(host)
        self._hosts = {*_LOCAL_NAMES, host.strip("[]")}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request; whatever is not HTTP, such as a WebSocket, is closed."""
        if scope["type"] != "http":
            if scope["type"] == "websocket":
                await send({"type": "websocket.close", "code": 1008})
            return
        headers = Headers(scope=scope)
        if not self._has_allowed_origin(headers):
            refusal = _make_refusal(403, "This Host or Origin may not use mcp-notebook.")
            await refusal(scope, receive, send)
        elif not self._has_token(headers):
            refusal = _make_refusal(401, "The bearer token is missing or wrong.")
            refusal.headers["WWW-Authenticate"] = "Bearer"
            await refusal(scope, receive, send)
        else:
            await self._app(scope, receive, send)

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
