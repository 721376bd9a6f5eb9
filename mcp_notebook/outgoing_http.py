"""The HTTP client for requests to other servers, and its use of proxies.

Runs on the caller's event loop. A proxy from the environment (``HTTPS_PROXY``, ``ALL_PROXY``) is
used only for https to other machines, through a tunnel (CONNECT) that it cannot read. Plain HTTP
would show it tokens and answers, so those requests go directly to their server, as do all requests
to this machine. Redirects are not followed: they could send a token elsewhere.
"""

from collections.abc import Mapping

import httpx2

from mcp_notebook.errors import RemoteError

_DIRECT: Mapping[str, None] = dict.fromkeys(
    ("http://", "all://localhost", "all://127.0.0.1", "all://127.0.0.0/8", "all://[::1]")
)
"""httpx2's URL patterns of requests that never use a proxy."""
_DEFAULT_TIMEOUT = httpx2.Timeout(10.0)


def open_http_client(
    *,
    headers: Mapping[str, str] | None = None,
    timeout: float | httpx2.Timeout = _DEFAULT_TIMEOUT,
    max_connections: int | None = 100,
) -> httpx2.AsyncClient:
    """Return a client, which the caller closes.

    If the environment names an unusable proxy, only the requests that need it fail.

    Args:
        headers: Headers of all requests.
        timeout: Seconds for each step of a request.
        max_connections: Maximum number of open connections; None for no limit.

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
        transport=httpx2.AsyncHTTPTransport(limits=limits),  # disables the lookup of proxies
        mounts={"https://": _UnusableProxy(problem), **mounts},
    )


class _UnusableProxy(httpx2.AsyncBaseTransport):
    """Stands for an unusable proxy.

    Args:
        problem: Why it cannot be used.
    """

    def __init__(self, problem: str) -> None:
        self._problem = problem

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Fail."""
        raise httpx2.ProxyError(self._problem, request=request)
