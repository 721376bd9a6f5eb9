"""What it means when a remote server is not reached, or refuses: in words, with the next step.

Pure; `remote` and others raise what it returns.
"""

import socket
import ssl
from collections.abc import Iterator
from http import HTTPStatus

import httpx2

from mcp_notebook.bridge.connect.addresses import find_hub
from mcp_notebook.bridge.connect.credentials import Credentials
from mcp_notebook.errors import ConnectionLost, LaunchEnded, RemoteError, Unreachable

_CALL_AGAIN = "Whether it ran is not known: call it again only if that does no harm."
_ENDED = (302, 401, 403, 404, 424)
_SOON = (502, 503, 504)


def explain_failure(error: Exception, url: str) -> RemoteError:
    """Return what it means that httpx2 could not make a request, or read its reply."""
    causes = list(_list_causes(error))
    if isinstance(error, httpx2.ProxyError):
        return RemoteError(
            f"The proxy on the way to {url} refuses or cannot be used: {error}. Check HTTPS_PROXY, "
            "ALL_PROXY and NO_PROXY."
        )
    if isinstance(error, httpx2.UnsupportedProtocol | httpx2.InvalidURL):
        return RemoteError(f"{url} cannot be used: {error}. Check the address.")
    if isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout):
        return _explain_tls(causes, url) or Unreachable(
            f"{url} cannot be reached: {_describe(causes)}. Check that the server runs, the "
            "address, and the network."
        )
    return ConnectionLost(
        f"The connection to {url} was lost before the answer came: {_describe(causes)}."
    )


def _explain_tls(causes: list[BaseException], url: str) -> RemoteError | None:
    for cause in causes:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return RemoteError(
                f"The certificate of {url} is not trusted: {cause.verify_message}. If it is from "
                "an authority of your own organisation, set SSL_CERT_FILE to the file with that "
                "authority's certificate."
            )
        if isinstance(cause, ssl.SSLError):
            return RemoteError(
                f"No encrypted connection to {url} can be made: {cause.reason or cause}. "
                "Check the address: does it begin with http://?"
            )
    return None


def _describe(causes: list[BaseException]) -> str:
    for cause in causes:
        if isinstance(cause, httpx2.ConnectTimeout):
            return "it does not answer"
        if isinstance(cause, socket.gaierror):
            return f"its name is not known ({cause.strerror})"
        if isinstance(cause, ConnectionRefusedError):
            return "nothing listens there"
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
    """Return what a status without a message of MCP means.

    Args:
        status: Of the reply.
        url: What was asked.
        credentials: What it was asked with.
        location: Where it was redirected to.
        words: What the server says itself.
    """
    if credentials.is_from_binder and status in _ENDED and not words:  # a bridge says those
        return LaunchEnded(
            f"The server that Binder started, {url}, has ended, as it does after some minutes "
            "without use. Restart your client: this command then starts a new one."
        )
    if status in (401, 403) or (300 <= status < 400 and "login" in location):  # noqa: PLR2004
        return RemoteError(explain_token(url, credentials))
    if 300 <= status < 400:  # noqa: PLR2004
        place = location.partition("?")[0]
        return RemoteError(
            f"{url} leads to another address, {place}. If you trust it, connect to that one."
        )
    hub = find_hub(url)
    if status == HTTPStatus.FAILED_DEPENDENCY:  # a JupyterHub's answer
        return RemoteError(
            f"The Jupyter server of {url} does not run. Start it in the browser, at "
            f"{f'{hub}/hub/home' if hub else url}, and try again."
        )
    if status in _SOON:
        kind = Unreachable if status == 503 else ConnectionLost  # noqa: PLR2004
        return kind(
            f"The server at {url} does not answer now (status {status}). It may be starting, or "
            "stopped: look at it in the browser."
        )
    if words:
        reason = words
    elif status == 404:  # noqa: PLR2004
        reason = (
            "Nothing is there any more. Start the server again; one on Binder ends after some "
            "minutes without use, and is started again with this command."
        )
    else:
        reason = (
            "That is not MCP. Check the address: `mcp-notebook serve` and `%mcp serve` print "
            "theirs, and of a Jupyter server, take what the browser shows."
        )
    return RemoteError(f"{url} cannot be used (status {status}). {reason}")


def explain_token(url: str, credentials: Credentials) -> str:
    """Return what to do about a missing or wrong token."""
    hub = find_hub(url)
    if hub:
        where = f"Make one on the page {hub}/hub/token, with access to this server"
    else:
        where = (
            "A bridge of mcp-notebook says at its start where its token is; `jupyter server list` "
            "shows that of a Jupyter server"
        )
    if credentials.token is None:
        return (
            f"{url} wants a token. {where}. Write it to a file that only you can read, and name "
            "the file with --token-file."
        )
    return (
        f"{url} does not accept the token from {credentials.place}: it is wrong, has expired, or "
        f"may not be used for this. {where}."
        + (f" If it did before, the server may have ended: see {hub}/hub/home." if hub else "")
    )
