"""Who may use the HTTP endpoint: the gate in front of everything else.

Runs on the bridge's event loop. The gate checks Host and Origin first (403: a web page may reach
local servers by DNS rebinding), then the bearer token (401). The token never appears in a log, a
response or a URL; whose it is, an `Authenticator` knows. What is refused is one line in the log
(`refusals`).
"""

import asyncio
import ipaddress
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol
from urllib.parse import urlsplit

import anyio
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mcp_notebook.bridge.access.caller import CURRENT_CALLER, SCOPE_KEY, Caller
from mcp_notebook.bridge.access.refusals import RefusalLog

GUESTS_AT_ONCE = 4
"""Requests of guests that begin in one turn of the event loop, so that all others have theirs."""
WATCH_INTERVAL = 1.0
"""Seconds between two checks whether what callers have open has to end."""
_MESSAGES = {
    401: "The bearer token is missing or wrong.",
    403: "This access token allows nothing here.",
    503: "The issuer of this access token cannot be asked now. Try again later.",
}
_MAX_ADDRESS = 512
"""Characters of a Host or an Origin; names of hosts have 253 at most."""
_LOCAL_NAMES = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True)
class Refusal:
    """A token that was good once, or would be elsewhere."""

    reason: str
    """For the log, after "refused a request ...:". It quotes nothing of the request."""
    status: int = 401
    """The status of the answer: 401 (get another token), 403 (this one allows nothing here), or 503
    (nobody can tell now)."""
    challenge: str | None = None
    """What ``WWW-Authenticate`` says in place of the authenticator's own challenge."""


class Authenticator(Protocol):
    """Tells whose a bearer token is."""

    @property
    def challenge(self) -> str:
        """What ``WWW-Authenticate`` says to those who have no right token."""

    async def authenticate(self, token: str) -> Caller | Refusal | None:
        """Return whose token this is, why it is refused, or None if another may know it.

        Called once for each request.
        """

    def has_ended(self, caller: Caller) -> bool:
        """Return whether a caller of this authenticator has lost its right.

        Asked once a second for each caller with an open request, such as a stream or a long call.
        That request and the caller's sessions then end. A token that expires after its request has
        begun need not count.
        """


_NO_TOKEN = Refusal("the bearer token is missing")
_WRONG_TOKEN = Refusal("the bearer token is wrong")
_TOKEN_ENDED = Refusal("the bearer token has become void meanwhile")


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
        authenticators: Tell whose a bearer token is; the first one that knows it decides, and
            the challenge of the last one is what others get.
        host: The address that the endpoint listens on, allowed as Host besides the local names.
            If it is not a loopback address, any Host is allowed: the endpoint cannot know the names
            that it is reached by, and the token protects it.
        allowed_hosts: Other names that are allowed as Host, without port: of a proxy in front.
        allowed_origins: Origins whose pages are allowed, whatever the Host.
        refusals: Gets a line about each refused request.
        on_admission: Called with the scope and the caller of each request that is to be let in;
            returns why its caller cannot have its connection, or None.
    """

    def __init__(  # noqa: PLR0913 - one for each option
        self,
        app: ASGIApp,
        *,
        authenticators: Sequence[Authenticator],
        host: str,
        allowed_hosts: Sequence[str] = (),
        allowed_origins: Sequence[str] = (),
        refusals: RefusalLog | None = None,
        on_admission: Callable[[Scope, Caller], str | None] | None = None,
    ) -> None:
        self._app = app
        self._authenticators = tuple(authenticators)
        self._any_host = not is_loopback(host)
        self._hosts = {*_LOCAL_NAMES, host.strip("[]"), *map(str.lower, allowed_hosts)}
        self._origins = {*map(str.lower, allowed_origins)}
        self._refusals = refusals or RefusalLog()
        self._on_admission = on_admission
        self._turns = asyncio.Semaphore(GUESTS_AT_ONCE)
        self._open: dict[asyncio.Task[object], Caller] = {}
        """The open requests, by the tasks that serve them."""
        self._ended: set[asyncio.Task[object]] = set()
        """Those of them whose callers have lost their right."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request; whatever is not HTTP, such as a WebSocket, is closed."""
        if scope["type"] != "http":
            if scope["type"] == "websocket":
                await send({"type": "websocket.close", "code": 1008})
            return
        hosts, origins, proofs = _read_headers(scope)
        if not self._has_allowed_origin(hosts, origins):
            self._refusals.note(scope.get("client"), "its Host or Origin is not allowed")
            refusal = _make_refusal(403, "This Host or Origin may not use mcp-notebook.")
            await refusal(scope, receive, send)
            return
        if not proofs:
            await self._refuse(_NO_TOKEN, scope, receive, send)
            return
        caller = await self._find_caller(_read_token(proofs))
        if isinstance(caller, Refusal):
            await self._refuse(caller, scope, receive, send)
            return
        lack = None if self._on_admission is None else self._on_admission(scope, caller)
        if lack is not None:
            self._refusals.note(scope.get("client"), "its caller has too many connections")
            refusal = _make_refusal(429, lack)
            refusal.headers["Connection"] = "close"
            await refusal(scope, receive, send)
            return
        if not caller.is_user:
            await self._turns.acquire()
            asyncio.get_running_loop().call_soon(self._turns.release)
        await self._let_in(caller, scope, receive, send)

    async def watch(self, on_end: Callable[[Caller], Awaitable[None]]) -> None:
        """End the open requests of callers who have lost their right; runs forever.

        Args:
            on_end: Ends what else such a caller has.
        """
        while True:
            await anyio.sleep(WATCH_INTERVAL)
            for caller in {caller.owns: caller for caller in self._open.values()}.values():
                if any(each.has_ended(caller) for each in self._authenticators):
                    for task, other in tuple(self._open.items()):
                        if other.owns == caller.owns:
                            self._ended.add(task)
                            task.cancel()
                    await on_end(caller)

    async def _let_in(self, caller: Caller, scope: Scope, receive: Receive, send: Send) -> None:
        user = _make_user(caller.owns)
        has_begun = False

        async def note_beginning(message: Message) -> None:
            nonlocal has_begun
            has_begun = True
            await send(message)

        task = asyncio.current_task()
        assert task is not None
        self._open[task] = caller
        CURRENT_CALLER.set(caller)
        try:
            inner_scope = {**scope, SCOPE_KEY: caller, "user": user}
            await self._app(inner_scope, receive, note_beginning)
        except asyncio.CancelledError:
            if task not in self._ended or task.uncancel():  # or cancelled from outside, too
                raise
        else:
            return
        finally:
            del self._open[task]
            self._ended.discard(task)
        if not has_begun:
            await self._refuse(_TOKEN_ENDED, scope, receive, send)

    async def _refuse(self, refusal: Refusal, scope: Scope, receive: Receive, send: Send) -> None:
        self._refusals.note(scope.get("client"), refusal.reason)
        answer = _make_refusal(refusal.status, _MESSAGES[refusal.status])
        answer.headers["WWW-Authenticate"] = refusal.challenge or self._authenticators[-1].challenge
        await answer(scope, receive, send)

    def _has_allowed_origin(self, hosts: Sequence[str], origins: Sequence[str]) -> bool:
        if len(hosts) != 1 or not (
            self._any_host or _parse_host_name(f"//{hosts[0]}") in self._hosts
        ):
            return False
        if self._origins.issuperset(map(str.lower, origins)):  # also if there is none
            return True
        if self._any_host:
            # A page may only call the server that served it.
            own_origins = (f"http://{hosts[0]}", f"https://{hosts[0]}")
            return all(origin in own_origins for origin in origins)
        return all(
            origin.startswith(("http://", "https://")) and _parse_host_name(origin) in self._hosts
            for origin in origins
        )

    async def _find_caller(self, token: str) -> Caller | Refusal:
        for authenticator in self._authenticators if token else ():
            answer = await authenticator.authenticate(token)
            if answer is not None:
                return answer
        return _WRONG_TOKEN


def _read_headers(scope: Scope) -> tuple[list[str], list[str], list[str]]:
    """Return all that a request says as Host, as Origin, and as Authorization."""
    values: dict[bytes, list[str]] = {b"host": [], b"origin": [], b"authorization": []}
    for name, value in scope["headers"]:
        if name in values:
            values[name].append(value.decode("latin-1"))
    return values[b"host"], values[b"origin"], values[b"authorization"]


def _read_token(values: Sequence[str]) -> str:
    """Return the token that a request presents, or nothing if that is not clear."""
    scheme, _, token = values[0].partition(" ")
    return token.strip() if len(values) == 1 and scheme.lower() == "bearer" else ""


@lru_cache(maxsize=256)
def _make_user(name: str) -> AuthenticatedUser:
    """Return whom the SDK compares with the user that opened the session of a request."""
    return AuthenticatedUser(AccessToken(token="", client_id=name, scopes=[]))


def _parse_host_name(address: str) -> str | None:
    """Return the host name in an address of a host and perhaps a port; None if it has more."""
    return _parse_short_address(address) if len(address) <= _MAX_ADDRESS else None


@lru_cache(maxsize=256)
def _parse_short_address(address: str) -> str | None:
    try:
        parts = urlsplit(address)
        _ = parts.port  # raises if it is not a number
    except ValueError:
        return None
    alone = parts.netloc == address.partition("//")[2] and "@" not in parts.netloc
    return parts.hostname if alone else None


def _make_refusal(status: int, message: str) -> JSONResponse:
    return JSONResponse({"error": message}, status_code=status)
