"""The HTTP client with which this package asks other servers, and which proxies it may use.

Runs on the event loop of whoever opens a client. A proxy of the environment (``HTTPS_PROXY``,
``ALL_PROXY``) is used for https to other machines only: it passes on a tunnel there (CONNECT) and
reads nothing of it. Requests over plain HTTP would show it their tokens and answers, so they go
straight to their server, as everything for this machine does. Redirections are not followed: they
could lead a token somewhere else.
"""

from collections.abc import Mapping

import httpx2

from mcp_notebook.errors import RemoteError

_DIRECT: Mapping[str, None] = dict.fromkeys(
    ("http://", "all://localhost", "all://127.0.0.1", "all://127.0.0.0/8", "all://[::1]")
)
"""What goes through no proxy, whatever the environment says: httpx2's patterns of addresses."""
_DEFAULT_TIMEOUT = httpx2.Timeout(10.0)


def open_http_client(
    *,
    headers: Mapping[str, str] | None = None,
    timeout: float | httpx2.Timeout = _DEFAULT_TIMEOUT,
    max_connections: int | None = 100,
) -> httpx2.AsyncClient:
    """Return a client, to be closed by its caller.

    A proxy that the environment names but that cannot be used fails the requests that need it, and
    no others.

    Args:
        headers: Those of all requests.
        timeout: Seconds for each step of a request.
        max_connections: That are open at a time; None for any number.

    Raises:
        RemoteError: The environment names certificates that cannot be read.
    """
    limits = httpx2.Limits(max_connections=max_connections, max_keepalive_connections=20)
    mounts: dict[str, httpx2.AsyncBaseTransport | None] = {**_DIRECT}
    try:
        return httpx2.AsyncClient(headers=headers, timeout=timeout, limits=limits, mounts=mounts)
    except ImportError:
        problem = "a SOCKS proxy needs the package socksio (`pip install socksio`)"
    except (ValueError, httpx2.InvalidURL) as error:
        problem = str(error).rstrip(".")
    except OSError as error:
        raise RemoteError(
            f"No connection can be made: {error}. Check the variables SSL_CERT_FILE and "
            "SSL_CERT_DIR."
        ) from None
    return httpx2.AsyncClient(
        headers=headers,
        timeout=timeout,
        transport=httpx2.AsyncHTTPTransport(limits=limits),  # with it, no proxies are looked for
        mounts={"https://": _UnusableProxy(problem), **mounts},
    )


class _UnusableProxy(httpx2.AsyncBaseTransport):
    """In place of a proxy that cannot be used.

    Args:
        problem: Why it cannot.
    """

    def __init__(self, problem: str) -> None:
        self._problem = problem

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Fail."""
        raise httpx2.ProxyError(self._problem, request=request)
