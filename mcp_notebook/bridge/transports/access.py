"""Who may talk to the HTTP endpoint: the outermost gate, and the token.

Runs in the bridge, on its event loop, before anything else sees a request. Host and Origin come
first (403, against web pages that reach for local servers by DNS rebinding), then the bearer token
(401). The token is never written to a log, an answer or an address.
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

from mcp_notebook.discovery import private_folder
from mcp_notebook.errors import SettingsError
from mcp_notebook.settings import Settings

logger = logging.getLogger(__name__)

MIN_TOKEN = 16
"""Characters; one that mcp-notebook makes has 43 (256 bit)."""
_LOCAL_NAMES = ("127.0.0.1", "localhost", "::1")


def is_loopback(host: str) -> bool:
    """Tell whether an address can only be reached from this machine."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def read_token(settings: Settings) -> str:
    """Return the endpoint's token: the given one, or the one in the token file, made if need be.

    Raises:
        SettingsError: The token is too short to protect anything, or its file cannot be used.
    """
    if settings.token is not None:
        return _checked(settings.token, "MCP_NOTEBOOK_TOKEN")
    path = settings.token_path
    try:
        if not path.exists():
            private_folder(settings.home)
            _make_token(path)
        token = _checked(path.read_text(encoding="utf-8").strip(), str(path))
        # Only now: a folder, or a file that holds something else, was named by mistake.
        if path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            logger.warning("%s could be read by others; it is now yours only.", path)
            path.chmod(stat.S_IRUSR | stat.S_IWUSR)
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(
            f"The token file {path} cannot be used: {error}. Name another with --token-file."
        ) from None
    return token


def _make_token(path: Path) -> None:
    # A folder that is there may be anybody's: its mode is left alone.
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor, made = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")  # is 0600
    try:
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(secrets.token_urlsafe(32) + "\n")
        # Of two bridges that start at once, one wins, and both read what it wrote.
        with contextlib.suppress(FileExistsError):
            path.hardlink_to(made)
    finally:
        Path(made).unlink()


def _checked(token: str, source: str) -> str:
    if len(token) < MIN_TOKEN or not token.isascii() or any(c.isspace() for c in token):
        raise SettingsError(
            f"The token in {source} cannot be used: it needs at least {MIN_TOKEN} ASCII characters "
            "without spaces. Remove it, and one is made."
        )
    return token


class Gate:
    """ASGI middleware: lets through what comes from an allowed place with the token.

    Args:
        app: What is behind the gate.
        token: The bearer token.
        host: The address that the endpoint listens on: its name is allowed as Host besides the
            local ones. On an address that is not local every Host is, since the endpoint cannot
            know under which names it is reached; the token protects it.
    """

    def __init__(self, app: ASGIApp, *, token: str, host: str) -> None:
        self._app = app
        self._expected = f"Bearer {token}".encode()
        self._any_host = not is_loopback(host)
        self._hosts = {*_LOCAL_NAMES, host.strip("[]")}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        if not self._is_allowed_place(headers):
            refusal = _refusal(403, "This Host or Origin may not use mcp-notebook.")
            await refusal(scope, receive, send)
        elif not self._has_token(headers):
            refusal = _refusal(401, "The bearer token is missing or wrong.")
            refusal.headers["WWW-Authenticate"] = "Bearer"
            await refusal(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    def _is_allowed_place(self, headers: Headers) -> bool:
        hosts = headers.getlist("host")
        if len(hosts) != 1 or not (self._any_host or _name_of(f"//{hosts[0]}") in self._hosts):
            return False
        origins = headers.getlist("origin")
        if not origins:
            return True
        if self._any_host:
            # A page may only call the server that it came from.
            own = (f"http://{hosts[0]}", f"https://{hosts[0]}")
            return all(origin in own for origin in origins)
        return all(
            origin.startswith(("http://", "https://")) and _name_of(origin) in self._hosts
            for origin in origins
        )

    def _has_token(self, headers: Headers) -> bool:
        given = headers.getlist("authorization")
        if len(given) != 1:
            return False
        scheme, _, token = given[0].partition(" ")
        presented = f"{scheme.capitalize()} {token.strip()}".encode("utf-8", "replace")
        return hmac.compare_digest(presented, self._expected)


def _name_of(address: str) -> str | None:
    """Return the host's name in an address, without port and brackets, if it has nothing else."""
    try:
        parts = urlsplit(address)
        _ = parts.port  # raises for what is no port
    except ValueError:
        return None
    alone = parts.netloc == address.partition("//")[2] and "@" not in parts.netloc
    return parts.hostname if alone else None


def _refusal(status: int, message: str) -> JSONResponse:
    return JSONResponse({"error": message}, status_code=status)
