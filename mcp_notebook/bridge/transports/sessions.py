"""The sessions of handshake-era HTTP clients: limited in number; new ones replace idle ones.

Runs on the bridge's event loop. Most sessions belong to clients that have left without closing
them. So if there are too many, the session that has been idle for longest is ended: its id is then
unknown (404), and a client that does return initializes again, as MCP prescribes. A new client is
refused only if all sessions are in use. A caller at its limit replaces one of its own sessions; the
user has no such limit, and a quarter of all sessions is reserved for the user. A session that is
not used for some time expires.

A session belongs to the caller who opened it, and is unknown to all others.
"""

import secrets
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import anyio

from mcp_notebook.bridge.access.caller import OWNER, Caller
from mcp_notebook.bridge.access.caller_limits import limit_guests
from mcp_notebook.bridge.server.sessions.client_sessions import ClientSession
from mcp_notebook.bridge.transports.http_exchange import HttpExchange
from mcp_notebook.settings.limits import Limits

MAX_MISSED = 100
"""Maximum messages of a session that wait for its client to open a stream."""
_LOOK_INTERVAL = 60.0
"""Maximum seconds between two looks for expired sessions."""


class HttpSession:
    """A session over HTTP.

    Args:
        caller: Who has opened it.
    """

    def __init__(self, caller: Caller) -> None:
        self.id = secrets.token_hex(16)
        self.owner = caller.owns
        self.client = ClientSession(self._send)
        self.stream: HttpExchange | None = None
        """The open response to a GET, for messages that belong to no request."""
        self._missed: dict[bytes, None] = {}
        """Messages while there was no stream; equal ones are one."""
        self.uses = 0
        """Its requests, including an open stream."""

    async def _send(self, message: bytes) -> None:
        if self.stream is not None:
            await self.stream.send(message)
        elif len(self._missed) < MAX_MISSED:
            self._missed[message] = None

    async def send_missed(self) -> None:
        """Send the client, which has opened a stream, what it has missed."""
        missed, self._missed = self._missed, {}
        for message in missed:
            await self._send(message)

    def end(self) -> None:
        """End its requests, its stream and our questions."""
        self.client.end()
        if self.stream is not None:
            self.stream.end("session ended")


class Sessions:
    """The sessions of one endpoint; belongs to the event loop.

    Args:
        limits: Has the maximum for one caller.
        most: Maximum sessions of all callers.
        idle_seconds: Seconds after which a session without requests and streams expires.
    """

    def __init__(
        self, limits: Limits, *, most: int = 10_000, idle_seconds: float = 3_600.0
    ) -> None:
        self._most = most
        self._most_of_guest = limits.max_caller_calls
        self._idle_seconds = idle_seconds
        self._sessions: dict[str, HttpSession] = {}
        self._idle: OrderedDict[str, float] = OrderedDict()
        """When sessions that are not in use expire, longest idle first."""

    def __len__(self) -> int:
        return len(self._sessions)

    async def run(self) -> None:
        """End expired sessions; runs forever."""
        while True:
            await anyio.sleep(min(self._idle_seconds, _LOOK_INTERVAL))
            self._end_expired()

    def open(self, caller: Caller) -> HttpSession | None:
        """Return a new session of a caller; None if there are too many."""
        self._end_expired()
        is_rival = self._find_rivals(caller.owns)
        if is_rival is not None:
            idle = (self._sessions[key] for key in self._idle)
            oldest = next((each for each in idle if is_rival(each.owner)), None)
            if oldest is None:
                return None
            self.end(oldest)
        session = HttpSession(caller)
        self._sessions[session.id] = session
        return session

    def find(self, session_id: str, caller: Caller) -> HttpSession | None:
        """Return the session with an id, if it is the caller's; else None."""
        self._end_expired()
        session = self._sessions.get(session_id)
        return None if session is None or session.owner != caller.owns else session

    @contextmanager
    def use(self, session: HttpSession) -> Iterator[None]:
        """Keep a session from expiring, and from being replaced, during the block."""
        self._idle.pop(session.id, None)
        session.uses += 1
        try:
            yield
        finally:
            session.uses -= 1
            if not session.uses and session.id in self._sessions:
                self._idle[session.id] = anyio.current_time() + self._idle_seconds

    def end(self, session: HttpSession) -> None:
        """End a session: its id is unknown from now on."""
        self._sessions.pop(session.id, None)
        self._idle.pop(session.id, None)
        session.end()

    def end_all(self, caller: Caller | None = None) -> None:
        """End all sessions, or those of one caller."""
        for session in tuple(self._sessions.values()):
            if caller is None or session.owner == caller.owns:
                self.end(session)

    def _end_expired(self) -> None:
        now = anyio.current_time()
        while self._idle and now >= next(iter(self._idle.values())):
            self.end(self._sessions[next(iter(self._idle))])

    def _find_rivals(self, caller: str) -> Callable[[str], bool] | None:
        """Return whose sessions a caller's new session may replace; None if there is room."""
        owners = [session.owner for session in self._sessions.values()]
        if caller != OWNER.owns:
            if owners.count(caller) >= self._most_of_guest:
                return lambda owner: owner == caller
            if len(owners) - owners.count(OWNER.owns) >= limit_guests(self._most):
                return lambda owner: owner != OWNER.owns
        return None if len(self) < self._most else lambda _: True
