"""Counts the connected clients by program.

Runs on the bridge's event loop. A client of the handshake era is connected as long as its session.
A client of 2026-07-28 has no session: it counts as connected while one of its requests runs (its
notification stream, for instance) and for some minutes afterwards; over stdio, until it leaves.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import anyio

from mcp_notebook.bridge.server.sessions.client_profile import ClientProfile
from mcp_notebook.bridge.server.sessions.client_request import ClientRequest
from mcp_notebook.bridge.server.sessions.client_sessions import ClientSession
from mcp_notebook.wire import messages

REMEMBERED = 300.0
"""Seconds that a client without a session counts as connected after its last request."""
SETTLING = 0.1
"""Seconds within which several changes become one message."""
MAX_PROGRAMS = 50
"""Maximum number of programs that kernels are told of, and that are distinguished per caller
without a session: clients choose the names."""


@dataclass
class _Visitor:
    """A client without a session; a context manager around each of its requests."""

    program: messages.ClientInfo
    stays: bool
    """Whether it stays connected as long as the bridge runs."""
    requests: int = 0
    """Number of its running requests."""
    last_seen: float = 0.0
    """The monotonic time at which its last request ended."""

    def __enter__(self) -> None:
        self.requests += 1

    def __exit__(self, *error: object) -> None:
        self.requests -= 1
        self.last_seen = time.monotonic()

    def find_rest(self, remembered: float) -> float:
        """Return the seconds for which it still counts without a further request."""
        if self.stays or self.requests:
            return float("inf")
        return self.last_seen + remembered - time.monotonic()


class ConnectedClients:
    """The clients of one bridge.

    Args:
        on_change: Called with the number of clients of each program after a change.
        remembered: Seconds that a client without a session counts after its last request.
    """

    def __init__(
        self,
        on_change: Callable[[Sequence[messages.ClientCount]], None],
        *,
        remembered: float = REMEMBERED,
    ) -> None:
        self._remembered = remembered
        self._on_change = on_change
        self._sessions: dict[ClientSession, messages.ClientInfo] = {}
        self._visitors: dict[tuple[str, messages.ClientInfo], _Visitor] = {}
        """By the caller's name and the program."""
        self._change = anyio.Event()

    def visit(self, request: ClientRequest) -> AbstractContextManager[None]:
        """Return a context manager during which a request's client counts, and some minutes longer.

        A client with a session counts as long as the session.
        """
        return nullcontext() if request.is_handshake else self._find_visitor(request)

    def add_session(self, profile: ClientProfile) -> None:
        """Count a client until its session ends."""
        session = profile.connection
        is_new = session not in self._sessions
        self._sessions[session] = profile.client
        if is_new:
            session.call_at_end(self._end_session, session)
        self._change.set()

    def _end_session(self, session: ClientSession) -> None:
        self._sessions.pop(session, None)
        self._change.set()

    async def run(self) -> None:
        """Report changes, once for each burst; runs forever."""
        before: Sequence[messages.ClientCount] = ()
        while True:
            rests = [visitor.find_rest(self._remembered) for visitor in self._visitors.values()]
            with anyio.move_on_after(min(rest for rest in [self._remembered, *rests] if rest > 0)):
                await self._change.wait()
            await anyio.sleep(SETTLING)
            self._change = anyio.Event()
            self._forget_visitors()
            clients = self._count()
            if clients != before:
                before = clients
                self._on_change(clients)

    def _find_visitor(self, request: ClientRequest) -> _Visitor:
        key = request.caller.name, request.profile.client
        visitor = self._visitors.get(key)
        if visitor is None:
            if sum(caller == request.caller.name for caller, _ in self._visitors) >= MAX_PROGRAMS:
                key = request.caller.name, messages.ClientInfo()
            visitor = self._visitors.setdefault(key, _Visitor(key[1], stays=request.is_stdio))
            self._change.set()
        return visitor

    def _forget_visitors(self) -> None:
        for key, visitor in tuple(self._visitors.items()):
            if visitor.find_rest(self._remembered) <= 0:
                del self._visitors[key]

    def _count(self) -> list[messages.ClientCount]:
        programs = [*self._sessions.values(), *(key[1] for key in self._visitors)]
        return [
            messages.ClientCount(name=program.name, version=program.version, number=number)
            for program, number in Counter(programs).most_common(MAX_PROGRAMS)
        ]
