"""Who presents this bearer token: the interface of everything that can tell, and the owner's token.

Runs on the bridge's event loop. The gate asks each `Authenticator` in turn; where tokens come from,
and what their callers may do, is the business of those.
"""

import hmac
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

from mcp_notebook.bridge.access.caller import OWNER, Caller, Permissions


@dataclass(frozen=True)
class Refusal:
    """A token that was good once, or would be elsewhere."""

    reason: str
    """For the log, after "refused a request ...:". Nothing that the request presented is in it."""
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

        Asked once a second for those who have a request open, such as a stream or a long call: it
        ends then, and so do their sessions. A token that only expires after its request has begun
        need not be a reason.
        """


class OwnToken:
    """The endpoint's own token, with which the owner may do everything.

    Args:
        token: The token.
    """

    challenge = "Bearer"

    def __init__(self, token: str) -> None:
        self._token = token.encode()

    async def authenticate(self, token: str) -> Caller | None:
        """Return the owner if this is the token; takes as long for every wrong one."""
        return OWNER if hmac.compare_digest(token.encode("utf-8", "replace"), self._token) else None

    def has_ended(self, caller: Caller) -> bool:  # noqa: ARG002 - the token stays
        """Return False."""
        return False


class Limited:
    """An authenticator whose callers may do no more than certain permissions allow.

    Args:
        authenticator: Tells whose a token is.
        find_limits: Returns the permissions that apply now.
    """

    def __init__(
        self, authenticator: Authenticator, find_limits: Callable[[], Permissions]
    ) -> None:
        self._authenticator = authenticator
        self._find_limits = find_limits

    @property
    def challenge(self) -> str:
        """That of the authenticator."""
        return self._authenticator.challenge

    async def authenticate(self, token: str) -> Caller | Refusal | None:
        """Return the answer of the authenticator, with limited permissions."""
        caller = await self._authenticator.authenticate(token)
        if not isinstance(caller, Caller):
            return caller
        limited = caller.permissions.limit_to(self._find_limits())
        return caller if limited is caller.permissions else replace(caller, permissions=limited)

    def has_ended(self, caller: Caller) -> bool:
        """Return the answer of the authenticator."""
        return self._authenticator.has_ended(caller)
