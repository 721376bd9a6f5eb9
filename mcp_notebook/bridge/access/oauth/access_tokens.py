"""From an access token to a caller: what its scopes allow.

Runs on the bridge's event loop. A verifier says whose a token is; here it becomes a caller that may
do what any of the token's scopes allows. Good tokens are remembered until they expire, because
clients send them with every request.
"""

import hashlib
import logging
import time
from collections import OrderedDict

from mcp.server.auth.provider import AccessToken, TokenVerifier

from mcp_notebook.bridge.access.authenticator import Refusal
from mcp_notebook.bridge.access.caller import Caller, Permissions
from mcp_notebook.bridge.access.oauth.configuration import OAuthConfiguration
from mcp_notebook.errors import IssuerUnreachable

logger = logging.getLogger(__name__)

MAX_TOKENS = 1_000
"""Good tokens that are remembered; the least recently used ones are checked again."""
MAX_NAME = 200
"""Characters of a caller's name, as of what the audit log keeps of one."""
_FORBIDDEN, _UNAVAILABLE = 403, 503


class AccessTokens:
    """Tells whose an access token is; an `Authenticator`.

    Args:
        verifier: Checks tokens.
        configuration: What each scope allows, and who may come in.
        challenge: What ``WWW-Authenticate`` says to those who have no right token: the scheme and
            its parameters, the scopes among them.
    """

    def __init__(
        self, verifier: TokenVerifier, configuration: OAuthConfiguration, challenge: str
    ) -> None:
        self._verifier = verifier
        self._configuration = configuration
        self.challenge = challenge
        self._callers: OrderedDict[bytes, tuple[Caller, float]] = OrderedDict()
        """By the token's hash, with the time at which the token expires."""

    async def authenticate(self, token: str) -> Caller | Refusal | None:
        """Return whose this token is, why it is refused, or None if the issuer does not know it."""
        digest = hashlib.sha256(token.encode("utf-8", "replace")).digest()
        caller, expiry = self._callers.get(digest, (None, 0.0))
        if caller is not None:
            if time.time() < expiry:
                self._callers.move_to_end(digest)
                return caller
            del self._callers[digest]
        try:
            access = await self._verifier.verify_token(token)
        except IssuerUnreachable as error:
            return Refusal(str(error), status=_UNAVAILABLE)
        if access is None:
            return None
        answer = self._admit(access)
        if isinstance(answer, Caller):
            assert access.expires_at is not None
            self._callers[digest] = (answer, access.expires_at)
            if len(self._callers) > MAX_TOKENS:
                self._callers.popitem(last=False)
        return answer

    def has_ended(self, caller: Caller) -> bool:  # noqa: ARG002 - tokens expire between requests
        """Return False."""
        return False

    def _admit(self, access: AccessToken) -> Caller | Refusal:
        claims = access.claims or {}
        subject = access.subject or ""
        users = self._configuration.users
        if users and subject not in users:
            return Refusal("its user is not among those to let in", status=_FORBIDDEN)
        grants = self._configuration.scopes
        allowed = [grants[scope].to_permissions() for scope in access.scopes if scope in grants]
        if not allowed:
            return Refusal(
                "its access token has none of the scopes that allow a tool",
                status=_FORBIDDEN,
                challenge=f'{self.challenge}, error="insufficient_scope"',
            )
        alias = claims.get("preferred_username")
        return Caller(
            name=_make_name(str(claims.get("iss", "")), subject),
            alias=alias if isinstance(alias, str) else "",
            permissions=Permissions.allow_any(allowed),
        )


def _make_name(issuer: str, subject: str) -> str:
    """Return what identifies a user: only the issuer chooses it, and no two users share it."""
    name = f"oauth:{issuer}#{subject}"  # an issuer's address has no "#"
    if len(name) <= MAX_NAME:
        return name
    digest = hashlib.sha256(name.encode("utf-8", "replace")).hexdigest()
    return f"{name[: MAX_NAME - len(digest) - 3]}...{digest}"
