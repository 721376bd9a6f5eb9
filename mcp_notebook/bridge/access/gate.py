"""The gate in front of the HTTP endpoint: checks Host, Origin and the bearer token.

Runs on the bridge's event loop. The gate checks Host and Origin first (403: a web page can reach
local servers by DNS rebinding), then the bearer token (401). An `Authenticator` finds the token's
caller; the token never appears in a log, a response or a URL. Each refusal is a line in the log
(`refusals`).
"""

import asyncio
import ipaddress
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import urlsplit

import anyio

from mcp_notebook.bridge.access.caller import SCOPE_KEY, Caller
from mcp_notebook.bridge.access.refusals import RefusalLog
from mcp_notebook.bridge.asgi import (
    ASGIApp,
    Message,
    Receive,
    Response,
    Scope,
    Send,
    make_json_response,
)

GUESTS_AT_ONCE = 4
"""Requests of guests that may begin in one turn of the event loop; the user's are not limited."""
_MESSAGES = {
    401: "The bearer token is missing or wrong.",
    403: "This access token does not allow any tool.",
    503: "The issuer of this access token cannot be reached. Try again later.",
}
_MAX_ADDRESS = 512
"""Characters of a Host or an Origin; host names have at most 253."""
_LOCAL_NAMES = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True)
class Refusal:
    """Why a token is refused that an authenticator recognises."""

    reason: str
    """For the log, after "refused a request ...:". Quotes nothing of the request."""
    status: int = 401
    """The status of the answer: 401 (get another token), 403 (this token allows nothing here), or
    503 (the issuer cannot be reached)."""
    challenge: str | None = None
    """The ``WWW-Authenticate`` header, if it is not the authenticator's own challenge."""


class Authenticator(Protocol):
    """Finds the caller of a bearer token."""

    @property
    def challenge(self) -> str:
        """The ``WWW-Authenticate`` header for requests without a valid token."""

    async def authenticate(self, token: str) -> Caller | Refusal | None:
        """Return the token's caller, why it is refused, or None to ask the next authenticator.

        Called once for each request.
        """

    def has_ended(self, caller: Caller) -> bool:
        """Return whether a caller of this authenticator no longer has access.

        Called once a second for each caller with an open request, such as a stream or a long call.
        If so, the request and the caller's sessions end. A token that expires during its request
        may be ignored.
        """


_NO_TOKEN = Refusal("the bearer token is missing")
_WRONG_TOKEN = Refusal("the bearer token is wrong")
_TOKEN_ENDED = Refusal("the bearer token is no longer valid")


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


class Gate:
    """ASGI middleware that admits requests with an allowed origin and a valid token.

    Args:
        app: The application behind the gate.
        authenticators: Find the caller of a bearer token; the first one that recognises it decides.
            Requests without a valid token get the challenge of the last one.
        host: The address that the endpoint listens on, allowed as Host besides the local names.
            If it is not a loopback address, any Host is allowed: the endpoint cannot know its own
            public names, and the token protects it.
        allowed_hosts: Other host names to allow, without port, such as that of a proxy. Their web
            pages are allowed whatever the Host.
        refusals: The log of refused requests.
        on_admission: Called with the scope and the caller of each request before it is admitted;
            returns why the caller cannot have the connection, or None.
        watch_interval: Seconds between two checks whether callers with open requests still have
            access.
    """

    def __init__(  # noqa: PLR0913 - one for each option
        self,
        app: ASGIApp,
        *,
        authenticators: Sequence[Authenticator],
        host: str,
        allowed_hosts: Sequence[str] = (),
        refusals: RefusalLog | None = None,
        on_admission: Callable[[Scope, Caller], str | None] | None = None,
        watch_interval: float = 1.0,
    ) -> None:
        self._watch_interval = watch_interval
        self._app = app
        self._authenticators = tuple(authenticators)
        self._any_host = not is_loopback(host)
        self._named = {*map(str.lower, allowed_hosts)}
        self._hosts = {*_LOCAL_NAMES, host.strip("[]"), *self._named}
        self._refusals = refusals or RefusalLog()
        self._on_admission = on_admission
        self._turns = asyncio.Semaphore(GUESTS_AT_ONCE)
        self._open: dict[asyncio.Task[object], Caller] = {}
        """The callers of open requests, by the task that serves the request."""
        self._ended: set[asyncio.Task[object]] = set()
        """The tasks that are being cancelled because their callers lost access."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request; close anything that is not HTTP, such as a WebSocket."""
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
        """End the open requests of callers who have lost access; runs forever.

        Args:
            on_end: Ends the sessions of such a caller.
        """
        while True:
            await anyio.sleep(self._watch_interval)
            for caller in {caller.owns: caller for caller in self._open.values()}.values():
                if any(each.has_ended(caller) for each in self._authenticators):
                    for task, other in tuple(self._open.items()):
                        if other.owns == caller.owns:
                            self._ended.add(task)
                            task.cancel()
                    await on_end(caller)

    async def _let_in(self, caller: Caller, scope: Scope, receive: Receive, send: Send) -> None:
        has_begun = False

        async def note_beginning(message: Message) -> None:
            nonlocal has_begun
            has_begun = True
            await send(message)

        task = asyncio.current_task()
        assert task is not None
        self._open[task] = caller
        try:
            inner_scope = {**scope, SCOPE_KEY: caller}
            await self._app(inner_scope, receive, note_beginning)
        except asyncio.CancelledError:
            if task not in self._ended or task.uncancel():  # cancelled from outside as well
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
        # Otherwise, a page may only call the server that it was loaded from.
        names = self._named if self._any_host else self._hosts
        own_origins = (f"http://{hosts[0]}", f"https://{hosts[0]}") if self._any_host else ()
        return all(
            origin in own_origins
            or (origin.startswith(("http://", "https://")) and _parse_host_name(origin) in names)
            for origin in origins
        )

    async def _find_caller(self, token: str) -> Caller | Refusal:
        for authenticator in self._authenticators if token else ():
            answer = await authenticator.authenticate(token)
            if answer is not None:
                return answer
        return _WRONG_TOKEN


def _read_headers(scope: Scope) -> tuple[list[str], list[str], list[str]]:
    """Return all values of a request's Host, Origin and Authorization headers."""
    values: dict[bytes, list[str]] = {b"host": [], b"origin": [], b"authorization": []}
    for name, value in scope["headers"]:
        if name in values:
            values[name].append(value.decode("latin-1"))
    return values[b"host"], values[b"origin"], values[b"authorization"]


def _read_token(values: Sequence[str]) -> str:
    """Return a request's bearer token, "" if there is not exactly one."""
    scheme, _, token = values[0].partition(" ")
    return token.strip() if len(values) == 1 and scheme.lower() == "bearer" else ""


def _parse_host_name(address: str) -> str | None:
    """Return the name in ``//HOST[:PORT]``; None if the address has other parts."""
    if len(address) > _MAX_ADDRESS:
        return None
    try:
        parts = urlsplit(address)
        _ = parts.port  # raises if it is not a number
    except ValueError:
        return None
    alone = parts.netloc == address.partition("//")[2] and "@" not in parts.netloc
    return parts.hostname if alone else None


def _make_refusal(status: int, message: str) -> Response:
    return make_json_response({"error": message}, status)
