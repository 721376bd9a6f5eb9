"""Who presents this bearer token: the interface of everything that can tell, and the owner's token.

Runs on the bridge's event loop. The gate asks each `Authenticator` in turn; where tokens come from,
and what their callers may do, is the business of those.
"""

import hmac
from dataclasses import dataclass
from typing import Protocol

from mcp_notebook.bridge.access.caller import OWNER, Caller


@dataclass(frozen=True)
class Refusal:
    """A token that was good once, or would be elsewhere."""

    reason: str
    """For the log, after "refused a request ...:". Nothing that the request presented is in it."""


class Authenticator(Protocol):
    """Tells whose a bearer token is."""

    @property
    def challenge(self) -> str:
        """What ``WWW-Authenticate`` says to those who have no right token."""

    async def authenticate(self, token: str) -> Caller | Refusal | None:
        """Return whose token this is, why it is refused, or None if another may know it.

        Called for each request, and about once a second for each open stream, which ends when the
        answer is not a caller any more.
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
