"""Explains errors of the remote server and of the network, with the next step.

Pure; `remote` and others raise the errors that it returns.
"""

import socket
import ssl
from collections.abc import Iterator
from http import HTTPStatus

import httpx2

from mcp_notebook.bridge.connect.addresses import find_hub
from mcp_notebook.bridge.connect.credentials import Credentials
from mcp_notebook.errors import (
    ConnectionLost,
    LaunchEnded,
    NotebookNotOpen,
    RemoteError,
    ServerStopped,
    Unavailable,
    Unreachable,
)

_ENDED = (302, 401, 403, 404, 424)
_SOON = (502, 503, 504)


def explain_failure(error: Exception, url: str) -> RemoteError:
    """Return the error for an httpx2 exception of a request or its reply."""
    causes = list(_list_causes(error))
    if isinstance(error, httpx2.ProxyError):
        return RemoteError(
            f"The proxy for {url} refused the request or cannot be used: {error}. Check "
            "HTTPS_PROXY, ALL_PROXY and NO_PROXY."
        )
    if isinstance(error, httpx2.UnsupportedProtocol | httpx2.InvalidURL):
        return RemoteError(f"{url} cannot be used: {error}. Check the address.")
    if isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout):
        return _explain_tls(causes, url) or Unreachable(
            f"{url} cannot be reached: {_describe(causes)}. Check that the server is running, "
            "the address, and the network."
        )
    if isinstance(error, httpx2.ReadTimeout):
        return ConnectionLost(
            f"{url} sends nothing any more, and the machine of its server may have gone. Look at "
            "it in the browser, and try again."
        )
    return ConnectionLost(
        f"The connection to {url} was lost before the answer came: {_describe(causes)}."
    )


def _explain_tls(causes: list[BaseException], url: str) -> RemoteError | None:
    for cause in causes:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return RemoteError(
                f"The certificate of {url} is not trusted: {cause.verify_message}. If your own "
                "organisation issued it, set SSL_CERT_FILE to the file with the organisation's "
                "root certificate."
            )
        if isinstance(cause, ssl.SSLError):
            return RemoteError(
                f"An encrypted connection to {url} failed: {cause.reason or cause}. Check whether "
                "the address should begin with http://."
            )
    return None


def _describe(causes: list[BaseException]) -> str:
    for cause in causes:
        if isinstance(cause, httpx2.ConnectTimeout):
            return "it does not answer"
        if isinstance(cause, socket.gaierror):
            return f"its host name cannot be resolved ({cause.strerror})"
        if isinstance(cause, ConnectionRefusedError):
            return "the connection was refused"
        if isinstance(cause, OSError) and cause.strerror:
            return cause.strerror
    return str(causes[0]).rstrip(".") or type(causes[0]).__name__


def _list_causes(error: BaseException) -> Iterator[BaseException]:
    waiting = [error]
    while waiting:
        cause = waiting.pop(0)
        yield cause
        if isinstance(cause, BaseExceptionGroup):
            waiting += cause.exceptions
        waiting += filter(None, [cause.__cause__ or cause.__context__])


def explain_status(
    status: int, url: str, credentials: Credentials, location: str = "", words: str = ""
) -> RemoteError:
    """Return the error for a reply without an MCP message.

    Args:
        status: The reply's status.
        url: The URL of the request.
        credentials: The credentials of the request.
        location: The URL that it was redirected to.
        words: The server's own error text.
    """
    if credentials.is_from_binder and status in _ENDED and not words:  # a bridge sent those
        return LaunchEnded(
            f"The server that Binder started, {url}, has ended, as it does after some minutes "
            "without use. The next request starts a new one."
        )
    if status in (401, 403) or (300 <= status < 400 and "login" in location):  # noqa: PLR2004
        return RemoteError(explain_token(url, credentials))
    if 300 <= status < 400:  # noqa: PLR2004
        place = location.partition("?")[0]
        return RemoteError(
            f"{url} redirects to {place}. If you trust that address, connect to it instead."
        )
    hub = find_hub(url)
    if status == HTTPStatus.FAILED_DEPENDENCY:  # a JupyterHub's answer
        return ServerStopped(
            f"The Jupyter server of {url} is not running. Start it in the browser, at "
            f"{f'{hub}/hub/home' if hub else url}, and try again."
        )
    if status in _SOON:
        kind = Unavailable if status == 503 else ConnectionLost  # noqa: PLR2004
        return kind(
            f"The server at {url} is not available (status {status}). It may be starting, or have "
            "stopped: open it in the browser."
        )
    if words:
        reason = words
    elif status == 404:  # noqa: PLR2004
        reason = (
            "The server no longer exists. Start it again; a server on Binder ends after some "
            "minutes without use, and this command starts a new one."
        )
    else:
        reason = (
            "This is not an MCP endpoint. Check the address: `mcp-notebook serve` and `%mcp serve` "
            "print theirs; for a Jupyter server, copy it from the browser."
        )
    # A bridge behind a Jupyter server says with 404 that no such notebook is open.
    error = NotebookNotOpen if words and status == 404 else RemoteError  # noqa: PLR2004
    return error(f"{url} cannot be used (status {status}). {reason}")


def explain_token(url: str, credentials: Credentials) -> str:
    """Return the message about a missing or wrong token."""
    hub = find_hub(url)
    if hub:
        where = f"Create one at {hub}/hub/token, with access to this server"
    else:
        where = (
            "When mcp-notebook starts, it prints where its token is; `jupyter server list` shows "
            "the token of a Jupyter server"
        )
    if credentials.token is None:
        return (
            f"{url} requires a token. {where}. Write it to a file that only you can read, and name "
            "the file with --token-file."
        )
    return (
        f"{url} does not accept the token from {credentials.place}: it is wrong, has expired, or "
        f"does not allow this. {where}."
        + (f" If it worked before, the server may have stopped: see {hub}/hub/home." if hub else "")
    )
