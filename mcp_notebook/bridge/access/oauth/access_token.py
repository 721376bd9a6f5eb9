"""A verified access token: issuer, user, scopes and expiry.

Pure. `signed_token_verifier` and `hub_token_verifier` verify tokens; `resource_server` turns them
into callers.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, kw_only=True)
class AccessToken:
    """What is known of a valid token."""

    issuer: str
    subject: str
    """The user; unique for the issuer."""
    alias: str = ""
    """The user's name for people, which the user may have chosen."""
    scopes: Sequence[str]
    expires: float
    """When it has to be verified again, in seconds since the epoch."""


class TokenVerifier(Protocol):
    """Verifies the tokens of one issuer."""

    async def verify_token(self, token: str) -> AccessToken | None:
        """Return what is known of a token, or None if it is not valid.

        Raises:
            IssuerUnreachable: The issuer cannot be asked.
        """
