"""Limits for HTTP connections, before and after authentication.

Runs on the bridge's event loop. Anyone on this machine can connect, so a connection costs little
until the gate admits a request on it: it ends after `auth_timeout` seconds, and there are at most
`max_unauthenticated`. A new one replaces the oldest, so a client with the token can always connect.
Nothing distinguishes the connections of a flood from others, as all processes of a machine share an
address.

An authenticated connection belongs to its caller. Each guest may have a limited number, and all
guests together leave some to the user. The connection stays the caller's until the last request on
it has been answered, even if the client has disconnected.

`http_connection` reads each connection and bounds its requests. The gate (`access.gate`) decides
what a token permits.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from itertools import count

from mcp_notebook.bridge.access.caller import Caller
from mcp_notebook.bridge.access.caller_limits import Shares
from mcp_notebook.bridge.access.refusals import RefusalLog
from mcp_notebook.bridge.asgi import Scope

try:
    import resource
except ImportError:  # Windows, whose sockets are not file descriptors
    resource = None  # type: ignore[assignment]

NUMBER_KEY = "connection"
"""Key of the connection's number in the state of an ASGI scope."""


@dataclass(frozen=True, kw_only=True)
class ConnectionLimits:
    """How many connections there may be, and how slow they may be."""

    auth_timeout: float = 10.0
    """Seconds until an unauthenticated connection ends."""
    max_unauthenticated: int = 256
    """Unauthenticated connections at a time, but at most a quarter of the file descriptors."""
    max_caller_connections: int = 128
    """Connections of one guest at a time, but at most an eighth of the file descriptors."""
    close_timeout: float = 1.0
    """Seconds that a client has to read why its connection is closed."""
    progress_timeout: float = 60.0
    """Seconds within which a request must be complete or have progressed by `min_progress`, and
    within which a client must read something of a waiting answer."""
    min_progress: int = 2**19
    """Bytes of a request that give it another `progress_timeout`."""


class Connections:
    """The connections of one endpoint; belongs to the event loop.

    Args:
        refusals: The log of refused requests.
        limits: Their number and their times.
    """

    def __init__(self, refusals: RefusalLog, limits: ConnectionLimits = ConnectionLimits()) -> None:
        self.refusals = refusals
        self.limits = limits
        self._numbers = count()
        self._unauthenticated: OrderedDict[int, _Unauthenticated] = OrderedDict()
        """The connections without a token, by number, oldest first."""
        self._aborts: dict[int, asyncio.TimerHandle] = {}
        """The timers that abort connections which are closing, by number."""
        descriptors = _count_descriptors()
        self._max_unauthenticated = min(limits.max_unauthenticated, descriptors // 4)
        in_all = descriptors * 5 // 8  # the last eighth is for files and links to kernels
        self._shares = Shares(
            "connections",
            per_caller=min(limits.max_caller_connections, descriptors // 8),
            in_all=in_all,
            for_user=in_all,
        )
        self._callers: dict[int, Caller] = {}
        """The callers of authenticated connections, by number."""

    def admit(self, scope: Scope, caller: Caller) -> str | None:
        """Assign a connection to the caller of a request that the gate has authenticated.

        Returns:
            Why the caller cannot have another connection; None if it can.
        """
        number = scope["state"][NUMBER_KEY]
        last = self._callers.get(number)
        if last is not None and last.owns == caller.owns:
            return None
        if last is None and number not in self._unauthenticated and number not in self._aborts:
            return None  # the connection has ended
        lack = self._shares.explain_lack(caller)
        if lack is not None:
            return lack
        self._release(number)
        self._shares.add(caller)
        self._callers[number] = caller
        self._stop_timers(number)
        return None

    def is_authenticated(self, number: int) -> bool:
        """Return whether a connection is authenticated."""
        return number in self._callers

    def take_number(self) -> int:
        """Return the number of a new connection."""
        return next(self._numbers)

    def add(self, number: int, end: Callable[[HTTPStatus, str], object]) -> None:
        """Add an unauthenticated connection; if there are too many, the oldest ends.

        Args:
            number: The connection's number. If it was added before, its TLS handshake has ended.
            end: Ends the connection with a status and a reason.
        """
        if number in self._unauthenticated:
            self._unauthenticated[number].end = end
            return
        loop = asyncio.get_running_loop()
        deadline = loop.call_later(self.limits.auth_timeout, self._expire, number)
        self._unauthenticated[number] = _Unauthenticated(end, deadline)
        if len(self._unauthenticated) > self._max_unauthenticated:
            _, oldest = self._unauthenticated.popitem(last=False)
            oldest.deadline.cancel()
            oldest.end(HTTPStatus.SERVICE_UNAVAILABLE, "there are too many connections")

    def _expire(self, number: int) -> None:
        expired = self._unauthenticated.pop(number)
        reason = f"no request with a valid token came within {self.limits.auth_timeout:g} s"
        expired.end(HTTPStatus.REQUEST_TIMEOUT, reason)

    def forget(self, number: int) -> None:
        """Remove a connection that has ended."""
        self._release(number)
        self._stop_timers(number)

    def _release(self, number: int) -> None:
        caller = self._callers.pop(number, None)
        if caller is not None:
            self._shares.remove(caller)

    def _stop_timers(self, number: int) -> None:
        unauthenticated = self._unauthenticated.pop(number, None)
        if unauthenticated is not None:
            unauthenticated.deadline.cancel()
        abort = self._aborts.pop(number, None)
        if abort is not None:
            abort.cancel()

    def abort_soon(self, number: int, transport: asyncio.Transport) -> None:
        """Abort a connection in a second, unless the gate admits its request before."""
        loop = asyncio.get_running_loop()
        self._aborts[number] = loop.call_later(self.limits.close_timeout, transport.abort)


@dataclass
class _Unauthenticated:
    """An unauthenticated connection."""

    end: Callable[[HTTPStatus, str], object]
    deadline: asyncio.TimerHandle


def _count_descriptors() -> int:
    """Return the number of files and sockets that this process may open."""
    if resource is None:
        return 4 * ConnectionLimits.max_unauthenticated
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 4 * ConnectionLimits.max_unauthenticated if limit == resource.RLIM_INFINITY else limit
